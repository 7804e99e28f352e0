--- Shows changes in a new tab page: the old text on the left, and the file itself or
--- a newer checkpoint on the right, below a panel with the changed files. `]f` and `[f`
--- go through the files.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

local LETTERS = { added = 'A', modified = 'M', deleted = 'D', renamed = 'R', typeChanged = 'T' }

--- Maximum height of the panel, in lines.
local PANEL_HEIGHT = 8

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
---@field panel? integer Window with the files. Absent if there is one file.

--- Returns the absolute path of a file in a result.
---@param file { path: string, uri?: string }
---@param target? sightline.Target
---@return string
function M.path(file, target)
  local root = server.root(target) or vim.fn.getcwd()
  return buffers.normalize(file.uri and vim.uri_to_fname(file.uri) or root .. '/' .. file.path)
end

--- Shows the file of an index.
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
      right = buffers.unlisted(M.path(now, differences.target))
    end
    vim.api.nvim_win_call(differences.left, function()
      vim.cmd('diffoff!')
    end)
    local place = ('%d/%d %s'):format(index, #differences.files, M.line(now))
    show.diff(differences.left, left, ('%s  %s'):format(differences.from:sub(1, 8), place))
    show.diff(differences.right, right, differences.to and differences.to:sub(1, 8) or 'now')
    local shown = { left, right }
    if differences.panel and vim.api.nvim_win_is_valid(differences.panel) then
      vim.api.nvim_win_set_cursor(differences.panel, { index, 0 })
      table.insert(shown, vim.api.nvim_win_get_buf(differences.panel))
    end
    for _, bufnr in ipairs(shown) do
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

--- Opens the panel. `<CR>` shows the file of the line, `q` closes the diff.
---@param differences sightline.Differences
---@return integer window
local function open_panel(differences)
  local height = math.min(#differences.files, PANEL_HEIGHT)
  local panel = show.open('changed files', vim.tbl_map(M.line, differences.files), nil, height)
  vim.wo[panel].cursorline = true
  local function map(key, action, description)
    vim.keymap.set('n', key, action, { buffer = vim.api.nvim_win_get_buf(panel), desc = description })
  end
  map('<CR>', function()
    load(differences, vim.api.nvim_win_get_cursor(panel)[1])
  end, 'Show the changed file')
  map('q', '<Cmd>tabclose<CR>', 'Close the diff')
  return panel
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
    ---@type sightline.Differences
    local differences =
      { from = params.from, to = params.to, files = result.files, target = target, left = left, right = right }
    if #result.files > 1 then
      differences.panel = open_panel(differences)
      show.say(show.count(#result.files, 'changed file') .. '; next with ]f, previous with [f')
    end
    vim.api.nvim_set_current_win(right)
    load(differences, 1)
  end, target)
end

--- Compares the unsaved text of the current buffer with its file, in a new tab page.
function M.unsaved()
  local bufnr = vim.api.nvim_get_current_buf()
  if not buffers.is_file(bufnr) then
    return show.say('not a file buffer', vim.log.levels.WARN)
  end
  local path = buffers.path(bufnr)
  local read, lines = pcall(vim.fn.readfile, path)
  if not read then
    return show.say(('cannot read %s'):format(path), vim.log.levels.ERROR)
  end
  local name = ('disk/%s'):format(vim.fs.basename(path))
  local disk = show.scratch(name, lines, vim.bo[bufnr].filetype)
  vim.cmd('tabnew')
  vim.bo.bufhidden = 'wipe'
  local right = vim.api.nvim_get_current_win()
  vim.cmd('leftabove vsplit')
  show.diff(vim.api.nvim_get_current_win(), disk, 'on disk')
  show.diff(right, bufnr, 'unsaved text')
  vim.api.nvim_set_current_win(right)
end

return M
