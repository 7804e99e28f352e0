//! The table of every method this server adds to LSP.
//!
//! A method is a marker type with its name, params and result; the server's
//! dispatch, the tests and the schema writer all walk [`METHODS`].

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};

use crate::error::ErrorKind;
use crate::{
    access, checkpoint, compaction, conversation, editor, environment, files, task, tokens, tracker,
};

/// Who sends a method, and whether an answer comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Client to server, answered.
    Request,
    /// Client to server, not answered.
    ClientNotification,
    /// Server to client, not answered.
    ServerNotification,
}

/// A request of the client.
pub trait Request {
    /// The method's name on the wire.
    const NAME: &'static str;
    /// What it takes.
    type Params: DeserializeOwned + Serialize + JsonSchema;
    /// What it answers.
    type Result: DeserializeOwned + Serialize + JsonSchema;
}

/// A notification, in either direction.
pub trait Notification {
    /// The method's name on the wire.
    const NAME: &'static str;
    /// What it carries.
    type Params: DeserializeOwned + Serialize + JsonSchema;
}

/// One row of the method table.
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Who sends it.
    pub direction: Direction,
    /// Rust name of the params type.
    pub params: &'static str,
    /// Rust name of the result type of a request.
    pub result: Option<&'static str>,
    /// One line for people.
    pub summary: &'static str,
    /// The first release that has it.
    pub since: &'static str,
    /// The errors it can answer with, and when; those of [`ANY_REQUEST`] besides.
    pub errors: &'static [(ErrorKind, &'static str)],
    /// Adds the params schema to a generator.
    pub params_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Adds the result schema to a generator.
    pub result_schema: Option<fn(&mut SchemaGenerator) -> Schema>,
}

/// The errors every request can answer with, and when.
pub const ANY_REQUEST: &[(ErrorKind, &str)] = &[
    (
        ErrorKind::InvalidParams,
        "a parameter is missing, ill-typed or makes no sense",
    ),
    (
        ErrorKind::TooLarge,
        "its parameters are over a limit, which the message names: nesting, paths named at once, a label",
    ),
    (
        ErrorKind::Cancelled,
        "the client cancelled it before anything was changed",
    ),
    (
        ErrorKind::NotInitialized,
        "it came before `initialize` was answered",
    ),
    (ErrorKind::Internal, "the server has a defect"),
];

impl Method {
    /// The name of this request as a command of `workspace/executeCommand`:
    /// `sightline/listFiles` is `sightline.listFiles`.
    pub fn command(&self) -> Option<String> {
        (self.direction == Direction::Request).then(|| self.name.replacen('/', ".", 1))
    }
}

macro_rules! methods {
    (
        requests { $(
            $(#[doc = $rdoc:literal])+
            $request:ident = $rname:literal: $rparams:ty => $rresult:ty, since $rsince:literal,
            fails { $($kind:ident: $when:expr),* $(,)? };
        )* }
        client_notifications { $(
            $(#[doc = $cdoc:literal])+
            $client:ident = $cname:literal: $cparams:ty, since $csince:literal;
        )* }
        server_notifications { $(
            $(#[doc = $sdoc:literal])+
            $server:ident = $sname:literal: $sparams:ty, since $ssince:literal;
        )* }
    ) => {
        $(
            $(#[doc = $rdoc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $request {}
            impl Request for $request {
                const NAME: &'static str = $rname;
                type Params = $rparams;
                type Result = $rresult;
            }
        )*
        $(
            $(#[doc = $cdoc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $client {}
            impl Notification for $client {
                const NAME: &'static str = $cname;
                type Params = $cparams;
            }
        )*
        $(
            $(#[doc = $sdoc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $server {}
            impl Notification for $server {
                const NAME: &'static str = $sname;
                type Params = $sparams;
            }
        )*

        /// Every method of the protocol that this server knows.
        pub const METHODS: &[Method] = &[
            $(Method {
                name: $rname,
                direction: Direction::Request,
                params: type_name(stringify!($rparams)),
                result: Some(type_name(stringify!($rresult))),
                summary: concat!($($rdoc),+).trim_ascii(),
                since: $rsince,
                errors: &[$((ErrorKind::$kind, $when)),*],
                params_schema: |generator| generator.subschema_for::<$rparams>(),
                result_schema: Some(|generator| generator.subschema_for::<$rresult>()),
            },)*
            $(Method {
                name: $cname,
                direction: Direction::ClientNotification,
                params: type_name(stringify!($cparams)),
                result: None,
                summary: concat!($($cdoc),+).trim_ascii(),
                since: $csince,
                errors: &[],
                params_schema: |generator| generator.subschema_for::<$cparams>(),
                result_schema: None,
            },)*
            $(Method {
                name: $sname,
                direction: Direction::ServerNotification,
                params: type_name(stringify!($sparams)),
                result: None,
                summary: concat!($($sdoc),+).trim_ascii(),
                since: $ssince,
                errors: &[],
                params_schema: |generator| generator.subschema_for::<$sparams>(),
                result_schema: None,
            },)*
        ];
    };
}

/// The last component of a type path, at compile time.
const fn type_name(path: &'static str) -> &'static str {
    let bytes = path.as_bytes();
    let mut start = bytes.len();
    while start > 0 && bytes[start - 1] != b':' && bytes[start - 1] != b' ' {
        start -= 1;
    }
    path.split_at(start).1
}

const STORAGE: &str = "the data directory cannot be read or written";
const TASK_BUSY: &str = "another process writes the task";
const NO_TASK: &str = "the task is not stored";
const LONG_LINE: &str = "what is to be stored is too long for the log";
const NO_ROOT: &str = "no workspace folder is open, or it is gone";
const NO_CHECKPOINT: &str = "there is no such checkpoint, or its folder is not open";
const NO_RULES: &str = "the rules of the folder cannot be read or used";
const NO_PLACE: &str = "the folder is the home folder, the root of a file system or the like";
const STORE_BUSY: &str = "another process writes the checkpoints";
const STORE: &str = "the store cannot be read or written";

methods! {
    requests {
        /// Builds the `<environment_details>` block of this moment.
        EnvironmentDetails = "sightline/environmentDetails":
            environment::EnvironmentDetailsParams => environment::EnvironmentDetailsResult,
            since "0.1.0", fails {
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Judges paths and a command line against `.clineignore`.
        CheckAccess = "sightline/checkAccess":
            access::CheckAccessParams => access::CheckAccessResult,
            since "0.1.0", fails {
                TooLarge: "more than a million paths are asked about",
            };
        /// Lists files, breadth first, without what may not be seen.
        ListFiles = "sightline/listFiles":
            files::ListFilesParams => files::ListFilesResult,
            since "0.1.0", fails {
                AccessDenied: "the folder is denied, or outside every workspace folder",
                NotFound: "there is no such folder, or no folder is open",
                Unsupported: "it is the home folder or the root of a file system, or cannot be read",
            };
        /// Reads a file: unsaved editor text first, access enforced.
        ReadFile = "sightline/readFile":
            files::ReadFileParams => files::ReadFileResult,
            since "0.1.0", fails {
                AccessDenied: "the file, or what a link leads to, is denied or outside every workspace folder",
                NotFound: "there is no such file",
                Unsupported: "it is binary, a folder or another thing that is no text file, or cannot be read",
                TooLarge: "the file is over 512 MiB",
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Records that a task read, changed or mentioned a file.
        TrackFile = "sightline/trackFile":
            tracker::TrackFileParams => tracker::TrackFileResult,
            since "0.1.0", fails {
                AccessDenied: "the file is denied, or outside every workspace folder",
                Unsupported: "it is a folder",
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Records the model a task uses.
        RecordModel = "sightline/recordModel":
            tracker::RecordModelParams => tracker::RecordedResult,
            since "0.1.0", fails {
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Records system and editor a task runs on.
        RecordEnvironment = "sightline/recordEnvironment":
            tracker::RecordEnvironmentParams => tracker::RecordedResult,
            since "0.1.0", fails {
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Tells what a task knows of its files, and where that is out of date.
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
        /// Decides which messages of a conversation are sent.
        TruncateHistory = "sightline/truncateHistory":
            conversation::TruncateHistoryParams => conversation::TruncateHistoryResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Busy: TASK_BUSY,
                Storage: STORAGE,
                TooLarge: LONG_LINE,
            };
        /// Takes decisions about a conversation back, to a point in time.
        RollbackHistory = "sightline/rollbackHistory":
            conversation::RollbackHistoryParams => conversation::RollbackHistoryResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Busy: TASK_BUSY,
                Storage: STORAGE,
                TooLarge: LONG_LINE,
            };
        /// Tells what a provider's error means for the conversation.
        ClassifyError = "sightline/classifyError":
            conversation::ClassifyErrorParams => conversation::ClassifyErrorResult,
            since "0.1.0", fails {};
        /// Stores messages of a task; they are durable when it returns.
        AppendMessages = "sightline/appendMessages":
            task::AppendMessagesParams => task::AppendMessagesResult,
            since "0.1.0", fails {
                TooLarge: "a message is too long for the log; nothing is stored",
                Busy: TASK_BUSY,
                Storage: "the log cannot be written; nothing is stored",
            };
        /// Loads the stored conversation of a task.
        LoadTask = "sightline/loadTask":
            task::LoadTaskParams => task::LoadTaskResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Storage: STORAGE,
            };
        /// Lists the stored tasks, last updated first.
        ListTasks = "sightline/listTasks":
            task::ListTasksParams => task::ListTasksResult,
            since "0.1.0", fails {
                Storage: STORAGE,
            };
        /// Goes on with a task where it was interrupted.
        ResumeTask = "sightline/resumeTask":
            task::ResumeTaskParams => task::ResumeTaskResult,
            since "0.1.0", fails {
                NotFound: "the task is not stored, or no task of this workspace is",
                Busy: TASK_BUSY,
                Storage: STORAGE,
            };
        /// Deletes a task with all that is stored of it.
        DeleteTask = "sightline/deleteTask":
            task::DeleteTaskParams => task::DeleteTaskResult,
            since "0.1.0", fails {
                NotFound: "neither a conversation nor a checkpoint of the task is stored",
                Busy: "another process writes the task or the checkpoints",
                Storage: STORAGE,
            };
        /// Plans replacing the older part of a conversation by a summary.
        PlanCompaction = "sightline/planCompaction":
            compaction::PlanCompactionParams => compaction::PlanCompactionResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Storage: STORAGE,
            };
        /// Replaces the older part of a conversation by a summary.
        ApplyCompaction = "sightline/applyCompaction":
            compaction::ApplyCompactionParams => compaction::ApplyCompactionResult,
            since "0.1.0", fails {
                NotFound: NO_TASK,
                Conflict: "the task was compacted after this was planned, or too little is left to be summed up",
                TooLarge: LONG_LINE,
                Busy: "the task is written to all the time, or by another process",
                Storage: STORAGE,
            };
        /// Takes a checkpoint of the workspace.
        CreateCheckpoint = "sightline/createCheckpoint":
            checkpoint::CreateCheckpointParams => checkpoint::Checkpoint,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                AccessDenied: NO_RULES,
                TooLarge: "the first one would be over `checkpoints.maxFiles` or `checkpoints.maxTotalSize`, and is not confirmed",
                Unsupported: NO_PLACE,
                Conflict: "the files keep changing while they are stored",
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Lists checkpoints, the newest first.
        ListCheckpoints = "sightline/listCheckpoints":
            checkpoint::ListCheckpointsParams => checkpoint::ListCheckpointsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Compares two checkpoints, or one and the workspace now.
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
        /// Tells what a restore would do. Changes nothing.
        PreviewRestore = "sightline/previewRestore":
            checkpoint::PreviewRestoreParams => checkpoint::PreviewRestoreResult,
            since "0.1.0", fails {
                NotFound: "there is no such checkpoint, its folder is not open, or there is no restore to undo (`undo`)",
                AccessDenied: NO_RULES,
                Conflict: "a folder of the group is not open (`allRoots`)",
                Unsupported: NO_PLACE,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Puts files, conversation or both back to a checkpoint.
        RestoreCheckpoint = "sightline/restoreCheckpoint":
            checkpoint::RestoreCheckpointParams => checkpoint::RestoreCheckpointResult,
            since "0.1.0", fails {
                NotFound: "there is no such checkpoint, its folder is not open, or the task is not stored",
                AccessDenied: NO_RULES,
                Conflict: "the preview is no longer true, a folder of the group is not open, or the log does not hold the conversation; nothing is done",
                Unsupported: NO_PLACE,
                Busy: "another process writes the checkpoints or the task",
                Storage: "the store is damaged where it is needed, or cannot be written; nothing is done",
            };
        /// Takes a restore back.
        UndoRestore = "sightline/undoRestore":
            checkpoint::UndoRestoreParams => checkpoint::RestoreCheckpointResult,
            since "0.1.0", fails {
                NotFound: "there is no such checkpoint, or no restore to undo",
                AccessDenied: NO_RULES,
                Conflict: "the preview is no longer true, a folder of the group is not open, or the log does not hold the conversation; nothing is done",
                Unsupported: NO_PLACE,
                Busy: "another process writes the checkpoints or the task",
                Storage: "the store is damaged where it is needed, or cannot be written; nothing is done",
            };
        /// Tells how many checkpoints there are and what they take.
        CheckpointStats = "sightline/checkpointStats":
            checkpoint::CheckpointStatsParams => checkpoint::CheckpointStatsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Removes old checkpoints.
        PruneCheckpoints = "sightline/pruneCheckpoints":
            checkpoint::PruneCheckpointsParams => checkpoint::PruneCheckpointsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
        /// Reads every checkpoint and tells whether all are whole.
        VerifyCheckpoints = "sightline/verifyCheckpoints":
            checkpoint::VerifyCheckpointsParams => checkpoint::VerifyCheckpointsResult,
            since "0.1.0", fails {
                NotFound: NO_ROOT,
                Busy: STORE_BUSY,
                Storage: STORE,
            };
    }
    client_notifications {
        /// The tabs of the editor, in order.
        DidChangeTabs = "sightline/didChangeTabs": editor::DidChangeTabsParams, since "0.1.0";
        /// The editors on the screen.
        DidChangeVisibleEditors = "sightline/didChangeVisibleEditors":
            editor::DidChangeVisibleEditorsParams, since "0.1.0";
        /// The terminals, with output since the last notification.
        DidChangeTerminals = "sightline/didChangeTerminals":
            editor::DidChangeTerminalsParams, since "0.1.0";
        /// The editor that has the focus.
        DidFocus = "textDocument/didFocus": editor::DidFocusParams, since "0.1.0";
    }
    server_notifications {
        /// What the editor shows has a new revision.
        DidChangeContext = "sightline/didChangeContext":
            editor::DidChangeContextParams, since "0.1.0";
        /// The access rules of a root changed.
        DidChangeAccessRules = "sightline/didChangeAccessRules":
            editor::DidChangeAccessRulesParams, since "0.1.0";
        /// A checkpoint was taken.
        DidCreateCheckpoint = "sightline/didCreateCheckpoint":
            checkpoint::DidCreateCheckpointParams, since "0.1.0";
    }
}
