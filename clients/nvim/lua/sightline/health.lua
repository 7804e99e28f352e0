--- `:checkhealth sightline`.

local agents = require('sightline.agents')
local config = require('sightline.config')
local server = require('sightline.server')

local M = {}

--- Runs the server program with arguments.
---@return integer code
---@return string output
local function run(...)
  local done, process = pcall(vim.system, { config.current.cmd[1], ... }, { text = true, timeout = 10000 })
  if not done then
    return -1, tostring(process)
  end
  local result = process:wait()
  return result.code, vim.trim((result.stdout or '') .. (result.stderr or ''))
end

local function check_program()
  local cmd = config.current.cmd
  if type(cmd) ~= 'table' then
    return vim.health.info('`cmd` is a function, so the program is not checked')
  end
  local path = vim.fn.exepath(cmd[1] or '')
  if path == '' then
    return vim.health.error(('`%s` is not on the PATH'):format(cmd[1] or ''), {
      'Install the server, in a clone of the repository: cargo install --locked --path server/sightline',
      'Or set its path: require("sightline").setup({ cmd = { "/path/to/sightline" } })',
    })
  end
  local code, version = run('--version')
  if code ~= 0 then
    return vim.health.error(('`%s --version` failed: %s'):format(path, version))
  end
  vim.health.ok(('%s (%s)'):format(version, path))
  local outcome, report = run('doctor')
  local say = outcome == 0 and vim.health.info or vim.health.warn
  say('sightline doctor:\n' .. report)
end

--- Lists the agents that ask this server.
local function check_agents()
  local cmd = config.current.cmd
  if type(cmd) ~= 'table' or vim.fn.exepath(cmd[1] or '') == '' then
    return vim.health.info('the program is needed to list them')
  end
  local code, report = run('agents', 'status')
  local say = code == -1 and vim.health.warn or vim.health.info
  say('sightline agents status:\n' .. report)
end

local function check_client(client)
  local announced = server.announced(client)
  local roots = table.concat(server.roots(client), ', ')
  local attached = vim.tbl_count(client.attached_buffers or {})
  local text = '%s: protocol %s, attached buffers: %d, position encoding %s'
  roots = roots ~= '' and roots or 'no folder'
  vim.health.ok(text:format(roots, tostring(announced.protocolVersion), attached, client.offset_encoding))
  vim.health.info(agents.describe(client.id))
end

function M.check()
  vim.health.start('Neovim')
  if vim.fn.has('nvim-0.10') == 1 then
    vim.health.ok('Neovim ' .. tostring(vim.version()))
  else
    vim.health.error('Neovim 0.10 or later is required')
  end
  if vim.fn.exists('#sightline') == 1 then
    vim.health.ok('setup was called')
  else
    local is_enabled = vim.lsp.is_enabled and vim.lsp.is_enabled('sightline')
    local report = is_enabled and vim.health.warn or vim.health.error
    report(
      'setup was not called: windows, tabs and terminals are not sent',
      { 'Add to init.lua: require("sightline").setup({})' }
    )
  end

  vim.health.start('Program')
  check_program()

  vim.health.start('Agents')
  check_agents()

  vim.health.start('Servers')
  local clients = server.clients()
  for _, client in ipairs(clients) do
    check_client(client)
  end
  if #clients == 0 then
    vim.health.info('no server is running; opening a file of a project starts one')
  end
  local problem = server.start_problem()
  if problem then
    vim.health.error(problem, { 'See ' .. vim.lsp.get_log_path() })
  end
end

return M
