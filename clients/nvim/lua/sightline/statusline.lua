--- Statusline data, updated by events, so that drawing sends no requests.

local agents = require('sightline.agents')
local api = require('sightline.api')
local buffers = require('sightline.buffers')
local server = require('sightline.server')

local M = {}

---@class sightline.Status
---@field server 'ready'|'starting'|'stopped'
---@field access? 'allowed'|'denied'|'outside' Access of agents to the file.
---@field checkpoint? sightline.Checkpoint Latest checkpoint of the project.
---@field agents string[] Names of the agents that are connected to the project.
---@field paused boolean Whether they get no editor state.

--- Roots are cached because they require disk access.
---@type table<integer, { root?: string, access?: 'allowed'|'denied'|'outside' }> by buffer
local files = {}
---@type table<string, sightline.Checkpoint> by root
local newest = {}

--- Sets `b:sightline_status` of all known files.
function M.publish()
  for bufnr in pairs(files) do
    local text = M.component(bufnr)
    if vim.api.nvim_buf_is_valid(bufnr) and vim.b[bufnr].sightline_status ~= text then
      vim.b[bufnr].sightline_status = text
      vim.cmd('redrawstatus!')
    end
  end
end

--- Updates the status of the file of a buffer.
---@param bufnr integer
function M.refresh(bufnr)
  if not buffers.is_file(bufnr) then
    return
  end
  local path = buffers.path(bufnr)
  local file = files[bufnr] or {}
  files[bufnr], file.root = file, buffers.root_of(path)
  M.publish()
  if server.state(file.root) ~= 'ready' then
    return
  end
  api.check_access({ paths = { path } }, function(_, result)
    file.access = result and result.paths[1] and result.paths[1].access or file.access
    M.publish()
  end, { bufnr = bufnr })
end

--- Updates the status of all visible files.
function M.refresh_all()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    M.refresh(vim.api.nvim_win_get_buf(window))
  end
end

---@param bufnr integer
function M.forget(bufnr)
  files[bufnr] = nil
end

--- Handles a new checkpoint.
---@param checkpoint sightline.Checkpoint
function M.created(checkpoint)
  if checkpoint.kind ~= 'undoPoint' then
    newest[buffers.normalize(vim.uri_to_fname(checkpoint.root))] = checkpoint
    M.publish()
  end
end

--- Returns the status of the file and project of a buffer.
---@param bufnr? integer
---@return sightline.Status
function M.status(bufnr)
  bufnr = (bufnr or 0) == 0 and vim.api.nvim_get_current_buf() or bufnr
  local file = files[bufnr] or {}
  local bridges = agents.of(server.client_id(file.root))
  return {
    server = server.state(file.root),
    access = file.access,
    checkpoint = file.root and newest[file.root],
    agents = bridges.agents,
    paused = bridges.isPaused,
  }
end

--- Returns a statusline component: `Sightline` and notable states.
---@param bufnr? integer
---@return string
function M.component(bufnr)
  local status = M.status(bufnr)
  if status.server == 'stopped' then
    return ''
  elseif status.server == 'starting' then
    return 'Sightline ...'
  end
  local parts = { 'Sightline' }
  if status.access == 'denied' then
    table.insert(parts, 'hidden')
  end
  if #status.agents > 0 then
    table.insert(parts, table.concat(status.agents, ', '))
  end
  if status.paused then
    table.insert(parts, 'paused')
  end
  if status.checkpoint then
    table.insert(parts, os.date('%H:%M', math.floor(status.checkpoint.createdAt / 1000)))
  end
  return table.concat(parts, ' ')
end

return M
