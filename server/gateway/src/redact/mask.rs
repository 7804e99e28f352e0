//! Makes a conversation shorter that does not fit into the context window any more: old results of
//! tools are replaced by a notice, once and for the rest of the conversation.

use std::collections::HashSet;

use sightline_conversation::wire::json::decode;

use crate::body::RequestBody;

use super::{
    Redaction,
    decisions::{Decision, Edit},
    strings::{Piece, Strings},
};

/// Number of the last results that stay.
const KEPT: usize = 4;
/// Shortest result that is replaced, in bytes.
const MIN_BYTES: usize = 400;
/// Part of a request that must become free: less is not worth a lost cache.
const MIN_SHARE: usize = 5;
/// The text in place of a result.
const NOTICE: &str = "[Sightline: this old result was removed, because the conversation no longer fits into the context window of the model. Run the tool again if you need it.]";

impl Redaction {
    /// Decides to replace the old results of a conversation. Returns whether that frees enough.
    ///
    /// # Errors
    /// If the decisions cannot be stored.
    pub(crate) fn mask(&self, task: &str, body: &RequestBody) -> Result<bool, String> {
        let text = &*body.text;
        let strings = Strings::find(text, &body.values);
        let results: Vec<&Piece> = strings
            .pieces
            .iter()
            .filter(|piece| piece.call.is_some())
            .collect();
        let (old, kept) = results.split_at(results.len().saturating_sub(KEPT));
        let kept: HashSet<u128> = kept
            .iter()
            .map(|piece| self.key(text, piece, &strings))
            .collect();
        let mut decided = Vec::new();
        let mut freed = 0;
        for piece in old {
            let key = self.key(text, piece, &strings);
            if piece.range.len() < MIN_BYTES || kept.contains(&key) {
                continue;
            }
            freed += piece.range.len();
            let literal = text.get(piece.range.clone()).unwrap_or_default();
            let edit = Edit {
                start: 0,
                end: decode(literal).len(),
                text: NOTICE.to_owned(),
            };
            let decision = Decision::Changed { edits: vec![edit] };
            decided.push((key, decision));
        }
        if self.is_dry || freed < text.len() / MIN_SHARE {
            return Ok(false);
        }
        let decisions = self.decisions.task(self.hash(&[task]))?;
        let mut task = decisions.lock();
        // Masks do not free anything twice.
        decided.retain(|(key, decision)| task.get(*key) != Some(decision));
        if decided.is_empty() {
            return Ok(false);
        }
        task.add(decided)?;
        Ok(true)
    }
}
