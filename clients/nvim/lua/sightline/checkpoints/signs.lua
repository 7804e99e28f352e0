--- Marks the lines that changed since a checkpoint in the sign column.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local show = require('sightline.show')

local M = {}

local SIGNS = vim.api.nvim_create_namespace('sightline.signs')

--- Delay after which the signs follow the text, in milliseconds.
local DEBOUNCE_MS = 100

---@type { id: string, target: sightline.Target, texts: table<integer, string> }? old texts by buffer
local current

local group = vim.api.nvim_create_augroup('sightline_signs', {})

---@param bufnr integer
local function draw(bufnr)
  if not current or not vim.api.nvim_buf_is_loaded(bufnr) then
    return
  end
  vim.api.nvim_buf_clear_namespace(bufnr, SIGNS, 0, -1)
  local text = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') .. '\n'
  local changes = vim.diff(current.texts[bufnr], text, { result_type = 'indices' })
  local count = vim.api.nvim_buf_line_count(bufnr)
  for _, change in
    ipairs(changes --[[@as integer[][] ]])
  do
    local removed, first, added = change[2], change[3], change[4]
    local function mark(line, sign, highlight)
      line = math.min(math.max(line, 1), count)
      local options = { sign_text = sign, sign_hl_group = highlight, priority = 20 }
      vim.api.nvim_buf_set_extmark(bufnr, SIGNS, line - 1, 0, options)
    end
    if added == 0 then
      mark(first, '_', 'SightlineDeleted')
    end
    for line = first, first + added - 1 do
      mark(line, '┃', removed == 0 and 'SightlineAdded' or 'SightlineModified')
    end
  end
end

--- Reads the old text of a file, and draws its signs.
---@param bufnr integer
local function load(bufnr)
  local wanted = current
  if not wanted or not buffers.is_file(bufnr) then
    return
  end
  local path = buffers.path(bufnr)
  local params = { from = wanted.id, paths = { path }, contents = true }
  api.diff_checkpoints(params, function(err, result)
    local file = result and result.files[1]
    if
      err
      or current ~= wanted
      or not vim.api.nvim_buf_is_loaded(bufnr)
      or (file and (file.binary or file.omitted))
    then
      return
    end
    -- A file that is not listed is the same on disk.
    local read, lines = pcall(vim.fn.readfile, path)
    local same = read and table.concat(lines, '\n') .. '\n'
    wanted.texts[bufnr] = file and (file.before or '') or same or nil
    if wanted.texts[bufnr] then
      draw(bufnr)
    end
  end, wanted.target)
end

---@return boolean
function M.is_on()
  return current ~= nil
end

--- Removes all signs.
function M.hide()
  current = nil
  vim.api.nvim_clear_autocmds({ group = group })
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    vim.api.nvim_buf_clear_namespace(bufnr, SIGNS, 0, -1)
  end
  show.say('no changes are marked')
end

--- Marks the changes since a checkpoint, or since a turn began, in all files.
---@param id string
---@param target sightline.Target
function M.show(id, target)
  -- The name of a turn means two states, of which the first is wanted.
  api.list_checkpoints({ id = id }, function(err, result)
    if not result then
      return show.failed(err)
    end
    current = { id = result.checkpoints[1].id, target = target, texts = {} }
    vim.api.nvim_clear_autocmds({ group = group })
    vim.api.nvim_create_autocmd('BufReadPost', {
      group = group,
      callback = function(event)
        load(event.buf)
      end,
    })
    local timers = {}
    vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI' }, {
      group = group,
      callback = function(event)
        local bufnr = event.buf
        if current and current.texts[bufnr] then
          timers[bufnr] = timers[bufnr] or assert(vim.uv.new_timer())
          timers[bufnr]:start(
            DEBOUNCE_MS,
            0,
            vim.schedule_wrap(function()
              draw(bufnr)
            end)
          )
        end
      end,
    })
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_is_loaded(bufnr) then
        load(bufnr)
      end
    end
    show.say(('changes since %s are marked; :Sightline signs removes the marks'):format(show.id(id)))
  end, target)
end

return M
