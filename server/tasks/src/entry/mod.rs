//! Reads and writes log entries, one per line.
//!
//! ```text
//! {"uuid","parentUuid","sessionId","timestamp","type","subtype","cwd","gitBranch","version",
//!  "message","tool","toolResult","compactMetadata","messages","masks","previousLeaf"}
//! ```
//!
//! Absent values are omitted; only the first entry of a conversation has `"parentUuid":null`.
//! `messages` are those with which a compaction or its undo continues: a summary, and copies of
//! earlier messages (`copyOf`). A copy without `message` is the same as the original.
//! `message` is stored as received, byte for byte, except that a line break between tokens
//! becomes a space. `tool` and `toolResult` are written for people and programs that search the
//! file, and are never read.

pub(crate) mod jsonl;
pub(crate) mod old_format;
pub(crate) mod truncation_record;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;
use sightline_base::{error::Error, limits::MAX_ENTRY_BYTES};
use sightline_protocol::{compaction::CompactionTrigger, error::ErrorKind};
use uuid::Uuid;

use self::truncation_record::LoggedTruncation;
use crate::failed;
use sightline_conversation::{
    Outline,
    wire::{
        Block, BlockKind, Message, Role,
        json::{Cursor, decode, string_equals},
    },
};

/// Subtypes of entries without a message.
pub(crate) const TRUNCATION: &str = "truncation";
pub(crate) const REWIND: &str = "rewind";
pub(crate) const REWIND_UNDO: &str = "rewind_undo";
pub(crate) const ROLLBACK: &str = "rollback";
pub(crate) const COMPACT_BOUNDARY: &str = "compact_boundary";
pub(crate) const COMPACT_UNDO: &str = "compact_undo";

/// Context recorded with every entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryOrigin {
    /// The client's session.
    pub session_id: Option<String>,
    /// The agent's working directory.
    pub cwd: Option<String>,
    /// Branch checked out there.
    pub git_branch: Option<String>,
    /// Version of the client.
    pub version: Option<String>,
}

/// A parsed entry.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub(crate) uuid: Uuid,
    pub(crate) parent: Parent,
    /// Milliseconds since the Unix epoch.
    pub(crate) time: Option<i64>,
    pub(crate) origin: EntryOrigin,
    pub(crate) messages: Vec<EntryMessage>,
    pub(crate) is_boundary: bool,
    pub(crate) is_rewind: bool,
    /// Whether it is one of several lines of a compaction, in the format of version 0.1.0.
    pub(crate) old_part: Option<OldPart>,
    pub(crate) truncation: Option<LoggedTruncation>,
    pub(crate) previous_leaf: Option<Uuid>,
}

/// A message of an entry.
#[derive(Clone, Debug)]
pub(crate) struct EntryMessage {
    pub(crate) uuid: Uuid,
    pub(crate) copy_of: Option<Uuid>,
    pub(crate) is_summary: bool,
    /// `None` for a copy that is the same as the original.
    pub(crate) message: Option<(Arc<RawValue>, Outline)>,
}

/// The role of an entry in a compaction of several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldPart {
    Head { following: u32 },
    Message,
}

/// The `parentUuid` of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// `null`: starts a conversation.
    Root,
    /// An entry id.
    Id(Uuid),
    /// The key is missing.
    Absent,
}

/// An entry as stored.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogLine<'a> {
    pub(crate) uuid: Uuid,
    #[serde(default, deserialize_with = "present")]
    pub(crate) parent_uuid: Option<Option<Uuid>>,
    pub(crate) session_id: Option<String>,
    pub(crate) timestamp: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) subtype: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) git_branch: Option<String>,
    pub(crate) version: Option<String>,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(default, skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool: Vec<ToolCall>,
    #[serde(default, skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_result: Vec<ToolResult>,
    #[serde(default, skip_serializing)]
    is_compact_summary: bool,
    pub(crate) compact_metadata: Option<CompactMetadata>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) messages: Vec<MessageLine<'a>>,
    #[serde(rename = "masks")]
    pub(crate) truncation: Option<LoggedTruncation>,
    pub(crate) previous_leaf: Option<Uuid>,
}

/// A message of a compaction, as stored.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageLine<'a> {
    uuid: Uuid,
    copy_of: Option<Uuid>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_compact_summary: bool,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

/// A tool call of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A tool result of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult {
    pub(crate) tool_use_id: String,
    pub(crate) is_error: bool,
}

/// Compaction data of an entry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CompactMetadata {
    pub(crate) trigger: Option<CompactionTrigger>,
    pub(crate) pre_tokens: Option<u64>,
    pub(crate) post_tokens: Option<u64>,
    pub(crate) fallback_reason: Option<String>,
    /// Id of the original message. Only in the format of version 0.1.0.
    #[serde(skip_serializing)]
    pub(crate) copy_of: Option<Uuid>,
    /// Number of lines of the compaction after this one. Only in the format of version 0.1.0.
    #[serde(skip_serializing)]
    pub(crate) following: u32,
}

/// Distinguishes `null` from a missing key.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<Uuid>>, D::Error> {
    Option::deserialize(value).map(Some)
}

impl<'a> LogLine<'a> {
    /// Creates an entry without a message.
    pub(crate) fn system(
        parent: Option<Uuid>,
        time: i64,
        origin: &EntryOrigin,
        subtype: &str,
    ) -> Self {
        Self {
            uuid: Uuid::new_v4(),
            parent_uuid: Some(parent),
            session_id: origin.session_id.clone(),
            timestamp: Some(to_iso(time)),
            kind: "system".to_owned(),
            subtype: Some(subtype.to_owned()),
            cwd: origin.cwd.clone(),
            git_branch: origin.git_branch.clone(),
            version: origin.version.clone(),
            message: None,
            tool: Vec::new(),
            tool_result: Vec::new(),
            is_compact_summary: false,
            compact_metadata: None,
            messages: Vec::new(),
            truncation: None,
            previous_leaf: None,
        }
    }

    /// Creates an entry with a message. Returns `None` if it is not an object.
    pub(crate) fn message(
        parent: Option<Uuid>,
        time: i64,
        origin: &EntryOrigin,
        raw: &'a RawValue,
    ) -> Option<Self> {
        let message = Message::scan(raw.get())?;
        let mut line = Self::system(parent, time, origin, "");
        line.subtype = None;
        line.kind = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Other => "system",
        }
        .to_owned();
        for block in message.blocks() {
            match block.kind {
                BlockKind::ToolUse => line.tool.extend(tool_call(&message, block)),
                BlockKind::ToolResult => line.tool_result.extend(tool_result(&message, block)),
                BlockKind::Text
                | BlockKind::ServerToolUse
                | BlockKind::ServerToolResult
                | BlockKind::Image
                | BlockKind::Other => {}
            }
        }
        line.message = Some(raw);
        Some(line)
    }

    /// Appends the line to `text`.
    ///
    /// # Errors
    /// `tooLarge`.
    pub(crate) fn write(&self, text: &mut Vec<u8>) -> Result<(), Error> {
        let start = text.len();
        serde_json::to_writer(&mut *text, self).map_err(failed("write", "a log entry"))?;
        if text.len() - start >= MAX_ENTRY_BYTES {
            return Err(Error::Failed(
                ErrorKind::TooLarge,
                format!(
                    "a message exceeds the limit of {MAX_ENTRY_BYTES} bytes; split it into several messages"
                ),
            ));
        }
        // Line breaks in JSON occur only between tokens.
        for byte in text.iter_mut().skip(start) {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        text.push(b'\n');
        Ok(())
    }
}

impl<'a> MessageLine<'a> {
    /// Creates a summary, or a copy of a message. Returns `None` if it is not an object.
    pub(crate) fn new(copy_of: Option<Uuid>, message: &'a RawValue) -> Option<Self> {
        Outline::scan(message)?;
        Some(Self {
            uuid: Uuid::new_v4(),
            copy_of,
            is_compact_summary: copy_of.is_none(),
            message: Some(message),
        })
    }

    /// Creates a copy that is the same as the original.
    pub(crate) fn same_as(original: Uuid) -> Self {
        Self {
            uuid: Uuid::new_v4(),
            copy_of: Some(original),
            is_compact_summary: false,
            message: None,
        }
    }

    fn read(self) -> Option<EntryMessage> {
        let message = match self.message {
            Some(raw) => Some((Arc::from(raw.to_owned()), Outline::scan(raw)?)),
            None => None,
        };
        Some(EntryMessage {
            uuid: self.uuid,
            copy_of: self.copy_of,
            is_summary: self.is_compact_summary,
            message,
        })
    }
}

impl LogEntry {
    /// Parses a line. Returns `None` if it is not a valid entry.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let line: LogLine<'_> = serde_json::from_slice(line).ok()?;
        let compaction = line.compact_metadata.unwrap_or_default();
        let is_compacted = line.is_compact_summary || compaction.copy_of.is_some();
        let own = line.message.map(|message| MessageLine {
            uuid: line.uuid,
            copy_of: compaction.copy_of,
            is_compact_summary: line.is_compact_summary,
            message: Some(message),
        });
        let old_part = match (&own, compaction.following) {
            (Some(_), _) if is_compacted => Some(OldPart::Message),
            (Some(_), _) | (None, 0) => None,
            (None, following) => Some(OldPart::Head { following }),
        };
        let messages = own.into_iter().chain(line.messages);
        Some(Self {
            uuid: line.uuid,
            parent: match line.parent_uuid {
                None => Parent::Absent,
                Some(None) => Parent::Root,
                Some(Some(parent)) => Parent::Id(parent),
            },
            time: line.timestamp.as_deref().and_then(from_iso),
            origin: EntryOrigin {
                session_id: line.session_id,
                cwd: line.cwd,
                git_branch: line.git_branch,
                version: line.version,
            },
            messages: messages.map(MessageLine::read).collect::<Option<_>>()?,
            is_rewind: matches!(line.subtype.as_deref(), Some(REWIND | REWIND_UNDO)),
            is_boundary: line.subtype.as_deref() == Some(COMPACT_BOUNDARY),
            old_part,
            truncation: line.truncation,
            previous_leaf: line.previous_leaf,
        })
    }
}

/// Reads a tool call.
pub(crate) fn tool_call(message: &Message<'_>, block: &Block) -> Option<ToolCall> {
    let mut call = ToolCall {
        id: message.id(block)?.into_owned(),
        name: String::new(),
    };
    let text = message.slice(&block.range);
    let mut cursor = Cursor::new(text);
    cursor.enter(b'{');
    while let Some(key) = cursor.next_member() {
        let is_string = cursor.peek() == Some(b'"');
        let value = cursor.skip_value();
        if is_string && string_equals(key, "name") {
            call.name = decode(text.get(value).unwrap_or_default()).into_owned();
        }
    }
    Some(call)
}

/// Reads a block of type `tool_result`.
pub(crate) fn tool_result(message: &Message<'_>, block: &Block) -> Option<ToolResult> {
    let mut result = ToolResult {
        tool_use_id: message.id(block)?.into_owned(),
        is_error: false,
    };
    let text = message.slice(&block.range);
    let mut cursor = Cursor::new(text);
    cursor.enter(b'{');
    while let Some(key) = cursor.next_member() {
        let value = cursor.skip_value();
        if string_equals(key, "is_error") {
            result.is_error = text.get(value) == Some("true");
        }
    }
    Some(result)
}

/// Formats a time as ISO 8601 in UTC with milliseconds.
pub(crate) fn to_iso(millis: i64) -> String {
    let min = Timestamp::MIN.as_second() * 1000;
    let max = Timestamp::MAX.as_second() * 1000;
    let time = Timestamp::from_millisecond(millis.clamp(min, max)).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn from_iso(text: &str) -> Option<i64> {
    let time: Timestamp = text.parse().ok()?;
    // Round down to the millisecond, also before the epoch.
    i64::try_from(time.as_nanosecond().div_euclid(1_000_000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_message_is_written_byte_for_byte_on_one_line() {
        let text = r#"{ "role":"assistant","z":1.0,"content":[
            {"type":"tool_use","id":"t\u0031","name":"read","input":{"name":"no"}},
            {"type":"tool_result","tool_use_id":"t0","is_error":true,"content":"a\nb"}
        ] }"#;
        let text = &text.replace('\n', "\r\n");
        let message = raw(text);
        let origin = EntryOrigin {
            cwd: Some("/p".to_owned()),
            ..EntryOrigin::default()
        };
        let line = LogLine::message(None, 1_234, &origin, &message).unwrap();
        let mut written = Vec::new();
        line.write(&mut written).unwrap();
        let expected = format!(
            r#"{{"uuid":"{}","parentUuid":null,"timestamp":"1970-01-01T00:00:01.234Z","type":"assistant","cwd":"/p","message":{},"tool":[{{"id":"t1","name":"read"}}],"toolResult":[{{"toolUseId":"t0","isError":true}}]}}"#,
            line.uuid,
            text.replace(['\r', '\n'], " ")
        );
        assert_eq!(String::from_utf8(written.clone()).unwrap(), expected + "\n");
        let entry = LogEntry::read(&written).unwrap();
        let [message] = entry.messages.try_into().unwrap();
        assert_eq!(
            message.message.unwrap().0.get(),
            text.replace(['\r', '\n'], " ")
        );
        assert_eq!((entry.parent, entry.time), (Parent::Root, Some(1_234)));
        assert_eq!(entry.origin, origin);
        assert!(LogLine::message(None, 0, &origin, &raw("[]")).is_none());
    }

    #[test]
    fn invalid_entries_are_rejected() {
        let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        let read = |rest: &str| {
            LogEntry::read(format!(r#"{{"uuid":"{uuid}","type":"user"{rest}}}"#).as_bytes())
        };
        assert_eq!(read("").unwrap().parent, Parent::Absent);
        assert!(read(r#","message":{"role":"user"},"new":[1]"#).is_some());
        assert!(read(r#","compactMetadata":{"new":1},"timestamp":"no"}"#).is_none());
        assert!(read(r#","timestamp":"no""#).unwrap().time.is_none());
        let of_copy = format!(r#","compactMetadata":{{"copyOf":"{uuid}"}}"#);
        assert_eq!(read(&of_copy).unwrap().old_part, None);
        let copied = read(&(of_copy + r#","message":{}"#)).unwrap();
        assert_eq!(copied.old_part, Some(OldPart::Message));
        for bad in [
            r#","message":"x""#,
            r#","messages":[{}]"#,
            r#","messages":[{"uuid":"67e55044-10b1-426f-9247-bb680e5fe0c8","message":5}]"#,
            r#","masks":{"contextHistory":5}"#,
            r#","parentUuid":"x""#,
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
        for bad in ["", "[]", "{}", "null", "\u{0}"] {
            assert!(LogEntry::read(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn times_round_trip() {
        for millis in [0, 1, -1, 1_700_000_000_123, -62_135_596_800_000] {
            assert_eq!(from_iso(&to_iso(millis)), Some(millis), "{millis}");
        }
        assert!(to_iso(i64::MAX).starts_with("9999-"));
        assert!(to_iso(i64::MIN).starts_with("-"));
    }
}
