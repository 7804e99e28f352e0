//! Finds where the retained part of a conversation starts.
//!
//! It starts at an assistant message, because a user message (the summary) is put before it,
//! and never between a tool call and its result. If the requested position is not possible,
//! more is retained, not less.

use std::collections::HashMap;

use sightline_base::{cancel::Cancel, error::Error};

use crate::wire::{BlockKind, Role};

use super::scanned_message::ScannedMessage;

/// Maximum fraction of messages retained; otherwise nothing would be compacted.
const MAX_RETAIN_RATIO: f64 = 0.9;

/// Positions at which a conversation can be split.
pub(super) struct SplitPoints {
    count: usize,
    /// In order. Excludes the first two positions, because one message alone is not worth
    /// compacting.
    positions: Vec<usize>,
}

impl SplitPoints {
    /// Finds the positions.
    ///
    /// # Errors
    /// `cancelled`.
    pub(super) fn find(messages: &[ScannedMessage<'_>], cancel: &Cancel) -> Result<Self, Error> {
        // Change in the number of enclosing call/result pairs from one position to the next.
        let mut pair_delta = vec![0_i64; messages.len() + 1];
        // Ids may be reused: a result belongs to the last call before it.
        let mut calls: HashMap<_, usize> = HashMap::new();
        for (position, message) in messages.iter().enumerate() {
            cancel.check()?;
            for block in message.scan.blocks() {
                let Some(id) = message.scan.id(block) else {
                    continue;
                };
                match block.kind {
                    BlockKind::ToolUse | BlockKind::ServerToolUse => {
                        calls.insert(id, position);
                    }
                    BlockKind::ToolResult | BlockKind::ServerToolResult => {
                        if let Some(call) = calls.get(&id) {
                            pair_delta[call + 1] += 1;
                            pair_delta[position + 1] -= 1;
                        }
                    }
                    BlockKind::Text | BlockKind::Image | BlockKind::Other => {}
                }
            }
        }
        let mut positions = Vec::new();
        let mut open_pairs = 0;
        for (position, message) in messages.iter().enumerate() {
            open_pairs += pair_delta[position];
            if position > 1 && open_pairs == 0 && message.scan.role == Role::Assistant {
                positions.push(position);
            }
        }
        Ok(Self {
            count: messages.len(),
            positions,
        })
    }

    /// Returns the position that retains the newest `ratio` of the messages.
    pub(super) fn for_ratio(&self, ratio: f64, default: f64) -> Option<usize> {
        let ratio = if ratio.is_nan() { default } else { ratio };
        let wanted = self.count as f64 * ratio.clamp(0.0, MAX_RETAIN_RATIO);
        // Ignore rounding errors: 7.000000000000001 means 7.
        let kept = (wanted - 1e-9).ceil().max(0.0) as usize;
        self.at_or_before(self.count.saturating_sub(kept))
    }

    /// Returns the last position at or before `target`. If there is none, returns the first
    /// position.
    pub(super) fn at_or_before(&self, target: usize) -> Option<usize> {
        let next = self
            .positions
            .partition_point(|position| *position <= target);
        let before = self.positions[..next].last();
        before.or(self.positions.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{super::scanned_message::scan_messages, *};
    use crate::compaction::IndexedMessage;

    /// Parses a script of `u` and `a` messages. Digits are ids of calls (in `a`) and results (in
    /// `u`). `c` and `r` are messages of the assistant with calls and results of server tools.
    fn positions(script: &str) -> SplitPoints {
        let raws: Vec<Box<RawValue>> = script
            .split_whitespace()
            .map(|message| {
                let (role, kind, key) = match &message[..1] {
                    "a" => ("assistant", "tool_use", "id"),
                    "c" => ("assistant", "mcp_tool_use", "id"),
                    "r" => ("assistant", "mcp_tool_result", "tool_use_id"),
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
        let messages = scan_messages(&items, &Cancel::default()).unwrap();
        SplitPoints::find(&messages, &Cancel::default()).unwrap()
    }

    #[test]
    fn tool_pairs_are_not_split() {
        assert_eq!(positions("u a1 u1 a2 u2 a").positions, [3, 5]);
        assert_eq!(positions("u a12 u1 a u2 a").positions, [5]);
        assert_eq!(positions("u a1 u1 a1 u1 a").positions, [3, 5]);
        assert_eq!(positions("u1 a1 u a u1 a").positions, [5]);
        assert_eq!(positions("a u a").positions, [2]);
        assert_eq!(positions("u a u c1 r1 u a").positions, [3, 6]);
        assert_eq!(positions("u a1 a u1").positions, [0; 0]);
        assert_eq!(positions("").positions, [0; 0]);
    }

    #[test]
    fn at_least_the_requested_part_is_retained() {
        let ten = positions("u a u a u a u a u a");
        for (ratio, position) in [
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
            assert_eq!(ten.for_ratio(ratio, 0.2), Some(position), "{ratio}");
        }
        assert_eq!(ten.at_or_before(usize::MAX), Some(9));
        for (target, position) in [(8, 7), (7, 7), (6, 5), (4, 3), (3, 3)] {
            assert_eq!(ten.at_or_before(target), Some(position), "{target}");
        }
        // Nothing could be compacted before position 3.
        for target in [0, 1, 2] {
            assert_eq!(ten.at_or_before(target), Some(3), "{target}");
        }
        // The requested position is between a call and its result.
        assert_eq!(positions("u a u a1 u1 a").for_ratio(0.3, 0.2), Some(3));
        assert_eq!(
            positions("u a1 u1 a2 u2 u u u").for_ratio(0.5, 0.2),
            Some(3)
        );
        // Almost everything is to be retained.
        assert_eq!(positions("u a u a u a u a u").for_ratio(0.9, 0.2), Some(3));
        for nothing in ["", "u", "u a", "u u", "u a u"] {
            assert_eq!(positions(nothing).for_ratio(0.5, 0.2), None, "{nothing}");
        }
    }
}
