//! Property tests of truncation with arbitrary conversations.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Number, Value, json, value::RawValue};
use sightline_base::cancel::Cancel;
use sightline_conversation::{
    ContextHistory, DeletedRange, TruncateAction, TruncateOutcome, TruncateRequest, truncate,
    truncation::left_out,
};
use sightline_protocol::{
    conversation::{Decision, Keep},
    settings::{ConversationProfile, ConversationSettings, NoticeSettings},
};

/// Data that must be preserved, in a form that parsing and writing again would change.
const UNKNOWN: &str = r#""z\u0041" : { "b":1.0,"a":1e2 }"#;

/// Content of a block of a user message.
#[derive(Clone, Debug)]
enum Said {
    Text(String),
    Read(&'static str, usize),
    Change(&'static str, usize),
    Mentions(Vec<(&'static str, usize)>),
    Image,
}

impl Said {
    fn text(&self) -> Option<String> {
        Some(match self {
            Self::Text(text) => text.clone(),
            Self::Read(path, size) => {
                format!("[read_file for '{path}'] Result:\n{}", "r".repeat(*size))
            }
            Self::Change(path, size) => format!(
                "[write_to_file for '{path}'] Result:\n<final_file_content path=\"{path}\">\n{}\n</final_file_content>",
                "c".repeat(*size)
            ),
            Self::Mentions(files) => files
                .iter()
                .map(|(path, size)| {
                    format!(
                        "<file_content path=\"{path}\">{}</file_content> ",
                        "m".repeat(*size)
                    )
                })
                .collect(),
            Self::Image => return None,
        })
    }
}

/// A user message, by the content of its results and other blocks.
#[derive(Clone, Debug)]
struct Turn {
    calls: usize,
    /// Position of the text in the assistant message before it, if any.
    text: Option<Place>,
    results: Vec<Said>,
    others: Vec<Said>,
    is_string: bool,
}

/// Position of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    BeforeCalls,
    BehindCalls,
}

fn said() -> impl Strategy<Value = Said> {
    let path = || select(&["a", "./a", "src/b.rs", "c$&", "日本/語"][..]);
    prop_oneof![
        ".{0,20}".prop_map(Said::Text),
        (path(), 0..400_usize).prop_map(|(path, size)| Said::Read(path, size)),
        (path(), 0..400_usize).prop_map(|(path, size)| Said::Change(path, size)),
        vec((path(), 0..200_usize), 0..4).prop_map(Said::Mentions),
        Just(Said::Image),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let results = vec(said(), 0..4);
    let text = select(&[None, Some(Place::BeforeCalls), Some(Place::BehindCalls)][..]);
    (
        0..3_usize,
        text,
        results,
        vec(said(), 0..4),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(calls, text, results, others, is_string)| Turn {
            calls,
            text,
            results,
            others,
            is_string,
        })
}

/// Messages alternate. Any message may have too few or too many results.
fn messages(turns: &[Turn], skip: Option<usize>) -> Vec<Box<RawValue>> {
    let mut messages = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        let block = |block: Value| {
            let block = block.to_string();
            format!("{{ {UNKNOWN},{}", block.strip_prefix('{').unwrap())
        };
        let plain = |said: &Said| match said.text() {
            Some(text) => json!({"type": "text", "text": text}),
            None => json!({"type": "image", "source": {"type": "base64", "data": "AAAA"}}),
        };
        let id = |nth: usize| format!("call_{index}_{nth}");
        let results = turn.results.iter().enumerate();
        let results = results.map(|(nth, said)| {
            block(json!({"type": "tool_result", "tool_use_id": id(nth), "content": [plain(said)]}))
        });
        let others = turn.others.iter().map(|said| block(plain(said)));
        let content = match turn.is_string {
            true => json!("just a string").to_string(),
            false => format!("[{}]", results.chain(others).collect::<Vec<_>>().join(", ")),
        };
        let calls = (0..turn.calls).map(|nth| {
            block(json!({"type": "tool_use", "id": id(nth), "name": "read_file", "input": {}}))
        });
        let text = |place| {
            let text = r#"{"type":"text","text":"ok"}"#.to_owned();
            (turn.text == Some(place)).then_some(text)
        };
        let before = text(Place::BeforeCalls).into_iter();
        let blocks: Vec<String> = before
            .chain(calls)
            .chain(text(Place::BehindCalls))
            .collect();
        let assistant = format!(
            r#"{{"role":"assistant",{UNKNOWN},"content":[{}]}}"#,
            blocks.join(",")
        );
        let user = format!(r#"{{"content":{content},{UNKNOWN}, "role":"user"}}"#);
        if index == 0 {
            messages
                .push(r#"{"role":"user","content":[{"type":"text","text":"task"}]}"#.to_owned());
        }
        messages.extend([assistant, user]);
    }
    if let Some(skip) = skip.filter(|skip| *skip < messages.len()) {
        messages.remove(skip);
    }
    let messages = messages.into_iter();
    messages
        .map(|message| RawValue::from_string(message).unwrap())
        .collect()
}

fn action() -> impl Strategy<Value = TruncateAction> {
    prop_oneof![
        Just(TruncateAction::Apply),
        Just(TruncateAction::Deduplicate),
        (0.0..300.0).prop_map(|used| TruncateAction::Auto {
            used: Some(used),
            limit: 100.0
        }),
        select(&[Keep::None, Keep::LastTwo, Keep::Half, Keep::Quarter][..])
            .prop_map(TruncateAction::Truncate),
    ]
}

fn profile() -> impl Strategy<Value = ConversationProfile> {
    select(&[ConversationProfile::Default, ConversationProfile::Cline][..])
}

struct Played {
    outcome: TruncateOutcome,
    /// The history before the last step.
    before: ContextHistory,
    sent: Vec<String>,
}

fn step(
    messages: &[&RawValue],
    deleted_range: Option<DeletedRange>,
    history: &ContextHistory,
    action: TruncateAction,
    time: usize,
    profile: ConversationProfile,
) -> TruncateOutcome {
    let request = TruncateRequest {
        messages,
        deleted_range,
        history: history.clone(),
        action,
        time: &Number::from(time),
        settings: &ConversationSettings {
            profile,
            ..ConversationSettings::default()
        },
    };
    truncate(request, &Cancel::default()).unwrap()
}

/// Runs steps on a growing conversation. Returns the last one.
fn play(
    messages: &[&RawValue],
    steps: &[(TruncateAction, usize)],
    profile: ConversationProfile,
) -> (Played, usize) {
    let mut range = None;
    let mut history = ContextHistory::default();
    let mut before = history.clone();
    let mut last = None;
    let mut count = 0;
    for (time, (action, more)) in steps.iter().enumerate() {
        count = (count + more).min(messages.len());
        let outcome = step(&messages[..count], range, &history, *action, time, profile);
        before = std::mem::replace(&mut history, outcome.history.clone());
        range = outcome.deleted_range;
        last = Some(outcome);
    }
    let outcome = last.unwrap();
    let sent = outcome.sent.iter();
    let sent = sent.map(|sent| sent.message(messages).unwrap().get().to_owned());
    let sent = sent.collect();
    let played = Played {
        outcome,
        before,
        sent,
    };
    (played, count)
}

fn ids(message: &Value, kind: &str, key: &str) -> Vec<String> {
    let blocks = message["content"].as_array().cloned().unwrap_or_default();
    let blocks = blocks.iter().filter(|block| block["type"] == kind);
    blocks
        .map(|block| block[key].as_str().unwrap().to_owned())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sent_messages_are_valid(
        turns in vec(turn(), 1..12),
        skip in option::weighted(0.2, 2..20_usize),
        steps in vec((action(), 0..16_usize), 1..4),
        profile in profile(),
    ) {
        let messages = messages(&turns, skip);
        let messages: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
        let (Played { outcome, sent, .. }, count) = play(&messages, &steps, profile);
        let input: Vec<Value> =
            messages[..count].iter().map(|raw| serde_json::from_str(raw.get()).unwrap()).collect();
        let output: Vec<Value> =
            sent.iter().map(|text| serde_json::from_str(text).unwrap()).collect();

        // Not longer than before, in order, with the first two messages.
        prop_assert!(sent.len() <= count);
        let indexes: Vec<usize> = outcome.sent.iter().map(|sent| sent.index).collect();
        prop_assert!(indexes.is_sorted_by(|a, b| a < b));
        prop_assert!((0..count.min(2)).eq(indexes.iter().copied().take(2)));

        for (sent, text) in outcome.sent.iter().zip(&sent) {
            // Unchanged messages are identical; unknown data is preserved.
            let original = messages[sent.index].get();
            if sent.edited.is_none() {
                prop_assert_eq!(text, original);
            }
            let kept = (text.matches(UNKNOWN).count(), original.matches(UNKNOWN).count());
            prop_assert!(kept.0 == kept.1 || (sent.repaired && kept.0 > 0));
            // The edits match the message.
            if !sent.repaired {
                let mut message = input[sent.index].clone();
                for edit in &sent.edits {
                    let block = &mut message["content"][edit.block];
                    match block["type"] == "text" {
                        true => block["text"] = json!(edit.text),
                        false => block["content"][0]["text"] = json!(edit.text),
                    }
                }
                prop_assert_eq!(&message, &serde_json::from_str::<Value>(text).unwrap());
            }
        }

        let alternate = |messages: &[Value]| {
            messages.windows(2).all(|pair| pair[0]["role"] != pair[1]["role"])
        };
        if alternate(&input) {
            prop_assert!(alternate(&output));
        }
        for pair in output.windows(2) {
            if pair[0]["role"] != "assistant" || pair[1]["role"] != "user" {
                continue;
            }
            let calls = ids(&pair[0], "tool_use", "id");
            if calls.is_empty() {
                continue;
            }
            prop_assert_eq!(&calls, &ids(&pair[1], "tool_result", "tool_use_id"));
            let blocks = pair[1]["content"].as_array().unwrap();
            prop_assert!(blocks[..calls.len()].iter().all(|block| block["type"] == "tool_result"));
        }
        // The notice is present if there is a text to put it in.
        if profile == ConversationProfile::Default && outcome.decision == Decision::Truncated {
            let rest = outcome.sent.iter().filter(|sent| sent.index > 0);
            let mut answers =
                rest.map(|sent| &input[sent.index]).filter(|message| message["role"] == "assistant");
            let can_say = answers.any(|message| !ids(message, "text", "text").is_empty());
            // A user message that became empty has the same notice.
            let mut answers = output.iter().filter(|message| message["role"] == "assistant");
            let notices = NoticeSettings::default();
            let is_said =
                answers.any(|message| message.to_string().contains(left_out(&notices)));
            prop_assert_eq!(can_say, is_said);
        }
        // A user's text is lost only with its whole message.
        for message in &output {
            prop_assert!(profile == ConversationProfile::Cline
                || message["content"] != json!([])
                || input.contains(message));
        }
    }

    #[test]
    fn decisions_can_be_rolled_back(
        turns in vec(turn(), 1..12),
        steps in vec((action(), 0..16_usize), 1..4),
        profile in profile(),
    ) {
        let messages = messages(&turns, None);
        let messages: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
        let (Played { outcome, before, sent }, count) = play(&messages, &steps, profile);

        // Serialization is lossless.
        let text = outcome.history.clone().into_value().to_string();
        let mut history =
            ContextHistory::from_value(serde_json::from_str(&text).unwrap()).unwrap();
        prop_assert_eq!(&history, &outcome.history);
        prop_assert_eq!(outcome.history_changed, history != before);

        // Applying the decisions makes no new ones and sends the same messages.
        let range = outcome.deleted_range;
        let again = step(&messages[..count], range, &history, TruncateAction::Apply, 9, profile);
        let again_sent: Vec<&str> =
            again.sent.iter().map(|sent| sent.message(&messages).unwrap().get()).collect();
        prop_assert_eq!(again_sent, sent);
        prop_assert!(!again.history_changed && again.deleted_range == range);

        // Rolling back the last step restores the state before it.
        let last = Number::from(steps.len() as i64 - 2);
        prop_assert_eq!(history.rollback(&last), outcome.history_changed);
        prop_assert_eq!(&history, &before);
    }
}
