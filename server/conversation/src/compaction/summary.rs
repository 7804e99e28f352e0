//! Writes and parses the message that replaces compacted messages, and the note that messages
//! were left out.
//!
//! The first text of a summary message starts with [`MARKER`], which contains the counts. Each
//! further text starts with its heading. So a summary is recognized whatever its content.

use serde_json::{Value, json, value::RawValue};
use sightline_base::{error::Error, plural::plural};

use crate::wire::{BlockKind, to_raw};

use super::{
    key_files::SelectedFile,
    scanned_message::{MessagePart, ScannedMessage, string},
    shorten_text,
};

const MARKER: &str = "<compacted_conversation messages=\"";
const MARKER_RETAINED: &str = "\" retained=\"";
const LEFT_OUT: &str = "<left_out_messages count=\"";
const MARKER_END: &str = "\"/>";

const TASK: &str = "# First message of the user, word for word\n\n";
const SUMMARY: &str = "# Summary of what followed\n\n";
const ACTIVITY_LIST: &str = "# What was done, as recorded\n\n";

/// Maximum size of the retained text of the user's first message, in bytes.
const TASK_BYTES: usize = 20_000;
/// Maximum length of the reason for a missing summary, in bytes.
const REASON_BYTES: usize = 300;

/// Content of an earlier summary message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PreviousSummary {
    /// Number of messages it replaces.
    pub(super) messages: u64,
    /// Number of messages retained after it.
    pub(super) retained: u64,
    pub(super) task: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) activity_list: Option<String>,
}

/// Content of a new summary message.
pub(super) struct SummaryContent<'a> {
    pub(super) messages: u64,
    pub(super) retained: u64,
    pub(super) task: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) activity_list: Option<&'a str>,
    pub(super) files: &'a [SelectedFile],
}

/// Parses a message if it is a summary written by [`message`].
pub(super) fn parse_summary(message: &ScannedMessage<'_>) -> Option<PreviousSummary> {
    if !message.is_user() {
        return None;
    }
    let parts = message.parts();
    let mut texts = parts.iter().map_while(|part| match part {
        MessagePart::Text(json) => string(json),
        _ => None,
    });
    let first = texts.next()?;
    let (messages, rest) = number(first.strip_prefix(MARKER)?)?;
    let (retained, rest) = number(rest.strip_prefix(MARKER_RETAINED)?)?;
    rest.strip_prefix(MARKER_END)?;
    let mut previous = PreviousSummary {
        messages,
        retained,
        ..PreviousSummary::default()
    };
    for text in texts {
        for (heading, place) in [
            (TASK, &mut previous.task),
            (SUMMARY, &mut previous.summary),
            (ACTIVITY_LIST, &mut previous.activity_list),
        ] {
            if let Some(text) = text.strip_prefix(heading)
                && place.is_none()
            {
                *place = Some(text.to_owned());
            }
        }
    }
    // Any text can contain the marker; only the summary heading proves the format.
    previous.summary.is_some().then_some(previous)
}

/// Parses the number at the start of a text. Returns it with the rest.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Returns the text of the user's first message for the summary.
pub(super) fn task(message: &ScannedMessage<'_>) -> String {
    let own = note(message).map(|(block, _)| block);
    let mut task = String::new();
    let mut others = 0_usize;
    for (block, part) in message.parts().iter().enumerate() {
        match part {
            MessagePart::Text(_) if own == Some(block) => {}
            MessagePart::Text(json) => {
                if !task.is_empty() {
                    task.push_str("\n\n");
                }
                task.push_str(&string(json).unwrap_or_default());
            }
            _ => others += 1,
        }
    }
    let mut task = shorten_text::keep_start(&task, TASK_BYTES).into_owned();
    if others > 0 {
        let parts = plural(others, "part");
        task.push_str(&format!("\n[left out here: {parts} without text]"));
    }
    task
}

/// Formats the summary message.
///
/// # Errors
/// `internal` if the JSON cannot be written.
pub(super) fn message(summary: &SummaryContent<'_>) -> Result<Box<RawValue>, Error> {
    let SummaryContent {
        messages, retained, ..
    } = summary;
    let replaced = plural(*messages, "message");
    let mut texts = vec![format!(
        "{MARKER}{messages}{MARKER_RETAINED}{retained}{MARKER_END}\n\
        This message replaces {replaced} that no longer fit into the context window. It contains \
        the start of the conversation, a summary, a list of what was done, and current file \
        contents. The newest messages follow unchanged. Continue where they end. Do not repeat \
        work that is done, and read a file again before you rely on an older copy of it."
    )];
    texts.extend(summary.task.map(|task| format!("{TASK}{task}")));
    texts.push(format!("{SUMMARY}{}", summary.text));
    texts.extend(
        summary
            .activity_list
            .map(|activity_list| format!("{ACTIVITY_LIST}{activity_list}")),
    );
    texts.extend(summary.files.iter().map(SelectedFile::block));
    let blocks: Vec<Value> = texts
        .into_iter()
        .map(|text| json!({"type": "text", "text": text}))
        .collect();
    let message = json!({"role": "user", "content": blocks}).to_string();
    to_raw(message)
}

/// Returns the block of the note that messages are left out, and the count in it.
pub(super) fn note(message: &ScannedMessage<'_>) -> Option<(usize, u64)> {
    let (place, block) = message.scan.blocks().iter().enumerate().next_back()?;
    if block.kind != BlockKind::Text {
        return None;
    }
    let text = string(message.scan.string(block)?)?;
    let (count, rest) = number(text.strip_prefix(LEFT_OUT)?)?;
    rest.starts_with(MARKER_END).then_some((place, count))
}

/// Formats the note that messages are left out.
pub(super) fn note_text(count: u64, reason: &str) -> String {
    let messages = plural(count, "message");
    format!(
        "{LEFT_OUT}{count}{MARKER_END}\n\
        [{messages} left out here without a summary, to make room: {reason}. The newest messages \
        follow. Read the files again where you need to know what was done.]"
    )
}

/// Returns the reason for a missing summary, on one line.
pub(super) fn reason(summary: Option<&str>, error: Option<&str>) -> String {
    let reason = error
        .map(str::trim)
        .filter(|error| !error.is_empty())
        .unwrap_or(if summary.is_some() {
            "the summary was empty"
        } else {
            "no summary was given"
        });
    // Truncate first, to bound the cost of escaping.
    let reason = shorten_text::with_ellipsis(reason, REASON_BYTES);
    let reason = sightline_base::escape::one_line(&reason);
    shorten_text::with_ellipsis(&reason, REASON_BYTES).into_owned()
}
