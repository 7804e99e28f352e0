//! Malformed conversations: each is truncated or rejected, untouched messages are
//! returned unchanged, and truncation is idempotent.

use serde_json::{Number, Value, json, value::RawValue};
use sightline_base::cancel::Cancel;
use sightline_conversation::{
    ContextHistory, DeletedRange, TruncateAction, TruncateOutcome, TruncateRequest, classify_error,
    truncate,
};
use sightline_protocol::{
    conversation::Keep,
    error::ErrorKind,
    settings::{ConversationProfile, ConversationSettings},
};

use crate::draw::Draw;

/// Message contents, valid and invalid.
const CONTENTS: &[&str] = &[
    r#""plain""#,
    r#"[{"type":"text","text":"some text"}]"#,
    r#"[{"type":"tool_use","id":"a","name":"read_file","input":{"path":"x.rs"}}]"#,
    r#"[{"type":"tool_use","id":"b","name":"read_file","input":{"path":"x.rs"}}]"#,
    r#"[{"type":"tool_result","tool_use_id":"a","content":"[read_file for 'x.rs'] Result:\nfn main() {}"}]"#,
    r#"[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"[read_file for 'x.rs'] Result:\nfn main() {}"}]}]"#,
    r#"[{"type":"text","text":"[read_file for 'x.rs'] Result:"},{"type":"text","text":"fn main() {}"}]"#,
    r#"[{"type":"text","text":"<file_content path=\"x.rs\">fn main() {}</file_content> see 'x.rs' (see below for file content)"}]"#,
    r#"[{"type":"text","text":"<file_content path=\"x.rs\">never closed"}]"#,
    r#"[{"type":"image","source":{"type":"base64","data":"AAAA"}}]"#,
    "null",
    "7",
    "{}",
    "[]",
    "[[[[]]]]",
    r#"[null,1,"x",{}]"#,
    r#"[{"type":"tool_result","tool_use_id":null,"content":null}]"#,
    r#"[{"type":"tool_use","id":7,"name":[],"input":"\ud800"}]"#,
    r#"[{"type":"text","text":"\ud800 half \udc00"}]"#,
    r#"[{"type":"text","text":"a","text":"b"}]"#,
    r#"[{"ty\u0070e":"text","text":1e999}]"#,
];

const ROLES: &[&str] = &[
    r#""user""#,
    r#""assistant""#,
    r#""user""#,
    r#""assistant""#,
    r#""system""#,
    "null",
    "7",
    r#""\ud800""#,
];

fn message(draw: &mut Draw<'_>) -> String {
    let (role, content) = (draw.pick(ROLES), draw.pick(CONTENTS));
    match draw.below(24) {
        0 => format!(r#"{{"content":{content}}}"#),
        1 => format!(r#"{{"role":{role}}}"#),
        2 => format!(r#"{{"role":{role},"role":"user","content":"x","content":{content}}}"#),
        3 => content.to_string(),
        4 => format!("{{ \"x\" : [ 1 , 2 ] ,\n\t\"content\" : {content} , \"role\" : {role} }}"),
        5 => {
            let depth = draw.below(120);
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"role":{role},"content":{content},"extra":{deep}}}"#)
        }
        6 => {
            let text = Value::from(draw.text(30));
            format!(r#"{{"role":{role},"content":[{{"type":"text","text":{text}}}]}}"#)
        }
        _ => format!(r#"{{"role":{role},"content":{content}}}"#),
    }
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let profile = draw.pick(&[ConversationProfile::Default, ConversationProfile::Cline]);
    let range = match draw.below(4) {
        0 => Some(DeletedRange([
            i64::from(draw.byte()) - 3,
            draw.pick(&[i64::MIN, -1, 0, 1, 3, 5, 99, i64::MAX]),
        ])),
        _ => None,
    };
    let history = match draw.below(4) {
        0 => ContextHistory::from_value(odd_history(&mut draw)).unwrap_or_default(),
        _ => ContextHistory::default(),
    };
    let action = match draw.below(7) {
        0 => TruncateAction::Apply,
        1 => TruncateAction::Deduplicate,
        2 => TruncateAction::Auto {
            used: Some(2e5),
            limit: 1e5,
        },
        3 => TruncateAction::Auto {
            used: Some(f64::NAN),
            limit: -0.0,
        },
        4 => TruncateAction::Truncate(Keep::LastTwo),
        5 => TruncateAction::Truncate(Keep::Half),
        _ => TruncateAction::Truncate(Keep::Quarter),
    };
    let error = json!({ "status": draw.below(700), "message": draw.text(40), "error": odd_history(&mut draw) });
    let _ = classify_error(Some(&draw.text(8)), &error);
    let mut texts = Vec::new();
    while !draw.is_empty() && texts.len() < 40 {
        texts.push(message(&mut draw));
    }
    let raw: Vec<Box<RawValue>> = texts
        .iter()
        .filter_map(|text| RawValue::from_string(text.clone()).ok())
        .collect();
    let messages: Vec<&RawValue> = raw.iter().map(|raw| &**raw).collect();
    let time = Number::from(7);
    let settings = ConversationSettings {
        profile,
        ..ConversationSettings::default()
    };
    let asked = |action, deleted_range, history| TruncateRequest {
        messages: &messages,
        deleted_range,
        history,
        action,
        time: &time,
        settings: &settings,
    };
    let cancel = Cancel::default();
    let outcome = match truncate(asked(action, range, history), &cancel) {
        Ok(outcome) => outcome,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidParams);
            let all_objects = messages
                .iter()
                .all(|message| message.get().starts_with('{'));
            assert!(!all_objects, "{error}");
            return;
        }
    };
    let indexes: Vec<usize> = outcome.sent.iter().map(|sent| sent.index).collect();
    assert!(
        indexes.is_sorted_by(|one, other| one < other),
        "{indexes:?}"
    );
    assert!(indexes.last().is_none_or(|last| *last < messages.len()));
    for sent in &outcome.sent {
        let is_touched = sent.repaired || !sent.edits.is_empty();
        assert!(
            is_touched || sent.edited.is_none(),
            "{} is another, untouched",
            sent.index
        );
    }
    let again = truncate(
        asked(
            TruncateAction::Apply,
            outcome.deleted_range,
            outcome.history.clone(),
        ),
        &cancel,
    );
    assert_eq!(said(&again.unwrap(), &messages), said(&outcome, &messages));
}

fn said(outcome: &TruncateOutcome, messages: &[&RawValue]) -> Vec<String> {
    let sent = outcome.sent.iter();
    sent.map(|sent| sent.message(messages).unwrap().get().to_owned())
        .collect()
}

/// Something like an edit history.
fn odd_history(draw: &mut Draw<'_>) -> Value {
    let number = draw.pick(&[0_i64, 1, 2, 3, 5, -1, i64::MAX]);
    let update = json!([
        draw.below(9),
        draw.pick(&["text", "", "other"]),
        [draw.text(6)],
        [["x.rs"], ["x.rs"]]
    ]);
    match draw.below(8) {
        0 => json!([]),
        1 => json!([[number, [0, []]]]),
        2 => json!([
            [number, [1, [[0, [update]]]]],
            [number, [2, [[number, [update, update]]]]]
        ]),
        3 => json!([[1, [7, [[0, [[1, "text", [], []]]]]]]]),
        4 => json!([[1, [0, [[0, [[1]]]]]]]),
        5 => json!({ "a": number }),
        6 => json!([[[[[[[[number]]]]]]]]),
        _ => json!([[draw.below(6), [3, [[draw.below(4), [update]]]]]]),
    }
}
