--- The servers: one for each project folder, started when one is needed, asked
--- over LSP.
---
--- Whatever answered `initialize` with the capability `experimental.sightline`
--- is one of them, whoever started it and whatever it is called.

local buffers = require('sightline.buffers')
local compat = require('sightline.compat')
local config = require('sightline.config')

local M = {}

---@class sightline.Error
---@field message string What was attempted, what was wrong, what to do.
---@field kind string Stable: `notFound`, `accessDenied`, `conflict`, ..., and `stopped` when there is no server.
---@field code? integer Code of the JSON-RPC error.
---@field data? table Its data.

---@class sightline.Target Which server is asked; that of the current project when empty.
---@field bufnr? integer The one of this buffer.
---@field root? string The one of this folder.

---@class sightline.Server
---@field id integer Id of the LSP client.
---@field root? string Its folder.
---@field ready boolean Was `initialize` answered?
---@field waiting fun(err?: sightline.Error, client?: vim.lsp.Client)[] To be called when it is ready, or never will be.
---@field pending table<table, fun(err: sightline.Error)> Requests without an answer yet.
---@field by_command table<string, boolean> Methods that are only known as commands.
---@field stopping? boolean Were we the ones who ended it?

---@type table<string, sightline.Server> by root, `''` without one
local servers = {}

---@type integer[] when servers ended by themselves, in seconds
local crashes = {}

--- A server that ends this often within a minute is left alone.
local MOST_CRASHES = 3

local METHOD_NOT_FOUND = -32601

--- Called with each client that is ready, and with the id of each that ended.
M.on_ready = function(_) end
M.on_exit = function(_) end
--- Called before a request is sent, so that it sees the editor as it is.
M.before_request = function(_) end

---@param message string
---@param kind string
---@return sightline.Error
local function problem(message, kind)
  return { message = message, kind = kind }
end

--- What the server announced of itself, if it is one of ours.
---@param client vim.lsp.Client
---@return { protocolVersion: integer, methods: string[] }?
function M.announced(client)
  return vim.tbl_get(client.server_capabilities or {}, 'experimental', 'sightline')
end

--- The folders of a client.
---@param client vim.lsp.Client
---@return string[]
function M.roots(client)
  return vim.tbl_map(function(folder)
    return buffers.normalize(vim.uri_to_fname(folder.uri))
  end, client.workspace_folders or {})
end

--- Every server that is ready.
---@return vim.lsp.Client[]
function M.clients()
  return vim.tbl_filter(function(client)
    return M.announced(client) ~= nil and not compat.is_stopped(client)
  end, vim.lsp.get_clients())
end

--- The server of the innermost folder a path is in.
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

--- How the server of a folder fares.
---@param root? string
---@return 'ready'|'starting'|'stopped'
function M.state(root)
  local server = servers[root or '']
  if not server then
    return 'stopped'
  end
  return server.ready and 'ready' or 'starting'
end

--- Attaches a buffer to every server whose folder it is in: an agent at work in
--- an outer folder must see unsaved text of an inner one too.
---@param bufnr integer
local function attach_everywhere(bufnr)
  local path = buffers.path(bufnr)
  for _, client in ipairs(M.clients()) do
    for _, root in ipairs(M.roots(client)) do
      if buffers.is_below(path, root) then
        vim.lsp.buf_attach_client(bufnr, client.id)
      end
    end
  end
end

--- A client has answered `initialize`.
---@param client vim.lsp.Client
function M.ready(client)
  local server
  for _, one in pairs(servers) do
    server = one.id == client.id and one or server
  end
  if not M.announced(client) then
    if server then
      local text = 'the program `%s` started is no Sightline server'
      M.fail(server, problem(text:format(tostring(vim.tbl_get(config.current, 'cmd', 1))), 'unsupported'))
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

--- A server that will answer nothing any more: tells all who wait.
---@param server sightline.Server
---@param err sightline.Error
function M.fail(server, err)
  for key, one in pairs(servers) do
    if one == server then
      servers[key] = nil
    end
  end
  local waiting, pending = server.waiting, server.pending
  server.waiting, server.pending = {}, {}
  for _, callback in ipairs(waiting) do
    callback(err)
  end
  for _, callback in pairs(pending) do
    callback(err)
  end
end

---@param server sightline.Server
---@param code integer
---@param signal integer
local function ended(server, code, signal)
  M.on_exit(server.id)
  M.fail(server, problem('the Sightline server ended; see :checkhealth sightline', 'stopped'))
  if server.stopping or (code == 0 and signal == 0) or vim.v.exiting ~= vim.NIL then
    return
  end
  -- Neovim itself tells of it.
  table.insert(crashes, os.time())
end

--- Why no server can be started, if so.
---@return string?
function M.hindrance()
  local cmd = config.current.cmd
  if type(cmd) == 'table' and vim.fn.executable(cmd[1] or '') == 0 then
    return ('`%s` is not on the search path; install it with `cargo install --path server/lsp`'):format(cmd[1] or '')
  end
  while crashes[1] and crashes[1] < os.time() - 60 do
    table.remove(crashes, 1)
  end
  if #crashes >= MOST_CRASHES then
    return 'the server ended by itself again and again; `:Sightline restart` tries once more'
  end
end

--- What a client of ours is started with.
---@param root? string
---@return vim.lsp.ClientConfig
local function client_config(root)
  local settings = config.current.settings
  -- The events this plugin passes on come only when they are asked for.
  local options = vim.tbl_extend('keep', vim.deepcopy(settings), { notifications = true })
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { sightline = { protocolVersion = 1 } }
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
      -- After Neovim has attached the buffers that waited.
      vim.schedule(function()
        M.ready(client)
      end)
    end,
  }
end

--- The server of a folder, started if there is none.
---@param root? string
---@return sightline.Server?
---@return sightline.Error?
function M.ensure(root)
  local known = servers[root or '']
  if known then
    return known
  end
  ---@type sightline.Server
  local server = { id = 0, root = root, ready = false, waiting = {}, pending = {}, by_command = {} }
  for _, client in ipairs(M.clients()) do
    if vim.tbl_contains(M.roots(client), root) then
      server.id, server.ready = client.id, true
      servers[root or ''] = server
      return server
    end
  end
  local hindrance = M.hindrance()
  if hindrance then
    return nil, problem(hindrance, 'stopped')
  end
  local options = client_config(root)
  options.on_exit = function(code, signal)
    vim.schedule(function()
      ended(server, code, signal)
    end)
  end
  local started, id = pcall(compat.start, options)
  if not started or not id then
    return nil, problem('the server could not be started: ' .. tostring(id), 'stopped')
  end
  server.id = id
  servers[root or ''] = server
  return server
end

local told = {}

--- Attaches a buffer to the server of its project, and starts that if need be.
---@param bufnr integer
function M.attach(bufnr)
  if not buffers.is_file(bufnr) then
    return
  end
  local server, err = M.ensure(buffers.root_of(buffers.path(bufnr)))
  if server then
    vim.lsp.buf_attach_client(bufnr, server.id)
    attach_everywhere(bufnr)
    return
  end
  -- Once, not with every file.
  if err and not told[err.message] then
    told[err.message] = true
    -- Short: what does not fit on one line stops people until they press a key.
    vim.notify('sightline: no server could be started; see :checkhealth sightline', vim.log.levels.WARN)
  end
end

--- The file the user is or was in: a chat or a picker in front does not change
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

--- The folder a target means.
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

--- Calls back with the client of a target as soon as it is ready.
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
    M.fail(server, problem('the Sightline server ended', 'stopped'))
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

--- Asks the server of a target. A method it does not know is tried as the command
--- of the same name, and remembered as one.
---
--- The callback is called exactly once: with an answer, an error, or
--- `kind = "stopped"` when the server ends first, `"cancelled"` when the
--- returned function was called first.
---@param method string without `sightline/`
---@param params? table
---@param callback fun(err?: sightline.Error, result?: any)
---@param target? sightline.Target
---@return fun() cancel
function M.request(method, params, callback, target)
  local done, cancel_sent = false, nil
  local function finish(err, result)
    if not done then
      done = true
      callback(err, result)
    end
  end

  with_client(target, function(err, client, server)
    if not client or not server then
      return finish(err or problem('there is no server', 'stopped'))
    end
    if done then
      return
    end
    M.before_request(client)

    local key = {}
    server.pending[key] = finish
    local function send(as_command)
      local name, arguments = 'sightline/' .. method, params or vim.empty_dict()
      if as_command then
        name, arguments = 'workspace/executeCommand', { command = 'sightline.' .. method, arguments = { arguments } }
      end
      local sent, request = compat.request(client, name, arguments, function(failed, result)
        if failed and failed.code == METHOD_NOT_FOUND and not as_command then
          server.by_command[method] = true
          return send(true)
        end
        server.pending[key] = nil
        if failed and as_command and vim.tbl_get(failed, 'data', 'kind') == nil then
          local text = 'the server does not know `%s` (%s); a newer one may'
          return finish({ message = text:format(method, failed.message), kind = 'unsupported', code = failed.code })
        end
        finish(failed and from_response(failed), result)
      end)
      if not sent then
        server.pending[key] = nil
        return finish(problem('the Sightline server ended', 'stopped'))
      end
      cancel_sent = function()
        server.pending[key] = nil
        if request then
          compat.cancel(client, request)
        end
      end
    end
    send(server.by_command[method])
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

--- Ends every server this plugin started; `callback` when all are gone.
---@param callback? fun()
function M.stop(callback)
  crashes, told = {}, {}
  local left = {}
  for _, server in pairs(servers) do
    server.stopping = true
    local client = vim.lsp.get_client_by_id(server.id)
    if client then
      compat.stop(client)
      table.insert(left, client)
    end
  end
  local timer = assert(vim.uv.new_timer())
  timer:start(0, 20, function()
    vim.schedule(function()
      left = vim.tbl_filter(function(client)
        return not compat.is_stopped(client)
      end, left)
      if #left > 0 or timer:is_closing() then
        return
      end
      timer:close()
      for _, server in pairs(vim.tbl_extend('force', {}, servers)) do
        M.fail(server, problem('the Sightline server was stopped', 'stopped'))
      end
      if callback then
        callback()
      end
    end)
  end)
end

return M
