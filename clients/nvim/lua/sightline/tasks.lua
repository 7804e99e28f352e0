--- Stored conversations: show, restore, delete.

local api = require('sightline.api')
local checkpoints = require('sightline.checkpoints')
local pickers = require('sightline.checkpoints.pickers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

---@param message sightline.Message
---@return string[]
local function message_lines(message)
  local lines = { '## ' .. tostring(message.role), '' }
  local blocks = type(message.content) == 'table' and message.content or { { type = 'text', text = message.content } }
  for _, block in ipairs(blocks) do
    local text = block.text
    if block.type == 'tool_use' then
      text = ('[calls %s] %s'):format(tostring(block.name), vim.json.encode(block.input or vim.empty_dict()))
    elseif block.type == 'tool_result' then
      local content = block.content
      text = '[result] ' .. (type(content) == 'string' and content or vim.json.encode(content or {}))
    end
    vim.list_extend(lines, show.lines(type(text) == 'string' and text or ('[%s]'):format(tostring(block.type))))
    table.insert(lines, '')
  end
  return lines
end

---@param task sightline.TaskSummary
---@param target sightline.Target
local function show_conversation(task, target)
  api.load_task({ taskId = task.taskId }, function(err, loaded)
    if not loaded then
      return show.failed(err)
    end
    local lines = { '# ' .. task.title, '' }
    for _, message in ipairs(loaded.messages) do
      vim.list_extend(lines, message_lines(message))
    end
    show.open('task ' .. task.taskId, lines, 'markdown')
  end, target)
end

---@param task sightline.TaskSummary
---@param target sightline.Target
local function delete(task, target)
  pickers.action(('Delete `%s` and its checkpoints? This cannot be undone.'):format(task.title), {
    {
      label = 'Delete',
      run = function()
        api.delete_task({ taskId = task.taskId }, function(err, result)
          if not result then
            return show.failed(err)
          end
          show.say(('deleted %s, %s'):format(task.taskId, show.size(result.freedBytes)))
        end, target)
      end,
    },
  })
end

--- Lists stored tasks and asks for an action on one.
function M.pick()
  local target = { root = server.root() }
  api.list_tasks({}, function(err, result)
    if not result then
      return show.failed(err)
    end
    if #result.tasks == 0 then
      return show.say('no stored conversations')
    end
    vim.ui.select(result.tasks, {
      prompt = 'Task',
      kind = 'sightline.task',
      format_item = function(task)
        local size = show.count(task.messageCount, 'message')
        return ('%s  %s  (%s)'):format(show.time(task.updatedAt), task.title:gsub('%c', ' '), size)
      end,
    }, function(task)
      if not task then
        return
      end
      local function restore()
        pickers.checkpoint('Restore checkpoint', { taskId = task.taskId }, target, function(checkpoint)
          checkpoints.restore(checkpoint.id)
        end)
      end
      pickers.action(task.title, {
        {
          label = 'Show conversation',
          run = function()
            show_conversation(task, target)
          end,
        },
        { label = 'Restore a checkpoint', run = restore },
        {
          label = 'Delete',
          run = function()
            delete(task, target)
          end,
        },
      })
    end)
  end, target)
end

return M
