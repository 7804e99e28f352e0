--- Selects file buffers and determines their project folders.

local config = require('sightline.config')
local show = require('sightline.show')

local M = {}

--- Returns whether a buffer is a file that is shared with the server. Terminals,
--- lists, scratch buffers, folders and `scheme://` names are not, and neither are files
--- that only a diff opened, and buffers excluded by `vim.b.sightline = false` or the
--- option `attach`.
---@param bufnr integer
---@return boolean
function M.is_file(bufnr)
  if not vim.api.nvim_buf_is_loaded(bufnr) or vim.bo[bufnr].buftype ~= '' or vim.b[bufnr].sightline_diff then
    return false
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  if name == '' or name:match('^%a[%w+.-]+://') or vim.fn.isdirectory(name) == 1 then
    return false
  end
  return M.is_wanted(bufnr)
end

--- Returns whether a file buffer is too large for its text to be sent.
---@param bufnr integer
---@return boolean
function M.is_large(bufnr)
  return vim.api.nvim_buf_get_offset(bufnr, vim.api.nvim_buf_line_count(bufnr)) > config.current.max_file_size
end

--- Returns whether a buffer is not excluded.
---@param bufnr integer
---@return boolean
function M.is_wanted(bufnr)
  return vim.b[bufnr].sightline ~= false and config.current.attach(bufnr) ~= false
end

--- Normalizes a path to `/` without expanding `$`.
---@param path string
---@return string
function M.normalize(path)
  return vim.fs.normalize(path, { expand_env = false })
end

--- Returns the absolute path of a buffer, with `/`.
---@param bufnr integer
---@return string
function M.path(bufnr)
  return M.normalize(vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':p'))
end

--- Returns whether a path is a folder or below it.
---@param path string
---@param folder string
---@return boolean
function M.is_below(path, folder)
  return path == folder or vim.startswith(path, folder:gsub('/$', '') .. '/')
end

--- Returns whether a folder is the home folder or the file system root, which are
--- never projects by default.
---@param folder string
---@return boolean
local function is_too_broad(folder)
  return folder == vim.fs.normalize('~') or vim.fs.dirname(folder) == folder
end

--- Returns the project of a path: by root markers, otherwise the working directory.
--- Returns `nil` for a file outside of projects.
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
  if M.is_below(path, cwd) and not is_too_broad(cwd) then
    return cwd
  end
end

--- Returns the loaded buffer of a path.
---@param path string
---@return integer?
function M.of_path(path)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' and M.path(bufnr) == path then
      return bufnr
    end
  end
end

--- Milliseconds until a changed file is reported: a restore replaces unsaved text after the file.
local REPORT_DELAY = 200

--- Reads a buffer with unsaved text again if its file has the same text.
---@param bufnr integer
---@return boolean reloaded
function M.reload_same(bufnr)
  local file = io.open(vim.api.nvim_buf_get_name(bufnr), 'rb')
  local text = file and file:read('*a')
  if file then
    file:close()
  end
  local ends = ({ dos = '\r\n', mac = '\r', unix = '\n' })[vim.bo[bufnr].fileformat]
  local lines = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, true), ends)
  if text ~= lines and text ~= lines .. ends then
    return false
  end
  vim.api.nvim_buf_call(bufnr, function()
    vim.cmd('silent keepalt edit!')
  end)
  return true
end

--- Says that a file changed, unless its text is that of the buffer by now.
---@param bufnr integer
local function report_unsaved(bufnr)
  local is_open = vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified
  if not is_open or M.reload_same(bufnr) then
    return
  end
  show.mark(bufnr, 'changed on disk, unsaved text kept (:Sightline unsaved compares)')
  local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
  show.say(('%s changed on disk; its unsaved text is kept'):format(name), vim.log.levels.WARN)
end

--- Keeps the unsaved text of a buffer whose file changed, and says so. Neovim would ask what to do,
--- in the way of whatever the user types.
---@param bufnr integer
local function keep_unsaved(bufnr)
  local group = vim.api.nvim_create_augroup('sightline_unsaved_' .. bufnr, {})
  local is_changed = false
  vim.api.nvim_create_autocmd('FileChangedShell', {
    group = group,
    buffer = bufnr,
    callback = function()
      if vim.v.fcs_reason ~= 'conflict' then
        vim.v.fcs_choice = 'ask'
        return
      end
      vim.v.fcs_choice = ''
      is_changed = true
      vim.defer_fn(function()
        report_unsaved(bufnr)
      end, REPORT_DELAY)
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufWritePost', 'BufReadPost' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  vim.cmd(('checktime %d'):format(bufnr))
  -- The change was that of Neovim itself.
  if not is_changed then
    vim.api.nvim_del_augroup_by_id(group)
  end
end

--- Reads a buffer again whose file changed on disk, as the option 'autoread' says. Unsaved text is
--- kept.
---@param bufnr integer
function M.changed_on_disk(bufnr)
  local autoread = vim.bo[bufnr].autoread
  if autoread == nil then
    autoread = vim.go.autoread
  end
  if vim.bo[bufnr].modified then
    keep_unsaved(bufnr)
  elseif autoread and vim.fn.filereadable(vim.api.nvim_buf_get_name(bufnr)) == 1 then
    vim.cmd(('silent checktime %d'):format(bufnr))
  end
end

--- Returns the buffer of a file. A file that was not open is unlisted, not shared with
--- the server, and wiped when it is no longer shown, until the user opens or changes it.
---@param path string
---@return integer bufnr
function M.unlisted(path)
  -- A tab page is named by the text given here, so without the working directory.
  local bufnr = vim.fn.bufadd(vim.fn.fnamemodify(path, ':.'))
  if vim.bo[bufnr].buflisted or vim.api.nvim_buf_is_loaded(bufnr) then
    return bufnr
  end
  vim.b[bufnr].sightline_diff = true
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.fn.bufload(bufnr)
  vim.api.nvim_create_autocmd({ 'BufAdd', 'BufModifiedSet' }, {
    buffer = bufnr,
    callback = function()
      if not (vim.bo[bufnr].buflisted or vim.bo[bufnr].modified) then
        return
      end
      vim.b[bufnr].sightline_diff = nil
      vim.bo[bufnr].bufhidden = ''
      vim.bo[bufnr].buflisted = true
      require('sightline.server').attach(bufnr)
      return true
    end,
  })
  return bufnr
end

return M
