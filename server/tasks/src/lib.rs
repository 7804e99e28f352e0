//! Stored conversations.
//!
//! The log of a task, `conversation.jsonl`, is authoritative. It has one entry per line
//! (`entry`), appended under the task's lock and never changed (`log`). The current
//! conversation is derived from the entries (`conversation`). Truncation (`truncation`),
//! rewinds, compactions and rollbacks are entries too (`edits`), so they can be undone. All
//! other files can be rebuilt from the log: `context_history.json`, a copy of the truncation in
//! Cline's format, and `.index.json` next to the tasks, which avoids reading every log to list
//! them (`index`).
//!
//! `resume`, `import`, `export` and `retention` work on stored conversations.
//!
//! Any number of stores, threads and processes may use a task at the same time.
//!
//! Modules:
//!
//! - `log`, `entry`: the log of a task: an append-only file of entries, one per line
//! - `conversation`, `log_cache`: the current conversation, derived from the entries, and what is
//!   kept in memory
//! - `edits`: compaction, rewind and rollback, each with its undo
//! - `index`, `title`, `retention`: lists tasks; limits their number, age and size
//! - `resume`, `import`, `export`: continues, imports and exports a task
//! - `calibration`: the token calibration of a task

mod calibration;
mod conversation;
mod edits;
mod entry;
mod export;
mod import;
mod index;
mod log;
mod log_cache;
mod resume;
mod retention;
mod title;

use std::{fmt::Display, sync::Arc};

use serde_json::{Number, value::RawValue};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    storage::{Storage, TaskDir, TaskId, TaskLock, UnsyncedWrite},
};

use sightline_conversation::wire::invalid_message;
use sightline_protocol::error::ErrorKind;

pub use calibration::{load_calibration, store_calibration};
pub use conversation::{Conversation, ConversationInfo, RewindPoint, StoredMessage};
pub use edits::{CompactedMessage, Compaction, RewindId};
pub use entry::EntryOrigin;
pub use entry::truncation_record::TruncationState;
pub use import::ImportedTask;
pub use resume::ResumeOptions;
pub use retention::PrunedTasks;

use entry::{LogLine, TRUNCATION};
use log::{Log, not_found, write_history_file};
use log_cache::LogCache;

/// The stored conversations of a data directory. Clones share a cache.
#[derive(Clone, Debug)]
pub struct TaskStore {
    storage: Storage,
    cache: Arc<LogCache>,
}

/// Metadata recorded with new entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryMeta {
    /// Context of the entry.
    pub origin: EntryOrigin,
    /// Current time, in milliseconds since the Unix epoch.
    pub now: i64,
}

/// The result of an append.
#[derive(Clone, Debug)]
#[must_use = "they are durable only after `written.sync()`"]
pub struct Appended {
    /// Number of messages in the conversation.
    pub count: u64,
    /// Makes the messages durable.
    pub written: UnsyncedWrite,
}

/// The result of storing a decision on a conversation.
#[derive(Clone, Debug)]
pub enum CommitResult {
    /// The decision is stored.
    Stored,
    /// Another decision was stored first. Nothing was stored; decide again on this conversation.
    Conflict(Arc<Conversation>),
}

impl TaskStore {
    /// Creates a store. Does not create files.
    pub fn new(storage: Storage) -> Self {
        Self {
            storage,
            cache: Arc::default(),
        }
    }

    /// Appends messages to a task. Creates the task if it does not exist.
    ///
    /// On failure, no message is appended. A process that is killed while writing may leave the
    /// first messages without acknowledging them: load the conversation before sending them again.
    ///
    /// Messages can be read immediately. They are durable after [`UnsyncedWrite::sync`], which also
    /// covers all earlier messages of the task: after several appends, sync the last.
    ///
    /// # Errors
    /// `invalidParams` if a message is not an object, `tooLarge`, `busy`, `cancelled`, kind
    /// `storage`.
    pub fn append(
        &self,
        task: &TaskId,
        messages: &[&RawValue],
        meta: &EntryMeta,
        cancel: &Cancel,
    ) -> Result<Appended, Error> {
        let mut lines = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            cancel.check()?;
            let line = LogLine::message(None, meta.now, &meta.origin, message);
            lines.push(line.ok_or_else(|| invalid_message(index))?);
        }
        if lines.is_empty() {
            return Err(Error::invalid(
                "messages is empty; pass at least one message",
            ));
        }
        self.with_write_lock(task, cancel, |log, _, lock| {
            link_lines(&mut lines, log.entries.leaf());
            let written = log.append(lock, &lines)?;
            Ok(Appended {
                count: log.conversation().messages.len() as u64,
                written,
            })
        })
    }

    /// Loads the current conversation of a task.
    ///
    /// # Errors
    /// `notFound`, `cancelled`, kind `storage`.
    pub fn load(&self, task: &TaskId, cancel: &Cancel) -> Result<Arc<Conversation>, Error> {
        let dir = self.storage.task(task);
        let cached = self.cache.get_or_insert(task);
        let conversation = {
            let mut log = cached.log.lock();
            if !log.catch_up(&dir, cancel)? || log.is_never_written() {
                return Err(not_found(task));
            }
            log.read_unlogged_truncation(&dir)?;
            cached.update_size(&log);
            log.conversation()
        };
        self.cache.evict();
        Ok(conversation)
    }

    /// Stores the truncation decided for the conversation `seen`. `time` is the timestamp of the
    /// new edits. Durable on return.
    ///
    /// Messages appended since `seen` do not conflict; another decision does.
    ///
    /// # Errors
    /// `notFound`, `busy`, `cancelled`, kind `storage`.
    pub fn store_truncation(
        &self,
        task: &TaskId,
        seen: &Conversation,
        truncation: &TruncationState,
        time: &Number,
        meta: &EntryMeta,
        cancel: &Cancel,
    ) -> Result<CommitResult, Error> {
        self.commit(task, meta, cancel, |log, dir, lock| {
            let now = log.conversation();
            if !seen.is_prefix_of(&now) {
                return Ok((CommitResult::Conflict(now), None));
            }
            if *now.truncation == *truncation {
                return Ok((CommitResult::Stored, None));
            }
            let mut line = LogLine::system(log.entries.leaf(), meta.now, &meta.origin, TRUNCATION);
            line.truncation = Some(truncation.to_logged(time, &now.uuids()));
            let written = log.append(lock, &[line])?;
            write_history_file(dir, lock, &truncation.history);
            Ok((CommitResult::Stored, Some(written)))
        })
    }

    /// Deletes a task with all its files. Returns their size in bytes.
    ///
    /// # Errors
    /// `notFound`, `busy`, kind `storage`.
    pub fn delete(&self, task: &TaskId) -> Result<u64, Error> {
        let dir = self.storage.task(task);
        if !dir.is_task() {
            return Err(not_found(task));
        }
        let freed = {
            let cached = self.cache.get_or_insert(task);
            let _writing = cached.writing.lock();
            dir.lock()?.delete()?
        };
        self.cache.remove(task);
        self.storage.sweep_deleted()?;
        Ok(freed)
    }

    /// Writes to a task, which may not exist yet.
    fn with_write_lock<T>(
        &self,
        task: &TaskId,
        cancel: &Cancel,
        write: impl FnOnce(&mut Log, &TaskDir, &TaskLock) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let dir = self.storage.task(task);
        let cached = self.cache.get_or_insert(task);
        let done = {
            // Threads of this process wait here instead of polling the file lock.
            let _writing = cached.writing.lock();
            let lock = dir.lock()?;
            let mut log = cached.log.lock();
            log.catch_up_locked(&dir, cancel)?;
            cancel.commit()?;
            let done = write(&mut log, &dir, &lock);
            cached.update_size(&log);
            done
        }?;
        self.cache.evict();
        Ok(done)
    }

    /// Stores a decision on an existing task, durably.
    fn commit<T>(
        &self,
        task: &TaskId,
        meta: &EntryMeta,
        cancel: &Cancel,
        decide: impl FnOnce(&mut Log, &TaskDir, &TaskLock) -> Result<(T, Option<UnsyncedWrite>), Error>,
    ) -> Result<T, Error> {
        if self.storage.task(task).stamp(log::LOG_FILE)?.is_none() {
            return Err(not_found(task));
        }
        let (done, written) = self.with_write_lock(task, cancel, |log, dir, lock| {
            if log.entries.is_empty() {
                return Err(not_found(task));
            }
            // Record the truncation first, so that it can be restored. If it cannot be read, store nothing, because the
            // decision would replace it.
            if *log.read_unlogged_truncation(dir)? != TruncationState::default() {
                let now = log.conversation();
                let mut line =
                    LogLine::system(log.entries.leaf(), meta.now, &meta.origin, TRUNCATION);
                line.truncation = Some(now.truncation.to_logged(&0.into(), &now.uuids()));
                // Becomes durable with the decision.
                let _ = log.append(lock, &[line])?;
            }
            decide(log, dir, lock)
        })?;
        if let Some(written) = written {
            written.sync()?;
        }
        Ok(done)
    }
}

/// Returns a function for `map_err`.
fn failed<E: Display>(action: &str, object: impl Display) -> impl FnOnce(E) -> Error {
    move |error| {
        Error::Failed(
            ErrorKind::Storage,
            format!("cannot {action} {object}: {error}"),
        )
    }
}

/// Links each line to the one before it, and the first to `parent`.
fn link_lines(lines: &mut [LogLine<'_>], parent: Option<uuid::Uuid>) {
    let mut parent = parent;
    for line in lines {
        line.parent_uuid = Some(parent);
        parent = Some(line.uuid);
    }
}
