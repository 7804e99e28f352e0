--- Servers: one per project folder, and one without a folder for all other files,
--- started on demand.
---
--- Every LSP client whose server announces the capability `experimental.sightline` is
--- used, regardless of its name and of who started it.

local buffers = require('sightline.buffers')
local compat = require('sightline.compat')
local config = require('sightline.config')

local M = {}

---@class sightline.Error
---@field message string Failed operation, cause and fix.
---@field kind string Stable kind: `notFound`, `accessDenied`, `conflict`, ..., and `stopped` without a server.
---@field code? integer JSON-RPC error code.
---@field data? table JSON-RPC error data.

---@class sightline.Target Selects a server. Defaults to the server of the current project.
---@field bufnr? integer Server of this buffer.
---@field root? string Server of this folder.

---@class sightline.Server
---@field id integer Id of the LSP client.
---@field root? string Folder of the server.
---@field ready boolean Whether `initialize` is complete.
---@field waiting fun(err?: sightline.Error, client?: vim.lsp.Client)[] Callbacks to call when the server is ready or has failed.
---@field pending table<table, fun(err: sightline.Error)> Pending requests.
---@field stopping? boolean Whether the plugin stopped the server.
---@field refused? sightline.Error Why the server is not used, although it runs.

---@type table<string, sightline.Server> by root, `''` without one
local servers = {}

--- Whether the user stopped the servers.
local stopped = false

---@type integer[] times of crashes, in seconds
local crashes = {}

--- Number of crashes within a minute after which a server is not restarted.
local MAX_CRASHES = 3

--- Version of the protocol that the plugin speaks.
local PROTOCOL = 1

--- Called with each client that becomes ready, and with the id of each that exits.
M.on_ready = function(_) end
M.on_exit = function(_) end
--- Called before each request, to send the current editor state.
M.before_request = function(_) end

---@param message string
---@param kind string
---@return sightline.Error
local function problem(message, kind)
  return { message = message, kind = kind }
end

--- Returns the announced capability, or `nil` if the server is not Sightline, or of another protocol.
---@param client vim.lsp.Client
---@return { protocolVersion: integer, methods: string[] }?
function M.announced(client)
  local announced = vim.tbl_get(client.server_capabilities or {}, 'experimental', 'sightline')
  return announced and announced.protocolVersion == PROTOCOL and announced or nil
end

--- Returns the folders of a client.
---@param client vim.lsp.Client
---@return string[]
function M.roots(client)
  return vim.tbl_map(function(folder)
    return buffers.normalize(vim.uri_to_fname(folder.uri))
  end, client.workspace_folders or {})
end

--- Returns the clients of all servers that are ready.
---@return vim.lsp.Client[]
function M.clients()
  return vim.tbl_filter(function(client)
    return M.announced(client) ~= nil and not compat.is_stopped(client)
  end, vim.lsp.get_clients())
end

--- Returns the server of the innermost folder that contains a path.
---@param path string
---@return vim.lsp.Client?
function M.of_path(path)
  local best, depth = nil, -1
  for _, client in ipairs(M.clients()) do
    for _, root in ipairs(M.roots(client)) do
      if buffers.is_below(path, root) and #root > depth then
        best, depth = client, #root
      end
    end
  end
  return best
end

--- Returns the state of the server of a folder.
---@param root? string
---@return 'ready'|'starting'|'stopped'
function M.state(root)
  local server = servers[root or '']
  if not server then
    return 'stopped'
  end
  return server.ready and 'ready' or server.refused and 'stopped' or 'starting'
end

--- Returns the id of the LSP client of a folder.
---@param root? string
---@return integer?
function M.client_id(root)
  local server = servers[root or '']
  return server and server.id
end

--- Attaches a buffer to every server whose folder contains it, so that a server of an
--- outer folder also gets unsaved text of an inner one.
---@param bufnr integer
local function attach_everywhere(bufnr)
  if buffers.is_large(bufnr) then
    return
  end
  local path = buffers.path(bufnr)
  for _, client in ipairs(M.clients()) do
    for _, root in ipairs(M.roots(client)) do
      if buffers.is_below(path, root) then
        vim.lsp.buf_attach_client(bufnr, client.id)
      end
    end
  end
end

--- Fails all waiting and pending callbacks of a server.
---@param server sightline.Server
---@param err sightline.Error
local function fail_all(server, err)
  local waiting, pending = server.waiting, server.pending
  server.waiting, server.pending = {}, {}
  for _, callback in ipairs(waiting) do
    callback(err)
  end
  for _, callback in pairs(pending) do
    callback(err)
  end
end

--- Handles a client that has completed `initialize`.
---@param client vim.lsp.Client
function M.ready(client)
  local server
  for _, one in pairs(servers) do
    server = one.id == client.id and one or server
  end
  if not M.announced(client) then
    if server then
      local text = '`%s` is not a Sightline server with protocol %d; update it or the plugin'
      -- Neovim would use its client again for the next request.
      server.refused = problem(text:format(tostring(vim.tbl_get(config.current, 'cmd', 1)), PROTOCOL), 'unsupported')
      fail_all(server, server.refused)
    end
    return
  end
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if buffers.is_file(bufnr) then
      attach_everywhere(bufnr)
    end
  end
  if server then
    server.ready = true
  end
  M.on_ready(client)
  if not server then
    return
  end
  local waiting = server.waiting
  server.waiting = {}
  for _, callback in ipairs(waiting) do
    callback(nil, client)
  end
end

--- Removes a server and fails all its waiting and pending callbacks.
---@param server sightline.Server
---@param err sightline.Error
function M.fail(server, err)
  if servers[server.root or ''] == server then
    servers[server.root or ''] = nil
  end
  fail_all(server, err)
end

--- Restarts a server that crashed, however it was started: agents use its bridges and the unsaved
--- text even if the user opens no other file.
---@param id integer
---@param code integer
---@param signal integer
local function handle_exit(id, code, signal)
  M.on_exit(id)
  local exited = vim.tbl_filter(function(server)
    return server.id == id
  end, vim.tbl_values(servers))
  local crashed = (code ~= 0 or signal ~= 0) and vim.v.exiting == vim.NIL
  for _, server in ipairs(exited) do
    crashed = crashed and not server.stopping
    M.fail(server, problem('the Sightline server exited; see :checkhealth sightline', 'stopped'))
  end
  if not crashed then
    return
  end
  -- Neovim reports the exit itself.
  table.insert(crashes, os.time())
  for _, server in ipairs(exited) do
    M.ensure(server.root)
  end
  M.attach_all()
end

--- Returns the reason why no server can be started, if any.
---@return string?
function M.start_problem()
  if stopped then
    return 'the servers are stopped; run `:Sightline restart` to start them'
  end
  local cmd = config.current.cmd
  if type(cmd) == 'table' and vim.fn.executable(cmd[1] or '') == 0 then
    return ('`%s` is not on the PATH; install it with `cargo install --locked --path server/sightline` in a clone of the repository'):format(
      cmd[1] or ''
    )
  end
  while crashes[1] and crashes[1] < os.time() - 60 do
    table.remove(crashes, 1)
  end
  if #crashes >= MAX_CRASHES then
    return 'the server crashed repeatedly; run `:Sightline restart` to try again'
  end
end

--- Returns the configuration of a client.
---@param root? string
---@return vim.lsp.ClientConfig
function M.client_config(root)
  local settings = config.current.settings
  -- The server sends notifications only on request.
  local options = vim.tbl_extend('keep', vim.deepcopy(settings), { notifications = true })
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { sightline = { protocolVersion = 1, openDiff = true } }
  return {
    name = 'sightline',
    cmd = config.current.cmd,
    root_dir = root,
    workspace_folders = root and { { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) } } or nil,
    capabilities = capabilities,
    init_options = options,
    settings = { sightline = options },
    get_language_id = function(_, filetype)
      return filetype ~= '' and filetype or 'plaintext'
    end,
    handlers = require('sightline.events').handlers,
    on_init = function(client)
      -- Scheduled after Neovim has attached waiting buffers.
      vim.schedule(function()
        M.ready(client)
      end)
    end,
    on_exit = function(code, signal, id)
      vim.schedule(function()
        handle_exit(id, code, signal)
      end)
    end,
  }
end

--- Returns the server of a folder. Starts it if necessary.
---@param root? string
---@return sightline.Server?
---@return sightline.Error?
function M.ensure(root)
  local known = servers[root or '']
  if known then
    return not known.refused and known or nil, known.refused
  end
  ---@type sightline.Server
  local server = { id = 0, root = root, ready = false, waiting = {}, pending = {} }
  for _, client in ipairs(M.clients()) do
    local roots = M.roots(client)
    if vim.tbl_contains(roots, root) or (not root and #roots == 0) then
      server.id, server.ready = client.id, true
      servers[root or ''] = server
      return server
    end
  end
  local reason = M.start_problem()
  if reason then
    return nil, problem(reason, 'stopped')
  end
  local started, id = pcall(compat.start, M.client_config(root))
  if not started or not id then
    return nil, problem('cannot start the server: ' .. tostring(id), 'stopped')
  end
  server.id = id
  servers[root or ''] = server
  return server
end

local reported = {}

--- Attaches a buffer to the server of its project. Starts the server if necessary.
---@param bufnr integer
function M.attach(bufnr)
  if not buffers.is_file(bufnr) then
    return
  end
  local server, err = M.ensure(buffers.root_of(buffers.path(bufnr)))
  if server then
    if not buffers.is_large(bufnr) then
      vim.lsp.buf_attach_client(bufnr, server.id)
    end
    attach_everywhere(bufnr)
    return
  end
  -- Report the problem once, not for every file.
  if err and not stopped and not reported[err.message] then
    reported[err.message] = true
    -- Keep it short: a message longer than a line requires a key press.
    vim.notify('sightline: cannot start the server; see :checkhealth sightline', vim.log.levels.WARN)
  end
end

--- Attaches all loaded files. Starts the servers of their projects if necessary.
function M.attach_all()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    M.attach(bufnr)
  end
end

--- Returns the current or last used file, so that a chat or picker does not change
--- the project.
---@return integer?
local function last_file()
  local current = vim.api.nvim_get_current_buf()
  if buffers.is_file(current) then
    return current
  end
  local files = vim.tbl_filter(function(info)
    return buffers.is_file(info.bufnr)
  end, vim.fn.getbufinfo({ buflisted = 1, bufloaded = 1 }))
  table.sort(files, function(a, b)
    return a.lastused > b.lastused
  end)
  return files[1] and files[1].bufnr
end

--- Returns the folder of a target.
---@param target? sightline.Target
---@return string?
function M.root(target)
  target = target or {}
  if target.root then
    return buffers.normalize(vim.fn.fnamemodify(target.root, ':p'))
  end
  local bufnr = target.bufnr or last_file()
  if bufnr == 0 then
    bufnr = vim.api.nvim_get_current_buf()
  end
  local named = bufnr and vim.api.nvim_buf_get_name(bufnr) ~= ''
  return buffers.root_of(named and buffers.path(bufnr) or buffers.normalize(vim.fn.getcwd()))
end

--- Calls back with the client of a target when it is ready.
---@param target? sightline.Target
---@param callback fun(err?: sightline.Error, client?: vim.lsp.Client, server?: sightline.Server)
local function with_client(target, callback)
  local server, err = M.ensure(M.root(target))
  if not server then
    return callback(err)
  end
  if not server.ready then
    table.insert(server.waiting, function(failed, client)
      callback(failed, client, server)
    end)
    return
  end
  local client = vim.lsp.get_client_by_id(server.id)
  if not client or compat.is_stopped(client) then
    M.fail(server, problem('the Sightline server exited', 'stopped'))
    return with_client(target, callback)
  end
  callback(nil, client, server)
end

---@param err lsp.ResponseError
---@return sightline.Error
local function from_response(err)
  local data = type(err.data) == 'table' and err.data or nil
  return { message = err.message, kind = data and data.kind or 'unsupported', code = err.code, data = data }
end

--- Sends a message to the server of a target.
---@param name string
---@param params table
---@param callback fun(err?: sightline.Error, result?: any)
---@param target? sightline.Target
---@return fun() cancel
local function call(name, params, callback, target)
  local done, cancel_sent = false, nil
  local function finish(err, result)
    if not done then
      done = true
      callback(err, result)
    end
  end

  with_client(target, function(err, client, server)
    if not client or not server then
      return finish(err or problem('no server is running', 'stopped'))
    end
    if done then
      return
    end
    M.before_request(client)

    local key = {}
    server.pending[key] = finish
    local sent, request = compat.request(client, name, params, function(failed, result)
      server.pending[key] = nil
      finish(failed and from_response(failed), result)
    end)
    if not sent then
      server.pending[key] = nil
      return finish(problem('the Sightline server exited', 'stopped'))
    end
    cancel_sent = function()
      server.pending[key] = nil
      if request then
        compat.cancel(client, request)
      end
    end
  end)

  return function()
    if done then
      return
    end
    if cancel_sent then
      cancel_sent()
    end
    finish(problem('the request was cancelled', 'cancelled'))
  end
end

--- Sends a request to the server of a target.
---
--- The callback is called exactly once: with a result or an error. The error kind is
--- `"stopped"` if the server exits first, and `"cancelled"` if the returned function
--- is called first.
---@param method string without `sightline/`
---@param params? table
---@param callback fun(err?: sightline.Error, result?: any)
---@param target? sightline.Target
---@return fun() cancel
function M.request(method, params, callback, target)
  return call('sightline/' .. method, params or vim.empty_dict(), callback, target)
end

--- Runs a command of the server of a target, which shows what it did.
---@param name string without `sightline.`
---@param argument? table
---@param callback fun(err?: sightline.Error, result?: any)
---@param target? sightline.Target
function M.execute(name, argument, callback, target)
  local params = { command = 'sightline.' .. name, arguments = { argument or vim.empty_dict() } }
  call('workspace/executeCommand', params, callback, target)
end

--- Stops every server started by the plugin. No server starts until `restart`.
---@param callback? fun() called when all have exited
function M.stop(callback)
  stopped, crashes, reported = true, {}, {}
  local left = {}
  for _, server in pairs(servers) do
    server.stopping = true
    local client = vim.lsp.get_client_by_id(server.id)
    if client then
      compat.stop(client)
      table.insert(left, client)
    end
  end
  -- Clients that others started do not report their exit.
  local function finish()
    if not vim.iter(left):all(compat.is_stopped) then
      return vim.defer_fn(finish, 20)
    end
    for _, server in pairs(vim.tbl_extend('force', {}, servers)) do
      M.fail(server, problem('the Sightline server was stopped', 'stopped'))
    end
    if callback then
      callback()
    end
  end
  vim.schedule(finish)
end

--- Restarts the servers of all loaded files.
function M.restart()
  M.stop(function()
    stopped = false
    M.attach_all()
  end)
end

return M
