//! The truncation of a conversation, and how it follows its messages when log lines are lost.
//!
//! Truncation refers to messages by index. A lost log line shifts the messages after it, and an
//! edit would apply to the wrong message. The log therefore also stores the ids of the
//! messages, and indexes are corrected when it is read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::{Number, Value};
use uuid::Uuid;

use super::entry::TruncationRecord;
use crate::conversation::{ContextHistory, DeletedRange};

/// The messages left out of a conversation, and the edits made to it. The stored messages are
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TruncationState {
    /// Messages left out.
    pub deleted_range: Option<DeletedRange>,
    /// Edits.
    pub history: ContextHistory,
}

/// Truncation as logged.
#[derive(Clone, Debug, Default)]
pub(super) struct LoggedTruncation {
    pub(super) deleted_range: Option<DeletedRange>,
    pub(super) history: ContextHistory,
    /// Timestamp of the edits made with it.
    pub(super) time: Option<Number>,
    pub(super) anchors: BTreeMap<usize, Uuid>,
}

/// Returns the indexes of the messages that `history` edits.
fn edited(history: &Value) -> impl Iterator<Item = usize> {
    let entries = history.as_array().into_iter().flatten();
    entries.filter_map(|entry| usize::try_from(entry.get(0)?.as_u64()?).ok())
}

/// Returns the last index of a range that is not empty.
fn end(range: Option<DeletedRange>) -> Option<usize> {
    let DeletedRange([first, last]) = range?;
    let end = usize::try_from(last).ok()?;
    (last >= first).then_some(end)
}

impl TruncationState {
    /// Converts to the stored form, for a conversation with these messages.
    pub(super) fn to_line(&self, time: &Number, messages: &[Uuid]) -> TruncationRecord {
        let context_history = self.history.clone().into_value();
        let last = end(self.deleted_range);
        let meant = edited(&context_history)
            .chain(last)
            .chain(last.map(|last| last.saturating_add(1)));
        let anchors = meant
            .filter_map(|index| Some((index, *messages.get(index)?)))
            .collect();
        TruncationRecord {
            deleted_range: self.deleted_range.map(|range| range.0),
            context_history,
            time: Some(time.clone()),
            anchors,
        }
    }
}

impl LoggedTruncation {
    /// Returns whether this records the truncation from before it was logged. Decisions never have
    /// time 0.
    pub(super) fn is_from_unlogged(&self) -> bool {
        self.time.as_ref().and_then(Number::as_f64) == Some(0.0)
    }

    /// Resolves the truncation for a conversation with these messages.
    pub(super) fn of(&self, messages: &[Uuid]) -> Arc<TruncationState> {
        let are_in_place = self
            .anchors
            .iter()
            .all(|(index, uuid)| messages.get(*index) == Some(uuid));
        let mut truncation = TruncationState {
            deleted_range: self.deleted_range,
            history: self.history.clone(),
        };
        if !are_in_place {
            self.follow(&mut truncation, messages);
        }
        Arc::new(truncation)
    }

    /// Moves the indexes with the messages they refer to.
    fn follow(&self, truncation: &mut TruncationState, messages: &[Uuid]) {
        let places: HashMap<&Uuid, usize> = messages.iter().zip(0..).collect();
        let place = |index: usize| places.get(self.anchors.get(&index)?).copied();
        let mut history = std::mem::take(&mut truncation.history).into_value();
        if let Value::Array(entries) = &mut history {
            entries.retain_mut(|entry| {
                let index = entry.get(0).and_then(Value::as_u64);
                let index = index.and_then(|index| usize::try_from(index).ok());
                let Some(index) = index.filter(|index| self.anchors.contains_key(index)) else {
                    return true;
                };
                // The edit of a lost message is dropped.
                let (Some(now), Some(said)) = (place(index), entry.get_mut(0)) else {
                    return false;
                };
                *said = Value::from(now);
                true
            });
        }
        truncation.history = ContextHistory::from_value(history).unwrap_or_default();
        let Some(last) = end(truncation.deleted_range) else {
            return;
        };
        let behind = place(last.saturating_add(1)).map(|place| place.saturating_sub(1));
        let now = behind.or_else(|| place(last)).unwrap_or(last);
        let now = now.min(messages.len().saturating_sub(1));
        if let (Some(range), Ok(now)) = (&mut truncation.deleted_range, i64::try_from(now)) {
            range.0[1] = now.max(DeletedRange::EMPTY.0[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_move_with_their_messages() {
        let messages: Vec<Uuid> = (0..10).map(|_| Uuid::new_v4()).collect();
        let history = serde_json::json!([
            [1, [0, [[0, [[5, "text", ["a"], []]]]]]],
            [4, [0, [[0, [[5, "text", ["b"], []]]]]]],
            [7, [0, [[0, [[5, "text", ["c"], []]]]]]],
        ]);
        let truncation = TruncationState {
            deleted_range: Some(DeletedRange([2, 5])),
            history: ContextHistory::from_value(history).unwrap(),
        };
        let line = truncation.to_line(&5.into(), &messages);
        assert_eq!(
            line.anchors.keys().copied().collect::<Vec<_>>(),
            [1, 4, 5, 6, 7]
        );
        let logged = LoggedTruncation {
            deleted_range: truncation.deleted_range,
            history: truncation.history.clone(),
            time: None,
            anchors: line.anchors,
        };
        assert_eq!(*logged.of(&messages), truncation);
        let seen = |lost: usize| {
            let mut left = messages.clone();
            left.remove(lost);
            let truncation = logged.of(&left);
            let history = truncation.history.clone().into_value();
            let edited: Vec<usize> = edited(&history).collect();
            (truncation.deleted_range.unwrap().0[1], edited)
        };
        assert_eq!(seen(9), (5, vec![1, 4, 7]));
        assert_eq!(seen(7), (5, vec![1, 4]));
        assert_eq!(seen(6), (5, vec![1, 4, 6]));
        assert_eq!(seen(5), (4, vec![1, 4, 6]));
        assert_eq!(seen(4), (4, vec![1, 6]));
        assert_eq!(seen(0), (4, vec![0, 3, 6]));
        assert_eq!(logged.of(&messages[..3]).deleted_range.unwrap().0[1], 2);
    }
}
