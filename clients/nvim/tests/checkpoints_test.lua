-- Checkpoints: create, compare, restore, undo.

local driver = require('editor')
local has, has_not, same, write, read = driver.has, driver.has_not, driver.same, driver.write, driver.read
local test = driver.test

--- Starts an editor in a new project with two files.
local function start(settings)
  local root = driver.folder()
  vim.fn.mkdir(root .. '/src', 'p')
  write(root .. '/.clineignore', 'secret.txt\n')
  write(root .. '/src/a.txt', 'one\ntwo\n')
  write(root .. '/src/b.txt', 'bee\n')
  write(root .. '/secret.txt', 'nobody sees this\n')
  local editor = driver.start({
    cwd = root,
    init = ('require("sightline").setup({ settings = vim.json.decode([==[%s]==]) })'):format(settings or '{}'),
  })
  editor:command('edit src/a.txt')
  return editor, root
end

local function buffer(editor, bufnr)
  return table.concat(editor:call('nvim_buf_get_lines', bufnr or 0, 0, -1, false), '\n')
end

test('a checkpoint is taken, restored after a preview, and the restore undone', function()
  local editor, root = start()
  editor:command('Sightline checkpoint before the change')
  has(editor:wait_said('checkpoint '), '+')
  editor:wait([[return require('sightline').statusline():match('%d%d:%d%d')]])

  -- The agent changes a file that is open, deletes one and adds one.
  write(root .. '/src/a.txt', 'one\nTWO\n')
  write(root .. '/src/new.txt', 'new\n')
  os.remove(root .. '/src/b.txt')
  editor:command('checktime')
  editor:wait([[return vim.fn.getline(2) == 'TWO']])

  editor:press(':Sightline restore<CR>')
  has(editor:wait_screen('Restore checkpoint'), 'before the change')
  editor:press('1<CR>')
  local screen = editor:wait_screen('R restores 3 files')
  has(screen, 'src/a.txt')
  has(screen, 'delete  src/new.txt')
  has(screen, 'src/b.txt')
  same(read(root .. '/src/a.txt'), 'one\nTWO\n')
  editor:press('R')
  editor:wait_said('restored 3 files')
  same(read(root .. '/src/a.txt'), 'one\ntwo\n')
  same(read(root .. '/src/b.txt'), 'bee\n')
  same(read(root .. '/src/new.txt'), nil)
  -- What is open shows it, the preview is gone, and there was nothing to ask.
  same(buffer(editor), 'one\ntwo')
  same(editor:lua('return #vim.api.nvim_list_wins()'), 1)

  -- An undo is shown and asked about too. What changed since is kept unless the user says so,
  -- and other files are left out.
  write(root .. '/src/b.txt', 'mine\n')
  write(root .. '/src/later.txt', 'mine\n')
  editor:press(':Sightline undo<CR>')
  screen = editor:wait_screen('R undoes 2 files')
  has(screen, '[ ] keep    src/b.txt  (changed after the restore)')
  has(screen, '[x] write   src/a.txt')
  same(screen:find('later.txt', 1, true), nil)
  same(read(root .. '/src/a.txt'), 'one\ntwo\n')
  for _, answer in ipairs({ '<Esc>', 'q' }) do
    editor:press(answer)
    editor:wait([[return #vim.api.nvim_list_wins() == 1]])
    same(read(root .. '/src/b.txt'), 'mine\n')
    editor:press(':Sightline undo<CR>')
    editor:wait_screen('R undoes 2 files')
  end
  editor:press('R')
  editor:wait_said('undo restored 2 files')
  same(read(root .. '/src/a.txt'), 'one\nTWO\n')
  same(read(root .. '/src/new.txt'), 'new\n')
  same(read(root .. '/src/b.txt'), 'mine\n')
  same(read(root .. '/src/later.txt'), 'mine\n')
  same(buffer(editor), 'one\nTWO')
  editor:quit()
end)

test('unsaved text is kept unless the user says so', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  write(root .. '/src/a.txt', 'changed\n')
  write(root .. '/src/b.txt', 'changed\n')
  editor:command('checktime')
  editor:wait([[return vim.fn.getline(1) == 'changed']])
  editor:press('ggccunsaved<Esc>')
  editor:wait([[return vim.bo.modified]])

  editor:press(':Sightline restore<CR>')
  editor:wait_screen('Restore checkpoint')
  editor:press('1<CR>')
  has(editor:wait_screen('R restores 1 file'), 'keep    src/a.txt')
  editor:press('R')
  editor:wait_said('restored 1 file')
  same({ buffer(editor), read(root .. '/src/b.txt') }, { 'unsaved', 'bee\n' })

  editor:press(':Sightline restore<CR>')
  editor:wait_screen('Restore checkpoint')
  -- The restore before took another checkpoint; the user's is below it.
  editor:press(editor:wait_screen('no label'):match('(%d+): [^\n]*no label') .. '<CR>')
  has(editor:wait_screen('R restores 0 files'), '[ ] keep    src/a.txt')
  editor:press('R')
  editor:wait_said('no file is chosen')
  editor:press('x')
  editor:wait_screen('R restores 1 file')
  editor:press('R')
  editor:wait_said('restored')
  same({ buffer(editor), editor:lua('return vim.bo.modified') }, { 'one\ntwo', false })
  editor:quit()
end)

test('a window says that a restore deleted its file, until it exists again', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  write(root .. '/src/new.txt', 'new\n')
  editor:command('edit src/new.txt')
  editor:press(':Sightline restore last<CR>')
  editor:wait_screen('R restores 1 file')
  editor:press('R')
  editor:wait_said('restored 1 file')
  same(read(root .. '/src/new.txt'), nil)
  editor:wait_screen('deleted by a restore')
  same(buffer(editor), 'new')
  -- The text of another file is not marked.
  editor:command('edit src/a.txt')
  same(editor:lua('return vim.wo.winbar'), '')
  editor:command('buffer src/new.txt')
  editor:wait_screen('deleted by a restore')
  editor:press(':Sightline undo<CR>')
  editor:wait_screen('R undoes 1 file')
  editor:press('R')
  editor:wait_said('undo restored 1 file')
  editor:wait([[return vim.wo.winbar == '']])
  same({ buffer(editor), read(root .. '/src/new.txt') }, { 'new', 'new\n' })
  editor:quit()
end)

test('a restore by the command line is shown, and unsaved text is kept', function()
  local editor, root = start()
  editor:command('set nohidden | split src/b.txt')
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  -- An agent writes both files, and one of them has unsaved text.
  editor:press('ggccunsaved<Esc>')
  editor:wait([[return vim.bo.modified]])
  editor:command('wincmd w')
  write(root .. '/src/a.txt', 'by an agent\n')
  write(root .. '/src/b.txt', 'by an agent\n')
  editor:wait([[return vim.fn.getline(1) == 'by an agent']])
  has(editor:wait_said('b.txt changed on disk'), 'unsaved text is kept')
  editor:wait_screen('changed on disk, unsaved text kept')
  for _, offline in ipairs({ '--offline', nil }) do
    has(editor:run('checkpoint', 'restore', 'last', 'src/a.txt', '--yes', offline), 'restored')
    editor:wait([[return vim.fn.getline(1) == 'one']])
    has(editor:run('checkpoint', 'undo', '--yes', offline), 'restored')
    editor:wait([[return vim.fn.getline(1) == 'by an agent']])
  end

  editor:command('wincmd w | Sightline unsaved')
  same(buffer(editor), 'unsaved')
  same(editor:lua([[return vim.wo.diff and vim.fn.getbufline(vim.fn.winbufnr(1), 1)[1] ]]), 'by an agent')
  editor:wait_screen('on disk')
  editor:command('tabclose | write!')
  editor:wait([[return vim.wo.winbar == '']])
  -- What the user writes is no change by others.
  editor:press('ccmore<Esc>:write<CR>ccunsaved<Esc>')
  editor:wait([[return vim.bo.modified]])
  editor:lua([[vim.wait(500)]])
  same(editor:lua([[return vim.wo.winbar]]), '')
  editor:quit()
end)

test('a restore by the command line that replaces unsaved text leaves nothing to save', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  write(root .. '/src/a.txt', 'by an agent\n')
  editor:wait([[return vim.fn.getline(1) == 'by an agent']])
  editor:press('ggccunsaved<Esc>')
  editor:wait([[return vim.bo.modified]])
  -- The server gets what was typed a moment later.
  editor:lua([[vim.wait(500)]])
  has(editor:run('checkpoint', 'restore', 'last', '--yes', '--force'), 'restored')
  editor:wait([[return vim.fn.getline(1) == 'one' and not vim.bo.modified]])
  has(editor:run('checkpoint', 'undo', '--yes', '--force'), 'restored')
  editor:wait([[return vim.fn.getline(1) == 'by an agent' and not vim.bo.modified]])
  editor:lua([[vim.wait(500)]])
  same(editor:lua([[return { vim.wo.winbar, vim.fn.execute('messages'):match('is kept') }]]), { '' })
  editor:quit()
end)

test('nothing is restored when files changed after the preview', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  write(root .. '/src/b.txt', 'changed\n')
  editor:press(':Sightline restore<CR>')
  editor:wait_screen('Restore checkpoint')
  editor:press('1<CR>')
  editor:wait_screen('R restores 1 file')
  write(root .. '/src/a.txt', 'changed too\n')
  editor:press('R')
  editor:wait_said('changed since the preview')
  has(editor:wait_screen('R restores 2 files'), 'src/a.txt')
  same(read(root .. '/src/b.txt'), 'changed\n')
  -- A choice of files is checked, too.
  editor:press('x')
  editor:wait_screen('R restores 1 file')
  write(root .. '/src/b.txt', 'bee\n')
  write(root .. '/src/a.txt', 'one\ntwo\n')
  editor:press('R')
  editor:wait_said('already up to date')
  same(read(root .. '/src/b.txt'), 'bee\n')
  editor:quit()
end)

test('differences are in a tab page, old beside the file itself', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  editor:press(':Sightline diff<CR>')
  editor:wait_screen('Changes since')
  editor:press('1<CR>')
  editor:wait_said('no changes since')

  write(root .. '/src/a.txt', 'one\nTWO\n')
  write(root .. '/src/new.txt', 'new\n')
  editor:command('checktime')
  editor:lua([[
    _G.shown = {}
    vim.api.nvim_create_autocmd('User', {
      pattern = 'SightlineDiff',
      callback = function(event) table.insert(_G.shown, event.data.path) end,
    })
  ]])
  editor:press(':Sightline diff<CR>')
  editor:wait_screen('Changes since')
  editor:press('1<CR>')
  editor:wait([[return _G.shown[1] == 'src/a.txt']])
  local function sides()
    return editor:lua([[
      return vim.tbl_map(function(window)
        local bufnr = vim.api.nvim_win_get_buf(window)
        local text = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n')
        return { text, vim.wo[window].diff, vim.bo[bufnr].buftype }
      end, vim.api.nvim_tabpage_list_wins(0))
    ]])
  end
  local heading = '2 changed files, +2 -1; g? shows the keys'
  local panel = { heading .. '\nsrc/\n  M a.txt  +1 -1\n  A new.txt  +1 -0', false, 'nofile' }
  same(sides(), { panel, { 'one\ntwo', true, 'nofile' }, { 'one\nTWO', true, '' } })
  has(editor:wait_screen('1/2 M src/a.txt'), 'now')
  editor:press(']f')
  editor:wait([[return _G.shown[2] == 'src/new.txt']])
  same(sides(), { panel, { '', true, 'nofile' }, { 'new', true, '' } })
  editor:press('[f')
  editor:wait([[return _G.shown[3] == 'src/a.txt']])
  editor:command('tabclose')
  same(editor:lua('return vim.wo.diff'), false)
  -- The tab page was no file of the user: nothing of it stays open.
  editor:lua('return vim.wait(200)')
  local block = editor:ask('environment_details', { consume = false }).text
  has_not(block, 'sightline://')
  editor:quit()
end)

test('the panel of a diff lists the files and opens them', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  write(root .. '/src/b.txt', 'changed\n')
  write(root .. '/src/c.txt', 'new\n')
  editor:press(':Sightline diff last<CR>')
  editor:wait_screen('1/2 M src/b.txt')
  editor:press('<C-w>t')
  editor:press('j<CR>')
  editor:wait_screen('2/2 A src/c.txt')
  editor:press('[f')
  editor:wait_screen('1/2 M src/b.txt')
  same(editor:lua('return vim.fn.line(".")'), 3)
  -- After the last change of a file comes the next file.
  editor:press('<C-w>b')
  editor:press(']c]c')
  editor:wait_screen('2/2 A src/c.txt')
  editor:press('<C-w>t')
  editor:press('g?')
  has(editor:wait_screen('restore the file from the old side'), 'open the file in a new tab page')
  editor:press('q')
  -- One file is restored, after a preview.
  editor:press('<C-w>tj')
  editor:press('X')
  has_not(editor:wait_screen('R restores 1 file'), 'write   src/b.txt')
  editor:press('R')
  editor:wait_said('restored 1 file')
  same({ read(root .. '/src/b.txt'), read(root .. '/src/c.txt') }, { 'changed\n', nil })
  editor:press('<C-w>t')
  editor:press('q')
  editor:wait([[return #vim.api.nvim_list_tabpages() == 1]])
  editor:quit()
end)

test('the panel of a diff has the files by folder, with the icons of a plugin', function()
  local editor, root = start()
  editor:lua([[
    package.preload['nvim-web-devicons'] = function()
      return { get_icon = function(name) return '@' .. name:sub(1, 1), 'Title' end }
    end
  ]])
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  vim.fn.mkdir(root .. '/src/deep', 'p')
  for name, text in pairs({ ['src/b.txt'] = 'changed', ['src/z.txt'] = '1', ['src/deep/d.txt'] = '2', ['z.txt'] = '3' }) do
    write(('%s/%s'):format(root, name), text .. '\n')
  end
  editor:press(':Sightline diff last<CR>')
  editor:wait_screen('1/4 A z.txt')
  editor:press('<C-w>t')
  same(vim.split(buffer(editor), '\n'), {
    '4 changed files, +4 -1; g? shows the keys',
    'A @z z.txt  +1 -0',
    'src/',
    '  M @b b.txt  +1 -1',
    '  A @z z.txt  +1 -0',
    'src/deep/',
    '  A @d d.txt  +1 -0',
  })
  -- `]f` follows the panel, and the line of a folder selects its first file.
  editor:press(']f')
  editor:wait_screen('2/4 M src/b.txt')
  same(editor:lua('return vim.fn.line(".")'), 4)
  editor:press('6G<CR>')
  editor:wait_screen('4/4 A src/deep/d.txt')
  editor:command('tabclose')
  editor:quit()
end)

test('files that only a diff opened are not listed, not shared, and wiped', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  editor:wait_said('checkpoint ')
  for name in ('bcd'):gmatch('.') do
    write(('%s/src/%s.txt'):format(root, name), 'changed\n')
  end
  local function files()
    return editor:lua(
      [[
      local folder = ...
      return vim.tbl_map(function(info)
        return vim.fs.basename(info.name) .. (info.listed == 1 and '' or ' unlisted')
      end, vim.tbl_filter(function(info)
        return vim.startswith(info.name, folder)
      end, vim.fn.getbufinfo()))
    ]],
      root
    )
  end
  local function block()
    return editor:ask('environment_details', { consume = false }).text
  end
  editor:press(':Sightline diff last<CR>')
  editor:wait_screen('1/3 M src/b.txt')
  editor:press(']f')
  editor:wait_screen('2/3 A src/c.txt')
  same(files(), { 'a.txt', 'c.txt unlisted' })
  has_not(block(), 'c.txt')
  has(block(), 'a.txt')
  -- A file that the user changes is open like any other.
  editor:press('ccmine<Esc>')
  editor:wait([[return vim.bo.modified and vim.bo.buflisted]])
  has(block(), 'src/c.txt')
  same(editor:ask('read_file', { path = 'src/c.txt' }).text, 'mine\n')
  editor:press(']f')
  editor:wait_screen('3/3 A src/d.txt')
  editor:command('tabclose')
  same(files(), { 'a.txt', 'c.txt' })
  -- So is one that the user opens.
  editor:command('Sightline diff last src/b.txt')
  editor:wait_screen('1/1 M src/b.txt')
  editor:command('tabedit src/b.txt')
  editor:command('tabclose')
  editor:command('tabclose')
  same(files(), { 'a.txt', 'c.txt', 'b.txt' })
  has(block(), 'src/b.txt')
  editor:quit()
end)

test('ids and paths complete, and restrict what is restored', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  local id = editor:wait_said('checkpoint '):match('checkpoint (%x+)')
  write(root .. '/src/a.txt', 'changed\n')
  write(root .. '/src/b.txt', 'changed\n')
  local found = editor:lua([[return vim.fn.getcompletion('Sightline restore ', 'cmdline')]])
  same(found, { 'last', id })
  same(
    editor:lua([[return vim.fn.getcompletion(..., 'cmdline')]], 'Sightline restore ' .. id .. ' src/b'),
    { 'src/b.txt' }
  )
  editor:press((':Sightline restore %s src/b.txt<CR>'):format(id))
  has_not(editor:wait_screen('R restores 1 file'), 'write   src/a.txt')
  editor:press('R')
  editor:wait_said('restored 1 file')
  same({ read(root .. '/src/a.txt'), read(root .. '/src/b.txt') }, { 'changed\n', 'bee\n' })
  editor:quit()
end)

test('labels name checkpoints, and complete', function()
  local editor, root = start()
  editor:command('Sightline checkpoint before the change')
  editor:wait_said('checkpoint ')
  write(root .. '/src/b.txt', 'changed\n')
  local complete = [[return vim.fn.getcompletion(..., 'cmdline')]]
  same(editor:lua(complete, 'Sightline restore bef'), { 'before\\ the\\ change' })
  same(editor:lua(complete, 'Sightline diff before\\ th'), { 'before\\ the\\ change' })
  editor:press(':Sightline restore before\\ the\\ change<CR>')
  editor:wait_screen('R restores 1 file')
  editor:press('R')
  editor:wait_said('restored 1 file')
  same(read(root .. '/src/b.txt'), 'bee\n')
  editor:quit()
end)

test('checkpoints are listed, counted and pruned', function()
  local editor, root = start()
  for index = 1, 3 do
    write(root .. '/src/b.txt', ('%d\n'):format(index))
    -- A label keeps a checkpoint.
    editor:command('Sightline checkpoint' .. (index == 2 and ' number 2' or ''))
    editor:wait_said('checkpoint ')
  end
  write(root .. '/src/b.txt', 'now\n')
  editor:command('Sightline stats')
  has(editor:wait_said('3 checkpoints, '), 'oldest 20')
  editor:press(':Sightline list<CR>')
  editor:wait_screen('number 2')
  -- The preview follows the cursor.
  editor:press('gg/number 2<CR>')
  editor:wait_screen('-2')
  editor:press('R')
  editor:wait_screen('R restores 1 file')
  editor:press('R')
  editor:wait_said('restored 1 file')
  same(read(root .. '/src/b.txt'), '2\n')
  editor:press(':Sightline prune<CR>')
  editor:wait_screen('Checkpoints to keep')
  editor:press('1<CR>')
  editor:wait_screen('Remove 1 checkpoint')
  editor:press('1<CR>')
  editor:wait_said('removed 1 checkpoint')
  editor:command('Sightline prune 1')
  editor:wait_said('no checkpoints to remove')
  editor:press(':Sightline prune all<CR>')
  editor:wait_said('not a number: all')
  editor:quit()
end)

test('two checkpoints are compared with each other', function()
  local editor, root = start()
  editor:command('Sightline checkpoint')
  local first = editor:wait_said('checkpoint '):match('checkpoint (%x+)')
  write(root .. '/src/b.txt', 'second\n')
  editor:command('Sightline checkpoint')
  local second = editor:wait_said('checkpoint '):match('checkpoint (%x+)')
  write(root .. '/src/b.txt', 'third\n')
  editor:press((':Sightline diff %s..%s<CR>'):format(first, second))
  local screen = editor:wait_screen('1/1 M src/b.txt')
  has(screen, 'bee')
  has(screen, 'second')
  editor:command('tabclose')
  editor:press(':Sightline restore 00000000<CR>')
  editor:wait_said('no checkpoint matches 00000000')
  editor:quit()
end)

test('labels name undo points and both sides of a comparison', function()
  local editor, root = start()
  for _, label in ipairs({ 'the first', 'to be continued...' }) do
    write(root .. '/src/b.txt', label .. '\n')
    editor:command('Sightline checkpoint ' .. label)
    editor:wait_said('checkpoint ')
  end
  write(root .. '/src/b.txt', 'third\n')

  local complete = [[return vim.fn.getcompletion(..., 'cmdline')]]
  local range = 'the\\ first..to\\ be\\ continued...'
  same(editor:lua(complete, 'Sightline diff the\\ first..to'), { range })
  local function sides(spec)
    editor:press((':Sightline diff %s<CR>'):format(spec))
    editor:wait_screen('1/1 M src/b.txt')
    local shown = editor:lua([[
      return vim.tbl_map(function(window)
        return vim.fn.getbufline(vim.api.nvim_win_get_buf(window), 1)[1]
      end, vim.api.nvim_tabpage_list_wins(0))
    ]])
    editor:command('tabclose')
    editor:wait([[return #vim.api.nvim_list_tabpages() == 1]])
    editor:command('redraw!')
    return shown
  end
  same(sides(range), { 'the first', 'to be continued...' })
  same(sides('to\\ be\\ continued...'), { 'to be continued...', 'third' })
  editor:press(':Sightline diff the\\ first..nowhere<CR>')
  editor:wait_said('no checkpoint matches nowhere')

  -- The undo point of the first restore gets a label. After another restore, it is not the last.
  for _, label in ipairs({ 'the\\ first', 'to\\ be\\ continued...' }) do
    editor:press((':Sightline restore %s<CR>'):format(label))
    editor:wait_screen('R restores 1 file')
    editor:press('R')
    editor:wait_said('restored 1 file')
    if label == 'the\\ first' then
      local id = editor:ask('list_checkpoints').checkpoints[1].id
      editor:ask('label_checkpoint', { id = id, label = 'before the restore' })
    end
  end
  same(editor:lua(complete, 'Sightline undo before'), { 'before\\ the\\ restore' })
  editor:press(':Sightline undo before\\ the\\ restore<CR>')
  -- The restore after it changed the same file.
  editor:wait_screen('R undoes 0 files')
  editor:press('x')
  editor:wait_screen('R undoes 1 file')
  editor:press('R')
  editor:wait_said('undo restored 1 file')
  same(read(root .. '/src/b.txt'), 'third\n')
  editor:quit()
end)

test('a large project is asked about first', function()
  local editor = start('{"checkpoints": {"maxFiles": 1}}')
  editor:press(':Sightline checkpoint<CR>')
  editor:wait_screen('Create anyway')
  editor:press('1<CR>')
  editor:wait_said('checkpoint ')
  editor:quit()
end)

test('the example of an AI plugin reads, edits and reverts it all', function()
  local editor, root = start()
  editor:lua(
    [[
    package.path = ... .. '/clients/nvim/examples/?.lua;' .. package.path
    _G.log = {}
    local agent = require('agent').new({
      ask_model = function(prompt, tools, done)
        _G.prompt = prompt
        tools.read('secret.txt', function(denied)
          table.insert(_G.log, denied)
          tools.read('src/a.txt', function(_, text)
            tools.write('src/a.txt', text .. 'three\n', function(err)
              tools.write('secret.txt', 'overwritten', function(refused)
                table.insert(_G.log, refused)
                tools.may_run('cat secret.txt', function(allowed)
                  table.insert(_G.log, allowed)
                  done(err or 'done')
                end)
              end)
            end)
          end)
        end)
      end,
    })
    _G.agent = agent
    agent.ask('Add a line.', function(err, reply) _G.reply = err or reply end)
  ]],
    driver.repository
  )
  same(editor:wait('return _G.reply'), 'done')
  has(editor:lua('return _G.prompt'), 'src/a.txt')
  local log = editor:lua('return _G.log')
  same({ #log, log[3] }, { 3, false })
  has(log[2], 'secret.txt is hidden from agents')
  same(read(root .. '/secret.txt'), 'nobody sees this\n')
  same(read(root .. '/src/a.txt'), 'one\ntwo\nthree\n')
  same(buffer(editor), 'one\ntwo\nthree')
  editor:lua('_G.agent.undo(function(err, files) _G.undone = err or files end)')
  same(editor:wait('return _G.undone'), 1)
  same({ read(root .. '/src/a.txt'), buffer(editor) }, { 'one\ntwo\n', 'one\ntwo' })
  editor:quit()
end)
