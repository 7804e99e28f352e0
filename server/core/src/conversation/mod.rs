//! Selects the messages of a conversation that fit the model's context window.
//!
//! An agent calls [`truncate`] before each request to its model. While the window has room, the
//! conversation is sent unchanged. When the window is full, outdated file reads are replaced by
//! a notice (`dedup`). If that saves less than 30 % of the characters (`stats`), messages after
//! the first two are left out (`deleted_range`). Both results, a [`DeletedRange`] and a
//! [`ContextHistory`] (`history`), use Cline's data format. The conversation itself is never
//! modified, so every decision can be undone. `apply` builds the messages to send and pairs
//! tool calls with their results (`tool_pairs`).
//!
//! The module keeps no state between calls. It scans messages in place (`json_scan`, `message`)
//! and never parses them into a tree. An unchanged message is sent byte for byte; an edited one
//! differs only in the edited ranges.
//!
//! Two profiles exist. `cline` makes the same decisions as Cline 3.89. `default` also finds
//! several reads in one message, compares normalized paths, finds a text block for the
//! truncation notice, and never sends an empty message.
//!
//! Cases in which Cline loses, duplicates or misplaces text are fixed in both profiles:
//! - A message whose content is a string keeps it.
//! - A deleted range never ends before the empty range.
//! - An edit is applied to the block it was made for.
//! - `$` in a path is literal.
//! - A second edit of a text does not change the record of the first.
//! - The first message is never replaced.

pub(crate) mod apply;
mod context_window;
pub(crate) mod dedup;
mod deleted_range;
mod error_patterns;
pub(crate) mod file_markers;
mod history;
pub(crate) mod json_scan;
pub(crate) mod message;
mod provider_error;
mod response;
mod stats;
mod tool_pairs;

use std::collections::HashSet;

use serde_json::{Number, value::RawValue};
use sightline_protocol::{
    conversation::{Decision, Keep},
    settings::{ConversationProfile, NoticeSettings},
};

use crate::{cancel::Cancel, error::Error, thread_pool};

pub use context_window::ContextWindow;
pub use deleted_range::DeletedRange;
pub use history::ContextHistory;
pub use message::Outline;
pub use provider_error::classify_error;
pub use response::TruncateResponse;

use history::{EditKind, Update};
use message::{Block, BlockKind, Message, Role};

/// Minimum fraction of characters that deduplication must save to avoid truncation. Cline's
/// value.
const MIN_SAVED_FRACTION: f64 = 0.3;
/// Message and block in which Cline places the truncation notice.
const CLINE_NOTICE_POSITION: (usize, usize) = (1, 0);

/// Texts that replace removed content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notices {
    /// Replaces an outdated file read.
    pub duplicate_file_read: String,
    /// Precedes the first sent assistant text once messages are left out.
    pub truncation: String,
    /// Result of a tool call that has none.
    pub missing_tool_result: String,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            duplicate_file_read: "[An older copy of this file was here. The file was read again \
                below; only the newer copy is current.]"
                .to_owned(),
            truncation: "[Part of this conversation is left out here to fit the model's context \
                window. The first message, with the task, is complete. The newest messages follow.]"
                .to_owned(),
            missing_tool_result: "No result was recorded for this call.".to_owned(),
        }
    }
}

impl From<NoticeSettings> for Notices {
    fn from(settings: NoticeSettings) -> Self {
        let default = Self::default();
        let or = |own: Option<String>, default| own.unwrap_or(default);
        Self {
            duplicate_file_read: or(settings.duplicate_file_read, default.duplicate_file_read),
            truncation: or(settings.truncation, default.truncation),
            missing_tool_result: or(settings.missing_tool_result, default.missing_tool_result),
        }
    }
}

/// What [`truncate`] may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TruncateAction {
    /// Applies the earlier decisions and makes no new ones.
    Apply,
    /// Deduplicates, then truncates, as far as needed.
    Auto {
        /// Tokens the last request used; `None` before the first request.
        used: Option<f64>,
        /// Token count from which the window is full: [`ContextWindow::limit`].
        limit: f64,
    },
    /// Replaces duplicate file reads, whether or not the window is full.
    Deduplicate,
    /// Leaves messages out, whether or not the window is full.
    Truncate(Keep),
}

/// A conversation, the earlier decisions about it, and the requested action.
#[derive(Clone, Debug)]
pub struct TruncateRequest<'a> {
    /// All messages.
    pub messages: &'a [&'a RawValue],
    /// Messages left out so far.
    pub deleted_range: Option<DeletedRange>,
    /// Edits made so far.
    pub history: ContextHistory,
    /// What may be changed.
    pub action: TruncateAction,
    /// Timestamp of new edits: the time of the last request.
    pub time: &'a Number,
    /// Whether to decide as Cline or with Sightline's improvements.
    pub profile: ConversationProfile,
    /// Texts that replace removed content.
    pub notices: &'a Notices,
}

/// The result of [`truncate`].
#[derive(Clone, Debug)]
pub struct TruncateOutcome {
    /// Messages left out.
    pub deleted_range: Option<DeletedRange>,
    /// Whether this call changed the range.
    pub updated_deleted_range: bool,
    /// All edits, old and new.
    pub history: ContextHistory,
    /// Whether this call added edits.
    pub history_changed: bool,
    /// Which action was taken.
    pub decision: Decision,
    /// Fraction of characters that this call saved by replacing duplicate file reads.
    pub characters_saved: f64,
    /// After [`TruncateAction::Deduplicate`]: whether the savings were too small.
    pub need_to_truncate: Option<bool>,
    /// Messages to send.
    pub sent: Vec<SentMessage>,
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// Index in the conversation.
    pub index: usize,
    /// New texts of its blocks.
    pub edits: Vec<BlockEdit>,
    /// Whether the list of blocks differs from the original.
    pub repaired: bool,
    /// The changed message; `None` if it is sent unchanged.
    pub edited: Option<Box<RawValue>>,
}

impl SentMessage {
    fn unchanged(index: usize) -> Self {
        Self {
            index,
            edits: Vec::new(),
            repaired: false,
            edited: None,
        }
    }

    /// Returns the message to send.
    pub fn message<'a>(&'a self, messages: &[&'a RawValue]) -> Option<&'a RawValue> {
        match &self.edited {
            Some(edited) => Some(edited),
            None => messages.get(self.index).copied(),
        }
    }
}

/// The new text of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEdit {
    /// Index of the block in its message.
    pub block: usize,
    /// New text; for a tool result, the text of its first block.
    pub text: String,
}

/// Selects the messages to send.
///
/// # Errors
/// `invalidParams` if a message is not an object, `cancelled`.
pub fn truncate(request: TruncateRequest<'_>, cancel: &Cancel) -> Result<TruncateOutcome, Error> {
    let bytes = request.messages.iter().map(|raw| raw.get().len()).sum();
    let scanned = thread_pool::map(request.messages, bytes, |_, raw| {
        cancel.check().ok()?;
        Message::scan(raw.get())
    });
    cancel.check()?;
    let mut messages = Vec::with_capacity(scanned.len());
    for (index, message) in scanned.into_iter().enumerate() {
        messages.push(message.ok_or_else(|| {
            Error::invalid(format!(
                "messages[{index}] is not an object; a message has a role and content"
            ))
        })?);
    }
    decide(&messages, request, cancel)
}

/// Selects the messages to send. Takes one outline per message, so that messages are not
/// scanned again.
///
/// # Errors
/// `cancelled`.
pub fn truncate_scanned(
    request: TruncateRequest<'_>,
    outlines: &[&Outline],
    cancel: &Cancel,
) -> Result<TruncateOutcome, Error> {
    let messages: Vec<Message<'_>> = request
        .messages
        .iter()
        .zip(outlines)
        .map(|(raw, outline)| Message::with_outline(raw.get(), outline))
        .collect();
    decide(&messages, request, cancel)
}

fn decide(
    messages: &[Message<'_>],
    mut request: TruncateRequest<'_>,
    cancel: &Cancel,
) -> Result<TruncateOutcome, Error> {
    let start = DeletedRange::first_kept_after(request.deleted_range);
    let mut outcome = TruncateOutcome {
        deleted_range: request.deleted_range,
        updated_deleted_range: false,
        history: std::mem::take(&mut request.history),
        history_changed: false,
        decision: Decision::Fits,
        characters_saved: 0.0,
        need_to_truncate: None,
        sent: Vec::new(),
    };
    let keep = match request.action {
        TruncateAction::Apply => None,
        TruncateAction::Auto { used, limit } => match used.filter(|used| *used >= limit) {
            None => None,
            Some(used) => {
                let enough = outcome.deduplicate(messages, start, &request, cancel)?;
                // Removing half may not be enough after a switch to a smaller model.
                let keep = if used / 2.0 > limit {
                    Keep::Quarter
                } else {
                    Keep::Half
                };
                (!enough).then_some(keep)
            }
        },
        TruncateAction::Deduplicate => {
            let enough = outcome.deduplicate(messages, start, &request, cancel)?;
            outcome.need_to_truncate = Some(!enough);
            None
        }
        TruncateAction::Truncate(keep) => Some(keep),
    };
    if let Some(keep) = keep {
        let role = |index: usize| messages.get(index).map(|message| message.role);
        let range = deleted_range::next_range(messages.len(), request.deleted_range, keep, role);
        outcome.deleted_range = Some(range);
        outcome.updated_deleted_range = true;
        outcome.decision = Decision::Truncated;
        outcome.add_notice(messages, &request);
    }
    outcome.sent = apply::apply(
        messages,
        DeletedRange::first_kept_after(outcome.deleted_range),
        &outcome.history,
        request.profile,
        request.notices,
        cancel,
    )?;
    Ok(outcome)
}

impl TruncateOutcome {
    /// Replaces duplicate file reads. Returns whether that saved enough.
    fn deduplicate(
        &mut self,
        messages: &[Message<'_>],
        start: usize,
        request: &TruncateRequest<'_>,
        cancel: &Cancel,
    ) -> Result<bool, Error> {
        let replaced: HashSet<(usize, usize)> = dedup::replace_duplicates(
            messages,
            start,
            &mut self.history,
            request.time,
            request.profile,
            &request.notices.duplicate_file_read,
            cancel,
        )?;
        if replaced.is_empty() {
            return Ok(false);
        }
        self.history_changed = true;
        self.decision = Decision::Deduplicated;
        self.characters_saved =
            stats::saved_fraction(messages, start, &self.history, &replaced, cancel)?;
        Ok(self.characters_saved >= MIN_SAVED_FRACTION)
    }

    /// Adds the truncation notice to a sent assistant message, once.
    fn add_notice(&mut self, messages: &[Message<'_>], request: &TruncateRequest<'_>) {
        let is_cline = request.profile == ConversationProfile::Cline;
        let position = if is_cline || messages.len() <= CLINE_NOTICE_POSITION.0 {
            let is_edited = self.history.message(CLINE_NOTICE_POSITION.0).is_some();
            (!is_edited).then_some(CLINE_NOTICE_POSITION)
        } else {
            self.notice_position(messages)
        };
        let Some((message, block)) = position else {
            return;
        };
        let mut text = request.notices.truncation.clone();
        // Keep the text of a newer assistant message below the notice.
        if let Some(own) = messages.get(message).filter(|_| message > 1) {
            let own = own.blocks().get(block).and_then(|block| own.string(block));
            text.push_str("\n\n");
            text.push_str(&own.map(json_scan::decode).unwrap_or_default());
        }
        let update = Update::text(request.time, text, None);
        self.history.add(message, EditKind::Unknown, block, update);
        self.history_changed = true;
    }

    /// Returns the first text block of the first sent assistant message that has one. Returns
    /// `None` if a sent assistant message already has a notice.
    fn notice_position(&self, messages: &[Message<'_>]) -> Option<(usize, usize)> {
        let start = DeletedRange::first_kept_after(self.deleted_range);
        let answers = || {
            messages.iter().enumerate().filter(move |(index, message)| {
                message.role == Role::Assistant && (*index == 1 || *index >= start)
            })
        };
        let is_said = answers().any(|(index, message)| {
            self.history
                .message(index)
                .into_iter()
                .flat_map(|edits| edits.texts())
                .filter_map(|(block, _)| message.blocks().get(block))
                .any(|block| block.text.is_some())
        });
        if is_said {
            return None;
        }
        answers().find_map(|(index, message)| {
            let is_text = |block: &Block| block.kind == BlockKind::Text && block.text.is_some();
            let block = message.blocks().iter().position(is_text)?;
            Some((index, block))
        })
    }
}
