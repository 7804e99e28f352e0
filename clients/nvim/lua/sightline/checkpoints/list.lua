--- Lists turns of agents and checkpoints in a window, newest first, with the changes of the selected
--- one next to it. The keys of the list act on the row of the cursor.

local api = require('sightline.api')
local diff = require('sightline.checkpoints.diff')
local pickers = require('sightline.checkpoints.pickers')
local show = require('sightline.show')

local M = {}

--- A row of a list.
---@class sightline.ListRow
---@field at integer Time, for the heading of the day.
---@field parts (string|string[])[] What the line shows after the time.
---@field changes? { from: string, to?: string } What the row changed, for `diffCheckpoints`.
---@field id? string What `R` restores.
---@field after? string What `A` restores.
---@field turn? string Name of the turn, which `o` reverts.
---@field ids string[] Checkpoints that `d` deletes.
---@field label? string
---@field previous? string Checkpoint before this one.
---@field note? string[] Preview, if there are no changes.

--- Delay after which the preview follows the cursor, in milliseconds.
local DEBOUNCE_MS = 60

--- Maximum number of lines of the preview.
local MAX_PREVIEW = 1000

--- Maximum number of turns and checkpoints of a list.
local LIMIT = 1000

---@class sightline.List
---@field name string
---@field target sightline.Target
---@field paths? string[] Files that the list is about.
---@field load fun(callback: fun(err?: sightline.Error, rows: sightline.ListRow[]))
---@field by_line table<integer, sightline.ListRow>
---@field window integer
---@field preview integer Window.
---@field changes? integer Buffer of the preview.
local List = {}
List.__index = List

---@return sightline.ListRow?
function List:row()
  return self.by_line[vim.api.nvim_win_get_cursor(self.window)[1]]
end

--- Returns the rows of the Visual selection, or that of the cursor.
---@return sightline.ListRow[]
function List:selected()
  local from, to = vim.fn.line('v'), vim.fn.line('.')
  local rows = {}
  for line = math.min(from, to), math.max(from, to) do
    table.insert(rows, self.by_line[line])
  end
  return rows
end

---@param lines string[]
---@param filetype string
function List:show_preview(lines, filetype)
  if vim.api.nvim_win_is_valid(self.preview) then
    if not self.changes or not vim.api.nvim_buf_is_valid(self.changes) then
      self.changes = show.scratch('changes', {})
    end
    show.replace(self.changes, vim.list_slice(lines, 1, MAX_PREVIEW))
    vim.bo[self.changes].syntax = filetype
    vim.api.nvim_win_set_buf(self.preview, self.changes)
    vim.api.nvim_win_set_cursor(self.preview, { 1, 0 })
  end
end

--- Shows the changes of the row of the cursor in the preview.
function List:update_preview()
  local row = vim.api.nvim_win_is_valid(self.window) and self:row()
  if not row or row == self.shown then
    return
  end
  self.shown = row
  if not row.changes then
    return self:show_preview(row.note or { 'no changes' }, '')
  end
  local params = vim.tbl_extend('force', { paths = self.paths, patch = true }, row.changes)
  api.diff_checkpoints(params, function(err, result)
    if self.shown ~= row then
      return
    end
    local text = err and err.message or result and result.text
    local lines = text and text ~= '' and show.lines(text) or { 'no changes' }
    self:show_preview(vim.list_extend(vim.list_slice(row.note or {}), lines), 'diff')
  end, self.target)
end

--- Reads the rows again.
function List:refresh()
  self.load(function(err, rows)
    if err then
      return show.failed(err)
    elseif not vim.api.nvim_win_is_valid(self.window) then
      return
    end
    local lines, day = {}, nil
    self.by_line = {}
    for _, row in ipairs(rows) do
      local date = show.time(row.at, '%A %d %B %Y')
      if date ~= day then
        day = date
        table.insert(lines, { { date, 'SightlineHeading' } })
      end
      local time = { show.time(row.at, ' %H:%M  '), 'SightlineTime' }
      table.insert(lines, vim.list_extend({ time }, row.parts))
      self.by_line[#lines] = row
    end
    local cursor = vim.api.nvim_win_get_cursor(self.window)
    show.fill(vim.api.nvim_win_get_buf(self.window), 0, lines)
    vim.api.nvim_win_set_cursor(self.window, { math.min(math.max(cursor[1], 2), math.max(#lines, 1)), 0 })
    self.shown = nil
    self:update_preview()
  end)
end

function List:close()
  for _, window in ipairs({ self.preview, self.window }) do
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end
end

--- Asks for a new label, which is removed if it is empty.
---@param row sightline.ListRow
function List:rename(row)
  vim.ui.input({ prompt = 'Label: ', default = row.label or '' }, function(label)
    if not label then
      return
    end
    api.label_checkpoint({ id = row.id, label = label }, function(err)
      if err then
        return show.failed(err)
      end
      self:refresh()
    end, self.target)
  end)
end

--- Commits the state of a row, after the turn if it is one, to a branch that it asks for.
---@param row sightline.ListRow
function List:commit(row)
  vim.ui.input({ prompt = 'New branch: ' }, function(branch)
    if not branch or branch == '' then
      return
    end
    api.commit_checkpoint({ id = row.after or row.id, branch = branch }, function(err, result)
      if not result then
        return show.failed(err)
      end
      show.say(('committed %s to %s'):format(result.commit:sub(1, 8), result.branch))
    end, self.target)
  end)
end

---@param rows sightline.ListRow[]
function List:delete(rows)
  -- The end of a turn can also be the beginning of the next one, which stays.
  local ids, kept = {}, {}
  for _, row in pairs(self.by_line) do
    for _, id in ipairs(vim.list_contains(rows, row) and {} or row.ids) do
      kept[id] = true
    end
  end
  for _, row in ipairs(rows) do
    for _, id in ipairs(row.ids) do
      if not kept[id] then
        kept[id] = true
        table.insert(ids, id)
      end
    end
  end
  if #ids == 0 then
    return show.say('nothing to delete: a running turn, or one without changes', vim.log.levels.WARN)
  end
  local function delete()
    api.prune_checkpoints({ ids = ids }, function(err, result)
      if not result then
        return show.failed(err)
      end
      show.say(('deleted %s, %s'):format(show.count(result.removed, 'checkpoint'), show.size(result.freedBytes)))
      self:refresh()
    end, self.target)
  end
  local question = 'Delete %s? The files stay as they are. This cannot be undone.'
  pickers.action(question:format(show.count(#ids, 'checkpoint')), { { label = 'Delete', run = delete } })
end

--- Returns the action of a key: `run` with the row of the cursor, which has all `needs`.
---@param run fun(row: sightline.ListRow)
---@param needs? string
---@return fun()
function List:on_row(run, needs)
  return function()
    local row = self:row()
    if row and needs and not row[needs] then
      return show.say('not possible for this row', vim.log.levels.WARN)
    elseif row then
      run(row)
    end
  end
end

---@return sightline.Key[]
function List:keys()
  local checkpoints = require('sightline.checkpoints')
  local function compare(params)
    diff.open(vim.tbl_extend('force', { paths = self.paths }, params), self.target)
  end
  local function restore(id, only)
    self:close()
    checkpoints.restore(id, self.paths, self.target, only)
  end
  return {
    { '<CR>', 'show the changes', self:on_row(function(row)
      compare(row.changes)
    end, 'changes') },
    {
      'n',
      'show the changes since, up to now',
      self:on_row(function(row)
        compare({ from = row.id, to_now = true })
      end, 'id'),
    },
    {
      'p',
      'compare with the previous checkpoint',
      self:on_row(function(row)
        compare({ from = row.previous, to = row.id })
      end, 'previous'),
    },
    { 'R', 'restore, after a preview', self:on_row(function(row)
      restore(row.id)
    end, 'id') },
    { 'A', 'restore the state after the turn', self:on_row(function(row)
      restore(row.after)
    end, 'after') },
    {
      'o',
      'revert this turn, and keep what came later',
      self:on_row(function(row)
        restore(row.turn, 'turn')
      end, 'turn'),
    },
    {
      'b',
      'commit the state to a new branch of your repository',
      self:on_row(function(row)
        self:commit(row)
      end, 'id'),
    },
    {
      's',
      'show the changes since in the sign column',
      self:on_row(function(row)
        require('sightline.checkpoints.signs').show(row.id, self.target)
      end, 'id'),
    },
    { 'r', 'rename', self:on_row(function(row)
      self:rename(row)
    end, 'id') },
    {
      'd',
      'delete the selected rows',
      function()
        local rows = self:selected()
        vim.cmd.normal({ vim.keycode('<Esc>'), bang = true })
        self:delete(rows)
      end,
      modes = { 'n', 'x' },
    },
    {
      'y',
      'copy the id',
      self:on_row(function(row)
        show.copy(row.id)
        show.say('copied ' .. row.id)
      end, 'id'),
    },
    {
      'q',
      'close',
      function()
        self:close()
      end,
    },
  }
end

--- Opens a list.
---@param list { name: string, target: sightline.Target, paths?: string[], load: fun(callback: fun(err?: sightline.Error, rows: sightline.ListRow[])) }
local function open(list)
  local self = setmetatable(list, List)
  self.by_line = {}
  self.load(function(err, rows)
    if err then
      return show.failed(err)
    elseif #rows == 0 then
      return show.say(('no %s yet'):format(self.name))
    end
    self.window = show.open(self.name, {}, nil, math.max(6, math.floor(vim.o.lines * 0.45)))
    vim.wo[self.window].cursorline = true
    show.title(self.window, self.name .. ': <CR> shows, R restores, g? all keys')
    vim.cmd('rightbelow vsplit')
    self.preview = vim.api.nvim_get_current_win()
    vim.wo[self.preview].cursorline = false
    show.title(self.preview, 'changes')
    vim.api.nvim_set_current_win(self.window)
    local bufnr = vim.api.nvim_win_get_buf(self.window)
    show.keys(bufnr, self:keys())
    local timer = assert(vim.uv.new_timer())
    vim.api.nvim_create_autocmd('CursorMoved', {
      buffer = bufnr,
      callback = function()
        timer:start(
          DEBOUNCE_MS,
          0,
          vim.schedule_wrap(function()
            self:update_preview()
          end)
        )
      end,
    })
    vim.api.nvim_create_autocmd('BufWipeout', {
      buffer = bufnr,
      once = true,
      callback = function()
        timer:close()
        vim.schedule(function()
          self:close()
        end)
      end,
    })
    self:refresh()
  end)
end

---@param turn sightline.ListedTurn
---@return (string|string[])[]
local function counts(turn)
  local additions, deletions = 0, 0
  for _, file in ipairs(turn.files) do
    additions, deletions = additions + file.additions, deletions + file.deletions
  end
  local count = #turn.files + (turn.moreFiles or 0)
  if count == 0 then
    local is_unknown = turn.before and not turn.after and not turn.running
    return { { is_unknown and '  its end was not saved' or '  no changes', 'SightlineFolder' } }
  end
  return {
    { ('  +%d'):format(additions), 'SightlineAdded' },
    { (' -%d'):format(deletions), 'SightlineDeleted' },
    '  ' .. show.count(count, 'file'),
  }
end

---@param head? sightline.CheckpointHead
---@return string
local function place(head)
  return head and (head.branch or show.id(head.commit)) or 'no commit'
end

--- Returns the row of what changed before a turn, outside of turns.
---@param turn sightline.ListedTurn
---@return sightline.ListRow
local function outside_row(turn)
  local outside = turn.outside
  local names = outside.turns and table.concat(outside.turns, ', ') .. ', or you' or 'you, or another program'
  local parts = { { names .. ':', 'SightlineFolder' } }
  if outside.from or outside.to then
    table.insert(parts, (' %s to %s,'):format(place(outside.from), place(outside.to)))
  end
  table.insert(parts, ' ' .. show.count(#outside.files + (outside.moreFiles or 0), 'file'))
  local note = vim.tbl_map(diff.line, outside.files)
  return { at = turn.startedAt, parts = parts, ids = {}, note = note }
end

--- Returns the lines above the changes of a turn.
---@param turn sightline.ListedTurn
---@return string[]
local function turn_note(turn)
  local note = turn.prompt and { turn.prompt } or {}
  for _, file in ipairs(turn.files) do
    if file.sharedWith then
      table.insert(note, ('%s: shared with %s'):format(file.path, table.concat(file.sharedWith, ', ')))
    end
  end
  return note
end

--- Lists the turns of agents, and what changed between them.
---@param session? string
---@param target sightline.Target
function M.turns(session, target)
  open({
    name = 'turns',
    target = target,
    load = function(callback)
      api.list_turns({ session = session, limit = LIMIT }, function(err, result)
        local rows = {}
        for _, turn in ipairs(result and result.turns or {}) do
          local has_changes = #turn.files > 0
          -- The prompt is last: it can be long, and the window cuts it off.
          local parts = vim.list_extend({ { turn.name, 'SightlineName' } }, counts(turn))
          table.insert(parts, (turn.running and '  (running)' or '') .. '  ' .. (turn.prompt or ''))
          table.insert(rows, {
            at = turn.startedAt,
            parts = parts,
            changes = has_changes and { from = turn.name, to = turn.name .. '+' } or nil,
            id = turn.name,
            after = not turn.running and turn.name .. '+' or nil,
            turn = has_changes and turn.name or nil,
            ids = { turn.before, not turn.running and turn.after or nil },
            note = turn_note(turn),
          })
          if turn.outside then
            table.insert(rows, outside_row(turn))
          end
        end
        callback(err, rows)
      end, target)
    end,
  })
end

--- Lists checkpoints. With a path, those in which this file changed.
---@param path? string absolute path
---@param target sightline.Target
function M.checkpoints(path, target)
  open({
    name = path and 'checkpoints of ' .. vim.fs.basename(path) or 'checkpoints',
    target = target,
    paths = path and { path },
    load = function(callback)
      api.list_checkpoints({ limit = LIMIT, path = path }, function(err, result)
        local rows = {}
        local checkpoints = result and result.checkpoints or {}
        for index, checkpoint in ipairs(checkpoints) do
          local previous = checkpoints[index + 1]
          local size = ('  +%d ~%d -%d'):format(checkpoint.added, checkpoint.modified, checkpoint.deleted)
          table.insert(rows, {
            at = checkpoint.createdAt,
            parts = { { pickers.title(checkpoint, checkpoints), 'SightlineName' }, size },
            -- Of a file, what the checkpoint changed: one that was deleted has no changes since.
            changes = path and previous and { from = previous.id, to = checkpoint.id } or { from = checkpoint.id },
            id = checkpoint.id,
            ids = { checkpoint.id },
            label = checkpoint.label,
            previous = previous and previous.id,
          })
        end
        callback(err, rows)
      end, target)
    end,
  })
end

return M
