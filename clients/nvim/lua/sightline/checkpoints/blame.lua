--- Shows the author of each line of a file as virtual text, on demand.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local show = require('sightline.show')

local M = {}

local BLAME = vim.api.nvim_create_namespace('sightline.blame')

---@param line sightline.BlameLine
---@return string
local function describe(line)
  local by = line.turn or line.turns and table.concat(line.turns, ' or ') or line.agent or 'you, or another program'
  if line.by == 'unknown' then
    return 'unknown'
  end
  return line.at and ('%s, %s'):format(by, show.ago(line.at)) or by
end

---@param bufnr integer
local function hide(bufnr)
  vim.api.nvim_buf_clear_namespace(bufnr, BLAME, 0, -1)
  vim.b[bufnr].sightline_blame = nil
end

--- Shows or hides the author of each line of the current file. They are hidden when the text changes.
function M.toggle()
  local bufnr = vim.api.nvim_get_current_buf()
  if vim.b[bufnr].sightline_blame then
    return hide(bufnr)
  elseif not buffers.is_file(bufnr) then
    return show.say('not a file buffer', vim.log.levels.WARN)
  elseif vim.bo[bufnr].modified then
    return show.say('write the file first: blame knows the lines on disk', vim.log.levels.WARN)
  end
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  api.blame({ path = buffers.path(bufnr) }, function(err, result)
    if not result then
      return show.failed(err)
    elseif not vim.api.nvim_buf_is_loaded(bufnr) or tick ~= vim.api.nvim_buf_get_changedtick(bufnr) then
      return
    end
    local count, last = vim.api.nvim_buf_line_count(bufnr), nil
    for _, line in ipairs(result.lines) do
      local text = describe(line)
      if line.line <= count then
        -- A text that is that of the line above is not repeated.
        local shown = text == last and '│' or text
        local options = { virt_text = { { '  ' .. shown, 'SightlineFolder' } }, hl_mode = 'combine' }
        vim.api.nvim_buf_set_extmark(bufnr, BLAME, line.line - 1, 0, options)
      end
      last = text
    end
    vim.b[bufnr].sightline_blame = true
    vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'BufReadPost' }, {
      buffer = bufnr,
      once = true,
      callback = function()
        hide(bufnr)
      end,
    })
  end, { bufnr = bufnr })
end

return M
