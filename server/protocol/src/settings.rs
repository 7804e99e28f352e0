//! Settings as written by the user: every field is optional and unvalidated.
//!
//! The server validates them in one place and reports invalid settings. The doc
//! comments are shown to users in their editor.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::environment::SectionId;

/// Settings of Sightline, passed in `initializationOptions`, in the configuration
/// section `sightline` or in `workspace/didChangeConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageSettings>,
    /// Commands of `workspace/executeCommand`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandSettings>,
    /// Environment block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentSettings>,
    /// File access of agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSettings>,
    /// Truncation of conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationSettings>,
    /// Retention of stored tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskSettings>,
    /// Workspace checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<CheckpointSettings>,
    /// Diagnostics in open documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<DiagnosticSettings>,
    /// IDE protocols of coding agents: what the user selects, as it happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridges: Option<BridgeSettings>,
    /// Log of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogSettings>,
    /// Send server notifications, such as `sightline/didChangeContext`, to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub notifications: Option<bool>,
}

/// Data directory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageSettings {
    /// Absolute path of the data directory. Defaults to the data directory of the
    /// platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Commands of `workspace/executeCommand`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandSettings {
    /// Show command results as a message or document. For editors that discard command
    /// results. Enabled by default only in Helix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_results: Option<bool>,
}

/// Environment block.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvironmentSettings {
    /// Whether file lists show denied entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = IgnoredFiles::default()))]
    pub ignored_files: Option<IgnoredFiles>,
    /// Whether the block shows open files outside every workspace folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = OutsideFiles::default()))]
    pub outside_files: Option<OutsideFiles>,
    /// Options per section, by section name: `openTabs`, `files`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "sections_schema")]
    pub sections: Option<BTreeMap<SectionId, SectionSettings>>,
}

/// Schema of `sections`. The derived schema accepts any key, but deserialization does
/// not.
fn sections_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = <Option<BTreeMap<SectionId, SectionSettings>>>::json_schema(generator);
    let keys = generator.subschema_for::<SectionId>().to_value();
    schema.insert("propertyNames".to_owned(), keys);
    schema
}

/// Display of denied entries in file lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum IgnoredFiles {
    /// Omit them. A closing line gives their number.
    #[default]
    Hide,
    /// Show them with a lock symbol.
    Lock,
}

/// Display of open files outside every workspace folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutsideFiles {
    /// Omit them.
    #[default]
    Hide,
    /// Show them.
    Show,
}

/// Options of a section of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct SectionSettings {
    /// Whether to include the section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Maximum size of the section body, in estimated tokens. The body is cut at a line
    /// boundary. The heading and the closing line that counts omitted entries are not
    /// included in the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// File access of agents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessSettings {
    /// Whether agents may read files that usually contain secrets, such as `.env` and
    /// private keys. A line in `.clineignore` allows single ones: `!.env`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Secrets::default()))]
    pub secrets: Option<Secrets>,
    /// Whether agents may read files outside every workspace folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = OutsideWorkspace::default()))]
    pub outside_workspace: Option<OutsideWorkspace>,
    /// Whether agents may run commands that read whole folders, such as `grep -r` and
    /// `tar`, on folders with denied files that the command does not exclude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = RecursiveReaders::default()))]
    pub recursive_readers: Option<RecursiveReaders>,
    /// Whether a prompt may mention a denied file with `@`. Agents add the content of mentioned
    /// files to the prompt themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Mentions::default()))]
    pub mentions: Option<Mentions>,
    /// First words of commands that `sightline exec` runs with all files, such as `npm run dev`. An
    /// entry holds only for a line with one simple command, without quotes. Only in the settings of the user,
    /// not of a project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Vec::<String>::new()))]
    pub visible_to: Option<Vec<String>>,
}

/// Whether a prompt may mention a denied file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mentions {
    /// Deny.
    #[default]
    Deny,
    /// Allow.
    Allow,
}

/// Whether files that usually contain secrets may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Secrets {
    /// Deny.
    #[default]
    Deny,
    /// Allow.
    Allow,
}

/// Whether commands may read whole folders that contain denied files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RecursiveReaders {
    /// Deny.
    #[default]
    Deny,
    /// Allow.
    Allow,
}

/// Whether files outside every workspace folder may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutsideWorkspace {
    /// Deny.
    #[default]
    Deny,
    /// Allow.
    Allow,
}

/// Truncation of conversations.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversationSettings {
    /// Rules for truncating conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ConversationProfile::default()))]
    pub profile: Option<ConversationProfile>,
    /// Notices that replace removed text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notices: Option<NoticeSettings>,
    /// Context windows by model id, for unknown models or to correct the built-in
    /// table. The context window in a request takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<BTreeMap<String, ModelSettings>>,
}

/// Context window of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSettings {
    /// Size of the context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Number of tokens that may be used before truncation starts. Derived from the
    /// context window if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable_tokens: Option<u64>,
}

/// Rules for truncating conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConversationProfile {
    /// The rules of Sightline.
    #[default]
    Default,
    /// Exactly the rules of Cline 3.89.
    Cline,
}

/// Notices that replace text removed from a conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct NoticeSettings {
    /// Notice that replaces an older read of a file that was read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_file_read: Option<String>,
    /// Notice inserted into an assistant message when messages are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<String>,
    /// Result inserted for a tool call that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_tool_result: Option<String>,
}

/// Retention of stored tasks. The most recently updated tasks are kept. Nothing is
/// deleted automatically if no limit is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskSettings {
    /// Delete tasks that were not updated for this many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// Maximum number of tasks to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u32>,
    /// Maximum total size of tasks to keep, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// Workspace checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointSettings {
    /// Maximum file size, in bytes. Larger files are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 20_971_520))]
    pub max_file_size: Option<u64>,
    /// Names of folders to skip, in addition to ignored paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ["node_modules", ".venv", "__pycache__"]))]
    pub exclude: Option<Vec<String>>,
    /// Number of files above which the first checkpoint must be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 500_000))]
    pub max_files: Option<u64>,
    /// Total size, in bytes, above which the first checkpoint must be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 10_737_418_240_u64))]
    pub max_total_size: Option<u64>,
    /// Number of automatic checkpoints to keep per workspace folder. A few more are kept
    /// until the oldest are removed together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 200))]
    pub keep_automatic: Option<u32>,
}

/// Diagnostics in open documents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct DiagnosticSettings {
    /// Report mistakes in `.clineignore` and rules that match no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub rules: Option<bool>,
    /// Report open files that changed since the last checkpoint, as a hint on the first
    /// line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub changed_files: Option<bool>,
}

/// IDE protocols of coding agents. A bridge sends the focused file and the selection to every agent
/// that runs in a workspace folder. Files that agents may not see are never sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeSettings {
    /// Serve Claude Code and opencode: a WebSocket on loopback, and a lock file in `~/.claude/ide`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub claude_ide: Option<bool>,
    /// Serve gemini-cli and Qwen Code: HTTP on loopback, and files in the temporary folder and in
    /// `~/.qwen/ide`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub gemini_ide: Option<bool>,
    /// Serve Copilot CLI: a local socket, and a lock file in `~/.copilot/ide`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub copilot_ide: Option<bool>,
    /// Serve `/ide` of Codex: a local socket in the temporary folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub codex_ide: Option<bool>,
    /// Send selected text, not only the file and the position.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub selection: Option<bool>,
    /// Send nothing until it is false again. Agents stay connected. The command `sightline.pauseBridges` has the same effect until this setting changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub pause: Option<bool>,
}

/// Log of the server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LogSettings {
    /// Log level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = LogLevel::default()))]
    pub level: Option<LogLevel>,
    /// Log file. Defaults to standard error. Read only at startup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Log level.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum LogLevel {
    /// No messages.
    Off,
    /// Errors.
    Error,
    /// Errors and warnings.
    #[default]
    Warn,
    /// Also major events.
    Info,
    /// Also every request.
    Debug,
    /// All messages.
    Trace,
}
