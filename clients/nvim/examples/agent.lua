--- A minimal AI plugin based on Sightline:
---
---   - adds the environment block to each prompt;
---   - reads files through Sightline, with unsaved text and without denied files;
---   - checks commands before running them;
---   - creates a checkpoint before its first edit, so that its edits can be undone.
---
--- `ask_model` is your own code: it gets the prompt and the tools, and calls
--- `done` when the model has finished.
---
---   local agent = require('agent').new({ ask_model = ask_model })
---   agent.ask('Fix the cart.', print)

local sightline = require('sightline')

local M = {}

---@class Agent
---@field ask fun(question: string, done: fun(err?: string, reply?: string))
---@field undo fun(done: fun(err?: string, files?: integer))

---@class AgentTools
---@field read fun(path: string, done: fun(err?: string, text?: string))
---@field write fun(path: string, text: string, done: fun(err?: string))
---@field may_run fun(command: string, done: fun(allowed: boolean, why?: string))

---@param options { ask_model: fun(prompt: string, tools: AgentTools, done: fun(reply: string)), task?: string }
---@return Agent
function M.new(options)
  local task = options.task or ('nvim-%d'):format(vim.uv.hrtime())
  ---@type sightline.Target fixed, so that focus changes do not affect it
  local target = { root = vim.fn.getcwd() }
  ---@type string?
  local checkpoint

  ---@type AgentTools
  local tools = {
    read = function(path, done)
      sightline.read_file({ path = path, taskId = task }, function(err, result)
        done(err and err.message, result and result.text)
      end, target)
    end,

    write = function(path, text, done)
      local function write()
        local full = vim.fs.normalize(target.root .. '/' .. path)
        vim.fn.writefile(vim.split(text, '\n', { plain = true }), full, 'b')
        vim.cmd('silent! checktime')
        -- Prevents the change from being reported to the agent as a user edit.
        sightline.track_file({ taskId = task, path = path, operation = 'cline_edited' }, function(err)
          done(err and err.message)
        end, target)
      end
      sightline.check_access({ paths = { path } }, function(err, result)
        if err or result.paths[1].access ~= 'allowed' then
          return done(err and err.message or path .. ' is hidden from agents')
        elseif checkpoint then
          return write()
        end
        sightline.create_checkpoint({ taskId = task, label = 'before the agent' }, function(failed, created)
          if failed then
            return done(failed.message)
          end
          checkpoint = created.id
          write()
        end, target)
      end, target)
    end,

    may_run = function(command, done)
      sightline.check_access({ command = command }, function(err, result)
        if err then
          return done(false, err.message)
        end
        local denied = result.command.denied[1]
        done(result.command.allowed, denied and ('%s: %s'):format(denied.path, denied.reason))
      end, target)
    end,
  }

  return {
    ask = function(question, done)
      sightline.environment_details({ taskId = task }, function(err, details)
        if err then
          return done(err.message)
        end
        options.ask_model(question .. '\n\n' .. details.text, tools, function(reply)
          done(nil, reply)
        end)
      end, target)
    end,

    undo = function(done)
      if not checkpoint then
        return done(nil, 0)
      end
      sightline.restore_checkpoint({ id = checkpoint }, function(err, result)
        if err then
          return done(err.message)
        end
        sightline.restored(result, target)
        done(nil, #result.outcomes)
      end, target)
    end,
  }
end

return M
