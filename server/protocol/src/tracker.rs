//! What an agent knows of files, models and surroundings: the trackers.
//!
//! Field names with underscores are those of Cline's `task_metadata.json`,
//! which is stored in that form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::environment::Mode;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOperation {
    /// The agent read it.
    ReadTool,
    /// The user changed it.
    UserEdited,
    /// The agent changed it.
    ClineEdited,
    /// The user mentioned it and its text was sent.
    FileMentioned,
}

/// Params of `sightline/trackFile`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrackFileParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.
    pub task_id: String,
    /// The file: a `file:` URI, absolute, or relative to a workspace root.
    pub path: String,
    /// What happened to it.
    pub operation: FileOperation,
    /// With `cline_edited`: SHA-256 (hex) of the content the agent wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// The time to record, milliseconds since the Unix epoch; the server's clock when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
}

/// Result of `sightline/trackFile`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrackFileResult {
    /// The entry just made.
    pub entry: FileMetadataEntry,
}

/// Whether an entry is the newest of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// The newest.
    Active,
    /// Replaced by a newer entry.
    Stale,
}

/// One record of the file tracker, with Cline's field names.
///
/// Dates are milliseconds since the Unix epoch. On the wire an unknown date is
/// left out; in the stored file it is `null`, as Cline writes it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct FileMetadataEntry {
    /// Path relative to the workspace root.
    pub path: String,
    /// Whether this is the newest entry of its path, or a newer one replaced it.
    pub record_state: RecordState,
    /// What made the record.
    pub record_source: FileOperation,
    /// When the agent last read it, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cline_read_date: Option<i64>,
    /// When the agent last changed it, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cline_edit_date: Option<i64>,
    /// When the user last changed it, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_edit_date: Option<i64>,
}

/// Params of `sightline/recordModel`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordModelParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.
    pub task_id: String,
    /// The model's id.
    pub model_id: String,
    /// The provider's id.
    pub provider_id: String,
    /// The agent's mode.
    pub mode: Mode,
    /// The time to record, milliseconds since the Unix epoch; the server's clock when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
}

/// Params of `sightline/recordEnvironment`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordEnvironmentParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.
    pub task_id: String,
    /// The time to record, milliseconds since the Unix epoch; the server's clock when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
}

/// Result of `sightline/recordModel` and `sightline/recordEnvironment`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedResult {
    /// False when equal to the last record.
    pub recorded: bool,
}

/// One record of the model tracker.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelUsageEntry {
    /// When, milliseconds since the Unix epoch.
    pub ts: i64,
    /// The model's id.
    pub model_id: String,
    /// The provider's id.
    pub model_provider_id: String,
    /// `act` or `plan`.
    pub mode: String,
}

/// One record of the environment tracker.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct EnvironmentEntry {
    /// When, milliseconds since the Unix epoch.
    pub ts: i64,
    /// `linux`, `darwin`, `win32`, ...
    pub os_name: String,
    /// The system's release.
    pub os_version: String,
    /// `x64`, `arm64`, ...
    pub os_arch: String,
    /// The editor's name.
    pub host_name: String,
    /// The editor's version.
    pub host_version: String,
    /// Version of this server (the key is Cline's).
    pub cline_version: String,
}

/// Params of `sightline/taskContext`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskContextParams {
    /// Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.
    pub task_id: String,
}

/// Result of `sightline/taskContext`: the agent's picture of the files, and
/// where it no longer holds.
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
    /// Files the agent saw and that are gone.
    pub deleted: Vec<String>,
}
