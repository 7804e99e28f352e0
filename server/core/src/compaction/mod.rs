//! Replacing the older part of a conversation by a summary of it.
//!
//! [`plan`] says whether it is time, and writes the prompt the client sends to
//! its own model; [`apply`] puts the summary that came back in place of the
//! messages. When none came back, the oldest messages are left out instead.
//! Nothing is kept between calls and nothing is lost here: the caller has the
//! whole conversation and stores what it likes.
//!
//! Reading order: `turn` (a message as it is looked at here), `retain` (where
//! the part begins that stays), `facts` (what was done), from which come
//! `key_files` and `ledger`; then `summary` (the message that results), and
//! `prompt`, made of `transcript` and `filter`. `shorten` cuts texts.
//!
//! Invariants:
//! - Messages that stay do so byte for byte; no tool call among them is without
//!   the result it had, and no result without its call.
//! - Each compaction leaves fewer messages than there were, and none is made of
//!   a summary alone or before anything came after the last one. So a client
//!   that compacts whenever it may comes to an end, however long its summaries.
//! - No less stays than was asked for, except where nothing could be compacted.
//! - Files go with a summary only as far as the result stays smaller than the
//!   conversation was. A small one gets them anyway where the summary alone makes
//!   it larger: room is not why it is compacted.
//! - Names of files come out only as [`Workspace::name`] gives them. What
//!   messages themselves say is not judged.
//!
//! Bounds are in bytes where the work is ours to bound, in tokens where a model
//! has to read the result.

mod activity;
mod activity_list;
mod key_files;
mod message_filter;
mod prompt;
mod scanned_message;
mod split_point;
mod summary;
mod transcript;
mod truncate;

use serde_json::value::RawValue;
use sightline_protocol::{
    compaction::{
        ApplyCompactionParams, ApplyCompactionResult, DEFAULT_MAX_FILES,
        DEFAULT_MAX_LINES_PER_FILE, DEFAULT_RETAIN_RATIO, KeyFile, MessageFilter,
        PlanCompactionParams, PlanCompactionResult,
    },
    conversation::Message,
    error::ErrorKind,
};

use crate::{
    cancel::Cancel,
    conversation::{ContextWindow, apply::with_appended_text, message::BlockKind},
    error::Error,
    tokens::{self, Calibration, Counter, Family},
};
use activity::Activity;
use key_files::SelectedFile;
use scanned_message::ScannedMessage;
use split_point::SplitPoints;
use summary::{PreviousSummary, SummaryContent};

/// The fraction of a window from which on compacting is worth it.
const NEEDED_FRACTION: f64 = 0.8;
/// The newest part that stays at least when there is no summary.
const FALLBACK_RATIO: f64 = 0.3;
/// Tokens of a conversation up to which it is small.
const SMALL_CONVERSATION_TOKENS: u64 = 20_000;

/// A message that would be sent now.
#[derive(Clone, Copy, Debug)]
pub struct IndexedMessage<'a> {
    /// Its index in the caller's whole conversation.
    pub index: usize,
    /// The message as it would be sent.
    pub message: &'a RawValue,
}

/// A file the task's records know, with when what happened to it
/// (milliseconds since the Unix epoch).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackedFile {
    /// How the records name it.
    pub path: String,
    /// When the agent last changed it, milliseconds since the Unix epoch.
    pub agent_edited_at: Option<i64>,
    /// When the user last changed it, milliseconds since the Unix epoch.
    pub user_edited_at: Option<i64>,
    /// When the agent last read it, milliseconds since the Unix epoch.
    pub read_at: Option<i64>,
}

/// The beginning of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFileText {
    /// The file, as results name it.
    pub path: String,
    /// Its first lines.
    pub text: String,
    /// Lines of the whole file.
    pub total_lines: u64,
}

/// Reads a file named by [`Workspace::name`]: path, lines and bytes at most.
pub type ReadFileFn<'a> = dyn Fn(&str, u64, u64) -> Option<KeyFileText> + 'a;

/// What may be known of the workspace.
pub struct WorkspaceAccess<'a> {
    /// How results name the file that a message or a record names so; `None`
    /// when it may not be named, or is no file of the workspace.
    pub name: &'a (dyn Fn(&str) -> Option<String> + 'a),
    /// May this command, run in the conversation, be repeated in the list of
    /// what was done?
    pub may_name_command: &'a (dyn Fn(&str) -> bool + 'a),
    /// The beginning of a file; `None` when it may not be read, is gone or is
    /// no text.
    pub read: &'a ReadFileFn<'a>,
}

/// A conversation, and what it is judged by.
pub struct CompactionInput<'a> {
    /// What would be sent now, in order.
    pub items: &'a [IndexedMessage<'a>],
    /// Whose tokens.
    pub family: Family,
    /// The model's window.
    pub window: ContextWindow,
    /// What counts.
    pub counter: &'a Counter,
    /// What the provider reported for the task.
    pub calibration: &'a Calibration,
    /// The files of the task's records.
    pub tracked: &'a [TrackedFile],
    /// Which of them may be seen.
    pub workspace: &'a WorkspaceAccess<'a>,
}

/// How to plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions<'a> {
    /// The newest part that stays at least: a fraction of the messages, 0 to 0.9.
    pub retain_ratio: f64,
    /// Files whose text goes with the summary at most.
    pub max_files: u32,
    /// Lines of each of them at most.
    pub max_lines_per_file: u32,
    /// What the summary should heed, in the user's words.
    pub instructions: Option<&'a str>,
    /// Which messages the prompt shows besides the user's first.
    pub filter: MessageFilter,
}

impl Default for PlanOptions<'_> {
    fn default() -> Self {
        Self {
            retain_ratio: DEFAULT_RETAIN_RATIO,
            max_files: DEFAULT_MAX_FILES,
            max_lines_per_file: DEFAULT_MAX_LINES_PER_FILE,
            instructions: None,
            filter: MessageFilter::default(),
        }
    }
}

impl<'a> PlanOptions<'a> {
    /// What the params ask for.
    pub fn from_params(params: &'a PlanCompactionParams) -> Self {
        Self {
            retain_ratio: params.retain_ratio,
            max_files: params.max_files,
            max_lines_per_file: params.max_lines_per_file,
            instructions: params.instructions.as_deref(),
            filter: params.filter.unwrap_or_default(),
        }
    }
}

/// What to apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyOptions<'a> {
    /// What the model answered; without one, or with an empty one, the newest
    /// 30 % of the messages, or a few more, are kept instead.
    pub summary: Option<&'a str>,
    /// Why there is none.
    pub error: Option<&'a str>,
    /// Index in the whole conversation of the first message that stays for sure;
    /// decided anew when absent, or 0 as planned for an empty conversation.
    /// Without a summary it does not count.
    pub retain_from: Option<u64>,
    /// Files whose text goes with the summary at most.
    pub max_files: u32,
    /// Lines of each of them at most.
    pub max_lines_per_file: u32,
}

impl Default for ApplyOptions<'_> {
    fn default() -> Self {
        Self {
            summary: None,
            error: None,
            retain_from: None,
            max_files: DEFAULT_MAX_FILES,
            max_lines_per_file: DEFAULT_MAX_LINES_PER_FILE,
        }
    }
}

impl<'a> ApplyOptions<'a> {
    /// What the params ask for.
    pub fn from_params(params: &'a ApplyCompactionParams) -> Self {
        let default = Self::default();
        let lines = params.max_lines_per_file;
        Self {
            summary: params.summary.as_deref(),
            error: params.error.as_deref(),
            retain_from: params.retain_from,
            max_files: params.max_files.unwrap_or(default.max_files),
            max_lines_per_file: lines.unwrap_or(default.max_lines_per_file),
        }
    }
}

/// A compacted conversation.
#[derive(Clone, Debug)]
pub struct CompactedConversation {
    /// What stands for the messages before `retained`: the summary, or the
    /// first message with a note. `None` when nothing was left out.
    pub first: Option<Box<RawValue>>,
    /// The first of the caller's items that stays; 0 when all do.
    pub retained: usize,
    /// Its index in the whole conversation.
    pub retain_from: u64,
    /// Tokens of the conversation before.
    pub pre_tokens: u64,
    /// Tokens of the conversation from now on.
    pub post_tokens: u64,
    /// The files whose text goes with the summary.
    pub files: Vec<KeyFile>,
    /// Was there no summary?
    pub fallback: bool,
    /// Why there was none.
    pub fallback_reason: Option<String>,
}

impl CompactedConversation {
    /// The conversation from now on.
    pub fn messages<'a>(&'a self, items: &[IndexedMessage<'a>]) -> Vec<&'a RawValue> {
        let kept = items.iter().skip(self.retained).map(|item| item.message);
        self.first.as_deref().into_iter().chain(kept).collect()
    }

    /// The answer about `items`.
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

/// Says whether the conversation should be compacted, and what to send to a
/// model for it. The prompt is there whenever something can be compacted, for
/// the user may want it early, even when the model's window is too small for
/// it; when nothing can, it is empty.
///
/// # Errors
/// `invalidParams` when a message is no object, `cancelled`.
pub fn plan(
    conversation: &CompactionInput<'_>,
    options: &PlanOptions<'_>,
    cancel: &Cancel,
) -> Result<PlanCompactionResult, Error> {
    let looked = ScannedConversation::at(conversation.items, cancel)?;
    let messages: Vec<&RawValue> = conversation.items.iter().map(|item| item.message).collect();
    let tokens = conversation.tokens(&messages, cancel)?;
    let kept = SplitPoints::of(&looked.turns, cancel)?
        .for_ratio(options.retain_ratio, DEFAULT_RETAIN_RATIO)
        .unwrap_or(1);
    let mut plan = PlanCompactionResult {
        tokens,
        retain_from: looked.index_of(kept),
        ..PlanCompactionResult::default()
    };
    if looked.refusal(kept).is_some() {
        return Ok(plan);
    }
    let facts = looked.facts(conversation, cancel)?;
    let (max_files, max_lines) = (options.max_files, options.max_lines_per_file);
    let files = conversation.key_files(&facts, max_files, max_lines, cancel)?;
    let material = prompt::PromptInput {
        turns: &looked.turns,
        kept,
        previous: looked.previous.as_ref(),
        files: &files,
        facts: &facts,
        instructions: options.instructions,
        filter: &options.filter,
    };
    plan.prompt = prompt::write(&material, conversation, cancel)?;
    plan.needed = tokens as f64 >= conversation.window.size * NEEDED_FRACTION;
    plan.files = files.into_iter().map(|chosen| chosen.file).collect();
    Ok(plan)
}

/// Puts a summary in place of the older messages; without one, leaves older
/// messages out.
///
/// # Errors
/// `invalidParams` when a message is no object or `retain_from` is out of
/// range, `conflict` when there is nothing to put a summary in place of,
/// `cancelled`.
pub fn apply(
    conversation: &CompactionInput<'_>,
    options: &ApplyOptions<'_>,
    cancel: &Cancel,
) -> Result<CompactedConversation, Error> {
    let looked = ScannedConversation::at(conversation.items, cancel)?;
    let places = SplitPoints::of(&looked.turns, cancel)?;
    let target = looked.target(options.retain_from)?;
    let before: Vec<&RawValue> = conversation.items.iter().map(|item| item.message).collect();
    let pre_tokens = conversation.tokens(&before, cancel)?;
    let given = options.summary.filter(|text| !text.trim().is_empty());
    let mut applied = match given {
        Some(text) => {
            let kept = match target {
                Some(target) => places.near(target),
                None => places.for_ratio(DEFAULT_RETAIN_RATIO, DEFAULT_RETAIN_RATIO),
            };
            let kept = kept.unwrap_or(1);
            if let Some(refusal) = looked.refusal(kept) {
                return Err(Error::new(ErrorKind::Conflict, refusal));
            }
            looked.with_summary(conversation, text, kept, pre_tokens, options, cancel)?
        }
        None => {
            let kept = places.for_ratio(FALLBACK_RATIO, FALLBACK_RATIO);
            let reason = summary::reason(options.summary, options.error);
            looked.without_summary(kept.unwrap_or(1), reason)?
        }
    };
    applied.pre_tokens = pre_tokens;
    applied.post_tokens = conversation.tokens(&applied.messages(conversation.items), cancel)?;
    Ok(applied)
}

impl CompactionInput<'_> {
    fn tokens(&self, messages: &[&RawValue], cancel: &Cancel) -> Result<u64, Error> {
        let counts: tokens::Counts = self.counter.messages(messages, self.family, cancel)?;
        let calibration = self.calibration.for_family(self.family);
        Ok(calibration.apply(counts.total).tokens)
    }

    fn key_files(
        &self,
        facts: &Activity,
        max_files: u32,
        max_lines: u32,
        cancel: &Cancel,
    ) -> Result<Vec<SelectedFile>, Error> {
        // With a small window, files must not fill what was just made free:
        // a fifth of it, four bytes a token.
        let max = (self.window.usable.max(0.0) * 0.2 * 4.0) as usize;
        let max = max.min(key_files::MAX_BYTES);
        key_files::choose(facts, self.workspace, max_files, max_lines, max, cancel)
    }

    /// Those of `files` with which fewer tokens than `before` result, by
    /// `after`; the weightiest first.
    fn files_with_room(
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
            let small = before <= SMALL_CONVERSATION_TOKENS;
            return Ok(if small { files } else { Vec::new() });
        }
        let blocks: Vec<String> = files.iter().map(SelectedFile::block).collect();
        let counts = self.counter.texts(&blocks, self.family, cancel)?;
        // What the provider reported makes the tokens of a block others.
        let scale = (with_all - without) as f64 / counts.total.tokens.max(1) as f64;
        let costs = counts.items.iter().map(|cost| *cost as f64 * scale);
        let mut fitting = key_files::fitting(files, costs, (before - without) as f64);
        // Estimates of parts do not add up to the token.
        while !fitting.is_empty() && after(&fitting)? >= before {
            fitting.pop();
        }
        Ok(fitting)
    }
}

/// A conversation after a first look.
struct ScannedConversation<'a> {
    turns: Vec<ScannedMessage<'a>>,
    /// What the first message holds when it is a summary.
    previous: Option<PreviousSummary>,
    /// Messages left out before, by the note in the user's first.
    left_out: u64,
}

impl<'a> ScannedConversation<'a> {
    fn at(items: &[IndexedMessage<'a>], cancel: &Cancel) -> Result<Self, Error> {
        let turns = scanned_message::scan_messages(items, cancel)?;
        let mut previous = turns.first().and_then(summary::parse_summary);
        let first_user = turns.iter().find(|turn| turn.is_user());
        let note = first_user.and_then(summary::note);
        // Once messages were left out, those that stayed are others.
        if let (Some(previous), Some(_)) = (&mut previous, note) {
            previous.retained = 0;
        }
        Ok(Self {
            turns,
            previous,
            left_out: note.map_or(0, |(_, count)| count),
        })
    }

    /// The index in the whole conversation of what stands at a position.
    fn index_of(&self, position: usize) -> u64 {
        let next = || {
            self.turns
                .last()
                .map_or(0, |turn| turn.index.saturating_add(1))
        };
        let turn = self.turns.get(position);
        turn.map_or_else(next, |turn| turn.index) as u64
    }

    /// Messages of the whole conversation from the first up to a position.
    fn distance(&self, position: usize) -> u64 {
        self.index_of(position).saturating_sub(self.index_of(0))
    }

    /// The position of the index a client asks for.
    fn target(&self, retain_from: Option<u64>) -> Result<Option<usize>, Error> {
        let Some(index) = retain_from.filter(|index| *index > 0) else {
            return Ok(None);
        };
        let (first, end) = (self.index_of(0), self.index_of(self.turns.len()));
        if index <= first || index > end {
            return Err(Error::invalid(format!(
                "retainFrom is {index}, which is no message behind the first; give what the plan \
                said, or nothing"
            )));
        }
        let position = self
            .turns
            .iter()
            .position(|turn| turn.index as u64 >= index);
        Ok(Some(position.unwrap_or(self.turns.len())))
    }

    /// Why no summary can stand for the messages before `kept`.
    fn refusal(&self, kept: usize) -> Option<String> {
        let new = self.distance(self.turns.len()).saturating_sub(1);
        match &self.previous {
            Some(previous) if new <= previous.retained => Some(
                "no message came since the conversation was last compacted, so there is nothing \
                new to summarise; compact again when there is, or leave messages out"
                    .to_owned(),
            ),
            Some(_) if kept < 2 => Some(
                "only the summary stands before the messages that stay, and a summary of a \
                summary gains nothing; compact again when there are more messages"
                    .to_owned(),
            ),
            None if kept < 2 => Some(
                "only the first message stands before the messages that stay, so there is \
                nothing to summarise; compact when there are more messages"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    fn facts(
        &self,
        conversation: &CompactionInput<'_>,
        cancel: &Cancel,
    ) -> Result<Activity, Error> {
        let CompactionInput {
            tracked, workspace, ..
        } = conversation;
        activity::gather(
            &self.turns,
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
        kept: usize,
        pre_tokens: u64,
        options: &ApplyOptions<'_>,
        cancel: &Cancel,
    ) -> Result<CompactedConversation, Error> {
        let facts = self.facts(conversation, cancel)?;
        let (max_files, max_lines) = (options.max_files, options.max_lines_per_file);
        let files = conversation.key_files(&facts, max_files, max_lines, cancel)?;
        let (stood, task) = match &self.previous {
            Some(previous) => (
                previous
                    .messages
                    .saturating_add(self.distance(kept).saturating_sub(1)),
                previous.task.clone(),
            ),
            None => {
                let first_user = self.turns[..kept].iter().find(|turn| turn.is_user());
                (self.distance(kept), first_user.map(summary::task))
            }
        };
        let activity_list = activity_list::text(&facts, activity_list::MAX_BYTES);
        let with = |files: &[SelectedFile]| -> Result<CompactedConversation, Error> {
            let first = summary::message(&SummaryContent {
                messages: stood.saturating_add(self.left_out),
                retained: (self.turns.len() - kept) as u64,
                task: task.as_deref(),
                text: text.trim(),
                activity_list: activity_list.as_deref(),
                files,
            })?;
            Ok(CompactedConversation {
                first: Some(first),
                files: files.iter().map(|chosen| chosen.file.clone()).collect(),
                ..self.from(kept)
            })
        };
        let after = |files: &[SelectedFile]| {
            conversation.tokens(&with(files)?.messages(conversation.items), cancel)
        };
        with(&conversation.files_with_room(files, pre_tokens, after, cancel)?)
    }

    fn without_summary(&self, kept: usize, reason: String) -> Result<CompactedConversation, Error> {
        let user = self
            .turns
            .iter()
            .take(kept)
            .position(ScannedMessage::is_user);
        let applied = match user {
            Some(user) if kept > 1 => {
                let turn = &self.turns[user];
                let note = summary::note(turn);
                let count = self
                    .left_out
                    .saturating_add(self.distance(kept).saturating_sub(1));
                let drops = |block: usize| {
                    // A result stays only where it was without its call before.
                    let kind = turn.message.blocks().get(block).map(|block| block.kind);
                    note.is_some_and(|(own, _)| own == block)
                        || (user > 0 && kind == Some(BlockKind::ToolResult))
                };
                let text = summary::note_text(count, &reason);
                CompactedConversation {
                    first: Some(with_appended_text(&turn.message, drops, &text)?),
                    ..self.from(kept)
                }
            }
            _ => self.from(0),
        };
        Ok(CompactedConversation {
            fallback: true,
            fallback_reason: Some(reason),
            ..applied
        })
    }

    /// What stays from a position on, and nothing before it.
    fn from(&self, position: usize) -> CompactedConversation {
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
