//! Truncation: `sightline/truncateHistory`, `sightline/rollbackHistory` and
//! `sightline/classifyError` decide which messages of a conversation are sent.
//!
//! Messages belong to the client. Fields that are not needed for the decision are
//! untyped, so that they are returned unchanged.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, value::RawValue};
use serde_with::skip_serializing_none;

use crate::environment::{ModelRef, Usage};

/// One message, stored byte for byte as received.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Message(pub Box<RawValue>);

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A message in the format of the Anthropic API. Other fields and block types \
                are allowed and returned unchanged.",
            "type": "object",
            "properties": {
                "role": { "description": "`user` or `assistant`.", "type": "string" },
                "content": { "description": "A string, or a list of content blocks." },
            },
            "required": ["role", "content"],
            "additionalProperties": true,
        })
    }
}

/// Params of `sightline/truncateHistory`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TruncateHistoryParams {
    /// The whole conversation. Defaults to the stored conversation of `taskId`.
    pub messages: Option<Vec<Message>>,
    /// Id of the task with the stored conversation. The result is stored as well.
    pub task_id: Option<String>,
    /// Model that receives the next request.
    pub model: ModelRef,
    /// Token usage and time of the last request. If absent, the conversation fits.
    pub previous_request: Option<PreviousRequest>,
    /// Messages left out so far: first and last index, inclusive. `[2, 1]` is the empty
    /// range.
    #[schemars(with = "Option<Vec<i64>>")]
    pub deleted_range: Option<[i64; 2]>,
    /// Edits made so far: `contextHistory` of the last result, or the content of
    /// Cline's `context_history.json`.
    #[schemars(with = "Option<Vec<Value>>")]
    pub context_history: Option<Value>,
    /// Which changes are allowed.
    #[serde(default)]
    pub strategy: Strategy,
    /// Fraction of the context window at which to act, capped by the usable size of the
    /// window.
    pub threshold_percentage: Option<f64>,
    /// Truncate by this amount immediately, regardless of usage and `strategy`.
    pub keep: Option<Keep>,
    /// Form of the result.
    #[serde(default)]
    pub reply: TruncateReply,
    /// Also count tokens before and after.
    #[serde(default)]
    pub count_tokens: bool,
}

/// Token usage and time of a request to a model.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviousRequest {
    /// Time the request was sent, in milliseconds since the Unix epoch. New edits are
    /// stored with this time.
    pub ts: Number,
    /// Token usage.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Changes that `sightline/truncateHistory` may make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// If the context window is full, replace duplicate file reads; if that saves too
    /// little, leave out messages.
    #[default]
    Auto,
    /// Only apply the given range and edits.
    Apply,
    /// Only replace duplicate file reads, even if the window is not full.
    Deduplicate,
}

/// Part of the conversation to keep after its first two messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Keep {
    /// Nothing.
    None,
    /// The last two messages.
    LastTwo,
    /// About half.
    Half,
    /// About a quarter.
    Quarter,
}

/// Form of the result of `sightline/truncateHistory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TruncateReply {
    /// The messages to send.
    #[default]
    Messages,
    /// Edits to apply to the caller's copy of the conversation.
    Edits,
}

/// Result of `sightline/truncateHistory`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TruncateHistoryResult {
    /// Messages to leave out: first and last index, inclusive.
    #[schemars(with = "Option<Vec<i64>>")]
    pub deleted_range: Option<[i64; 2]>,
    /// True if this call changed the range.
    pub updated_deleted_range: bool,
    /// Edits made so far. Pass them to the next call.
    #[schemars(with = "Vec<Value>")]
    pub context_history: Value,
    /// True if this call made edits.
    pub context_history_changed: bool,
    /// The messages to send.
    pub messages: Option<Vec<Message>>,
    /// With `reply: "edits"`, the texts to replace in messages that are kept.
    pub edits: Option<Vec<MessageEdit>>,
    /// With `reply: "edits"`, messages to replace entirely, because tool results had to
    /// be matched to tool calls.
    pub repairs: Option<Vec<MessageRepair>>,
    /// The decision.
    pub decision: Decision,
    /// Fraction of characters saved by replacing duplicate file reads in this call.
    /// Negative if the notices are longer than the files.
    pub characters_saved: f64,
    /// With `strategy: "deduplicate"`, true if too little was saved.
    pub need_to_truncate: Option<bool>,
    /// With `countTokens`, the tokens before and after.
    pub tokens: Option<TokenChange>,
}

/// Decision of `sightline/truncateHistory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DecisionOfTruncation")]
pub enum Decision {
    /// The conversation fits.
    Fits,
    /// Duplicate file reads were replaced, which saved enough.
    Deduplicated,
    /// Messages were left out.
    Truncated,
}

/// New text of a content block.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageEdit {
    /// Index of the message in the whole conversation.
    pub message: u64,
    /// Index of the content block in the message.
    pub block: u64,
    /// New text of the block. For a tool result, the text of its first block.
    pub text: String,
}

/// Replacement of a message.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageRepair {
    /// Index of the message in the whole conversation.
    pub message: u64,
    /// Message to send instead, with its edits applied.
    pub replacement: Message,
}

/// Token counts before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenChange {
    /// Tokens that would have been sent without this call.
    pub before: u64,
    /// Tokens that will be sent now.
    pub after: u64,
}

/// Params of `sightline/rollbackHistory`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackHistoryParams {
    /// The edits. Defaults to the stored edits of `taskId`.
    #[schemars(with = "Option<Vec<Value>>")]
    pub context_history: Option<Value>,
    /// Id of the task with the stored edits. The result is stored as well.
    pub task_id: Option<String>,
    /// Discard edits newer than this time, in milliseconds since the Unix epoch.
    pub timestamp: Number,
}

/// Result of `sightline/rollbackHistory`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackHistoryResult {
    /// Remaining edits.
    #[schemars(with = "Vec<Value>")]
    pub context_history: Value,
}

/// Params of `sightline/classifyError`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClassifyErrorParams {
    /// Id of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The error as received: the response body, or the error object with all its
    /// properties.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub error: Value,
}

/// Result of `sightline/classifyError`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassifyErrorResult {
    /// True if the request is too long for the model. Truncate it and send it again.
    pub context_window_exceeded: bool,
    /// True if the same request may succeed later. Wait and send it again.
    pub retryable: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_kept_byte_for_byte() {
        let message = r#"{ "role":"user","z":1.0,"a":1e2,"content":"\u00e9" }"#;
        let text = format!(
            r#"{{"messages":[{message}],"model":"m","previousRequest":{{"ts":1.5,"tokensIn":7}},
                "deletedRange":[2,1],"contextHistory":null}}"#
        );
        let params: TruncateHistoryParams = serde_json::from_str(&text).unwrap();
        let messages = params.messages.as_deref().unwrap();
        assert_eq!(messages[0].0.get(), message);
        assert_eq!(params.previous_request.as_ref().unwrap().usage.total(), 7.0);
        assert_eq!(params.context_history, None);
        assert_eq!(params.strategy, Strategy::Auto);
        let again = serde_json::to_string(&params).unwrap();
        assert!(again.contains(message));
        assert_eq!(
            serde_json::from_str::<TruncateHistoryParams>(&again).unwrap(),
            params
        );

        // Also through a parsed value, though not byte for byte.
        let value = json!({"messages": [{"role": "user"}], "model": {"id": "m"}, "keep": "half"});
        let params = TruncateHistoryParams::deserialize(&value).unwrap();
        assert_eq!(
            serde_json::to_value(params).unwrap()["messages"],
            value["messages"]
        );
    }

    #[test]
    fn error_may_be_absent_or_null() {
        for params in [json!({}), json!({"error": null})] {
            let params: ClassifyErrorParams = serde_json::from_value(params).unwrap();
            assert_eq!(params.error, Value::Null);
        }
    }
}
