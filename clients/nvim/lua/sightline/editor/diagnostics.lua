--- Sends the diagnostics of files to the servers.

local buffers = require('sightline.buffers')
local compat = require('sightline.compat')

local M = {}

--- Maximum diagnostics of a file; the server keeps no more.
local MAX_DIAGNOSTICS = 200

---@type table<integer, { uri: string, version: integer, gone?: boolean }> files with diagnostics, now or earlier, by buffer
local known = {}
---@type table<integer, table<integer, integer>> version sent, by client and buffer
local sent = {}

--- Notes that the diagnostics of a buffer changed.
---@param bufnr integer
function M.changed(bufnr)
  if vim.api.nvim_buf_is_valid(bufnr) and buffers.is_file(bufnr) then
    local version = known[bufnr] and known[bufnr].version or 0
    known[bufnr] = { uri = vim.uri_from_fname(buffers.path(bufnr)), version = version + 1 }
  end
end

--- Returns the diagnostics of a buffer as in LSP, most severe first.
---@param bufnr integer
---@param position fun(bufnr: integer, row: integer, column: integer): sightline.Position
---@return sightline.Diagnostic[]
local function collect(bufnr, position)
  local found = vim.api.nvim_buf_is_valid(bufnr) and vim.diagnostic.get(bufnr) or {}
  table.sort(found, function(a, b)
    local x, y = a.severity or 1, b.severity or 1
    return x < y or (x == y and a.lnum < b.lnum)
  end)
  return vim.tbl_map(function(one)
    return {
      range = {
        start = position(bufnr, one.lnum, one.col or 0),
        ['end'] = position(bufnr, one.end_lnum or one.lnum, one.end_col or one.col or 0),
      },
      severity = one.severity,
      code = one.code,
      source = one.source,
      message = one.message,
    }
  end, vim.list_slice(found, 1, MAX_DIAGNOSTICS))
end

--- Sends what changed to a client.
---@param client vim.lsp.Client
---@param position fun(bufnr: integer, row: integer, column: integer): sightline.Position
function M.send(client, position)
  if not sent[client.id] then
    sent[client.id] = {}
    -- Those that were found before the plugin was set up.
    for _, one in ipairs(vim.diagnostic.get()) do
      if not known[one.bufnr] then
        M.changed(one.bufnr)
      end
    end
  end
  local versions = sent[client.id]
  for bufnr, file in pairs(known) do
    if not vim.api.nvim_buf_is_valid(bufnr) and not file.gone then
      file.gone, file.version = true, file.version + 1
    end
    if versions[bufnr] ~= file.version then
      local params = { uri = file.uri, diagnostics = collect(bufnr, position) }
      if compat.notify(client, 'sightline/didChangeDiagnostics', params) then
        versions[bufnr] = file.version
      end
    end
  end
end

--- Forgets a client that exited.
---@param id integer
function M.forget(id)
  sent[id] = nil
end

return M
