//! Table of the methods that Sightline adds to LSP.
//!
//! A method is a marker type with a name, params and a result. The dispatcher, the
//! tests and the generators all iterate over [`METHODS`].

mod causes;
#[macro_use]
mod macros;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};

use causes::{
    LONG_LINE, MCP, NO_CHECKPOINT, NO_MCP_SERVER, NO_PLACE, NO_ROOT, NO_RULES, NO_TASK, STORAGE,
    STORE, STORE_BUSY, TASK_BUSY,
};

use crate::error::ErrorKind;
use crate::{
    access, checkpoint, compaction, conversation, decision, editor, environment, files, mcp, task,
    tokens, tracker,
};

/// Direction of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Request from client to server.
    Request,
    /// Notification from client to server.
    ClientNotification,
    /// Request from server to client.
    ServerRequest,
    /// Notification from server to client.
    ServerNotification,
}

impl Direction {
    /// Returns whether the client sends messages of this direction.
    pub fn is_from_client(self) -> bool {
        matches!(self, Self::Request | Self::ClientNotification)
    }
}

/// A request, in either direction.
pub trait Request {
    /// Method name on the wire.
    const NAME: &'static str;
    /// Params of the request.
    type Params: DeserializeOwned + Serialize + JsonSchema;
    /// Result of the request.
    type Result: DeserializeOwned + Serialize + JsonSchema;
}

/// A notification, in either direction.
pub trait Notification {
    /// Method name on the wire.
    const NAME: &'static str;
    /// Params of the notification.
    type Params: DeserializeOwned + Serialize + JsonSchema;
}

/// A row of the method table.
pub struct Method {
    /// Method name on the wire.
    pub name: &'static str,
    /// Direction of the method.
    pub direction: Direction,
    /// Rust name of the params type.
    pub params: &'static str,
    /// Rust name of the result type of a request.
    pub result: Option<&'static str>,
    /// One-line description.
    pub summary: &'static str,
    /// First release with this method.
    pub since: &'static str,
    /// Error kinds and their causes, in addition to [`ANY_REQUEST`].
    pub errors: &'static [(ErrorKind, &'static str)],
    /// Adds the params schema to a generator.
    pub params_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Adds the result schema to a generator.
    pub result_schema: Option<fn(&mut SchemaGenerator) -> Schema>,
}

/// Error kinds of every request, and their causes.
pub const ANY_REQUEST: &[(ErrorKind, &str)] = &[
    (
        ErrorKind::InvalidParams,
        "a parameter is missing, has the wrong type or is invalid",
    ),
    (
        ErrorKind::TooLarge,
        "the parameters exceed a limit named in the message, such as nesting, the number of paths or the size of a label",
    ),
    (
        ErrorKind::Cancelled,
        "the client cancelled the request before anything was changed",
    ),
    (
        ErrorKind::NotInitialized,
        "the request arrived before `initialize` was answered",
    ),
    (ErrorKind::Internal, "a bug in the server"),
];

impl Method {
    /// Returns the `workspace/executeCommand` name of this request:
    /// `sightline.listFiles` for `sightline/listFiles`.
    pub fn command(&self) -> Option<String> {
        (self.direction == Direction::Request).then(|| self.name.replacen('/', ".", 1))
    }
}

/// Returns the last component of a type path at compile time.
const fn type_name(path: &'static str) -> &'static str {
    let bytes = path.as_bytes();
    let mut start = bytes.len();
    while start > 0 && bytes[start - 1] != b':' && bytes[start - 1] != b' ' {
        start -= 1;
    }
    path.split_at(start).1
}

methods! {
    requests {
        /// Returns the current `<environment_details>` block.
        EnvironmentDetails = "sightline/environmentDetails":
            environment::EnvironmentDetailsParams => environment::EnvironmentDetailsResult,
            since "0.1.0", fails {
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Checks paths and a command line against the access rules.
        CheckAccess = "sightline/checkAccess":
            access::CheckAccessParams => access::CheckAccessResult,
            since "0.1.0", fails {
                TooLarge: "the request has more than a million paths",
            };
        /// Lists the rule files in force, and what they deny. For the user: agents see neither.
        ListRules = "sightline/listRules":
            files::ListRulesParams => files::ListRulesResult,
            since "0.1.0", fails {};
        /// Lists the denied files and folders that git does not track, for `sightline exec`. Agents do not see it.
        HiddenPaths = "sightline/hiddenPaths":
            access::HiddenPathsParams => access::HiddenPathsResult,
            since "0.1.0", fails {
                Unsupported: "the server keeps no such list, or a path is not UTF-8",
            };
        /// Replaces the contents of denied files in texts.
        Redact = "sightline/redact":
            decision::RedactParams => decision::RedactResult,
            since "0.1.0", fails {};
        /// Lists what agents were refused and what was hidden from them, newest first.
        ListDecisions = "sightline/listDecisions":
            decision::ListDecisionsParams => decision::ListDecisionsResult,
            since "0.1.0", fails {
                Storage: "the log cannot be read",
            };
        /// Lists files in breadth-first order, without denied entries.
        ListFiles = "sightline/listFiles":
            files::ListFilesParams => files::ListFilesResult,
            since "0.1.0", fails {
                AccessDenied: "the folder is denied or outside every workspace folder",
                NotFound: "the folder does not exist, or no workspace folder is open",
                Unsupported: "the folder is the home folder or the root of a file system, or cannot be read",
            };
        /// Reads a file that the access rules allow. Unsaved editor text takes precedence over the disk.
        ReadFile = "sightline/readFile":
            files::ReadFileParams => files::ReadFileResult,
            since "0.1.0", fails {
                AccessDenied: "the file, or the target of a link, is denied or outside every workspace folder",
                NotFound: "the file does not exist",
                Unsupported: "the path is a binary file, a folder or a special file, or cannot be read",
                TooLarge: "the file is larger than 512 MiB",
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Returns what the language servers of the editor report about files.
        Diagnostics = "sightline/diagnostics":
            editor::DiagnosticsParams => editor::DiagnosticsResult,
            since "0.1.0", fails {
                AccessDenied: "a named file is denied or outside every workspace folder",
            };
        /// Returns the active file, and the text that the user selected in it.
        Selection = "sightline/selection":
            editor::SelectionParams => editor::SelectionResult,
            since "0.1.0", fails {};
        /// Returns the files with unsaved changes.
        UnsavedFiles = "sightline/unsavedFiles":
            editor::UnsavedFilesParams => editor::UnsavedFilesResult,
            since "0.1.0", fails {};
        /// Returns the agents that are connected to the editor by their IDE protocol.
        ConnectedAgents = "sightline/connectedAgents":
            editor::ConnectedAgentsParams => editor::DidChangeBridgesParams,
            since "0.1.0", fails {};
        /// Shows a file in the editor, with `window/showDocument`.
        OpenFile = "sightline/openFile":
            editor::OpenFileParams => editor::OpenFileResult,
            since "0.1.0", fails {
                AccessDenied: "the file is denied or outside every workspace folder",
                NotFound: "the file does not exist",
                Unsupported: "no editor is connected, or it cannot show documents",
            };
        /// Records that a task read, edited or mentioned a file.
        TrackFile = "sightline/trackFile":
            tracker::TrackFileParams => tracker::TrackFileResult,
            since "0.1.0", fails {
                AccessDenied: "the file is denied or outside every workspace folder",
                Unsupported: "the path is a folder",
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Records the model used by a task.
        RecordModel = "sightline/recordModel":
            tracker::RecordModelParams => tracker::RecordedResult,
            since "0.1.0", fails {
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Records the operating system and editor of a task.
        RecordEnvironment = "sightline/recordEnvironment":
            tracker::RecordEnvironmentParams => tracker::RecordedResult,
            since "0.1.0", fails {
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Returns the records of a task, and the files that changed since the agent saw them.
        TaskContext = "sightline/taskContext":
            tracker::TaskContextParams => tracker::TaskContextResult,
            since "0.1.0", fails {
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Counts the tokens of texts and messages.
        CountTokens = "sightline/countTokens":
            tokens::CountTokensParams => tokens::CountTokensResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Decides which messages of a conversation to send.
        TruncateHistory = "sightline/truncateHistory":
            conversation::TruncateHistoryParams => conversation::TruncateHistoryResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Busy: TASK_BUSY,
                Storage: STORAGE,
                TooLarge: LONG_LINE,
            };
        /// Discards truncation decisions made after a point in time.
        RollbackHistory = "sightline/rollbackHistory":
            conversation::RollbackHistoryParams => conversation::RollbackHistoryResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Busy: TASK_BUSY,
                Storage: STORAGE,
                TooLarge: LONG_LINE,
            };
        /// Classifies an error of a provider.
        ClassifyError = "sightline/classifyError":
            conversation::ClassifyErrorParams => conversation::ClassifyErrorResult,
            since "0.1.0", fails {};
        /// Appends messages to a stored conversation. They are durable when the request returns.
        AppendMessages = "sightline/appendMessages":
            task::AppendMessagesParams => task::AppendMessagesResult,
            since "0.1.0", fails {
                TooLarge: "a message is too long for the log; nothing was stored",
                Busy: TASK_BUSY,
                Storage: "the log cannot be written; nothing was stored",
            };
        /// Loads the stored conversation of a task.
        LoadTask = "sightline/loadTask":
            task::LoadTaskParams => task::LoadTaskResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Storage: STORAGE,
            };
        /// Lists stored tasks, most recently updated first.
        ListTasks = "sightline/listTasks":
            task::ListTasksParams => task::ListTasksResult,
            since "0.1.0", fails {
                Storage: STORAGE,
            };
        /// Resumes an interrupted task.
        ResumeTask = "sightline/resumeTask":
            task::ResumeTaskParams => task::ResumeTaskResult,
            since "0.1.0", fails {
                NotFound: "the task is not stored, or this workspace has no stored task",
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Deletes a task and all its stored data.
        DeleteTask = "sightline/deleteTask":
            task::DeleteTaskParams => task::DeleteTaskResult,
            since "0.1.0", fails {
                NotFound: "the task has neither a stored conversation nor a checkpoint",
                Busy: "another process is writing to the task or the checkpoint store",
                Storage: STORAGE,
            };
        /// Plans a compaction and returns a prompt for the summary.
        PlanCompaction = "sightline/planCompaction":
            compaction::PlanCompactionParams => compaction::PlanCompactionResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Storage: STORAGE,
            };
        /// Replaces the older part of a conversation with a summary.
        ApplyCompaction = "sightline/applyCompaction":
            compaction::ApplyCompactionParams => compaction::ApplyCompactionResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Conflict: "the task was compacted after the plan was made, or too little is left to summarize",
                TooLarge: LONG_LINE,
                Busy: "the task is being written to continuously, or by another process",
                Storage: STORAGE,
            };
        /// Creates a checkpoint of the workspace.
        CreateCheckpoint = "sightline/createCheckpoint":
            checkpoint::CreateCheckpointParams => checkpoint::Checkpoint,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                AccessDenied: NO_RULES,
                TooLarge: "the first checkpoint would exceed `checkpoints.maxFiles` or `checkpoints.maxTotalSize`, and is not confirmed",
                Unsupported: NO_PLACE,
                Conflict: "files keep changing while they are stored",
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Lists checkpoints, newest first.
        ListCheckpoints = "sightline/listCheckpoints":
            checkpoint::ListCheckpointsParams => checkpoint::ListCheckpointsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Lists the turns of agents, and what changed in and between them, newest first.
        ListTurns = "sightline/listTurns":
            checkpoint::ListTurnsParams => checkpoint::ListTurnsResult,
            since "0.1.0", fails {
                NotFound: "no workspace folder is open, or there is no turn `before`",
                AccessDenied: NO_RULES,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Compares two checkpoints, or a checkpoint with the current workspace.
        DiffCheckpoints = "sightline/diffCheckpoints":
            checkpoint::DiffCheckpointsParams => checkpoint::DiffCheckpointsResult,
            since "0.1.0", fails {
                NotFound: NO_CHECKPOINT,
                AccessDenied: NO_RULES,
                Conflict: "a file keeps changing while it is compared",
                Unsupported: NO_PLACE,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Previews a restore without changing anything.
        PreviewRestore = "sightline/previewRestore":
            checkpoint::PreviewRestoreParams => checkpoint::PreviewRestoreResult,
            since "0.1.0", fails {
                NotFound: "the checkpoint does not exist, its folder is not open, or there is no restore to undo (`undo`)",
                AccessDenied: NO_RULES,
                Conflict: "a folder of the group is not open (`allRoots`)",
                Unsupported: NO_PLACE,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Restores files, a conversation or both from a checkpoint.
        RestoreCheckpoint = "sightline/restoreCheckpoint":
            checkpoint::RestoreCheckpointParams => checkpoint::RestoreCheckpointResult,
            since "0.1.0", fails {
                NotFound: "the checkpoint does not exist, its folder is not open, or the task is not stored",
                AccessDenied: NO_RULES,
                Conflict: "the preview is out of date, a folder of the group is not open, or the log does not contain the conversation; nothing was changed",
                Unsupported: NO_PLACE,
                Busy: "another process is writing to the checkpoint store or the task",
                Storage: "a required part of the checkpoint store is damaged, or the store cannot be written; nothing was changed",
            };
        /// Undoes a restore.
        UndoRestore = "sightline/undoRestore":
            checkpoint::UndoRestoreParams => checkpoint::RestoreCheckpointResult,
            since "0.1.0", fails {
                NotFound: "the checkpoint does not exist, or there is no restore to undo",
                AccessDenied: NO_RULES,
                Conflict: "the preview is out of date, a folder of the group is not open, or the log does not contain the conversation; nothing was changed",
                Unsupported: NO_PLACE,
                Busy: "another process is writing to the checkpoint store or the task",
                Storage: "a required part of the checkpoint store is damaged, or the store cannot be written; nothing was changed",
            };
        /// Returns the number of checkpoints and their disk usage.
        CheckpointStats = "sightline/checkpointStats":
            checkpoint::CheckpointStatsParams => checkpoint::CheckpointStatsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Sets or removes the label of a checkpoint. Automatic checkpoints with a label are not counted by `checkpoints.keepAutomatic`.
        LabelCheckpoint = "sightline/labelCheckpoint":
            checkpoint::LabelCheckpointParams => checkpoint::Checkpoint,
            since "0.1.0", fails {
                NotFound: NO_CHECKPOINT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Returns the author of each line of a file: a turn, an agent or the user.
        Blame = "sightline/blame":
            checkpoint::BlameParams => checkpoint::BlameResult,
            since "0.1.0", fails {
                NotFound: "the file does not exist, or no workspace folder is open",
                AccessDenied: "the file, or the target of a link, is denied or outside every workspace folder",
                Unsupported: "the path is a binary file, a folder or a special file, or cannot be read",
                TooLarge: "the file is too large to compare",
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Creates a commit of a checkpoint on a new branch of the user's repository. The work tree, the
        /// index and the current branch stay as they are.
        CommitCheckpoint = "sightline/commitCheckpoint":
            checkpoint::CommitCheckpointParams => checkpoint::CommitCheckpointResult,
            since "0.1.0", fails {
                NotFound: "the checkpoint does not exist, its folder is not open, or the repository no longer has the commit of the checkpoint",
                AccessDenied: NO_RULES,
                Conflict: "the branch exists",
                Unsupported: "the folder is in no git repository, or git is not installed",
                Busy: STORE_BUSY,
                Storage: "the checkpoint store is damaged, or git failed; no branch was created",
            };
        /// Removes old checkpoints.
        PruneCheckpoints = "sightline/pruneCheckpoints":
            checkpoint::PruneCheckpointsParams => checkpoint::PruneCheckpointsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Checks the integrity of every checkpoint.
        VerifyCheckpoints = "sightline/verifyCheckpoints":
            checkpoint::VerifyCheckpointsParams => checkpoint::VerifyCheckpointsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Lists the MCP servers that agents get, with their states and tools.
        ListMcpServers = "sightline/listMcpServers":
            mcp::ListMcpServersParams => mcp::ListMcpServersResult,
            since "0.1.0", fails {
                Storage: MCP,
            };
        /// Offers an MCP server to agents, or no longer.
        SetMcpServerEnabled = "sightline/setMcpServerEnabled":
            mcp::SetMcpServerEnabledParams => mcp::McpServer,
            since "0.1.0", fails {
                NotFound: NO_MCP_SERVER,
                Storage: MCP,
            };
        /// Restarts an MCP server in all sessions of agents, at its next call.
        RestartMcpServer = "sightline/restartMcpServer":
            mcp::McpServerParams => mcp::McpServer,
            since "0.1.0", fails {
                NotFound: NO_MCP_SERVER,
                Storage: MCP,
            };
        /// Lets an MCP server of a project run until its command changes, and accepts the tools that it
        /// has now. Ask the user first.
        TrustMcpServer = "sightline/trustMcpServer":
            mcp::McpServerParams => mcp::McpServer,
            since "0.1.0", fails {
                NotFound: NO_MCP_SERVER,
                Unsupported: "the entry of the server is invalid",
                Storage: MCP,
            };
        /// Returns what an MCP server printed.
        McpServerLog = "sightline/mcpServerLog":
            mcp::McpServerParams => mcp::McpServerLogResult,
            since "0.1.0", fails {
                NotFound: NO_MCP_SERVER,
                Storage: MCP,
            };
    }
    client_notifications {
        /// Reports the tabs of the editor, in order.
        DidChangeTabs = "sightline/didChangeTabs": editor::DidChangeTabsParams, since "0.1.0";
        /// Reports the visible editors.
        DidChangeVisibleEditors = "sightline/didChangeVisibleEditors":
            editor::DidChangeVisibleEditorsParams, since "0.1.0";
        /// Reports the terminals and their output since the last notification.
        DidChangeTerminals = "sightline/didChangeTerminals":
            editor::DidChangeTerminalsParams, since "0.1.0";
        /// Reports the diagnostics of one document.
        DidChangeDiagnostics = "sightline/didChangeDiagnostics":
            editor::DidChangeDiagnosticsParams, since "0.1.0";
        /// Reports the focused editor.
        DidFocus = "textDocument/didFocus": editor::DidFocusParams, since "0.1.0";
    }
    server_requests {
        /// Shows a change that an agent proposes, for the user to accept or reject.
        OpenDiff = "sightline/openDiff":
            editor::OpenDiffParams => editor::OpenDiffResult, since "0.1.0";
    }
    server_notifications {
        /// Closes a diff that was opened with `sightline/openDiff`, because it needs no decision any more.
        CloseDiff = "sightline/closeDiff":
            editor::CloseDiffParams, since "0.1.0";
        /// The editor state has a new revision.
        DidChangeContext = "sightline/didChangeContext":
            editor::DidChangeContextParams, since "0.1.0";
        /// The access rules of a workspace folder changed.
        DidChangeAccessRules = "sightline/didChangeAccessRules":
            editor::DidChangeAccessRulesParams, since "0.1.0";
        /// The agents connected to the editor changed, or are paused or resumed.
        DidChangeBridges = "sightline/didChangeBridges":
            editor::DidChangeBridgesParams, since "0.1.0";
        /// Files of open documents changed on disk, for example by a restore from the command line.
        DidChangeFiles = "sightline/didChangeFiles":
            editor::DidChangeFilesParams, since "0.1.0";
        /// An MCP server was started, stopped, called or changed. Sent after the first
        /// `sightline/listMcpServers`, at most once a second.
        DidChangeMcpServers = "sightline/didChangeMcpServers":
            mcp::DidChangeMcpServersParams, since "0.1.0";
        /// A checkpoint was created.
        DidCreateCheckpoint = "sightline/didCreateCheckpoint":
            checkpoint::DidCreateCheckpointParams, since "0.1.0";
    }
}
