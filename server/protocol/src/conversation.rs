//! Deciding which messages of a conversation are sent:
//! `sightline/truncateHistory`, `sightline/rollbackHistory` and
//! `sightline/classifyError`.
//!
//! A conversation is the client's own. What is not needed to decide is untyped
//! here, so that it comes back as it was written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, value::RawValue};

use crate::environment::{ModelRef, Usage};

/// One message, kept byte for byte as it was written.
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
            "description": "A message in the form of Anthropic's API. Other keys and kinds of \
                blocks are allowed and come back untouched.",
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
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TruncateHistoryParams {
    /// The whole conversation. When absent, the stored one of `taskId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Id of the task whose stored conversation is meant; the outcome is stored too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The model the next request goes to.
    pub model: ModelRef,
    /// What the last request used, and when it was sent; without it nothing is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_request: Option<PreviousRequest>,
    /// The messages left out so far: first and last index, both included. `[2, 1]` is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<i64>>")]
    pub deleted_range: Option<[i64; 2]>,
    /// The edits made so far: the `contextHistory` of the last result, or the
    /// content of Cline's `context_history.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Value>>")]
    pub context_history: Option<Value>,
    /// What may be done.
    #[serde(default)]
    pub strategy: Strategy,
    /// Act when this fraction of the window is used, if that is less than its usable size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_percentage: Option<f64>,
    /// Truncate by this amount at once, whatever was used and whatever `strategy` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// What comes back.
    #[serde(default)]
    pub reply: TruncateReply,
    /// Also count the tokens before and after.
    #[serde(default)]
    pub count_tokens: bool,
}

/// What a request to a model used, and when it was sent.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviousRequest {
    /// When it was sent, milliseconds since the Unix epoch. Edits made now carry this time.
    pub ts: Number,
    /// Its tokens.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What `sightline/truncateHistory` may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// When the window is full, replace duplicate file reads; when that saves
    /// too little, leave messages out.
    #[default]
    Auto,
    /// Only apply the range and the edits as they are.
    Apply,
    /// Only replace duplicate file reads, full or not.
    Deduplicate,
}

/// How much of the conversation after its first two messages stays.
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

/// What `sightline/truncateHistory` returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TruncateReply {
    /// The messages to send.
    #[default]
    Messages,
    /// What to change in the caller's own copy before sending it.
    Edits,
}

/// Result of `sightline/truncateHistory`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TruncateHistoryResult {
    /// The messages to leave out: first and last index, both included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<i64>>")]
    pub deleted_range: Option<[i64; 2]>,
    /// Was the range decided anew?
    pub updated_deleted_range: bool,
    /// The edits made so far, to be given back next time.
    #[schemars(with = "Vec<Value>")]
    pub context_history: Value,
    /// Did this call make edits?
    pub context_history_changed: bool,
    /// The messages to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// With `reply: "edits"`: the texts to replace in messages that are not left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<MessageEdit>>,
    /// With `reply: "edits"`: messages to send in a form of their own, because
    /// their tool results had to be made to fit the tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<Vec<MessageRepair>>,
    /// What was done.
    pub decision: Decision,
    /// The fraction of characters that replacing duplicate file reads saved in
    /// this call; negative when the notices are longer than the files.
    pub characters_saved: f64,
    /// With `strategy: "deduplicate"`: was too little saved?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need_to_truncate: Option<bool>,
    /// With `countTokens`: tokens before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenChange>,
}

/// What `sightline/truncateHistory` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// Nothing had to be done.
    Fits,
    /// Duplicate file reads were replaced, and that was enough.
    Deduplicated,
    /// Messages are left out.
    Truncated,
}

/// The new text of one block.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageEdit {
    /// Index of the message in the whole conversation.
    pub message: u64,
    /// Index of the block in the message's content.
    pub block: u64,
    /// Its text, or of a tool result the text of its first block.
    pub text: String,
}

/// A message that is sent in another form.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageRepair {
    /// Index of the message in the whole conversation.
    pub message: u64,
    /// What to send in its place; its edits are in it.
    pub replacement: Message,
}

/// Tokens of the messages before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenChange {
    /// Tokens of what would have been sent without this call.
    pub before: u64,
    /// Tokens of what is to be sent now.
    pub after: u64,
}

/// Params of `sightline/rollbackHistory`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackHistoryParams {
    /// The edits. When absent, the stored ones of `taskId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Value>>")]
    pub context_history: Option<Value>,
    /// Id of the task whose stored edits are meant; the outcome is stored too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Edits newer than this go, milliseconds since the Unix epoch.
    pub timestamp: Number,
}

/// Result of `sightline/rollbackHistory`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackHistoryResult {
    /// The edits that are left.
    #[schemars(with = "Vec<Value>")]
    pub context_history: Value,
}

/// Params of `sightline/classifyError`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClassifyErrorParams {
    /// The provider's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The error as the client has it: the body, or the error object with all its properties.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub error: Value,
}

/// Result of `sightline/classifyError`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassifyErrorResult {
    /// The request was refused because it is too long for the model: truncate, then send.
    pub context_window_exceeded: bool,
    /// The same request may succeed later: wait, then send.
    pub retryable: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn messages_stay_as_they_are_written() {
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

        // Also by way of a parsed value, though not byte for byte.
        let value = json!({"messages": [{"role": "user"}], "model": {"id": "m"}, "keep": "half"});
        let params = TruncateHistoryParams::deserialize(&value).unwrap();
        assert_eq!(
            serde_json::to_value(params).unwrap()["messages"],
            value["messages"]
        );
    }

    #[test]
    fn an_error_may_be_nothing() {
        for params in [json!({}), json!({"error": null})] {
            let params: ClassifyErrorParams = serde_json::from_value(params).unwrap();
            assert_eq!(params.error, Value::Null);
        }
    }
}
