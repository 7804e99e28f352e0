//! `sightline/countTokens`: the number of tokens of texts and messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    conversation::Message,
    environment::{ModelRef, Usage},
};

/// Params of `sightline/countTokens`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CountTokensParams {
    /// Texts to count. Special token markers count as plain text.
    pub texts: Vec<String>,
    /// Messages to count, including per-message overhead. `content` is a string or a
    /// list of blocks.
    pub messages: Vec<Message>,
    /// Model to count for. Without `model` and `encoding`, `o200k_base` is used.
    pub model: Option<ModelRef>,
    /// Encoding to use regardless of the model: `o200k_base`, `o200k_harmony`,
    /// `cl100k_base`, `p50k_base`, `p50k_edit`, `r50k_base` or `gpt2`.
    pub encoding: Option<String>,
    /// Id of the task of these messages. Usage reported for the task calibrates the
    /// count. Without texts and messages, counts the part of the stored conversation
    /// that would be sent.
    pub task_id: Option<String>,
    /// Usage reported by the provider for a request with exactly these texts and
    /// messages. Later counts of the task start from it.
    pub usage: Option<Usage>,
}

/// Result of `sightline/countTokens`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountTokensResult {
    /// Total number of tokens: the sum of `items`, unless it is based on reported
    /// usage.
    pub tokens: u64,
    /// Number of tokens of each text, then of each message, in request order.
    pub items: Vec<u64>,
    /// Encoding used for the counts.
    pub encoding: String,
    /// True if `tokens` is an exact count of the encoding, not an estimate.
    pub exact: bool,
    /// Method used for the count, as text.
    pub method: String,
    /// Likely lower bound. Absent if the count is exact.
    pub lower: Option<u64>,
    /// Likely upper bound. Absent if the count is exact.
    pub upper: Option<u64>,
    /// Ratio of tokens reported by the provider to tokens counted here, if usage was
    /// reported.
    pub calibration: Option<f64>,
}
