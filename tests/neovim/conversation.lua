-- A whole conversation from a real Neovim. See client.lua.

local nvim = dofile(vim.fs.dirname(_G.arg[0]) .. '/client.lua')
local answers, request, root = nvim.answers, nvim.request, nvim.root

nvim.start()

local function message(role, text)
  return { role = role, content = { { type = 'text', text = text } } }
end

local task = 'nvim-1'
local model = 'claude-sonnet-4'

-- The user asks, the agent reads a file again and again and answers.
local messages = { message('user', '<task>\nMend the cart.\n</task>'), message('assistant', 'I will.') }
for turn = 1, 10 do
  table.insert(messages, {
    role = 'user',
    content = {
      { type = 'text', text = "[read_file for 'src/cart.py'] Result:" },
      { type = 'text', text = ('line of the cart\n'):rep(40) },
    },
  })
  table.insert(messages, message('assistant', 'Step ' .. turn .. ' 🛒 is done.'))
end
for _, one in ipairs(messages) do
  answers.appended = request('appendMessages', {
    taskId = task,
    messages = { one },
    meta = { now = 1767225600000 },
  })
end
request('trackFile', { taskId = task, path = 'src/cart.py', operation = 'read_tool' })

answers.counted = request('countTokens', { taskId = task, messages = messages, model = 'gpt-4o' })
answers.fits = request('truncateHistory', { taskId = task, model = model })
answers.deduplicated = request('truncateHistory', {
  taskId = task,
  model = model,
  previousRequest = { ts = 1767225700000, tokensIn = 170000 },
  reply = 'edits',
})
answers.truncated = request('truncateHistory', { taskId = task, model = model, keep = 'half' })
answers.loaded = request('loadTask', { taskId = task })

-- The window is full: the client's model is asked for a summary.
request('appendMessages', {
  taskId = task,
  messages = { message('user', ('more words '):rep(3000)), message('assistant', ('and more '):rep(3000)) },
})
answers.plan = request('planCompaction', {
  taskId = task,
  model = { id = model, contextWindow = 6000 },
  instructions = 'Keep the names of functions.',
})
answers.compacted = request('applyCompaction', {
  taskId = task,
  summary = 'The cart adds up again.',
  retainFrom = answers.plan.retainFrom,
})
answers.after = request('loadTask', { taskId = task })

-- The agent calls a tool and the editor goes away before the result.
request('appendMessages', {
  taskId = task,
  messages = {
    message('user', 'And the tests?'),
    {
      role = 'assistant',
      content = {
        { type = 'text', text = 'I run them.' },
        { type = 'tool_use', id = 'call_7', name = 'execute_command', input = { command = 'pytest' } },
      },
    },
  },
})
assert(nvim.stop())
vim.fn.writefile({ 'changed by another hand' }, root .. '/src/cart.py')

nvim.start()
answers.tasks = request('listTasks')
answers.resumed = request('resumeTask')
answers.rolled_back = request('rollbackHistory', { taskId = task, timestamp = 1 })
answers.whole_again = request('loadTask', { taskId = task })
answers.deleted = request('deleteTask', { taskId = task })
answers.gone = request('loadTask', { taskId = task })

nvim.finish()
