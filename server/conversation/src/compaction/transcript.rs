//! Formats messages as text for a model: texts, tool calls and results, with large bodies
//! shortened.

use serde_json::value::RawValue;
use sightline_base::escape::one_line;

use crate::wire::Message;

use crate::truncation::file_markers::{FILE_CONTENT, FINAL_FILE_CONTENT, FileTags};

use super::{
    scanned_message::{MessagePart, ScannedMessage, members, string},
    shorten_text::{elide_base64, elide_middle, with_ellipsis},
};

/// Maximum size of a text, in bytes.
const TEXT_BYTES: usize = 8_000;
/// Maximum size of a file or tool result, in bytes.
const BODY_BYTES: usize = 2_000;
/// Maximum size of a tool argument, in bytes.
const VALUE_BYTES: usize = 1_000;
/// Maximum length of a tool name or block type, in bytes.
const NAME_BYTES: usize = 100;
/// Maximum size of a message, in bytes.
const MESSAGE_BYTES: usize = 24_000;

/// Formats a message for reading: its role, then its content. Returns `None` if it is not an
/// object.
pub fn readable(raw: &RawValue) -> Option<(&'static str, String)> {
    let scan = Message::scan(raw.get())?;
    let scanned = ScannedMessage { index: 0, scan };
    Some((scanned.role(), message(&scanned)))
}

/// Formats a message.
pub(super) fn message(message: &ScannedMessage<'_>) -> String {
    let mut texts = Vec::new();
    for part in message.parts() {
        match part {
            MessagePart::Text(json) => texts.push(message_text(json)),
            MessagePart::Call { name, input, .. } => texts.push(call(&name, input)),
            MessagePart::Result { failed, parts, .. } => texts.push(result(failed, &parts)),
            MessagePart::Label(name) => texts.push(label(&name)),
        }
    }
    let texts: Vec<&str> = texts.iter().map(|text| text.trim_end()).collect();
    elide_middle(&texts.join("\n"), MESSAGE_BYTES).into_owned()
}

/// Shortens a text and removes encoded data.
pub(super) fn plain(text: &str, max: usize) -> String {
    let text = elide_file_contents(text, &FINAL_FILE_CONTENT);
    let text = elide_file_contents(&text, &FILE_CONTENT);
    elide_middle(&elide_base64(&text), max).into_owned()
}

fn message_text(json: &str) -> String {
    let text = string(json).unwrap_or_default();
    // Agents that write tool calls as text also write results as text.
    let first_line = text.lines().next().unwrap_or_default();
    let is_result = first_line.starts_with('[') && first_line.contains("] Result:");
    plain(&text, if is_result { BODY_BYTES } else { TEXT_BYTES })
}

fn elide_file_contents(text: &str, tags: &FileTags) -> String {
    let mut cut = String::new();
    let mut copied = 0;
    for tagged in tags.all(text) {
        cut.push_str(&text[copied..tagged.content.start]);
        let body = elide_base64(&text[tagged.content.clone()]).into_owned();
        cut.push_str(&elide_middle(&body, BODY_BYTES));
        copied = tagged.content.end;
    }
    cut.push_str(&text[copied..]);
    cut
}

fn call(name: &str, input: &str) -> String {
    let mut text = format!("[calls {}]", in_line(name));
    let members = members(input);
    for (key, value) in &members {
        let key = string(key).unwrap_or_default();
        text.push_str(&format!("\n{}: {}", in_line(&key), json_value(value)));
    }
    if members.is_empty() && !matches!(input, "" | "null") && !input.starts_with('{') {
        text.push('\n');
        text.push_str(&json_value(input));
    }
    text
}

fn json_value(json: &str) -> String {
    let text = string(json).unwrap_or(json.into());
    elide_middle(&elide_base64(&text), VALUE_BYTES).into_owned()
}

fn result(failed: bool, parts: &[MessagePart<'_>]) -> String {
    let mut text = if failed { "[failed]" } else { "[result]" }.to_owned();
    for part in parts {
        text.push('\n');
        match part {
            MessagePart::Text(json) => {
                text.push_str(&plain(&string(json).unwrap_or_default(), BODY_BYTES));
            }
            MessagePart::Label(name) => text.push_str(&label(name)),
            MessagePart::Call { .. } | MessagePart::Result { .. } => {}
        }
    }
    text
}

fn label(name: &str) -> String {
    format!("[{}]", in_line(name))
}

fn in_line(name: &str) -> String {
    let name = with_ellipsis(name, NAME_BYTES);
    one_line(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::RawValue};

    use super::{super::scanned_message::scan_messages, *};
    use crate::compaction::IndexedMessage;
    use sightline_base::cancel::Cancel;

    fn shown(content: &Value) -> String {
        let message = json!({"role": "user", "content": content});
        let message = RawValue::from_string(message.to_string()).unwrap();
        let item = IndexedMessage {
            index: 0,
            message: &message,
        };
        super::message(&scan_messages(&[item], &Cancel::default()).unwrap()[0])
    }

    #[test]
    fn every_kind_of_part() {
        let content = json!([
            {"type": "text", "text": "hello\n"},
            {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
            {"type": "tool_use", "id": "1", "name": "write", "input": {"path": "a", "n": [1, {"x": null}]}},
            {"type": "tool_use", "id": "2", "name": "free\ntext", "input": "raw"},
            {"type": "tool_use", "id": "3", "name": "none", "input": {}},
            {"type": "tool_result", "is_error": true, "content": "no"},
            {"type": "tool_result", "content": [{"type": "text", "text": "yes"}, {"type": "image"}]},
        ]);
        assert_eq!(
            shown(&content),
            "hello\n[image]\n[calls write]\nn: [1,{\"x\":null}]\npath: a\n[calls free\\ntext]\nraw\n\
            [calls none]\n[failed]\nno\n[result]\nyes\n[image]"
        );
        assert_eq!(shown(&json!("plain")), "plain");
        for nothing in [json!(null), json!([]), json!(5), json!([null, 3, []])] {
            assert_eq!(shown(&nothing), "", "{nothing}");
        }
    }

    #[test]
    fn large_bodies_are_shortened_everywhere() {
        let file: String = (0..2000).map(|line| format!("line {line}\n")).collect();
        for content in [
            json!([{"type": "tool_result", "content": file}]),
            json!([{"type": "tool_result", "content": [{"type": "text", "text": file}]}]),
            json!(format!("[read_file for 'a'] Result:\n{file}")),
            json!([{"type": "tool_use", "name": "write", "input": {"content": file}}]),
            json!(format!(
                "see\n<file_content path=\"a\">\n{file}</file_content>\nthanks"
            )),
            json!(format!(
                "<final_file_content path=\"a\">\n{file}</final_file_content>"
            )),
        ] {
            let shown = shown(&content);
            assert!(shown.len() < 2_500, "{}", shown.len());
            assert!(shown.contains("line 0\n"));
            assert!(shown.contains("line 1999"));
            assert!(shown.contains("[left out here: "));
        }
        let typed = shown(&json!("word ".repeat(1_000)));
        assert!(!typed.contains("left out"));
    }

    #[test]
    fn no_data_is_shown() {
        let data = "QUJD".repeat(1_000);
        let sign = "QUJDQUJD";
        for content in [
            json!(format!("data:image/png;base64,{data}")),
            json!([{"type": "tool_use", "name": "f", "input": {"image": data, "deep": [data]}}]),
            json!([{"type": "tool_result", "content": data}]),
            json!([{"type": "image", "source": {"type": "base64", "data": data}}]),
            json!([{"type": "document", "source": {"type": "base64", "data": data}}]),
            json!([{"type": "odd", "data": data}]),
        ] {
            assert!(!shown(&content).contains(sign), "{}", shown(&content));
        }
    }

    #[test]
    fn a_message_with_thousands_of_blocks_is_bounded() {
        let block = json!({"type": "text", "text": "x".repeat(100)});
        let shown = shown(&Value::Array(vec![block; 20_000]));
        assert!(shown.len() < MESSAGE_BYTES + 100);
    }
}
