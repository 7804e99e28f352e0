//! Settings, with their defaults.
//!
//! Every setting is optional on the wire. The server reads them in one place and reports invalid
//! ones; the names of settings are those of the serialized defaults. The doc comments are shown
//! to users in their editor.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use crate::environment::SectionId;

/// Settings of Sightline, passed in `initializationOptions`, in the configuration
/// section `sightline` or in `workspace/didChangeConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Data directory.
    pub storage: StorageSettings,
    /// Commands of `workspace/executeCommand`.
    pub commands: CommandSettings,
    /// Environment block.
    pub environment: EnvironmentSettings,
    /// File access of agents.
    pub access: AccessSettings,
    /// Truncation of conversations.
    pub conversation: ConversationSettings,
    /// Retention of stored tasks.
    pub tasks: TaskSettings,
    /// Workspace checkpoints.
    pub checkpoints: CheckpointSettings,
    /// Diagnostics in open documents.
    pub diagnostics: DiagnosticSettings,
    /// Coding agents.
    pub agents: AgentSettings,
    /// IDE protocols of coding agents: what the user selects, as it happens.
    pub bridges: BridgeSettings,
    /// Log of the server.
    pub log: LogSettings,
    /// Send server notifications, such as `sightline/didChangeContext`, to the client.
    pub notifications: bool,
}

/// Data directory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageSettings {
    /// Absolute path of the data directory. Defaults to the data directory of the
    /// platform.
    #[serde(deserialize_with = "absolute_path")]
    pub path: Option<PathBuf>,
}

fn absolute_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = Option::<PathBuf>::deserialize(deserializer)?;
    if path.as_ref().is_some_and(|path| !path.is_absolute()) {
        return Err(D::Error::custom("must be an absolute path"));
    }
    Ok(path)
}

/// Commands of `workspace/executeCommand`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandSettings {
    /// Show command results as a message or document. For editors that discard command
    /// results. Enabled by default only in Helix.
    pub show_results: Option<bool>,
}

/// Environment block.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvironmentSettings {
    /// Whether file lists show denied entries.
    pub ignored_files: IgnoredFiles,
    /// Whether the block shows open files outside every workspace folder.
    pub outside_files: OutsideFiles,
    /// Options per section, by section name, as `sightline config` lists them: `openTabs`, `files`, ...
    #[schemars(schema_with = "sections_schema")]
    #[serde(deserialize_with = "sections_by_name")]
    pub sections: BTreeMap<SectionId, SectionSettings>,
}

/// Default budget of the diagnostics, in estimated tokens.
const DIAGNOSTICS_TOKENS: u32 = 1_000;

impl Default for EnvironmentSettings {
    fn default() -> Self {
        Self {
            ignored_files: IgnoredFiles::default(),
            outside_files: OutsideFiles::default(),
            sections: SectionId::ALL
                .into_iter()
                .map(|id| (id, SectionSettings::default_of(id)))
                .collect(),
        }
    }
}

impl EnvironmentSettings {
    /// Returns whether the block includes a section by default.
    pub fn is_enabled(&self, id: SectionId) -> bool {
        let set = self.sections.get(&id).and_then(|section| section.enabled);
        set.or(SectionSettings::default_of(id).enabled) == Some(true)
    }

    /// Returns the maximum size of a section body, in estimated tokens.
    pub fn max_tokens(&self, id: SectionId) -> Option<u32> {
        let set = self
            .sections
            .get(&id)
            .and_then(|section| section.max_tokens);
        set.or(SectionSettings::default_of(id).max_tokens)
    }
}

/// Reads the names of sections as text, so that an error names the section.
fn sections_by_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<SectionId, SectionSettings>, D::Error> {
    let named = BTreeMap::<String, SectionSettings>::deserialize(deserializer)?;
    named
        .into_iter()
        .map(|(name, set)| Ok((SectionId::deserialize(name.into_deserializer())?, set)))
        .collect()
}

/// Schema of `sections`. The derived schema accepts any key, but deserialization does
/// not.
fn sections_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = <BTreeMap<SectionId, SectionSettings>>::json_schema(generator);
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
    pub enabled: Option<bool>,
    /// Maximum size of the section body, in estimated tokens. The body is cut at a line
    /// boundary. The heading and the closing line that counts omitted entries are not
    /// included in the limit.
    pub max_tokens: Option<u32>,
}

impl SectionSettings {
    fn default_of(id: SectionId) -> Self {
        let is_diagnostics = id == SectionId::Diagnostics;
        Self {
            enabled: Some(!is_diagnostics),
            max_tokens: is_diagnostics.then_some(DIAGNOSTICS_TOKENS),
        }
    }
}

/// File access of agents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessSettings {
    /// Whether agents may read files that usually contain secrets, such as `.env` and
    /// private keys. A line in `.clineignore` allows single ones: `!.env`.
    pub secrets: Secrets,
    /// Whether agents may read files outside every workspace folder.
    pub outside_workspace: OutsideWorkspace,
    /// Whether agents may run commands that read whole folders, such as `grep -r` and
    /// `tar`, on folders with denied files that the command does not exclude.
    pub recursive_readers: RecursiveReaders,
    /// Whether a prompt may mention a denied file with `@`. Agents add the content of mentioned
    /// files to the prompt themselves.
    pub mentions: Mentions,
    /// What enforces the rules for commands of agents: a check of their command lines, or also the
    /// kernel, which hides denied files from commands (Linux, for agents that were connected with
    /// `sightline agents install --only commands`). Only in the settings of the user, not of a project.
    pub commands: AgentCommands,
    /// First words of commands that may use denied files, such as `npm run dev`: the check of commands lets
    /// them pass, and `sightline exec` hides nothing from them. An entry holds only for a line with one simple
    /// command, without quotes. Only in the settings of the user, not of a project.
    pub visible_to: Vec<String>,
}

/// What enforces the access rules for commands of agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentCommands {
    /// Command lines are checked.
    #[default]
    Check,
    /// Also, denied files that git does not track are hidden.
    Hide,
}

/// Whether a prompt may mention a denied file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mentions {
    /// The prompt is refused.
    #[default]
    Deny,
    /// The agent adds the content of the file.
    Allow,
}

/// Whether files that usually contain secrets may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Secrets {
    /// Hidden, except those that a line allows.
    #[default]
    Deny,
    /// Visible, except those that a line denies.
    Allow,
}

/// Whether commands may read whole folders that contain denied files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RecursiveReaders {
    /// The command is refused, with one to run instead where there is one.
    #[default]
    Deny,
    /// The command runs, and reads denied files too.
    Allow,
}

/// Whether files outside every workspace folder may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutsideWorkspace {
    /// Such files are refused.
    #[default]
    Deny,
    /// Such files are read, except those that a rule denies.
    Allow,
}

/// Truncation of conversations.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversationSettings {
    /// Rules for truncating conversations.
    pub profile: ConversationProfile,
    /// Notices that replace removed text.
    pub notices: NoticeSettings,
    /// Context windows by model id, for unknown models or to correct the built-in
    /// table. The context window in a request takes precedence.
    pub models: BTreeMap<String, ModelSettings>,
}

/// Context window of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSettings {
    /// Size of the context window, in tokens.
    pub context_window: Option<u64>,
    /// Number of tokens that may be used before truncation starts. Derived from the
    /// context window if absent.
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
    pub duplicate_file_read: Option<String>,
    /// Notice inserted into an assistant message when messages are left out.
    pub truncation: Option<String>,
    /// Result inserted for a tool call that has none.
    pub missing_tool_result: Option<String>,
}

/// Retention of stored tasks. The most recently updated tasks are kept. Nothing is
/// deleted automatically if no limit is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskSettings {
    /// Delete tasks that were not updated for this many days.
    pub max_age_days: Option<u32>,
    /// Maximum number of tasks to keep.
    pub max_count: Option<u32>,
    /// Maximum total size of tasks to keep, in bytes.
    pub max_bytes: Option<u64>,
}

/// Workspace checkpoints.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointSettings {
    /// Maximum file size, in bytes. Larger files are skipped.
    pub max_file_size: u64,
    /// Names of folders to skip, in addition to ignored paths.
    #[serde(deserialize_with = "folder_names")]
    pub exclude: Vec<String>,
    /// Number of files above which the first checkpoint must be confirmed.
    pub max_files: u64,
    /// Total size, in bytes, above which the first checkpoint must be confirmed.
    pub max_total_size: u64,
    /// Number of automatic checkpoints to keep per workspace folder. A few more are kept
    /// until the oldest are removed together.
    pub keep_automatic: u32,
    /// What is stored of the prompt of each turn of an agent, to find the turn again. It stays on this
    /// machine. Hooks read this setting from the configuration files, not from an editor.
    pub turn_names: TurnNames,
    /// Show the author of a line, a turn, an agent or the user, when the mouse rests on it. Read when the
    /// editor starts.
    pub blame_hover: bool,
}

/// What is stored of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnNames {
    /// The first 60 characters.
    #[default]
    Prompt,
    /// Nothing.
    None,
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        Self {
            max_file_size: 20 * 1024 * 1024,
            exclude: ["node_modules", ".venv", "__pycache__"]
                .map(str::to_owned)
                .into(),
            max_files: 500_000,
            max_total_size: 10 * 1024 * 1024 * 1024,
            keep_automatic: 200,
            turn_names: TurnNames::default(),
            blame_hover: false,
        }
    }
}

/// Deserializes names of folders.
fn folder_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<FolderName>::deserialize(deserializer)?;
    Ok(names.into_iter().map(|name| name.0).collect())
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct FolderName(String);

impl TryFrom<String> for FolderName {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        // People write `target/` in ignore files.
        let bare = name.strip_suffix('/').unwrap_or(&name);
        if bare.is_empty() || bare == "." || bare == ".." || bare.contains(['/', '\0']) {
            return Err("must contain folder names, not paths");
        }
        Ok(Self(bare.to_owned()))
    }
}

/// Diagnostics in open documents.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct DiagnosticSettings {
    /// Report mistakes in `.clineignore` and rules that match no file.
    pub rules: bool,
    /// Report open files that changed since the last checkpoint, as a hint on the first
    /// line.
    pub changed_files: bool,
}

impl Default for DiagnosticSettings {
    fn default() -> Self {
        Self {
            rules: true,
            changed_files: false,
        }
    }
}

/// Coding agents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentSettings {
    /// Agents that learn the focused file and the selection as they change. Turns on the settings
    /// `bridges.*Ide` that they need.
    pub connect: Vec<ConnectedAgent>,
}

/// An agent with an IDE protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConnectedAgent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Copilot CLI.
    Copilot,
    /// gemini-cli.
    Gemini,
    /// opencode.
    Opencode,
    /// Qwen Code.
    Qwen,
}

impl BridgeSettings {
    /// Turns on the protocol of an agent.
    pub fn connect(&mut self, agent: ConnectedAgent) {
        match agent {
            ConnectedAgent::Claude | ConnectedAgent::Opencode => self.claude_ide = true,
            ConnectedAgent::Gemini | ConnectedAgent::Qwen => self.gemini_ide = true,
            ConnectedAgent::Copilot => self.copilot_ide = true,
            ConnectedAgent::Codex => self.codex_ide = true,
        }
    }
}

/// IDE protocols of coding agents. A bridge sends the focused file and the selection to every agent
/// that runs in a workspace folder. Files that agents may not see are never sent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeSettings {
    /// Serve Claude Code and opencode: a WebSocket on loopback, and a lock file in `~/.claude/ide`.
    pub claude_ide: bool,
    /// Serve gemini-cli and Qwen Code: HTTP on loopback, and files in the temporary folder and in
    /// `~/.qwen/ide`.
    pub gemini_ide: bool,
    /// Serve Copilot CLI: a local socket, and a lock file in `~/.copilot/ide`.
    pub copilot_ide: bool,
    /// Serve `/ide` of Codex: a local socket in the temporary folder.
    pub codex_ide: bool,
    /// Send selected text, not only the file and the position.
    pub selection: bool,
    /// Show agents nothing of the editor. They stay connected. The command `sightline.pauseBridges` has the same effect until this setting changes.
    pub pause: bool,
}

impl Default for BridgeSettings {
    fn default() -> Self {
        Self {
            claude_ide: false,
            gemini_ide: false,
            copilot_ide: false,
            codex_ide: false,
            selection: true,
            pause: false,
        }
    }
}

/// Log of the server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LogSettings {
    /// Log level.
    pub level: LogLevel,
    /// Log file. Defaults to standard error. Read only at startup.
    #[serde(deserialize_with = "absolute_path")]
    pub file: Option<PathBuf>,
    /// What `sightline log` keeps of commands. Only in the settings of the user, not of a project.
    pub commands: LoggedCommands,
    /// Whether `sightline log` also keeps what agents were allowed. Only in the settings of the
    /// user, not of a project.
    pub allowed: bool,
}

/// What the log of decisions keeps of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LoggedCommands {
    /// Its first word, and a hash.
    #[default]
    Hash,
    /// The command.
    Full,
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
