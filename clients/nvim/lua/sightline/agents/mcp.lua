--- Lists the MCP servers that agents get, with keys to control them.

local api = require('sightline.api')
local pickers = require('sightline.checkpoints.pickers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

local GROUPS = {
  ready = 'SightlineAdded',
  starting = 'SightlineAdded',
  untrusted = 'WarningMsg',
  changed = 'WarningMsg',
  failed = 'ErrorMsg',
  disabled = 'SightlineFolder',
}

---@param one sightline.McpServer
---@return (string|string[])[]
local function parts(one)
  return {
    { ('%-20s  '):format(one.name), 'SightlineName' },
    { ('%-9s'):format(one.state), GROUPS[one.state] },
    ('  %s, %s'):format(show.count(#one.tools, 'tool'), show.count(one.calls, 'call')),
    one.errors > 0 and { (', %s'):format(show.count(one.errors, 'error')), 'WarningMsg' } or '',
    { '  ' .. (one.reason or one.source), 'SightlineFolder' },
  }
end

---@param one sightline.McpServer
---@return string[]
local function details(one)
  local lines = {
    'command:  ' .. table.concat(one.command, ' '),
    'source:   ' .. one.source,
    'state:    ' .. one.state .. (one.reason and ': ' .. one.reason or ''),
  }
  if #one.env > 0 then
    table.insert(lines, 'variables: ' .. table.concat(one.env, ', '))
  end
  if #one.ignoredFields > 0 then
    table.insert(lines, 'ignored:  ' .. table.concat(one.ignoredFields, ', '))
  end
  table.insert(lines, '')
  for _, tool in ipairs(one.tools) do
    table.insert(lines, ('%s%s'):format(tool.exposedAs or tool.name, tool.enabled == false and '  (not offered)' or ''))
  end
  return lines
end

--- Opens the list.
function M.open()
  local target = { root = server.root() }
  local servers, window = {}, nil

  local function refresh()
    api.list_mcp_servers({}, function(err, result)
      if not result then
        return show.failed(err)
      elseif #result == 0 then
        return show.say('no MCP servers; `sightline mcp add` adds one')
      end
      servers = result
      if not window or not vim.api.nvim_win_is_valid(window) then
        window = M.window(#result, function()
          return servers[vim.api.nvim_win_get_cursor(0)[1]]
        end, refresh, target)
      end
      show.fill(vim.api.nvim_win_get_buf(window), 0, vim.tbl_map(parts, servers))
    end, target)
  end
  refresh()
  vim.api.nvim_create_autocmd('User', {
    pattern = 'SightlineMcpServers',
    callback = function()
      if not window or not vim.api.nvim_win_is_valid(window) then
        return true
      end
      refresh()
    end,
  })
end

--- Opens the window of the list.
---@param count integer
---@param selected fun(): sightline.McpServer
---@param refresh fun()
---@param target sightline.Target
---@return integer window
function M.window(count, selected, refresh, target)
  local window = show.open('MCP servers', {}, nil, math.max(4, math.min(count + 1, 12)))
  vim.wo[window].cursorline = true
  show.title(window, 'MCP servers: <CR> details, e enables or disables, R restarts, t trusts, L log, q closes')
  local function answered(err)
    if err then
      return show.failed(err)
    end
    refresh()
  end
  local function on_server(action)
    return function()
      local one = selected()
      action(one, { name = one.name, root = one.root })
    end
  end
  show.keys(vim.api.nvim_win_get_buf(window), {
    {
      '<CR>',
      'show its command and tools',
      on_server(function(one)
        show.open('MCP server ' .. one.name, details(one))
      end),
    },
    {
      'e',
      'enable or disable it',
      on_server(function(one, params)
        params.enabled = one.state == 'disabled'
        api.set_mcp_server_enabled(params, answered, target)
      end),
    },
    {
      'R',
      'restart it',
      on_server(function(_, params)
        api.restart_mcp_server(params, answered, target)
      end),
    },
    {
      't',
      'trust it',
      on_server(function(one, params)
        local question = 'Let %s run `%s`?'
        pickers.action(question:format(one.name, table.concat(one.command, ' ')), {
          {
            label = 'Trust',
            run = function()
              api.trust_mcp_server(params, answered, target)
            end,
          },
        })
      end),
    },
    {
      'L',
      'show its log',
      on_server(function(one, params)
        api.mcp_server_log(params, function(err, result)
          if not result then
            return show.failed(err)
          end
          show.open('log of ' .. one.name, show.lines(result.text))
        end, target)
      end),
    },
    { 'r', 'read the list again', refresh },
    { 'q', 'close', '<Cmd>close<CR>' },
  })
  return window
end

return M
