//! Pairs tool calls with their results. Providers reject a call without a result and a result
//! without a call.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::wire::{Block, BlockKind, Content, Message, Role};

/// A part of the content to send.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ContentPart<'a> {
    /// The message's own block with this index.
    Block(usize),
    /// The original content, which is not a list of blocks.
    WholeContent,
    /// A placeholder result for a call that has none.
    MissingResult(Cow<'a, str>),
    /// The truncation notice.
    Notice,
}

/// Removes all tool results from the first message after the deleted range, because their calls
/// are left out. Returns `None` if nothing changes.
pub(super) fn without_tool_results<'a>(message: &Message<'_>) -> Option<Vec<ContentPart<'a>>> {
    let is_result = |block: &Block| block.kind == BlockKind::ToolResult;
    if message.role != Role::User || !message.blocks().iter().any(is_result) {
        return None;
    }
    let kept = message
        .blocks()
        .iter()
        .enumerate()
        .filter(|(_, block)| !is_result(block));
    Some(kept.map(|(index, _)| ContentPart::Block(index)).collect())
}

/// Returns the blocks of server tools, by message and block, whose other half is not sent: calls
/// whose result is left out, and results whose call is. Both can stand in different messages if
/// the provider paused the turn. Halves without a counterpart in the whole conversation are not
/// returned.
pub(super) fn separated_server_tools(
    messages: &[Message<'_>],
    is_sent: impl Fn(usize) -> bool,
) -> HashSet<(usize, usize)> {
    let mut calls = HashMap::new();
    let mut separated = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        for (position, block) in message.blocks().iter().enumerate() {
            let place = (index, position);
            match block.kind {
                BlockKind::ServerToolUse => {
                    if let Some(id) = message.id(block) {
                        calls.insert(id, place);
                    }
                }
                BlockKind::ServerToolResult => {
                    let call = message.id(block).and_then(|id| calls.remove(&id));
                    if let Some(call) = call.filter(|call| is_sent(call.0) != is_sent(index)) {
                        separated.extend([call, place]);
                    }
                }
                _ => {}
            }
        }
    }
    separated
}

/// Orders the content of `next` after `previous`: the results of its calls first, in call
/// order, then all other parts. `parts` is the content so far; `None`, also as return value, is
/// the original content.
pub(super) fn pair_results<'a>(
    previous: &Message<'a>,
    next: &Message<'a>,
    parts: Option<Vec<ContentPart<'a>>>,
) -> Option<Vec<ContentPart<'a>>> {
    let calls = tool_call_ids(previous);
    if calls.is_empty() || next.role != Role::User {
        return parts;
    }
    let blocks = match &parts {
        Some(parts) => parts.clone(),
        None => original_parts(next),
    };
    let result_of = |part: &ContentPart<'_>| match part {
        ContentPart::Block(index) => {
            let block = next.blocks().get(*index)?;
            (block.kind == BlockKind::ToolResult).then(|| next.id(block))?
        }
        _ => None,
    };
    let mut results = HashMap::new();
    let mut others = Vec::new();
    let mut in_order = 0;
    for (index, part) in blocks.into_iter().enumerate() {
        match result_of(&part) {
            None => others.push(part),
            Some(id) => {
                in_order += usize::from(in_order == index && calls.get(index) == Some(&id));
                results.insert(id, part);
            }
        }
    }
    // Every call already has its result in the right position.
    if in_order == calls.len() && results.len() == calls.len() {
        return parts;
    }
    let results = calls.into_iter().map(|id| {
        results
            .remove(&id)
            .unwrap_or(ContentPart::MissingResult(id))
    });
    Some(results.chain(others).collect())
}

/// Returns the ids of the tools a message calls, without duplicates.
fn tool_call_ids<'a>(message: &Message<'a>) -> Vec<Cow<'a, str>> {
    if message.role != Role::Assistant {
        return Vec::new();
    }
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for block in message.blocks() {
        if block.kind != BlockKind::ToolUse {
            continue;
        }
        if let Some(id) = message.id(block)
            && seen.insert(id.clone())
        {
            ids.push(id);
        }
    }
    ids
}

/// Returns the original content as parts.
pub(super) fn original_parts<'a>(message: &Message<'_>) -> Vec<ContentPart<'a>> {
    match &message.content {
        Content::Blocks { blocks, .. } => (0..blocks.len()).map(ContentPart::Block).collect(),
        Content::Text(index) if index.len() > 2 => vec![ContentPart::WholeContent],
        Content::Other(index) if message.slice(index).starts_with('{') => {
            vec![ContentPart::WholeContent]
        }
        Content::Empty(_) | Content::Text(_) | Content::Other(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"type":"tool_use","id":"t","name":"x","input":{}}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"t","content":"y"}"#;

    fn message_with(role: &str, content: &str) -> String {
        format!(r#"{{"role":"{role}","content":{content}}}"#)
    }

    fn pair(previous: &str, next: &str) -> Option<Vec<ContentPart<'static>>> {
        let previous = Message::scan(previous).unwrap();
        let parts = pair_results(&previous, &Message::scan(next).unwrap(), None)?;
        let owned = |part| match part {
            ContentPart::MissingResult(id) => {
                ContentPart::MissingResult(Cow::Owned(id.into_owned()))
            }
            ContentPart::Block(index) => ContentPart::Block(index),
            ContentPart::WholeContent => ContentPart::WholeContent,
            ContentPart::Notice => ContentPart::Notice,
        };
        Some(parts.into_iter().map(owned).collect())
    }

    #[test]
    fn a_duplicate_call_id_has_one_result() {
        let twice = message_with("assistant", &format!("[{CALL},{CALL}]"));
        assert_eq!(
            pair(&twice, &message_with("user", &format!("[{RESULT}]"))),
            None
        );
        let missing = || ContentPart::MissingResult("t".into());
        assert_eq!(
            pair(&twice, &message_with("user", "[]")),
            Some(vec![missing()])
        );
        // An empty text is not a block.
        assert_eq!(
            pair(&twice, &message_with("user", r#""""#)),
            Some(vec![missing()])
        );
        let expected = Some(vec![missing(), ContentPart::WholeContent]);
        assert_eq!(pair(&twice, &message_with("user", r#""x""#)), expected);
    }

    #[test]
    fn only_assistants_call_and_only_users_have_results() {
        let (calls, results) = (format!("[{CALL}]"), format!("[{RESULT}]"));
        assert_eq!(
            pair(&message_with("user", &calls), &message_with("user", "[]")),
            None
        );
        let without = |role: &str| {
            let message = message_with(role, &results);
            without_tool_results(&Message::scan(&message).unwrap()).map(|parts| parts.len())
        };
        assert_eq!((without("user"), without("assistant")), (Some(0), None));
    }
}
