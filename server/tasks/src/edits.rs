//! Operations on a conversation that can be undone: compaction, rewind to an earlier state, and
//! rollback of edits to a time.
//!
//! Each operation appends entries to the log and never removes a message. Parent links
//! determine which messages are current. An operation is durable before it takes effect.

use std::{fmt, str::FromStr};

use serde_json::{Number, value::RawValue};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    storage::{TaskDir, TaskId, TaskLock, UnsyncedWrite},
};
use sightline_protocol::{compaction::CompactionTrigger, error::ErrorKind};
use uuid::Uuid;

use super::{
    CommitResult, Conversation, EntryMeta, RewindPoint, TaskStore,
    conversation::CompactionUndo,
    entry::{
        COMPACT_BOUNDARY, COMPACT_UNDO, CompactMetadata, LogLine, MessageLine, REWIND, REWIND_UNDO,
        ROLLBACK,
    },
    log::{Log, write_history_file},
};
use sightline_conversation::ContextHistory;

/// A compaction to store.
#[derive(Clone, Debug)]
pub struct Compaction<'a> {
    /// What triggered it.
    pub trigger: CompactionTrigger,
    /// Tokens before the compaction.
    pub pre_tokens: u64,
    /// Tokens after the compaction.
    pub post_tokens: u64,
    /// Why there is no summary.
    pub fallback_reason: Option<String>,
    /// Messages of the compacted conversation.
    pub messages: Vec<CompactedMessage<'a>>,
}

/// A message of a compacted conversation.
#[derive(Clone, Copy, Debug)]
pub struct CompactedMessage<'a> {
    /// The message.
    pub message: &'a RawValue,
    /// Index of the message it copies or was made from; `None` for a summary.
    pub source: Option<usize>,
}

/// Id of a rewind, for undoing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RewindId(Uuid);

impl fmt::Display for RewindId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RewindId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let id = Uuid::parse_str(text).map_err(|_| {
            let shown: String = text.chars().take(64).collect();
            Error::invalid(format!(
                "{shown:?} is not a rewind id; pass the id that a rewind returned"
            ))
        })?;
        Ok(Self(id))
    }
}

impl TaskStore {
    /// Stores a compaction of the conversation `seen`. The truncation is cleared.
    ///
    /// # Errors
    /// `invalidParams` if a message is not an object or its source does not exist, `tooLarge`,
    /// `notFound`, `busy`, `cancelled`, kind `storage`.
    pub fn compact(
        &self,
        task: &TaskId,
        seen: &Conversation,
        compaction: &Compaction<'_>,
        meta: &EntryMeta,
        cancel: &Cancel,
    ) -> Result<CommitResult, Error> {
        if compaction.messages.is_empty() {
            return Err(Error::invalid(
                "a compacted conversation must have at least one message",
            ));
        }
        self.commit(task, meta, cancel, |log, dir, lock| {
            let now = log.conversation();
            let has_new_messages = now.messages.len() != seen.messages.len();
            if has_new_messages || !seen.is_prefix_of(&now) {
                return Ok((CommitResult::Conflict(now), None));
            }
            let leaf = log.entries.leaf();
            let mut line = LogLine::system(leaf, meta.now, &meta.origin, COMPACT_BOUNDARY);
            line.previous_leaf = leaf;
            line.compact_metadata = Some(CompactMetadata {
                trigger: Some(compaction.trigger),
                pre_tokens: Some(compaction.pre_tokens),
                post_tokens: Some(compaction.post_tokens),
                fallback_reason: compaction.fallback_reason.clone(),
                ..CompactMetadata::default()
            });
            for compacted in &compaction.messages {
                let message = compacted.to_line(&now);
                line.messages.push(message.ok_or_else(|| {
                    Error::invalid("a message of a compacted conversation is not an object, or its source is not a message of the conversation")
                })?);
            }
            let written = log.append(lock, &[line])?;
            write_history_file(dir, lock, &log.conversation().truncation.history);
            Ok((CommitResult::Stored, Some(written)))
        })
    }

    /// Undoes edits, truncation and compactions made after `timestamp`. Keeps all messages. Returns
    /// the remaining edits.
    ///
    /// # Errors
    /// `notFound`, `busy`, `cancelled`, kind `storage`.
    pub fn rollback(
        &self,
        task: &TaskId,
        timestamp: &Number,
        meta: &EntryMeta,
        cancel: &Cancel,
    ) -> Result<ContextHistory, Error> {
        self.commit(task, meta, cancel, |log, dir, lock| {
            let now = log.conversation();
            let undone = timestamp
                .as_f64()
                .and_then(|time| log.entries.without_compactions(time));
            let truncation = log.entries.rolled_back(&now, undone.as_ref(), timestamp);
            let written = match &undone {
                Some(undone) => {
                    let changed = (*undone.truncation != truncation)
                        .then(|| truncation.to_logged(timestamp, &undone.before));
                    Some(append_undo(log, lock, undone, changed, meta)?)
                }
                None if *now.truncation == truncation => None,
                None => {
                    let leaf = log.entries.leaf();
                    let mut line = LogLine::system(leaf, meta.now, &meta.origin, ROLLBACK);
                    line.truncation = Some(truncation.to_logged(timestamp, &now.uuids()));
                    Some(log.append(lock, &[line])?)
                }
            };
            if written.is_some() {
                write_history_file(dir, lock, &truncation.history);
            }
            Ok((truncation.history, written))
        })
    }

    /// Rewinds the conversation to an earlier state: messages, truncation and compactions. The
    /// state may be on an abandoned branch. [`Self::undo_rewind`] undoes it.
    ///
    /// `counted` is the expected number of messages and compactions, if known.
    ///
    /// # Errors
    /// `conflict` if the log does not contain the entry or the counts differ; `notFound`, `busy`,
    /// `cancelled`, kind `storage`. Nothing changes then.
    pub fn rewind(
        &self,
        task: &TaskId,
        to: RewindPoint,
        counted: Option<(u64, u64)>,
        meta: &EntryMeta,
        cancel: &Cancel,
    ) -> Result<RewindId, Error> {
        self.commit(task, meta, cancel, |log, dir, lock| {
            let conflict = |why: &str| {
                let why =
                    format!("cannot rewind task {task}: {why}; its conversation is unchanged");
                Error::Failed(ErrorKind::Conflict, why)
            };
            let past = log
                .entries
                .state_at(to)
                .ok_or_else(|| conflict("its log does not contain that entry"))?;
            let found = (past.messages.len() as u64, past.compactions);
            if counted.is_some_and(|counted| counted != found) {
                return Err(conflict(
                    "the messages or compactions in its log differ from the expected ones",
                ));
            }
            let mut line = LogLine::system(past.leaf, meta.now, &meta.origin, REWIND);
            // Otherwise the entries before it record the truncation.
            let truncation = past.unlogged.as_ref();
            line.truncation =
                truncation.map(|truncation| truncation.to_logged(&0.into(), &past.messages));
            let (id, written) = append_branch(log, dir, lock, line)?;
            Ok((id, Some(written)))
        })
    }

    /// Undoes a rewind, or the undo of a rewind. Returns an id with which this can be undone in
    /// turn.
    ///
    /// # Errors
    /// `notFound`, `busy`, `cancelled`, kind `storage`.
    pub fn undo_rewind(
        &self,
        task: &TaskId,
        id: RewindId,
        meta: &EntryMeta,
        cancel: &Cancel,
    ) -> Result<RewindId, Error> {
        self.commit(task, meta, cancel, |log, dir, lock| {
            let leaf = log.entries.rewound_leaf(id.0).ok_or_else(|| {
                Error::Failed(
                    ErrorKind::NotFound,
                    format!("task {task} has no rewind {id}; pass the id that a rewind returned"),
                )
            })?;
            let line = LogLine::system(Some(leaf), meta.now, &meta.origin, REWIND_UNDO);
            let (id, written) = append_branch(log, dir, lock, line)?;
            Ok((id, Some(written)))
        })
    }
}

/// Appends an entry that starts a branch.
fn append_branch(
    log: &mut Log,
    dir: &TaskDir,
    lock: &TaskLock,
    mut line: LogLine<'_>,
) -> Result<(RewindId, UnsyncedWrite), Error> {
    line.previous_leaf = log.entries.leaf();
    let id = RewindId(line.uuid);
    let written = log.append(lock, &[line])?;
    write_history_file(dir, lock, &log.conversation().truncation.history);
    Ok((id, written))
}

impl<'a> CompactedMessage<'a> {
    fn to_line(self, now: &Conversation) -> Option<MessageLine<'a>> {
        let source = match self.source {
            Some(index) => Some(now.messages.get(index)?.uuid),
            None => None,
        };
        MessageLine::new(source, self.message)
    }
}

/// Appends the entry that undoes compactions.
fn append_undo(
    log: &mut Log,
    lock: &TaskLock,
    undone: &CompactionUndo,
    truncation: Option<super::entry::truncation_record::LoggedTruncation>,
    meta: &EntryMeta,
) -> Result<UnsyncedWrite, Error> {
    let mut line = LogLine::system(undone.leaf, meta.now, &meta.origin, COMPACT_UNDO);
    line.truncation = truncation;
    line.previous_leaf = log.entries.leaf();
    let retained = undone.retained.iter();
    line.messages = retained.map(|uuid| MessageLine::same_as(*uuid)).collect();
    log.append(lock, &[line])
}
