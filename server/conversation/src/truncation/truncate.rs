//! Decides which messages to send: applies the earlier decisions, then deduplicates and
//! truncates as requested.

use std::collections::HashSet;

use sightline_base::{cancel::Cancel, error::Error, thread_pool};
use sightline_protocol::{
    conversation::{Decision, Keep},
    settings::ConversationProfile,
};

use crate::wire::{Block, BlockKind, Message, Outline, Role, invalid_message, json};

use super::{
    DeletedRange, TruncateAction, TruncateOutcome, TruncateRequest,
    context_history::{EditKind, Update},
    dedup, dedup_savings, deleted_range, left_out, outdated_read, sent_messages,
};

/// Minimum fraction of characters that deduplication must save to avoid truncation. Cline's
/// value.
const MIN_SAVED_FRACTION: f64 = 0.3;
/// Message and block in which Cline places the truncation notice.
const CLINE_NOTICE_POSITION: (usize, usize) = (1, 0);

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
        messages.push(message.ok_or_else(|| invalid_message(index))?);
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
    outcome.sent = sent_messages::build(
        messages,
        DeletedRange::first_kept_after(outcome.deleted_range),
        &outcome.history,
        request.settings.profile,
        &request.settings.notices,
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
            request.settings.profile,
            outdated_read(&request.settings.notices),
            cancel,
        )?;
        if replaced.is_empty() {
            return Ok(false);
        }
        self.history_changed = true;
        self.decision = Decision::Deduplicated;
        self.characters_saved =
            dedup_savings::saved_fraction(messages, start, &self.history, &replaced, cancel)?;
        Ok(self.characters_saved >= MIN_SAVED_FRACTION)
    }

    /// Adds the truncation notice to a sent assistant message, once.
    fn add_notice(&mut self, messages: &[Message<'_>], request: &TruncateRequest<'_>) {
        let is_cline = request.settings.profile == ConversationProfile::Cline;
        let position = if is_cline || messages.len() <= CLINE_NOTICE_POSITION.0 {
            let is_edited = self.history.message(CLINE_NOTICE_POSITION.0).is_some();
            (!is_edited).then_some(CLINE_NOTICE_POSITION)
        } else {
            self.notice_position(messages)
        };
        let Some((message, block)) = position else {
            return;
        };
        let mut text = left_out(&request.settings.notices).to_owned();
        // Keep the text of a newer assistant message below the notice.
        if let Some(own) = messages.get(message).filter(|_| message > 1) {
            let own = own.blocks().get(block).and_then(|block| own.string(block));
            text.push_str("\n\n");
            text.push_str(&own.map(json::decode).unwrap_or_default());
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
        let is_marked = answers().any(|(index, message)| {
            self.history
                .message(index)
                .into_iter()
                .flat_map(|edits| edits.texts())
                .filter_map(|(block, _)| message.blocks().get(block))
                .any(|block| block.text.is_some())
        });
        if is_marked {
            return None;
        }
        answers().find_map(|(index, message)| {
            let is_text = |block: &Block| block.kind == BlockKind::Text && block.text.is_some();
            let block = message.blocks().iter().position(is_text)?;
            Some((index, block))
        })
    }
}
