--- Previews a restore or an undo in a window. The preview is where the user decides: which files,
--- what each of them changes, and whether to go on.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local diff = require('sightline.checkpoints.diff')
local show = require('sightline.show')

local M = {}

--- A restore or undo that is previewed.
---@class sightline.Operation
---@field title string
---@field verb 'restore'|'undo'
---@field done string verb of the result message
---@field nothing string message if there is nothing to do
---@field preview sightline.PreviewRestoreParams
---@field send fun(params: table, callback: fun(err?: sightline.Error, result?: sightline.RestoreCheckpointResult))

--- A file of a preview.
---@class sightline.ReviewRow
---@field action string
---@field path string
---@field reason string
---@field uri? string Absent for the denied files, which are only counted.
---@field is_chosen boolean
---@field is_conflict boolean Whether it is kept unless it is chosen.

--- Reloads the buffers of restored files, and deletes the hidden buffers of deleted
--- files.
---@param outcomes sightline.RestoreOutcome[]
---@param target? sightline.Target
---@param force? boolean also buffers with unsaved text
function M.restored(outcomes, target, force)
  for _, outcome in ipairs(outcomes) do
    local bufnr = outcome.ok and buffers.of_path(diff.path(outcome, target))
    if bufnr and outcome.action == 'delete' then
      if vim.bo[bufnr].modified or #vim.fn.win_findbuf(bufnr) > 0 then
        show.mark(bufnr, 'deleted by a restore; :write creates the file again')
      else
        vim.api.nvim_buf_delete(bufnr, {})
      end
    elseif bufnr and vim.bo[bufnr].modified then
      if force then
        vim.api.nvim_buf_call(bufnr, function()
          vim.cmd('silent keepalt edit!')
        end)
      end
    elseif bufnr then
      -- The user confirmed this change, so reload without asking.
      local autoread = vim.bo[bufnr].autoread
      vim.bo[bufnr].autoread = true
      vim.cmd(('silent checktime %d'):format(bufnr))
      vim.bo[bufnr].autoread = autoread
    end
  end
end

---@param operation sightline.Operation
---@param target sightline.Target
---@param force? boolean
local function report(operation, target, force)
  ---@param result sightline.RestoreCheckpointResult
  return function(result)
    if not result.undoId then
      return show.say('already up to date')
    end
    M.restored(result.outcomes, target, force)
    local failed = vim.tbl_filter(function(outcome)
      return not outcome.ok
    end, result.outcomes)
    local text = ('%s %s'):format(operation.done, show.count(#result.outcomes - #failed, 'file'))
    if #failed > 0 then
      local first = ('%s (%s)'):format(failed[1].path, failed[1].error or 'unknown error')
      text = ('%s; %s failed: %s'):format(text, show.count(#failed, 'file'), first)
      return show.say(text, vim.log.levels.WARN)
    end
    local back = operation.verb == 'undo' and 'reverts the undo' or 'reverts it'
    show.say(('%s; :Sightline undo %s'):format(text, back))
  end
end

---@param preview sightline.PreviewRestoreResult
---@return sightline.ReviewRow[]
local function preview_rows(preview)
  local rows = {}
  local function add(entry, action, is_chosen)
    table.insert(rows, {
      action = action,
      path = entry.path,
      reason = entry.reason,
      uri = entry.path ~= '' and entry.uri or nil,
      is_chosen = is_chosen,
      is_conflict = not is_chosen,
    })
  end
  for _, change in ipairs(preview.changes) do
    add(change, change.action, true)
  end
  for _, conflict in ipairs(preview.conflicts) do
    add(conflict, 'keep', false)
  end
  return rows
end

--- Describes the state that a restore leads to: `before claude-2.3, 26 Nov 15:53, 12 minutes ago, on
--- branch main`.
---@param state sightline.RestoreTarget
---@return string
local function describe(state)
  local parts = { state.label or state.name and show.turn_side(state.name) or show.id(state.id) }
  table.insert(parts, show.time(state.createdAt))
  table.insert(parts, show.ago(state.createdAt))
  if state.branch then
    table.insert(parts, 'on branch ' .. state.branch)
  end
  return table.concat(parts, ', ')
end

--- The preview of an operation, and what the user chose in it.
---@class sightline.Review
---@field operation sightline.Operation
---@field target sightline.Target
---@field preview sightline.PreviewRestoreResult
---@field rows sightline.ReviewRow[]
---@field first integer Line of the first row.
---@field window integer
local Review = {}
Review.__index = Review

---@return sightline.ReviewRow[]
function Review:chosen()
  return vim.tbl_filter(function(row)
    return row.is_chosen
  end, self.rows)
end

--- Draws the rows and the title.
function Review:draw()
  local lines = vim.tbl_map(function(row)
    local group = row.is_conflict and 'WarningMsg' or row.action == 'delete' and 'SightlineDeleted'
    return {
      { ('[%s] '):format(row.is_chosen and 'x' or ' '), 'Special' },
      { ('%-6s  '):format(row.action), group },
      row.path,
      { ('  (%s)'):format(row.reason), 'SightlineFolder' },
    }
  end, self.rows)
  show.fill(vim.api.nvim_win_get_buf(self.window), self.first - 1, lines)
  local count = show.count(#self:chosen(), 'file')
  local does = self.operation.verb == 'undo' and 'undoes' or 'restores'
  local title = ('%s: R %s %s'):format(self.operation.title, does, count)
  show.title(self.window, title .. ', x toggles, <CR> shows the diff, q cancels')
end

--- Returns the rows of the cursor or of the Visual selection.
---@return sightline.ReviewRow[]
function Review:selected()
  local from, to = vim.fn.line('v'), vim.fn.line('.')
  from, to = math.min(from, to), math.max(from, to)
  return vim.list_slice(self.rows, math.max(from - self.first + 1, 1), to - self.first + 1)
end

function Review:toggle()
  for _, row in ipairs(self:selected()) do
    row.is_chosen = row.uri ~= nil and not row.is_chosen
  end
  if vim.fn.mode():lower() == 'v' then
    vim.cmd.normal({ vim.keycode('<Esc>'), bang = true })
  end
  self:draw()
end

--- Shows what the operation changes in the file of the cursor, or in all.
function Review:show_diff()
  local uris = {}
  local row = self.rows[vim.fn.line('.') - self.first + 1]
  for _, one in ipairs(row and { row } or self.rows) do
    table.insert(uris, one.uri)
  end
  local params = self.operation.preview
  diff.open({ from = self.preview.undoId or params.id, paths = uris, to_now = params.only == nil }, self.target)
end

function Review:close()
  if vim.api.nvim_win_is_valid(self.window) then
    vim.api.nvim_win_close(self.window, true)
  end
end

--- Runs the operation on the chosen files. A preview of these files alone gives its token, and tells
--- whether anything changed since.
function Review:run()
  local chosen = self:chosen()
  if #chosen == 0 and #self.rows > 0 then
    return show.say('no file is chosen', vim.log.levels.WARN)
  end
  local uris, force = {}, false
  for _, row in ipairs(chosen) do
    table.insert(uris, row.uri)
    force = force or row.is_conflict
  end
  local params = { force = force or nil, undoId = self.preview.undoId, token = self.preview.token }
  local function send()
    self:close()
    self.operation.send(params, function(err, result)
      if err and err.kind == 'conflict' then
        show.say('files changed since the preview; review it again', vim.log.levels.WARN)
        return M.open(self.operation, self.target)
      elseif not result then
        return show.failed(err)
      end
      report(self.operation, self.target, force)(result)
    end)
  end
  if #chosen == #self.rows or (not force and #chosen == #self.preview.changes) then
    return send()
  end
  params.paths = uris
  api.preview_restore(vim.tbl_extend('force', self.operation.preview, { paths = uris }), function(err, again)
    if not again then
      return show.failed(err)
    end
    local actions = {}
    for _, row in ipairs(chosen) do
      actions[row.path] = row.action
    end
    for _, row in ipairs(preview_rows(again)) do
      if actions[row.path] ~= row.action then
        self:close()
        show.say('files changed since the preview; review it again', vim.log.levels.WARN)
        return M.open(self.operation, self.target)
      end
    end
    params.token = again.token
    send()
  end, self.target)
end

---@return (string|string[])[][]
function Review:heading()
  local lines = {}
  if self.preview.target then
    table.insert(lines, { { 'to ' .. describe(self.preview.target), 'SightlineHeading' } })
  end
  for _, warning in ipairs(self.preview.warnings or {}) do
    table.insert(lines, { { 'warning: ' .. warning, 'WarningMsg' } })
  end
  if self.preview.taskId then
    table.insert(lines, { ('restores the conversation of task %s as well'):format(self.preview.taskId) })
  end
  return lines
end

function Review:show()
  local heading = self:heading()
  self.first = #heading + 1
  -- With the title.
  local height = math.min(#heading + #self.rows + 1, math.max(6, math.floor(vim.o.lines * 0.4)))
  self.window = show.open(self.operation.title, {}, nil, height)
  vim.wo[self.window].cursorline = true
  local bufnr = vim.api.nvim_win_get_buf(self.window)
  show.fill(bufnr, 0, heading)
  local function method(name)
    return function()
      self[name](self)
    end
  end
  show.keys(bufnr, {
    { 'x', 'toggle the file', method('toggle'), modes = { 'n', 'x' } },
    { '<Tab>', 'toggle the file', method('toggle'), modes = { 'n', 'x' } },
    { '<CR>', 'show what changes in the file', method('show_diff') },
    { 'R', self.operation.verb .. ' the chosen files', method('run') },
    { 'q', 'cancel', method('close') },
    { '<Esc>', 'cancel', method('close') },
  })
  self:draw()
  pcall(vim.api.nvim_win_set_cursor, self.window, { self.first, 0 })
end

--- Previews an operation. The keys of the preview decide about it.
---@param operation sightline.Operation
---@param target sightline.Target
function M.open(operation, target)
  api.preview_restore(operation.preview, function(err, preview)
    if not preview then
      return show.failed(err)
    end
    local rows = preview_rows(preview)
    if #rows == 0 and not preview.taskId then
      return show.say(operation.nothing)
    end
    setmetatable({ operation = operation, target = target, preview = preview, rows = rows }, Review):show()
  end, target)
end

return M
