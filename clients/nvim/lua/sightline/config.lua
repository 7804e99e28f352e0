--- Options of `setup`, all of them optional, and what a wrong one is told.

local M = {}

---@class sightline.Options
---@field cmd? string[]|fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient Command line of the server. Default: `{ "sightline" }`.
---@field root_markers? (string|string[])[] Names that make a folder a project, the most telling first; names in a list count the same.
---@field settings? sightline.Settings Settings of the server.
---@field attach? fun(bufnr: integer): boolean False keeps a buffer, or a terminal, from the server.
---@field terminals? boolean Send terminals and their output. Default: `true`.
---@field debounce_ms? integer Changes of what is on the screen are sent at most this often. Default: `100`.

---@class sightline.Config
---@field cmd string[]|fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
---@field root_markers (string|string[])[]
---@field settings sightline.Settings
---@field attach fun(bufnr: integer): boolean
---@field terminals boolean
---@field debounce_ms integer

---@type sightline.Config
local defaults = {
  cmd = { 'sightline' },
  -- A nested `.clineignore` is a root of its own, because that is where the
  -- server looks for it.
  root_markers = { '.clineignore', { '.git', '.hg', '.svn', '.jj' } },
  settings = {},
  attach = function()
    return true
  end,
  terminals = true,
  debounce_ms = 100,
}

local types = {
  cmd = { 'table', 'function' },
  root_markers = { 'table' },
  settings = { 'table' },
  attach = { 'function' },
  terminals = { 'boolean' },
  debounce_ms = { 'number' },
}

--- The options in force; the defaults until `setup` was called.
---@type sightline.Config
M.current = defaults

--- What is wrong with these options, one short line each.
---@param options table
---@return string[]
function M.problems(options)
  local problems = {}
  for name, value in pairs(options) do
    local wanted = types[name]
    if not wanted then
      table.insert(problems, ('no option `%s`; see :help sightline-setup'):format(name))
    elseif not vim.tbl_contains(wanted, type(value)) then
      local text = 'option `%s` must be a %s, not a %s'
      table.insert(problems, text:format(name, table.concat(wanted, ' or a '), type(value)))
    end
  end
  table.sort(problems)
  return problems
end

--- Puts options into force. A wrong one is left at its default, so that a slip
--- in `init.lua` never costs the whole plugin.
---@param options? sightline.Options
---@return string[] problems
function M.apply(options)
  options = options or {}
  local problems = M.problems(options)
  local config = vim.deepcopy(defaults)
  for name, wanted in pairs(types) do
    local value = options[name]
    if vim.tbl_contains(wanted, type(value)) then
      config[name] = value
    end
  end
  M.current = config
  return problems
end

return M
