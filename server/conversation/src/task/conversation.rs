//! Derives the current conversation from the entries of a log.
//!
//! The conversation consists of the messages of the newest entry and its ancestors, back to the
//! start or to the last compaction. An entry whose parent is not the newest entry starts a
//! branch there. Entries after that parent stay in the file but are no longer current.
//!
//! Entries that are meaningful only together form a group: a compaction with its summary and
//! its copied messages. The head of the group stores how many entries follow; each is the child
//! of the one before. A group takes effect when its last entry is present. If another entry
//! comes first, lines were lost and the group is void. The entries of a void group then lead
//! back to the state before it, and so do copies and summaries without a head: a summary counts
//! only with its head, and a copy does not count next to its original.
//!
//! A parent that is not in the file was lost. The entry before the one that first referred to
//! it permanently replaces it.

mod rewind;

use std::{
    collections::{HashMap, hash_map},
    sync::Arc,
};

use serde_json::value::RawValue;
use sightline_protocol::task::Recovered;
use uuid::Uuid;

pub(super) use rewind::CompactionUndo;
pub use rewind::RewindPoint;

use super::{
    entry::{EntryOrigin, LogEntry, Parent},
    title::title_of,
    truncation_record::TruncationState,
};
use crate::Outline;

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
    index_by_id: HashMap<Uuid, usize>,
    /// Replacements for lost parents: the entry before the one that first referred to the lost
    /// parent.
    substitutes: HashMap<Uuid, Option<usize>>,
    /// The newest entry.
    leaf: Option<usize>,
    /// The incomplete group at the end.
    open_group: Option<OpenGroup>,
    has_message: bool,
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
    entry: LogEntry,
    parent: Option<usize>,
    /// Head of the group it belongs to.
    head: Option<usize>,
    /// Whether it is the head of a void group.
    is_void: bool,
    time: i64,
    origin: Arc<EntryOrigin>,
}

impl LinkedEntry {
    /// Returns the id of the original message.
    fn first(&self) -> Uuid {
        self.entry.copy_of.unwrap_or(self.entry.uuid)
    }
}

/// An incomplete group.
#[derive(Debug)]
struct OpenGroup {
    head: usize,
    last: usize,
    missing: u32,
}

/// A message to copy.
#[derive(Clone, Debug)]
pub(super) struct SourceMessage {
    pub(super) message: Arc<RawValue>,
    pub(super) time: i64,
    pub(super) origin: Arc<EntryOrigin>,
    /// Id of the original message.
    pub(super) first: Uuid,
    pub(super) is_summary: bool,
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
    pub(super) fn push(&mut self, mut entry: LogEntry) -> bool {
        let index = self.entries.len();
        if self.index_by_id.contains_key(&entry.uuid) {
            return false;
        }
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
        let origin = std::mem::take(&mut entry.origin);
        let origin = match last {
            Some(last) if *last.origin == origin => Arc::clone(&last.origin),
            _ => Arc::new(origin),
        };
        self.update_info(&entry, time, &origin);
        let head = self.group_head_of(&entry, index);
        self.move_leaf(&entry, index, parent, head, time);
        self.index_by_id.insert(entry.uuid, index);
        self.entries.push(LinkedEntry {
            entry,
            parent,
            head,
            is_void: false,
            time,
            origin,
        });
        true
    }

    /// Returns the index of an entry or its replacement. An entry that is missing for the first
    /// time is replaced by `before`.
    fn resolve_parent(&mut self, uuid: Uuid, before: Option<usize>) -> Option<usize> {
        match self.index_by_id.get(&uuid) {
            Some(index) => Some(*index),
            None => *self.substitutes.entry(uuid).or_insert(before),
        }
    }

    fn update_info(&mut self, entry: &LogEntry, time: i64, origin: &EntryOrigin) {
        self.is_truncation_logged |= entry.truncation.is_some() || entry.is_boundary;
        if let Some((message, _)) = &entry.message {
            self.bytes = self.bytes.saturating_add(message.get().len());
            let info = &mut self.info;
            if !self.has_message {
                self.has_message = true;
                info.created_at = time;
                info.updated_at = time;
            }
            info.updated_at = info.updated_at.max(time);
            if info.title.is_empty() {
                info.title = title_of(message.get()).unwrap_or_default();
            }
        }
        for (known, recorded) in [
            (&mut self.info.cwd, &origin.cwd),
            (&mut self.info.git_branch, &origin.git_branch),
        ] {
            if recorded.is_some() && known != recorded {
                known.clone_from(recorded);
            }
        }
    }

    /// Returns the head of the group that the next entry belongs to.
    fn group_head_of(&self, entry: &LogEntry, index: usize) -> Option<usize> {
        if !entry.is_group_member() {
            return None;
        }
        // If the line of the parent was lost, its replacement does not count.
        let parent = match entry.parent {
            Parent::Root => None,
            Parent::Id(parent) => self.index_by_id.get(&parent).copied(),
            Parent::Absent => index.checked_sub(1),
        }?;
        match &self.open_group {
            Some(open) => (open.last == parent).then_some(open.head),
            None => {
                let parent_entry = &self.entries.get(parent)?.entry;
                // A compaction in an older format, which does not store how many entries follow.
                let is_head = parent_entry.is_boundary && parent_entry.following == 0;
                is_head.then_some(parent)
            }
        }
    }

    fn move_leaf(
        &mut self,
        entry: &LogEntry,
        index: usize,
        parent: Option<usize>,
        head: Option<usize>,
        time: i64,
    ) {
        let is_next = parent == self.leaf;
        if let Some(mut open) = self.open_group.take() {
            self.is_stale = true;
            if head == Some(open.head) {
                open.last = index;
                open.missing -= 1;
                match open.missing {
                    0 => self.leaf = Some(index),
                    _ => self.open_group = Some(open),
                }
                return;
            }
            // The missing entries will never arrive.
            if let Some(head) = self.entries.get_mut(open.head) {
                head.is_void = true;
                head.parent = self.leaf;
            }
        }
        if entry.following > 0 {
            self.open_group = Some(OpenGroup {
                head: index,
                last: index,
                missing: entry.following,
            });
            return;
        }
        self.leaf = Some(index);
        let is_plain = !entry.is_boundary && !entry.is_group_member() && entry.truncation.is_none();
        if self.is_stale || !is_next || !is_plain {
            self.is_stale = true;
        } else if let Some((message, outline)) = &entry.message {
            // The common case adds one message and does not derive the conversation again.
            Arc::make_mut(&mut self.conversation)
                .messages
                .push(StoredMessage {
                    message: Arc::clone(message),
                    outline: outline.clone(),
                    time,
                    uuid: entry.uuid,
                    is_summary: entry.is_summary,
                });
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
        let messages = ancestry.messages.iter().filter_map(|index| {
            let placed = self.entries.get(*index)?;
            let (message, outline) = placed.entry.message.as_ref()?;
            Some(StoredMessage {
                message: Arc::clone(message),
                outline: outline.clone(),
                time: placed.time,
                uuid: placed.entry.uuid,
                is_summary: placed.entry.is_summary,
            })
        });
        let messages = messages.collect();
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
        self.has_message
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns a message of the conversation for copying.
    pub(super) fn source(&self, uuid: Uuid) -> Option<SourceMessage> {
        self.source_at(*self.index_by_id.get(&uuid)?)
    }

    fn truncation_of(&self, ancestry: &Ancestry) -> Arc<TruncationState> {
        let last = ancestry
            .truncations
            .last()
            .and_then(|index| self.entries.get(*index));
        match last.and_then(|placed| placed.entry.truncation.as_ref()) {
            Some(logged) => logged.resolve(&self.uuids(&ancestry.messages)),
            None => Arc::default(),
        }
    }

    fn uuids(&self, indexes: &[usize]) -> Vec<Uuid> {
        let found = indexes.iter().filter_map(|index| self.entries.get(*index));
        found.map(|placed| placed.entry.uuid).collect()
    }

    fn uuid_at(&self, index: Option<usize>) -> Option<Uuid> {
        Some(self.entries.get(index?)?.entry.uuid)
    }

    fn source_at(&self, index: usize) -> Option<SourceMessage> {
        let placed = self.entries.get(index)?;
        Some(SourceMessage {
            message: Arc::clone(&placed.entry.message.as_ref()?.0),
            time: placed.time,
            origin: Arc::clone(&placed.origin),
            first: placed.first(),
            is_summary: placed.entry.is_summary,
        })
    }

    /// Collects the ancestors of an entry. Ends because parents come before their children.
    fn ancestry(&self, leaf: Option<usize>) -> Ancestry {
        let mut ancestry = Ancestry::default();
        let mut next = leaf;
        while let Some((index, placed)) =
            next.and_then(|index| Some((index, self.entries.get(index)?)))
        {
            if placed.is_void {
                next = placed.parent;
                continue;
            }
            if placed.entry.message.is_some() {
                ancestry.messages.push(index);
            }
            if placed.entry.truncation.is_some() {
                ancestry.truncations.push(index);
            }
            if placed.entry.is_boundary {
                ancestry.boundary = Some(index);
                break;
            }
            next = placed.parent;
        }
        ancestry.messages.reverse();
        ancestry.truncations.reverse();
        let mut seen = HashMap::new();
        ancestry
            .messages
            .retain(|index| self.is_current(*index, &mut seen));
        ancestry
    }

    /// Returns whether a message of the ancestry counts. `seen` maps the original ids of the
    /// messages before it to the heads of their groups.
    fn is_current(&self, index: usize, seen: &mut HashMap<Uuid, Option<usize>>) -> bool {
        let Some(placed) = self.entries.get(index) else {
            return false;
        };
        let is_complete =
            |head: &usize| (self.entries.get(*head)).is_some_and(|head| !head.is_void);
        let head = placed.head.filter(is_complete);
        if placed.entry.is_summary && head.is_none() {
            return false;
        }
        match seen.entry(placed.first()) {
            // A group may create several messages from one.
            hash_map::Entry::Occupied(there) => {
                placed.entry.copy_of.is_none() || (head.is_some() && *there.get() == head)
            }
            hash_map::Entry::Vacant(free) => {
                free.insert(head);
                true
            }
        }
    }

    fn compactions(&self, ancestry: &Ancestry) -> u64 {
        let mut count = 0;
        let mut next = ancestry.boundary;
        while let Some(placed) = next.and_then(|index| self.entries.get(index)) {
            count += u64::from(placed.entry.is_boundary && !placed.is_void);
            next = placed.parent;
        }
        count
    }
}
