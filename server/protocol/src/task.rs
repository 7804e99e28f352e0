//! Stored conversations: `sightline/appendMessages`, `loadTask`, `listTasks`,
//! `resumeTask` and `deleteTask`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::{
    conversation::Message,
    tracker::{EnvironmentEntry, FileMetadataEntry, ModelUsageEntry},
};

/// Params of `sightline/appendMessages`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendMessagesParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
    /// `.`.
    pub task_id: String,
    /// New messages since the last call, in order.
    pub messages: Vec<Message>,
    /// Metadata stored with each message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MessageMeta>,
}

/// Metadata of a message.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageMeta {
    /// Id of the client session. Defaults to the session of the server.
    pub session_id: Option<String>,
    /// Working directory of the agent. Defaults to the first workspace folder.
    pub cwd: Option<String>,
    /// Branch checked out in the working directory. Read from the repository if absent.
    pub git_branch: Option<String>,
    /// Version of the client. Defaults to the version in `clientInfo`, else the version
    /// of the server.
    pub version: Option<String>,
    /// Time of the messages, in milliseconds since the Unix epoch. Defaults to the
    /// clock of the server.
    pub now: Option<i64>,
}

/// Result of `sightline/appendMessages`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendMessagesResult {
    /// Total number of messages since the last compaction, as returned by
    /// `sightline/loadTask`.
    pub count: u64,
}

/// Params of `sightline/loadTask`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadTaskParams {
    /// Id of the task.
    pub task_id: String,
}

/// Result of `sightline/loadTask`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadTaskResult {
    /// The conversation since its last compaction.
    pub messages: Vec<Message>,
    /// Messages left out of requests: first and last index, inclusive. `[2, 1]` is the
    /// empty range.
    #[schemars(with = "Vec<i64>")]
    pub deleted_range: [i64; 2],
    /// Edits to sent messages, in the format of Cline's `context_history.json`.
    #[schemars(with = "Vec<Value>")]
    pub context_history: Value,
    /// Metadata of the task.
    pub metadata: TaskMetadata,
    /// Result of reading the log.
    pub recovered: Recovered,
}

/// Metadata of a task.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetadata {
    /// Time of the first message, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Time of the last message, in milliseconds since the Unix epoch.
    pub updated_at: i64,
    /// Title: the start of the first text by the user.
    pub title: String,
    /// Last recorded working directory of the agent.
    pub cwd: Option<String>,
    /// Last recorded branch of the working directory.
    pub git_branch: Option<String>,
    /// Number of compactions of the conversation.
    pub compactions: u64,
    /// File records, as in Cline's `task_metadata.json`.
    pub files: Vec<FileMetadataEntry>,
    /// Model records.
    pub models: Vec<ModelUsageEntry>,
    /// Environment records.
    pub environments: Vec<EnvironmentEntry>,
}

/// What reading a log found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovered {
    /// Number of lines read.
    pub lines: u64,
    /// Number of invalid lines. They are skipped but stay in the file.
    pub dropped: u64,
}

/// Params of `sightline/listTasks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListTasksParams {
    /// Maximum number of tasks to return. Defaults to all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `sightline/listTasks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    /// Tasks, most recently updated first.
    pub tasks: Vec<TaskSummary>,
}

/// Summary of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    /// Id of the task.
    pub task_id: String,
    /// Time of the first message, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Time of the last message, in milliseconds since the Unix epoch.
    pub updated_at: i64,
    /// Total number of messages of the conversation.
    pub message_count: u64,
    /// Title: the start of the first text by the user.
    pub title: String,
    /// Last recorded working directory of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Params of `sightline/resumeTask`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ResumeTaskParams {
    /// Id of the task. Defaults to the most recently updated task of this workspace.
    pub task_id: Option<String>,
    /// Time of resumption, in milliseconds since the Unix epoch. Defaults to the clock
    /// of the server.
    pub now: Option<i64>,
}

/// Result of `sightline/resumeTask`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumeTaskResult {
    /// Id of the task.
    pub task_id: String,
    /// Messages to continue with: the messages last sent to the model, with a result
    /// for every tool call. The client appends `resumption` and the text of the user.
    pub messages: Vec<Message>,
    /// Ids of tool calls without a result in the log.
    pub interrupted_tools: Vec<String>,
    /// Text that tells the model about the interruption. It starts with `[TASK
    /// RESUMPTION]`.
    pub resumption: String,
}

/// Params of `sightline/deleteTask`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteTaskParams {
    /// Id of the task.
    pub task_id: String,
}

/// Result of `sightline/deleteTask`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteTaskResult {
    /// Freed disk space, in bytes.
    pub freed_bytes: u64,
}
