//! Reconstructs earlier states of a conversation: at a point in time, without compactions, or
//! with fewer edits.

use std::{collections::HashSet, sync::Arc};

use serde_json::Number;
use uuid::Uuid;

use super::{
    super::entry::truncation_record::{LoggedTruncation, TruncationState},
    Ancestry, Conversation, Entries, LinkedEntry,
};

/// The state after undoing compactions.
#[derive(Debug)]
pub(in super::super) struct CompactionUndo {
    /// The entry to continue from.
    pub(in super::super) leaf: Option<Uuid>,
    /// Later messages, which are kept.
    pub(in super::super) retained: Vec<Uuid>,
    /// Messages of the conversation at `leaf`.
    pub(in super::super) before: Vec<Uuid>,
    /// Truncation at `leaf`.
    pub(in super::super) truncation: Arc<TruncationState>,
    ancestry: Ancestry,
}

/// A point in the history of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindPoint {
    /// Before the first message.
    Beginning,
    /// When this entry was the newest; see [`Conversation::entry`].
    Entry(Uuid),
    /// A time, in milliseconds since the Unix epoch.
    Time(i64),
}

/// An earlier state of a conversation.
#[derive(Debug)]
pub(in super::super) struct PastConversation {
    /// The newest entry at that point.
    pub(in super::super) leaf: Option<Uuid>,
    /// Number of compactions.
    pub(in super::super) compactions: u64,
    /// Its messages.
    pub(in super::super) messages: Vec<Uuid>,
    /// Its truncation, if the log did not record it yet.
    pub(in super::super) unlogged: Option<TruncationState>,
}

impl Entries {
    /// Returns the newest entry before a rewind or its undo.
    pub(in super::super) fn rewound_leaf(&self, uuid: Uuid) -> Option<Uuid> {
        let index = *self.index_by_id.get(&uuid)?;
        let entry = self.entries.get(index)?;
        let leaf = entry.previous_leaf.filter(|_| entry.is_rewind)?;
        if self.index_by_id.contains_key(&leaf) {
            Some(leaf)
        } else {
            self.uuid_at(*self.substitutes.get(&leaf)?)
        }
    }

    /// Returns the state of the conversation at a point. Returns `None` if the log does not contain
    /// the entry.
    pub(in super::super) fn state_at(&self, moment: RewindPoint) -> Option<PastConversation> {
        let leaf = match moment {
            RewindPoint::Beginning => None,
            RewindPoint::Entry(uuid) => Some(*self.index_by_id.get(&uuid)?),
            RewindPoint::Time(time) => self.leaf_at(time),
        };
        let ancestry = self.ancestry(leaf);
        let messages = self.uuids(&ancestry);
        let is_truncation_recorded =
            !ancestry.truncations.is_empty() || ancestry.boundary.is_some() || leaf.is_none();
        let unlogged = (!is_truncation_recorded)
            .then(|| self.unlogged(&messages))
            .flatten();
        Some(PastConversation {
            leaf: self.uuid_at(leaf),
            compactions: self.compactions(&ancestry),
            messages,
            unlogged,
        })
    }

    /// Returns the newest entry at a time. Every entry is the newest when it is appended.
    fn leaf_at(&self, time: i64) -> Option<usize> {
        let later = self.entries.iter().position(|entry| entry.time > time);
        later.unwrap_or(self.entries.len()).checked_sub(1)
    }

    /// Returns the truncation from before the log recorded it, for a conversation with these
    /// messages.
    fn unlogged(&self, messages: &[Uuid]) -> Option<TruncationState> {
        let mut logged = self
            .entries
            .iter()
            .filter_map(|entry| entry.truncation.as_ref());
        let first = logged.next().filter(|first| first.is_from_unlogged())?;
        let mut truncation = TruncationState::clone(&first.resolve(messages));
        truncation
            .history
            .reindex(|index| (index < messages.len()).then_some(index));
        Some(truncation)
    }

    /// Undoes the compactions newer than `time`, from the newest backwards, and stops at the first
    /// that is not newer. Returns `None` if there is none to undo.
    pub(in super::super) fn without_compactions(&self, time: f64) -> Option<CompactionUndo> {
        let mut ancestry = self.ancestry(self.leaf);
        let mut undone = None;
        let mut later: Vec<usize> = Vec::new();
        while let Some(boundary) = ancestry.boundary.and_then(|index| self.entries.get(index)) {
            if boundary.time as f64 <= time {
                break;
            }
            later.splice(0..0, ancestry.messages);
            ancestry = self.ancestry(boundary.parent);
            undone = Some(boundary.parent);
        }
        let leaf = self.uuid_at(undone?);
        let mut seen: HashSet<Uuid> = self.logged(&ancestry).map(|logged| logged.first).collect();
        let retained = later
            .iter()
            .filter_map(|index| self.messages.get(*index))
            .filter(|logged| !logged.stored.is_summary && seen.insert(logged.first))
            .map(|logged| logged.stored.uuid)
            .collect();
        Some(CompactionUndo {
            leaf,
            retained,
            before: self.uuids(&ancestry),
            truncation: self.truncation_of(&ancestry),
            ancestry,
        })
    }

    /// Returns the truncation without the edits made after `time`.
    pub(in super::super) fn rolled_back(
        &self,
        now: &Conversation,
        undone: Option<&CompactionUndo>,
        time: &Number,
    ) -> TruncationState {
        let current;
        let (ancestry, truncation) = match undone {
            Some(undone) => (&undone.ancestry, &undone.truncation),
            None => {
                current = self.ancestry(self.leaf);
                (&current, &now.truncation)
            }
        };
        let mut truncation = TruncationState::clone(truncation);
        truncation.history.rollback(time);
        let is_newer = |logged: &LoggedTruncation, entry: &LinkedEntry| {
            let made = logged
                .time
                .as_ref()
                .and_then(Number::as_f64)
                .unwrap_or(entry.time as f64);
            time.as_f64().is_some_and(|time| made > time)
        };
        let mut logged = ancestry.truncations.iter().rev().filter_map(|index| {
            let entry = self.entries.get(*index)?;
            Some((entry, entry.truncation.as_ref()?))
        });
        if !ancestry.truncations.is_empty() {
            let kept = logged.find(|(entry, logged)| !is_newer(logged, entry));
            let messages = self.uuids(ancestry);
            truncation.deleted_range =
                kept.and_then(|(_, kept)| kept.resolve(&messages).deleted_range);
        }
        truncation
    }
}
