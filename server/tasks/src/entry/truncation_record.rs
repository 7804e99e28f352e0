//! The truncation of a conversation, and how it follows its messages when log lines are lost.
//!
//! Truncation refers to messages by index. A lost log line shifts the messages after it, and an
//! edit would apply to the wrong message. The log therefore also stores the ids of the
//! messages, and indexes are corrected when it is read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Number;
use serde_with::skip_serializing_none;
use uuid::Uuid;

use sightline_conversation::{ContextHistory, DeletedRange};

/// The messages left out of a conversation, and the edits made to it. The stored messages are
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TruncationState {
    /// Messages left out.
    pub deleted_range: Option<DeletedRange>,
    /// Edits.
    pub history: ContextHistory,
}

/// Truncation as logged, from an entry on. Stored under the name `masks`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoggedTruncation {
    pub(crate) deleted_range: Option<DeletedRange>,
    #[serde(default, rename = "contextHistory")]
    pub(crate) history: ContextHistory,
    /// Timestamp of the edits made with it.
    pub(crate) time: Option<Number>,
    /// Ids of the messages that the indexes refer to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) anchors: BTreeMap<usize, Uuid>,
}

/// Returns the last index of a range that is not empty.
fn last_index(range: Option<DeletedRange>) -> Option<usize> {
    let DeletedRange([first, last]) = range?;
    let last_index = usize::try_from(last).ok()?;
    (last >= first).then_some(last_index)
}

impl TruncationState {
    /// Converts to the stored form, for a conversation with these messages.
    pub(crate) fn to_logged(&self, time: &Number, messages: &[Uuid]) -> LoggedTruncation {
        let last = last_index(self.deleted_range);
        let meant = self
            .history
            .edited()
            .chain(last)
            .chain(last.map(|last| last.saturating_add(1)));
        let anchors = meant
            .filter_map(|index| Some((index, *messages.get(index)?)))
            .collect();
        LoggedTruncation {
            deleted_range: self.deleted_range,
            history: self.history.clone(),
            time: Some(time.clone()),
            anchors,
        }
    }
}

impl LoggedTruncation {
    /// Returns whether this records the truncation from before it was logged. Decisions never have
    /// time 0.
    pub(crate) fn is_from_unlogged(&self) -> bool {
        self.time.as_ref().and_then(Number::as_f64) == Some(0.0)
    }

    /// Resolves the truncation for a conversation with these messages.
    pub(crate) fn resolve(&self, messages: &[Uuid]) -> Arc<TruncationState> {
        let is_aligned = self
            .anchors
            .iter()
            .all(|(index, uuid)| messages.get(*index) == Some(uuid));
        let mut truncation = TruncationState {
            deleted_range: self.deleted_range,
            history: self.history.clone(),
        };
        if !is_aligned {
            self.realign(&mut truncation, messages);
        }
        Arc::new(truncation)
    }

    /// Moves the indexes with the messages they refer to.
    fn realign(&self, truncation: &mut TruncationState, messages: &[Uuid]) {
        let positions: HashMap<&Uuid, usize> = messages.iter().zip(0..).collect();
        let new_index = |index: usize| positions.get(self.anchors.get(&index)?).copied();
        // The edit of a lost message is dropped.
        truncation.history.reindex(|index| {
            let is_anchored = self.anchors.contains_key(&index);
            (!is_anchored).then_some(index).or_else(|| new_index(index))
        });
        let Some(last) = last_index(truncation.deleted_range) else {
            return;
        };
        let now = new_index(last.saturating_add(1))
            .map(|next| next.saturating_sub(1))
            .or_else(|| new_index(last))
            .unwrap_or(last)
            .min(messages.len().saturating_sub(1));
        if let (Some(range), Ok(now)) = (&mut truncation.deleted_range, i64::try_from(now)) {
            range.0[1] = now.max(DeletedRange::EMPTY.0[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_follows_its_messages() {
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
        let logged = truncation.to_logged(&5.into(), &messages);
        assert_eq!(
            logged.anchors.keys().copied().collect::<Vec<_>>(),
            [1, 4, 5, 6, 7]
        );
        assert_eq!(*logged.resolve(&messages), truncation);
        let seen = |lost: usize| {
            let mut left = messages.clone();
            left.remove(lost);
            let truncation = logged.resolve(&left);
            let edited: Vec<usize> = truncation.history.edited().collect();
            (truncation.deleted_range.unwrap().0[1], edited)
        };
        assert_eq!(seen(9), (5, vec![1, 4, 7]));
        assert_eq!(seen(7), (5, vec![1, 4]));
        assert_eq!(seen(6), (5, vec![1, 4, 6]));
        assert_eq!(seen(5), (4, vec![1, 4, 6]));
        assert_eq!(seen(4), (4, vec![1, 6]));
        assert_eq!(seen(0), (4, vec![0, 3, 6]));
        assert_eq!(
            logged.resolve(&messages[..3]).deleted_range.unwrap().0[1],
            2
        );
    }
}
