//! Compares single rules with recordings of Cline: the next range, window sizes, rollback and
//! loading of edits, and error classification.

use std::collections::BTreeSet;

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use sightline_base::cancel::Cancel;
use sightline_conversation::{
    ContextHistory, ContextWindow, DeletedRange, TruncateAction, TruncateRequest, classify_error,
    truncate,
};
use sightline_protocol::{
    environment::{ModelInfo, ModelRef, Usage},
    settings::{ConversationProfile, ConversationSettings},
};
use sightline_testing::fixtures;

fn cases(name: &str) -> Vec<Value> {
    let cases = fixtures::load(name).unwrap_or_default();
    serde_json::from_value(cases).unwrap_or_default()
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

#[test]
fn next_ranges() {
    let mut lifted = 0;
    for case in cases("cline/truncation_range.json") {
        let input = &case["input"];
        let messages: Vec<_> = input["roles"]
            .as_str()
            .unwrap()
            .chars()
            .map(|role| {
                let role = if role == 'u' { "user" } else { "assistant" };
                to_raw_value(&serde_json::json!({"role": role, "content": "x"})).unwrap()
            })
            .collect();
        let messages: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
        let range = &input["currentDeletedRange"];
        let keep = serde_json::from_value(input["keep"].clone()).unwrap();
        for profile in [ConversationProfile::Default, ConversationProfile::Cline] {
            let request = TruncateRequest {
                messages: &messages,
                deleted_range: serde_json::from_value(range.clone()).ok().map(DeletedRange),
                history: ContextHistory::default(),
                action: TruncateAction::Truncate(keep),
                time: &0.into(),
                settings: &ConversationSettings {
                    profile,
                    ..ConversationSettings::default()
                },
            };
            let outcome = truncate(request, &Cancel::default()).unwrap();
            let DeletedRange(ours) = outcome.deleted_range.unwrap();
            let [first, last]: [i64; 2] =
                serde_json::from_value(case["expected"]["range"].clone()).unwrap();
            // A range never ends before the empty range.
            lifted += usize::from(last < 1);
            assert_eq!(ours, [first, last.max(1)], "{}", name(&case));
            // All messages outside the range are sent.
            let left_out = (2..=ours[1]).filter(|index| *index < messages.len() as i64);
            assert_eq!(outcome.sent.len() + left_out.count(), messages.len());
        }
    }
    assert!(lifted > 0 || cases("cline/truncation_range.json").is_empty());
}

fn model(model: &Value) -> ModelRef {
    let is_compatible = model["openAiCompatibleHandler"] == true;
    ModelRef::Info(ModelInfo {
        id: model["id"].as_str().unwrap().to_owned(),
        context_window: model["contextWindow"].as_f64(),
        provider: is_compatible.then(|| "openai".to_owned()),
    })
}

/// Tokens of a recorded request; `None` if it has none.
fn tokens(message: &Value) -> Option<f64> {
    let usage = serde_json::from_str::<Usage>(message["text"].as_str()?).ok()?;
    Some(usage.total())
}

#[test]
fn windows() {
    for case in cases("cline/context_window.json") {
        let (input, expected) = (&case["input"], &case["expected"]);
        let window = ContextWindow::for_model(&model(&input["model"]));
        let messages = &input["clineMessages"];
        match input["fn"].as_str().unwrap() {
            "getContextWindowInfo" => {
                assert_eq!(expected["contextWindow"], window.size, "{}", name(&case));
                let usable = expected["maxAllowedSize"].as_f64().unwrap();
                // The recording is accurate except for the last digit.
                assert!((usable - window.usable).abs() < 1e-9, "{}", name(&case));
            }
            "shouldCompactContextWindow" => {
                let index = input["previousApiReqIndex"].as_i64().unwrap();
                let used = usize::try_from(index)
                    .ok()
                    .and_then(|index| tokens(&messages[index]));
                let limit = window.limit(input["thresholdPercentage"].as_f64());
                let is_full = used.is_some_and(|used| used >= limit);
                assert_eq!(expected["result"], is_full, "{}", name(&case));
                // The same decision, made through a request.
                let request = TruncateRequest {
                    messages: &[],
                    deleted_range: None,
                    history: ContextHistory::default(),
                    action: TruncateAction::Auto { used, limit },
                    time: &0.into(),
                    settings: &ConversationSettings {
                        profile: ConversationProfile::Cline,
                        ..ConversationSettings::default()
                    },
                };
                let outcome = truncate(request, &Cancel::default()).unwrap();
                assert_eq!(outcome.updated_deleted_range, is_full, "{}", name(&case));
            }
            "getContextTelemetryData" => {
                let requests = messages.as_array().unwrap().iter();
                let mut requests = requests.filter(|message| message["say"] == "api_req_started");
                let message = match input["triggerIndex"].as_u64() {
                    Some(index) => messages.get(index as usize),
                    None => requests.nth_back(1),
                };
                let used = message.and_then(tokens);
                assert_eq!(
                    expected["result"]["tokensUsed"].as_f64(),
                    used,
                    "{}",
                    name(&case)
                );
                if used.is_some() {
                    assert_eq!(expected["result"]["maxContextWindow"], window.size);
                }
            }
            other => panic!("unknown function {other}"),
        }
    }
}

fn load(file: &Value) -> ContextHistory {
    let value = serde_json::from_str(file.as_str().unwrap_or_default()).ok();
    let history = value.map(ContextHistory::from_value);
    history.and_then(Result::ok).unwrap_or_default()
}

#[test]
fn edits_are_loaded_and_rolled_back() {
    for case in cases("cline/context_history_rollback.json") {
        let mut history = load(&case["input"]["contextHistoryFile"]);
        match case["kind"].as_str().unwrap() {
            "load" => {
                let expected = &case["expected"]["contextHistory"];
                assert_eq!(history.into_value(), *expected, "{}", name(&case));
            }
            "rollback" => {
                let times = case["input"]["timestamps"].as_array().unwrap().iter();
                for (time, expected) in times.zip(case["expected"].as_array().unwrap()) {
                    let before = history.clone();
                    let changed = history.rollback(time.as_number().unwrap());
                    assert_eq!(changed, before != history, "{}", name(&case));
                    let history = history.clone().into_value();
                    assert_eq!(history, expected["contextHistory"], "{}", name(&case));
                }
            }
            // Replayed with the other sessions.
            "session" => {}
            other => panic!("unknown kind {other}"),
        }
    }
}

/// Errors that are classified differently from Cline, and why.
const OTHER_MEANINGS: &[(&str, bool, &str)] = &[
    (
        "anthropic/any-invalid-request-counts",
        false,
        "an image that is too large is no conversation that is too long",
    ),
    (
        "openrouter/token-count-exceeds",
        true,
        "what Gemini says when a conversation is too long",
    ),
    (
        "gemini/token-count-real-message",
        true,
        "what Gemini says when a conversation is too long",
    ),
    (
        "xai/max-prompt-length",
        true,
        "what xAI says when a conversation is too long",
    ),
];

#[test]
fn error_classification() {
    let cases = cases("cline/context_errors.json");
    let mut others: BTreeSet<&str> = OTHER_MEANINGS.iter().map(|(name, ..)| *name).collect();
    for case in &cases {
        let is_openai = case["input"]["isOpenAiApiError"] == true;
        let recorded = case["expected"]["contextWindowExceeded"].as_bool().unwrap();
        let other = OTHER_MEANINGS
            .iter()
            .find(|(other, ..)| *other == name(case));
        if other.is_some_and(|(_, ours, _)| *ours != recorded) {
            others.remove(name(case));
        }
        let expected = other.map_or(recorded, |(_, ours, _)| *ours);
        // With the provider's name, and from the error alone.
        for provider in [is_openai.then_some("openai"), None] {
            let ours = classify_error(provider, &case["input"]["error"]);
            assert_eq!(ours.context_window_exceeded, expected, "{}", name(case));
            assert!(!(ours.context_window_exceeded && ours.retryable));
        }
    }
    assert!(
        cases.is_empty() || others.is_empty(),
        "no longer other: {others:?}"
    );
}
