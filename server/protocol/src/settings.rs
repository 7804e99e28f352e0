//! Settings as a client writes them: every field optional, nothing validated.
//!
//! The server turns this into total values in one place and reports what it
//! could not use. The doc comments are what people see in their editor.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::environment::SectionId;

/// Settings of Sightline, as found in `initializationOptions`, in section
/// `sightline` of the editor's configuration and in `didChangeConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Where the server keeps its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageSettings>,
    /// Commands run through `workspace/executeCommand`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandSettings>,
    /// The environment block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentSettings>,
    /// What an agent may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSettings>,
    /// Conversations: truncation and its notices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationSettings>,
    /// Stored tasks: how many are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskSettings>,
    /// Checkpoints of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<CheckpointSettings>,
    /// What is marked in open documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<DiagnosticSettings>,
    /// What the server writes to its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogSettings>,
    /// Send the notifications of the server, such as `sightline/didChangeContext`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub notifications: Option<bool>,
}

/// Where the server keeps its data.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageSettings {
    /// Absolute path of the data directory; the platform's place when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Commands run through `workspace/executeCommand`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandSettings {
    /// Also show the result of a command by message and document. For editors
    /// that drop command results; on by default only in Helix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_results: Option<bool>,
}

/// The environment block.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvironmentSettings {
    /// Denied entries of file lists: left out and counted, or shown with a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = IgnoredFiles::default()))]
    pub ignored_files: Option<IgnoredFiles>,
    /// Open files outside every workspace folder: left out, or shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = OutsideFiles::default()))]
    pub outside_files: Option<OutsideFiles>,
    /// Switches and budgets, by the name of a section: `openTabs`, `files`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "sections_schema")]
    pub sections: Option<BTreeMap<SectionId, SectionSettings>>,
}

/// The schema of `sections`: the derived one accepts any key, reading does not.
fn sections_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = <Option<BTreeMap<SectionId, SectionSettings>>>::json_schema(generator);
    let keys = generator.subschema_for::<SectionId>().to_value();
    schema.insert("propertyNames".to_owned(), keys);
    schema
}

/// What to do with denied entries in file lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum IgnoredFiles {
    /// Leave them out; one closing line counts them.
    #[default]
    Hide,
    /// Show them with a lock mark.
    Lock,
}

/// What to do with open files outside every workspace folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutsideFiles {
    /// Leave them out.
    #[default]
    Hide,
    /// Show them.
    Show,
}

/// One section of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct SectionSettings {
    /// False leaves the section out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Cut the body of the section at this many estimated tokens, at whole lines.
    /// The heading, and a line that counts what was cut, come on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// What an agent may see.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessSettings {
    /// Reading files outside every workspace folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = OutsideWorkspace::default()))]
    pub outside_workspace: Option<OutsideWorkspace>,
    /// Commands that read whole folders, such as `grep -r` and `tar`, where a folder
    /// holds denied files that the command does not exclude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = RecursiveReaders::default()))]
    pub recursive_readers: Option<RecursiveReaders>,
}

/// Whether commands may read whole folders that hold denied files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RecursiveReaders {
    /// Deny them.
    #[default]
    Deny,
    /// Allow them.
    Allow,
}

/// Whether files outside every workspace folder may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutsideWorkspace {
    /// They may not.
    #[default]
    Deny,
    /// They may.
    Allow,
}

/// Conversations: truncation and its notices.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversationSettings {
    /// Which decisions: this server's, or Cline's exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ConversationProfile::default()))]
    pub profile: Option<ConversationProfile>,
    /// Texts put in place of what was taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notices: Option<NoticeSettings>,
    /// Context windows of models, by id, for those that are not known or known
    /// wrongly. What a request says of its model comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<BTreeMap<String, ModelSettings>>,
}

/// The context window of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSettings {
    /// All of it, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// What may be used before something is taken out, in tokens; decided from
    /// the window when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable_tokens: Option<u64>,
}

/// Which decisions about a conversation are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConversationProfile {
    /// This server's.
    #[default]
    Default,
    /// Exactly Cline's.
    Cline,
}

/// Texts put in place of what was taken out of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct NoticeSettings {
    /// In place of an older read of a file that was read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_file_read: Option<String>,
    /// In the text of an assistant message, once something was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<String>,
    /// As the result of a tool call that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_tool_result: Option<String>,
}

/// Stored tasks: how many are kept. The last updated stay; nothing is deleted
/// by itself while all of these are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskSettings {
    /// Delete tasks not updated for this many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// Keep this many tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u32>,
    /// Keep tasks up to this many bytes in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// Checkpoints of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointSettings {
    /// Files larger than this many bytes are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 20_971_520))]
    pub max_file_size: Option<u64>,
    /// Folders skipped besides the ignore rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ["node_modules", ".venv", "__pycache__"]))]
    pub exclude: Option<Vec<String>>,
    /// Files above which the first checkpoint must be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 500_000))]
    pub max_files: Option<u64>,
    /// Bytes above which the first checkpoint must be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 10_737_418_240_u64))]
    pub max_total_size: Option<u64>,
}

/// What is marked in open documents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct DiagnosticSettings {
    /// Mark mistakes in `.clineignore`, and rules that decide on nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub rules: Option<bool>,
    /// Mark open files that changed since the last checkpoint, by a hint on
    /// their first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub changed_files: Option<bool>,
}

/// What the server writes to its log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LogSettings {
    /// How much is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = LogLevel::default()))]
    pub level: Option<LogLevel>,
    /// Write to this file instead of standard error. Read at start only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// How much is written to the log.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Failures.
    Error,
    /// Failures and what looks wrong.
    #[default]
    Warn,
    /// Also what happens, in a few lines.
    Info,
    /// Also every request.
    Debug,
    /// Everything.
    Trace,
}
