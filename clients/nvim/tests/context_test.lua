-- The context that the plugin sends.

local driver = require('editor')
local has, has_not, same, write = driver.has, driver.has_not, driver.same, driver.write
local test, block = driver.test, driver.block

local shop = driver.sample()

local function start(init, options)
  return driver.start(vim.tbl_extend('force', { cwd = shop, init = init }, options or {}))
end

test('a newcomer sees the splits, tab pages and unsaved text, and no denied file', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:command('vsplit src/prices.py')
  editor:command('tabedit README.md')
  editor:command('split .env')
  editor:command('badd docs/ideas.md')
  editor:command('tabfirst')
  editor:press('ggiadded <Esc>')
  same(
    block(editor),
    [[
<environment_details>
# Neovim Visible Files
src/prices.py
src/cart.py

# Neovim Open Tabs
src/prices.py
src/cart.py
README.md

# Current Time
6/7/2025, 5:04:05 PM (Europe/Berlin, UTC+2:00)

# Unsaved Files
src/prices.py

# Current Mode
ACT MODE
</environment_details>]]
  )
  local read = editor:ask('read_file', { path = 'src/prices.py', endLine = 1 })
  same({ read.source, read.text:sub(1, 6) }, { 'buffer', 'added ' })
  editor:command('tabnext')
  has(block(editor), '# Neovim Visible Files\nREADME.md\n\n')

  -- A hidden buffer is still open; one that is deleted is not.
  editor:command('tabonly | only | edit README.md | bdelete! src/prices.py')
  local text = block(editor)
  has(text, '# Neovim Open Tabs\nREADME.md\nsrc/cart.py\n\n')
  editor:quit()
end)

test('what another program changes is told, once', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:ask('read_file', { path = 'README.md', taskId = 't' })
  has_not(block(editor, { taskId = 't' }), '# Recently Modified Files')
  write(shop .. '/README.md', '# changed by another program\n')
  local text = block(editor, { taskId = 't' })
  has(text, '# Recently Modified Files')
  has(text, '\nREADME.md\n')
  has_not(block(editor, { taskId = 't' }), '# Recently Modified Files')
  editor:quit()
end)

test('every kind of file is attached, and nothing that is no file', function()
  local editor = start()
  write(shop .. '/strange.unknownext', 'x\n')
  editor:command('edit strange.unknownext')
  editor:wait([[return #vim.lsp.get_clients({ bufnr = 0 }) == 1]])
  for _, command in ipairs({ 'enew', 'help', 'terminal', 'copen', 'edit scheme://x' }) do
    editor:command(command)
    local attached = editor:lua([[
      vim.wait(50)
      return { #vim.lsp.get_clients({ bufnr = 0 }), require('sightline.buffers').is_file(0) }
    ]])
    same({ command, attached }, { command, { 0, false } })
  end
  editor:quit()
end)

test('a file name with signs of the shell is told as it is', function()
  local editor = start()
  write(shop .. '/$HOME %s.txt', 'x\n')
  editor:lua('vim.cmd.edit(vim.fn.fnameescape(...))', '$HOME %s.txt')
  has(block(editor), '# Neovim Visible Files\n$HOME %s.txt\n')
  editor:press('ccunsaved<Esc>')
  editor:wait([[return vim.bo.modified]])
  same(editor:ask('read_file', { path = '$HOME %s.txt' }).text, 'unsaved\n')
  editor:quit()
end)

test('a buffer that was opted out is not told', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:command('split src/prices.py')
  has(block(editor), 'src/prices.py')
  editor:command('let b:sightline = v:false')
  has_not(block(editor), 'src/prices.py')
  editor:quit()
end)

test('only rule files get hover and completion of the server', function()
  local programs = driver.folder()
  write(programs .. '/man', '#!/bin/sh\ncase $1 in -w) echo /man3/printf.3 ;; *) echo "a page of man" ;; esac\n')
  assert(vim.uv.fs_chmod(programs .. '/man', tonumber('755', 8)))
  local editor = start(nil, { path = programs .. ':' .. driver.path })
  write(shop .. '/main.c', 'int main(void) { return printf("x"); }\n')
  write(shop .. '/tags', 'total_price\tmain.c\t1;"\tv\n')
  editor:command('edit main.c')
  editor:wait([[return #require('sightline.server').clients() == 1]])
  editor:ask('list_tasks', {})
  local attached = editor:lua([[
    local client = require('sightline.server').clients()[1]
    local bufnr = vim.api.nvim_get_current_buf()
    local has_hover = #vim.lsp.get_clients({ bufnr = bufnr, method = 'textDocument/hover' }) > 0
    return { vim.lsp.buf_is_attached(bufnr, client.id), has_hover }
  ]])
  same(attached, { true, false })

  -- Both keys do what Neovim does without a server: the manual page, and completion from `tags`.
  editor:press('0fpK')
  editor:wait([[return vim.api.nvim_buf_get_name(0) == 'man://printf(3)']])
  editor:wait_screen('a page of man')
  editor:command('quit')
  editor:press('ototal<C-x><C-o>')
  editor:wait([[return vim.api.nvim_get_current_line() == 'total_price']])
  editor:press('<Esc>')
  same(editor:lua('return vim.bo.omnifunc'), 'ccomplete#Complete')

  editor:command('edit! .clineignore')
  editor:wait([[return #vim.lsp.get_clients({ bufnr = 0, method = 'textDocument/hover' }) == 1]])
  os.remove(shop .. '/main.c')
  os.remove(shop .. '/tags')
  editor:quit()
end)

test('diagnostics reach the server, those of denied files do not', function()
  local editor = start()
  editor:command('edit src/cart.py')
  block(editor)
  local set = [[
    local file, column, severity, message = ...
    local bufnr = vim.fn.bufadd(file)
    vim.fn.bufload(bufnr)
    vim.diagnostic.set(vim.api.nvim_create_namespace('checker'), bufnr, message and {
      { lnum = 0, col = column, severity = severity, message = message, source = 'checker', code = 7 },
    } or {})
  ]]
  editor:lua(set, shop .. '/src/cart.py', 2, 2, 'odd')
  editor:lua(set, shop .. '/.env', 0, 1, 'secret')
  local found
  for _ = 1, 100 do
    found = editor:ask('diagnostics', {})
    if found.omitted == 1 and #found.files == 1 then
      break
    end
    vim.wait(20)
  end
  same(found.text, 'src/cart.py:1:3: warning: odd [7] (checker)')
  same(found.files[1].diagnostics[1].severity, 2)
  has(block(editor, { sections = { 'diagnostics' } }), 'src/cart.py:1:3: warning: odd')

  -- A client that is set up later gets what was found before.
  editor:command('Sightline restart')
  editor:wait([[return #require('sightline.server').clients() == 1]])
  same(editor:ask('diagnostics', {}).text, found.text)

  editor:lua(set, shop .. '/src/cart.py')
  editor:command('bwipeout! .env')
  for _ = 1, 100 do
    found = editor:ask('diagnostics', {})
    if found.omitted == 0 and #found.files == 0 then
      break
    end
    vim.wait(20)
  end
  same({ found.omitted, #found.files }, { 0, 0 })
  editor:quit()
end)

test('positions are in the encoding of the server, selections follow the mode', function()
  local editor = start()
  write(shop .. '/wide.txt', 'a😀b\nsecond\nthird\n')
  editor:command('edit wide.txt')
  local function selections(encoding)
    return editor:lua(
      [[return require('sightline.editor.state').snapshot(...).editors.editors[1].selections]],
      encoding
    )
  end
  local function range(from_line, from, to_line, to)
    return { start = { line = from_line, character = from }, ['end'] = { line = to_line, character = to } }
  end
  editor:press('gg0llv')
  editor:wait([[return vim.api.nvim_get_mode().mode == 'v']])
  same(selections('utf-8'), { range(0, 5, 0, 6) })
  same(selections('utf-16'), { range(0, 3, 0, 4) })
  same(selections('utf-32'), { range(0, 2, 0, 3) })
  editor:press('h')
  editor:wait([[return vim.fn.col('.') == 2]])
  same(selections('utf-16'), { range(0, 1, 0, 4) })
  editor:press('jV')
  editor:wait([[return vim.api.nvim_get_mode().mode == 'V']])
  same(selections('utf-8'), { range(0, 0, 1, 6) })
  editor:press('<Esc>gg0<C-v>jl')
  editor:wait([[return vim.fn.line('.') == 2]])
  same(#selections('utf-8'), 2)
  -- A look at it does not end the selection.
  same(editor:lua('return vim.api.nvim_get_mode().mode'), '\22')
  editor:press('<Esc>')
  editor:quit()
end)

test('visible lines leave out closed folds and what is scrolled away', function()
  local editor = start()
  local lines = {}
  for line = 1, 200 do
    lines[line] = 'line ' .. line
  end
  write(shop .. '/long.txt', table.concat(lines, '\n') .. '\n')
  editor:command('edit long.txt')
  editor:command('resize 10')
  editor:command('3,5fold')
  local ranges =
    editor:lua([[return require('sightline.editor.state').snapshot('utf-8').editors.editors[1].visibleRanges]])
  same({ ranges[1].start.line, ranges[1]['end'].line, ranges[2].start.line }, { 0, 1, 5 })
  editor:press('100Gzt')
  editor:wait([[return vim.fn.line('w0') == 100]])
  ranges = editor:lua([[return require('sightline.editor.state').snapshot('utf-8').editors.editors[1].visibleRanges]])
  same({ #ranges, ranges[1].start }, { 1, { line = 99, character = 0 } })
  editor:quit()
end)

test('a chat window in front does not take the focus from the file', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:command('vnew')
  editor:command('setlocal buftype=nofile')
  local focus =
    [[return vim.tbl_get(require('sightline.editor.state').snapshot('utf-8').focus, 'textDocument', 'uri') or 'none']]
  has(editor:lua(focus), 'src/cart.py')
  editor:command('tabnew')
  editor:command('setlocal buftype=nofile')
  same(editor:lua(focus), 'none')
  editor:quit()
end)

test('nothing is sent when nothing changed', function()
  local editor = start()
  editor:command('edit src/cart.py')
  block(editor)
  local sent = editor:lua([[
    local compat = require('sightline.compat')
    _G.methods = {}
    local notify = compat.notify
    compat.notify = function(client, method, params)
      table.insert(_G.methods, method)
      return notify(client, method, params)
    end
    require('sightline.editor.state').flush()
    return #_G.methods
  ]])
  same(sent, 0)
  -- A burst of events is one message, with the last state.
  editor:press('jjjkjk')
  editor:wait([[return #_G.methods > 0]])
  local sent_methods = editor:lua([[vim.wait(300); return _G.methods]])
  -- Agents ask the editor that had the focus last, and a terminal may not report it: keys do.
  same(sent_methods, { 'sightline/didChangeVisibleEditors', 'textDocument/didFocus' })
  editor:lua([[_G.methods = {}; require('sightline.editor.state').flush()]])
  editor:command('doautocmd FocusGained')
  same(editor:lua([[vim.wait(300); return _G.methods]]), { 'textDocument/didFocus' })
  editor:quit()
end)

test('the editor that the user types in is the one that agents ask', function()
  local one = start()
  one:command('edit README.md')
  block(one)
  local two = start(nil, { home = one.home })
  two:command('edit src/cart.py')
  block(two)
  for _, turn in ipairs({ { one, 'README.md' }, { two, 'src/cart.py' }, { one, 'README.md' } }) do
    local printed
    driver.eventually(function()
      turn[1]:press('j')
      printed = one:run('environment')
      return printed:find('Visible Files\n' .. turn[2], 1, true) ~= nil
    end)
    has(printed, 'Visible Files\n' .. turn[2])
  end
  one:quit()
  two:quit()
end)

test('terminals are told with what runs in them, their output and their end', function()
  local editor = start()
  editor:command('edit src/cart.py')
  block(editor)
  editor:command('botright split | terminal')
  editor:wait([[return vim.trim(vim.fn.getline(1)) ~= '']])
  editor:press('iecho on the shelf; read answer<CR>')
  editor:wait_screen('\non the shelf')
  -- `read` is the shell's own: nothing but its output tells.
  has(block(editor), 'on the shelf')
  editor:press('done<CR>')
  editor:press('sleep 1000<CR>')
  editor:wait([[
    local running = require('sightline.editor.terminals')
    _G.block = nil
    require('sightline').environment_details({}, function(_, result) _G.block = result.text end)
    vim.wait(1000, function() return _G.block end, 5)
    return _G.block:find('## Original command: `sleep 1000`', 1, true)
  ]])
  editor:press('<C-c>')
  editor:press('exit 3<CR>')
  editor:wait_screen('[Process exited 3]')
  has_not(block(editor), 'Actively Running Terminals')

  -- A program that runs in a terminal without a shell is busy until it ends, and what it prints without a
  -- line break is reported too.
  -- Neovim can lose the output of a program that exits at once.
  editor:command([[enew! | call termopen(['sh', '-c', 'printf "Really? [y/N] "; read x; echo so $x; sleep 0.3'])]])
  editor:wait_screen('Really?')
  local text = block(editor)
  has(text, '# Actively Running Terminals')
  has(text, 'Really? [y/N]')
  editor:command([[call chansend(b:terminal_job_id, "yes\n")]])
  editor:wait_screen('so yes')
  editor:wait_screen('[Process exited 0]')
  text = block(editor)
  has(text, '### New Output\nyes\nso yes\n')
  editor:quit()
end)

test('shell integration is believed', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:command('terminal')
  local busy = [[
    local sent
    local compat = require('sightline.compat')
    local notify = compat.notify
    compat.notify = function(_, method, params)
      if method == 'sightline/didChangeTerminals' then sent = params.terminals[1] end
      return true
    end
    require('sightline.editor.terminals').forget(1)
    require('sightline.editor.terminals').send({ id = 1 })
    compat.notify = notify
    return { sent.isBusy, sent.exitCode or -1, sent.pid }
  ]]
  local function request(sequence)
    editor:lua([[require('sightline.editor.terminals').requested(vim.api.nvim_get_current_buf(), ...)]], sequence)
  end
  editor:wait([[return vim.b.terminal_job_pid ~= nil]])
  editor:lua([[vim.wait(20)]])
  request('\27]133;C')
  same(editor:lua(busy)[1], true)
  request('\27]133;D;7')
  local state = editor:lua(busy)
  same({ state[1], state[2] }, { false, 7 })
  same(state[3], editor:lua([[return vim.b.terminal_job_pid]]))
  editor:quit()
end)

test('of a large file only the path is known', function()
  local editor = start('require("sightline").setup({ max_file_size = 1000 })')
  write(shop .. '/small.txt', ('x'):rep(999) .. '\n')
  write(shop .. '/large.txt', ('x'):rep(1000) .. '\n')
  editor:command('edit small.txt')
  editor:command('split large.txt')
  has(block(editor), '# Neovim Visible Files\nlarge.txt\nsmall.txt\n')
  local attached = [[return #vim.lsp.get_clients({ bufnr = vim.fn.bufnr(...) })]]
  same({ editor:lua(attached, 'small.txt'), editor:lua(attached, 'large.txt') }, { 1, 0 })
  editor:press('ccunsaved<Esc>')
  editor:wait([[return vim.bo.modified]])
  same(#editor:ask('read_file', { path = 'large.txt' }).text, 1001)
  editor:quit()
end)
