--- Choosing by `vim.ui.select`, so that whatever picker is installed shows it.

local api = require('sightline.api')
local show = require('sightline.show')

local M = {}

--- What a checkpoint is called: label, else why it was taken, else its task.
---@param checkpoint sightline.Checkpoint
---@return string
function M.title(checkpoint)
  if checkpoint.label then
    return checkpoint.label
  elseif checkpoint.purpose == 'undo' then
    return 'before a restore'
  end
  return checkpoint.taskId and 'task ' .. checkpoint.taskId or 'no label'
end

--- A checkpoint in one line.
---@param checkpoint sightline.Checkpoint
---@return string
function M.line(checkpoint)
  return ('%s  %s  +%d ~%d -%d  %s'):format(
    checkpoint.id:sub(1, 8),
    show.time(checkpoint.createdAt),
    checkpoint.added,
    checkpoint.modified,
    checkpoint.deleted,
    M.title(checkpoint):gsub('%c', ' ')
  )
end

--- Asks for a checkpoint; the callback is not called when none was chosen.
---@param prompt string
---@param params sightline.ListCheckpointsParams
---@param callback fun(checkpoint: sightline.Checkpoint)
function M.checkpoint(prompt, params, callback)
  api.list_checkpoints(params, function(err, result)
    if not result then
      return show.failed(err)
    end
    if #result.checkpoints == 0 then
      return show.say('no checkpoint yet; :Sightline checkpoint takes one')
    end
    vim.ui.select(result.checkpoints, {
      prompt = prompt,
      kind = 'sightline.checkpoint',
      format_item = M.line,
    }, function(chosen)
      if chosen then
        callback(chosen)
      end
    end)
  end)
end

--- The whole id of a checkpoint that people named by its first digits; the
--- callback is not called when none or several begin so.
---@param digits string
---@param target sightline.Target
---@param callback fun(id: string)
function M.resolve(digits, target, callback)
  if #digits >= 40 then
    return callback(digits)
  end
  api.list_checkpoints({}, function(err, result)
    if not result then
      return show.failed(err)
    end
    local found = vim.tbl_filter(function(checkpoint)
      return vim.startswith(checkpoint.id, digits)
    end, result.checkpoints)
    if #found ~= 1 then
      local text = #found == 0 and 'no checkpoint begins with %s' or 'several checkpoints begin with %s'
      return show.say(text:format(digits), vim.log.levels.ERROR)
    end
    callback(found[1].id)
  end, target)
end

--- Asks for one of several things to do; `nil` is not passed on.
---@param prompt string
---@param choices { label: string, run: fun() }[]
function M.action(prompt, choices)
  vim.ui.select(choices, {
    prompt = prompt,
    kind = 'sightline.action',
    format_item = function(choice)
      return choice.label
    end,
  }, function(chosen)
    if chosen then
      chosen.run()
    end
  end)
end

return M
