--- Shows changes in a new tab page: the old text on the left, and the file itself or
--- a newer checkpoint on the right, below a panel with the changed files. `]f` and `[f`
--- go through the files.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

local MARKS = {
  added = { 'A', 'SightlineAdded' },
  modified = { 'M', 'SightlineModified' },
  deleted = { 'D', 'SightlineDeleted' },
  renamed = { 'R', 'SightlineModified' },
  typeChanged = { 'T', 'SightlineModified' },
}

--- Maximum height of the panel, as a part of the screen.
local PANEL_HEIGHT = 0.3

--- Returns the icon of a file and its highlight group, from mini.icons or nvim-web-devicons.
---@param path string
---@return string? icon `nil` without these plugins
---@return string? group
local function icon(path)
  local has_mini, mini = pcall(require, 'mini.icons')
  if has_mini then
    return mini.get('file', path)
  end
  local has_devicons, devicons = pcall(require, 'nvim-web-devicons')
  if has_devicons then
    return devicons.get_icon(vim.fs.basename(path), nil, { default = true })
  end
end

--- Formats a changed file as parts of a line: letter, icon, name and counts.
---@param file sightline.FileDifference
---@return (string|string[])[]
local function parts(file)
  local old = file.oldPath and (' (was %s)'):format(file.oldPath) or ''
  local line = { MARKS[file.status] or { '?' }, ' ' }
  local sign, group = icon(file.path)
  if sign then
    vim.list_extend(line, { { sign, group }, ' ' })
  end
  table.insert(line, vim.fs.basename(file.path) .. old .. '  ')
  if file.binary then
    table.insert(line, 'binary')
  else
    table.insert(line, { '+' .. file.additions, 'SightlineAdded' })
    table.insert(line, { ' -' .. file.deletions, 'SightlineDeleted' })
  end
  return line
end

--- Returns the files by folder, those of the workspace folder itself first.
---@param files sightline.FileDifference[]
---@return sightline.FileDifference[]
local function by_folder(files)
  local sorted = vim.list_slice(files)
  table.sort(sorted, function(a, b)
    local left, right = vim.fs.dirname(a.path), vim.fs.dirname(b.path)
    if left == right then
      return a.path < b.path
    end
    return left == '.' or right ~= '.' and left < right
  end)
  return sorted
end

--- Formats a changed file as one line.
---@param file sightline.FileDifference|sightline.TurnFile
---@return string
function M.line(file)
  local name = file.oldPath and ('%s -> %s'):format(file.oldPath, file.path) or file.path
  local size = file.binary and 'binary' or ('+%d -%d'):format(file.additions, file.deletions)
  return ('%s %s  %s'):format((MARKS[file.status] or { '?' })[1], name, size)
end

---@class sightline.Differences
---@field from string Id of the old checkpoint.
---@field to? string Id of the new checkpoint. Defaults to the workspace.
---@field files sightline.FileDifference[]
---@field target? sightline.Target
---@field left integer Window.
---@field right integer
---@field panel? integer Window with the files. Absent if there is one file.
---@field line_of? integer[] Line of each file in the panel.

--- Returns the absolute path of a file in a result.
---@param file { path: string, uri?: string }
---@param target? sightline.Target
---@return string
function M.path(file, target)
  local root = server.root(target) or vim.fn.getcwd()
  return buffers.normalize(file.uri and vim.uri_to_fname(file.uri) or root .. '/' .. file.path)
end

---@type fun(differences: sightline.Differences, index: integer)
local load

--- Goes to the next change of the file or, after the last one, to the next file.
---@param differences sightline.Differences
---@param index integer of the shown file
---@param key ']c'|'[c'
local function next_change(differences, index, key)
  local before = vim.api.nvim_win_get_cursor(0)
  vim.cmd.normal({ vim.v.count1 .. key, bang = true })
  local is_at_end = vim.deep_equal(before, vim.api.nvim_win_get_cursor(0))
  -- The mapping stays in the buffer of the file, which other windows show too.
  local window = vim.api.nvim_get_current_win()
  if is_at_end and (window == differences.left or window == differences.right) then
    load(differences, (index - 1 + (key == ']c' and 1 or -1)) % #differences.files + 1)
  end
end

--- Restores the file of an index from the old checkpoint, after a preview.
---@param differences sightline.Differences
---@param index integer
local function restore(differences, index)
  local file = differences.files[index]
  require('sightline.checkpoints').restore(differences.from, { file.uri }, differences.target)
end

--- Shows the file of an index.
---@param differences sightline.Differences
---@param index integer
load = function(differences, index)
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
      local name = ('%s/%s'):format(show.id(id), file.path)
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
    show.diff(differences.left, left, ('%s  %s'):format(show.id(differences.from), place))
    show.diff(differences.right, right, differences.to and show.id(differences.to) or 'now')
    -- Lines that only the old side has were deleted.
    vim.wo[differences.left][0].winhighlight = 'DiffAdd:DiffDelete'
    local shown = { left, right }
    if differences.panel and vim.api.nvim_win_is_valid(differences.panel) then
      vim.api.nvim_win_set_cursor(differences.panel, { differences.line_of[index], 0 })
      table.insert(shown, vim.api.nvim_win_get_buf(differences.panel))
    end
    for _, bufnr in ipairs(shown) do
      local function map(key, action, description)
        vim.keymap.set('n', key, action, { buffer = bufnr, desc = description })
      end
      for key, step in pairs({ [']f'] = 1, ['[f'] = -1 }) do
        map(key, function()
          load(differences, (index - 1 + step) % #differences.files + 1)
        end, step == 1 and 'Next changed file' or 'Previous changed file')
      end
      if bufnr == left or bufnr == right then
        for _, key in ipairs({ ']c', '[c' }) do
          map(key, function()
            next_change(differences, index, key)
          end, 'Next or previous change, also of another file')
        end
      end
    end
    vim.api.nvim_exec_autocmds('User', { pattern = 'SightlineDiff', modeline = false, data = { path = file.path } })
  end, differences.target)
end

--- Opens the panel with the files.
---@param differences sightline.Differences
---@return integer window
local function open_panel(differences)
  local files = differences.files
  local additions, deletions = 0, 0
  for _, file in ipairs(files) do
    additions, deletions = additions + file.additions, deletions + file.deletions
  end
  local heading = ('%s, +%d -%d; g? shows the keys'):format(show.count(#files, 'changed file'), additions, deletions)
  local lines, line_of, folder = { { { heading, 'SightlineHeading' } } }, {}, '.'
  for index, file in ipairs(files) do
    if vim.fs.dirname(file.path) ~= folder then
      folder = vim.fs.dirname(file.path)
      table.insert(lines, { { folder .. '/', 'SightlineFolder' } })
    end
    table.insert(lines, vim.list_extend({ folder == '.' and '' or '  ' }, parts(file)))
    line_of[index] = #lines
  end
  differences.line_of = line_of
  local height = math.min(#lines, math.max(8, math.floor(vim.o.lines * PANEL_HEIGHT)))
  local panel = show.open('changed files', {}, nil, height)
  local bufnr = vim.api.nvim_win_get_buf(panel)
  show.fill(bufnr, 0, lines)
  vim.wo[panel].cursorline = true
  local function on_file(action)
    return function()
      -- On the line of a folder, its first file.
      local line = vim.api.nvim_win_get_cursor(panel)[1]
      for index = 1, #files do
        if line_of[index] >= line then
          return action(differences, index)
        end
      end
    end
  end
  show.keys(bufnr, {
    { '<CR>', 'show the file', on_file(load) },
    { 'X', 'restore the file from the old side, after a preview', on_file(restore) },
    {
      'gf',
      'open the file in a new tab page',
      on_file(function(_, index)
        vim.cmd.tabedit(vim.fn.fnameescape(M.path(files[index], differences.target)))
      end),
    },
    {
      'q',
      'close the diff',
      function()
        vim.cmd('tabclose')
      end,
    },
  })
  return panel
end

--- Opens the changes between a checkpoint or turn and another, or the workspace. The name of a turn
--- without `to` means what the turn changed; with `to_now`, the changes since it began.
---@param params { from: string, to?: string, paths?: string[], to_now?: boolean }
---@param target? sightline.Target
function M.open(params, target)
  -- The new tab page must not change the project.
  target = target or { root = server.root() }
  local from, to = params.from, params.to
  local is_turn = not from:match('^%x+$') and from ~= 'last'
  if is_turn and params.to_now then
    return api.list_checkpoints({ id = from }, function(err, result)
      if not result then
        return show.failed(err)
      end
      M.open({ from = result.checkpoints[1].id, paths = params.paths }, target)
    end, target)
  elseif is_turn and not to then
    to = from .. '+'
  end
  api.diff_checkpoints({ from = from, to = to, paths = params.paths }, function(err, result)
    if not result then
      return show.failed(err)
    end
    if #result.files == 0 then
      return show.say(('no changes since %s'):format(show.id(from)))
    end
    vim.cmd('tabnew')
    vim.bo.bufhidden = 'wipe'
    local right = vim.api.nvim_get_current_win()
    vim.cmd('leftabove vsplit')
    local left = vim.api.nvim_get_current_win()
    ---@type sightline.Differences
    local differences =
      { from = from, to = to, files = by_folder(result.files), target = target, left = left, right = right }
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
