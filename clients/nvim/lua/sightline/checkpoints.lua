--- Creates checkpoints, and restores and undoes them after a preview.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local diff = require('sightline.diff')
local pickers = require('sightline.pickers')
local server = require('sightline.server')
local show = require('sightline.show')

local M = {}

---@type table<string, string> undo point of the last restore, by root
local undo = {}

local tokens = 0

--- Returns a token for `$/progress`, which Neovim shows in `vim.lsp.status()`.
local function progress()
  tokens = tokens + 1
  return ('sightline-%d'):format(tokens)
end

--- Returns the current project, so that later focus changes do not affect the
--- request.
---@return sightline.Target
local function current_target()
  return { root = server.root() }
end

--- Creates a checkpoint and shows its counts.
---@param label? string
---@param confirmed? boolean
---@param target? sightline.Target
function M.create(label, confirmed, target)
  target = target or current_target()
  local params = { label = label, confirmLarge = confirmed or nil, workDoneToken = progress() }
  api.create_checkpoint(params, function(err, checkpoint)
    if err and err.kind == 'tooLarge' and not confirmed then
      return pickers.action(err.message, {
        {
          label = 'Create anyway',
          run = function()
            M.create(label, true, target)
          end,
        },
      })
    elseif not checkpoint then
      return show.failed(err)
    end
    local text = 'checkpoint %s: +%d ~%d -%d'
    text = text:format(checkpoint.id:sub(1, 8), checkpoint.added, checkpoint.modified, checkpoint.deleted)
    if #checkpoint.skipped > 0 then
      text = ('%s, %d skipped'):format(text, #checkpoint.skipped)
    end
    show.say(text)
  end, target)
end

--- Shows the changes since a checkpoint. Asks for one if none is given.
---@param spec? string checkpoint, or two as `old..new`
---@param paths? string[]
function M.diff(spec, paths)
  local target = current_target()
  if spec then
    return pickers.resolve_range(spec, target, function(older, newer)
      diff.open({ from = older, to = newer, paths = paths }, target)
    end)
  end
  pickers.checkpoint('Changes since', {}, target, function(checkpoint)
    diff.open({ from = checkpoint.id, paths = paths }, target)
  end)
end

--- Reloads the buffers of restored files, and deletes the hidden buffers of deleted
--- files.
---@param outcomes sightline.RestoreOutcome[]
---@param target? sightline.Target
---@param force? boolean also buffers with unsaved text
function M.restored(outcomes, target, force)
  for _, outcome in ipairs(outcomes) do
    local bufnr = outcome.ok and buffers.of_path(diff.path(outcome, target))
    if bufnr and outcome.action == 'delete' then
      if vim.bo[bufnr].modified or #vim.fn.win_findbuf(bufnr) > 0 then
        show.mark(bufnr, 'deleted by a restore; :write creates the file again')
      else
        vim.api.nvim_buf_delete(bufnr, {})
      end
    elseif bufnr and vim.bo[bufnr].modified then
      if force then
        vim.api.nvim_buf_call(bufnr, function()
          vim.cmd('silent keepalt edit!')
        end)
      end
    elseif bufnr then
      -- The user confirmed this change, so reload without asking.
      local autoread = vim.bo[bufnr].autoread
      vim.bo[bufnr].autoread = true
      vim.cmd(('silent checktime %d'):format(bufnr))
      vim.bo[bufnr].autoread = autoread
    end
  end
end

---@param verb string
---@param target sightline.Target
---@param force? boolean
local function report(verb, target, force)
  ---@param err? sightline.Error
  ---@param result? sightline.RestoreCheckpointResult
  return function(err, result)
    if not result then
      return show.failed(err)
    end
    if not result.undoId then
      return show.say('already up to date')
    end
    undo[target.root or ''] = result.undoId
    M.restored(result.outcomes, target, force)
    local failed = vim.tbl_filter(function(outcome)
      return not outcome.ok
    end, result.outcomes)
    local text = ('%s %s'):format(verb, show.count(#result.outcomes - #failed, 'file'))
    if #failed > 0 then
      local first = ('%s (%s)'):format(failed[1].path, failed[1].error or 'unknown error')
      text = ('%s; %s failed: %s'):format(text, show.count(#failed, 'file'), first)
      return show.say(text, vim.log.levels.WARN)
    end
    show.say(text .. '; revert with :Sightline undo')
  end
end

--- Formats a preview as lines.
---@param preview sightline.PreviewRestoreResult
---@return string[]
local function preview_lines(preview)
  local lines = {}
  for _, change in ipairs(preview.changes) do
    table.insert(lines, ('%-6s  %s  (%s)'):format(change.action, change.path, change.reason))
  end
  for _, conflict in ipairs(preview.conflicts) do
    table.insert(lines, ('%-6s  %s  (%s)'):format('keep', conflict.path, conflict.reason))
  end
  return lines
end

--- Returns the label of the choice that also changes the files that are kept otherwise, or
--- nil if there are none.
---@param verb string
---@param preview sightline.PreviewRestoreResult
---@return string?
local function forced_label(verb, preview)
  local found = {}
  for _, kind in ipairs({
    { field = 'unsaved', text = 'the unsaved text of %s' },
    { field = 'changedSince', text = 'the later changes of %s' },
  }) do
    local count = #vim.tbl_filter(function(conflict)
      return conflict[kind.field]
    end, preview.conflicts)
    if count > 0 then
      table.insert(found, kind.text:format(show.count(count, 'file')))
    end
  end
  return #found > 0 and ('%s and discard %s'):format(verb, table.concat(found, ' and ')) or nil
end

--- Returns the files of a preview, or nil for all.
---@param preview sightline.PreviewRestoreResult
---@return string[]?
local function previewed_files(preview)
  local uris = {}
  for _, one in ipairs(vim.list_extend(vim.list_slice(preview.changes), preview.conflicts)) do
    -- Denied files are counted in one entry without a path.
    if one.path ~= '' then
      table.insert(uris, one.uri)
    end
  end
  return #uris > 0 and uris or nil
end

--- A restore or undo that is previewed and confirmed.
---@class sightline.RestoreOperation
---@field title string
---@field question string
---@field verb string label of the button
---@field done string verb of the result message
---@field nothing string message if there is nothing to do
---@field preview sightline.PreviewRestoreParams
---@field send fun(preview: sightline.PreviewRestoreResult, force?: boolean, callback: function)

--- Previews an operation, asks for confirmation, and runs it.
---@param operation sightline.RestoreOperation
---@param target sightline.Target
local function review(operation, target)
  local params = vim.tbl_extend('force', operation.preview, { workDoneToken = progress() })
  api.preview_restore(params, function(err, preview)
    if not preview then
      return show.failed(err)
    end
    if #preview.changes + #preview.conflicts == 0 and not preview.taskId then
      return show.say(operation.nothing)
    end
    local lines = preview_lines(preview)
    if preview.taskId then
      table.insert(lines, ('restores the conversation of task %s as well'):format(preview.taskId))
    end
    local window = show.open(operation.title, lines)
    local function close()
      if vim.api.nvim_win_is_valid(window) then
        vim.api.nvim_win_close(window, true)
      end
    end
    local function go(force)
      return function()
        close()
        local done = report(operation.done, target, force)
        operation.send(preview, force, function(failed, result)
          if failed and failed.kind == 'conflict' then
            show.say('files changed since the preview; review it again', vim.log.levels.WARN)
            return review(operation, target)
          end
          done(failed, result)
        end)
      end
    end
    local choices = {}
    if #preview.changes > 0 or preview.taskId then
      local files = #preview.changes > 0 and ' ' .. show.count(#preview.changes, 'file') or ''
      table.insert(choices, { label = operation.verb .. files, run = go(nil) })
    end
    local label = forced_label(operation.verb, preview)
    if label then
      table.insert(choices, { label = label, run = go(true) })
    end
    table.insert(choices, {
      label = 'Show diff',
      run = function()
        close()
        local paths = preview.undoId and previewed_files(preview) or operation.preview.paths
        diff.open({ from = preview.undoId or operation.preview.id, paths = paths }, target)
      end,
    })
    -- Draw the preview before a prompt covers the screen.
    vim.cmd('redraw')
    pickers.action(operation.question, choices, close)
  end, target)
end

---@param id string
---@param paths? string[]
---@param target sightline.Target
local function preview_and_restore(id, paths, target)
  local short = id:sub(1, 8)
  review({
    title = 'restore ' .. short,
    question = ('Restore %s?'):format(short),
    verb = 'Restore',
    done = 'restored',
    nothing = ('already up to date with %s'):format(short),
    preview = { id = id, paths = paths, undo = false },
    send = function(preview, force, callback)
      local params = { id = id, paths = paths, token = preview.token, force = force, workDoneToken = progress() }
      api.restore_checkpoint(params, callback, target)
    end,
  }, target)
end

--- Restores a checkpoint after a preview. Asks for one if none is given.
---@param id? string
---@param paths? string[]
function M.restore(id, paths)
  local target = current_target()
  if id then
    return pickers.resolve(id, target, function(whole)
      preview_and_restore(whole, paths, target)
    end)
  end
  pickers.checkpoint('Restore checkpoint', {}, target, function(checkpoint)
    preview_and_restore(checkpoint.id, paths, target)
  end)
end

---@param id string
---@param target sightline.Target
local function preview_and_undo(id, target)
  review({
    title = 'undo restore',
    question = 'Undo the restore?',
    verb = 'Undo',
    done = 'undo restored',
    nothing = 'already up to date with the state before the restore',
    preview = { id = id, undo = true },
    send = function(preview, force, callback)
      local params = { undoId = preview.undoId, token = preview.token, force = force, workDoneToken = progress() }
      api.undo_restore(params, callback, target)
    end,
  }, target)
end

--- Undoes a restore after a preview: the given one, otherwise the last one of this
--- session, otherwise the last one.
---@param id? string
function M.undo(id)
  local target = current_target()
  if id and id ~= 'last' then
    return pickers.resolve(id, target, function(whole)
      preview_and_undo(whole, target)
    end)
  end
  preview_and_undo(undo[target.root or ''] or 'last', target)
end

--- Lists the checkpoints and asks for an action on one.
function M.list()
  local target = current_target()
  pickers.checkpoint('Checkpoint', {}, target, function(checkpoint)
    pickers.action(pickers.line(checkpoint), {
      {
        label = 'Show changes since',
        run = function()
          diff.open({ from = checkpoint.id }, target)
        end,
      },
      {
        label = 'Restore',
        run = function()
          preview_and_restore(checkpoint.id, nil, target)
        end,
      },
    })
  end)
end

--- Shows the number and disk usage of the checkpoints.
function M.stats()
  api.checkpoint_stats({}, function(err, stats)
    if not stats then
      return show.failed(err)
    end
    local text = ('%s, %s'):format(show.count(stats.count, 'checkpoint'), show.size(stats.bytes))
    if stats.oldest then
      text = ('%s, oldest %s'):format(text, show.time(stats.oldest))
    end
    show.say(text)
  end, current_target())
end

--- Removes all checkpoints but the newest, after a confirmation.
---@param number? string number of checkpoints to keep; asks if absent
function M.prune(number)
  local target = current_target()
  if not number then
    return vim.ui.input({ prompt = 'Checkpoints to keep: ' }, function(typed)
      if typed and typed ~= '' then
        M.prune(typed)
      end
    end)
  end
  local keep = number:match('^%d+$') and tonumber(number)
  if not keep then
    return show.say(('not a number: %s'):format(number), vim.log.levels.ERROR)
  end
  local function remove()
    api.prune_checkpoints({ keep = keep, workDoneToken = progress() }, function(err, result)
      if not result then
        return show.failed(err)
      end
      show.say(('removed %s, %s'):format(show.count(result.removed, 'checkpoint'), show.size(result.freedBytes)))
    end, target)
  end
  api.prune_checkpoints({ keep = keep, dryRun = true }, function(err, result)
    if not result then
      return show.failed(err)
    elseif result.removed == 0 then
      return show.say('no checkpoints to remove')
    end
    local text = 'Remove %s, about %s? This cannot be undone.'
    pickers.action(text:format(show.count(result.removed, 'checkpoint'), show.size(result.freedBytes)), {
      { label = 'Remove', run = remove },
    })
  end, target)
end

return M
