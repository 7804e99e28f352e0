//! Finds where the retained part of a conversation starts.
//!
//! It starts at an assistant message, because a user message (the summary) is put before it,
//! and never between a tool call and its result. If the requested position is not possible,
//! more is retained, not less.

use std::collections::HashMap;

use crate::{
    cancel::Cancel,
    conversation::message::{BlockKind, Role},
    error::Error,
};

use super::scanned_message::ScannedMessage;

/// Maximum fraction of messages retained; otherwise nothing would be compacted.
const LARGEST_RATIO: f64 = 0.9;

/// Positions at which a conversation can be split.
pub(super) struct SplitPoints {
    count: usize,
    /// In order. Excludes the first two positions, because one message alone is not worth
    /// compacting.
    places: Vec<usize>,
}

impl SplitPoints {
    /// Finds the positions.
    ///
    /// # Errors
    /// `cancelled`.
    pub(super) fn of(turns: &[ScannedMessage<'_>], cancel: &Cancel) -> Result<Self, Error> {
        // Change in the number of enclosing call/result pairs from one position to the next.
        let mut around = vec![0_i64; turns.len() + 1];
        // Ids may be reused: a result belongs to the last call before it.
        let mut calls: HashMap<_, usize> = HashMap::new();
        for (position, turn) in turns.iter().enumerate() {
            cancel.check()?;
            for block in turn.message.blocks() {
                let Some(id) = turn.message.id(block) else {
                    continue;
                };
                match block.kind {
                    BlockKind::ToolUse => {
                        calls.insert(id, position);
                    }
                    BlockKind::ToolResult => {
                        if let Some(call) = calls.get(&id) {
                            around[call + 1] += 1;
                            around[position + 1] -= 1;
                        }
                    }
                    BlockKind::Text | BlockKind::Image | BlockKind::Other => {}
                }
            }
        }
        let mut places = Vec::new();
        let mut pairs = 0;
        for (position, turn) in turns.iter().enumerate() {
            pairs += around[position];
            if position > 1 && pairs == 0 && turn.message.role == Role::Assistant {
                places.push(position);
            }
        }
        Ok(Self {
            count: turns.len(),
            places,
        })
    }

    /// Returns the position that retains the newest `ratio` of the messages.
    pub(super) fn for_ratio(&self, ratio: f64, default: f64) -> Option<usize> {
        let ratio = if ratio.is_nan() { default } else { ratio };
        let kept = self.count as f64 * ratio.clamp(0.0, LARGEST_RATIO);
        // Ignore rounding errors: 7.000000000000001 means 7.
        let kept = (kept - 1e-9).ceil().max(0.0) as usize;
        self.near(self.count.saturating_sub(kept))
    }

    /// Returns the last position at or before `target`. If there is none, returns the first
    /// position.
    pub(super) fn near(&self, target: usize) -> Option<usize> {
        let next = self.places.partition_point(|place| *place <= target);
        let before = self.places[..next].last();
        before.or(self.places.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{super::scanned_message::scan_messages, *};
    use crate::compaction::IndexedMessage;

    /// Parses a script of `u` and `a` messages. Digits are ids of calls (in `a`) and results (in
    /// `u`).
    fn places(script: &str) -> SplitPoints {
        let raws: Vec<Box<RawValue>> = script
            .split_whitespace()
            .map(|message| {
                let (role, kind, key) = match &message[..1] {
                    "a" => ("assistant", "tool_use", "id"),
                    _ => ("user", "tool_result", "tool_use_id"),
                };
                let blocks: Vec<String> = message[1..]
                    .chars()
                    .map(|id| format!(r#"{{"type":"{kind}","{key}":"{id}"}}"#))
                    .collect();
                let blocks = blocks.join(",");
                RawValue::from_string(format!(r#"{{"role":"{role}","content":[{blocks}]}}"#))
                    .unwrap()
            })
            .collect();
        let items: Vec<IndexedMessage<'_>> = raws
            .iter()
            .enumerate()
            .map(|(index, message)| IndexedMessage { index, message })
            .collect();
        let turns = scan_messages(&items, &Cancel::default()).unwrap();
        SplitPoints::of(&turns, &Cancel::default()).unwrap()
    }

    #[test]
    fn no_pair_is_split() {
        assert_eq!(places("u a1 u1 a2 u2 a").places, [3, 5]);
        assert_eq!(places("u a12 u1 a u2 a").places, [5]);
        assert_eq!(places("u a1 u1 a1 u1 a").places, [3, 5]);
        assert_eq!(places("u1 a1 u a u1 a").places, [5]);
        assert_eq!(places("a u a").places, [2]);
        assert_eq!(places("u a1 a u1").places, [0; 0]);
        assert_eq!(places("").places, [0; 0]);
    }

    #[test]
    fn no_less_stays_than_was_wanted() {
        let ten = places("u a u a u a u a u a");
        for (ratio, place) in [
            (0.2, 7),
            (0.3, 7),
            (0.0, 9),
            (-1.0, 9),
            (1.0, 3),
            (f64::INFINITY, 3),
            (f64::NAN, 7),
            (0.5, 5),
            (0.1 + 0.2, 7),
        ] {
            assert_eq!(ten.for_ratio(ratio, 0.2), Some(place), "{ratio}");
        }
        assert_eq!(ten.near(usize::MAX), Some(9));
        for (target, place) in [(8, 7), (7, 7), (6, 5), (4, 3), (3, 3)] {
            assert_eq!(ten.near(target), Some(place), "{target}");
        }
        // Nothing could be compacted before position 3.
        for target in [0, 1, 2] {
            assert_eq!(ten.near(target), Some(3), "{target}");
        }
        // The requested position is between a call and its result.
        assert_eq!(places("u a u a1 u1 a").for_ratio(0.3, 0.2), Some(3));
        assert_eq!(places("u a1 u1 a2 u2 u u u").for_ratio(0.5, 0.2), Some(3));
        // Almost everything is to be retained.
        assert_eq!(places("u a u a u a u a u").for_ratio(0.9, 0.2), Some(3));
        for nothing in ["", "u", "u a", "u u", "u a u"] {
            assert_eq!(places(nothing).for_ratio(0.5, 0.2), None, "{nothing}");
        }
    }
}
