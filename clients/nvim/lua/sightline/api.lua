--- The requests of the protocol as functions.
---
--- Each takes params (see `lua/sightline/protocol.lua`), a callback and, if it
--- is not to be the server of the current project, a target. Each returns a
--- function that cancels it.

local server = require('sightline.server')

---@class sightline.Api
local M = {}

---@param method string
local function asking(method)
  return function(params, callback, target)
    return server.request(method, params, callback, target)
  end
end

--- The block an agent puts in front of its model.
---@type fun(params?: sightline.EnvironmentDetailsParams, callback: fun(err?: sightline.Error, result?: sightline.EnvironmentDetailsResult), target?: sightline.Target): fun()
M.environment_details = asking('environmentDetails')

--- May an agent see these paths, may it run this command?
---@type fun(params?: sightline.CheckAccessParams, callback: fun(err?: sightline.Error, result?: sightline.CheckAccessResult), target?: sightline.Target): fun()
M.check_access = asking('checkAccess')

--- Files, without what may not be seen.
---@type fun(params?: sightline.ListFilesParams, callback: fun(err?: sightline.Error, result?: sightline.ListFilesResult), target?: sightline.Target): fun()
M.list_files = asking('listFiles')

--- The text of a file: unsaved text first, access enforced.
---@type fun(params?: sightline.ReadFileParams, callback: fun(err?: sightline.Error, result?: sightline.ReadFileResult), target?: sightline.Target): fun()
M.read_file = asking('readFile')

--- Records that a task read, changed or mentioned a file.
---@type fun(params?: sightline.TrackFileParams, callback: fun(err?: sightline.Error, result?: sightline.TrackFileResult), target?: sightline.Target): fun()
M.track_file = asking('trackFile')

--- Records the model a task uses.
---@type fun(params?: sightline.RecordModelParams, callback: fun(err?: sightline.Error, result?: sightline.RecordedResult), target?: sightline.Target): fun()
M.record_model = asking('recordModel')

--- Records system and editor a task runs on.
---@type fun(params?: sightline.RecordEnvironmentParams, callback: fun(err?: sightline.Error, result?: sightline.RecordedResult), target?: sightline.Target): fun()
M.record_environment = asking('recordEnvironment')

--- What a task knows of its files, and where that is out of date.
---@type fun(params?: sightline.TaskContextParams, callback: fun(err?: sightline.Error, result?: sightline.TaskContextResult), target?: sightline.Target): fun()
M.task_context = asking('taskContext')

--- Counts the tokens of texts and messages.
---@type fun(params?: sightline.CountTokensParams, callback: fun(err?: sightline.Error, result?: sightline.CountTokensResult), target?: sightline.Target): fun()
M.count_tokens = asking('countTokens')

--- Decides which messages of a conversation are sent.
---@type fun(params?: sightline.TruncateHistoryParams, callback: fun(err?: sightline.Error, result?: sightline.TruncateHistoryResult), target?: sightline.Target): fun()
M.truncate_history = asking('truncateHistory')

--- Takes decisions about a conversation back, to a point in time.
---@type fun(params?: sightline.RollbackHistoryParams, callback: fun(err?: sightline.Error, result?: sightline.RollbackHistoryResult), target?: sightline.Target): fun()
M.rollback_history = asking('rollbackHistory')

--- What a provider's error means for the conversation.
---@type fun(params?: sightline.ClassifyErrorParams, callback: fun(err?: sightline.Error, result?: sightline.ClassifyErrorResult), target?: sightline.Target): fun()
M.classify_error = asking('classifyError')

--- Stores messages of a task; they are durable when it calls back.
---@type fun(params?: sightline.AppendMessagesParams, callback: fun(err?: sightline.Error, result?: sightline.AppendMessagesResult), target?: sightline.Target): fun()
M.append_messages = asking('appendMessages')

--- The stored conversation of a task.
---@type fun(params?: sightline.LoadTaskParams, callback: fun(err?: sightline.Error, result?: sightline.LoadTaskResult), target?: sightline.Target): fun()
M.load_task = asking('loadTask')

--- The stored tasks, last updated first.
---@type fun(params?: sightline.ListTasksParams, callback: fun(err?: sightline.Error, result?: sightline.ListTasksResult), target?: sightline.Target): fun()
M.list_tasks = asking('listTasks')

--- Goes on with a task where it was interrupted.
---@type fun(params?: sightline.ResumeTaskParams, callback: fun(err?: sightline.Error, result?: sightline.ResumeTaskResult), target?: sightline.Target): fun()
M.resume_task = asking('resumeTask')

--- Deletes a task with all that is stored of it.
---@type fun(params?: sightline.DeleteTaskParams, callback: fun(err?: sightline.Error, result?: sightline.DeleteTaskResult), target?: sightline.Target): fun()
M.delete_task = asking('deleteTask')

--- Plans replacing the older part of a conversation by a summary.
---@type fun(params?: sightline.PlanCompactionParams, callback: fun(err?: sightline.Error, result?: sightline.PlanCompactionResult), target?: sightline.Target): fun()
M.plan_compaction = asking('planCompaction')

--- Replaces the older part of a conversation by a summary.
---@type fun(params?: sightline.ApplyCompactionParams, callback: fun(err?: sightline.Error, result?: sightline.ApplyCompactionResult), target?: sightline.Target): fun()
M.apply_compaction = asking('applyCompaction')

--- Takes a checkpoint of the project.
---@type fun(params?: sightline.CreateCheckpointParams, callback: fun(err?: sightline.Error, result?: sightline.Checkpoint), target?: sightline.Target): fun()
M.create_checkpoint = asking('createCheckpoint')

--- The checkpoints of the project, newest first.
---@type fun(params?: sightline.ListCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.ListCheckpointsResult), target?: sightline.Target): fun()
M.list_checkpoints = asking('listCheckpoints')

--- What differs between two checkpoints, or one and now.
---@type fun(params?: sightline.DiffCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.DiffCheckpointsResult), target?: sightline.Target): fun()
M.diff_checkpoints = asking('diffCheckpoints')

--- What a restore would change, and a token that names this preview.
---@type fun(params?: sightline.PreviewRestoreParams, callback: fun(err?: sightline.Error, result?: sightline.PreviewRestoreResult), target?: sightline.Target): fun()
M.preview_restore = asking('previewRestore')

--- Restores files, the conversation or both.
---@type fun(params?: sightline.RestoreCheckpointParams, callback: fun(err?: sightline.Error, result?: sightline.RestoreCheckpointResult), target?: sightline.Target): fun()
M.restore_checkpoint = asking('restoreCheckpoint')

--- Takes a restore back.
---@type fun(params?: sightline.UndoRestoreParams, callback: fun(err?: sightline.Error, result?: sightline.RestoreCheckpointResult), target?: sightline.Target): fun()
M.undo_restore = asking('undoRestore')

--- How many checkpoints there are, and how large.
---@type fun(params?: sightline.CheckpointStatsParams, callback: fun(err?: sightline.Error, result?: sightline.CheckpointStatsResult), target?: sightline.Target): fun()
M.checkpoint_stats = asking('checkpointStats')

--- Deletes old checkpoints.
---@type fun(params?: sightline.PruneCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.PruneCheckpointsResult), target?: sightline.Target): fun()
M.prune_checkpoints = asking('pruneCheckpoints')

--- Checks the store of checkpoints.
---@type fun(params?: sightline.VerifyCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.VerifyCheckpointsResult), target?: sightline.Target): fun()
M.verify_checkpoints = asking('verifyCheckpoints')

return M
