--- Agents that are connected by their IDE protocol.

local buffers = require('sightline.buffers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

---@type table<integer, sightline.DidChangeBridgesParams> by id of the LSP client
local connected = {}

--- Handles a change of the connected agents.
---@param client integer id of the LSP client
---@param bridges? sightline.DidChangeBridgesParams `nil` if the client exited
function M.changed(client, bridges)
  connected[client] = bridges
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
  server.request('pauseBridges', nil, report)
end

--- Opens the page of the project in a browser.
function M.page()
  server.request('openPage', nil, report)
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
  server.request('sendToAgent', params, report, { bufnr = bufnr })
end

return M
