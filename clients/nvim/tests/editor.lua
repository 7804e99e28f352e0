-- Drives a real Neovim with a UI over RPC. The editor is that of a new user: an empty home,
-- the plugin in `pack/`, an `init.lua` that only calls `setup`, the server on the PATH.

local M = {}

local tests = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)))

M.plugin = vim.fs.dirname(tests)
M.repository = vim.fs.dirname(vim.fs.dirname(M.plugin))

local server = vim.fn.exepath('sightline')
assert(server ~= '', '`sightline` is not on the PATH')

--- PATH of the editors: the folder of the server, and the system.
M.path = vim.fs.dirname(server) .. ':/usr/bin:/bin'

--- Returns a new empty folder. Neovim deletes it when the tests end.
function M.folder()
  local name = vim.fn.tempname()
  vim.fn.mkdir(name, 'p')
  return assert(vim.uv.fs_realpath(name))
end

--- Returns a new project with the files of `tests/fixtures/sample`.
function M.sample()
  local sample, shop = M.repository .. '/tests/fixtures/sample', M.folder() .. '/shop'
  for name, kind in vim.fs.dir(sample, { depth = 10 }) do
    local target = shop .. '/' .. name
    vim.fn.mkdir(kind == 'directory' and target or vim.fs.dirname(target), 'p')
    if kind == 'file' then
      assert(vim.uv.fs_copyfile(sample .. '/' .. name, target))
    end
  end
  return shop
end

---@class Editor
---@field channel integer
---@field process integer
---@field home string
---@field cwd string
local Editor = {}
Editor.__index = Editor

--- Starts an editor in a folder.
---@param options { cwd: string, path?: string, init?: string, plugins?: string[], home?: string } plugins: folders
---@return Editor
function M.start(options)
  local home = options.home or M.folder()
  local config = home .. '/.config/nvim'
  local pack = home .. '/.local/share/nvim/site/pack/sightline/start'
  vim.fn.mkdir(config, 'p')
  vim.fn.mkdir(pack, 'p')
  vim.fn.writefile(vim.split(options.init or 'require("sightline").setup({})', '\n'), config .. '/init.lua')
  for _, plugin in ipairs({ M.plugin, unpack(options.plugins or {}) }) do
    local link = pack .. '/' .. vim.fs.basename(plugin)
    assert(vim.uv.fs_lstat(link) or vim.uv.fs_symlink(plugin, link))
  end
  local environment = {
    HOME = home,
    PATH = options.path or M.path,
    SHELL = '/bin/sh',
    TERM = 'xterm-256color',
    LANG = 'C.UTF-8',
    VIMRUNTIME = vim.env.VIMRUNTIME,
    LUA_CPATH = vim.env.LUA_CPATH,
  }
  local channel = vim.fn.jobstart({ vim.v.progpath, '--embed', '-i', 'NONE' }, {
    rpc = true,
    cwd = options.cwd,
    clear_env = true,
    env = environment,
    on_stderr = function(_, lines)
      io.stderr:write(table.concat(lines, '\n'))
    end,
    stderr_buffered = false,
  })
  assert(channel > 0, 'the editor does not start')
  local editor =
    setmetatable({ channel = channel, process = vim.fn.jobpid(channel), home = home, cwd = options.cwd }, Editor)
  -- With a UI the editor does what it does for people: it draws, scrolls, asks.
  editor:call('nvim_ui_attach', 100, 30, vim.empty_dict())
  editor:lua([[
    vim.o.swapfile = false
    _G.said = {}
    local notify = vim.notify
    vim.notify = function(message, level, ...)
      table.insert(_G.said, message)
      -- Neovim's own messages need not fit on a line.
      if vim.startswith(message, 'sightline: ') then
        notify(message, level, ...)
      end
    end
  ]])
  return editor
end

--- An editor that waits for a key does not answer. It is then ended, which fails
--- the test instead of keeping it for ever.
function Editor:call(method, ...)
  local watchdog = assert(vim.uv.new_timer())
  watchdog:start(30000, 0, function()
    io.stderr:write(('the editor did not answer %s\n'):format(method))
    vim.uv.kill(self.process, 'sigkill')
  end)
  local answered, answer = pcall(vim.rpcrequest, self.channel, method, ...)
  watchdog:close()
  if not answered then
    error(answer, 2)
  end
  return answer
end

--- Runs Lua in the editor.
function Editor:lua(code, ...)
  -- A prompt for a key would keep this waiting for ever.
  local mode = self:call('nvim_get_mode')
  assert(mode.mode ~= 'r', 'the editor waits for a key; what it said does not fit on a line')
  return self:call('nvim_exec_lua', code, { ... })
end

function Editor:command(command)
  self:call('nvim_command', command)
end

--- Presses keys, as at a keyboard.
function Editor:press(keys)
  self:call('nvim_input', keys)
end

--- Waits until a condition holds; returns whether it does. `vim.wait` alone may never end: it counts
--- whole milliseconds, and answers of the editor come faster.
function M.eventually(condition)
  local deadline = vim.uv.hrtime() + 15e9
  repeat
    if condition() then
      return true
    end
    vim.wait(20)
  until vim.uv.hrtime() > deadline
  return false
end

--- Waits until a condition, Lua in the editor, holds; its value.
function Editor:wait(condition, ...)
  local value
  local arguments = { ... }
  local held = M.eventually(function()
    value = self:lua(condition, unpack(arguments))
    return value and value ~= vim.NIL
  end)
  if not held then
    local screen = table.concat(self:screen(), '\n')
    local said = vim.inspect(self:lua('return _G.said'))
    error(('never came true: %s\n%s\n%s'):format(condition, said, screen), 2)
  end
  return value
end

--- What is on the screen, line by line.
function Editor:screen()
  return self:lua([[
    local rows = {}
    for row = 1, vim.o.lines do
      local cells = {}
      for column = 1, vim.o.columns do
        table.insert(cells, vim.fn.screenstring(row, column))
      end
      table.insert(rows, (table.concat(cells):gsub('%s+$', '')))
    end
    return rows
  ]])
end

--- Waits until the screen shows a text; the screen.
function Editor:wait_screen(text)
  local screen
  local shown = M.eventually(function()
    screen = table.concat(self:screen(), '\n')
    return screen:find(text, 1, true) ~= nil
  end)
  assert(shown, ('the screen never shows `%s`:\n%s'):format(text, screen))
  return screen
end

--- Waits for a message of the plugin that holds a text; all of it.
function Editor:wait_said(text)
  return self:wait(
    [[
    for index, message in ipairs(_G.said) do
      if message:find(..., 1, true) then
        table.remove(_G.said, index)
        return message
      end
    end
  ]],
    text
  )
end

--- The answer of a function of the plugin; an error comes back as `error`.
function Editor:ask(name, params)
  self:lua(
    [[
    local name, params = ...
    _G.answer = nil
    require('sightline')[name](params, function(err, result)
      _G.answer = err and { error = err } or result
    end)
  ]],
    name,
    params or vim.empty_dict()
  )
  return self:wait('return _G.answer')
end

--- Returns the text of the block.
function M.block(editor, params)
  local fixed = { now = 1749308645000, timeZone = 'Europe/Berlin' }
  local answer = editor:ask('environment_details', vim.tbl_extend('force', fixed, params or {}))
  return answer.text or error(vim.inspect(answer))
end

--- Runs the command line of the user, without an editor. Returns what it prints.
function Editor:run(...)
  local environment = { HOME = self.home, PATH = M.path, LANG = 'C.UTF-8' }
  local ran = vim
    .system({ 'sightline', ... }, { cwd = self.cwd, clear_env = true, env = environment, text = true })
    :wait()
  return ran.stdout .. ran.stderr
end

--- Runs the hook of Claude Code for an event of a session, as `agents install` connects it. With `brief`,
--- an agent that ends at once runs it.
function Editor:hook(event, fields, brief)
  local input = vim.json.encode(vim.tbl_extend('keep', fields or {}, { session_id = 's1', cwd = self.cwd }))
  local command = { 'sightline', 'hook', event, '--agent', 'claude', '--checkpoints' }
  if brief then
    input = ('vim.system(%s, { stdin = %q }):wait()'):format(vim.inspect(command), input)
    command = { vim.v.progpath, '-l', '-' }
  end
  local environment = { HOME = self.home, PATH = M.path, LANG = 'C.UTF-8', VIMRUNTIME = vim.env.VIMRUNTIME }
  local ran =
    vim.system(command, { cwd = self.cwd, clear_env = true, env = environment, text = true, stdin = input }):wait()
  return ran.stdout .. ran.stderr
end

--- Plays a turn of an agent that writes files (name to text, or `false` to delete).
function Editor:turn(prompt, files)
  self:hook('UserPromptSubmit', { prompt = prompt })
  for name, text in pairs(files) do
    self:hook('PreToolUse', { tool_name = 'Write', tool_input = { file_path = name } })
    if text then
      M.write(self.cwd .. '/' .. name, text)
    else
      os.remove(self.cwd .. '/' .. name)
    end
  end
  self:hook('Stop')
end

--- Ends it as a person would.
function Editor:quit()
  pcall(self.call, self, 'nvim_command', 'qall!')
  vim.fn.jobwait({ self.channel }, 10000)
end

--- Writes a file.
function M.write(name, text)
  local file = assert(io.open(name, 'w'))
  file:write(text)
  file:close()
end

--- The content of a file; `nil` without one.
function M.read(name)
  local file = io.open(name)
  local text = file and file:read('*a')
  if file then
    file:close()
  end
  return text
end

--- Asserts that a text holds a part.
function M.has(text, part)
  assert(text:find(part, 1, true), ('`%s` is not in:\n%s'):format(part, text))
end

--- Asserts that it does not.
function M.has_not(text, part)
  assert(not text:find(part, 1, true), ('`%s` is in:\n%s'):format(part, text))
end

--- Asserts that two values are equal.
function M.same(found, wanted)
  assert(vim.deep_equal(found, wanted), ('%s\nis not\n%s'):format(vim.inspect(found), vim.inspect(wanted)))
end

local registered = {}

--- Adds a test.
function M.test(name, run)
  table.insert(registered, { name = name, run = run })
end

--- Runs the tests whose names contain `part`. Returns whether all of them passed.
function M.run(part)
  local ran, failed = 0, {}
  for _, one in ipairs(registered) do
    if not part or one.name:find(part, 1, true) then
      local passed, why = xpcall(one.run, debug.traceback)
      ran = ran + 1
      io.stdout:write(('%s: %s\n'):format(passed and 'ok' or 'FAILED', one.name))
      if not passed then
        table.insert(failed, ('%s: %s\n'):format(one.name, why))
      end
    end
  end
  io.stdout:write(table.concat(failed, '\n'), ('%d tests, %d failed\n'):format(ran, #failed))
  return ran > 0 and #failed == 0
end

return M
