--- What the server tells of its own accord, as `User` autocommands:
---
---   SightlineContext      the editor's state has a new revision
---   SightlineCheckpoint   a checkpoint was created, by whomever
---   SightlineAccessRules  the rules of a folder changed

local M = {}

---@param pattern string
---@param data table
function M.emit(pattern, data)
  vim.api.nvim_exec_autocmds('User', { pattern = pattern, modeline = false, data = data })
end

local function passed_on(pattern)
  return function(_, params, context)
    M.emit(pattern, vim.tbl_extend('force', { client_id = context.client_id }, params or {}))
  end
end

--- Handlers for the client's configuration.
---@type table<string, lsp.Handler>
M.handlers = {
  ['sightline/didChangeContext'] = passed_on('SightlineContext'),
  ['sightline/didCreateCheckpoint'] = passed_on('SightlineCheckpoint'),
  ['sightline/didChangeAccessRules'] = passed_on('SightlineAccessRules'),
}

return M
