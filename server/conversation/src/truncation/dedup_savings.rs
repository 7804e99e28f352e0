//! Computes which fraction of the sent characters deduplication saved.
//!
//! Counts as Cline does: in UTF-16 code units, the texts of blocks and the data of images. Tool
//! arguments and messages whose content is a string are not counted.

use std::collections::HashSet;

use sightline_base::{cancel::Cancel, error::Error, thread_pool};

use crate::wire::{
    Message,
    json::{string_utf16_len, utf16_len},
};

use super::context_history::{ContextHistory, Update};

/// Returns the fraction saved by replacing the blocks `replaced`, relative to the first two
/// messages and those from `start` on. Negative if the replacements are longer.
pub(super) fn saved_fraction(
    messages: &[Message<'_>],
    start: usize,
    history: &ContextHistory,
    replaced: &HashSet<(usize, usize)>,
    cancel: &Cancel,
) -> Result<f64, Error> {
    let bytes = messages.iter().map(|message| message.text.len()).sum();
    let counted = thread_pool::map(messages, bytes, |index, message| {
        if (2..start).contains(&index) || cancel.check().is_err() {
            return CharCounts::default();
        }
        count_block_chars(index, message, history, replaced)
    });
    cancel.check()?;
    let mut all = CharCounts::default();
    for counted in counted {
        all.before += counted.before;
        all.saved += counted.saved;
    }
    Ok(if all.before == 0.0 {
        0.0
    } else {
        all.saved / all.before
    })
}

#[derive(Default)]
struct CharCounts {
    before: f64,
    saved: f64,
}

fn count_block_chars(
    index: usize,
    message: &Message<'_>,
    history: &ContextHistory,
    replaced: &HashSet<(usize, usize)>,
) -> CharCounts {
    let mut all = CharCounts::default();
    let edits = history.message(index);
    for (block_index, block) in message.blocks().iter().enumerate() {
        let Some(string) = message.string(block) else {
            if let Some(data) = &block.data {
                all.before += string_utf16_len(message.slice(data)) as f64;
            }
            continue;
        };
        let updates = edits.map_or(&[][..], |edits| edits.block(block_index));
        let mut newest = updates
            .iter()
            .rev()
            .map(|update| Update::new_text(update).map(utf16_len));
        let now = newest.next().flatten();
        if !replaced.contains(&(index, block_index)) {
            all.before += now.unwrap_or_else(|| string_utf16_len(string)) as f64;
            continue;
        }
        let before = newest
            .next()
            .flatten()
            .unwrap_or_else(|| string_utf16_len(string)) as f64;
        all.before += before;
        all.saved += before - now.map_or(before, |now| now as f64);
    }
    all
}
