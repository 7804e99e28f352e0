//! `sightline/countTokens`: how many tokens of a model's context texts and messages take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conversation::Message,
    environment::{ModelRef, Usage},
};

/// Params of `sightline/countTokens`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CountTokensParams {
    /// Texts to count as they are; the markers of special tokens count as ordinary text.
    pub texts: Vec<String>,
    /// Messages to count with what frames them: `role` and `content`, a string or blocks.
    pub messages: Vec<Message>,
    /// The model that will read them. Without model and encoding the count is that of
    /// `o200k_base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Count with this encoding whatever the model: `o200k_base`, `o200k_harmony`,
    /// `cl100k_base`, `p50k_base`, `p50k_edit`, `r50k_base` or `gpt2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The task these messages belong to: usage reported for it is the base of the count.
    /// Without texts and messages, what would be sent of its stored conversation is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// What the provider reported for a request with just these texts and messages; the
    /// later counts of the task start from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Result of `sightline/countTokens`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountTokensResult {
    /// All of it. The sum of `items`, unless reported usage is the base.
    pub tokens: u64,
    /// One figure for each text, then one for each message, in the order given.
    pub items: Vec<u64>,
    /// The encoding the figures were counted with or made from.
    pub encoding: String,
    /// True when `tokens` is what the encoding gives, not an estimate.
    pub exact: bool,
    /// How the figure was made.
    pub method: String,
    /// The least it is likely to be; absent when exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<u64>,
    /// The most it is likely to be; absent when exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<u64>,
    /// Tokens the provider reported for one counted here, when usage was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<f64>,
}
