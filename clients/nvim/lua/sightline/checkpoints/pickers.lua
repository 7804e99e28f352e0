--- Selection with the picker of the user: a plugin with a preview for checkpoints,
--- otherwise `vim.ui.select`.

local api = require('sightline.api')
local preview_pickers = require('sightline.checkpoints.preview_pickers')
local show = require('sightline.show')

local M = {}

--- Returns the display name of a checkpoint: label, turn, purpose or task.
---@param checkpoint sightline.Checkpoint
---@param all sightline.Checkpoint[]
---@return string
function M.title(checkpoint, all)
  local turn = checkpoint.turn
  if checkpoint.label then
    return checkpoint.label
  elseif checkpoint.kind == 'undoPoint' then
    for _, one in ipairs(all) do
      if one.id == checkpoint.restoredId and one.kind == 'undoPoint' then
        return 'before undo'
      end
    end
    return 'before restore'
  elseif turn and turn.name then
    local name = checkpoint.kind == 'turnEnd' and turn.name .. '+' or turn.name
    return show.turn_side(name) .. (turn.prompt and '  ' .. turn.prompt or '')
  elseif checkpoint.kind == 'automatic' or checkpoint.kind == 'imported' then
    return checkpoint.kind
  end
  return checkpoint.taskId and 'task ' .. checkpoint.taskId or 'no label'
end

--- Formats a checkpoint as one line.
---@param checkpoint sightline.Checkpoint
---@param all sightline.Checkpoint[]
---@return string
local function line(checkpoint, all)
  return ('%s  %s  +%d ~%d -%d  %s'):format(
    M.title(checkpoint, all):gsub('%c', ' '),
    show.ago(checkpoint.createdAt),
    checkpoint.added,
    checkpoint.modified,
    checkpoint.deleted,
    show.id(checkpoint.id)
  )
end

--- Maximum number of lines of a preview.
local MAX_PREVIEW = 1000

--- Shows the changes since a checkpoint.
---@param checkpoint sightline.Checkpoint
---@param target sightline.Target
---@param callback fun(lines: string[])
local function preview(checkpoint, target, callback)
  api.diff_checkpoints({ from = checkpoint.id, patch = true }, function(err, result)
    if not result then
      return callback(show.lines(err.message))
    end
    local lines = #result.files > 0 and show.lines(result.text or '') or { 'no changes since' }
    callback(vim.list_slice(lines, 1, MAX_PREVIEW))
  end, target)
end

--- Asks for a checkpoint. Does not call back if none is selected.
---@param prompt string
---@param params sightline.ListCheckpointsParams
---@param target sightline.Target
---@param callback fun(checkpoint: sightline.Checkpoint)
function M.checkpoint(prompt, params, target, callback)
  api.list_checkpoints(params, function(err, result)
    if not result then
      return show.failed(err)
    end
    if #result.checkpoints == 0 then
      return show.say('no checkpoints; create one with :Sightline checkpoint')
    end
    local function format(checkpoint)
      return line(checkpoint, result.checkpoints)
    end
    local pick = preview_pickers.find()
    if pick then
      return pick(result.checkpoints, {
        prompt = prompt,
        format = format,
        preview = function(checkpoint, show_lines)
          preview(checkpoint, target, show_lines)
        end,
      }, callback)
    end
    vim.ui.select(result.checkpoints, {
      prompt = prompt,
      kind = 'sightline.checkpoint',
      format_item = format,
    }, function(chosen)
      if chosen then
        callback(chosen)
      end
    end)
  end, target)
end

--- Returns the ids of the checkpoints that `name` selects: `last`, the name of a turn, a label, or
--- the first digits of an id.
---@param name string
---@param checkpoints sightline.Checkpoint[] newest first
---@return string[]
local function matches(name, checkpoints)
  local by_digits = {}
  for _, checkpoint in ipairs(checkpoints) do
    if checkpoint.label == name or (name == 'last' and checkpoint.kind ~= 'undoPoint') then
      return { checkpoint.id }
    elseif vim.startswith(checkpoint.id, name) then
      table.insert(by_digits, checkpoint.id)
    end
  end
  if name:match('^[%w_]+%-%d+%.%d+%+?$') then
    return { name }
  end
  return by_digits
end

--- Resolves names of checkpoints. Does not call back unless each selects one.
---@param target sightline.Target
---@param names fun(checkpoints: sightline.Checkpoint[]): string[]
---@param callback fun(...: string) called with the ids
local function resolve_all(target, names, callback)
  api.list_checkpoints({}, function(err, result)
    if not result then
      return show.failed(err)
    end
    local ids = {}
    for _, name in ipairs(names(result.checkpoints)) do
      local found = matches(name, result.checkpoints)
      if #found ~= 1 then
        local text = #found == 0 and 'no checkpoint matches %s' or 'several checkpoints match %s'
        return show.say(text:format(name), vim.log.levels.ERROR)
      end
      table.insert(ids, found[1])
    end
    callback(unpack(ids))
  end, target)
end

--- Resolves the name of a checkpoint. Does not call back unless it selects one.
---@param name string `last`, the name of a turn, a label, or the first digits of an id
---@param target sightline.Target
---@param callback fun(id: string)
function M.resolve(name, target, callback)
  resolve_all(target, function()
    return { name }
  end, callback)
end

--- Resolves one checkpoint, or two as `old..new`. `..` may also be part of a label.
---@param spec string
---@param target sightline.Target
---@param callback fun(older: string, newer?: string)
function M.resolve_range(spec, target, callback)
  resolve_all(target, function(checkpoints)
    local older, newer = spec:match('^(.-)%.%.(.+)$')
    local is_range = older and #matches(spec, checkpoints) == 0
    return is_range and { older, newer } or { spec }
  end, callback)
end

--- Asks for an action and runs it. The last choice is *Cancel*, which closing the picker selects too.
---@param prompt string
---@param choices { label: string, run: fun() }[]
---@param cancel? fun()
function M.action(prompt, choices, cancel)
  local none = { label = 'Cancel', run = cancel or function() end }
  table.insert(choices, none)
  vim.ui.select(choices, {
    prompt = prompt,
    kind = 'sightline.action',
    format_item = function(choice)
      return choice.label
    end,
  }, function(chosen)
    (chosen or none).run()
  end)
end

return M
