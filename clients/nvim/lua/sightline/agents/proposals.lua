--- Changes that agents propose, shown in tab pages until the user accepts or rejects them.

local buffers = require('sightline.buffers')
local show = require('sightline.show')

local M = {}

---@class sightline.Proposal
---@field params sightline.OpenDiffParams
---@field answer fun(result: sightline.OpenDiffResult)
---@field bufnr? integer Buffer with the proposed text. Absent until it is shown.
---@field tab? integer Tab page.

--- By the id of the diff.
---@type table<string, sightline.Proposal>
local proposals = {}

--- Closes a proposal. Its answer is sent later, outside of autocommands.
---@param id string
---@param result sightline.OpenDiffResult
local function decide(id, result)
  local proposal = proposals[id]
  if not proposal then
    return
  end
  proposals[id] = nil
  vim.schedule(function()
    proposal.answer(result)
    local bufnr, tab = proposal.bufnr, proposal.tab
    if bufnr and vim.api.nvim_buf_is_valid(bufnr) then
      -- Neovim closes no tab page with unsaved text.
      vim.bo[bufnr].modified = false
    end
    if tab and vim.api.nvim_tabpage_is_valid(tab) and #vim.api.nvim_list_tabpages() > 1 then
      vim.cmd.tabclose({ range = { vim.api.nvim_tabpage_get_number(tab) } })
    end
    if bufnr and vim.api.nvim_buf_is_valid(bufnr) then
      vim.api.nvim_buf_delete(bufnr, { force = true })
    end
  end)
end

--- Returns the text of a buffer as the agent wrote it: with or without a final line break.
---@param proposal sightline.Proposal
---@return string
local function text(proposal)
  local lines = vim.api.nvim_buf_get_lines(proposal.bufnr, 0, -1, false)
  return table.concat(lines, '\n') .. (proposal.params.contents:match('\n$') or '')
end

---@param id string
local function accept(id)
  local proposal = proposals[id]
  local contents = text(proposal)
  decide(id, { accepted = true, contents = contents ~= proposal.params.contents and contents or nil })
end

--- Writes the lines of `:write FILE`.
---@param file string
local function write_copy(file)
  local lines = vim.api.nvim_buf_get_lines(0, vim.fn.line("'[") - 1, vim.fn.line("']"), false)
  local ok, err = pcall(vim.fn.writefile, lines, file)
  if not ok then
    show.failed(err)
  end
end

--- Shows a file next to a proposed text. While the file has unsaved text, its title says so: the
--- agent knows the file on disk only.
---@param window integer
---@param path string
local function show_file(window, path)
  local bufnr = buffers.unlisted(path)
  show.diff(window, bufnr, 'now')
  local function update()
    -- The user may show another buffer in the window.
    if not vim.api.nvim_win_is_valid(window) or vim.api.nvim_win_get_buf(window) ~= bufnr then
      return true
    end
    local is_modified = vim.bo[bufnr].modified
    local title = is_modified and 'unsaved text here is not in the change' or 'now'
    show.title(window, title, is_modified)
  end
  update()
  vim.api.nvim_create_autocmd('BufModifiedSet', { buffer = bufnr, callback = update })
end

--- Shows a proposal in a new tab page: the file on the left, the proposed text on the right.
---@param id string
local function open(id)
  local proposal = proposals[id]
  local params = proposal.params
  local bufnr = show.scratch(
    ('proposed/%s/%s'):format(id:sub(1, 8), params.path),
    show.lines(params.contents),
    vim.filetype.match({ filename = params.path }) or ''
  )
  proposal.bufnr = bufnr
  vim.bo[bufnr].modifiable = true
  vim.bo[bufnr].buftype = 'acwrite'
  vim.bo[bufnr].modified = false
  vim.api.nvim_create_autocmd('BufWriteCmd', {
    buffer = bufnr,
    callback = function(event)
      if event.match ~= vim.api.nvim_buf_get_name(bufnr) then
        return write_copy(event.file)
      end
      -- `:wall` in another tab page is no decision.
      if vim.api.nvim_get_current_tabpage() == proposal.tab then
        vim.bo[bufnr].modified = false
        accept(id)
      end
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = bufnr,
    callback = function()
      decide(id, { accepted = false })
    end,
  })
  vim.cmd('tabnew')
  vim.bo.bufhidden = 'wipe'
  proposal.tab = vim.api.nvim_get_current_tabpage()
  local right = vim.api.nvim_get_current_win()
  vim.cmd('leftabove vsplit')
  local left = vim.api.nvim_get_current_win()
  show_file(left, buffers.normalize(vim.uri_to_fname(params.uri)))
  show.diff(right, bufnr, ('%s  (:w accepts, :q rejects)'):format(params.title))
  vim.api.nvim_set_current_win(right)
end

--- Runs `action` in Normal mode: what the user types now is not meant for a new window.
---@param action fun()
local function when_normal(action)
  if vim.api.nvim_get_mode().mode:sub(1, 1) == 'n' then
    return action()
  end
  vim.api.nvim_create_autocmd('ModeChanged', {
    pattern = '*:n*',
    callback = function()
      vim.schedule(function()
        when_normal(action)
      end)
      return true
    end,
  })
end

--- Handles `sightline/openDiff`. Neovim runs handlers of requests in coroutines, and sends the
--- response when they return.
---@param params sightline.OpenDiffParams
---@return sightline.OpenDiffResult
function M.handle_open(_, params)
  local thread = coroutine.running()
  proposals[params.diffId] = {
    params = params,
    answer = function(result)
      coroutine.resume(thread, result)
    end,
  }
  vim.schedule(function()
    when_normal(function()
      if proposals[params.diffId] then
        open(params.diffId)
      end
    end)
  end)
  return coroutine.yield()
end

--- Keeps what the user has edited in a proposal in a new buffer, before the agent closes it.
---@param proposal sightline.Proposal
local function keep_edits(proposal)
  if not proposal.bufnr or not vim.bo[proposal.bufnr].modified then
    return
  end
  local kept = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_lines(kept, 0, -1, false, vim.api.nvim_buf_get_lines(proposal.bufnr, 0, -1, false))
  vim.bo[kept].filetype = vim.bo[proposal.bufnr].filetype
  local message = 'the agent closed its change of %s; your edits are in buffer %d'
  show.say(message:format(proposal.params.path, kept), vim.log.levels.WARN)
end

--- Handles `sightline/closeDiff`.
---@param params sightline.CloseDiffParams
function M.handle_close(_, params)
  local proposal = proposals[params.diffId]
  if proposal then
    keep_edits(proposal)
  end
  decide(params.diffId, { accepted = false })
end

--- Returns the proposal of the current tab page, or the only one.
---@return string? id
local function current()
  local tab = vim.api.nvim_get_current_tabpage()
  for id, proposal in pairs(proposals) do
    if proposal.tab == tab then
      return id
    end
  end
  local first = next(proposals)
  return first and not next(proposals, first) and first or nil
end

--- Returns whether a proposed change waits for the user.
---@return boolean
function M.are_open()
  return next(proposals) ~= nil
end

---@param action fun(id: string)
local function with_current(action)
  local id = current()
  if not id or not proposals[id].bufnr then
    return show.say('no proposed change is shown in this tab page', vim.log.levels.WARN)
  end
  action(id)
end

--- Accepts the proposed change of the current tab page, as it was edited.
function M.accept()
  with_current(accept)
end

--- Rejects the proposed change of the current tab page.
function M.reject()
  with_current(function(id)
    decide(id, { accepted = false })
  end)
end

return M
