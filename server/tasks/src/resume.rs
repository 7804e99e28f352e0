//! Resumes an interrupted conversation.
//!
//! Returns the messages that would be sent now, with a result for every tool call, and a text
//! that tells the model how much time has passed and what may have changed. The client decides
//! whether to send the text.

use std::{borrow::Cow, collections::HashSet, fmt::Write};

use serde_json::{json, value::RawValue};
use sightline_base::{
    cancel::Cancel, error::Error, escape::one_line, plural::ago, storage::TaskId,
};
use sightline_protocol::{conversation, settings::ConversationSettings, task::ResumeTaskResult};

use super::{
    Conversation, TaskStore,
    entry::{ToolCall, tool_call},
};
use sightline_conversation::{
    TruncateAction, TruncateRequest, truncate_scanned,
    truncation::{missing_result, without_blocks},
    wire::{BlockKind, Message, Role, to_raw},
};

/// Start of the text.
const HEADING: &str = "[TASK RESUMPTION]";
/// Maximum number of files or tool calls listed, per kind.
const MAX_NAMED: usize = 20;
/// Maximum length of each, in characters.
const MAX_NAME_CHARACTERS: usize = 400;

/// Options of [`TaskStore::resume`].
#[derive(Clone, Debug)]
pub struct ResumeOptions<'a> {
    /// Current time, in milliseconds since the Unix epoch.
    pub now: i64,
    /// The agent's working directory. Defaults to the last recorded one.
    pub cwd: Option<&'a str>,
    /// Files that changed since the agent last read them. The caller has checked access.
    pub changed: &'a [String],
    /// Files that the agent read and that were deleted. The caller has checked access.
    pub deleted: &'a [String],
    /// Whether to decide as Cline, and the texts that replace removed or missing content.
    pub settings: &'a ConversationSettings,
}

impl TaskStore {
    /// Returns the messages and the text to continue a task with.
    ///
    /// # Errors
    /// `notFound`, `cancelled`, kind `storage`.
    pub fn resume(
        &self,
        task: &TaskId,
        options: &ResumeOptions<'_>,
        cancel: &Cancel,
    ) -> Result<ResumeTaskResult, Error> {
        let conversation = self.load(task, cancel)?;
        let interrupted = unanswered_calls(&conversation, cancel)?;
        let messages = messages_to_send(&conversation, options, cancel)?;
        Ok(ResumeTaskResult {
            task_id: task.as_str().to_owned(),
            messages: messages.into_iter().map(conversation::Message).collect(),
            resumption: resumption_text(&conversation, options, &interrupted),
            interrupted_tools: interrupted.into_iter().map(|call| call.id).collect(),
        })
    }
}

fn messages_to_send(
    conversation: &Conversation,
    options: &ResumeOptions<'_>,
    cancel: &Cancel,
) -> Result<Vec<Box<RawValue>>, Error> {
    let messages = conversation.raw_messages();
    let request = TruncateRequest {
        messages: &messages,
        deleted_range: conversation.truncation.deleted_range,
        history: conversation.truncation.history.clone(),
        action: TruncateAction::Apply,
        time: &options.now.into(),
        settings: options.settings,
    };
    let outcome = truncate_scanned(request, &conversation.outlines(), cancel)?;
    let mut sent: Vec<Box<RawValue>> = outcome
        .messages(&messages)
        .into_iter()
        .map(ToOwned::to_owned)
        .collect();
    // Calls are answered by the next message; the last message has none.
    let calls = sent.last().map(|last| tool_calls(last)).unwrap_or_default();
    if !calls.is_empty() {
        sent.push(missing_results(
            &calls,
            missing_result(&options.settings.notices),
        )?);
    } else {
        remove_open_server_calls(&mut sent)?;
    }
    Ok(sent)
}

/// Removes calls of server tools without a result from the messages at the end, because a message of the user follows.
fn remove_open_server_calls(messages: &mut Vec<Box<RawValue>>) -> Result<(), Error> {
    let raw: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
    let open = open_server_calls(&raw);
    for index in (0..messages.len()).rev() {
        let is_open = |block: usize| open.iter().any(|call| call.is_at(index, block));
        let Some(message) = Message::scan(messages[index].get()) else {
            break;
        };
        let count = message.blocks().len();
        if !(0..count).any(is_open) {
            continue;
        }
        if (0..count).all(is_open) {
            messages.remove(index);
        } else {
            messages[index] = without_blocks(&message, is_open)?;
        }
    }
    Ok(())
}

/// A call of a server tool without a result.
struct OpenServerCall {
    /// Index of the message.
    message: usize,
    /// Index of its block.
    block: usize,
    call: ToolCall,
}

impl OpenServerCall {
    fn is_at(&self, message: usize, block: usize) -> bool {
        (self.message, self.block) == (message, block)
    }
}

/// Returns the calls of server tools without a result in the assistant messages at the end, up to one that calls other tools:
/// these calls may wait for the result of a call of the client.
fn open_server_calls(messages: &[&RawValue]) -> Vec<OpenServerCall> {
    let mut open = Vec::new();
    let mut answered: HashSet<String> = HashSet::new();
    for (index, raw) in messages.iter().enumerate().rev() {
        let message = Message::scan(raw.get()).filter(|message| message.role == Role::Assistant);
        let Some(message) = message else { break };
        let blocks = message.blocks();
        if blocks.iter().any(|block| block.kind == BlockKind::ToolUse) {
            break;
        }
        // The result comes after its call, also in a later message.
        for (position, block) in blocks.iter().enumerate().rev() {
            let id = message.id(block);
            match block.kind {
                BlockKind::ServerToolResult => {
                    answered.extend(id.map(Cow::into_owned));
                }
                BlockKind::ServerToolUse if id.is_none_or(|id| !answered.contains(&*id)) => {
                    open.extend(tool_call(&message, block).map(|call| OpenServerCall {
                        message: index,
                        block: position,
                        call,
                    }));
                }
                _ => {}
            }
        }
    }
    open.reverse();
    open
}

/// Builds a message with results for the calls.
fn missing_results(calls: &[ToolCall], text: &str) -> Result<Box<RawValue>, Error> {
    let results: Vec<_> = calls
        .iter()
        .map(|call| json!({"type": "tool_result", "tool_use_id": call.id, "content": text}))
        .collect();
    let message = json!({"role": "user", "content": results});
    to_raw(message.to_string())
}

/// Returns the tool calls of an assistant message, without duplicates.
fn tool_calls(raw: &RawValue) -> Vec<ToolCall> {
    let Some(message) = Message::scan(raw.get()).filter(|message| message.role == Role::Assistant)
    else {
        return Vec::new();
    };
    let mut seen = HashSet::new();
    message
        .blocks()
        .iter()
        .filter(|block| block.kind == BlockKind::ToolUse)
        .filter_map(|block| tool_call(&message, block))
        .filter(|call| seen.insert(call.id.clone()))
        .collect()
}

/// Returns the tool calls without a result, in order.
fn unanswered_calls(conversation: &Conversation, cancel: &Cancel) -> Result<Vec<ToolCall>, Error> {
    let mut open: Vec<ToolCall> = Vec::new();
    let mut answered: HashSet<String> = HashSet::new();
    let mut seen: HashSet<String> = HashSet::new();
    for stored in &conversation.messages {
        cancel.check()?;
        let Some(message) = Message::scan(stored.message.get()) else {
            continue;
        };
        let results = message
            .blocks()
            .iter()
            .filter(|block| block.kind == BlockKind::ToolResult);
        answered.extend(results.filter_map(|block| Some(message.id(block)?.into_owned())));
        let calls = tool_calls(&stored.message).into_iter();
        open.extend(calls.filter(|call| seen.insert(call.id.clone())));
    }
    open.retain(|call| !answered.contains(&call.id));
    let raw: Vec<&RawValue> = conversation.raw_messages();
    let calls = open_server_calls(&raw).into_iter();
    open.extend(calls.map(|open| open.call));
    Ok(open)
}

fn resumption_text(
    conversation: &Conversation,
    options: &ResumeOptions<'_>,
    interrupted: &[ToolCall],
) -> String {
    let last = conversation
        .messages
        .last()
        .map_or(conversation.info.updated_at, |last| last.time);
    let mut text = format!(
        "{HEADING} Work on this task stopped {} and now continues. ",
        ago(options.now, last)
    );
    let cwd = options.cwd.or(conversation.info.cwd.as_deref());
    if let Some(cwd) = cwd {
        let _ = write!(text, "The working directory is {}. ", one_line(cwd));
    }
    text += "Files, branches and running programs may differ from what this conversation says: check \
        what matters before you rely on it.";
    append_list(
        &mut text,
        "These files have changed since you last saw them. Read them again before you edit them:",
        options.changed.iter().map(String::as_str),
    );
    append_list(
        &mut text,
        "These files, which you saw earlier, were deleted:",
        options.deleted.iter().map(String::as_str),
    );
    let calls: Vec<String> = interrupted
        .iter()
        .map(|call| match call.name.as_str() {
            "" => call.id.clone(),
            name => format!("{name} ({})", call.id),
        })
        .collect();
    append_list(
        &mut text,
        "These tool calls were interrupted: no result arrived, and their effects are unknown. Treat them \
            as failed, check what they changed, and repeat what is still needed:",
        calls.iter().map(String::as_str),
    );
    text
}

/// Appends a list, unless it is empty.
fn append_list<'a>(text: &mut String, lead: &str, names: impl ExactSizeIterator<Item = &'a str>) {
    let count = names.len();
    if count == 0 {
        return;
    }
    let _ = write!(text, "\n\n{lead}");
    for name in names.take(MAX_NAMED) {
        let shown: String = one_line(name).chars().take(MAX_NAME_CHARACTERS).collect();
        let _ = write!(text, "\n- {shown}");
    }
    if count > MAX_NAMED {
        let _ = write!(text, "\n- and {} more", count - MAX_NAMED);
    }
}
