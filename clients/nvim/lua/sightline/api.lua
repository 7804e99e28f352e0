--- Functions for the requests of the protocol.
---
--- Each takes params (see `lua/sightline/protocol.lua`), a callback and an optional
--- target. The default target is the server of the current project. Each returns a
--- function that cancels the request.

local server = require('sightline.server')

---@class sightline.Api
local M = {}

---@param method string
local function request_function(method)
  return function(params, callback, target)
    return server.request(method, params, callback, target)
  end
end

--- Returns the environment block.
---@type fun(params?: sightline.EnvironmentDetailsParams, callback: fun(err?: sightline.Error, result?: sightline.EnvironmentDetailsResult), target?: sightline.Target): fun()
M.environment_details = request_function('environmentDetails')

--- Checks whether an agent may see paths or run a command.
---@type fun(params?: sightline.CheckAccessParams, callback: fun(err?: sightline.Error, result?: sightline.CheckAccessResult), target?: sightline.Target): fun()
M.check_access = request_function('checkAccess')

--- Lists the rule files in force, and what they deny.
---@type fun(params?: sightline.ListRulesParams, callback: fun(err?: sightline.Error, result?: sightline.ListRulesResult), target?: sightline.Target): fun()
M.list_rules = request_function('listRules')

--- Lists the denied files that git does not track, for `sightline exec`.
---@type fun(params?: sightline.HiddenPathsParams, callback: fun(err?: sightline.Error, result?: sightline.HiddenPathsResult), target?: sightline.Target): fun()
M.hidden_paths = request_function('hiddenPaths')

--- Takes the contents of denied files out of texts.
---@type fun(params: sightline.RedactParams, callback: fun(err?: sightline.Error, result?: sightline.RedactResult), target?: sightline.Target): fun()
M.redact = request_function('redact')

--- Lists what agents were refused, and what was redacted, newest first.
---@type fun(params?: sightline.ListDecisionsParams, callback: fun(err?: sightline.Error, result?: sightline.ListDecisionsResult), target?: sightline.Target): fun()
M.list_decisions = request_function('listDecisions')

--- Lists files without denied entries.
---@type fun(params?: sightline.ListFilesParams, callback: fun(err?: sightline.Error, result?: sightline.ListFilesResult), target?: sightline.Target): fun()
M.list_files = request_function('listFiles')

--- Reads a file that the access rules allow. Unsaved text takes precedence.
---@type fun(params?: sightline.ReadFileParams, callback: fun(err?: sightline.Error, result?: sightline.ReadFileResult), target?: sightline.Target): fun()
M.read_file = request_function('readFile')

--- Returns what language servers report about files.
---@type fun(params?: sightline.DiagnosticsParams, callback: fun(err?: sightline.Error, result?: sightline.DiagnosticsResult), target?: sightline.Target): fun()
M.diagnostics = request_function('diagnostics')

--- Returns the active file and the selected text.
---@type fun(params?: sightline.SelectionParams, callback: fun(err?: sightline.Error, result?: sightline.SelectionResult), target?: sightline.Target): fun()
M.selection = request_function('selection')

--- Returns the files with unsaved changes.
---@type fun(params?: sightline.UnsavedFilesParams, callback: fun(err?: sightline.Error, result?: sightline.UnsavedFilesResult), target?: sightline.Target): fun()
M.unsaved_files = request_function('unsavedFiles')

--- Returns the agents that are connected to the editor by their IDE protocol.
---@type fun(params?: sightline.ConnectedAgentsParams, callback: fun(err?: sightline.Error, result?: sightline.DidChangeBridgesParams), target?: sightline.Target): fun()
M.connected_agents = request_function('connectedAgents')

--- Shows a file in the editor, as agents ask for it.
---@type fun(params?: sightline.OpenFileParams, callback: fun(err?: sightline.Error, result?: sightline.OpenFileResult), target?: sightline.Target): fun()
M.open_file = request_function('openFile')

--- Records that a task read, edited or mentioned a file.
---@type fun(params?: sightline.TrackFileParams, callback: fun(err?: sightline.Error, result?: sightline.TrackFileResult), target?: sightline.Target): fun()
M.track_file = request_function('trackFile')

--- Records the model used by a task.
---@type fun(params?: sightline.RecordModelParams, callback: fun(err?: sightline.Error, result?: sightline.RecordedResult), target?: sightline.Target): fun()
M.record_model = request_function('recordModel')

--- Records the operating system and editor of a task.
---@type fun(params?: sightline.RecordEnvironmentParams, callback: fun(err?: sightline.Error, result?: sightline.RecordedResult), target?: sightline.Target): fun()
M.record_environment = request_function('recordEnvironment')

--- Returns the records of a task, and the files that changed since.
---@type fun(params?: sightline.TaskContextParams, callback: fun(err?: sightline.Error, result?: sightline.TaskContextResult), target?: sightline.Target): fun()
M.task_context = request_function('taskContext')

--- Counts the tokens of texts and messages.
---@type fun(params?: sightline.CountTokensParams, callback: fun(err?: sightline.Error, result?: sightline.CountTokensResult), target?: sightline.Target): fun()
M.count_tokens = request_function('countTokens')

--- Decides which messages of a conversation to send.
---@type fun(params?: sightline.TruncateHistoryParams, callback: fun(err?: sightline.Error, result?: sightline.TruncateHistoryResult), target?: sightline.Target): fun()
M.truncate_history = request_function('truncateHistory')

--- Discards truncation decisions made after a point in time.
---@type fun(params?: sightline.RollbackHistoryParams, callback: fun(err?: sightline.Error, result?: sightline.RollbackHistoryResult), target?: sightline.Target): fun()
M.rollback_history = request_function('rollbackHistory')

--- Classifies an error of a provider.
---@type fun(params?: sightline.ClassifyErrorParams, callback: fun(err?: sightline.Error, result?: sightline.ClassifyErrorResult), target?: sightline.Target): fun()
M.classify_error = request_function('classifyError')

--- Appends messages to a stored conversation durably.
---@type fun(params?: sightline.AppendMessagesParams, callback: fun(err?: sightline.Error, result?: sightline.AppendMessagesResult), target?: sightline.Target): fun()
M.append_messages = request_function('appendMessages')

--- Loads the stored conversation of a task.
---@type fun(params?: sightline.LoadTaskParams, callback: fun(err?: sightline.Error, result?: sightline.LoadTaskResult), target?: sightline.Target): fun()
M.load_task = request_function('loadTask')

--- Lists stored tasks, most recently updated first.
---@type fun(params?: sightline.ListTasksParams, callback: fun(err?: sightline.Error, result?: sightline.ListTasksResult), target?: sightline.Target): fun()
M.list_tasks = request_function('listTasks')

--- Resumes an interrupted task.
---@type fun(params?: sightline.ResumeTaskParams, callback: fun(err?: sightline.Error, result?: sightline.ResumeTaskResult), target?: sightline.Target): fun()
M.resume_task = request_function('resumeTask')

--- Deletes a task and all its stored data.
---@type fun(params?: sightline.DeleteTaskParams, callback: fun(err?: sightline.Error, result?: sightline.DeleteTaskResult), target?: sightline.Target): fun()
M.delete_task = request_function('deleteTask')

--- Plans a compaction and returns a prompt for the summary.
---@type fun(params?: sightline.PlanCompactionParams, callback: fun(err?: sightline.Error, result?: sightline.PlanCompactionResult), target?: sightline.Target): fun()
M.plan_compaction = request_function('planCompaction')

--- Replaces the older part of a conversation with a summary.
---@type fun(params?: sightline.ApplyCompactionParams, callback: fun(err?: sightline.Error, result?: sightline.ApplyCompactionResult), target?: sightline.Target): fun()
M.apply_compaction = request_function('applyCompaction')

--- Creates a checkpoint of the project.
---@type fun(params?: sightline.CreateCheckpointParams, callback: fun(err?: sightline.Error, result?: sightline.Checkpoint), target?: sightline.Target): fun()
M.create_checkpoint = request_function('createCheckpoint')

--- Lists the checkpoints of the project, newest first.
---@type fun(params?: sightline.ListCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.ListCheckpointsResult), target?: sightline.Target): fun()
M.list_checkpoints = request_function('listCheckpoints')

--- Lists the turns of agents with what each of them changed, newest first.
---@type fun(params?: sightline.ListTurnsParams, callback: fun(err?: sightline.Error, result?: sightline.ListTurnsResult), target?: sightline.Target): fun()
M.list_turns = request_function('listTurns')

--- Returns which turn, which agent or the user wrote each line of a file.
---@type fun(params?: sightline.BlameParams, callback: fun(err?: sightline.Error, result?: sightline.BlameResult), target?: sightline.Target): fun()
M.blame = request_function('blame')

--- Creates a commit of a checkpoint on a new branch of the user's repository.
---@type fun(params?: sightline.CommitCheckpointParams, callback: fun(err?: sightline.Error, result?: sightline.CommitCheckpointResult), target?: sightline.Target): fun()
M.commit_checkpoint = request_function('commitCheckpoint')

--- Compares two checkpoints, or a checkpoint with the workspace.
---@type fun(params?: sightline.DiffCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.DiffCheckpointsResult), target?: sightline.Target): fun()
M.diff_checkpoints = request_function('diffCheckpoints')

--- Previews a restore and returns a token for it.
---@type fun(params?: sightline.PreviewRestoreParams, callback: fun(err?: sightline.Error, result?: sightline.PreviewRestoreResult), target?: sightline.Target): fun()
M.preview_restore = request_function('previewRestore')

--- Restores files, the conversation or both.
---@type fun(params?: sightline.RestoreCheckpointParams, callback: fun(err?: sightline.Error, result?: sightline.RestoreCheckpointResult), target?: sightline.Target): fun()
M.restore_checkpoint = request_function('restoreCheckpoint')

--- Undoes a restore.
---@type fun(params?: sightline.UndoRestoreParams, callback: fun(err?: sightline.Error, result?: sightline.RestoreCheckpointResult), target?: sightline.Target): fun()
M.undo_restore = request_function('undoRestore')

--- Returns the number of checkpoints and their disk usage.
---@type fun(params?: sightline.CheckpointStatsParams, callback: fun(err?: sightline.Error, result?: sightline.CheckpointStatsResult), target?: sightline.Target): fun()
M.checkpoint_stats = request_function('checkpointStats')

--- Sets or removes the label of a checkpoint.
---@type fun(params: sightline.LabelCheckpointParams, callback: fun(err?: sightline.Error, result?: sightline.Checkpoint), target?: sightline.Target): fun()
M.label_checkpoint = request_function('labelCheckpoint')

--- Removes old checkpoints.
---@type fun(params?: sightline.PruneCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.PruneCheckpointsResult), target?: sightline.Target): fun()
M.prune_checkpoints = request_function('pruneCheckpoints')

--- Checks the integrity of the checkpoints.
---@type fun(params?: sightline.VerifyCheckpointsParams, callback: fun(err?: sightline.Error, result?: sightline.VerifyCheckpointsResult), target?: sightline.Target): fun()
M.verify_checkpoints = request_function('verifyCheckpoints')

--- Lists the MCP servers that agents get.
---@type fun(params?: sightline.ListMcpServersParams, callback: fun(err?: sightline.Error, result?: sightline.ListMcpServersResult), target?: sightline.Target): fun()
M.list_mcp_servers = request_function('listMcpServers')

--- Offers an MCP server to agents, or no longer.
---@type fun(params: sightline.SetMcpServerEnabledParams, callback: fun(err?: sightline.Error, result?: sightline.McpServer), target?: sightline.Target): fun()
M.set_mcp_server_enabled = request_function('setMcpServerEnabled')

--- Restarts an MCP server at its next call.
---@type fun(params: sightline.McpServerParams, callback: fun(err?: sightline.Error, result?: sightline.McpServer), target?: sightline.Target): fun()
M.restart_mcp_server = request_function('restartMcpServer')

--- Lets an MCP server of the project run.
---@type fun(params: sightline.McpServerParams, callback: fun(err?: sightline.Error, result?: sightline.McpServer), target?: sightline.Target): fun()
M.trust_mcp_server = request_function('trustMcpServer')

--- Returns what an MCP server printed.
---@type fun(params: sightline.McpServerParams, callback: fun(err?: sightline.Error, result?: sightline.McpServerLogResult), target?: sightline.Target): fun()
M.mcp_server_log = request_function('mcpServerLog')

return M
