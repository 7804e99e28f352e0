--- Sends terminals, their commands and new output to the servers.
---
--- Output is read from the terminal buffer. Whether a shell is busy is determined by
--- shell integration (OSC 133) if available, otherwise by its child processes.

local buffers = require('sightline.buffers')
local compat = require('sightline.compat')
local config = require('sightline.config')

local M = {}

--- Maximum unsent output per terminal, in bytes. Older output is dropped.
local MAX_OUTPUT = 64 * 1024

--- Programs that read commands if started without arguments.
local SHELLS = {}
for _, name in ipairs({
  'sh',
  'bash',
  'zsh',
  'fish',
  'dash',
  'ksh',
  'mksh',
  'tcsh',
  'csh',
  'nu',
  'elvish',
  'xonsh',
  'pwsh',
  'powershell',
  'cmd',
}) do
  SHELLS[name] = true
end

---@class sightline.TerminalBuffer
---@field pid? integer First process.
---@field started string Initial command line.
---@field whole boolean Whether `started` includes the arguments.
---@field shell boolean Whether it reads commands.
---@field cwd? string Working directory reported by the shell (OSC 7), or the initial one.
---@field busy? boolean State from shell integration, `nil` without it.
---@field command? string Last command.
---@field exit_code? integer Exit code of the last command.
---@field ended boolean Whether the first process has exited.
---@field lines integer Number of buffer lines that were read.
---@field last string Text read from the last of these lines.
---@field unsent table<integer, string> Unsent output, by client.

---@type table<integer, sightline.TerminalBuffer>
local known = {}
---@type table<integer, string>
local sent = {}

--- Called when a terminal changes.
M.on_change = function() end

---@param path string
---@return string?
local function read(path)
  local file = io.open(path, 'rb')
  local text = file and file:read('*a')
  if file then
    file:close()
  end
  return text
end

--- Returns the command line of a process if available, otherwise its name.
---@param pid integer
---@return string?
local function command_line(pid)
  local text = read(('/proc/%d/cmdline'):format(pid))
  if text and text ~= '' then
    return (vim.trim(text:gsub('%z', ' ')))
  end
  local process = vim.api.nvim_get_proc(pid)
  return process and process.name
end

---@param started string command line
---@return boolean
local function is_shell(started)
  local words = vim.split(vim.trim(started), '%s+')
  local name = vim.fs.basename((words[1] or ''):gsub('\\', '/')):gsub('%.exe$', '')
  for index = 2, #words do
    -- Login and interactive shells also read commands.
    if not vim.tbl_contains({ '-i', '-l', '-il', '-li', '--login', '-NoLogo' }, words[index]) then
      return false
    end
  end
  return SHELLS[name] or false
end

--- Reads the new output of a terminal.
---@param bufnr integer
---@param terminal sightline.TerminalBuffer
---@param busy boolean
local function read_output(bufnr, terminal, busy)
  local total = vim.api.nvim_buf_line_count(bufnr)
  local first = math.max(0, math.min(terminal.lines, total) - 1)
  local lines = vim.api.nvim_buf_get_lines(bufnr, first, -1, false)
  -- Drop blank lines below the last output.
  while #lines > 0 and vim.trim(lines[#lines]) == '' do
    table.remove(lines)
  end
  -- The last line of an idle shell is its prompt and the current input.
  local prompt = not busy and not terminal.ended and terminal.shell
  if prompt and #lines > 0 then
    table.remove(lines)
  end
  if #lines == 0 then
    return
  end
  local last_line = first + #lines
  if last_line < terminal.lines then
    -- The screen was cleared, or the prompt is on a line that was already read.
    terminal.lines = prompt and terminal.lines or last_line
    return
  end
  local text = table.concat(lines, '\n')
  local output
  if terminal.lines == 0 then
    output = text
  elseif vim.startswith(text, terminal.last) then
    output = text:sub(#terminal.last + 1)
  else
    output = '\n' .. text
  end
  terminal.lines, terminal.last = last_line, lines[#lines]
  if output == '' then
    return
  end
  for client, unsent in pairs(terminal.unsent) do
    local all = unsent .. output
    if #all > MAX_OUTPUT then
      all = all:sub(-MAX_OUTPUT):gsub('^[^\n]*\n', '', 1)
    end
    terminal.unsent[client] = all
  end
end

--- The name of a terminal that was started with a list contains only the program.
--- Reads the arguments from the process once it runs that program.
---@param terminal sightline.TerminalBuffer
local function complete(terminal)
  local whole = not terminal.whole and terminal.pid and command_line(terminal.pid)
  if whole and vim.fs.basename(terminal.started) == vim.fs.basename(whole:match('^%S*')) then
    terminal.started, terminal.whole = whole, true
    terminal.shell = is_shell(whole)
  end
end

---@param bufnr integer
---@param terminal sightline.TerminalBuffer
---@return sightline.Terminal
local function describe(bufnr, terminal)
  complete(terminal)
  local busy = not terminal.ended
  if busy and terminal.shell then
    local children = terminal.pid and vim.api.nvim_get_proc_children(terminal.pid) or {}
    local child = children[#children]
    if terminal.busy ~= nil then
      busy = terminal.busy
    else
      busy = child ~= nil
    end
    if busy and child then
      terminal.command = command_line(child) or terminal.command
    end
  elseif not terminal.shell then
    terminal.command = terminal.started
  end
  local cwd = terminal.pid and not terminal.ended and vim.uv.fs_readlink(('/proc/%d/cwd'):format(terminal.pid))
  local title = vim.b[bufnr].term_title
  return {
    id = tostring(bufnr),
    name = type(title) == 'string' and not title:match('^term://') and title or terminal.started,
    command = terminal.command,
    cwd = cwd or terminal.cwd,
    isBusy = busy,
    exitCode = not busy and terminal.exit_code or nil,
    pid = not terminal.ended and terminal.pid or nil,
  }
end

--- Sends the terminals to a client if they changed.
---@param client vim.lsp.Client
function M.send(client)
  if not config.current.terminals then
    return
  end
  local list = {}
  local numbers = vim.tbl_keys(known)
  table.sort(numbers)
  local news = false
  for _, bufnr in ipairs(numbers) do
    local terminal = known[bufnr]
    if vim.api.nvim_buf_is_loaded(bufnr) and buffers.is_wanted(bufnr) then
      if not terminal.unsent[client.id] then
        terminal.unsent[client.id] = ''
      end
      local described = describe(bufnr, terminal)
      read_output(bufnr, terminal, described.isBusy)
      table.insert(list, described)
      news = news or terminal.unsent[client.id] ~= ''
    end
  end
  local without_output = vim.json.encode(list)
  if not news and (sent[client.id] or '[]') == without_output then
    return
  end
  for _, described in ipairs(list) do
    local unsent = known[tonumber(described.id)].unsent
    described.newOutput = unsent[client.id] ~= '' and unsent[client.id] or nil
    unsent[client.id] = ''
  end
  if compat.notify(client, 'sightline/didChangeTerminals', { terminals = list }) then
    sent[client.id] = without_output
  end
end

--- Forgets a client that exited.
---@param id integer
function M.forget(id)
  sent[id] = nil
  for _, terminal in pairs(known) do
    terminal.unsent[id] = nil
  end
end

--- Handles a new terminal buffer.
---@param bufnr integer
function M.opened(bufnr)
  if known[bufnr] or not config.current.terminals or vim.bo[bufnr].buftype ~= 'terminal' then
    return
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  local cwd, started = name:match('^term://(.-)//%d+:(.*)$')
  started = started or vim.o.shell
  known[bufnr] = {
    pid = vim.b[bufnr].terminal_job_pid,
    whole = started:find(' ') ~= nil,
    started = started,
    shell = is_shell(started),
    cwd = cwd and buffers.normalize(cwd),
    ended = false,
    lines = 0,
    last = '',
    unsent = {},
  }
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, _, first, last, new_last)
      local terminal = known[bufnr]
      if not terminal then
        return true
      end
      -- The scrollback is full, so lines that were read moved up.
      if first == 0 and new_last < last and last <= terminal.lines then
        terminal.lines = terminal.lines - (last - new_last)
      end
      M.on_change()
    end,
    on_detach = function()
      known[bufnr] = nil
      vim.schedule(M.on_change)
    end,
  })
  M.on_change()
end

--- Handles the exit of the first process of a terminal.
---@param bufnr integer
---@param status? integer exit code
function M.closed(bufnr, status)
  local terminal = known[bufnr]
  if terminal then
    terminal.ended, terminal.exit_code = true, status
    M.on_change()
  end
end

--- Handles an escape sequence sent by a terminal program.
---@param bufnr integer
---@param sequence string
function M.requested(bufnr, sequence)
  local terminal = known[bufnr]
  if not terminal then
    return
  end
  local mark, rest = sequence:match('^\27%]133;(%a)(.*)')
  if mark == 'C' then
    terminal.busy, terminal.exit_code = true, nil
  elseif mark == 'D' then
    terminal.busy, terminal.exit_code = false, tonumber(rest:match('^;(%d+)'))
  elseif mark == 'A' then
    terminal.busy = false
  end
  local folder = sequence:match('^\27%]7;file://[^/]*(/[^\7\27]*)')
  if folder then
    terminal.cwd = vim.uri_decode(folder)
  end
  M.on_change()
end

return M
