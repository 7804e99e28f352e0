//! How many tasks are kept: by age, count and bytes. The last updated stay, and
//! the last updated conversation always does.
//!
//! A task was updated when its last message came, or when its log was written
//! if that was later: an old conversation that was imported now is not old.

use std::time::UNIX_EPOCH;

use sightline_protocol::settings::TaskSettings;

use super::{TaskStore, index::IndexEntry, log::LOG_FILE, log_cache::lock_unpoisoned};
use crate::{cancel::Cancel, error::Error, storage::TaskId};

/// A task updated within this time may be in use by another process and is
/// never deleted by itself, in milliseconds.
const RECENT_MILLIS: i64 = 60 * 60 * 1000;
const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// How many tasks are kept; what is absent limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Delete tasks not updated for this many days, but never the last updated.
    pub max_age_days: Option<u32>,
    /// Keep this many tasks, but always the last updated.
    pub max_count: Option<u32>,
    /// Keep tasks up to this many bytes in all, but always the last updated.
    pub max_bytes: Option<u64>,
}

impl From<TaskSettings> for RetentionLimits {
    fn from(settings: TaskSettings) -> Self {
        Self {
            max_age_days: settings.max_age_days,
            max_count: settings.max_count,
            max_bytes: settings.max_bytes,
        }
    }
}

/// What was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunedTasks {
    /// The tasks, whose checkpoints are for the caller to free.
    pub removed: Vec<TaskId>,
    /// Bytes their files took.
    pub freed_bytes: u64,
}

struct Candidate {
    id: TaskId,
    updated_at: i64,
    bytes: u64,
    /// What is known of its log; a task may have none.
    listed: Option<IndexEntry>,
}

impl TaskStore {
    /// Deletes the tasks that are beyond the limits. One in use stays: one the
    /// caller says so of, one that is being written to, one updated within the
    /// last hour. So does the last updated conversation.
    ///
    /// # Errors
    /// `cancelled`, kind `storage`.
    pub fn prune(
        &self,
        limits: &RetentionLimits,
        is_in_use: &dyn Fn(&TaskId) -> bool,
        now: i64,
        cancel: &Cancel,
    ) -> Result<PrunedTasks, Error> {
        let mut pruned = PrunedTasks::default();
        self.storage.sweep_deleted()?;
        if *limits == RetentionLimits::default() {
            return Ok(pruned);
        }
        let mut bytes = 0_u64;
        let candidates = self.candidates(cancel)?;
        let newest = candidates
            .iter()
            .position(|candidate| candidate.listed.is_some());
        for (place, candidate) in candidates.into_iter().enumerate() {
            cancel.check()?;
            let age = now.saturating_sub(candidate.updated_at);
            let is_old = limits
                .max_age_days
                .is_some_and(|days| age > i64::from(days).saturating_mul(MILLIS_PER_DAY));
            let is_surplus = limits
                .max_count
                .is_some_and(|count| place >= usize::try_from(count).unwrap_or(usize::MAX));
            bytes = bytes.saturating_add(candidate.bytes);
            let is_too_much = limits.max_bytes.is_some_and(|max| bytes > max);
            let stays = newest == Some(place) || age < RECENT_MILLIS || is_in_use(&candidate.id);
            if stays || !(is_old || is_surplus || is_too_much) {
                continue;
            }
            if let Some(freed) = self.delete_unchanged(&candidate)? {
                pruned.freed_bytes = pruned.freed_bytes.saturating_add(freed);
                pruned.removed.push(candidate.id);
            }
        }
        Ok(pruned)
    }

    /// All tasks, last updated first; also those of which only trackers wrote.
    fn candidates(&self, cancel: &Cancel) -> Result<Vec<Candidate>, Error> {
        let mut listed = self.listed(cancel)?;
        let mut candidates = Vec::new();
        for id in self.storage.task_ids()? {
            cancel.check()?;
            let found = listed
                .iter()
                .position(|listed| listed.summary.task_id == id.as_str());
            let listed = found.map(|place| listed.swap_remove(place));
            let dir = self.storage.task(&id);
            let modified = || {
                let since = dir.modified()?.duration_since(UNIX_EPOCH).ok()?;
                i64::try_from(since.as_millis()).ok()
            };
            let updated_at = match &listed {
                Some(listed) => listed.summary.updated_at.max(listed.modified_millis()),
                None => modified().unwrap_or(i64::MAX),
            };
            candidates.push(Candidate {
                bytes: dir.bytes(),
                id,
                updated_at,
                listed,
            });
        }
        candidates.sort_by(|a, b| (b.updated_at, &a.id).cmp(&(a.updated_at, &b.id)));
        Ok(candidates)
    }

    fn delete_unchanged(&self, candidate: &Candidate) -> Result<Option<u64>, Error> {
        let dir = self.storage.task(&candidate.id);
        let slot = self.cache.slot(&candidate.id);
        let Ok(_writing) = slot.writing.try_lock() else {
            return Ok(None);
        };
        let Some(lock) = dir.try_lock()? else {
            return Ok(None);
        };
        let is_same = match (dir.stamp(LOG_FILE), &candidate.listed) {
            (Ok(Some(stamp)), Some(listed)) => listed.matches(stamp),
            (Ok(Some(_)), None) => false,
            (Ok(None), listed) => listed.is_none(),
            (Err(_), _) => false,
        };
        if !is_same {
            return Ok(None);
        }
        *lock_unpoisoned(&slot.log) = super::log::Log::default();
        let freed = lock.delete()?;
        self.cache.remove(&candidate.id);
        Ok(Some(freed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::{storage::Storage, task::EntryMeta};

    #[test]
    fn a_task_written_to_meanwhile_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let store = TaskStore::new(Storage::open(scratch.path()).unwrap());
        let (task, cancel) = (TaskId::new("t").unwrap(), Cancel::default());
        let message = RawValue::from_string(r#"{"role":"user"}"#.to_owned()).unwrap();
        let append = || store.append(&task, &[&message], &EntryMeta::default(), &cancel);
        append().unwrap().written.sync().unwrap();
        let [candidate] = store.candidates(&cancel).unwrap().try_into().ok().unwrap();
        append().unwrap().written.sync().unwrap();
        assert_eq!(store.delete_unchanged(&candidate).unwrap(), None);
        let [candidate] = store.candidates(&cancel).unwrap().try_into().ok().unwrap();
        assert!(store.delete_unchanged(&candidate).unwrap().is_some());
        // And one that got a log meanwhile.
        let dir = scratch.path().join("tasks/t");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("tracked_files.json"), "[]").unwrap();
        let [candidate] = store.candidates(&cancel).unwrap().try_into().ok().unwrap();
        append().unwrap().written.sync().unwrap();
        assert_eq!(store.delete_unchanged(&candidate).unwrap(), None);
    }
}
