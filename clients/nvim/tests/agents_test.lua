-- Agents that are connected by their IDE protocol.

local driver = require('editor')
local has, same, test = driver.has, driver.same, driver.test

local INIT = [[require('sightline').setup({ settings = { bridges = { claudeIde = true } } })]]

--- Connects as Claude Code does. Returns the connection, whose `text` has all that was received.
---@param editor Editor
local function connect(editor)
  local folder = editor.home .. '/.claude/ide'
  local name
  driver.eventually(function()
    name = vim.fn.glob(folder .. '/*.lock', false, true)[1]
    return name ~= nil
  end)
  local lock = vim.json.decode(assert(driver.read(name)))
  local agent = { text = '', stream = assert(vim.uv.new_tcp()) }
  local port = assert(tonumber(vim.fs.basename(name):match('%d+')))
  --- Sends a message of less than 64 KiB, with an empty mask.
  function agent.send(message)
    local text = vim.json.encode(message)
    local length = string.char(254, math.floor(#text / 256), #text % 256)
    agent.stream:write('\129' .. length .. '\0\0\0\0' .. text)
  end
  agent.stream:connect('127.0.0.1', port, function(err)
    assert(not err, err)
    agent.stream:read_start(function(_, data)
      agent.text = agent.text .. (data or '')
    end)
    agent.stream:write(table.concat({
      'GET / HTTP/1.1',
      'Host: 127.0.0.1:' .. port,
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'x-claude-code-ide-authorization: ' .. lock.authToken,
      '\r\n',
    }, '\r\n'))
  end)
  --- Waits until a text is received, and forgets what came until then.
  function agent.wait(text)
    local found = driver.eventually(function()
      return agent.text:find(text, 1, true) ~= nil
    end)
    assert(found, ('`%s` is not in:\n%s'):format(text, agent.text))
    agent.text = ''
  end
  agent.wait('101 Switching Protocols')
  agent.send({ id = 1, method = 'initialize', params = { clientInfo = { name = 'claude-code' } } })
  agent.wait('protocolVersion')
  agent.send({ method = 'notifications/initialized' })
  return agent
end

test('the connected agents are shown, paused, and get what is sent', function()
  local shop = driver.sample()
  local editor = driver.start({ cwd = shop, init = INIT })
  editor:command('edit src/cart.py')
  editor:wait([[return vim.b.sightline_status == 'Sightline']])
  editor:command('Sightline agents')
  editor:wait_screen('connected by IDE protocol: no agent')
  editor:press('q')
  editor:press(':Sightline send<CR>')
  editor:wait_said('no agent is connected')

  local agent = connect(editor)
  agent.wait('src/cart.py')
  -- An agent in a terminal finds this server without an option.
  local lock = vim.fn.glob(editor.home .. '/.claude/ide/*.lock', false, true)[1]
  editor:wait([[return vim.env.CLAUDE_CODE_SSE_PORT == ...]], vim.fn.fnamemodify(lock, ':t:r'))
  editor:wait([[return vim.b.sightline_status == 'Sightline claude-code']])
  same(editor:lua([[return require('sightline').status().agents]]), { 'claude-code' })
  editor:command('Sightline agents')
  editor:wait_screen('connected by IDE protocol: claude-code')
  editor:press('q')
  editor:command('checkhealth sightline')
  has(table.concat(editor:call('nvim_buf_get_lines', 0, 0, -1, false), '\n'), 'connected by IDE protocol: claude-code')
  editor:command('quit')

  editor:press(':2,3Sightline send<CR>')
  agent.wait('"lineEnd":2,"lineStart":1')
  editor:wait_said('sent lines 2 to 3 of src/cart.py')
  editor:press(':Sightline send<CR>')
  editor:wait_said('sent src/cart.py')
  agent.wait('at_mentioned')
  editor:press('ggV<Cmd>Sightline send<CR><Esc>')
  agent.wait('"lineEnd":0,"lineStart":0')
  editor:command('edit .env')
  editor:press(':Sightline send<CR>')
  has(editor:wait_said('.env'), 'hidden from agents')
  editor:press(':1Sightline log<CR>')
  editor:wait_said('`log` takes no range')
  editor:command('edit src/cart.py')

  local function offered()
    return editor:lua([[
      local items
      local select = vim.ui.select
      vim.ui.select = function(all) items = all end
      vim.cmd('Sightline')
      vim.ui.select = select
      return vim.tbl_filter(function(one) return vim.list_contains({ 'pause', 'send' }, one) end, items)
    ]])
  end
  same(offered(), { 'pause', 'send' })
  editor:press(':Sightline pause<CR>')
  agent.wait('"filePath":""')
  editor:wait([[return vim.b.sightline_status == 'Sightline claude-code paused']])
  same(editor:lua([[return require('sightline').status().paused]]), true)
  same(offered(), { 'pause' })
  editor:press(':Sightline pause<CR>')
  agent.wait('src/cart.py')
  editor:wait([[return vim.b.sightline_status == 'Sightline claude-code']])
  agent.stream:close()
  editor:wait([[return vim.b.sightline_status == 'Sightline']])
  editor:quit()
end)

--- Proposes a change as Claude Code does.
local function propose(agent, id, path, contents)
  local arguments =
    { old_file_path = path, new_file_path = path, new_file_contents = contents, tab_name = 'change ' .. id }
  agent.send({ id = id, method = 'tools/call', params = { name = 'openDiff', arguments = arguments } })
end

test('a proposed change is shown, edited, accepted and rejected', function()
  local shop = driver.sample()
  local editor = driver.start({ cwd = shop, init = INIT })
  editor:command('edit src/cart.py')
  local agent = connect(editor)
  local path = shop .. '/src/cart.py'
  local tabs = [[return #vim.api.nvim_list_tabpages() == ...]]
  local old = assert(driver.read(path))

  propose(agent, 5, path, '# first\n' .. old)
  editor:wait_screen(':w accepts')
  same(editor:lua([[return vim.wo.diff and vim.bo.filetype]]), 'python')
  has(editor:lua([[return vim.api.nvim_get_current_line()]]), '# first')
  editor:press('A, edited<Esc>:w<CR>')
  agent.wait('# first, edited')
  editor:wait(tabs, 1)
  same(#editor:ask('list_checkpoints').checkpoints, 1)
  -- The agent writes the file, and the editor reads it.
  driver.write(path, '# written\n')
  editor:wait([[return vim.fn.getline(1) == '# written']])

  -- The agent does not know unsaved text: the file says so, and keeps it afterwards, with no prompt.
  editor:press('ggccmine<Esc>')
  editor:wait([[return vim.bo.modified]])
  propose(agent, 20, path, 'from disk\n')
  editor:wait_screen('unsaved text here is not in the change')
  editor:command('write')
  agent.wait('FILE_SAVED')
  editor:wait(tabs, 1)
  driver.write(path, 'from disk\n')
  editor:wait_said('cart.py changed on disk')
  editor:command('checktime')
  editor:wait_screen('changed on disk, unsaved text kept')
  same(editor:lua([[return { vim.fn.getline(1), vim.bo.modified }]]), { 'mine', true })
  editor:command('edit!')
  editor:wait_screen('from disk')
  driver.write(path, '# written\n')
  editor:wait([[return vim.fn.getline(1) == '# written']])

  for id, reject in pairs({ [6] = 'Sightline reject', [7] = 'quit', [8] = 'tabclose' }) do
    propose(agent, id, path, 'two\n')
    editor:wait(tabs, 2)
    editor:wait_screen(':w accepts')
    if id == 6 then
      editor:press('Aedited<Esc>')
      editor:wait([[return vim.bo.modified]])
    end
    editor:command(reject)
    agent.wait('DIFF_REJECTED')
    editor:wait(tabs, 1)
  end

  -- Nothing opens while the user types.
  editor:press('gg0i')
  propose(agent, 9, shop .. '/new.txt', 'three')
  vim.wait(500)
  editor:press('typed')
  editor:wait([[return vim.fn.getline(1) == 'typed# written']])
  editor:press('<Esc>')
  editor:wait_screen(':w accepts')
  editor:command('Sightline accept')
  agent.wait('"FILE_SAVED","type":"text"},{"text":"three"')
  editor:wait(tabs, 1)

  -- Decided in the terminal of the agent.
  propose(agent, 10, path, 'four\n')
  editor:wait_screen(':w accepts')
  agent.send({ id = 11, method = 'tools/call', params = { name = 'close_tab', arguments = { tab_name = 'change 10' } } })
  agent.wait('TAB_CLOSED')
  editor:wait(tabs, 1)
  editor:command('Sightline accept')
  editor:wait_said('no proposed change')

  -- Only `:w` in the tab page decides, and edits outlive the proposal.
  propose(agent, 12, path, 'five\n')
  editor:wait_screen(':w accepts')
  editor:press('A, edited<Esc>')
  editor:command('write ' .. shop .. '/copy.txt')
  same(driver.read(shop .. '/copy.txt'), 'five, edited\n')
  editor:command('tabprevious | wall')
  editor:wait(tabs, 2)
  same(agent.text:find('FILE_SAVED', 1, true), nil)
  agent.send({ id = 13, method = 'tools/call', params = { name = 'close_tab', arguments = { tab_name = 'change 12' } } })
  agent.wait('TAB_CLOSED')
  editor:wait(tabs, 1)
  editor:wait_said('your edits are in buffer')
  local kept = [[return vim.iter(vim.api.nvim_list_bufs()):any(function(bufnr)
    return vim.api.nvim_buf_is_loaded(bufnr) and vim.fn.getbufline(bufnr, 1)[1] == 'five, edited'
  end)]]
  editor:wait(kept)
  agent.stream:close()
  editor:quit()
end)

--- A server in Python with one tool, which prints a line.
local SHOP = [[
import json, sys
print("the shop is open", file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request["method"] == "tools/list":
        result = {"tools": [{"name": "sell", "inputSchema": {"type": "object"}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
]]

--- Starts `sightline mcp` as an agent of the user does. Returns a function that lists its tools, and the process.
local function agent_of(editor)
  local output, id = '', 0
  local process = vim.system({ 'sightline', 'mcp' }, {
    cwd = editor.cwd,
    clear_env = true,
    env = { HOME = editor.home, PATH = driver.path, LANG = 'C.UTF-8' },
    stdin = true,
    stdout = function(_, data)
      output = output .. (data or '')
    end,
  })
  local function ask(method, params)
    id = id + 1
    process:write(vim.json.encode({ jsonrpc = '2.0', id = id, method = method, params = params }) .. '\n')
    local answer
    assert(vim.wait(30000, function()
      for line in output:gmatch('[^\n]+\n') do
        local message = vim.json.decode(line)
        if message.id == id and not message.method then
          answer = message.result
        end
      end
      return answer ~= nil
    end, 20))
    return answer
  end
  local client = { name = 'agent', version = '1' }
  ask('initialize', { protocolVersion = '2025-11-25', capabilities = vim.empty_dict(), clientInfo = client })
  return function()
    local names = vim.tbl_map(function(tool)
      return tool.name
    end, ask('tools/list', vim.empty_dict()).tools)
    return table.concat(names, ' ')
  end,
    process
end

--- Waits until the agent gets the tool: a list is answered without a server that takes long to start.
local function offered(tools)
  assert(vim.wait(30000, function()
    return tools():find('shop__sell', 1, true) ~= nil
  end, 100))
end

test('the MCP servers that agents get are listed and controlled', function()
  local root = driver.folder()
  driver.write(root .. '/.clineignore', '')
  driver.write(root .. '/a.txt', 'a\n')
  local shop = { command = 'python3', args = { '-c', SHOP, '--stdio' } }
  driver.write(root .. '/.mcp.json', vim.json.encode({ mcpServers = { shop = shop } }))
  local editor = driver.start({ cwd = root })
  local tools, agent = agent_of(editor)
  driver.has_not(tools(), 'shop__sell')
  editor:command('edit a.txt')
  editor:press(':Sightline mcp<CR>')
  driver.has(editor:wait_screen('shop'), 'untrusted')
  editor:press('<CR>')
  editor:wait_screen('command:  python3 -c')
  editor:press('q')
  editor:press('t')
  editor:wait_screen('Let shop run `python3 -c')
  editor:press('1<CR>')
  editor:wait_screen('idle')
  offered(tools)
  editor:wait_screen('ready')
  -- It starts again at its next call.
  editor:press('R')
  editor:wait_screen('idle')
  editor:press('e')
  editor:wait_screen('disabled')
  driver.has_not(tools(), 'shop__sell')
  editor:press('e')
  editor:wait_screen('idle')
  offered(tools)
  editor:press('L')
  editor:wait_screen('the shop is open')
  editor:press('q')
  editor:wait([[return #vim.api.nvim_list_wins() == 2]])
  editor:press('q')
  editor:wait([[return #vim.api.nvim_list_wins() == 1]])
  agent:write(nil)
  driver.same(agent:wait(30000).code, 0)
  editor:quit()
end)
