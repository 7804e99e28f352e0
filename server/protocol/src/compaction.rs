//! Compaction: `sightline/planCompaction` and `sightline/applyCompaction` replace the
//! older part of a conversation with a summary.
//!
//! The client owns the model: it receives a prompt and returns a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{conversation::Message, environment::ModelRef};

/// Params of `sightline/planCompaction`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanCompactionParams {
    /// The whole conversation. Defaults to the stored conversation of `taskId`.
    pub messages: Option<Vec<Message>>,
    /// Id of the task with the stored conversation.
    pub task_id: Option<String>,
    /// Model that receives the conversation and the prompt.
    pub model: ModelRef,
    /// Fraction of the messages to keep unchanged, counted from the newest.
    #[serde(default = "retain_ratio")]
    pub retain_ratio: f64,
    /// Maximum number of files whose text is included.
    #[serde(default = "max_files")]
    pub max_files: u32,
    /// Maximum number of lines per included file.
    #[serde(default = "max_lines_per_file")]
    pub max_lines_per_file: u32,
    /// Instructions from the user for the summary.
    pub instructions: Option<String>,
    /// Filter for the messages shown in the prompt, in addition to the limit of the
    /// model.
    pub filter: Option<MessageFilter>,
}

impl PlanCompactionParams {
    /// Returns the default params for a conversation with this model.
    pub fn new(model: ModelRef) -> Self {
        Self {
            messages: None,
            task_id: None,
            model,
            retain_ratio: DEFAULT_RETAIN_RATIO,
            max_files: DEFAULT_MAX_FILES,
            max_lines_per_file: DEFAULT_MAX_LINES_PER_FILE,
            instructions: None,
            filter: None,
        }
    }
}

/// Default fraction of messages to keep unchanged.
pub const DEFAULT_RETAIN_RATIO: f64 = 0.2;
/// Default maximum number of included files.
pub const DEFAULT_MAX_FILES: u32 = 5;
/// Default maximum number of lines per included file.
pub const DEFAULT_MAX_LINES_PER_FILE: u32 = 1000;

fn retain_ratio() -> f64 {
    DEFAULT_RETAIN_RATIO
}

fn max_files() -> u32 {
    DEFAULT_MAX_FILES
}

fn max_lines_per_file() -> u32 {
    DEFAULT_MAX_LINES_PER_FILE
}

/// Message filter: selects the newest messages that satisfy every limit.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageFilter {
    /// Maximum total number of tokens.
    pub max_tokens: Option<u64>,
    /// Maximum number of messages.
    pub max_messages: Option<u64>,
    /// Maximum age, in milliseconds. Messages without `ts` always match.
    pub max_age: Option<i64>,
}

/// Result of `sightline/planCompaction`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanCompactionResult {
    /// True if the context window is full enough for compaction, and there is more to
    /// compact than an earlier summary.
    pub needed: bool,
    /// Number of tokens that would be sent now.
    pub tokens: u64,
    /// Prompt to send to a model as the only message.
    pub prompt: String,
    /// Files whose text is included with the summary.
    pub files: Vec<KeyFile>,
    /// Index of the first message that is kept unchanged.
    pub retain_from: u64,
}

/// A file whose text is included with a summary.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyFile {
    /// Path of the file, as in other results.
    pub path: String,
    /// Reason for including the file.
    pub reason: KeyFileReason,
    /// Number of included lines.
    pub lines: u64,
}

/// Reason for including a file, most important first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum KeyFileReason {
    /// The file was changed in the conversation.
    Modified,
    /// The file is mentioned several times.
    Mentioned,
    /// The file was read recently.
    Recent,
}

/// Params of `sightline/applyCompaction`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplyCompactionParams {
    /// The whole conversation. Defaults to the stored conversation of `taskId`.
    pub messages: Option<Vec<Message>>,
    /// Id of the task whose stored conversation is compacted.
    pub task_id: Option<String>,
    /// The answer of the model.
    pub summary: Option<String>,
    /// Reason why there is no summary.
    pub error: Option<String>,
    /// Index of the first message to keep unchanged, from the plan. Computed if absent.
    pub retain_from: Option<u64>,
    /// What triggered the compaction.
    pub trigger: CompactionTrigger,
    /// Model used to count the tokens of the conversation.
    pub model: Option<ModelRef>,
    /// Maximum number of files whose text is included. Defaults to 5.
    pub max_files: Option<u32>,
    /// Maximum number of lines per included file. Defaults to 1000.
    pub max_lines_per_file: Option<u32>,
}

/// Trigger of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CompactionTrigger {
    /// The context window was full.
    #[default]
    Auto,
    /// The user requested it.
    Manual,
}

/// Result of `sightline/applyCompaction`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyCompactionResult {
    /// The compacted conversation.
    pub messages: Vec<Message>,
    /// Number of tokens before compaction.
    pub pre_tokens: u64,
    /// Number of tokens after compaction.
    pub post_tokens: u64,
    /// Files whose text is included with the summary.
    pub files_included: Vec<String>,
    /// True if there was no summary and the newest part was kept instead.
    pub fallback: bool,
    /// Reason why there was no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_reason: Option<String>,
}
