//! Caches the last scan of the work tree, in memory and on disk. Entries are verified by their
//! stamps; a lost cache only costs a full scan.

mod encoding;

use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};

use sightline_workspace::{
    cancel::Cancel,
    error::Error,
    path::{RelPath, os_name},
    storage::{atomic_file, read_foreign},
};

use super::{
    capture_filter::CaptureFilter,
    scan::{self, Scan, ScanOptions},
    snapshot::Folder,
};
use crate::{Checkpoints, Job};

const CACHE_FILE: &str = "tree.cache";
/// Maximum size of the cache file, in bytes; some millions of files.
const MAX_CACHE_BYTES: u64 = 1 << 30;
/// Interval between attempts to lock the cache.
const LOCK_POLL: std::time::Duration = std::time::Duration::from_millis(5);

/// The cached state of the work tree.
#[derive(Debug, Default)]
pub(crate) struct StatCache {
    pub(crate) scan: Option<Scan>,
    /// Tree of a checkpoint whose objects are all stored, and the store's generation at that time.
    /// Equal objects need not be stored again.
    pub(crate) stored: Option<(Arc<Folder>, u64)>,
    /// Whether the cache file was read.
    pub(crate) loaded: bool,
    /// Tree that was last written to the cache file.
    saved: Option<Arc<Folder>>,
}

impl Checkpoints {
    /// Scans the whole work tree without storing anything.
    pub(crate) fn scan_worktree(&self, job: &Job<'_>) -> Result<Scan, Error> {
        let filter = self.capture_filter(job);
        let mut cache = self.lock_stat_cache(job.cancel)?;
        self.load_stat_cache(&mut cache);
        let options = ScanOptions {
            last: cache.scan.as_ref(),
            ..ScanOptions::default()
        };
        let scan = scan::scan(job, &filter, options)?;
        cache.scan = Some(scan.clone());
        Ok(scan)
    }

    /// Returns the captured folders of the last scan, the root first, for a watcher. Empty before
    /// the first scan.
    pub fn captured_folders(&self) -> Vec<RelPath> {
        let cache = self
            .stat_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = cache.scan.as_ref().map(|scan| scan.tree.clone()) else {
            return Vec::new();
        };
        drop(cache);
        let mut folders = vec![RelPath::default()];
        let mut rest = vec![(RelPath::default(), &tree)];
        while let Some((path, folder)) = rest.pop() {
            for entry in folder.entries() {
                if let Some(below) = entry.folder() {
                    let path = path.child(os_name(entry.name));
                    folders.push(path.clone());
                    rest.push((path, below));
                }
            }
        }
        folders
    }

    /// Writes the cache file if the cache has changed.
    ///
    /// # Errors
    /// `storage`.
    pub fn save_stat_cache(&self) -> Result<(), Error> {
        let mut cache = self
            .stat_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(scan) = &cache.scan else {
            return Ok(());
        };
        let is_saved = cache.saved.as_ref();
        if is_saved.is_some_and(|saved| Arc::ptr_eq(saved, &scan.tree)) {
            return Ok(());
        }
        let tree = scan.tree.clone();
        let stored = cache.stored.as_ref();
        let stored = stored.filter(|(stored, _)| stored.oid == tree.oid);
        let bytes = encoding::encode(&encoding::CacheFile {
            tree: tree.clone(),
            filter_fingerprint: scan.filter_fingerprint,
            salt: scan.salt,
            git_index: scan.git_index.clone(),
            stored: stored.map(|(_, generation)| *generation),
        });
        let dir = self.state_dir();
        self.storage.make_dir(&dir)?;
        atomic_file::replace(&dir.join(CACHE_FILE), &bytes)?;
        cache.saved = Some(tree);
        Ok(())
    }

    /// Locks the cache, and with it scanning in this process. Must not be held while waiting for
    /// the store's lock.
    pub(crate) fn lock_stat_cache(
        &self,
        cancel: &Cancel,
    ) -> Result<MutexGuard<'_, StatCache>, Error> {
        loop {
            match self.stat_cache.try_lock() {
                Ok(cache) => return Ok(cache),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {
                    cancel.check()?;
                    std::thread::sleep(LOCK_POLL);
                }
            }
        }
    }

    /// Reads the cache file once. An unreadable file is ignored.
    pub(crate) fn load_stat_cache(&self, cache: &mut StatCache) {
        if cache.loaded {
            return;
        }
        cache.loaded = true;
        let path = self.state_dir().join(CACHE_FILE);
        let bytes = read_foreign(&path, MAX_CACHE_BYTES).ok().flatten();
        let Some(saved) = bytes.as_deref().and_then(encoding::decode) else {
            return;
        };
        cache.stored = saved.stored.map(|when| (saved.tree.clone(), when));
        cache.saved = Some(saved.tree.clone());
        cache.scan = Some(scan::build_scan(
            saved.filter_fingerprint,
            saved.salt,
            saved.tree,
            saved.git_index,
        ));
    }

    pub(crate) fn capture_filter<'a>(&self, job: &Job<'a>) -> CaptureFilter<'a> {
        CaptureFilter::new(
            job.view,
            job.root,
            job.settings,
            self.work_tree(),
            Some(self.storage.dir()),
        )
    }
}
