//! Builds the messages to send: applies the deleted range and the edits, and pairs tool calls
//! with results. Everything else is copied byte for byte.

use std::{collections::HashMap, ops::Range};

use serde_json::value::RawValue;
use sightline_base::{cancel::Cancel, error::Error};
use sightline_protocol::settings::{ConversationProfile as Profile, NoticeSettings};

use crate::wire::{Content, Message, to_raw};

use super::{
    BlockEdit, SentMessage,
    context_history::ContextHistory,
    left_out, missing_result,
    tool_pairs::{
        ContentPart, original_parts, pair_results, separated_server_tools, without_tool_results,
    },
};

/// Builds the messages to send: the first two and those from `start` on.
pub(super) fn build(
    messages: &[Message<'_>],
    start: usize,
    history: &ContextHistory,
    profile: Profile,
    notices: &NoticeSettings,
    cancel: &Cancel,
) -> Result<Vec<SentMessage>, Error> {
    let is_sent = |index: usize| !(2..start).contains(&index);
    let separated = separated_server_tools(messages, is_sent);
    let mut previous: Option<&Message<'_>> = None;
    let mut sent = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if !is_sent(index) {
            continue;
        }
        cancel.check()?;
        let mut parts = None;
        if index == start && start > 2 {
            parts = without_tool_results(message);
        }
        if let Some(previous) = previous {
            parts = pair_results(previous, message, parts);
        }
        let is_separated = |block: usize| separated.contains(&(index, block));
        let is_changed = (0..message.blocks().len()).any(is_separated);
        if is_changed {
            let parts = parts.get_or_insert_with(|| original_parts(message));
            retain_blocks(parts, |block| !is_separated(block));
        }
        // No provider accepts a message without content.
        if let Some(parts) = &mut parts
            && parts.is_empty()
            && (profile == Profile::Default || is_changed)
        {
            parts.push(ContentPart::Notice);
        }
        sent.push(build_sent_message(
            index,
            message,
            history,
            parts.as_deref(),
            notices,
        )?);
        previous = Some(message);
    }
    Ok(sent)
}

fn build_sent_message(
    index: usize,
    message: &Message<'_>,
    history: &ContextHistory,
    parts: Option<&[ContentPart<'_>]>,
    notices: &NoticeSettings,
) -> Result<SentMessage, Error> {
    let mut edits: Vec<BlockEdit> = Vec::new();
    let mut strings: HashMap<usize, (Range<usize>, String)> = HashMap::new();
    let texts = history
        .message(index)
        .into_iter()
        .flat_map(|edits| edits.texts());
    for (block_index, text) in texts {
        let block = message.blocks().get(block_index);
        let Some(string) = block.and_then(|block| block.text.clone()) else {
            continue;
        };
        edits.push(BlockEdit {
            block: block_index,
            text: text.to_owned(),
        });
        strings.insert(block_index, (string, json_string(text)));
    }
    let text = match parts {
        None if edits.is_empty() => return Ok(SentMessage::unchanged(index)),
        None => {
            let whole = 0..message.text.len();
            splice(message, &whole, strings.into_values().collect())
        }
        Some(parts) => rebuild(message, parts, &mut strings, notices),
    };
    Ok(SentMessage {
        index,
        edits,
        repaired: parts.is_some(),
        edited: Some(to_raw(text)?),
    })
}

/// Removes the blocks of a message for which `drops` returns true.
///
/// # Errors
/// `internal` if the JSON cannot be written.
pub fn without_blocks(
    message: &Message<'_>,
    drops: impl Fn(usize) -> bool,
) -> Result<Box<RawValue>, Error> {
    let mut parts = original_parts(message);
    retain_blocks(&mut parts, |block| !drops(block));
    let notices = NoticeSettings::default();
    to_raw(rebuild(message, &parts, &mut HashMap::new(), &notices))
}

fn retain_blocks(parts: &mut Vec<ContentPart<'_>>, is_kept: impl Fn(usize) -> bool) {
    parts.retain(|part| !matches!(part, ContentPart::Block(block) if !is_kept(*block)));
}

/// Appends a text block to a message and removes the blocks for which `drops` returns true.
pub(crate) fn with_appended_text(
    message: &Message<'_>,
    drops: impl Fn(usize) -> bool,
    text: &str,
) -> Result<Box<RawValue>, Error> {
    let mut parts = original_parts(message);
    retain_blocks(&mut parts, |block| !drops(block));
    parts.push(ContentPart::Notice);
    let notices = NoticeSettings {
        truncation: Some(text.to_owned()),
        ..NoticeSettings::default()
    };
    to_raw(rebuild(message, &parts, &mut HashMap::new(), &notices))
}

/// Copies `range` of a message with the given strings replaced.
fn splice(
    message: &Message<'_>,
    range: &Range<usize>,
    mut strings: Vec<(Range<usize>, String)>,
) -> String {
    strings.sort_by_key(|(range, _)| range.start);
    let mut text = String::with_capacity(range.len());
    let mut copied = range.start;
    for (string, new) in strings {
        text.push_str(message.slice(&(copied..string.start)));
        text.push_str(&new);
        copied = string.end;
    }
    text.push_str(message.slice(&(copied..range.end)));
    text
}

/// Replaces the content of a message with a new list of blocks.
fn rebuild(
    message: &Message<'_>,
    parts: &[ContentPart<'_>],
    strings: &mut HashMap<usize, (Range<usize>, String)>,
    notices: &NoticeSettings,
) -> String {
    let blocks: Vec<String> = parts
        .iter()
        .map(|part| match part {
            ContentPart::Block(index) => match message.blocks().get(*index) {
                Some(block) => {
                    let string = strings.remove(index);
                    splice(message, &block.range, string.into_iter().collect())
                }
                None => String::new(),
            },
            ContentPart::WholeContent => whole_content(message),
            ContentPart::MissingResult(id) => format!(
                r#"{{"type":"tool_result","tool_use_id":{},"content":{}}}"#,
                json_string(id),
                json_string(missing_result(notices))
            ),
            ContentPart::Notice => text_block(&json_string(left_out(notices))),
        })
        .collect();
    let content = format!("[{}]", blocks.join(","));
    let range = match &message.content {
        Content::Empty(None) => return with_content(message.text, &content),
        Content::Empty(Some(range)) | Content::Text(range) | Content::Other(range) => range,
        Content::Blocks { range, .. } => range,
    };
    let whole = 0..message.text.len();
    splice(message, &whole, vec![(range.clone(), content)])
}

/// Converts content that is not a list into a block.
fn whole_content(message: &Message<'_>) -> String {
    match &message.content {
        Content::Text(range) => text_block(message.slice(range)),
        Content::Other(range) => message.slice(range).to_owned(),
        Content::Empty(_) | Content::Blocks { .. } => String::new(),
    }
}

fn text_block(string: &str) -> String {
    format!(r#"{{"type":"text","text":{string}}}"#)
}

/// Adds content to a message that has none.
fn with_content(message: &str, content: &str) -> String {
    let members = message.trim_end().strip_suffix('}').unwrap_or(message);
    let comma = if members.trim_end().ends_with('{') {
        ""
    } else {
        ","
    };
    format!(r#"{members}{comma}"content":{content}}}"#)
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
