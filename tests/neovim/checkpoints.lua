-- Checkpoints from a real Neovim: taken, compared, restored next to unsaved text
-- and over it, undone. See client.lua.

local nvim = dofile(vim.fs.dirname(_G.arg[0]) .. '/client.lua')
local answers, request = nvim.answers, nvim.request

vim.o.swapfile = false
vim.o.hidden = true
vim.o.autoread = true

nvim.start()
nvim.open('src/cart.py')
local cart = vim.api.nvim_get_current_buf()
local first_line = vim.api.nvim_buf_get_lines(cart, 0, 1, false)[1]

answers.created = request('createCheckpoint', { label = 'before', taskId = 'nvim-1' })
local id = answers.created.id

-- The agent changes a file and makes another; the user types and does not save.
vim.fn.writefile({ 'changed by the agent' }, nvim.root .. '/src/prices.py')
vim.fn.writefile({ 'made by the agent' }, nvim.root .. '/src/made.py')
vim.fn.writefile({ 'also changed by the agent' }, nvim.root .. '/src/cart.py')
vim.api.nvim_buf_set_lines(cart, 0, 0, false, { '# 😀 unsaved' })

answers.diff = request('diffCheckpoints', { from = id })
answers.preview = request('previewRestore', { id = id })
answers.restored = request('restoreCheckpoint', { id = id, token = answers.preview.token })
answers.typed = vim.api.nvim_buf_get_lines(cart, 0, 1, false)[1]
answers.prices = vim.fn.readfile(nvim.root .. '/src/prices.py')

-- Over the unsaved text: the buffer follows.
answers.forced = request('restoreCheckpoint', { id = id, force = true })
answers.replaced = vim.wait(5000, function()
  return vim.api.nvim_buf_get_lines(cart, 0, 1, false)[1] == first_line
end, 10)
answers.buffer = vim.api.nvim_buf_get_lines(cart, 0, -1, false)
answers.disk = vim.fn.readfile(nvim.root .. '/src/cart.py')

-- As a command, like editors that send nothing else.
local reply = nvim.client:request_sync('workspace/executeCommand', {
  command = 'sightline.undoRestore',
  arguments = { { undoId = answers.restored.undoId, force = true } },
}, 10000)
answers.undone = reply.result or { error = reply.err }
answers.agent = vim.fn.readfile(nvim.root .. '/src/prices.py')
answers.list = request('listCheckpoints')
answers.stats = request('checkpointStats')
answers.verified = request('verifyCheckpoints')

nvim.finish()
