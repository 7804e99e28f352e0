--- Server notifications as `User` autocommands:
---
--- SightlineContext      the editor state has a new revision
--- SightlineCheckpoint   a checkpoint was created
--- SightlineAccessRules  the access rules of a folder changed

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

--- Handlers for the client configuration.
---@type table<string, lsp.Handler>
M.handlers = {
  ['sightline/didChangeContext'] = forward('SightlineContext'),
  ['sightline/didCreateCheckpoint'] = forward('SightlineCheckpoint'),
  ['sightline/didChangeAccessRules'] = forward('SightlineAccessRules'),
}

return M
