-- Commands, statusline, health and help.

local driver = require('editor')
local has, has_not, same, write = driver.has, driver.has_not, driver.same, driver.write
local test = driver.test

local shop = driver.sample()

local function start()
  return driver.start({ cwd = shop })
end

test('the commands show the block and verdicts, and complete', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:ask('environment_details', {})
  editor:command('Sightline environment files')
  local screen = editor:wait_screen('# Current Working Directory')
  has(screen, 'src/cart.py')
  -- The window with the block is no file, so the block stays what it was.
  editor:press('q')
  editor:wait([[return #vim.api.nvim_list_wins() == 1]])
  editor:command('Sightline environment copy')
  editor:wait_said('copied to register')
  has(editor:lua([[return vim.fn.getreg('"') .. vim.fn.getreg('+')]]), '<environment_details>')
  editor:command('Sightline access .env')
  has(editor:wait_said('sightline: .env: denied'), '.clineignore:')
  editor:command('Sightline access')
  editor:wait_said('src/cart.py: allowed')
  editor:command('Sightline access !cat .env README.md')
  has(editor:wait_screen('the command is denied'), '.env: `cat` would read `.env`, which ')
  editor:press('q')
  -- The menu says what each does, and leaves out what cannot be done now.
  editor:press(':Sightline<CR>')
  local menu = editor:wait_screen('open a page with turns')
  has(menu, 'create a checkpoint')
  has_not(menu, 'reject')
  editor:press('<Esc>')
  -- Names are names, whatever they contain.
  for _, name in ipairs({ 'with blank.txt', '`touch made`', '$HOME' }) do
    write(shop .. '/' .. name, 'x')
    editor:command('Sightline access ' .. name:gsub(' ', '\\ '))
    editor:wait_said(name .. ': allowed')
    os.remove(shop .. '/' .. name)
  end
  same(driver.read(shop .. '/made'), nil)
  editor:press(':Sightline nonsense<CR>')
  editor:wait_said('unknown subcommand `nonsense`')
  editor:command('Sightline tasks')
  editor:wait_said('no stored conversations')
  local complete = [[return vim.fn.getcompletion(..., 'cmdline')]]
  same(editor:lua(complete, 'Sightline '), {
    'accept',
    'access',
    'agents',
    'allow',
    'blame',
    'checkpoint',
    'diff',
    'environment',
    'hide',
    'history',
    'list',
    'log',
    'mcp',
    'pause',
    'prune',
    'reject',
    'restart',
    'restore',
    'send',
    'signs',
    'stats',
    'stop',
    'tasks',
    'turns',
    'ui',
    'undo',
    'unsaved',
  })
  same(editor:lua(complete, 'Sightline environment f'), { 'files' })
  same(editor:lua(complete, 'Sightline access REA'), { 'README.md' })
  editor:quit()
end)

test('the menu offers what can be done now', function()
  local project = driver.folder()
  write(project .. '/.clineignore', 'notes/\n')
  write(project .. '/a.txt', 'one\n')
  write(project .. '/.env', 'TOKEN=1\n')
  local editor = driver.start({ cwd = project })
  --- Asserts which of some commands the menu offers, once the server answers in time for it.
  local function offers(names, wanted)
    local found
    driver.eventually(function()
      found = editor:lua(
        [[
        local wanted, items = ..., nil
        local select = vim.ui.select
        vim.ui.select = function(all) items = all end
        vim.cmd('Sightline')
        vim.ui.select = select
        return vim.tbl_filter(function(one) return vim.list_contains(items, one) end, wanted)
      ]],
        names
      )
      return vim.deep_equal(found, wanted)
    end)
    same(found, wanted)
  end
  editor:command('edit a.txt')
  editor:wait([[return require('sightline').status().access == 'allowed']])
  local about_checkpoints = { 'diff', 'history', 'list', 'prune', 'restore', 'signs', 'stats', 'undo' }
  offers(about_checkpoints, {})
  offers({ 'accept', 'allow', 'pause', 'reject', 'send', 'unsaved' }, {})
  offers({ 'access', 'blame', 'checkpoint', 'hide', 'turns' }, { 'access', 'blame', 'checkpoint', 'hide', 'turns' })
  editor:press('ccunsaved<Esc>')
  offers({ 'unsaved' }, { 'unsaved' })
  editor:command('edit!')

  editor:run('checkpoint', 'create')
  table.remove(about_checkpoints)
  offers(about_checkpoints, about_checkpoints)
  offers({ 'undo' }, {})
  write(project .. '/a.txt', 'two\n')
  has(editor:run('checkpoint', 'restore', 'last', '--yes'), '1 path restored')
  offers({ 'undo' }, { 'undo' })
  has(editor:run('checkpoint', 'undo', '--yes'), '1 path restored')
  offers({ 'undo' }, {})

  editor:command('edit .env')
  editor:wait([[return require('sightline').status().access == 'denied']])
  offers({ 'hide', 'allow' }, { 'allow' })
  editor:command('help')
  offers({ 'access', 'allow', 'blame', 'checkpoint', 'hide', 'history', 'unsaved' }, { 'checkpoint' })
  editor:command('close')
  editor:command('Sightline stop')
  editor:wait_said('the servers are stopped')
  offers({ 'checkpoint', 'environment', 'list', 'log', 'restart', 'stop', 'turns', 'ui' }, { 'log', 'restart' })
  editor:quit()
end)

test('files and folders are hidden and allowed by a line of .clineignore', function()
  local editor = start()
  local rules = shop .. '/.clineignore'
  local before = driver.read(rules)
  editor:command('edit src/cart.py')
  editor:ask('environment_details', {})
  editor:command('Sightline hide')
  editor:wait_said('src/cart.py is hidden from agents by .clineignore')
  same(driver.read(rules), before .. '/src/cart.py\n')
  editor:command('Sightline hide src/')
  editor:wait_said('src is hidden from agents by .clineignore')
  has(driver.read(rules), '\n/src/\n')
  -- The folder still hides the file.
  editor:command('Sightline allow')
  has(editor:wait_said('src/cart.py is still hidden from agents by'), '`/src/`')
  editor:command('Sightline allow src')
  editor:wait_said('agents may see src')
  same(driver.read(rules), before)
  -- Names are names, whatever they contain.
  for name, pattern in pairs({ ['a[1]*.txt'] = '/a\\[1]\\*.txt', ['b #.txt'] = '/b #.txt' }) do
    write(shop .. '/' .. name, 'x')
    editor:command('Sightline hide ' .. name:gsub(' ', '\\ '))
    editor:wait_said(name .. ' is hidden from agents')
    same(driver.read(rules), before .. pattern .. '\n')
    same(editor:ask('check_access', { paths = { shop .. '/' .. name } }).paths[1].access, 'denied')
    editor:command('Sightline allow ' .. name:gsub(' ', '\\ '))
    editor:wait_said('agents may see ' .. name)
    os.remove(shop .. '/' .. name)
  end
  editor:press(':Sightline hide /<CR>')
  editor:wait_said('cannot write a rule for')
  same(driver.read(rules), before)
  editor:quit()
end)

test('the page is opened in a browser', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:ask('environment_details', {})
  editor:lua([[vim.ui.open = function(address) vim.g.opened = address end]])
  editor:command('Sightline ui')
  editor:wait([[return vim.startswith(vim.g.opened or '', 'http://127.0.0.1:')]])
  editor:quit()
end)

test('the connected agents are shown', function()
  local editor = start()
  editor:command('Sightline agents')
  editor:wait_screen('Claude Code')
  editor:press('q')
  editor:command('checkhealth sightline')
  editor:wait_screen('Agents')
  has(table.concat(editor:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n'), 'sightline agents status:')
  editor:quit()
end)

test('stored conversations are listed, shown and deleted', function()
  local editor = start()
  editor:command('edit src/cart.py')
  local messages = { { role = 'user', content = 'Mend the cart.' }, { role = 'assistant', content = 'I will.' } }
  same(editor:ask('append_messages', { taskId = 't-1', messages = messages }).count, 2)
  editor:command('Sightline tasks')
  editor:wait_screen('Mend the cart.')
  editor:press('1<CR>')
  editor:wait_screen('Show conversation')
  editor:press('1<CR>')
  editor:wait_screen('## assistant')
  editor:press('q')
  editor:command('Sightline tasks')
  editor:wait_screen('Mend the cart.')
  editor:press('1<CR>')
  editor:wait_screen('Delete')
  editor:press('3<CR>')
  editor:wait_screen('This cannot be undone')
  editor:press('1<CR>')
  editor:wait_said('deleted t-1')
  editor:quit()
end)

test('stopped servers do not start until the restart', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:ask('list_files')
  editor:command('Sightline log')
  editor:wait_said('the log is empty')
  editor:command('Sightline stop')
  editor:wait_said('the servers are stopped')
  editor:command('edit README.md')
  editor:lua('vim.wait(100)')
  same({ editor:lua('return #vim.lsp.get_clients()'), #editor:lua('return _G.said') }, { 0, 0 })
  has(editor:ask('list_files').error.message, ':Sightline restart')
  editor:command('Sightline restart')
  editor:wait([[return #require('sightline.server').clients() == 1]])
  editor:quit()
end)

test('the log shows the lines of the servers', function()
  local editor = driver.start({
    cwd = shop,
    init = [[
      require('sightline').setup({ cmd = { 'sh', '-c', 'echo "sightline: it says why" >&2; exec sightline' } })
    ]],
  })
  editor:command('edit src/cart.py')
  editor:ask('list_files')
  editor:lua([[vim.lsp.log.error('of another server')]])
  editor:command('Sightline log')
  editor:wait([[return vim.fn.getline('$'):find('it says why', 1, true)]])
  same(editor:lua([[return vim.fn.search('another')]]), 0)
  editor:quit()
end)

test('the statusline tells what is out of the ordinary', function()
  local editor = start()
  same(editor:lua([[return require('sightline').statusline()]]), '')
  editor:command('edit src/cart.py')
  editor:wait([[return require('sightline').statusline() == 'Sightline']])
  editor:wait([[return vim.b.sightline_status == 'Sightline']])
  editor:command('edit .env')
  editor:wait([[return vim.b.sightline_status == 'Sightline hidden']])
  editor:wait([[return require('sightline').statusline() == 'Sightline hidden']])
  -- Rules that come later are noticed.
  editor:command('edit src/prices.py')
  editor:wait([[return require('sightline').status().access == 'allowed']])
  local rules = assert(io.open(shop .. '/.clineignore', 'a'))
  rules:write('src/prices.py\n')
  rules:close()
  editor:wait([[return require('sightline').statusline() == 'Sightline hidden']])
  editor:wait([[return vim.b.sightline_status == 'Sightline hidden']])
  editor:ask('create_checkpoint', {})
  editor:wait([[return vim.b.sightline_status:match('^Sightline hidden %d%d:%d%d$')]])
  editor:command('Sightline stop')
  editor:wait([[return vim.b.sightline_status == '']])
  editor:quit()
end)

test('checkhealth finds nothing wrong', function()
  local editor = start()
  editor:command('edit src/cart.py')
  editor:ask('environment_details', {})
  editor:command('checkhealth sightline')
  local report = table.concat(editor:call('nvim_buf_get_lines', 0, 0, -1, false), '\n')
  has_not(report, 'ERROR')
  has(report, 'protocol 1')
  has(report, 'setup was called')
  editor:quit()
end)

test('the help has a tag for every function, command and option', function()
  local editor = start()
  local help = driver.folder()
  vim.fn.mkdir(help .. '/doc', 'p')
  assert(vim.uv.fs_copyfile(driver.repository .. '/clients/nvim/doc/sightline.txt', help .. '/doc/sightline.txt'))
  editor:command('helptags ' .. help .. '/doc')
  editor:command('set runtimepath+=' .. help)
  local missing = editor:lua([[
    local wanted = { 'sightline', ':Sightline', 'sightline-setup' }
    for name in pairs(require('sightline.api')) do table.insert(wanted, 'sightline.' .. name .. '()') end
    for name in pairs(require('sightline.config').current) do table.insert(wanted, 'sightline-option-' .. name) end
    for name in pairs(require('sightline.commands').subcommands) do table.insert(wanted, ':Sightline-' .. name) end
    return vim.tbl_filter(function(tag)
      return #vim.fn.getcompletion(tag, 'help') == 0 or not pcall(vim.cmd.help, tag)
    end, wanted)
  ]])
  same(missing, {})
  editor:quit()
end)

test('there is a function for every method of the protocol, and no other', function()
  local protocol = dofile(driver.repository .. '/clients/types/protocol.lua')
  local editor = start()
  local known = editor:lua([[return vim.tbl_keys(require('sightline.api'))]])
  local wanted = {}
  for name in pairs(protocol.methods) do
    table.insert(wanted, (name:gsub('%u', function(letter)
      return '_' .. letter:lower()
    end)))
  end
  table.sort(known)
  table.sort(wanted)
  same(known, wanted)
  editor:quit()
end)
