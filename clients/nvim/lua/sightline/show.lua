--- User interface: one-line messages and read-only windows.

local M = {}

---@param message string
---@param level? integer of `vim.log.levels`
function M.say(message, level)
  -- Clear the remains of a prompt, which would require a key press.
  vim.cmd('redraw')
  vim.notify('sightline: ' .. message, level or vim.log.levels.INFO)
end

--- Shows an error as one line.
---@param err sightline.Error
function M.failed(err)
  M.say(err.message:gsub('%s*\n%s*', ' '), vim.log.levels.ERROR)
end

--- Replaces the text of a read-only buffer.
---@param bufnr integer
---@param lines string[]
function M.replace(bufnr, lines)
  vim.bo[bufnr].modifiable = true
  -- A line can have several lines, such as an argument of a command.
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, vim.split(table.concat(lines, '\n'), '\n'))
  vim.bo[bufnr].modifiable = false
end

--- Creates a read-only scratch buffer. Its name is only a label.
---@param name string
---@param lines string[]
---@param filetype? string
---@return integer bufnr
function M.scratch(name, lines, filetype)
  local bufnr = vim.api.nvim_create_buf(false, true)
  M.replace(bufnr, lines)
  -- Fails if another window still shows a buffer of this name.
  pcall(vim.api.nvim_buf_set_name, bufnr, 'sightline://' .. name)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modeline = false
  if filetype then
    vim.bo[bufnr].filetype = filetype
  end
  return bufnr
end

--- Shows lines in a new window at the top, because prompts of Neovim cover the bottom
--- of the screen. `q` closes it.
---@param name string
---@param lines string[]
---@param filetype? string
---@param height? integer defaults to the number of lines, at most 40% of the screen
---@return integer window
function M.open(name, lines, filetype, height)
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.w[window].sightline == name then
      vim.api.nvim_win_close(window, true)
    end
  end
  local origin = vim.api.nvim_get_current_win()
  local bufnr = M.scratch(name, lines, filetype)
  height = height or math.max(3, math.min(#lines, math.floor(vim.o.lines * 0.4)))
  vim.cmd(('topleft %dsplit'):format(height))
  local window = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(window, bufnr)
  vim.w[window].sightline = name
  vim.wo[window].winfixheight = true
  vim.wo[window].number = false
  vim.wo[window].relativenumber = false
  vim.wo[window].wrap = false
  vim.keymap.set('n', 'q', function()
    vim.api.nvim_win_close(window, true)
    if vim.api.nvim_win_is_valid(origin) then
      vim.api.nvim_set_current_win(origin)
    end
  end, { buffer = bufnr, desc = 'Close' })
  return window
end

--- Namespace of highlights.
local HIGHLIGHTS = vim.api.nvim_create_namespace('sightline.show')

for name, link in pairs({
  SightlineAdded = 'Added',
  SightlineModified = 'Changed',
  SightlineDeleted = 'Removed',
  SightlineFolder = 'Comment',
  SightlineTime = 'Comment',
  SightlineName = 'Identifier',
  SightlineHeading = 'Title',
}) do
  vim.api.nvim_set_hl(0, name, { link = link, default = true })
end

--- Replaces lines of a scratch buffer, with highlights. A line is a list of parts: a text, or a text
--- with its highlight group.
---@param bufnr integer
---@param first integer from 0
---@param lines (string|string[])[][]
---@param last? integer defaults to the end of the buffer
function M.fill(bufnr, first, lines, last)
  local texts, marks = {}, {}
  for index, parts in ipairs(lines) do
    local text = ''
    for _, part in ipairs(parts) do
      local piece = (type(part) == 'table' and part[1] or part):gsub('%c', ' ')
      if type(part) == 'table' and part[2] then
        table.insert(marks, { first + index - 1, #text, #text + #piece, part[2] })
      end
      text = text .. piece
    end
    table.insert(texts, text)
  end
  vim.bo[bufnr].modifiable = true
  vim.api.nvim_buf_clear_namespace(bufnr, HIGHLIGHTS, first, last or -1)
  vim.api.nvim_buf_set_lines(bufnr, first, last or -1, false, texts)
  vim.bo[bufnr].modifiable = false
  for _, mark in ipairs(marks) do
    vim.api.nvim_buf_set_extmark(bufnr, HIGHLIGHTS, mark[1], mark[2], { end_col = mark[3], hl_group = mark[4] })
  end
end

---@class sightline.Key
---@field [1] string
---@field [2] string Description.
---@field [3] fun()
---@field modes? string[] Defaults to Normal mode.

--- Maps keys of a buffer. `g?` lists them.
---@param bufnr integer
---@param keys sightline.Key[]
function M.keys(bufnr, keys)
  local help = {}
  for _, key in ipairs(keys) do
    vim.keymap.set(key.modes or 'n', key[1], key[3], { buffer = bufnr, desc = key[2], nowait = true })
    table.insert(help, ('%-6s %s'):format(key[1], key[2]))
  end
  vim.keymap.set('n', 'g?', function()
    M.open('keys', help)
  end, { buffer = bufnr, desc = 'Show the keys' })
end

--- Sets the title of a window, for the buffer that it shows.
---@param window integer
---@param title string
---@param is_warning? boolean
function M.title(window, title, is_warning)
  -- `%` starts a statusline item.
  local text = title:gsub('%%', '%%%%')
  vim.wo[window][0].winbar = is_warning and '%#WarningMsg#' .. text or text
end

--- Shows a buffer in a window, compared with the other windows of the tab page.
---@param window integer
---@param bufnr integer
---@param title string
function M.diff(window, bufnr, title)
  vim.api.nvim_win_set_buf(window, bufnr)
  vim.api.nvim_win_call(window, function()
    vim.cmd('diffthis')
  end)
  M.title(window, title)
end

--- Warns in all windows of a buffer, until its file is written or read.
---@param bufnr integer
---@param warning string
function M.mark(bufnr, warning)
  local function set_titles(text)
    for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
      M.title(window, text, text ~= '')
    end
  end
  set_titles(warning)
  local group = vim.api.nvim_create_augroup('sightline_mark_' .. bufnr, {})
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = bufnr,
    callback = function()
      set_titles(warning)
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufWritePost', 'BufReadPost' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      set_titles('')
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
end

--- Copies text to the clipboard, without one to the unnamed register.
---@param text string
---@return string register
function M.copy(text)
  local register = vim.fn.has('clipboard') == 1 and '+' or '"'
  vim.fn.setreg(register, text)
  return register
end

--- Splits text into buffer lines.
---@param text string
---@return string[]
function M.lines(text)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    table.remove(lines)
  end
  return lines
end

--- Formats a number with a noun: `1 file`, `2 files`.
---@param number integer
---@param thing string
---@return string
function M.count(number, thing)
  return ('%d %s%s'):format(number, thing, number == 1 and '' or 's')
end

--- Formats a size: `12 kB`, `3.4 MB`.
---@param bytes integer
---@return string
function M.size(bytes)
  if bytes < 1000 * 1000 then
    return ('%d kB'):format(math.ceil(bytes / 1000))
  end
  return ('%.1f MB'):format(bytes / 1000 / 1000)
end

--- Formats a time of the protocol.
---@param milliseconds integer
---@param format? string of `os.date`
---@return string
function M.time(milliseconds, format)
  return tostring(os.date(format or '%Y-%m-%d %H:%M:%S', math.floor(milliseconds / 1000)))
end

local UNITS = { { 24 * 3600, 'day' }, { 3600, 'hour' }, { 60, 'minute' } }

--- Formats the time since a time of the protocol: `2 hours ago`.
---@param milliseconds integer
---@return string
function M.ago(milliseconds)
  local seconds = os.time() - milliseconds / 1000
  for _, unit in ipairs(UNITS) do
    if seconds >= unit[1] then
      return M.count(math.floor(seconds / unit[1]), unit[2]) .. ' ago'
    end
  end
  return 'just now'
end

--- Shortens the id of a checkpoint. The name of a turn stays.
---@param id string
---@return string
function M.id(id)
  return id:match('^%x+$') and id:sub(1, 8) or id
end

--- Describes the state that the name of a turn means: `before claude-2.3`, `after claude-2.3`.
---@param name string
---@return string
function M.turn_side(name)
  local turn = name:match('^(.*)%+$')
  return turn and 'after ' .. turn or 'before ' .. name
end

return M
