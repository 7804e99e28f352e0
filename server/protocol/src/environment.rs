//! `sightline/environmentDetails`: the environment block that an agent adds to its
//! prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Text of the visible files section if there are none.
pub const NO_VISIBLE_FILES: &str = "(No visible files)";
/// Text of the open tabs section if there are none.
pub const NO_OPEN_TABS: &str = "(No open tabs)";

/// Params of `sightline/environmentDetails`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct EnvironmentDetailsParams {
    /// Id of the task, for its recently modified files.
    pub task_id: Option<String>,
    /// Include the file list, the workspace configuration and the command line tools.
    pub include_files: bool,
    /// Mode of the agent.
    pub mode: Mode,
    /// Model, for the size of its context window.
    pub model: Option<ModelRef>,
    /// Token usage of the last request to the model.
    pub usage: Option<Usage>,
    /// Maximum number of entries in the file list.
    pub max_files: u32,
    /// Return only these sections, in protocol order.
    pub sections: Option<Vec<SectionId>>,
    /// Return only the current time and the sections that changed since this revision
    /// of an earlier result.
    pub since_revision: Option<u64>,
    /// URIs of further files with unsaved changes, such as those of another editor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaved_files: Vec<String>,
    /// URIs of further files that changed since the agent last read or wrote them, for clients that
    /// track files themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<String>,
    /// Process ids of the program that asks and of its parents. The terminal in which it runs is left
    /// out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requester_pids: Vec<u32>,
    /// Mark terminal output and recently modified files as delivered. If false, the
    /// request has no side effects.
    pub consume: bool,
    /// Time to print, in milliseconds since the Unix epoch, for reproducible output.
    /// Defaults to the clock of the server.
    pub now: Option<i64>,
    /// IANA name of the time zone to print, for reproducible output. Defaults to the
    /// time zone of the server.
    pub time_zone: Option<String>,
}

impl Default for EnvironmentDetailsParams {
    fn default() -> Self {
        Self {
            task_id: None,
            include_files: false,
            mode: Mode::default(),
            model: None,
            usage: None,
            max_files: 200,
            sections: None,
            since_revision: None,
            unsaved_files: Vec::new(),
            changed_files: Vec::new(),
            requester_pids: Vec::new(),
            consume: true,
            now: None,
            time_zone: None,
        }
    }
}

/// Mode of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// The agent may make changes.
    #[default]
    Act,
    /// The agent only plans.
    Plan,
}

/// A model: its id, or an object with more information.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a model's id, or an object with its `id` (a string)"
)]
pub enum ModelRef {
    /// Id of the model.
    Id(String),
    /// Id and further information.
    Info(ModelInfo),
}

impl ModelRef {
    /// Id of the model.
    pub fn id(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Info(info) => &info.id,
        }
    }

    /// Context window in tokens, if the client named it.
    pub fn context_window(&self) -> Option<f64> {
        match self {
            Self::Id(_) => None,
            Self::Info(info) => info.context_window,
        }
    }
}

/// A model with its properties.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Id of the model.
    pub id: String,
    /// Size of the context window, in tokens.
    pub context_window: Option<f64>,
    /// Id of the provider. `openai` is any OpenAI-compatible endpoint.
    pub provider: Option<String>,
}

/// Token usage of a request to a model, as reported by the provider.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input tokens.
    pub tokens_in: Option<f64>,
    /// Output tokens.
    pub tokens_out: Option<f64>,
    /// Tokens written to the prompt cache.
    pub cache_writes: Option<f64>,
    /// Tokens read from the prompt cache.
    pub cache_reads: Option<f64>,
}

impl Usage {
    /// Returns the sum of all four values.
    pub fn total(&self) -> f64 {
        [
            self.tokens_in,
            self.tokens_out,
            self.cache_writes,
            self.cache_reads,
        ]
        .into_iter()
        .flatten()
        .sum()
    }
}

/// Sections of the block, in printed order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SectionId {
    /// Workspace folders, if there are several.
    WorkspaceRoots,
    /// Files visible in an editor.
    VisibleFiles,
    /// Files open in a tab.
    OpenTabs,
    /// Terminals with a running command.
    RunningTerminals,
    /// Idle terminals with unread output.
    InactiveTerminals,
    /// Files that changed since the agent last saw them.
    RecentlyModified,
    /// Date, time and time zone.
    CurrentTime,
    /// The file list.
    Files,
    /// Roots, git remotes and commits, as JSON.
    WorkspaceConfiguration,
    /// Command line tools found on the search path.
    CliTools,
    /// Open files with unsaved changes.
    UnsavedFiles,
    /// Errors and warnings in visible and recently modified files. Only if it is requested in
    /// `sections` or enabled.
    Diagnostics,
    /// Usage of the context window.
    ContextWindow,
    /// Mode of the agent: plan or act.
    Mode,
}

impl SectionId {
    /// All sections, in order.
    pub const ALL: [Self; 14] = [
        Self::WorkspaceRoots,
        Self::VisibleFiles,
        Self::OpenTabs,
        Self::RunningTerminals,
        Self::InactiveTerminals,
        Self::RecentlyModified,
        Self::CurrentTime,
        Self::Files,
        Self::WorkspaceConfiguration,
        Self::CliTools,
        Self::UnsavedFiles,
        Self::Diagnostics,
        Self::ContextWindow,
        Self::Mode,
    ];
}

/// Result of `sightline/environmentDetails`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentDetailsResult {
    /// The whole block, including its tags.
    pub text: String,
    /// Sections of the block, in order.
    pub sections: Vec<Section>,
    /// Estimated tokens of `text`.
    pub tokens: u64,
    /// Revision of the state shown, for `sinceRevision`.
    pub revision: u64,
}

/// One section of the block.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Id of the section.
    pub id: SectionId,
    /// The heading, without `# `.
    pub heading: String,
    /// The body.
    pub text: String,
    /// Estimated tokens of the heading and the body.
    pub tokens: u64,
    /// Maximum size of the body, in estimated tokens, if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Number of entries left out because they are denied, outside the workspace or
    /// over the budget of the section.
    pub omitted: u32,
    /// True if the client did not send this state and it was derived from open
    /// documents.
    #[serde(default, skip_serializing_if = "crate::files::is_false")]
    pub derived: bool,
}
