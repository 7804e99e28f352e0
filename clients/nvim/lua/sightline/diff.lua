--- Shows changes in a new tab page: the old text on the left, and the file itself or
--- a newer checkpoint on the right. `]f` and `[f` go through the files.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

local LETTERS = { added = 'A', modified = 'M', deleted = 'D', renamed = 'R', typeChanged = 'T' }

--- Formats a changed file as one line.
---@param file sightline.FileDifference
---@return string
function M.line(file)
  local name = file.oldPath and ('%s -> %s'):format(file.oldPath, file.path) or file.path
  local size = file.binary and 'binary' or ('+%d -%d'):format(file.additions, file.deletions)
  return ('%s %s  %s'):format(LETTERS[file.status] or '?', name, size)
end

---@class sightline.Differences
---@field from string Id of the old checkpoint.
---@field to? string Id of the new checkpoint. Defaults to the workspace.
---@field files sightline.FileDifference[]
---@field target? sightline.Target
---@field left integer Window.
---@field right integer

--- Returns the absolute path of a file in a result.
---@param file { path: string, uri?: string }
---@param target? sightline.Target
---@return string
function M.path(file, target)
  local root = server.root(target) or vim.fn.getcwd()
  return buffers.normalize(file.uri and vim.uri_to_fname(file.uri) or root .. '/' .. file.path)
end

---@param window integer
---@param bufnr integer
---@param title string
local function put(window, bufnr, title)
  vim.api.nvim_win_set_buf(window, bufnr)
  vim.api.nvim_win_call(window, function()
    vim.cmd('diffthis')
  end)
  -- `%` starts a statusline item.
  vim.wo[window].winbar = title:gsub('%%', '%%%%')
end

---@param differences sightline.Differences
---@param index integer
local function load(differences, index)
  local file = differences.files[index]
  local params = { from = differences.from, to = differences.to, paths = { file.path, file.oldPath }, contents = true }
  api.diff_checkpoints(params, function(err, result)
    if not result then
      return show.failed(err)
    end
    if not (vim.api.nvim_win_is_valid(differences.left) and vim.api.nvim_win_is_valid(differences.right)) then
      return
    end
    local now = file
    for _, one in ipairs(result.files) do
      now = one.path == file.path and one or now
    end
    local filetype = vim.filetype.match({ filename = file.path }) or ''
    local function side(text, id)
      local missing = now.binary and '(binary)' or now.omitted and ('(%s)'):format(now.omitted)
      local name = ('%s/%s'):format(id:sub(1, 8), file.path)
      return show.scratch(name, missing and { missing } or text and show.lines(text) or {}, filetype)
    end
    local left = side(now.before, differences.from)
    local right
    if differences.to or now.binary or now.status == 'deleted' or now.omitted then
      right = side(now.after, differences.to or 'now')
    else
      right = vim.fn.bufadd(M.path(now, differences.target))
      vim.bo[right].buflisted = true
      vim.fn.bufload(right)
    end
    vim.api.nvim_win_call(differences.left, function()
      vim.cmd('diffoff!')
    end)
    local place = ('%d/%d %s'):format(index, #differences.files, M.line(now))
    put(differences.left, left, ('%s  %s'):format(differences.from:sub(1, 8), place))
    put(differences.right, right, differences.to and differences.to:sub(1, 8) or 'now')
    for _, bufnr in ipairs({ left, right }) do
      local function go(step)
        return function()
          load(differences, (index - 1 + step) % #differences.files + 1)
        end
      end
      vim.keymap.set('n', ']f', go(1), { buffer = bufnr, desc = 'Next changed file' })
      vim.keymap.set('n', '[f', go(-1), { buffer = bufnr, desc = 'Previous changed file' })
    end
    vim.api.nvim_exec_autocmds('User', { pattern = 'SightlineDiff', modeline = false, data = { path = file.path } })
  end, differences.target)
end

--- Opens the changes between a checkpoint and another, or the workspace.
---@param params { from: string, to?: string, paths?: string[] }
---@param target? sightline.Target
function M.open(params, target)
  -- The new tab page must not change the project.
  target = target or { root = server.root() }
  api.diff_checkpoints(params, function(err, result)
    if not result then
      return show.failed(err)
    end
    if #result.files == 0 then
      return show.say(('no changes since %s'):format(params.from:sub(1, 8)))
    end
    vim.cmd('tabnew')
    vim.bo.bufhidden = 'wipe'
    local right = vim.api.nvim_get_current_win()
    vim.cmd('leftabove vsplit')
    local left = vim.api.nvim_get_current_win()
    vim.api.nvim_set_current_win(right)
    load({ from = params.from, to = params.to, files = result.files, target = target, left = left, right = right }, 1)
    if #result.files > 1 then
      show.say(show.count(#result.files, 'changed file') .. '; next with ]f, previous with [f')
    end
  end, target)
end

return M
