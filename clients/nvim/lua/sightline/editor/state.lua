--- Sends the editor state (tabs, windows, focus) to the servers if it changed, at
--- most every `debounce_ms`.

local buffers = require('sightline.buffers')
local compat = require('sightline.compat')
local config = require('sightline.config')
local diagnostics = require('sightline.editor.diagnostics')
local server = require('sightline.server')
local terminals = require('sightline.editor.terminals')

local M = {}

--- Converts a byte column to an offset in a position encoding.
---@param line string
---@param column integer from 0
---@param encoding string
---@return integer
local function offset(line, column, encoding)
  local before = line:sub(1, column)
  if encoding == 'utf-8' then
    return #before
  elseif encoding == 'utf-32' then
    return vim.fn.strchars(before)
  end
  return vim.fn.strutf16len(before)
end

---@param bufnr integer
---@param row integer from 0
---@param column integer in bytes, from 0; past the end is the end
---@param encoding string
---@return sightline.Position
local function position(bufnr, row, column, encoding)
  local line = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
  return { line = row, character = offset(line, column, encoding) }
end

--- Returns the range from the start of one line to the end of another.
local function lines(bufnr, first, last, encoding)
  return { start = { line = first, character = 0 }, ['end'] = position(bufnr, last, vim.v.maxcol, encoding) }
end

--- Returns the visible lines of a window, without closed folds.
---@return sightline.Range[]
local function visible_ranges(window, bufnr, encoding)
  local count = vim.api.nvim_buf_line_count(bufnr)
  local first = math.min(vim.fn.line('w0', window), count)
  local last = math.min(vim.fn.line('w$', window), count)
  if first < 1 or last < first then
    return {}
  end
  if not vim.wo[window].foldenable then
    return { lines(bufnr, first - 1, last - 1, encoding) }
  end
  local ranges, from = {}, first
  local function shown(to)
    if to >= from then
      table.insert(ranges, lines(bufnr, from - 1, to - 1, encoding))
    end
  end
  vim.api.nvim_win_call(window, function()
    local line = first
    while line <= last do
      local fold_end = vim.fn.foldclosedend(line)
      if fold_end ~= -1 then
        shown(line - 1)
        from, line = fold_end + 1, fold_end
      end
      line = line + 1
    end
  end)
  shown(last)
  return ranges
end

--- Returns the selection of a window, or its cursor.
---@return sightline.Range[]
local function selections(window, bufnr, encoding)
  local function range(first_row, first_column, last_row, last_column)
    return {
      start = position(bufnr, first_row, first_column, encoding),
      ['end'] = position(bufnr, last_row, last_column, encoding),
    }
  end
  local cursor = vim.api.nvim_win_get_cursor(window)
  local mode = vim.api.nvim_get_mode().mode:sub(1, 1)
  local kind = ({ v = 'v', s = 'v', V = 'V', S = 'V', ['\22'] = '\22', ['\19'] = '\22' })[mode]
  if not kind or window ~= vim.api.nvim_get_current_win() then
    return { range(cursor[1] - 1, cursor[2], cursor[1] - 1, cursor[2]) }
  end

  local from, to = vim.fn.getpos('v'), vim.fn.getpos('.')
  local a, b = { from[2] - 1, from[3] - 1 }, { to[2] - 1, to[3] - 1 }
  if b[1] < a[1] or (b[1] == a[1] and b[2] < a[2]) then
    a, b = b, a
  end
  -- The option 'selection' determines whether the last character is included.
  local function after(row, column)
    local line = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
    if vim.o.selection == 'exclusive' or column >= #line then
      return column
    end
    return column + 1 + vim.str_utf_end(line, column + 1)
  end
  if kind == 'V' then
    return { lines(bufnr, a[1], b[1], encoding) }
  elseif kind == 'v' then
    return { range(a[1], a[2], b[1], after(b[1], b[2])) }
  end
  local ranges, left, right = {}, math.min(a[2], b[2]), math.max(a[2], b[2])
  for row = a[1], b[1] do
    table.insert(ranges, range(row, left, row, after(row, right)))
  end
  return ranges
end

---@param bufnr integer
---@return string
local function uri(bufnr)
  return vim.uri_from_fname(buffers.path(bufnr))
end

--- File windows by last focus, most recent first.
---@type integer[]
local focused = {}

--- Returns the window of the active editor. A chat, picker or terminal does not
--- change it as long as it is visible. Must be called on focus changes.
---@return integer?
function M.focus()
  local current = vim.api.nvim_get_current_win()
  if buffers.is_file(vim.api.nvim_win_get_buf(current)) then
    focused = vim.tbl_filter(function(window)
      return window ~= current and vim.api.nvim_win_is_valid(window)
    end, focused)
    table.insert(focused, 1, current)
    return current
  end
  local tabpage = vim.api.nvim_get_current_tabpage()
  for _, window in ipairs(focused) do
    if
      vim.api.nvim_win_is_valid(window)
      and vim.api.nvim_win_get_tabpage(window) == tabpage
      and buffers.is_file(vim.api.nvim_win_get_buf(window))
    then
      return window
    end
  end
end

--- Returns a tab for each file of each tab page, then for listed files without a
--- window.
---@return sightline.Tab[]
local function tabs()
  local found, placed = {}, {}
  for group, tabpage in ipairs(vim.api.nvim_list_tabpages()) do
    local front = vim.api.nvim_win_get_buf(vim.api.nvim_tabpage_get_win(tabpage))
    local here = {}
    for _, window in ipairs(vim.api.nvim_tabpage_list_wins(tabpage)) do
      local bufnr = vim.api.nvim_win_get_buf(window)
      if not here[bufnr] and buffers.is_file(bufnr) then
        here[bufnr], placed[bufnr] = true, true
        table.insert(found, {
          uri = uri(bufnr),
          group = group,
          isActive = bufnr == front,
          isDirty = vim.bo[bufnr].modified,
          isPreview = vim.wo[window].previewwindow or nil,
        })
      end
    end
  end
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if not placed[bufnr] and vim.bo[bufnr].buflisted and buffers.is_file(bufnr) then
      table.insert(found, { uri = uri(bufnr), isDirty = vim.bo[bufnr].modified })
    end
  end
  return found
end

---@class sightline.Snapshot
---@field tabs sightline.DidChangeTabsParams
---@field editors sightline.DidChangeVisibleEditorsParams
---@field focus sightline.DidFocusParams

--- Returns the current editor state.
---@param encoding string position encoding of the server
---@return sightline.Snapshot
function M.snapshot(encoding)
  local active = M.focus()
  local editors = {}
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local bufnr = vim.api.nvim_win_get_buf(window)
    if buffers.is_file(bufnr) then
      local large = buffers.is_large(bufnr)
      table.insert(editors, {
        uri = uri(bufnr),
        isActive = window == active,
        visibleRanges = large and {} or visible_ranges(window, bufnr, encoding),
        selections = large and {} or selections(window, bufnr, encoding),
      })
    end
  end
  local document = active and { textDocument = { uri = uri(vim.api.nvim_win_get_buf(active)) } }
  return { tabs = { tabs = tabs() }, editors = { editors = editors }, focus = document or vim.empty_dict() }
end

local METHODS = {
  tabs = 'sightline/didChangeTabs',
  editors = 'sightline/didChangeVisibleEditors',
  focus = 'textDocument/didFocus',
}

---@type table<integer, table<string, string>> last state sent, by client
local sent = {}

--- Sends the changed state to a client.
---@param client vim.lsp.Client
---@param snapshot? sightline.Snapshot
function M.send(client, snapshot)
  snapshot = snapshot or M.snapshot(client.offset_encoding or 'utf-16')
  local known = sent[client.id] or {}
  sent[client.id] = known
  for _, part in ipairs({ 'tabs', 'editors', 'focus' }) do
    local text = vim.json.encode(snapshot[part])
    if known[part] ~= text and compat.notify(client, METHODS[part], snapshot[part]) then
      known[part] = text
    end
  end
  diagnostics.send(client, function(bufnr, row, column)
    return position(bufnr, row, column, client.offset_encoding or 'utf-16')
  end)
  terminals.send(client)
end

--- Sends the changed state to every server immediately.
function M.flush()
  local snapshots = {}
  for _, client in ipairs(server.clients()) do
    local encoding = client.offset_encoding or 'utf-16'
    snapshots[encoding] = snapshots[encoding] or M.snapshot(encoding)
    M.send(client, snapshots[encoding])
  end
end

--- Forgets a client that exited.
---@param id integer
function M.forget(id)
  sent[id] = nil
  diagnostics.forget(id)
  terminals.forget(id)
end

local scheduled = false

--- Schedules an update after a possible change.
function M.changed()
  if scheduled then
    return
  end
  scheduled = true
  vim.defer_fn(function()
    scheduled = false
    if vim.v.exiting == vim.NIL then
      M.flush()
    end
  end, config.current.debounce_ms)
end

--- Reports the focus again: Neovim has it, and another editor of the project had it.
function M.focus_gained()
  for _, known in pairs(sent) do
    known.focus = nil
  end
  M.changed()
end

--- Minimum interval of reports of the focus while the user types, in milliseconds.
local REPORT_EVERY = 1000

local last_report = -REPORT_EVERY

--- Reports the focus while the user types: a terminal such as tmux may not tell Neovim about it.
function M.typed()
  local now = vim.uv.now()
  if now - last_report >= REPORT_EVERY then
    last_report = now
    M.focus_gained()
  end
end

return M
