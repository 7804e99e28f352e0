--- Sightline for Neovim: sends the editor state to the server, and provides its
--- features to users and other plugins.
---
--- Modules:
--- - `init`, `config`: `setup`, options and autocommands
--- - `server`: one server per project: start, attach, request, stop
--- - `buffers`: which buffers are shared, and their project
--- - `editor`: `state` and `terminals`: editor state notifications; `diagnostics` of the editor
--- - `api`, `events`: API for other plugins: request functions and `User` autocommands
--- - `commands`, `tasks`, `show`: `:Sightline`
--- - `checkpoints`: turns and checkpoints: lists, diffs, previews of restores, signs
--- - `agents`: agents that are connected by their IDE protocol; `proposals` are their changes as
---   diffs, `mcp` the MCP servers that they get
--- - `protocol`: constants and types, generated
--- - `statusline`, `health`, `compat`: statusline, `:checkhealth`, differences between Neovim
---   versions

local agents = require('sightline.agents')
local buffers = require('sightline.buffers')
local config = require('sightline.config')
local diagnostics = require('sightline.editor.diagnostics')
local server = require('sightline.server')
local state = require('sightline.editor.state')
local statusline = require('sightline.statusline')
local terminals = require('sightline.editor.terminals')

---@class sightline.Plugin: sightline.Api
local M = setmetatable({}, { __index = require('sightline.api') })

--- Events after which the editor state may have changed.
local SCREEN_EVENTS = {
  'BufEnter',
  'BufWinEnter',
  'BufWinLeave',
  'BufAdd',
  'BufDelete',
  'BufWipeout',
  'BufFilePost',
  'BufModifiedSet',
  'BufWritePost',
  'WinNew',
  'WinEnter',
  'WinClosed',
  'WinScrolled',
  'WinResized',
  'TabEnter',
  'TabNew',
  'TabClosed',
  'CursorMoved',
  'CursorMovedI',
  'ModeChanged',
}

local function listen()
  local group = vim.api.nvim_create_augroup('sightline', {})
  local function on(events, callback, pattern)
    vim.api.nvim_create_autocmd(events, { group = group, pattern = pattern, callback = callback })
  end

  on(SCREEN_EVENTS, state.changed)
  on({ 'FocusGained', 'VimResume' }, state.focus_gained)
  vim.on_key(state.typed, vim.api.nvim_create_namespace('sightline'))
  on('DiagnosticChanged', function(event)
    diagnostics.changed(event.buf)
    state.changed()
  end)
  on({ 'BufEnter', 'WinEnter' }, function()
    state.focus()
  end)
  -- Deferred until the file type is known and scripts have finished.
  on({ 'BufReadPost', 'BufNewFile', 'BufFilePost', 'BufEnter' }, function(event)
    vim.schedule(function()
      if vim.api.nvim_buf_is_valid(event.buf) then
        server.attach(event.buf)
        statusline.refresh(event.buf)
        agents.set_environment()
      end
    end)
  end)
  on('LspAttach', function(event)
    -- A client that was started elsewhere, such as by `vim.lsp.enable`.
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and server.announced(client) then
      state.changed()
    end
  end)
  on({ 'BufDelete', 'BufWipeout' }, function(event)
    statusline.forget(event.buf)
  end)
  on('User', statusline.refresh_all, 'SightlineAccessRules')
  on('User', function(event)
    if vim.tbl_get(event, 'data', 'checkpoint') then
      statusline.created(event.data.checkpoint)
    end
  end, 'SightlineCheckpoint')
  on('User', function(event)
    local bridges = event.data
    if type(bridges) == 'table' and bridges.client_id then
      agents.changed(bridges.client_id, bridges)
      statusline.publish()
    end
  end, 'SightlineBridges')

  if not config.current.terminals then
    return
  end
  on('TermOpen', function(event)
    -- The process id and title may be set after the event.
    vim.schedule(function()
      if vim.api.nvim_buf_is_valid(event.buf) then
        terminals.opened(event.buf)
      end
    end)
  end)
  on('TermClose', function(event)
    terminals.closed(event.buf, vim.v.event.status)
  end)
  on('TermRequest', function(event)
    local sequence = type(event.data) == 'table' and event.data.sequence or vim.v.termrequest
    terminals.requested(event.buf, sequence or '')
  end)
end

--- Starts the plugin. All options are optional. A second call replaces the options.
---@param options? sightline.Options
function M.setup(options)
  for _, problem in ipairs(config.apply(options)) do
    vim.notify('sightline: ' .. problem, vim.log.levels.WARN)
  end
  server.on_ready = function(client)
    state.send(client)
    statusline.publish()
    statusline.refresh_all()
  end
  server.on_exit = function(id)
    state.forget(id)
    agents.changed(id, nil)
    vim.schedule(statusline.publish)
  end
  server.before_request = state.send
  terminals.on_change = state.changed
  listen()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      server.attach(bufnr)
      terminals.opened(bufnr)
    end
  end
end

--- Returns a statusline component, or `''` without a server.
---@param bufnr? integer defaults to the current buffer
---@return string
function M.statusline(bufnr)
  return statusline.component(bufnr)
end

--- Returns the data of `statusline`.
---@param bufnr? integer
---@return sightline.Status
function M.status(bufnr)
  return statusline.status(bufnr)
end

--- Reloads buffers after `restore_checkpoint` or `undo_restore`.
---@param result sightline.RestoreCheckpointResult
---@param target? sightline.Target
---@param force? boolean also buffers with unsaved text
function M.restored(result, target, force)
  require('sightline.checkpoints.review').restored(result.outcomes, target or { root = server.root() }, force)
end

--- Returns whether a buffer is shared with the server.
---@param bufnr integer
---@return boolean
function M.is_shared(bufnr)
  if vim.bo[bufnr].buftype == 'terminal' then
    return config.current.terminals and buffers.is_wanted(bufnr)
  end
  return buffers.is_file(bufnr)
end

return M
