//! Scanned messages and their parts.

use std::borrow::Cow;

use sightline_base::{cancel::Cancel, error::Error};

use crate::{
    wire::json::{Cursor, decode, member, string_equals},
    wire::{Block, BlockKind, Content, Message, Role, invalid_message},
};

use super::IndexedMessage;

/// A message and its index.
#[derive(Debug)]
pub(super) struct ScannedMessage<'a> {
    /// Index in the whole conversation.
    pub(super) index: usize,
    pub(super) scan: Message<'a>,
}

/// A part of a message. Strings are JSON, not decoded.
#[derive(Debug, PartialEq)]
pub(super) enum MessagePart<'a> {
    /// A text.
    Text(&'a str),
    /// A tool call: its id, the tool's name, its input as JSON.
    Call {
        id: Option<&'a str>,
        name: Cow<'a, str>,
        input: &'a str,
    },
    /// A tool result.
    Result {
        id: Option<&'a str>,
        failed: bool,
        parts: Vec<MessagePart<'a>>,
    },
    /// Any other block, by its type.
    Label(Cow<'a, str>),
}

/// Scans all messages.
///
/// # Errors
/// `invalidParams` if a message is not an object, `cancelled`.
pub(super) fn scan_messages<'a>(
    items: &[IndexedMessage<'a>],
    cancel: &Cancel,
) -> Result<Vec<ScannedMessage<'a>>, Error> {
    let mut messages = Vec::with_capacity(items.len());
    for item in items {
        cancel.check()?;
        let index = item.index;
        let scan = Message::scan(item.message.get()).ok_or_else(|| invalid_message(index))?;
        messages.push(ScannedMessage { index, scan });
    }
    Ok(messages)
}

impl<'a> ScannedMessage<'a> {
    pub(super) fn is_user(&self) -> bool {
        self.scan.role == Role::User
    }

    /// Returns the role for display.
    pub(super) fn role(&self) -> &'static str {
        match self.scan.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Other => "other",
        }
    }

    /// Returns the time it was written, in milliseconds since the Unix epoch.
    pub(super) fn ts(&self) -> Option<f64> {
        let ts: f64 = member(self.scan.text, "ts")?.parse().ok()?;
        ts.is_finite().then_some(ts)
    }

    /// Returns the parts of the message.
    pub(super) fn parts(&self) -> Vec<MessagePart<'a>> {
        match &self.scan.content {
            Content::Empty(_) => Vec::new(),
            Content::Text(range) => vec![MessagePart::Text(self.scan.slice(range))],
            Content::Other(range) => block(self.scan.slice(range), BlockKind::Other)
                .map_or_else(Vec::new, |part| vec![part]),
            Content::Blocks { blocks, .. } => {
                let parts = blocks.iter().filter_map(|block| self.part(block));
                parts.collect()
            }
        }
    }

    /// Converts a block to a part.
    pub(super) fn part(&self, of: &Block) -> Option<MessagePart<'a>> {
        match (of.kind, &of.text) {
            (BlockKind::Text, Some(text)) => Some(MessagePart::Text(self.scan.slice(text))),
            _ => block(self.scan.slice(&of.range), of.kind),
        }
    }
}

/// Decodes a JSON value if it is a string.
pub(super) fn string(json: &str) -> Option<Cow<'_, str>> {
    json.starts_with('"').then(|| decode(json))
}

/// Converts a content block of a message or of a tool result.
fn block(json: &str, kind: BlockKind) -> Option<MessagePart<'_>> {
    if json.starts_with('"') {
        return Some(MessagePart::Text(json));
    }
    let text_of = |key| member(json, key).filter(|value| value.starts_with('"'));
    let name = text_of("type").map_or(Cow::Borrowed("unknown"), decode);
    match kind {
        BlockKind::ToolUse | BlockKind::ServerToolUse => return Some(call(json)),
        BlockKind::ToolResult | BlockKind::ServerToolResult => return Some(result(json)),
        BlockKind::Image => return Some(MessagePart::Label(name)),
        BlockKind::Text | BlockKind::Other => {}
    }
    match &*name {
        "text" | "input_text" | "output_text" => text_of("text").map(MessagePart::Text),
        "document" => {
            let source = member(json, "source").unwrap_or_default();
            let is_text = member(source, "type").is_some_and(|kind| string_equals(kind, "text"));
            let data = member(source, "data").filter(|data| is_text && data.starts_with('"'));
            Some(data.map_or(MessagePart::Label(name), MessagePart::Text))
        }
        _ if json.starts_with('{') => Some(MessagePart::Label(name)),
        _ => None,
    }
}

fn call(json: &str) -> MessagePart<'_> {
    MessagePart::Call {
        id: member(json, "id"),
        name: member(json, "name")
            .and_then(string)
            .unwrap_or(Cow::Borrowed("unknown")),
        input: member(json, "input").unwrap_or_default(),
    }
}

fn result(json: &str) -> MessagePart<'_> {
    let content = member(json, "content").unwrap_or_default();
    let mut parts = Vec::new();
    if content.starts_with('[') {
        let mut cursor = Cursor::new(content);
        cursor.enter(b'[');
        while cursor.next_item(b']') {
            let item = content.get(cursor.skip_value()).unwrap_or_default();
            parts.extend(inner(item));
        }
    } else {
        parts.extend(inner(content));
    }
    MessagePart::Result {
        id: member(json, "tool_use_id"),
        failed: member(json, "is_error") == Some("true"),
        parts,
    }
}

/// Converts a block of a tool result to a text or label. Nested calls and results are not
/// followed.
fn inner(json: &str) -> Option<MessagePart<'_>> {
    match block(json, BlockKind::Other)? {
        part @ (MessagePart::Text(_) | MessagePart::Label(_)) => Some(part),
        MessagePart::Call { .. } | MessagePart::Result { .. } => {
            Some(MessagePart::Label(Cow::Borrowed("unknown")))
        }
    }
}

/// Returns the members of a JSON object: keys as written, values as JSON.
pub(super) fn members(object: &str) -> Vec<(&str, &str)> {
    let mut cursor = Cursor::new(object);
    let mut members = Vec::new();
    if cursor.enter(b'{') {
        while let Some(key) = cursor.next_member() {
            members.push((key, object.get(cursor.skip_value()).unwrap_or_default()));
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn parts_of_every_kind() {
        let raw = RawValue::from_string(
            r#"{"role":"user","ts":1.5e3,"content":[{"type":"text","text":"a"},"b",7,{"type":"thinking","thinking":"t"},
            {"type":"tool_use","id":"1","name":"f","input":{"a" : 1}},
            {"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"c"},
              {"type":"image","source":{"data":"AAAA"}},{"type":"tool_result","content":"x"}]},
            {"type":"tool_result","content":"d"},{"type":"tool_result"},
            {"type":"document","source":{"type":"text","data":"e"}},
            {"type":"document","source":{"type":"base64","data":"AAAA"}},{"text":"odd"}]}"#
                .to_owned(),
        )
        .unwrap();
        let item = IndexedMessage {
            index: 0,
            message: &raw,
        };
        let messages = scan_messages(&[item], &Cancel::default()).unwrap();
        assert_eq!(messages[0].ts(), Some(1500.0));
        let label = |label| MessagePart::Label(Cow::Borrowed(label));
        let result = |id, failed, parts| MessagePart::Result { id, failed, parts };
        assert_eq!(
            messages[0].parts(),
            [
                MessagePart::Text("\"a\""),
                MessagePart::Text("\"b\""),
                label("thinking"),
                MessagePart::Call {
                    id: Some("\"1\""),
                    name: "f".into(),
                    input: r#"{"a" : 1}"#,
                },
                result(
                    Some("\"1\""),
                    true,
                    vec![
                        MessagePart::Text("\"c\""),
                        label("image"),
                        label("tool_result")
                    ]
                ),
                result(None, false, vec![MessagePart::Text("\"d\"")]),
                result(None, false, vec![]),
                MessagePart::Text("\"e\""),
                label("document"),
                label("unknown"),
            ]
        );
    }
}
