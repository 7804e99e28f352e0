//! Replaces the older part of a conversation with a summary.
//!
//! [`plan`] decides whether compaction is needed and writes the prompt that the client sends to
//! its own model. [`apply`] replaces the older messages with the summary that the model
//! returned. Without a summary, it leaves the oldest messages out. The module keeps no state
//! between calls; the caller owns the conversation and stores the result.
//!
//! Reading order: `scanned_message` (messages and their parts), `split_point` (where the
//! retained part starts), `activity` and `gather` (files and commands), `key_files` and
//! `activity_list`, `summary` (the resulting message), and `prompt` with `transcript` and `message_filter`.
//!
//! Invariants:
//! - Retained messages stay unchanged byte for byte. No tool call is separated from its result.
//! - Each compaction leaves fewer messages than before. A summary alone is never compacted, nor
//!   is a conversation without new messages since the last compaction. So a client that
//!   compacts whenever it can reaches an end, whatever the length of its summaries.
//! - At least the requested part is retained, unless nothing could be compacted then.
//! - Files are included only while the result stays smaller than the conversation was. A small
//!   conversation gets them anyway if the summary alone already makes it larger, because it is
//!   not compacted to save space.
//! - File names appear only as [`WorkspaceAccess::name`] returns them. Text of messages is not
//!   filtered.
//!
//! Limits on processing are in bytes; limits on what a model reads are in tokens.

mod activity;
mod activity_list;
mod gather;
mod key_files;
mod message_filter;
mod prompt;
mod scanned_message;
mod shorten_text;
mod split_point;
mod summary;
mod transcript;

use serde_json::value::RawValue;
use sightline_base::{cancel::Cancel, error::Error};
use sightline_protocol::{
    compaction::{
        ApplyCompactionParams, ApplyCompactionResult, DEFAULT_MAX_FILES,
        DEFAULT_MAX_LINES_PER_FILE, DEFAULT_RETAIN_RATIO, KeyFile, PlanCompactionParams,
        PlanCompactionResult,
    },
    conversation::Message,
    error::ErrorKind,
};

use crate::{
    ContextWindow,
    tokens::{Calibration, Counter, Family},
    truncation::with_appended_text,
    wire::BlockKind,
};
use activity::Activity;
use key_files::SelectedFile;
use scanned_message::ScannedMessage;
use split_point::SplitPoints;
use summary::{PreviousSummary, SummaryContent};
pub use transcript::readable;

/// Fraction of the window from which compaction is needed.
const NEEDED_FRACTION: f64 = 0.8;
/// Minimum fraction of messages retained without a summary.
const FALLBACK_RATIO: f64 = 0.3;
/// Maximum size of a small conversation, in tokens.
const SMALL_CONVERSATION_TOKENS: u64 = 20_000;

/// A message that would be sent.
#[derive(Clone, Copy, Debug)]
pub struct IndexedMessage<'a> {
    /// Index in the whole conversation.
    pub index: usize,
    /// The message as it would be sent.
    pub message: &'a RawValue,
}

/// A file in the task's tracker records. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackedFile {
    /// Path in the records.
    pub path: String,
    /// When the agent last changed it.
    pub agent_edited_at: Option<i64>,
    /// When the user last changed it.
    pub user_edited_at: Option<i64>,
    /// When the agent last read it.
    pub read_at: Option<i64>,
}

/// The first lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFileText {
    /// Path in results.
    pub path: String,
    /// The first lines.
    pub text: String,
    /// Number of lines of the whole file.
    pub total_lines: u64,
}

/// Reads a file by its result name. Arguments: path, maximum lines, maximum bytes.
pub type ReadFileFn<'a> = dyn Fn(&str, u64, u64) -> Option<KeyFileText> + 'a;

/// Access to the workspace, filtered by access rules.
pub struct WorkspaceAccess<'a> {
    /// Maps a path from a message or record to its name in results. Returns `None` if access is
    /// denied or it is not a file of the workspace.
    pub name: &'a (dyn Fn(&str) -> Option<String> + 'a),
    /// Returns whether a command of the conversation may appear in the activity list.
    pub may_name_command: &'a (dyn Fn(&str) -> bool + 'a),
    /// Reads the first lines of a file. Returns `None` if access is denied, or the file is gone or
    /// not text.
    pub read: &'a ReadFileFn<'a>,
}

/// A conversation to compact, with its model and workspace.
pub struct CompactionInput<'a> {
    /// Messages that would be sent, in order.
    pub items: &'a [IndexedMessage<'a>],
    /// Model family for counting tokens.
    pub family: Family,
    /// The model's context window.
    pub window: ContextWindow,
    /// Token counter.
    pub counter: &'a Counter,
    /// Token usage that the provider reported for the task.
    pub calibration: &'a Calibration,
    /// Files in the task's tracker records.
    pub tracked: &'a [TrackedFile],
    /// Access to the workspace.
    pub workspace: &'a WorkspaceAccess<'a>,
}

/// A compacted conversation.
#[derive(Clone, Debug)]
pub struct CompactedConversation {
    /// Replaces the messages before `retained`: the summary, or the first message with a note.
    /// `None` if nothing was left out.
    pub first: Option<Box<RawValue>>,
    /// Position of the first retained item; 0 if all are retained.
    pub retained: usize,
    /// Its index in the whole conversation.
    pub retain_from: u64,
    /// Tokens before compaction.
    pub pre_tokens: u64,
    /// Tokens after compaction.
    pub post_tokens: u64,
    /// Files included with the summary.
    pub files: Vec<KeyFile>,
    /// Whether there was no summary.
    pub fallback: bool,
    /// Why there was no summary.
    pub fallback_reason: Option<String>,
}

impl CompactedConversation {
    /// Returns the messages of the compacted conversation.
    pub fn messages<'a>(&'a self, items: &[IndexedMessage<'a>]) -> Vec<&'a RawValue> {
        let retained = items.iter().skip(self.retained).map(|item| item.message);
        self.first.as_deref().into_iter().chain(retained).collect()
    }

    /// Converts to the result of the request.
    pub fn into_result(self, items: &[IndexedMessage<'_>]) -> ApplyCompactionResult {
        let messages = self.messages(items).into_iter();
        ApplyCompactionResult {
            messages: messages.map(|raw| Message(raw.to_owned())).collect(),
            pre_tokens: self.pre_tokens,
            post_tokens: self.post_tokens,
            files_included: self.files.into_iter().map(|file| file.path).collect(),
            fallback: self.fallback,
            fallback_reason: self.fallback_reason,
        }
    }
}

/// Decides whether the conversation should be compacted, and writes the prompt for the summary. Of
/// `params`, the caller has used the conversation and the model.
///
/// The prompt is returned whenever something can be compacted, because the user may compact
/// early, even if the prompt exceeds a small window. It is empty if nothing can be compacted.
///
/// # Errors
/// `invalidParams` if a message is not an object, `cancelled`.
pub fn plan(
    conversation: &CompactionInput<'_>,
    params: &PlanCompactionParams,
    cancel: &Cancel,
) -> Result<PlanCompactionResult, Error> {
    let scanned = ScannedConversation::scan(conversation.items, cancel)?;
    let tokens = conversation.all_tokens(cancel)?;
    let split = SplitPoints::find(&scanned.messages, cancel)?
        .for_ratio(params.retain_ratio, DEFAULT_RETAIN_RATIO)
        .unwrap_or(1);
    let mut plan = PlanCompactionResult {
        tokens,
        retain_from: scanned.index_of(split),
        ..PlanCompactionResult::default()
    };
    if scanned.refusal_reason(split).is_some() {
        return Ok(plan);
    }
    let activity = scanned.activity(conversation, cancel)?;
    let (max_files, max_lines) = (params.max_files, params.max_lines_per_file);
    let files = conversation.key_files(&activity, max_files, max_lines, cancel)?;
    let input = prompt::PromptInput {
        messages: &scanned.messages,
        split,
        previous: scanned.previous.as_ref(),
        files: &files,
        activity: &activity,
        instructions: params.instructions.as_deref(),
        filter: params.filter.unwrap_or_default(),
    };
    plan.prompt = prompt::write(&input, conversation, cancel)?;
    plan.needed = tokens as f64 >= conversation.window.size * NEEDED_FRACTION;
    plan.files = files.into_iter().map(|selected| selected.file).collect();
    Ok(plan)
}

/// Replaces the older messages with a summary. Without one, leaves them out, and keeps at least the
/// newest 30 % of the messages. Of `params`, the caller has used the conversation and the model.
///
/// # Errors
/// `invalidParams` if a message is not an object or `retain_from` is out of range, `conflict`
/// if there is nothing to summarize, `cancelled`.
pub fn apply(
    conversation: &CompactionInput<'_>,
    params: &ApplyCompactionParams,
    cancel: &Cancel,
) -> Result<CompactedConversation, Error> {
    let scanned = ScannedConversation::scan(conversation.items, cancel)?;
    let split_points = SplitPoints::find(&scanned.messages, cancel)?;
    let target = scanned.target(params.retain_from)?;
    let pre_tokens = conversation.all_tokens(cancel)?;
    let given = params.summary.as_deref();
    let summary_text = given.filter(|text| !text.trim().is_empty());
    let mut applied = match summary_text {
        Some(text) => {
            let split = match target {
                Some(target) => split_points.at_or_before(target),
                None => split_points.for_ratio(DEFAULT_RETAIN_RATIO, DEFAULT_RETAIN_RATIO),
            };
            let split = split.unwrap_or(1);
            if let Some(refusal) = scanned.refusal_reason(split) {
                return Err(Error::Failed(ErrorKind::Conflict, refusal));
            }
            scanned.with_summary(conversation, text, split, pre_tokens, params, cancel)?
        }
        None => {
            let split = split_points.for_ratio(FALLBACK_RATIO, FALLBACK_RATIO);
            let reason = summary::reason(given, params.error.as_deref());
            scanned.without_summary(split.unwrap_or(1), reason)?
        }
    };
    applied.pre_tokens = pre_tokens;
    applied.post_tokens = conversation.tokens(&applied.messages(conversation.items), cancel)?;
    Ok(applied)
}

impl<'a> CompactionInput<'a> {
    fn messages(&self) -> Vec<&'a RawValue> {
        self.items.iter().map(|item| item.message).collect()
    }

    /// Returns the estimated tokens of all messages.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn all_tokens(&self, cancel: &Cancel) -> Result<u64, Error> {
        self.tokens(&self.messages(), cancel)
    }

    fn tokens(&self, messages: &[&RawValue], cancel: &Cancel) -> Result<u64, Error> {
        let count = self.counter.messages(messages, self.family, cancel)?;
        let calibration = self.calibration.for_family(self.family);
        Ok(calibration.apply(count).tokens)
    }

    fn key_files(
        &self,
        activity: &Activity,
        max_files: u32,
        max_lines: u32,
        cancel: &Cancel,
    ) -> Result<Vec<SelectedFile>, Error> {
        // In a small window, files may take at most a fifth of it, at four bytes per token, so that
        // compaction frees space.
        let share = (self.window.usable.max(0.0) * 0.2 * 4.0) as usize;
        let max = share.min(key_files::MAX_BYTES);
        key_files::choose(activity, self.workspace, max_files, max_lines, max, cancel)
    }

    /// Returns the files with which `after` stays below `before` tokens, most important first.
    fn fit_files(
        &self,
        files: Vec<SelectedFile>,
        before: u64,
        after: impl Fn(&[SelectedFile]) -> Result<u64, Error>,
        cancel: &Cancel,
    ) -> Result<Vec<SelectedFile>, Error> {
        if files.is_empty() {
            return Ok(files);
        }
        let with_all = after(&files)?;
        if with_all < before {
            return Ok(files);
        }
        let without = after(&[])?;
        if without >= before {
            let is_small = before <= SMALL_CONVERSATION_TOKENS;
            return Ok(if is_small { files } else { Vec::new() });
        }
        let blocks: Vec<String> = files.iter().map(SelectedFile::block).collect();
        let counts = self.counter.texts(&blocks, self.family, cancel)?;
        // Convert counted tokens to calibrated tokens.
        let scale = (with_all - without) as f64 / counts.tokens.max(1) as f64;
        let costs = counts.items.iter().map(|cost| *cost as f64 * scale);
        let mut fitting = key_files::fitting(files, costs, (before - without) as f64);
        // Estimates of parts do not add up exactly.
        while !fitting.is_empty() && after(&fitting)? >= before {
            fitting.pop();
        }
        Ok(fitting)
    }
}

/// The scanned messages of a conversation.
struct ScannedConversation<'a> {
    messages: Vec<ScannedMessage<'a>>,
    /// Content of the first message if that is a summary.
    previous: Option<PreviousSummary>,
    /// Messages left out earlier, from the note in the first user message.
    left_out: u64,
}

impl<'a> ScannedConversation<'a> {
    fn scan(items: &[IndexedMessage<'a>], cancel: &Cancel) -> Result<Self, Error> {
        let messages = scanned_message::scan_messages(items, cancel)?;
        let mut previous = messages.first().and_then(summary::parse_summary);
        let first_user = messages.iter().find(|message| message.is_user());
        let note = first_user.and_then(summary::note);
        // After messages were left out, the retained count is outdated.
        if let (Some(previous), Some(_)) = (&mut previous, note) {
            previous.retained = 0;
        }
        Ok(Self {
            messages,
            previous,
            left_out: note.map_or(0, |(_, count)| count),
        })
    }

    /// Returns the index in the whole conversation of a position.
    fn index_of(&self, position: usize) -> u64 {
        let next = || {
            self.messages
                .last()
                .map_or(0, |message| message.index.saturating_add(1))
        };
        let message = self.messages.get(position);
        message.map_or_else(next, |message| message.index) as u64
    }

    /// Returns the number of messages of the whole conversation before a position.
    fn distance(&self, position: usize) -> u64 {
        self.index_of(position).saturating_sub(self.index_of(0))
    }

    /// Converts the index in a request to a position.
    fn target(&self, retain_from: Option<u64>) -> Result<Option<usize>, Error> {
        let Some(index) = retain_from.filter(|index| *index > 0) else {
            return Ok(None);
        };
        let (first, end) = (self.index_of(0), self.index_of(self.messages.len()));
        if index <= first || index > end {
            return Err(Error::invalid(format!(
                "retainFrom {index} is not a message after the first; pass the plan's retainFrom or \
                omit it"
            )));
        }
        let position = self
            .messages
            .iter()
            .position(|message| message.index as u64 >= index);
        Ok(Some(position.unwrap_or(self.messages.len())))
    }

    /// Returns why the messages before `split` cannot be summarized.
    fn refusal_reason(&self, split: usize) -> Option<String> {
        let new = self.distance(self.messages.len()).saturating_sub(1);
        match &self.previous {
            Some(previous) if new <= previous.retained => Some(
                "there are no new messages since the last compaction; compact again when there are, \
                or truncate the conversation"
                    .to_owned(),
            ),
            Some(_) if split < 2 => Some(
                "only the previous summary would be summarized; compact again when there are more \
                messages"
                    .to_owned(),
            ),
            None if split < 2 => Some(
                "only the first message would be summarized; compact when there are more \
                messages"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    fn activity(
        &self,
        conversation: &CompactionInput<'_>,
        cancel: &Cancel,
    ) -> Result<Activity, Error> {
        let CompactionInput {
            tracked, workspace, ..
        } = conversation;
        gather::gather(
            &self.messages,
            self.previous.as_ref(),
            tracked,
            workspace,
            cancel,
        )
    }

    fn with_summary(
        &self,
        conversation: &CompactionInput<'_>,
        text: &str,
        split: usize,
        pre_tokens: u64,
        params: &ApplyCompactionParams,
        cancel: &Cancel,
    ) -> Result<CompactedConversation, Error> {
        let activity = self.activity(conversation, cancel)?;
        let max_files = params.max_files.unwrap_or(DEFAULT_MAX_FILES);
        let max_lines = params
            .max_lines_per_file
            .unwrap_or(DEFAULT_MAX_LINES_PER_FILE);
        let files = conversation.key_files(&activity, max_files, max_lines, cancel)?;
        let (replaced, task) = match &self.previous {
            Some(previous) => (
                previous
                    .messages
                    .saturating_add(self.distance(split).saturating_sub(1)),
                previous.task.clone(),
            ),
            None => {
                let first_user = self.messages[..split]
                    .iter()
                    .find(|message| message.is_user());
                (self.distance(split), first_user.map(summary::task))
            }
        };
        let activity_list = activity_list::text(&activity, activity_list::MAX_BYTES);
        let with = |files: &[SelectedFile]| -> Result<CompactedConversation, Error> {
            let first = summary::message(&SummaryContent {
                messages: replaced.saturating_add(self.left_out),
                retained: (self.messages.len() - split) as u64,
                task: task.as_deref(),
                text: text.trim(),
                activity_list: activity_list.as_deref(),
                files,
            })?;
            Ok(CompactedConversation {
                first: Some(first),
                files: files.iter().map(|selected| selected.file.clone()).collect(),
                ..self.retained_from(split)
            })
        };
        let after = |files: &[SelectedFile]| {
            conversation.tokens(&with(files)?.messages(conversation.items), cancel)
        };
        with(&conversation.fit_files(files, pre_tokens, after, cancel)?)
    }

    fn without_summary(
        &self,
        split: usize,
        reason: String,
    ) -> Result<CompactedConversation, Error> {
        let user = self.messages.iter().position(ScannedMessage::is_user);
        let applied = match user {
            Some(user) if split > 1 && user < split => {
                let message = &self.messages[user];
                let note = summary::note(message);
                let count = self
                    .left_out
                    .saturating_add(self.distance(split).saturating_sub(1));
                let drops = |block: usize| {
                    // A tool result stays only in the first message, where it had no call before.
                    let kind = message.scan.blocks().get(block).map(|block| block.kind);
                    note.is_some_and(|(own, _)| own == block)
                        || (user > 0 && kind == Some(BlockKind::ToolResult))
                };
                let text = summary::note_text(count, &reason);
                CompactedConversation {
                    first: Some(with_appended_text(&message.scan, drops, &text)?),
                    ..self.retained_from(split)
                }
            }
            _ => self.retained_from(0),
        };
        Ok(CompactedConversation {
            fallback: true,
            fallback_reason: Some(reason),
            ..applied
        })
    }

    /// Retains the messages from a position on.
    fn retained_from(&self, position: usize) -> CompactedConversation {
        CompactedConversation {
            first: None,
            retained: position,
            retain_from: self.index_of(position),
            pre_tokens: 0,
            post_tokens: 0,
            files: Vec::new(),
            fallback: false,
            fallback_reason: None,
        }
    }
}
