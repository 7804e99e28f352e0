//! The task store: conversations that nothing is ever lost from.
//!
//! Below a task's directory, `conversation.jsonl` is the only truth: one entry
//! per line (`entry`), added under the task's lock and never changed (`log`).
//! What a conversation is now follows from the entries (`conversation`): what
//! is masked (`masks`), rewound, compacted or rolled back is an entry too
//! (`change`), so it can be taken back. Everything else can be made again from
//! the log: `context_history.json`, a copy of what is masked in Cline's format,
//! and `.index.json` beside the tasks, which saves reading every log to list
//! them (`index`).
//!
//! Then there is what is done with stored conversations: `resume`, `import`,
//! `export`, `retention`.
//!
//! Any number of stores, threads and processes may work on one task.

mod conversation;
mod edits;
mod entry;
mod export;
mod import;
mod index;
mod jsonl;
mod log;
mod log_cache;
mod resume;
mod retention;
mod title;
mod truncation;

use std::sync::Arc;

use serde_json::{Number, value::RawValue};

pub use conversation::{Conversation, ConversationInfo, RewindPoint, StoredMessage};
pub use edits::{Compacted, CompactedMessage, Compaction, RewindId};
pub use entry::EntryOrigin;
pub use import::ImportedTask;
pub use resume::{ResumeOptions, ResumedTask};
pub use retention::{PrunedTasks, RetentionLimits};
pub use truncation::TruncationState;

use crate::{
    cancel::Cancel,
    error::Error,
    storage::{Storage, TaskDir, TaskId, TaskLock, Written},
};
use entry::{LogLine, TRUNCATION};
use log::{Log, not_found, write_history_file};
use log_cache::{LogCache, lock_unpoisoned};

/// All stored conversations. Cheap to clone; clones share what they have read.
#[derive(Clone, Debug)]
pub struct TaskStore {
    storage: Storage,
    cache: Arc<LogCache>,
}

/// What is recorded beside what is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryMeta {
    /// Whose it is and where.
    pub origin: EntryOrigin,
    /// The time, milliseconds since the Unix epoch.
    pub now: i64,
}

/// Messages that were appended.
#[derive(Clone, Debug)]
#[must_use = "they are durable only after `written.sync()`"]
pub struct Appended {
    /// Messages of the conversation in all.
    pub count: u64,
    /// Makes them durable.
    pub written: Written,
}

/// What became of a decision made on a conversation.
#[derive(Clone, Debug)]
pub enum CommitResult<T> {
    /// It is stored.
    Stored(T),
    /// Somebody else decided something meanwhile; nothing is stored. Decide
    /// again, on this.
    Conflict(Arc<Conversation>),
}

impl TaskStore {
    /// The conversations in a data directory. Creates nothing.
    pub fn new(storage: Storage) -> Self {
        Self {
            storage,
            cache: Arc::default(),
        }
    }

    /// Adds messages to a task, which begins with them if there is none.
    ///
    /// When it fails, none of them is added. A process that is killed while it
    /// writes may leave the first of them, although it acknowledged none: look
    /// at the conversation before you send them again.
    ///
    /// They can be read at once; they are durable after [`Written::sync`],
    /// which also makes all earlier ones of the task durable: sync the last of
    /// several.
    ///
    /// # Errors
    /// `invalidParams` when a message is no object, `tooLarge`, `busy`,
    /// `cancelled`, kind `storage`.
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
            lines.push(line.ok_or_else(|| {
                Error::invalid(format!(
                    "messages[{index}] is not an object; a message has a role and content"
                ))
            })?);
        }
        if lines.is_empty() {
            return Err(Error::invalid(
                "messages is empty; name at least one message",
            ));
        }
        self.with_write_lock(task, cancel, |log, dir, lock| {
            link_lines(&mut lines, log.entries.leaf());
            let written = log.append(lock, &lines)?;
            Ok(Appended {
                count: log.conversation(dir).messages.len() as u64,
                written,
            })
        })
    }

    /// The conversation of a task, as it is now.
    ///
    /// # Errors
    /// `notFound`, `cancelled`, kind `storage`.
    pub fn load(&self, task: &TaskId, cancel: &Cancel) -> Result<Arc<Conversation>, Error> {
        let dir = self.storage.task(task);
        let slot = self.cache.slot(task);
        let conversation = {
            let mut log = lock_unpoisoned(&slot.log);
            if !log.catch_up(&dir, cancel)? || log.is_never_written() {
                return Err(not_found(task));
            }
            slot.update_size(&log);
            log.conversation(&dir)
        };
        self.cache.evict();
        Ok(conversation)
    }

    /// Stores what was decided to mask in the conversation `seen`; `time` is
    /// that of the edits made now. Durable when it returns.
    ///
    /// Messages that came meanwhile change nothing; another decision does.
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
    ) -> Result<CommitResult<()>, Error> {
        self.commit(task, meta, cancel, |log, dir, lock| {
            let now = log.conversation(dir);
            if !seen.is_beginning_of(&now) {
                return Ok((CommitResult::Conflict(now), None));
            }
            if *now.truncation == *truncation {
                return Ok((CommitResult::Stored(()), None));
            }
            let mut line = LogLine::system(log.entries.leaf(), meta.now, &meta.origin, TRUNCATION);
            line.truncation = Some(truncation.to_line(time, &now.uuids()));
            let written = log.append(lock, &[line])?;
            write_history_file(dir, lock, &truncation.history);
            Ok((CommitResult::Stored(()), Some(written)))
        })
    }

    /// Deletes a task with all its files; bytes they took.
    ///
    /// # Errors
    /// `notFound`, `busy`, kind `storage`.
    pub fn delete(&self, task: &TaskId) -> Result<u64, Error> {
        let dir = self.storage.task(task);
        if !dir.is_task() {
            return Err(not_found(task));
        }
        let freed = {
            let slot = self.cache.slot(task);
            let _writing = lock_unpoisoned(&slot.writing);
            dir.lock()?.delete()?
        };
        self.cache.remove(task);
        self.storage.sweep_deleted()?;
        Ok(freed)
    }

    /// Writes to a task that may not exist yet.
    fn with_write_lock<T>(
        &self,
        task: &TaskId,
        cancel: &Cancel,
        write: impl FnOnce(&mut Log, &TaskDir, &TaskLock) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let dir = self.storage.task(task);
        let slot = self.cache.slot(task);
        let done = {
            // Threads of this process queue here, and don't poll the lock.
            let _writing = lock_unpoisoned(&slot.writing);
            let lock = dir.lock()?;
            let mut log = lock_unpoisoned(&slot.log);
            log.catch_up_locked(&dir, cancel)?;
            cancel.commit()?;
            let done = write(&mut log, &dir, &lock);
            slot.update_size(&log);
            done
        }?;
        self.cache.evict();
        Ok(done)
    }

    /// Writes a decision to a task that exists, durably.
    fn commit<T>(
        &self,
        task: &TaskId,
        meta: &EntryMeta,
        cancel: &Cancel,
        decide: impl FnOnce(&mut Log, &TaskDir, &TaskLock) -> Result<(T, Option<Written>), Error>,
    ) -> Result<T, Error> {
        if self.storage.task(task).stamp(log::LOG_FILE)?.is_none() {
            return Err(not_found(task));
        }
        let (done, written) = self.with_write_lock(task, cancel, |log, dir, lock| {
            if log.entries.is_empty() {
                return Err(not_found(task));
            }
            let now = log.conversation(dir);
            if !log.entries.is_truncation_logged() && *now.truncation != TruncationState::default()
            {
                // From now on the log says it, and what was can come back.
                let mut line =
                    LogLine::system(log.entries.leaf(), meta.now, &meta.origin, TRUNCATION);
                line.truncation = Some(now.truncation.to_line(&0.into(), &now.uuids()));
                // Durable with the decision.
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

/// Makes each line the child of the one before, and the first that of `parent`.
fn link_lines(lines: &mut [LogLine<'_>], parent: Option<uuid::Uuid>) {
    let mut parent = parent;
    for line in lines {
        line.parent_uuid = Some(parent);
        parent = Some(line.uuid);
    }
}
