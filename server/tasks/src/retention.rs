//! Limits the number, age and total size of stored tasks. The last updated tasks are kept; the
//! last updated conversation is never deleted.
//!
//! The update time of a task is that of its last message or of the last write to its log,
//! whichever is later. So an old conversation that was just imported is recent.

use sightline_base::{cancel::Cancel, clock::millis_of, error::Error, storage::TaskId};
use sightline_protocol::settings::TaskSettings;

use super::{TaskStore, index::IndexEntry, log::LOG_FILE};

/// Age below which a task is never pruned, in milliseconds, because another process may be
/// using it.
const RECENT_MILLIS: i64 = 60 * 60 * 1000;
const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// The result of pruning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunedTasks {
    /// Deleted tasks. The caller deletes their checkpoints.
    pub removed: Vec<TaskId>,
    /// Size of their files, in bytes.
    pub freed_bytes: u64,
}

struct Candidate {
    id: TaskId,
    updated_at: i64,
    bytes: u64,
    /// Index entry, if the task has a log.
    listed: Option<IndexEntry>,
}

impl TaskStore {
    /// Deletes tasks that exceed the limits. Keeps the last updated conversation, tasks for which
    /// `is_in_use` returns true, tasks that are being written, and tasks updated within the last
    /// hour.
    ///
    /// # Errors
    /// `cancelled`, kind `storage`.
    pub fn prune(
        &self,
        limits: &TaskSettings,
        is_in_use: &dyn Fn(&TaskId) -> bool,
        now: i64,
        cancel: &Cancel,
    ) -> Result<PrunedTasks, Error> {
        let mut pruned = PrunedTasks::default();
        self.storage.sweep_deleted()?;
        if *limits == TaskSettings::default() {
            return Ok(pruned);
        }
        let mut bytes = 0_u64;
        let candidates = self.candidates(cancel)?;
        let newest = candidates
            .iter()
            .position(|candidate| candidate.listed.is_some());
        for (position, candidate) in candidates.into_iter().enumerate() {
            cancel.check()?;
            let age = now.saturating_sub(candidate.updated_at);
            let is_too_old = limits
                .max_age_days
                .is_some_and(|days| age > i64::from(days).saturating_mul(MILLIS_PER_DAY));
            let is_over_count = limits
                .max_count
                .is_some_and(|count| position >= usize::try_from(count).unwrap_or(usize::MAX));
            bytes = bytes.saturating_add(candidate.bytes);
            let is_over_size = limits.max_bytes.is_some_and(|max| bytes > max);
            let is_kept =
                newest == Some(position) || age < RECENT_MILLIS || is_in_use(&candidate.id);
            if is_kept || !(is_too_old || is_over_count || is_over_size) {
                continue;
            }
            if let Some(freed) = self.delete_unchanged(&candidate)? {
                pruned.freed_bytes = pruned.freed_bytes.saturating_add(freed);
                pruned.removed.push(candidate.id);
            }
        }
        Ok(pruned)
    }

    /// Returns all tasks, last updated first, including tasks that have only tracker files.
    fn candidates(&self, cancel: &Cancel) -> Result<Vec<Candidate>, Error> {
        let mut listed = self.index_entries(cancel)?;
        let mut candidates = Vec::new();
        for id in self.storage.task_ids()? {
            cancel.check()?;
            let found = listed
                .iter()
                .position(|listed| listed.summary.task_id == id.as_str());
            let listed = found.map(|position| listed.swap_remove(position));
            let dir = self.storage.task(&id);
            let modified = || millis_of(dir.modified()?);
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
        let cached = self.cache.get_or_insert(&candidate.id);
        let Some(_writing) = cached.writing.try_lock() else {
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
        *cached.log.lock() = super::log::Log::default();
        let freed = lock.delete()?;
        self.cache.remove(&candidate.id);
        Ok(Some(freed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::EntryMeta;
    use sightline_base::storage::Storage;

    #[test]
    fn a_task_changed_since_it_was_listed_is_kept() {
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
        // A task that received a log after it was listed is kept too.
        let dir = scratch.path().join("tasks/t");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("tracked_files.json"), "[]").unwrap();
        let [candidate] = store.candidates(&cancel).unwrap().try_into().ok().unwrap();
        append().unwrap().written.sync().unwrap();
        assert_eq!(store.delete_unchanged(&candidate).unwrap(), None);
    }
}
