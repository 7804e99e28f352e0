//! Deciding which messages of a conversation are sent.
//!
//! An agent asks before every request. While the model's window has room, the
//! answer is its own conversation. When it is full, file reads that are out of
//! date give way to a notice (`reads`); when that saves less than 30 % of the
//! characters (`savings`), messages after the first two are left out
//! (`range`). Both are masks, a [`DeletedRange`] and a [`ContextHistory`]
//! (`history`), in Cline's own form: nothing is taken from the conversation,
//! and what was decided can be taken back. `apply` makes the messages of it,
//! with tool calls and results paired (`pairing`).
//!
//! Nothing is kept between calls. Messages are looked at in place (`json`,
//! `message`) and never built: a message that is not changed goes out byte for
//! byte, one that is changed differs in the changed places only.
//!
//! The profile `cline` decides as Cline 3.89 does; ours also knows several
//! reads in one message, compares paths by what they mean, finds a text for the
//! notice of what is left out, and leaves no message empty. What in Cline loses, doubles or misplaces text is in neither:
//! a message that is one string keeps it, a range never ends before the empty
//! one, an edit lands in the block it was made for, `$` in a path is a `$`, a
//! second edit of a text leaves the record of the first alone, and the first
//! message is never replaced.

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

use crate::{cancel::Cancel, error::Error, threads};

pub use context_window::ContextWindow;
pub use deleted_range::DeletedRange;
pub use history::ContextHistory;
pub use message::Outline;
pub use provider_error::classify_error;
pub use response::TruncateResponse;

use history::{EditKind, Update};
use message::{Block, BlockKind, Message, Role};

/// The fraction of characters that must be saved for messages to stay.
const MIN_SAVED_FRACTION: f64 = 0.3;
/// The message and the block in which Cline says that something is left out.
const CLINE_NOTICE_POSITION: (usize, usize) = (1, 0);

/// The texts put in place of what is taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notices {
    /// In place of a file read that is out of date.
    pub duplicate_file_read: String,
    /// In the first answer that has a text, once messages are left out.
    pub truncation: String,
    /// As the result of a tool call that has none.
    pub missing_tool_result: String,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            duplicate_file_read: "[An older copy of this file stood here. It was read again \
                further down; only that newer copy counts.]"
                .to_owned(),
            truncation: "[A part of this conversation is left out here, so that the rest fits the \
                model's context window. The first message, with the task, is whole; what follows \
                are the newest messages.]"
                .to_owned(),
            missing_tool_result: "No result of this call was recorded.".to_owned(),
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

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TruncateAction {
    /// Nothing new.
    Apply,
    /// What is needed.
    Auto {
        /// Tokens the last request used; `None` when there was none.
        used: Option<f64>,
        /// Tokens that are too many: [`Window::limit`].
        limit: f64,
    },
    /// Replace duplicate file reads, needed or not.
    Deduplicate,
    /// Leave messages out, needed or not.
    Truncate(Keep),
}

/// A conversation, what was decided about it, and what is asked.
#[derive(Clone, Debug)]
pub struct TruncateRequest<'a> {
    /// All messages.
    pub messages: &'a [&'a RawValue],
    /// The messages left out so far.
    pub deleted_range: Option<DeletedRange>,
    /// The edits made so far.
    pub history: ContextHistory,
    /// What may be done.
    pub action: TruncateAction,
    /// The time that edits made now carry: when the last request was sent.
    pub time: &'a Number,
    /// Whose decisions.
    pub profile: ConversationProfile,
    /// The texts put in place of what is taken out.
    pub notices: &'a Notices,
}

/// What was decided.
#[derive(Clone, Debug)]
pub struct TruncateOutcome {
    /// The messages left out.
    pub deleted_range: Option<DeletedRange>,
    /// Was the range decided anew?
    pub updated_deleted_range: bool,
    /// The edits, old and new.
    pub history: ContextHistory,
    /// Are there new ones?
    pub history_changed: bool,
    /// What was done.
    pub decision: Decision,
    /// The fraction of characters saved by replacing duplicate file reads now.
    pub characters_saved: f64,
    /// After [`Action::Deduplicate`]: was too little saved?
    pub need_to_truncate: Option<bool>,
    /// The messages to send.
    pub sent: Vec<SentMessage>,
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// Its index in the conversation.
    pub index: usize,
    /// The new texts in it.
    pub edits: Vec<BlockEdit>,
    /// Are its blocks others than its own?
    pub repaired: bool,
    /// The message to send in its place; `None` when it goes out as it is.
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

    /// The message to send.
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
    /// The index of the block in its message.
    pub block: usize,
    /// Its text; of a tool result, the text of its first block.
    pub text: String,
}

/// Decides what is sent.
///
/// # Errors
/// `invalidParams` when a message is no object, `cancelled`.
pub fn truncate(request: TruncateRequest<'_>, cancel: &Cancel) -> Result<TruncateOutcome, Error> {
    let bytes = request.messages.iter().map(|raw| raw.get().len()).sum();
    let scanned = threads::each(request.messages, bytes, |_, raw| {
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

/// Decides what is sent of messages that were looked at before: `outlines` has one
/// for each.
///
/// # Errors
/// `cancelled`.
pub fn truncate_scanned(
    request: TruncateRequest<'_>,
    outlines: &[&Outline],
    cancel: &Cancel,
) -> Result<TruncateOutcome, Error> {
    let messages = request.messages.iter().zip(outlines);
    let messages: Vec<Message<'_>> = messages
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
                // Half may not be enough after a change to a smaller model.
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
    /// Replaces duplicate file reads. Did that save enough?
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

    /// Says in an answer that is sent that something is left out, once.
    fn add_notice(&mut self, messages: &[Message<'_>], request: &TruncateRequest<'_>) {
        let is_cline = request.profile == ConversationProfile::Cline;
        let place = if is_cline || messages.len() <= CLINE_NOTICE_POSITION.0 {
            let is_edited = self.history.message(CLINE_NOTICE_POSITION.0).is_some();
            (!is_edited).then_some(CLINE_NOTICE_POSITION)
        } else {
            self.notice_position(messages)
        };
        let Some((message, block)) = place else {
            return;
        };
        let mut text = request.notices.truncation.clone();
        // Of a newer answer nothing is lost.
        if let Some(own) = messages.get(message).filter(|_| message > 1) {
            let own = own.blocks().get(block).and_then(|block| own.string(block));
            text.push_str("\n\n");
            text.push_str(&own.map(json_scan::decode).unwrap_or_default());
        }
        let update = Update::text(request.time, text, None);
        self.history.add(message, EditKind::Unknown, block, update);
        self.history_changed = true;
    }

    /// The first text of the first answer that has one and is sent, unless an
    /// answer that is sent says already that something is left out.
    fn notice_position(&self, messages: &[Message<'_>]) -> Option<(usize, usize)> {
        let start = DeletedRange::first_kept_after(self.deleted_range);
        let answers = || {
            let sent = messages.iter().enumerate();
            sent.filter(move |(index, message)| {
                message.role == Role::Assistant && (*index == 1 || *index >= start)
            })
        };
        let is_said = answers().any(|(index, message)| {
            let edits = self.history.message(index).into_iter();
            let texts = edits.flat_map(|edits| edits.texts());
            let mut blocks = texts.filter_map(|(block, _)| message.blocks().get(block));
            blocks.any(|block| block.text.is_some())
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
