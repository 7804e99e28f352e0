--- Options of `setup` and their validation. All options are optional.

local M = {}

---@class sightline.Options
---@field cmd? string[]|fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient Command line of the server. Default: `{ "sightline" }`.
---@field root_markers? (string|string[])[] Names that mark a project folder, by priority. Names in a nested list have the same priority.
---@field settings? sightline.Settings Settings of the server.
---@field attach? fun(bufnr: integer): boolean Returns false to exclude a buffer or terminal.
---@field terminals? boolean Send terminals and their output. Default: `true`.
---@field max_file_size? integer Maximum size of a file whose text is sent, in bytes. Of larger files, only the path is sent. Default: 2 MB.
---@field debounce_ms? integer Minimum interval between updates of the editor state. Default: `100`.

---@class sightline.Config
---@field cmd string[]|fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
---@field root_markers (string|string[])[]
---@field settings sightline.Settings
---@field attach fun(bufnr: integer): boolean
---@field terminals boolean
---@field max_file_size integer
---@field debounce_ms integer

--- Returns the program on the PATH, otherwise the one in `~/.cargo/bin`: the PATH of a desktop
--- session often lacks folders of the shell.
---@return string
local function program()
  local installed = vim.fs.normalize('~/.cargo/bin/sightline')
  local is_on_path = vim.fn.executable('sightline') == 1
  return not is_on_path and vim.fn.executable(installed) == 1 and installed or 'sightline'
end

---@type sightline.Config
local defaults = {
  cmd = { program() },
  -- As on the command line: the rules of a folder below a repository do not make it a project.
  root_markers = { { '.git', '.hg', '.svn', '.jj' }, '.clineignore' },
  settings = {},
  attach = function()
    return true
  end,
  terminals = true,
  max_file_size = 2 * 1024 * 1024,
  debounce_ms = 100,
}

local types = {
  cmd = { 'table', 'function' },
  root_markers = { 'table' },
  settings = { 'table' },
  attach = { 'function' },
  terminals = { 'boolean' },
  max_file_size = { 'number' },
  debounce_ms = { 'number' },
}

--- The current options. The defaults before `setup` is called.
---@type sightline.Config
M.current = defaults

--- Returns one line per invalid option.
---@param options table
---@return string[]
function M.problems(options)
  local problems = {}
  for name, value in pairs(options) do
    local wanted = types[name]
    if not wanted then
      table.insert(problems, ('unknown option `%s`; see :help sightline-setup'):format(name))
    elseif not vim.tbl_contains(wanted, type(value)) then
      local text = 'option `%s` must be a %s, not a %s'
      table.insert(problems, text:format(name, table.concat(wanted, ' or a '), type(value)))
    end
  end
  table.sort(problems)
  return problems
end

--- Applies options. An invalid option keeps its default, so that a mistake in
--- `init.lua` does not disable the plugin.
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
