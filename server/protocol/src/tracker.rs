//! Trackers of the files, models and environments a task has used.
//!
//! Field names with underscores are those of the stored file format, Cline's
//! `task_metadata.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::environment::Mode;

/// Operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOperation {
    /// The agent read it.
    ReadTool,
    /// The user edited it.
    UserEdited,
    /// The agent edited it.
    ClineEdited,
    /// The user mentioned it, and its text was sent.
    FileMentioned,
}

/// Params of `sightline/trackFile`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrackFileParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
    /// `.`.
    pub task_id: String,
    /// The file: a `file:` URI, an absolute path, or a path relative to a workspace
    /// root.
    pub path: String,
    /// Operation on the file.
    pub operation: FileOperation,
    /// With `cline_edited`, the SHA-256 (hex) of the content written by the agent.
    pub content_hash: Option<String>,
    /// Time to record, in milliseconds since the Unix epoch. Defaults to the clock of
    /// the server.
    pub now: Option<i64>,
}

/// Result of `sightline/trackFile`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrackFileResult {
    /// The new entry.
    pub entry: FileMetadataEntry,
}

/// Whether an entry is the newest entry of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// The newest entry.
    Active,
    /// Replaced by a newer entry.
    Stale,
}

/// File record, with Cline's field names.
///
/// Dates are in milliseconds since the Unix epoch. Unknown dates are absent on the wire
/// and `null` in the stored file, as in Cline.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct FileMetadataEntry {
    /// Path relative to the workspace root.
    pub path: String,
    /// Whether this is the newest entry of its path.
    pub record_state: RecordState,
    /// Operation that created the record.
    pub record_source: FileOperation,
    /// Time the agent last read the file, in milliseconds since the Unix epoch.
    pub cline_read_date: Option<i64>,
    /// Time the agent last edited the file, in milliseconds since the Unix epoch.
    pub cline_edit_date: Option<i64>,
    /// Time the user last edited the file, in milliseconds since the Unix epoch.
    pub user_edit_date: Option<i64>,
}

/// Params of `sightline/recordModel`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordModelParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
    /// `.`.
    pub task_id: String,
    /// Id of the model.
    pub model_id: String,
    /// Id of the provider.
    pub provider_id: String,
    /// Mode of the agent.
    pub mode: Mode,
    /// Time to record, in milliseconds since the Unix epoch. Defaults to the clock of
    /// the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
}

/// Params of `sightline/recordEnvironment`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordEnvironmentParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
    /// `.`.
    pub task_id: String,
    /// Time to record, in milliseconds since the Unix epoch. Defaults to the clock of
    /// the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
}

/// Result of `sightline/recordModel` and `sightline/recordEnvironment`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedResult {
    /// False if equal to the last record.
    pub recorded: bool,
}

/// Model record.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelUsageEntry {
    /// Time of the record, in milliseconds since the Unix epoch.
    pub ts: i64,
    /// Id of the model.
    pub model_id: String,
    /// Id of the provider.
    pub model_provider_id: String,
    /// `act` or `plan`.
    pub mode: String,
}

/// Environment record.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct EnvironmentEntry {
    /// Time of the record, in milliseconds since the Unix epoch.
    pub ts: i64,
    /// Operating system: `linux`, `darwin`, `win32`, ...
    pub os_name: String,
    /// Release of the operating system.
    pub os_version: String,
    /// Architecture: `x64`, `arm64`, ...
    pub os_arch: String,
    /// Name of the editor.
    pub host_name: String,
    /// Version of the editor.
    pub host_version: String,
    /// Version of the server. The key is Cline's.
    pub cline_version: String,
}

/// Params of `sightline/taskContext`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskContextParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
    /// `.`.
    pub task_id: String,
    /// Also return how full the context window is, which counts the tokens of the stored conversation.
    #[serde(default, skip_serializing_if = "crate::files::is_false")]
    pub usage: bool,
}

/// Result of `sightline/taskContext`: the records of a task, and the files that changed
/// since the agent saw them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskContextResult {
    /// All file records, oldest first.
    pub files: Vec<FileMetadataEntry>,
    /// All model records, oldest first.
    pub models: Vec<ModelUsageEntry>,
    /// All environment records, oldest first.
    pub environments: Vec<EnvironmentEntry>,
    /// Files whose content differs from what the agent last saw.
    pub changed: Vec<String>,
    /// Files the agent saw that no longer exist.
    pub deleted: Vec<String>,
    /// How full the context window of the last recorded model is. Absent without a stored conversation or a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<WindowUsage>,
}

/// Usage of a context window.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowUsage {
    /// Id of the model.
    pub model_id: String,
    /// Estimated tokens of the conversation since its last compaction.
    pub tokens: u64,
    /// Size of the context window, in tokens.
    pub context_window: u64,
}
