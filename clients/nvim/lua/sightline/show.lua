--- What people get to see: one-line messages and read-only windows.

local M = {}

---@param message string
---@param level? integer of `vim.log.levels`
function M.say(message, level)
  -- Below what a prompt left on the screen it would wait for a key.
  vim.cmd('redraw')
  vim.notify('sightline: ' .. message, level or vim.log.levels.INFO)
end

--- An error, in one line.
---@param err sightline.Error
function M.failed(err)
  M.say(err.message:gsub('%s*\n%s*', ' '), vim.log.levels.ERROR)
end

--- A scratch buffer that holds these lines and cannot be changed. Its name is
--- only a label: nothing is ever read from or written to it.
---@param name string
---@param lines string[]
---@param filetype? string
---@return integer bufnr
function M.scratch(name, lines, filetype)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  -- A name is taken while another window still shows it; the content counts.
  pcall(vim.api.nvim_buf_set_name, bufnr, 'sightline://' .. name)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].modeline = false
  if filetype then
    vim.bo[bufnr].filetype = filetype
  end
  return bufnr
end

--- Shows lines in a window of their own; `q` closes it. It is at the top because
--- Neovim's own prompts cover the bottom of the screen.
---@param name string
---@param lines string[]
---@param filetype? string
---@return integer window
function M.open(name, lines, filetype)
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.w[window].sightline == name then
      vim.api.nvim_win_close(window, true)
    end
  end
  local bufnr = M.scratch(name, lines, filetype)
  local height = math.max(3, math.min(#lines, math.floor(vim.o.lines * 0.4)))
  vim.cmd(('topleft %dsplit'):format(height))
  local window = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(window, bufnr)
  vim.w[window].sightline = name
  vim.wo[window].winfixheight = true
  vim.wo[window].number = false
  vim.wo[window].relativenumber = false
  vim.wo[window].wrap = false
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, desc = 'Close' })
  return window
end

--- Text as lines for a buffer.
---@param text string
---@return string[]
function M.lines(text)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    table.remove(lines)
  end
  return lines
end

--- A number of things: `1 file`, `2 files`.
---@param number integer
---@param thing string
---@return string
function M.count(number, thing)
  return ('%d %s%s'):format(number, thing, number == 1 and '' or 's')
end

--- A time of the protocol for people.
---@param milliseconds integer
---@return string
function M.time(milliseconds)
  return tostring(os.date('%Y-%m-%d %H:%M:%S', math.floor(milliseconds / 1000)))
end

return M
