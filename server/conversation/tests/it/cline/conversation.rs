//! Replays recorded sessions of Cline's context manager. [`DIFFERENCES`] lists intended
//! differences and their reasons.

use std::collections::BTreeSet;

use serde_json::{
    Number, Value,
    value::{RawValue, to_raw_value},
};
use sightline_base::cancel::Cancel;
use sightline_conversation::{
    ContextHistory, ContextWindow, DeletedRange, TruncateAction, TruncateOutcome, TruncateRequest,
    truncate,
};
use sightline_protocol::{
    conversation::Keep,
    environment::{ModelInfo, ModelRef, Usage},
    settings::{ConversationProfile, ConversationSettings, NoticeSettings},
};
use sightline_testing::fixtures;

/// The case, the reason, and the differing steps with their results.
type Difference = (&'static str, &'static str, &'static [&'static str]);

const RANGE: &str = "a range never ends before the empty one, and no message is sent twice";
const RECORD: &str = "a second edit leaves the record of the first alone, so that a rollback \
    finds it as it was";
const DOLLAR: &str = "a `$` in a path is a `$`";
const STRING: &str = "a message that is one string keeps it behind the results it lacks, and \
    the caller's messages are never changed";
const BLOCK: &str = "an edit lands in the block it was made for, also where results were left out";
const KEPT: &str = "with nothing new to replace, what was replaced before stays so";
const TASK: &str = "the first message is never replaced: the task stays";
const PATHS: &str = "two spellings of one path are one file";
const NOTICE: &str = "where the first answer does not begin with a text, another text that is \
    sent says that something is left out";
const PARALLEL: &str = "all reads in one message count";

/// Differences in both profiles.
#[rustfmt::skip]
const DIFFERENCES: &[Difference] = &[
    ("hand/short-histories-over-limit", RANGE, &["0 conversationHistoryDeletedRange"]),
    ("hand/single-message-truncation-then-continue", RANGE, &["0 conversationHistoryDeletedRange", "1 truncatedConversationHistory"]),
    ("hand/mention-two-rounds", RECORD, &["1 contextHistory", "2 contextHistory"]),
    ("hand/mention-two-rounds-with-reload", RECORD, &["2 contextHistory", "3 contextHistory", "4 contextHistory"]),
    ("hand/dollar-patterns-in-mention-path", DOLLAR, &["0 conversationHistoryDeletedRange", "0 updatedConversationHistoryDeletedRange", "0 truncatedConversationHistory", "0 fractionSaved", "0 contextHistory"]),
    ("hand/pairing-string-content-is-wiped", STRING, &["0 truncatedConversationHistory", "1 truncatedConversationHistory"]),
    ("hand/orphan-filter-shifts-block-index-of-update", BLOCK, &["0 truncatedConversationHistory"]),
    ("hand/attempt-optimization-in-memory", KEPT, &["2 optimizedConversationHistory"]),
    ("hand/condense-notice", TASK, &["0 contextHistory", "1 truncatedConversationHistory", "1 contextHistory", "2 contextHistory", "3 truncatedConversationHistory", "3 contextHistory"]),
    ("random/007-native", BLOCK, &["0 truncatedConversationHistory"]),
    ("random/013-native", BLOCK, &["1 truncatedConversationHistory"]),
    ("random/014-native", BLOCK, &["1 truncatedConversationHistory"]),
    ("random/016-mixed", STRING, &["0 truncatedConversationHistory"]),
    ("random/017-native", STRING, &["0 truncatedConversationHistory"]),
    ("random/019-mixed", BLOCK, &["2 truncatedConversationHistory"]),
    ("random/027-native", STRING, &["0 truncatedConversationHistory", "2 truncatedConversationHistory"]),
    ("random/031-native", DOLLAR, &["0 conversationHistoryDeletedRange", "0 updatedConversationHistoryDeletedRange", "0 truncatedConversationHistory", "0 fractionSaved", "0 contextHistory"]),
    ("random/039-native", STRING, &["2 truncatedConversationHistory", "4 truncatedConversationHistory"]),
    ("session/undo-second-mention-round", RECORD, &["1 contextHistory", "2 contextHistory", "3 contextHistory", "4 contextHistoryFileWritten", "4 fractionSaved", "4 contextHistory"]),
];

/// Differences in the default profile.
#[rustfmt::skip]
const DEFAULT_PROFILE_DIFFERENCES: &[Difference] = &[
    ("hand/notice-first-assistant-is-string", NOTICE, &["0 truncatedConversationHistory", "0 contextHistory"]),
    ("hand/notice-first-assistant-starts-with-tool-use", NOTICE, &["0 truncatedConversationHistory", "0 contextHistory"]),
    ("hand/paths-are-not-normalised", PATHS, &["0 truncatedConversationHistory", "0 fractionSaved", "0 contextHistory"]),
    ("random/003-native", PARALLEL, &["3 truncatedConversationHistory", "3 contextHistoryFileWritten", "3 fractionSaved", "3 contextHistory"]),
    ("random/004-native", PARALLEL, &["0 truncatedConversationHistory", "0 fractionSaved", "0 contextHistory", "1 fractionSaved", "1 contextHistory"]),
    ("random/007-native", PARALLEL, &["0 fractionSaved", "0 contextHistory"]),
    ("random/013-native", NOTICE, &["1 contextHistory"]),
    ("random/014-native", PARALLEL, &["1 conversationHistoryDeletedRange", "1 updatedConversationHistoryDeletedRange", "1 fractionSaved", "1 contextHistory"]),
    ("random/015-native", NOTICE, &["0 truncatedConversationHistory", "0 contextHistory", "1 truncatedConversationHistory", "1 contextHistoryFileWritten", "1 contextHistory"]),
    ("random/020-mixed", PARALLEL, &["0 conversationHistoryDeletedRange", "0 updatedConversationHistoryDeletedRange", "0 truncatedConversationHistory", "0 fractionSaved", "0 contextHistory"]),
    ("random/022-native", PARALLEL, &["0 conversationHistoryDeletedRange", "0 updatedConversationHistoryDeletedRange", "0 truncatedConversationHistory", "0 fractionSaved", "0 contextHistory"]),
    ("random/030-native", PARALLEL, &["1 truncatedConversationHistory", "1 fractionSaved", "1 contextHistory"]),
    ("random/034-native", PARALLEL, &["1 truncatedConversationHistory", "1 fractionSaved", "1 contextHistory"]),
    ("random/039-native", PARALLEL, &["1 truncatedConversationHistory", "1 fractionSaved", "1 contextHistory", "2 fractionSaved", "2 contextHistory", "3 contextHistory", "4 contextHistory"]),
    ("random/040-native", PARALLEL, &["0 truncatedConversationHistory", "0 fractionSaved", "0 contextHistory"]),
];

struct Session {
    settings: ConversationSettings,
    messages: Vec<Box<RawValue>>,
    history: ContextHistory,
    /// Content of `context_history.json`.
    file: ContextHistory,
}

/// Result of a step, with the recording's field names.
type Results = Vec<(&'static str, Value)>;

impl Session {
    fn new(input: &Value, notices: &NoticeSettings, profile: ConversationProfile) -> Self {
        let file = input["initialContextHistoryFile"].as_str();
        let file = file.and_then(|text| serde_json::from_str(text).ok());
        let file = file.map(ContextHistory::from_value);
        let file = file.and_then(Result::ok).unwrap_or_default();
        Self {
            settings: ConversationSettings {
                profile,
                notices: notices.clone(),
                ..ConversationSettings::default()
            },
            messages: raw(&input["messages"]),
            history: file.clone(),
            file,
        }
    }

    fn truncate(&self, step: &Value, action: TruncateAction, time: &Number) -> TruncateOutcome {
        let count = step["messageCount"].as_u64().unwrap() as usize;
        let messages: Vec<&RawValue> = self.messages[..count].iter().map(|m| &**m).collect();
        let range = &step["conversationHistoryDeletedRange"];
        let request = TruncateRequest {
            messages: &messages,
            deleted_range: serde_json::from_value(range.clone()).ok().map(DeletedRange),
            history: self.history.clone(),
            action,
            time,
            settings: &self.settings,
        };
        truncate(request, &Cancel::default()).unwrap()
    }

    /// Applies the decisions. Returns the recording's name for the action.
    fn take(&mut self, outcome: TruncateOutcome, is_stored: bool) -> Results {
        let sent = outcome.sent.iter().map(|sent| {
            let input: Vec<&RawValue> = self.messages.iter().map(|m| &**m).collect();
            sent.message(&input).unwrap().get().to_owned()
        });
        let sent: Vec<String> = sent.collect();
        self.history = outcome.history;
        if outcome.history_changed && is_stored {
            self.file = self.history.clone();
        }
        let written = outcome.history_changed && is_stored;
        let range = outcome.deleted_range.map(|range| range.0);
        vec![
            (
                "conversationHistoryDeletedRange",
                serde_json::to_value(range).unwrap(),
            ),
            (
                "updatedConversationHistoryDeletedRange",
                outcome.updated_deleted_range.into(),
            ),
            ("truncatedConversationHistory", sent.clone().into()),
            ("optimizedConversationHistory", sent.into()),
            ("contextHistoryFileWritten", written.into()),
            ("anyContextUpdates", outcome.history_changed.into()),
            ("needToTruncate", outcome.need_to_truncate.into()),
            ("fractionSaved", outcome.characters_saved.into()),
        ]
    }

    fn perform(&mut self, step: &Value) -> Results {
        let time = number(&step["timestamp"]).unwrap_or(Number::from(0));
        let previous = &step["previousRequest"];
        let sent_at = number(&previous["ts"]).unwrap_or(Number::from(0));
        match step["op"].as_str().unwrap() {
            "getNewContextMessagesAndMetadata" => {
                let text = previous["text"].as_str().filter(|text| !text.is_empty());
                let usage = text.map(serde_json::from_str::<Usage>);
                // A client that cannot read its stored history has nothing to request.
                let Ok(usage) = usage.transpose() else {
                    return vec![("contextHistoryFileWritten", false.into())];
                };
                let action = match step["useAutoCondense"].as_bool().unwrap() {
                    true => TruncateAction::Apply,
                    false => TruncateAction::Auto {
                        used: usage.map(|usage| usage.total()),
                        limit: window(&step["model"]).limit(None),
                    },
                };
                let outcome = self.truncate(step, action, &sent_at);
                self.take(outcome, true)
            }
            "getTruncatedMessages" => {
                let outcome = self.truncate(step, TruncateAction::Apply, &time);
                self.take(outcome, true)
            }
            "attemptFileReadOptimization" => {
                let outcome = self.truncate(step, TruncateAction::Deduplicate, &sent_at);
                self.take(outcome, true)
            }
            "attemptFileReadOptimizationInMemory" => {
                let outcome = self.truncate(step, TruncateAction::Deduplicate, &time);
                self.take(outcome, false)
            }
            // Compare only the notice of forced truncation.
            "triggerApplyStandardContextTruncationNoticeChange" => {
                let outcome = self.truncate(step, TruncateAction::Truncate(Keep::None), &time);
                self.take(outcome, true)
            }
            "truncateContextHistory" => {
                self.history.rollback(&time);
                self.file = self.history.clone();
                vec![("contextHistoryFileWritten", true.into())]
            }
            "reload" => {
                self.history = self.file.clone();
                Vec::new()
            }
            "replaceMessages" => {
                let from = step["from"].as_u64().unwrap() as usize;
                self.messages.splice(from.., raw(&step["messages"]));
                Vec::new()
            }
            other => panic!("unknown operation {other}"),
        }
    }
}

fn raw(messages: &Value) -> Vec<Box<RawValue>> {
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|message| to_raw_value(message).unwrap())
        .collect()
}

fn number(value: &Value) -> Option<Number> {
    value.as_number().cloned()
}

fn window(model: &Value) -> ContextWindow {
    let is_compatible = model["openAiCompatibleHandler"] == true;
    ContextWindow::for_model(&ModelRef::Info(ModelInfo {
        id: model["id"].as_str().unwrap().to_owned(),
        context_window: model["contextWindow"].as_f64(),
        provider: is_compatible.then(|| "openai".to_owned()),
    }))
}

/// Returns whether two fractions are equal up to the last digit. The recording has none if
/// nothing was replaced.
fn is_about(ours: &Value, recorded: &Value) -> bool {
    let recorded = recorded.as_f64().unwrap_or(0.0);
    (ours.as_f64().unwrap() - recorded).abs() < 1e-12
}

/// Converts messages to the recording's form: the index of an unchanged message, else the
/// message.
fn as_recorded(ours: &Value, recorded: &Value, messages: &[Box<RawValue>]) -> Value {
    let recorded = recorded.as_array().unwrap();
    let ours = ours
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(place, ours)| {
            let ours = ours.as_str().unwrap();
            let index = recorded.get(place).and_then(Value::as_u64);
            match index {
                Some(index) if messages[index as usize].get() == ours => index.into(),
                _ => serde_json::json!({"message": serde_json::from_str::<Value>(ours).unwrap()}),
            }
        });
    ours.collect()
}

/// Replays a case. Returns the differences.
fn play(
    case: &Value,
    notices: &NoticeSettings,
    profile: ConversationProfile,
) -> Vec<(String, String)> {
    let mut session = Session::new(&case["input"], notices, profile);
    let mut differences = Vec::new();
    let mut history = Value::Null;
    let steps = case["input"]["steps"].as_array().unwrap();
    let expected = case["expected"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), expected.len());
    for (index, (step, expected)) in steps.iter().zip(expected).enumerate() {
        let mut compare = |what: &str, ours: Value, recorded: &Value| {
            if ours != *recorded {
                let how = format!("ours {ours:#}\nrecorded {recorded:#}");
                differences.push((format!("{index} {what}"), how));
            }
        };
        for (what, mut ours) in session.perform(step) {
            let recorded = match what {
                "fractionSaved" => &expected["diagnostics"][what],
                _ => &expected[what],
            };
            if what == "fractionSaved" && is_about(&ours, recorded) {
                continue;
            }
            if what != "fractionSaved" && expected.get(what).is_none() {
                continue;
            }
            if recorded.is_array() && what.ends_with("ConversationHistory") {
                ours = as_recorded(&ours, recorded, &session.messages);
            }
            compare(what, ours, recorded);
        }
        if let Some(recorded) = expected.get("contextHistory") {
            history = recorded.clone();
        }
        compare(
            "contextHistory",
            session.history.clone().into_value(),
            &history,
        );
        // The stored form can be parsed again.
        let text = session.history.clone().into_value().to_string();
        let again = ContextHistory::from_value(serde_json::from_str(&text).unwrap());
        assert_eq!(again.unwrap(), session.history);
    }
    differences
}

/// The notices that the recordings were made with.
fn recorded_notices(responses: &Value) -> NoticeSettings {
    let text = |name: &str| {
        let mut cases = responses.as_array().unwrap().iter();
        let case = cases.find(|case| case["name"] == name).unwrap();
        Some(case["expected"].as_str().unwrap().to_owned())
    };
    NoticeSettings {
        duplicate_file_read: text("duplicateFileReadNotice"),
        truncation: text("contextTruncationNotice"),
        missing_tool_result: text("missingToolResult"),
    }
}

fn sessions_differ_only_where_listed(profile: ConversationProfile, listed: &[&[Difference]]) {
    let (Some(optimize), Some(rollback), Some(responses)) = (
        fixtures::load("cline/optimize.json"),
        fixtures::load("cline/context_history_rollback.json"),
        fixtures::load("cline/responses.json"),
    ) else {
        return;
    };
    let notices = recorded_notices(&responses);
    let mut expected: BTreeSet<(String, String)> = listed
        .iter()
        .flat_map(|list| list.iter())
        .flat_map(|(case, _, places)| places.iter().map(|at| (case.to_string(), at.to_string())))
        .collect();
    let sessions = rollback.as_array().unwrap().iter();
    let sessions = sessions.filter(|case| case["kind"] == "session");
    let mut unexpected = Vec::new();
    let mut count = 0;
    for case in optimize.as_array().unwrap().iter().chain(sessions) {
        count += 1;
        let name = case["name"].as_str().unwrap();
        for (place, how) in play(case, &notices, profile) {
            if !expected.remove(&(name.to_owned(), place.clone())) {
                unexpected.push(format!("{name} {}, {place}: {how}", case["quirks"]));
            }
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n\n"));
    assert!(expected.is_empty(), "no longer different: {expected:?}");
    assert!(count > 130);
}

#[test]
fn recorded_sessions_in_the_cline_profile() {
    sessions_differ_only_where_listed(ConversationProfile::Cline, &[DIFFERENCES]);
}

#[test]
fn recorded_sessions_in_the_default_profile() {
    sessions_differ_only_where_listed(
        ConversationProfile::Default,
        &[DIFFERENCES, DEFAULT_PROFILE_DIFFERENCES],
    );
}
