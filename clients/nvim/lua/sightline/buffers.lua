--- Which buffers are files of the user, and which folder they belong to.

local config = require('sightline.config')

local M = {}

--- Is this a file the user edits? Not a terminal, a list, a scratch buffer, a
--- folder or something behind a `scheme://`; not one that was opted out by
--- `vim.b.sightline = false` or the option `attach`.
---@param bufnr integer
---@return boolean
function M.is_file(bufnr)
  if not vim.api.nvim_buf_is_loaded(bufnr) or vim.bo[bufnr].buftype ~= '' then
    return false
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  if name == '' or name:match('^%a[%w+.-]+://') or vim.fn.isdirectory(name) == 1 then
    return false
  end
  return M.is_wanted(bufnr)
end

--- Was it not opted out?
---@param bufnr integer
---@return boolean
function M.is_wanted(bufnr)
  return vim.b[bufnr].sightline ~= false and config.current.attach(bufnr) ~= false
end

--- A path with `/`. A `$` in a name is a `$`.
---@param path string
---@return string
function M.normalize(path)
  return vim.fs.normalize(path, { expand_env = false })
end

--- Its absolute path, with `/`.
---@param bufnr integer
---@return string
function M.path(bufnr)
  return M.normalize(vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':p'))
end

--- Is a path a folder or below it?
---@param path string
---@param folder string
---@return boolean
function M.is_below(path, folder)
  return path == folder or vim.startswith(path, folder:gsub('/$', '') .. '/')
end

--- The home folder and the file system's root are no projects: nobody means all
--- that is below them.
---@param folder string
---@return boolean
local function is_too_wide(folder)
  return folder == vim.fs.normalize('~') or vim.fs.dirname(folder) == folder
end

--- The project of a path: by markers, else the working directory, else the
--- folder the file is in. `nil` when that would be the home folder.
---@param path string
---@return string?
function M.root_of(path)
  for _, marker in ipairs(config.current.root_markers) do
    local root = vim.fs.root(path, marker)
    if root then
      return M.normalize(root)
    end
  end
  local cwd = M.normalize(vim.fn.getcwd())
  if M.is_below(path, cwd) and not is_too_wide(cwd) then
    return cwd
  end
  local folder = vim.fn.isdirectory(path) == 1 and path or vim.fs.dirname(path)
  if vim.fn.isdirectory(folder) == 1 and not is_too_wide(folder) then
    return folder
  end
end

--- The loaded buffer of a path.
---@param path string
---@return integer?
function M.of_path(path)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' and M.path(bufnr) == path then
      return bufnr
    end
  end
end

return M
