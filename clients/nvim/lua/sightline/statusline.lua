--- Statusline data, updated by events, so that drawing sends no requests.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local server = require('sightline.server')

local M = {}

---@class sightline.Status
---@field server 'ready'|'starting'|'stopped'
---@field access? 'allowed'|'denied'|'outside' Access of agents to the file.
---@field checkpoint? sightline.Checkpoint Latest checkpoint of the project.

---@type table<integer, 'allowed'|'denied'|'outside'>
local access = {}
---@type table<integer, string?> roots, cached because they require disk access
local roots = {}
---@type table<string, sightline.Checkpoint> by root
local newest = {}

--- Updates the status of the file of a buffer.
---@param bufnr integer
function M.refresh(bufnr)
  if not buffers.is_file(bufnr) then
    return
  end
  local path = buffers.path(bufnr)
  roots[bufnr] = buffers.root_of(path)
  if server.state(roots[bufnr]) ~= 'ready' then
    return
  end
  api.check_access({ paths = { path } }, function(_, result)
    local verdict = result and result.paths[1]
    if verdict and vim.api.nvim_buf_is_valid(bufnr) and access[bufnr] ~= verdict.access then
      access[bufnr] = verdict.access
      vim.cmd('redrawstatus!')
    end
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
  access[bufnr], roots[bufnr] = nil, nil
end

--- Handles a new checkpoint.
---@param checkpoint sightline.Checkpoint
function M.created(checkpoint)
  if checkpoint.purpose ~= 'undo' then
    newest[buffers.normalize(vim.uri_to_fname(checkpoint.root))] = checkpoint
    vim.cmd('redrawstatus!')
  end
end

--- Returns the status of the file and project of a buffer.
---@param bufnr? integer
---@return sightline.Status
function M.status(bufnr)
  bufnr = (bufnr or 0) == 0 and vim.api.nvim_get_current_buf() or bufnr
  local root = roots[bufnr]
  return { server = server.state(root), access = access[bufnr], checkpoint = root and newest[root] }
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
  if status.checkpoint then
    table.insert(parts, os.date('%H:%M', math.floor(status.checkpoint.createdAt / 1000)))
  end
  return table.concat(parts, ' ')
end

return M
