//! Stored conversations: `sightline/appendMessages`, `loadTask`, `listTasks`,
//! `resumeTask` and `deleteTask`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    conversation::Message,
    tracker::{EnvironmentEntry, FileMetadataEntry, ModelUsageEntry},
};

/// Params of `sightline/appendMessages`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendMessagesParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.
    pub task_id: String,
    /// The messages that came since the last call, in order.
    pub messages: Vec<Message>,
    /// What is recorded beside each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MessageMeta>,
}

/// What is recorded beside a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageMeta {
    /// The client's session; that of the server when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The agent's working directory; the first workspace folder when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The branch checked out there; looked up when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// The version of the client that writes; the one it named itself with, or
    /// that of the server, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the messages came, milliseconds since the Unix epoch; the server's
    /// clock when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
}

/// Result of `sightline/appendMessages`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendMessagesResult {
    /// Messages of the conversation in all, since its last compaction if there
    /// was one: as many as `sightline/loadTask` gives.
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
    /// The whole conversation, since its last compaction if there was one.
    pub messages: Vec<Message>,
    /// The messages left out of requests: first and last index, both included.
    /// `[2, 1]` is none.
    #[schemars(with = "Vec<i64>")]
    pub deleted_range: [i64; 2],
    /// The edits made to what is sent, in the form of Cline's `context_history.json`.
    #[schemars(with = "Vec<Value>")]
    pub context_history: Value,
    /// What is known of the task.
    pub metadata: TaskMetadata,
    /// What reading the log found.
    pub recovered: Recovered,
}

/// What is known of a task beside its conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetadata {
    /// When its first message came, milliseconds since the Unix epoch.
    pub created_at: i64,
    /// When its last one came, milliseconds since the Unix epoch.
    pub updated_at: i64,
    /// Its title: the beginning of the first text the user wrote.
    pub title: String,
    /// The agent's working directory, as recorded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The branch checked out there, as recorded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// How often the conversation was compacted.
    pub compactions: u64,
    /// What the agent knows of files, as in Cline's `task_metadata.json`.
    pub files: Vec<FileMetadataEntry>,
    /// The models used.
    pub models: Vec<ModelUsageEntry>,
    /// The environments it ran in.
    pub environments: Vec<EnvironmentEntry>,
}

/// What reading a log found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovered {
    /// Lines that were read.
    pub lines: u64,
    /// Lines that made no sense and are left out; they stay in the file.
    pub dropped: u64,
}

/// Params of `sightline/listTasks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ListTasksParams {
    /// Tasks at most; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `sightline/listTasks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    /// The tasks, last updated first.
    pub tasks: Vec<TaskSummary>,
}

/// One task of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    /// Its id.
    pub task_id: String,
    /// When its first message came, milliseconds since the Unix epoch.
    pub created_at: i64,
    /// When its last one came, milliseconds since the Unix epoch.
    pub updated_at: i64,
    /// Messages of the conversation in all.
    pub message_count: u64,
    /// Its title: the beginning of the first text the user wrote.
    pub title: String,
    /// The agent's working directory, as recorded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Params of `sightline/resumeTask`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ResumeTaskParams {
    /// Id of the task; the last updated one of this workspace when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The time it is resumed, milliseconds since the Unix epoch; the server's clock when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
}

/// Result of `sightline/resumeTask`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumeTaskResult {
    /// Id of the task.
    pub task_id: String,
    /// The messages to go on with: what the model was sent last, every tool
    /// call answered. The client adds `resumption` and the user's words.
    pub messages: Vec<Message>,
    /// Tool calls that have no result in the log, by the id of their call.
    pub interrupted_tools: Vec<String>,
    /// The text that tells the model that and how it was interrupted. It begins
    /// with `[TASK RESUMPTION]`.
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
    /// Bytes its files took.
    pub freed_bytes: u64,
}
