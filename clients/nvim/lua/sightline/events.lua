--- Server notifications as `User` autocommands:
---
--- SightlineContext      the editor state has a new revision
--- SightlineCheckpoint   a checkpoint was created
--- SightlineAccessRules  the access rules of a folder changed
--- SightlineBridges      the connected agents changed, or were paused or resumed
--- SightlineMcpServers   an MCP server of agents was started, stopped, called or changed

local buffers = require('sightline.buffers')
local proposals = require('sightline.agents.proposals')

local M = {}

---@param pattern string
---@param data table
function M.emit(pattern, data)
  vim.api.nvim_exec_autocmds('User', { pattern = pattern, modeline = false, data = data })
end

local function forward(pattern)
  return function(_, params, context)
    M.emit(pattern, vim.tbl_extend('force', { client_id = context.client_id }, params or {}))
  end
end

--- Shows a message of the server as those of the plugin, which need no key press.
local function message(_, params)
  vim.cmd('redraw')
  -- `MessageType` counts from errors down, `vim.log.levels` up to them.
  vim.notify(params.message, math.max(vim.log.levels.ERROR + 1 - params.type, vim.log.levels.DEBUG))
end

--- Handles files that another program changed, such as an agent, or a restore by the command line.
---@param params sightline.DidChangeFilesParams
local function files_changed(_, params)
  for _, uri in ipairs(params.uris) do
    local bufnr = buffers.of_path(buffers.normalize(vim.uri_to_fname(uri)))
    if bufnr then
      buffers.changed_on_disk(bufnr)
    end
  end
end

--- Applies an edit of the server. A restore replaces unsaved text with that of the file, so there is nothing to save.
---@param params lsp.ApplyWorkspaceEditParams
local function apply_edit(err, params, context)
  local result = vim.lsp.handlers['workspace/applyEdit'](err, params, context)
  local uris = vim.tbl_keys(params.edit.changes or {})
  for _, change in ipairs(params.edit.documentChanges or {}) do
    uris[#uris + 1] = change.textDocument and change.textDocument.uri
  end
  for _, uri in ipairs(uris) do
    local bufnr = buffers.of_path(buffers.normalize(vim.uri_to_fname(uri)))
    if bufnr and vim.bo[bufnr].modified then
      buffers.reload_same(bufnr)
    end
  end
  return result
end

--- Handlers for the client configuration.
---@type table<string, lsp.Handler>
M.handlers = {
  ['sightline/didChangeContext'] = forward('SightlineContext'),
  ['sightline/didCreateCheckpoint'] = forward('SightlineCheckpoint'),
  ['sightline/didChangeAccessRules'] = forward('SightlineAccessRules'),
  ['sightline/didChangeBridges'] = forward('SightlineBridges'),
  ['sightline/didChangeMcpServers'] = forward('SightlineMcpServers'),
  ['sightline/didChangeFiles'] = files_changed,
  ['sightline/openDiff'] = proposals.handle_open,
  ['sightline/closeDiff'] = proposals.handle_close,
  ['window/showMessage'] = message,
  ['workspace/applyEdit'] = apply_edit,
}

return M
