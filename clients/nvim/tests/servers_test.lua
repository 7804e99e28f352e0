-- The life of the servers of the plugin.

local driver = require('editor')
local has, has_not, same, write = driver.has, driver.has_not, driver.same, driver.write
local test, block = driver.test, driver.block

local shop = driver.sample()

local function start(init, options)
  return driver.start(vim.tbl_extend('force', { cwd = shop, init = init }, options or {}))
end

--- Kills the servers.
local KILL = [[
  for _, child in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
    if (vim.api.nvim_get_proc(child) or {}).name == 'sightline' then
      vim.uv.kill(child, 'sigkill')
    end
  end
]]

test('each project has a server; an inner one is told to the outer one too', function()
  local inner = shop .. '/inner'
  vim.fn.mkdir(inner, 'p')
  write(inner .. '/.clineignore', 'hidden.txt\n')
  write(inner .. '/file.txt', 'on disk\n')
  local editor = start()
  editor:command('edit src/cart.py')
  block(editor)
  editor:command('edit inner/file.txt')
  editor:wait([[return #require('sightline.server').clients() == 2]])
  editor:wait([[return #vim.lsp.get_clients({ bufnr = 0 }) == 2]])
  editor:press('ggccunsaved<Esc>')
  editor:wait([[return vim.bo.modified]])
  editor:lua(
    [[
    require('sightline').read_file({ path = 'inner/file.txt' }, function(_, result)
      _G.outer = result
    end, { root = ... })
  ]],
    shop
  )
  same(editor:wait('return _G.outer').text, 'unsaved\n')
  same(editor:ask('read_file', { path = 'file.txt' }).text, 'unsaved\n')
  -- One that is opened when both servers run, too.
  editor:command('edit! inner/new.txt')
  editor:wait([[return #vim.lsp.get_clients({ bufnr = 0 }) == 2]])
  editor:quit()
  vim.fn.delete(inner, 'rf')
end)

test('files outside of projects share one server without a folder', function()
  local editor = start(nil, { cwd = '/' })
  for index = 1, 6 do
    local loose = driver.folder()
    write(loose .. '/file.txt', 'on disk\n')
    editor:command(('edit %s/file.txt'):format(loose))
    if index == 1 then
      editor:command('cd ' .. loose)
      same(editor:lua([[return require('sightline.buffers').root_of(...)]], loose .. '/file.txt'), loose)
      editor:command('cd /')
    end
  end
  editor:press('ccunsaved<Esc>')
  has(block(editor), '/file.txt')
  editor:lua('vim.wait(200)')
  same(
    editor:lua([[
      local client = require('sightline.server').clients()[1]
      return { #require('sightline.server').clients(), #vim.tbl_keys(client.attached_buffers), client.workspace_folders == nil }
    ]]),
    { 1, 6, true }
  )
  editor:quit()
end)

test('a server with another protocol is not used', function()
  local editor = start([[
    require('sightline').setup({
      cmd = function()
        local closing = false
        return {
          request = function(method, params, callback)
            vim.schedule(function()
              if method == 'initialize' then
                _G.announced = params.capabilities.experimental.sightline
                callback(nil, { capabilities = { experimental = { sightline = { protocolVersion = 2 } } } })
              else
                _G.asked = method
                callback(nil, {})
              end
            end)
            return true, 1
          end,
          notify = function() return true end,
          is_closing = function() return closing end,
          terminate = function() closing = true end,
        }
      end,
    })
  ]])
  editor:command('edit src/cart.py')
  local refused = editor:ask('check_access', { paths = { 'x' } }).error
  same(refused.kind, 'unsupported')
  has(refused.message, 'protocol 1')
  -- Also later, when it is known.
  same(editor:ask('check_access', { paths = { 'x' } }).error, refused)
  editor:command('edit README.md')
  editor:wait_said('cannot start the server')
  same(editor:lua('return _G.announced'), { openDiff = true, protocolVersion = 1 })
  same(editor:lua('return _G.asked'), vim.NIL)
  editor:quit()
end)

test('a server that dies answers all who wait, and is started again', function()
  local editor = start()
  editor:command('edit src/cart.py')
  block(editor)
  editor:lua([[
    require('sightline').list_files({}, function() end)
    _G.kind = nil
    require('sightline.compat').request = function() return true, 1 end
    require('sightline').list_files({}, function(err) _G.kind = err.kind end)
  ]] .. KILL)
  same(editor:wait('return _G.kind'), 'stopped')
  editor:wait_said('signal 9')
  editor:lua([[package.loaded['sightline.compat'].request = function(client, ...)
    if vim.fn.has('nvim-0.11') == 1 then return client:request(...) end
    return client.request(...)
  end]])
  has(block(editor), 'src/cart.py')
  editor:press('ccunsaved<Esc>')
  for crash = 2, 3 do
    editor:lua(KILL)
    editor:wait_said('signal 9')
    if crash < 3 then
      -- Nothing asks for it, and the unsaved text is there again.
      editor:wait([[return #require('sightline.server').clients() == 1]])
      has(editor:ask('read_file', { path = 'src/cart.py' }).text, 'unsaved\n')
    end
  end
  editor:wait_said('cannot start the server')
  has(editor:ask('list_files').error.message, ':Sightline restart')
  editor:command('Sightline restart')
  editor:wait([[return #require('sightline.server').clients() == 1]])
  has(block(editor), 'src/cart.py')
  editor:quit()
end)

test('a request that is cancelled calls back once', function()
  local editor = start()
  editor:command('edit src/cart.py')
  block(editor)
  editor:lua([[
    _G.calls = {}
    local cancel = require('sightline').list_files({}, function(err) table.insert(_G.calls, err and err.kind or 'answer') end)
    cancel()
    cancel()
  ]])
  block(editor)
  same(editor:lua('return _G.calls'), { 'cancelled' })
  editor:quit()
end)

test('a slip in the options is told and costs only that option', function()
  local editor = start([[
    _G.early = {}
    vim.notify = function(message) table.insert(_G.early, message) end
    require('sightline').setup({ colour = 'red', terminals = 'yes' })
  ]])
  local early = table.concat(editor:lua('return _G.early'), '\n')
  has(early, 'unknown option `colour`')
  has(early, 'option `terminals` must be a boolean, not a string')
  editor:command('edit src/cart.py')
  has(block(editor), 'src/cart.py')
  editor:quit()
end)

test('without a server it says so once, and how to get one', function()
  local editor = start(nil, { path = '/usr/bin:/bin' })
  editor:command('edit src/cart.py')
  editor:wait_said('cannot start the server')
  editor:command('edit README.md')
  editor:command('edit src/prices.py')
  has(editor:ask('environment_details').error.message, 'cargo install')
  same(#editor:lua('return _G.said'), 0)
  editor:command('checkhealth sightline')
  has(table.concat(editor:call('nvim_buf_get_lines', 0, 0, -1, false), '\n'), 'is not on the PATH')
  editor:quit()
end)

test('settings reach the server', function()
  local editor = start([[
    require('sightline').setup({ settings = { environment = { sections = { mode = { enabled = false } } } } })
  ]])
  editor:command('edit src/cart.py')
  has_not(block(editor), '# Current Mode')
  editor:quit()
end)

test('a program that cargo installed is found without the PATH', function()
  local home = driver.folder()
  vim.fn.mkdir(home .. '/.cargo/bin', 'p')
  assert(vim.uv.fs_symlink(vim.fn.exepath('sightline'), home .. '/.cargo/bin/sightline'))
  local editor = start(nil, { home = home, path = '/usr/bin:/bin' })
  editor:command('edit src/cart.py')
  has(block(editor), 'src/cart.py')
  editor:quit()
end)

test('a server that vim.lsp.enable started is started again, too', function()
  local editor = start([[
    if vim.lsp.config then
      vim.lsp.enable('sightline')
    end
  ]])
  if editor:lua('return vim.lsp.config ~= nil') then
    editor:command('edit src/cart.py')
    local running =
      [[local client = vim.lsp.get_clients({ bufnr = 0 })[1]; return client and client.initialized and client.id]]
    local first = editor:wait(running)
    editor:lua(KILL)
    editor:wait('local first = ...; ' .. running .. ' ~= first', first)
  end
  editor:quit()
end)

test('a client that vim.lsp.enable started is used as it is', function()
  local editor = start([[
    if vim.lsp.config then
      vim.lsp.config('other-name', { cmd = { 'sightline' }, root_markers = { '.clineignore' } })
      vim.lsp.enable('other-name')
    end
  ]])
  if editor:lua('return vim.lsp.config ~= nil') then
    editor:command('edit src/cart.py')
    editor:wait([[return #vim.lsp.get_clients() == 1 and vim.lsp.get_clients()[1].initialized]])
    editor:lua([[require('sightline').setup({})]])
    editor:command('vsplit src/prices.py')
    has(block(editor), '# Neovim Visible Files\nsrc/prices.py\nsrc/cart.py\n')
    same(editor:lua([[return #vim.lsp.get_clients()]]), 1)
  end
  editor:quit()
end)
