//! From entries to the conversation of now.
//!
//! The newest entry and its parents, back to the beginning or to the last
//! compaction: their messages are the conversation. An entry whose parent is
//! not the newest one begins a branch there; what came after that parent stays
//! in the file and is no longer current.
//!
//! Entries that are written together and mean nothing alone (a compaction with
//! its summary and its copies) are a group: a head that says how many follow,
//! each the child of the one before. It counts once the last of them is there;
//! when something else comes first, lines were lost and it did not happen. Its
//! entries then lead back to where the conversation was, and so do copies and
//! summaries that lost their head: no summary counts without its head, and no
//! copy beside what it is a copy of.
//!
//! A parent
//! that is not in the file was lost; what stands in for it, for good, is the
//! entry before the one that named it first.

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
    truncation::TruncationState,
};
use crate::conversation::Outline;

/// The conversation of a task, as it is now.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Its messages, since the last compaction if there was one.
    pub messages: Vec<StoredMessage>,
    /// What is masked in it.
    pub truncation: Arc<TruncationState>,
    /// What is known of it.
    pub info: ConversationInfo,
    /// What reading the log found: `lines` are those that made sense.
    pub recovered: Recovered,
    /// The entry it follows from, with those before it; `None` in an empty log.
    pub entry: Option<Uuid>,
}

/// A stored message.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    /// As the client sent it.
    pub message: Arc<RawValue>,
    /// What was seen of it.
    pub outline: Outline,
    /// When it came, milliseconds since the Unix epoch.
    pub time: i64,
    /// The id of its entry.
    pub uuid: Uuid,
    /// Is it a compaction's summary?
    pub is_summary: bool,
}

/// What is known of a conversation besides its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationInfo {
    /// When the first message of the task came, milliseconds since the Unix epoch.
    pub created_at: i64,
    /// When the last one came, milliseconds since the Unix epoch.
    pub updated_at: i64,
    /// The beginning of the first text the user wrote.
    pub title: String,
    /// The agent's working directory, as recorded last.
    pub cwd: Option<String>,
    /// The branch checked out there, as recorded last.
    pub git_branch: Option<String>,
    /// How often it was compacted.
    pub compactions: u64,
}

impl Conversation {
    /// The messages, to be looked at.
    pub fn raw_messages(&self) -> Vec<&RawValue> {
        self.messages
            .iter()
            .map(|stored| &*stored.message)
            .collect()
    }

    /// What was seen of them, in the same order.
    pub fn outlines(&self) -> Vec<&Outline> {
        self.messages.iter().map(|stored| &stored.outline).collect()
    }

    pub(super) fn uuids(&self) -> Vec<Uuid> {
        self.messages.iter().map(|stored| stored.uuid).collect()
    }

    /// Is `self` an earlier state of `now`: the same messages, and perhaps
    /// more, with the same masks?
    pub(super) fn is_beginning_of(&self, now: &Self) -> bool {
        let same_messages = match self.messages.last() {
            // Whoever has this message has those before it.
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

/// All entries of a log, and what they come to.
#[derive(Debug, Default)]
pub(super) struct Entries {
    entries: Vec<LinkedEntry>,
    places: HashMap<Uuid, usize>,
    /// What stands in for entries that were lost: the one before, where the
    /// lost one was first named.
    substitutes: HashMap<Uuid, Option<usize>>,
    /// The newest entry.
    leaf: Option<usize>,
    /// The group at the end, while some of it is missing.
    open: Option<OpenGroup>,
    has_message: bool,
    info: ConversationInfo,
    conversation: Arc<Conversation>,
    /// Does the conversation no longer follow from the entries?
    is_stale: bool,
    /// Does the log say what is masked?
    is_truncation_logged: bool,
    /// Bytes the messages take.
    bytes: usize,
}

#[derive(Debug)]
struct LinkedEntry {
    entry: LogEntry,
    parent: Option<usize>,
    /// The head of the group it was written with.
    head: Option<usize>,
    /// Is it the head of a group that did not happen?
    is_void: bool,
    time: i64,
    origin: Arc<EntryOrigin>,
}

impl LinkedEntry {
    /// The message as it came first.
    fn first(&self) -> Uuid {
        self.entry.copy_of.unwrap_or(self.entry.uuid)
    }
}

/// A group of which entries are missing.
#[derive(Debug)]
struct OpenGroup {
    head: usize,
    last: usize,
    missing: u32,
}

/// A message to be copied.
#[derive(Clone, Debug)]
pub(super) struct SourceMessage {
    pub(super) message: Arc<RawValue>,
    pub(super) time: i64,
    pub(super) origin: Arc<EntryOrigin>,
    /// The message as it came first.
    pub(super) first: Uuid,
    pub(super) is_summary: bool,
}

/// The way back from an entry to the last compaction before it.
#[derive(Debug, Default)]
struct Ancestry {
    /// Places of the messages, oldest first.
    messages: Vec<usize>,
    /// Places of the entries that say what is masked, oldest first.
    truncations: Vec<usize>,
    /// The compaction.
    boundary: Option<usize>,
}

impl Entries {
    /// Takes the next entry of the file. False when it is there already.
    pub(super) fn push(&mut self, mut entry: LogEntry) -> bool {
        let place = self.entries.len();
        if self.places.contains_key(&entry.uuid) {
            return false;
        }
        let before = place.checked_sub(1);
        let parent = match entry.parent {
            Parent::Root => None,
            Parent::Id(parent) => self.resolve_parent(parent, before),
            Parent::Absent => before,
        };
        if let Some(leaf) = entry.previous_leaf {
            // What undoes this entry will name it.
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
        let head = self.group_head_of(&entry, place);
        self.move_leaf(&entry, place, parent, head, time);
        self.places.insert(entry.uuid, place);
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

    /// Where an entry is, or what stands in for it: `before`, unless it was
    /// missed already.
    fn resolve_parent(&mut self, uuid: Uuid, before: Option<usize>) -> Option<usize> {
        match self.places.get(&uuid) {
            Some(place) => Some(*place),
            None => *self.substitutes.entry(uuid).or_insert(before),
        }
    }

    fn update_info(&mut self, entry: &LogEntry, time: i64, origin: &EntryOrigin) {
        self.is_truncation_logged |= entry.truncation.is_some() || entry.is_boundary;
        if let Some((message, _)) = &entry.message {
            self.bytes = self.bytes.saturating_add(message.get().len());
            let facts = &mut self.info;
            if !self.has_message {
                self.has_message = true;
                facts.created_at = time;
                facts.updated_at = time;
            }
            facts.updated_at = facts.updated_at.max(time);
            if facts.title.is_empty() {
                facts.title = title_of(message.get()).unwrap_or_default();
            }
        }
        for (known, said) in [
            (&mut self.info.cwd, &origin.cwd),
            (&mut self.info.git_branch, &origin.git_branch),
        ] {
            if said.is_some() && known != said {
                known.clone_from(said);
            }
        }
    }

    /// The head of the group the next entry belongs to.
    fn group_head_of(&self, entry: &LogEntry, place: usize) -> Option<usize> {
        if !entry.is_group_member() {
            return None;
        }
        // Where a line between was lost, something else stands in for the parent.
        let parent = match entry.parent {
            Parent::Root => None,
            Parent::Id(parent) => self.places.get(&parent).copied(),
            Parent::Absent => place.checked_sub(1),
        }?;
        match &self.open {
            Some(open) => (open.last == parent).then_some(open.head),
            None => {
                let parent_entry = &self.entries.get(parent)?.entry;
                // A compaction that does not say what follows.
                let is_head = parent_entry.is_boundary && parent_entry.following == 0;
                is_head.then_some(parent)
            }
        }
    }

    fn move_leaf(
        &mut self,
        entry: &LogEntry,
        place: usize,
        parent: Option<usize>,
        head: Option<usize>,
        time: i64,
    ) {
        let is_next = parent == self.leaf;
        if let Some(mut open) = self.open.take() {
            self.is_stale = true;
            if head == Some(open.head) {
                open.last = place;
                open.missing -= 1;
                match open.missing {
                    0 => self.leaf = Some(place),
                    _ => self.open = Some(open),
                }
                return;
            }
            // What is missing will not come any more.
            if let Some(head) = self.entries.get_mut(open.head) {
                head.is_void = true;
                head.parent = self.leaf;
            }
        }
        if entry.following > 0 {
            self.open = Some(OpenGroup {
                head: place,
                last: place,
                missing: entry.following,
            });
            return;
        }
        self.leaf = Some(place);
        let is_plain = !entry.is_boundary && !entry.is_group_member() && entry.truncation.is_none();
        if self.is_stale || !is_next || !is_plain {
            self.is_stale = true;
        } else if let Some((message, outline)) = &entry.message {
            // The everyday case costs one message, not all.
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

    /// The conversation of now. `unlogged` is what is masked in it if the log
    /// doesn't say.
    pub(super) fn conversation(
        &mut self,
        recovered: Recovered,
        unlogged: impl FnOnce() -> TruncationState,
    ) -> Arc<Conversation> {
        if self.is_stale {
            self.rebuild();
        }
        let truncation = (!self.is_truncation_logged).then(unlogged);
        let entry = self.leaf();
        let now = &self.conversation;
        let is_same = now.entry == entry
            && now.recovered == recovered
            && now.info == self.info
            && truncation
                .as_ref()
                .is_none_or(|truncation| *truncation == *now.truncation);
        if !is_same {
            let conversation = Arc::make_mut(&mut self.conversation);
            conversation.entry = entry;
            conversation.recovered = recovered;
            conversation.info.clone_from(&self.info);
            if let Some(truncation) =
                truncation.filter(|truncation| *truncation != *conversation.truncation)
            {
                conversation.truncation = Arc::new(truncation);
            }
        }
        Arc::clone(&self.conversation)
    }

    /// Finds the conversation again from the entries.
    fn rebuild(&mut self) {
        let path = self.path(self.leaf);
        let messages = path.messages.iter().filter_map(|place| {
            let placed = self.entries.get(*place)?;
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
        let truncation = self.truncation_of(&path);
        self.info.compactions = self.compactions(&path);
        let conversation = Arc::make_mut(&mut self.conversation);
        conversation.messages = messages;
        conversation.truncation = truncation;
        self.is_stale = false;
    }

    /// The id of the newest entry.
    pub(super) fn leaf(&self) -> Option<Uuid> {
        self.uuid_at(self.leaf)
    }

    /// Does the log say what is masked? Not in a task that was copied here.
    pub(super) fn is_truncation_logged(&self) -> bool {
        self.is_truncation_logged
    }

    /// Bytes the messages take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Is there any message?
    pub(super) fn has_message(&self) -> bool {
        self.has_message
    }

    /// Is there no entry at all?
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A message of the conversation, to be copied.
    pub(super) fn source(&self, uuid: Uuid) -> Option<SourceMessage> {
        self.source_at(*self.places.get(&uuid)?)
    }

    fn truncation_of(&self, path: &Ancestry) -> Arc<TruncationState> {
        let last = path
            .truncations
            .last()
            .and_then(|place| self.entries.get(*place));
        match last.and_then(|placed| placed.entry.truncation.as_ref()) {
            Some(logged) => logged.of(&self.uuids(&path.messages)),
            None => Arc::default(),
        }
    }

    fn uuids(&self, places: &[usize]) -> Vec<Uuid> {
        let found = places.iter().filter_map(|place| self.entries.get(*place));
        found.map(|placed| placed.entry.uuid).collect()
    }

    fn uuid_at(&self, place: Option<usize>) -> Option<Uuid> {
        Some(self.entries.get(place?)?.entry.uuid)
    }

    fn source_at(&self, place: usize) -> Option<SourceMessage> {
        let placed = self.entries.get(place)?;
        Some(SourceMessage {
            message: Arc::clone(&placed.entry.message.as_ref()?.0),
            time: placed.time,
            origin: Arc::clone(&placed.origin),
            first: placed.first(),
            is_summary: placed.entry.is_summary,
        })
    }

    /// Parents stand before their children, so this ends.
    fn path(&self, leaf: Option<usize>) -> Ancestry {
        let mut path = Ancestry::default();
        let mut next = leaf;
        while let Some((place, placed)) =
            next.and_then(|place| Some((place, self.entries.get(place)?)))
        {
            if placed.is_void {
                next = placed.parent;
                continue;
            }
            if placed.entry.message.is_some() {
                path.messages.push(place);
            }
            if placed.entry.truncation.is_some() {
                path.truncations.push(place);
            }
            if placed.entry.is_boundary {
                path.boundary = Some(place);
                break;
            }
            next = placed.parent;
        }
        path.messages.reverse();
        path.truncations.reverse();
        let mut seen = HashMap::new();
        path.messages
            .retain(|place| self.is_current(*place, &mut seen));
        path
    }

    /// Does a message of a path count? `seen` are those before it, as they came
    /// first, and the heads of their groups.
    fn is_current(&self, place: usize, seen: &mut HashMap<Uuid, Option<usize>>) -> bool {
        let Some(placed) = self.entries.get(place) else {
            return false;
        };
        let is_complete =
            |head: &usize| (self.entries.get(*head)).is_some_and(|head| !head.is_void);
        let head = placed.head.filter(is_complete);
        if placed.entry.is_summary && head.is_none() {
            return false;
        }
        match seen.entry(placed.first()) {
            // A group may make several messages of one.
            hash_map::Entry::Occupied(there) => {
                placed.entry.copy_of.is_none() || (head.is_some() && *there.get() == head)
            }
            hash_map::Entry::Vacant(free) => {
                free.insert(head);
                true
            }
        }
    }

    fn compactions(&self, path: &Ancestry) -> u64 {
        let mut count = 0;
        let mut next = path.boundary;
        while let Some(placed) = next.and_then(|place| self.entries.get(place)) {
            count += u64::from(placed.entry.is_boundary && !placed.is_void);
            next = placed.parent;
        }
        count
    }
}
