--- Creates, compares, restores and lists checkpoints and turns of agents.

local api = require('sightline.api')
local buffers = require('sightline.buffers')
local diff = require('sightline.checkpoints.diff')
local list = require('sightline.checkpoints.list')
local pickers = require('sightline.checkpoints.pickers')
local review = require('sightline.checkpoints.review')
local server = require('sightline.server')
local show = require('sightline.show')
local signs = require('sightline.checkpoints.signs')

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

--- Remembers the undo point of a restore.
---@param target sightline.Target
---@param callback fun(err?: sightline.Error, result?: sightline.RestoreCheckpointResult)
local function remember(target, callback)
  return function(err, result)
    undo[target.root or ''] = result and result.undoId or undo[target.root or '']
    callback(err, result)
  end
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
    text = text:format(show.id(checkpoint.id), checkpoint.added, checkpoint.modified, checkpoint.deleted)
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

---@param id string
---@param paths? string[]
---@param target sightline.Target
---@param only? 'turn' revert what the turn changed only
local function preview_and_restore(id, paths, target, only)
  local short = show.id(id)
  review.open({
    title = (only and 'revert ' or 'restore ') .. short,
    verb = 'restore',
    done = 'restored',
    nothing = ('already up to date with %s'):format(short),
    preview = { id = id, paths = paths, undo = false, only = only },
    send = function(params, callback)
      params = vim.tbl_extend('keep', params, { id = id, paths = paths, only = only, workDoneToken = progress() })
      params.undoId = nil
      api.restore_checkpoint(params, remember(target, callback), target)
    end,
  }, target)
end

--- Restores a checkpoint after a preview. Asks for one if none is given.
---@param id? string
---@param paths? string[]
---@param target? sightline.Target
---@param only? 'turn' revert what the turn changed only
function M.restore(id, paths, target, only)
  target = target or current_target()
  if id then
    return pickers.resolve(id, target, function(whole)
      preview_and_restore(whole, paths, target, only)
    end)
  end
  pickers.checkpoint('Restore checkpoint', {}, target, function(checkpoint)
    preview_and_restore(checkpoint.id, paths, target)
  end)
end

---@param id string
---@param target sightline.Target
local function preview_and_undo(id, target)
  review.open({
    title = 'undo restore',
    verb = 'undo',
    done = 'undo restored',
    nothing = 'already up to date with the state before the restore',
    preview = { id = id, undo = true },
    send = function(params, callback)
      params.workDoneToken = progress()
      api.undo_restore(params, remember(target, callback), target)
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

--- Returns whether there is a restore to undo: one of this session, or the last one of all, which is
--- not an undo itself.
---@param checkpoints sightline.Checkpoint[] newest first
---@return boolean
function M.can_undo(checkpoints)
  if undo[server.root() or ''] then
    return true
  end
  local kinds, last = {}, nil
  for _, checkpoint in ipairs(checkpoints) do
    kinds[checkpoint.id] = checkpoint.kind
    if not last and checkpoint.kind == 'undoPoint' and not checkpoint.undoneBy then
      last = checkpoint
    end
  end
  return last ~= nil and kinds[last.restoredId] ~= 'undoPoint'
end

--- Lists the checkpoints.
function M.list()
  list.checkpoints(nil, current_target())
end

--- Lists the checkpoints in which a file changed, by default the current one.
---@param path? string
function M.history(path)
  local bufnr = vim.api.nvim_get_current_buf()
  if not path and not buffers.is_file(bufnr) then
    return show.say('not a file buffer; give a path', vim.log.levels.WARN)
  end
  list.checkpoints(path or buffers.path(bufnr), current_target())
end

--- Lists the turns of agents, or of one session.
---@param session? string
function M.turns(session)
  list.turns(session, current_target())
end

--- Marks the changes since a checkpoint in the sign column, by default since the newest turn
--- began, or marks none any more.
---@param id? string
function M.signs(id)
  local target = current_target()
  if not id and signs.is_on() then
    return signs.hide()
  elseif id then
    return pickers.resolve(id, target, function(whole)
      signs.show(whole, target)
    end)
  end
  api.list_turns({ limit = 1 }, function(err, result)
    if not result then
      return show.failed(err)
    end
    signs.show(result.turns[1] and result.turns[1].name or 'last', target)
  end, target)
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
