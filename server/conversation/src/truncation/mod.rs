//! Selects the messages that fit the model's context window.
//!
//! An agent calls [`truncate`] before each request to its model. While the window has room, the
//! conversation is sent unchanged. When the window is full, outdated file reads are replaced by
//! a notice (`dedup`). If that saves less than 30 % of the characters (`dedup_savings`), messages after
//! the first two are left out (`deleted_range`). Both results, a [`DeletedRange`] and a
//! [`ContextHistory`] (`context_history`), use Cline's data format. The conversation itself is never
//! modified, so every decision can be undone. `sent_messages` builds the messages to send and pairs
//! tool calls with their results (`tool_pairs`).
//!
//! Truncation keeps no state between calls. An unchanged message is sent byte for byte; an edited one
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

mod context_history;
mod dedup;
mod dedup_savings;
mod deleted_range;
pub(crate) mod file_markers;
mod sent_messages;
mod tool_pairs;
mod truncate;
mod truncate_response;

use serde_json::{Number, value::RawValue};
use sightline_protocol::{
    conversation::{Decision, Keep},
    settings::{ConversationSettings, NoticeSettings},
};

pub use context_history::ContextHistory;
pub(crate) use dedup::normalize_path;
pub use deleted_range::DeletedRange;
pub(crate) use sent_messages::with_appended_text;
pub use sent_messages::without_blocks;
pub use truncate::{truncate, truncate_scanned};
pub use truncate_response::TruncateResponse;

/// Returns the text that replaces an outdated file read.
fn outdated_read(notices: &NoticeSettings) -> &str {
    notices.duplicate_file_read.as_deref().unwrap_or(
        "[An older copy of this file was here. The file was read again below; only the newer copy \
         is current.]",
    )
}

/// Returns the text that precedes the first sent assistant text once messages are left out.
pub fn left_out(notices: &NoticeSettings) -> &str {
    notices.truncation.as_deref().unwrap_or(
        "[Part of this conversation is left out here to fit the model's context window. The first \
         message, with the task, is complete. The newest messages follow.]",
    )
}

/// Returns the result of a tool call that has none.
pub fn missing_result(notices: &NoticeSettings) -> &str {
    let own = notices.missing_tool_result.as_deref();
    own.unwrap_or("No result was recorded for this call.")
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
        /// Token count from which the window is full: [`crate::ContextWindow::limit`].
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
    /// Whether to decide as Cline, and the texts that replace removed content.
    pub settings: &'a ConversationSettings,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_override_single_notices() {
        let notices = NoticeSettings::default();
        assert_eq!(
            outdated_read(&notices),
            "[An older copy of this file was here. The file was read again below; only the newer \
             copy is current.]"
        );
        assert_eq!(
            left_out(&notices),
            "[Part of this conversation is left out here to fit the model's context window. The \
             first message, with the task, is complete. The newest messages follow.]"
        );
        let notices = NoticeSettings {
            truncation: Some("mine".to_owned()),
            ..notices
        };
        assert_eq!(left_out(&notices), "mine");
        assert_eq!(
            missing_result(&notices),
            "No result was recorded for this call."
        );
    }
}
