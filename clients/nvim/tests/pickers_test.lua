-- Pickers with a preview, and their `vim.ui.select`. SIGHTLINE_NVIM_PLUGINS is a folder with clones
-- of telescope.nvim, telescope-ui-select.nvim, plenary.nvim, snacks.nvim and fzf-lua; without it,
-- the tests are skipped.

local driver = require('editor')
local same, write = driver.same, driver.write

local folder = vim.env.SIGHTLINE_NVIM_PLUGINS

--- Adds a test of a picker with two checkpoints. The newer one is selected first. `register` makes
--- the picker that of `vim.ui.select`.
local function test(name, plugins, register, program)
  local program_path = program and vim.fn.exepath(program)
  if not folder or program_path == '' then
    local missing = folder and program or 'SIGHTLINE_NVIM_PLUGINS'
    return io.stdout:write(('skipped: %s, without %s\n'):format(name, missing))
  end
  plugins = vim.tbl_map(function(plugin)
    return folder .. '/' .. plugin
  end, plugins)
  driver.test(('%s shows the changes since a checkpoint'):format(name), function()
    local root = driver.folder()
    write(root .. '/.clineignore', '')
    write(root .. '/a.txt', 'first\n')
    local path = program and driver.path .. ':' .. vim.fs.dirname(program_path) or nil
    local editor = driver.start({ cwd = root, plugins = plugins, path = path })
    -- Telescope shows no preview on narrow screens.
    editor:call('nvim_ui_try_resize', 140, 40)
    editor:command('edit a.txt')
    editor:ask('create_checkpoint', { label = 'older' })
    write(root .. '/a.txt', 'second\n')
    editor:ask('create_checkpoint', { label = 'newer' })
    write(root .. '/a.txt', 'third\n')
    editor:press(':Sightline diff<CR>')
    editor:wait_screen('-second')
    editor:wait_screen('+third')
    editor:press('older')
    editor:wait_screen('-first')
    editor:press('<CR>')
    editor:wait_screen('1/1 M a.txt')
    same(editor:lua([[return vim.fn.getbufline(vim.fn.winbufnr(1), 1, '$')]]), { 'first' })
    editor:command('tabclose')

    -- Closing the question closes the preview.
    editor:lua(register)
    editor:press(':Sightline restore older<CR>')
    editor:wait_screen('Restore 1 file')
    editor:press('<Esc><Esc>')
    editor:wait([[return #vim.api.nvim_list_wins() == 1]])
    same(driver.read(root .. '/a.txt'), 'third\n')
    editor:quit()
  end)
end

test(
  'telescope',
  { 'telescope.nvim', 'telescope-ui-select.nvim', 'plenary.nvim' },
  [[require('telescope').load_extension('ui-select')]]
)
test('snacks', { 'snacks.nvim' }, [[vim.ui.select = require('snacks').picker.select]])
test('fzf-lua', { 'fzf-lua' }, [[require('fzf-lua').register_ui_select()]], 'fzf')
