//! `sightline/environmentDetails`: the block an agent puts in front of its model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `sightline/environmentDetails`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct EnvironmentDetailsParams {
    /// Id of the task whose recently modified files are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Add the file list, the workspace configuration and the command line tools.
    pub include_files: bool,
    /// The agent's mode.
    pub mode: Mode,
    /// The model, for the size of its context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// What the last request to the model used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Entries of the file list at most.
    pub max_files: u32,
    /// Only these sections; they come in protocol order, whatever order they have here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sections: Option<Vec<SectionId>>,
    /// Only sections that changed since this revision (from an earlier result), and the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_revision: Option<u64>,
    /// Mark terminal output and recently modified files as delivered; false is a pure peek.
    pub consume: bool,
    /// The time to print, milliseconds since the Unix epoch, for reproducible output; the
    /// server's clock when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<i64>,
    /// IANA name of the time zone to print, for reproducible output; the server's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
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
            consume: true,
            now: None,
            time_zone: None,
        }
    }
}

/// The agent's mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// The agent may change things.
    #[default]
    Act,
    /// The agent only plans.
    Plan,
}

/// A model: its id, or the id with what is known about it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a model's id, or an object with its `id` (a string)"
)]
pub enum ModelRef {
    /// Just the id.
    Id(String),
    /// The id and what is known.
    Info(ModelInfo),
}

impl ModelRef {
    /// The model's id.
    pub fn id(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Info(info) => &info.id,
        }
    }

    /// The context window in tokens, when the client named it.
    pub fn context_window(&self) -> Option<f64> {
        match self {
            Self::Id(_) => None,
            Self::Info(info) => info.context_window,
        }
    }
}

/// A model and what the client knows about it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The model's id.
    pub id: String,
    /// Size of the context window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<f64>,
    /// The provider's id; `openai` is any OpenAI-compatible endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Tokens of one request to a model, as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<f64>,
    /// Output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<f64>,
    /// Tokens written to the prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_writes: Option<f64>,
    /// Tokens read from the prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_reads: Option<f64>,
}

impl Usage {
    /// All four figures together.
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

/// The sections of the block, in the order they are printed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SectionId {
    /// The workspace folders, when there are several.
    WorkspaceRoots,
    /// Files visible in an editor.
    VisibleFiles,
    /// Files open in a tab.
    OpenTabs,
    /// Terminals with a running command.
    RunningTerminals,
    /// Idle terminals with unread output.
    InactiveTerminals,
    /// Files changed since the agent last saw them.
    RecentlyModified,
    /// Date, time and zone.
    CurrentTime,
    /// The file list.
    Files,
    /// Roots, git remotes and commits, as JSON.
    WorkspaceConfiguration,
    /// Command line tools found on the search path.
    CliTools,
    /// Open files with unsaved changes.
    UnsavedFiles,
    /// How full the context window is.
    ContextWindow,
    /// Plan or act.
    Mode,
}

impl SectionId {
    /// Every section, in order.
    pub const ALL: [Self; 13] = [
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
        Self::ContextWindow,
        Self::Mode,
    ];
}

/// Result of `sightline/environmentDetails`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentDetailsResult {
    /// The whole block, tags included.
    pub text: String,
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// Estimated tokens of `text`.
    pub tokens: u64,
    /// Revision of what was shown, for `sinceRevision`.
    pub revision: u64,
}

/// One section of the block.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Which section this is.
    pub id: SectionId,
    /// The heading, without `# `.
    pub heading: String,
    /// The body.
    pub text: String,
    /// Estimated tokens of heading and body.
    pub tokens: u64,
    /// Entries left out: denied, outside, or over the section's budget.
    pub omitted: u32,
    /// True when the client did not send this and it was derived from open documents.
    #[serde(default, skip_serializing_if = "crate::files::is_false")]
    pub derived: bool,
}
