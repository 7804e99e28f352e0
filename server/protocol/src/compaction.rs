//! Replacing the older part of a conversation by a summary of it:
//! `sightline/planCompaction` and `sightline/applyCompaction`.
//!
//! The client owns the model: it is handed a prompt and gives back a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{conversation::Message, environment::ModelRef};

/// Params of `sightline/planCompaction`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanCompactionParams {
    /// The whole conversation. When absent, the stored one of `taskId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Id of the task whose stored conversation is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The model the conversation is for, and the prompt.
    pub model: ModelRef,
    /// The newest part that stays as it is: a fraction of the messages.
    #[serde(default = "retain_ratio")]
    pub retain_ratio: f64,
    /// Files whose text is kept at hand at most.
    #[serde(default = "max_files")]
    pub max_files: u32,
    /// Lines of each of them at most.
    #[serde(default = "max_lines_per_file")]
    pub max_lines_per_file: u32,
    /// What the summary should heed, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Which messages the prompt shows, besides what fits the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<MessageFilter>,
}

/// The newest fifth stays.
pub const DEFAULT_RETAIN_RATIO: f64 = 0.2;
/// Files whose text is kept at hand.
pub const DEFAULT_MAX_FILES: u32 = 5;
/// Lines of each of them.
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

/// Which messages are shown: the newest that meet all of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageFilter {
    /// Tokens of all of them at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Messages at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<u64>,
    /// Not older than this many milliseconds; messages without a `ts` have no age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<i64>,
}

/// Result of `sightline/planCompaction`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanCompactionResult {
    /// Is the model's window so full that compacting is worth it, and is there
    /// anything to compact besides an earlier summary?
    pub needed: bool,
    /// Tokens of what would be sent now.
    pub tokens: u64,
    /// What to send to a model, as the only message.
    pub prompt: String,
    /// The files whose text goes with the summary.
    pub files: Vec<KeyFile>,
    /// Index of the first message that stays as it is.
    pub retain_from: u64,
}

/// A file whose text goes with a summary.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyFile {
    /// The file, as results name it.
    pub path: String,
    /// Why it was chosen.
    pub reason: KeyFileReason,
    /// Lines of it that are shown.
    pub lines: u64,
}

/// Why a file goes with a summary, in order of weight.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum KeyFileReason {
    /// It was changed in the conversation.
    Modified,
    /// It is mentioned several times.
    Mentioned,
    /// It was read lately.
    Recent,
}

/// Params of `sightline/applyCompaction`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplyCompactionParams {
    /// The whole conversation. When absent, the stored one of `taskId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Id of the task whose stored conversation is meant; it is then compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// What the model answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why there is no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Index of the first message that stays as it is, from the plan; decided
    /// anew when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain_from: Option<u64>,
    /// Who wanted it.
    pub trigger: CompactionTrigger,
    /// The model the conversation is for, to count its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Files whose text is kept at hand at most; 5 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_files: Option<u32>,
    /// Lines of each of them at most; 1000 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lines_per_file: Option<u32>,
}

/// Who wanted a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CompactionTrigger {
    /// The window was full.
    #[default]
    Auto,
    /// The user.
    Manual,
}

/// Result of `sightline/applyCompaction`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyCompactionResult {
    /// The conversation from now on.
    pub messages: Vec<Message>,
    /// Its tokens before.
    pub pre_tokens: u64,
    /// Its tokens now.
    pub post_tokens: u64,
    /// The files whose text goes with the summary.
    pub files_included: Vec<String>,
    /// Was there no summary, so that the newest part was kept instead?
    pub fallback: bool,
    /// Why there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_reason: Option<String>,
}
