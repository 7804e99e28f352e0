//! Derives the current conversation from the entries of a log.
//!
//! The conversation consists of the messages of the newest entry and its ancestors, back to the
//! start or to the last compaction. An entry whose parent is not the newest entry starts a
//! branch there. Entries after that parent stay in the file but are no longer current.
//!
//! A parent that is not in the file was lost. The entry before the one that first referred to
//! it permanently replaces it.

mod rewind;

use std::{collections::HashMap, ops::Range, sync::Arc};

use serde_json::value::RawValue;
use sightline_protocol::task::Recovered;
use uuid::Uuid;

pub(super) use rewind::CompactionUndo;
pub use rewind::RewindPoint;

use super::{
    entry::{
        EntryMessage, EntryOrigin, LogEntry, Parent,
        old_format::{self, OpenCompaction},
        truncation_record::{LoggedTruncation, TruncationState},
    },
    title::title_of,
};
use sightline_conversation::Outline;

/// The current conversation of a task.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Messages since the last compaction.
    pub messages: Vec<StoredMessage>,
    /// Messages left out and edits.
    pub truncation: Arc<TruncationState>,
    /// Metadata.
    pub info: ConversationInfo,
    /// How many lines of the log could be read.
    pub recovered: Recovered,
    /// The entry it is derived from; `None` for an empty log.
    pub entry: Option<Uuid>,
}

/// A stored message.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    /// The message as the client sent it.
    pub message: Arc<RawValue>,
    /// Its scan result.
    pub outline: Outline,
    /// When it was appended, in milliseconds since the Unix epoch.
    pub time: i64,
    /// Id of its entry.
    pub uuid: Uuid,
    /// Whether it is the summary of a compaction.
    pub is_summary: bool,
}

/// Metadata of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationInfo {
    /// Time of the first message of the task, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Time of the last message, in milliseconds since the Unix epoch.
    pub updated_at: i64,
    /// Start of the first text that the user wrote.
    pub title: String,
    /// Last recorded working directory of the agent.
    pub cwd: Option<String>,
    /// Last recorded branch of that directory.
    pub git_branch: Option<String>,
    /// Number of compactions.
    pub compactions: u64,
}

impl Conversation {
    /// Returns the messages as JSON.
    pub fn raw_messages(&self) -> Vec<&RawValue> {
        self.messages
            .iter()
            .map(|stored| &*stored.message)
            .collect()
    }

    /// Returns the outlines of the messages, in the same order.
    pub fn outlines(&self) -> Vec<&Outline> {
        self.messages.iter().map(|stored| &stored.outline).collect()
    }

    pub(super) fn uuids(&self) -> Vec<Uuid> {
        self.messages.iter().map(|stored| stored.uuid).collect()
    }

    /// Returns whether `self` is an earlier state of `now`: the same messages, possibly followed by
    /// more, with the same truncation.
    pub(super) fn is_prefix_of(&self, now: &Self) -> bool {
        let same_messages = match self.messages.last() {
            // A conversation with this message has the same messages before it.
            Some(last) => now
                .messages
                .get(self.messages.len() - 1)
                .is_some_and(|there| there.uuid == last.uuid),
            None => true,
        };
        same_messages
            && (Arc::ptr_eq(&self.truncation, &now.truncation) || self.truncation == now.truncation)
    }
}

/// All entries of a log, and the conversation derived from them.
#[derive(Debug, Default)]
pub(super) struct Entries {
    entries: Vec<LinkedEntry>,
    /// The messages of all entries.
    messages: Vec<LoggedMessage>,
    /// Indexes of entries, by their id and those of their messages.
    index_by_id: HashMap<Uuid, usize>,
    /// Replacements for lost parents: the entry before the one that first referred to the lost
    /// parent.
    substitutes: HashMap<Uuid, Option<usize>>,
    /// The newest entry.
    leaf: Option<usize>,
    /// A compaction at the end whose lines are not complete, in the format of version 0.1.0.
    open: Option<OpenCompaction>,
    info: ConversationInfo,
    conversation: Arc<Conversation>,
    /// Whether the conversation must be derived again.
    is_stale: bool,
    /// Whether an entry records the truncation.
    is_truncation_logged: bool,
    /// Size of the messages, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct LinkedEntry {
    uuid: Uuid,
    parent: Option<usize>,
    /// Indexes of its messages.
    messages: Range<usize>,
    is_boundary: bool,
    is_rewind: bool,
    time: i64,
    truncation: Option<LoggedTruncation>,
    previous_leaf: Option<Uuid>,
}

#[derive(Debug)]
struct LoggedMessage {
    stored: StoredMessage,
    /// Id of the original message.
    first: Uuid,
    /// Index of its entry.
    entry: usize,
}

impl LoggedMessage {
    fn is_copy(&self) -> bool {
        self.first != self.stored.uuid
    }
}

/// The ancestors of an entry, back to the last compaction.
#[derive(Debug, Default)]
struct Ancestry {
    /// Indexes of the messages, oldest first.
    messages: Vec<usize>,
    /// Indexes of the entries that record the truncation, oldest first.
    truncations: Vec<usize>,
    /// Index of the compaction.
    boundary: Option<usize>,
}

impl Entries {
    /// Adds the next entry of the file. Returns false if it is a duplicate.
    pub(super) fn push(&mut self, entry: LogEntry) -> bool {
        let uuid = entry.uuid;
        if self.index_by_id.contains_key(&uuid)
            || self.open.as_ref().is_some_and(|open| open.contains(uuid))
        {
            return false;
        }
        if let Some(entry) = old_format::join(&mut self.open, entry) {
            self.add(entry);
        }
        true
    }

    fn add(&mut self, entry: LogEntry) {
        let index = self.entries.len();
        let before = index.checked_sub(1);
        let parent = match entry.parent {
            Parent::Root => None,
            Parent::Id(parent) => self.resolve_parent(parent, before),
            Parent::Absent => before,
        };
        if let Some(leaf) = entry.previous_leaf {
            // Undoing this entry will refer to that leaf.
            self.resolve_parent(leaf, before);
        }
        let last = before.and_then(|before| self.entries.get(before));
        let time = entry.time.or(last.map(|last| last.time)).unwrap_or(0);
        let start = self.messages.len();
        for message in entry.messages {
            self.add_message(message, time, index);
        }
        self.is_truncation_logged |= entry.truncation.is_some() || entry.is_boundary;
        self.update_origin(entry.origin);
        let linked = LinkedEntry {
            uuid: entry.uuid,
            parent,
            messages: start..self.messages.len(),
            is_boundary: entry.is_boundary,
            is_rewind: entry.is_rewind,
            time,
            truncation: entry.truncation,
            previous_leaf: entry.previous_leaf,
        };
        self.move_leaf(&linked, index);
        self.index_by_id.insert(entry.uuid, index);
        self.entries.push(linked);
    }

    /// Adds a message of the entry with this index.
    fn add_message(&mut self, message: EntryMessage, time: i64, entry: usize) {
        let source = message.copy_of.and_then(|uuid| self.message(uuid));
        let first = source.map(|source| source.first).or(message.copy_of);
        let time = source.map_or(time, |source| source.stored.time);
        let is_summary =
            message.is_summary || source.is_some_and(|source| source.stored.is_summary);
        let (text, outline) = match (message.message, source) {
            (Some(own), _) => {
                self.bytes = self.bytes.saturating_add(own.0.get().len());
                own
            }
            (None, Some(source)) => (
                Arc::clone(&source.stored.message),
                source.stored.outline.clone(),
            ),
            // The line of the original was lost.
            (None, None) => return,
        };
        let info = &mut self.info;
        if self.messages.is_empty() {
            info.created_at = time;
            info.updated_at = time;
        }
        info.updated_at = info.updated_at.max(time);
        if info.title.is_empty() {
            info.title = title_of(text.get()).unwrap_or_default();
        }
        self.index_by_id.insert(message.uuid, entry);
        self.messages.push(LoggedMessage {
            first: first.unwrap_or(message.uuid),
            entry,
            stored: StoredMessage {
                message: text,
                outline,
                time,
                uuid: message.uuid,
                is_summary,
            },
        });
    }

    fn message(&self, uuid: Uuid) -> Option<&LoggedMessage> {
        let entry = self.entries.get(*self.index_by_id.get(&uuid)?)?;
        let messages = self.messages.get(entry.messages.clone())?;
        messages.iter().find(|logged| logged.stored.uuid == uuid)
    }

    /// Returns the index of an entry or its replacement. An entry that is missing for the first
    /// time is replaced by `before`.
    fn resolve_parent(&mut self, uuid: Uuid, before: Option<usize>) -> Option<usize> {
        match self.index_by_id.get(&uuid) {
            Some(index) => Some(*index),
            None => *self.substitutes.entry(uuid).or_insert(before),
        }
    }

    fn update_origin(&mut self, origin: EntryOrigin) {
        for (known, recorded) in [
            (&mut self.info.cwd, origin.cwd),
            (&mut self.info.git_branch, origin.git_branch),
        ] {
            if recorded.is_some() {
                *known = recorded;
            }
        }
    }

    fn move_leaf(&mut self, entry: &LinkedEntry, index: usize) {
        let is_next = entry.parent == self.leaf;
        self.leaf = Some(index);
        let added = self.messages.get(entry.messages.clone());
        let is_plain = !entry.is_boundary && entry.truncation.is_none();
        match added {
            // The common case adds one message and does not derive the conversation again.
            Some(added)
                if !self.is_stale
                    && is_next
                    && is_plain
                    && added.iter().all(|logged| !logged.is_copy()) =>
            {
                let added = added.iter().map(|logged| logged.stored.clone());
                Arc::make_mut(&mut self.conversation).messages.extend(added);
            }
            _ => self.is_stale = true,
        }
    }

    /// Returns the current conversation. `unlogged` is the truncation if the log does not
    /// record it.
    pub(super) fn conversation(
        &mut self,
        recovered: Recovered,
        unlogged: &TruncationState,
    ) -> Arc<Conversation> {
        if self.is_stale {
            self.rebuild();
        }
        let truncation = (!self.is_truncation_logged).then_some(unlogged);
        let entry = self.leaf();
        let now = &self.conversation;
        let is_same = now.entry == entry
            && now.recovered == recovered
            && now.info == self.info
            && truncation.is_none_or(|truncation| *truncation == *now.truncation);
        if !is_same {
            let conversation = Arc::make_mut(&mut self.conversation);
            conversation.entry = entry;
            conversation.recovered = recovered;
            conversation.info.clone_from(&self.info);
            if let Some(truncation) =
                truncation.filter(|truncation| **truncation != *conversation.truncation)
            {
                conversation.truncation = Arc::new(truncation.clone());
            }
        }
        Arc::clone(&self.conversation)
    }

    /// Derives the conversation from all entries.
    fn rebuild(&mut self) {
        let ancestry = self.ancestry(self.leaf);
        let messages = self
            .logged(&ancestry)
            .map(|logged| logged.stored.clone())
            .collect();
        let truncation = self.truncation_of(&ancestry);
        self.info.compactions = self.compactions(&ancestry);
        let conversation = Arc::make_mut(&mut self.conversation);
        conversation.messages = messages;
        conversation.truncation = truncation;
        self.is_stale = false;
    }

    /// Returns the id of the newest entry.
    pub(super) fn leaf(&self) -> Option<Uuid> {
        self.uuid_at(self.leaf)
    }

    /// Returns whether the log records the truncation. It does not in a task that was copied by
    /// hand.
    pub(super) fn is_truncation_logged(&self) -> bool {
        self.is_truncation_logged
    }

    /// Returns the size of the messages, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_message(&self) -> bool {
        !self.messages.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn truncation_of(&self, ancestry: &Ancestry) -> Arc<TruncationState> {
        let last = ancestry
            .truncations
            .last()
            .and_then(|index| self.entries.get(*index));
        match last.and_then(|entry| entry.truncation.as_ref()) {
            Some(logged) => logged.resolve(&self.uuids(ancestry)),
            None => Arc::default(),
        }
    }

    fn logged(&self, ancestry: &Ancestry) -> impl Iterator<Item = &LoggedMessage> {
        ancestry
            .messages
            .iter()
            .filter_map(|index| self.messages.get(*index))
    }

    fn uuids(&self, ancestry: &Ancestry) -> Vec<Uuid> {
        self.logged(ancestry)
            .map(|logged| logged.stored.uuid)
            .collect()
    }

    fn uuid_at(&self, index: Option<usize>) -> Option<Uuid> {
        Some(self.entries.get(index?)?.uuid)
    }

    /// Collects the ancestors of an entry. Ends because parents come before their children.
    fn ancestry(&self, leaf: Option<usize>) -> Ancestry {
        let mut ancestry = Ancestry::default();
        let mut next = leaf;
        while let Some((index, entry)) =
            next.and_then(|index| Some((index, self.entries.get(index)?)))
        {
            ancestry.messages.extend(entry.messages.clone().rev());
            if entry.truncation.is_some() {
                ancestry.truncations.push(index);
            }
            if entry.is_boundary {
                ancestry.boundary = Some(index);
                break;
            }
            next = entry.parent;
        }
        ancestry.messages.reverse();
        ancestry.truncations.reverse();
        // If a line was lost, an undo may follow the messages that it copies. One entry may contain
        // several copies of a message.
        let mut seen = HashMap::new();
        ancestry.messages.retain(|index| {
            self.messages.get(*index).is_some_and(|logged| {
                let first = *seen.entry(logged.first).or_insert(logged.entry);
                !logged.is_copy() || first == logged.entry
            })
        });
        ancestry
    }

    fn compactions(&self, ancestry: &Ancestry) -> u64 {
        let mut count = 0;
        let mut next = ancestry.boundary;
        while let Some(entry) = next.and_then(|index| self.entries.get(index)) {
            count += u64::from(entry.is_boundary);
            next = entry.parent;
        }
        count
    }
}
