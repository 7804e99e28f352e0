--- Agents that are connected by their IDE protocol.

local buffers = require('sightline.buffers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

---@type table<integer, sightline.DidChangeBridgesParams> by id of the LSP client
local connected = {}

--- The variables that are set for agents in terminals, with their earlier values.
---@type table<string, string|false>
local earlier = {}

--- Handles a change of the connected agents.
---@param client integer id of the LSP client
---@param bridges? sightline.DidChangeBridgesParams `nil` if the client exited
function M.changed(client, bridges)
  connected[client] = bridges
  M.set_environment()
end

--- Sets the variables by which an agent in a terminal finds the server of the current project.
function M.set_environment()
  local wanted = M.of(server.client_id(server.root())).environment or {}
  for name, value in pairs(earlier) do
    if not wanted[name] then
      vim.env[name], earlier[name] = value or nil, nil
    end
  end
  for name, value in pairs(wanted) do
    if earlier[name] == nil then
      earlier[name] = vim.env[name] or false
    end
    vim.env[name] = value
  end
end

--- Returns the agents that are connected to a client.
---@param client? integer id of the LSP client
---@return sightline.DidChangeBridgesParams
function M.of(client)
  return connected[client or 0] or { agents = {}, isPaused = false }
end

--- Describes the connected agents: `connected by IDE protocol: claude-code, Codex (paused)`.
---@param client? integer id of the LSP client
---@return string
function M.describe(client)
  local bridges = M.of(client)
  local names = #bridges.agents > 0 and table.concat(bridges.agents, ', ') or 'no agent'
  return 'connected by IDE protocol: ' .. names .. (bridges.isPaused and ' (paused)' or '')
end

local function report(err)
  -- The server shows what it did.
  if err then
    show.failed(err)
  end
end

--- Pauses or resumes the connections of the project.
function M.pause()
  server.execute('pauseBridges', nil, report)
end

--- Opens the page of the project in a browser.
function M.page()
  server.execute('openPage', nil, report)
end

--- Sends lines of the current file to the connected agents, or the selection, or the file.
---@param first? integer from 1
---@param last? integer
function M.send(first, last)
  local bufnr = vim.api.nvim_get_current_buf()
  if not buffers.is_file(bufnr) then
    return show.say('not a file buffer', vim.log.levels.WARN)
  end
  local range = first and { start = { line = first - 1, character = 0 }, ['end'] = { line = last, character = 0 } }
  local params = { uri = vim.uri_from_fname(buffers.path(bufnr)), range = range }
  server.execute('sendToAgent', params, report, { bufnr = bufnr })
end

return M
