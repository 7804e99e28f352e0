//! Whether a conversation may be made shorter after an error of its provider.

use hyper::{HeaderMap, StatusCode};
use serde_json::Value;
use sightline_conversation::{classify_error, wire::Values};

use crate::{body::RequestBody, failure::Api, task::Task};

/// Returns whether a response says that the request does not fit into the context window.
pub(crate) fn says_too_long(status: StatusCode, upstream: &str, body: &[u8]) -> bool {
    let Ok(mut error) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    if let Some(fields) = error.as_object_mut() {
        fields
            .entry("status")
            .or_insert_with(|| status.as_u16().into());
    }
    classify_error(Some(upstream), &error).context_window_exceeded
}

/// Returns whether old results of a conversation may be replaced. Its parts must belong together by an
/// id, and the model must not bind its thinking to them.
pub(crate) fn may_mask(
    api: Option<Api>,
    task: &Task,
    headers: &HeaderMap,
    body: &RequestBody,
) -> bool {
    let has_id = matches!(task, Task::Id(_));
    // Titles and summaries offer no tools.
    let text = &body.text;
    let has_tools =
        body.member(Values::ALL, "tools").is_some() || text.contains("\"additional_tools\"");
    let kind = headers
        .get("x-codex-turn-metadata")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_compaction =
        kind.contains("\"request_kind\":\"compaction\"") || text.contains("\"compaction_trigger\"");
    // The agent and its provider do it themselves.
    let is_managed = text.contains("clear_tool_uses");
    let model = body.string(Values::ALL, "model").unwrap_or_default();
    let binds_thinking = match api {
        Some(Api::Messages) => !is_unbound_claude(&model),
        Some(Api::Responses | Api::Completions | Api::Gemini) => model.contains("claude"),
        None => true,
    };
    has_id && has_tools && !is_compaction && !is_managed && !binds_thinking
}

/// Returns whether a Claude model is of a generation before those that bind their thinking.
fn is_unbound_claude(model: &str) -> bool {
    let Some((_, name)) = model.split_once("claude-") else {
        return false;
    };
    name.split(['-', '.', '@'])
        .filter(|part| part.len() <= 2)
        .find_map(|part| part.parse::<u8>().ok())
        .is_some_and(|generation| generation <= 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_of_newer_models_is_bound() {
        for model in [
            "claude-sonnet-4-5",
            "claude-3-7-sonnet-20250219",
            "claude-opus-4-1",
        ] {
            assert!(is_unbound_claude(model), "{model}");
        }
        for model in [
            "claude-sonnet-5-5",
            "claude-fable-5-1",
            "claude-opus-5.5",
            "claude-next",
            "mock",
            "",
        ] {
            assert!(!is_unbound_claude(model), "{model}");
        }
    }
}
