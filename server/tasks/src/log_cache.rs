//! Keeps recently used logs in memory.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use super::log::Log;
use sightline_base::storage::TaskId;

/// Maximum number of cached tasks.
const MAX_TASKS: usize = 8;
/// Maximum size of the cached messages, in bytes. The last used task is kept whatever its size.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Cached logs, the last used at the end.
#[derive(Debug, Default)]
pub(super) struct LogCache {
    entries: Mutex<Vec<(TaskId, Arc<CachedLog>)>>,
}

/// The cached log of a task.
#[derive(Debug, Default)]
pub(super) struct CachedLog {
    /// Serializes writers of this process. Taken before the task's file lock and before `log`.
    pub(super) writing: Mutex<()>,
    pub(super) log: Mutex<Log>,
    bytes: AtomicUsize,
}

impl CachedLog {
    /// Records the memory use of the log.
    pub(super) fn update_size(&self, log: &Log) {
        self.bytes.store(log.bytes(), Ordering::Relaxed);
    }
}

impl LogCache {
    /// Returns the entry of a task and marks it as used.
    pub(super) fn get_or_insert(&self, task: &TaskId) -> Arc<CachedLog> {
        let mut entries = self.entries.lock();
        let found = entries.iter().position(|(id, _)| id == task);
        let used = match found {
            Some(index) => entries.remove(index),
            None => (task.clone(), Arc::default()),
        };
        let cached = Arc::clone(&used.1);
        entries.push(used);
        cached
    }

    /// Returns the entry of a task if it is cached.
    pub(super) fn peek(&self, task: &TaskId) -> Option<Arc<CachedLog>> {
        let entries = self.entries.lock();
        let found = entries.iter().find(|(id, _)| id == task);
        found.map(|(_, cached)| Arc::clone(cached))
    }

    /// Removes the entry of a task.
    pub(super) fn remove(&self, task: &TaskId) {
        self.entries.lock().retain(|(id, _)| id != task);
    }

    /// Evicts the least recently used tasks until the rest fits.
    pub(super) fn evict(&self) {
        let mut entries = self.entries.lock();
        let mut room = MAX_BYTES;
        let fitting = entries
            .iter()
            .rev()
            .take(MAX_TASKS)
            .take_while(|(_, cached)| {
                let bytes = cached.bytes.load(Ordering::Relaxed);
                let fits = bytes <= room;
                room = room.saturating_sub(bytes);
                fits
            });
        let kept = fitting.count().max(1);
        let surplus = entries.len().saturating_sub(kept);
        entries.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_logs_are_evicted() {
        let cache = LogCache::default();
        let id = |n: usize| TaskId::new(&n.to_string()).unwrap();
        for n in 0..MAX_TASKS + 2 {
            cache.get_or_insert(&id(n));
        }
        cache.get_or_insert(&id(2));
        cache.evict();
        let kept: Vec<bool> = (0..MAX_TASKS + 2)
            .map(|n| cache.peek(&id(n)).is_some())
            .collect();
        assert_eq!(kept, [&[false, false][..], &[true; MAX_TASKS][..]].concat());
        cache
            .get_or_insert(&id(5))
            .bytes
            .store(MAX_BYTES, Ordering::Relaxed);
        cache
            .get_or_insert(&id(6))
            .bytes
            .store(1, Ordering::Relaxed);
        cache.evict();
        assert!(cache.peek(&id(6)).is_some());
        assert!(cache.peek(&id(5)).is_none());
        cache
            .get_or_insert(&id(5))
            .bytes
            .store(MAX_BYTES + 1, Ordering::Relaxed);
        cache.evict();
        assert!(cache.peek(&id(5)).is_some());
        assert!(cache.peek(&id(6)).is_none());
    }
}
