--- `:Sightline` and its subcommands, with completion.

local agents = require('sightline.agents')
local api = require('sightline.api')
local buffers = require('sightline.buffers')
local blame = require('sightline.checkpoints.blame')
local checkpoints = require('sightline.checkpoints')
local config = require('sightline.config')
local diff = require('sightline.checkpoints.diff')
local mcp = require('sightline.agents.mcp')
local proposals = require('sightline.agents.proposals')
local rules = require('sightline.rules')
local server = require('sightline.server')
local show = require('sightline.show')
local statusline = require('sightline.statusline')
local tasks = require('sightline.tasks')

local M = {}

---@alias sightline.Need 'server'|'running'|'checkpoints'|'undo'|'file'|'visible'|'hidden'|'unsaved'|'agent'|'bridges'|'proposal'

---@class sightline.Subcommand
---@field about string What it does, for the menu.
---@field needs? sightline.Need[] What must be possible for the menu to show it.
---@field run fun(words: string[], rest: string, range?: integer[])
---@field range? boolean Whether it takes a range of lines.
---@field complete? fun(lead: string, words: string[]): string[]

--- Maximum time completion and the menu wait for the server, in milliseconds.
local TIMEOUT = 500

--- Returns the checkpoints, newest first, or `nil` if the server does not list them in time.
---@return sightline.Checkpoint[]?
local function listed_checkpoints()
  local listed
  local cancel = api.list_checkpoints({}, function(_, result)
    listed = result and result.checkpoints or {}
  end)
  local in_time = vim.wait(TIMEOUT, function()
    return listed ~= nil
  end, 5)
  if in_time then
    return listed
  end
  cancel()
end

--- Returns `last`, ids, labels and names of turns.
---@return string[]
local function checkpoint_ids()
  local ids, turns = { 'last' }, {}
  for _, checkpoint in ipairs(listed_checkpoints() or {}) do
    local turn = checkpoint.turn and checkpoint.turn.name
    if turn and not turns[turn] then
      turns[turn] = true
      vim.list_extend(ids, { turn, turn .. '+' })
    end
    table.insert(ids, show.id(checkpoint.id))
    if checkpoint.label then
      table.insert(ids, (checkpoint.label:gsub('[ \\]', '\\%0')))
    end
  end
  return ids
end

--- Returns what can be done now, for the menu.
---@return table<sightline.Need, boolean>
local function possible()
  local bridges = agents.of(server.client_id(server.root()))
  local is_running = #server.clients() > 0
  local can_ask = is_running or not server.start_problem()
  -- Without an answer in time, there may be some.
  local listed = {}
  if can_ask then
    listed = listed_checkpoints()
  end
  local is_file = buffers.is_file(vim.api.nvim_get_current_buf())
  local is_hidden = statusline.status().access == 'denied'
  return {
    server = can_ask,
    running = is_running,
    checkpoints = not listed or #listed > 0,
    undo = not listed or checkpoints.can_undo(listed),
    file = is_file,
    visible = is_file and not is_hidden,
    hidden = is_file and is_hidden,
    unsaved = is_file and vim.bo.modified,
    agent = #bridges.agents > 0 and not bridges.isPaused,
    bridges = #bridges.agents > 0 or bridges.isPaused,
    proposal = proposals.are_open(),
  }
end

local function checkpoint_then_paths(lead, words)
  if #words == 0 then
    return checkpoint_ids()
  end
  return vim.fn.getcompletion(lead, 'file')
end

--- Completes the second checkpoint of `old..new`, too.
local function range_then_paths(lead, words)
  local found = checkpoint_then_paths(lead, words)
  local older = #words == 0 and lead:match('^.-%.%.')
  if older then
    for index = 1, #found do
      table.insert(found, older .. found[index])
    end
  end
  return found
end

--- Returns the words after the first one as absolute paths. Expands only `%` and `#`:
--- full expansion would run backticks in file names.
---@param words string[]
---@return string[]?
local function paths(words)
  local found = {}
  for index = 2, #words do
    local word = words[index]
    local name = (word == '%' or word == '#') and vim.fn.expand(word) or buffers.normalize(word)
    table.insert(found, buffers.normalize(vim.fn.fnamemodify(name, ':p')))
  end
  return #found > 0 and found or nil
end

---@param rule? sightline.AccessRule
---@return string
local function by_rule(rule)
  return rule and (' by %s:%d `%s`'):format(rule.source, rule.line, rule.pattern) or ''
end

---@param result sightline.CheckAccessResult
---@return string[]
local function access_lines(result)
  local lines = {}
  for _, verdict in ipairs(result.paths) do
    local reason = verdict.reason and (' (%s)'):format(verdict.reason) or ''
    local name = vim.fn.fnamemodify(verdict.path, ':.')
    table.insert(lines, ('%s: %s%s%s'):format(name, verdict.access, by_rule(verdict.rule), reason))
  end
  if result.command then
    table.insert(lines, result.command.allowed and 'the command is allowed' or 'the command is denied')
    for _, denied in ipairs(result.command.denied) do
      -- The reason names the rule.
      table.insert(lines, ('%s: %s'):format(denied.path, denied.reason))
    end
  end
  return lines
end

local function access(words, rest)
  local command = rest:match('^!%s*(.+)$')
  local params = { command = command }
  if not command then
    params.paths = paths({ '', unpack(words) })
    if not params.paths then
      local bufnr = vim.api.nvim_get_current_buf()
      if not buffers.is_file(bufnr) then
        return show.say('not a file buffer; give a path, or a command after !', vim.log.levels.WARN)
      end
      params.paths = { buffers.path(bufnr) }
    end
  end
  api.check_access(params, function(err, result)
    if not result then
      return show.failed(err)
    end
    local lines = access_lines(result)
    if #lines == 1 then
      return show.say(lines[1])
    end
    show.open('access', lines)
  end)
end

local function environment(words)
  local wanted = {}
  for _, word in ipairs(words) do
    wanted[word] = true
  end
  -- Do not mark information as delivered to an agent.
  local params = { consume = false, includeFiles = wanted.files, mode = wanted.plan and 'plan' or nil }
  api.environment_details(params, function(err, result)
    if not result then
      return show.failed(err)
    end
    if wanted.copy then
      local register = show.copy(result.text)
      return show.say(('copied to register %s, about %d tokens'):format(register, result.tokens))
    end
    show.open('environment', show.lines(result.text), 'markdown')
  end)
end

--- Shows which agents are connected to the editor, and which are configured.
local function show_agents()
  local cmd = config.current.cmd
  local program = type(cmd) == 'table' and cmd[1] or 'sightline'
  local done, problem = pcall(vim.system, { program, 'agents', 'status' }, { text = true }, function(result)
    local text = vim.trim((result.stdout or '') .. (result.stderr or ''))
    vim.schedule(function()
      local lines = vim.split(text, '\n')
      table.insert(lines, 1, agents.describe(server.client_id(server.root())))
      show.open('agents', lines)
    end)
  end)
  if not done then
    show.say(('cannot run %s: %s'):format(program, problem), vim.log.levels.ERROR)
  end
end

--- Maximum size of the end of the log that is read, in bytes.
local MAX_LOG = 1024 * 1024

--- Shows what the servers logged: their lines in the LSP log of Neovim, newest last.
local function log()
  local file = io.open(vim.lsp.get_log_path(), 'rb')
  if not file then
    return show.say('the log is empty')
  end
  file:seek('set', math.max(0, file:seek('end') - MAX_LOG))
  local lines = {}
  for line in file:lines() do
    if line:find('sightline', 1, true) then
      table.insert(lines, line)
    end
  end
  file:close()
  if #lines == 0 then
    return show.say('the log is empty')
  end
  local window = show.open('log', lines)
  vim.api.nvim_win_set_cursor(window, { #lines, 0 })
end

---@type table<string, sightline.Subcommand>
M.subcommands = {
  agents = { about = 'show the connected and the configured agents', run = show_agents },
  environment = {
    about = 'show what agents get with a prompt',
    needs = { 'server' },
    run = environment,
    complete = function()
      return { 'copy', 'files', 'plan' }
    end,
  },
  checkpoint = {
    about = 'create a checkpoint',
    needs = { 'server' },
    run = function(_, rest)
      checkpoints.create(rest ~= '' and rest or nil)
    end,
  },
  diff = {
    about = 'show the changes since a checkpoint',
    needs = { 'checkpoints' },
    run = function(words)
      checkpoints.diff(words[1], paths(words))
    end,
    complete = range_then_paths,
  },
  restore = {
    about = 'restore a checkpoint, after a preview',
    needs = { 'checkpoints' },
    run = function(words)
      checkpoints.restore(words[1], paths(words))
    end,
    complete = checkpoint_then_paths,
  },
  undo = {
    about = 'undo the last restore, after a preview',
    needs = { 'undo' },
    run = function(words)
      checkpoints.undo(words[1])
    end,
    complete = checkpoint_ids,
  },
  access = {
    about = 'check whether agents may see this file',
    needs = { 'server', 'file' },
    run = access,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  hide = {
    about = 'hide this file from agents by a line of .clineignore',
    needs = { 'visible' },
    run = function(words)
      rules.set((paths({ '', words[1] }) or {})[1], true)
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  allow = {
    about = 'allow agents to see this file again',
    needs = { 'hidden' },
    run = function(words)
      rules.set((paths({ '', words[1] }) or {})[1], false)
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  mcp = { about = 'list the MCP servers that agents get, to control them', needs = { 'server' }, run = mcp.open },
  tasks = { about = 'list stored conversations', needs = { 'server' }, run = tasks.pick },
  list = { about = 'list the checkpoints', needs = { 'checkpoints' }, run = checkpoints.list },
  turns = {
    about = 'list the turns of agents and what they changed',
    needs = { 'server' },
    run = function(words)
      checkpoints.turns(words[1])
    end,
  },
  history = {
    about = 'list the checkpoints in which this file changed',
    needs = { 'file', 'checkpoints' },
    run = function(words)
      checkpoints.history((paths({ '', words[1] }) or {})[1])
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  blame = {
    about = 'show or hide the author of each line of this file',
    needs = { 'server', 'file' },
    run = blame.toggle,
  },
  signs = {
    about = 'mark the changes since a turn or checkpoint, or none',
    needs = { 'checkpoints' },
    run = function(words)
      checkpoints.signs(words[1])
    end,
    complete = checkpoint_ids,
  },
  stats = { about = 'show the disk usage of the checkpoints', needs = { 'checkpoints' }, run = checkpoints.stats },
  prune = {
    about = 'remove old checkpoints',
    needs = { 'checkpoints' },
    run = function(words)
      checkpoints.prune(words[1])
    end,
  },
  ui = {
    about = 'open a page with turns, hidden files and agents in a browser',
    needs = { 'server' },
    run = agents.page,
  },
  pause = {
    about = 'stop or resume showing the selection to agents',
    needs = { 'bridges' },
    run = agents.pause,
  },
  send = {
    about = 'send this file or the selected lines to the agent',
    needs = { 'file', 'agent' },
    run = function(_, _, range)
      agents.send(unpack(range or {}))
    end,
    range = true,
  },
  unsaved = {
    about = 'compare the unsaved text of this file with the disk',
    needs = { 'unsaved' },
    run = diff.unsaved,
  },
  accept = { about = 'accept the change that an agent proposes', needs = { 'proposal' }, run = proposals.accept },
  reject = { about = 'reject the change that an agent proposes', needs = { 'proposal' }, run = proposals.reject },
  log = { about = 'show the log of the server', run = log },
  restart = { about = 'restart the servers', run = server.restart },
  stop = {
    about = 'stop the servers',
    needs = { 'running' },
    run = function()
      server.stop(function()
        show.say('the servers are stopped; :Sightline restart starts them')
      end)
    end,
  },
}

---@return string[]
local function names()
  local all = vim.tbl_keys(M.subcommands)
  table.sort(all)
  return all
end

--- Runs `:Sightline ...`. Asks for a subcommand if none is given.
---@param arguments string
---@param words? string[] the same, split at unescaped spaces
---@param range? integer[] first and last line
function M.run(arguments, words, range)
  local name, rest = vim.trim(arguments):match('^(%S*)%s*(.*)$')
  if name == '' then
    local is_possible = possible()
    local offered = vim.tbl_filter(function(one)
      return vim.iter(M.subcommands[one].needs or {}):all(function(need)
        return is_possible[need]
      end)
    end, names())
    return vim.ui.select(offered, {
      prompt = 'Sightline',
      kind = 'sightline.command',
      format_item = function(one)
        return ('%-12s %s'):format(one, M.subcommands[one].about)
      end,
    }, function(chosen)
      if chosen then
        M.run(chosen, nil, range)
      end
    end)
  end
  local subcommand = M.subcommands[name]
  if not subcommand then
    return show.say(('unknown subcommand `%s`; see :help :Sightline'):format(name), vim.log.levels.ERROR)
  end
  if range and not subcommand.range then
    return show.say(('`%s` takes no range'):format(name), vim.log.levels.ERROR)
  end
  subcommand.run(vim.list_slice(words or {}, 2), rest, range)
end

--- Completes `:Sightline ...`.
---@param lead string
---@param line string
---@param position integer
---@return string[]
function M.complete(lead, line, position)
  -- A word may contain escaped spaces.
  local words = vim.split(line:sub(1, position):gsub('\\.', '_'), '%s+', { trimempty = true })
  table.remove(words, 1)
  if lead ~= '' then
    table.remove(words)
  end
  local found = {}
  if #words == 0 then
    found = names()
  else
    local subcommand = M.subcommands[table.remove(words, 1)]
    if subcommand and subcommand.complete then
      found = subcommand.complete(lead, words)
    end
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, found)
end

return M
