-- A session of a real Neovim with the server. See client.lua.

local nvim = dofile(vim.fs.dirname(_G.arg[0]) .. '/client.lua')
local answers, request, root, open = nvim.answers, nvim.request, nvim.root, nvim.open

vim.o.swapfile = false
vim.o.hidden = true
vim.o.columns = 120
vim.o.lines = 60

local rules_changed = 0
local client = nvim.start({
  init_options = { notifications = true },
  handlers = {
    ['sightline/didChangeAccessRules'] = function()
      rules_changed = rules_changed + 1
    end,
  },
})

local function send_editor()
  local tabs, editors = {}, {}
  local current = vim.api.nvim_get_current_win()
  for group, tabpage in ipairs(vim.api.nvim_list_tabpages()) do
    for _, window in ipairs(vim.api.nvim_tabpage_list_wins(tabpage)) do
      local buffer = vim.api.nvim_win_get_buf(window)
      local uri = vim.uri_from_bufnr(buffer)
      table.insert(tabs, {
        uri = uri,
        group = group,
        isActive = window == current,
        isDirty = vim.bo[buffer].modified,
      })
      if tabpage == vim.api.nvim_get_current_tabpage() then
        local first = vim.fn.line('w0', window) - 1
        local last = vim.fn.line('w$', window)
        table.insert(editors, {
          uri = uri,
          isActive = window == current,
          visibleRanges = { { start = { line = first, character = 0 }, ['end'] = { line = last, character = 0 } } },
        })
      end
    end
  end
  client:notify('sightline/didChangeTabs', { tabs = tabs })
  client:notify('sightline/didChangeVisibleEditors', { editors = editors })
end

local function block(params)
  params = vim.tbl_extend('force', {
    taskId = 'nvim',
    now = 1749308645000,
    timeZone = 'Europe/Berlin',
  }, params or {})
  return request('environmentDetails', params).text
end

open('src/cart.py', 'edit')
open('src/prices.py', 'vsplit')
open('.env', 'split')
open('docs/ideas.md', 'tabedit')
vim.cmd('tabfirst')
vim.cmd('wincmd t')

-- Edit without saving, around a character outside the BMP.
vim.cmd('buffer ' .. vim.fn.fnameescape(root .. '/src/cart.py'))
vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# 😀 unsaved' })
vim.api.nvim_buf_set_text(0, 0, 2, 0, 6, { '🍎' })
send_editor()
answers.empty_params = request('checkAccess', {})
answers.read_dirty = request('readFile', { path = 'src/cart.py', taskId = 'nvim', endLine = 1 })
answers.unsaved = block({ includeFiles = true, maxFiles = 50 })

vim.cmd('write')
send_editor()
answers.saved = block()

-- Another program changes what the agent read, and the rules.
local file = assert(io.open(root .. '/src/cart.py', 'a'))
file:write('# changed outside\n')
file:close()
file = assert(io.open(root .. '/.clineignore', 'a'))
file:write('docs/\n/src/prices.py\n')
file:close()
answers.rules_changed = block({ includeFiles = true, maxFiles = 50 })
answers.denied_now = request('readFile', { path = 'docs/ideas.md' })
vim.wait(5000, function()
  return rules_changed > 0
end, 20)
answers.notified = rules_changed

nvim.finish()
