//! What is known of the work tree from the last look at it. Never trusted
//! without looking at stamps; losing it costs one full reading.

mod encoding;

use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};

use super::{
    capture_filter::CaptureFilter,
    scan::{self, Scan, ScanOptions},
    scan_dir::os_name,
    snapshot::Folder,
};
use crate::{
    cancel::Cancel,
    checkpoint::{Checkpoints, Job},
    error::Error,
    path::RelPath,
    storage::{files, read_foreign},
};

const CACHE_FILE: &str = "tree.cache";
/// A larger cache is not read: some millions of files.
const MAX_CACHE_BYTES: u64 = 1 << 30;
/// Between two looks whether the memory is free.
const LOCK_POLL: std::time::Duration = std::time::Duration::from_millis(5);

/// The last look.
#[derive(Debug, Default)]
pub(crate) struct StatCache {
    pub(crate) scan: Option<Scan>,
    /// The tree of a checkpoint whose objects are all in the store, and the
    /// store's generation then: what equals it need not be stored again.
    pub(crate) stored: Option<(Arc<Folder>, u64)>,
    /// The saved cache was looked for.
    pub(crate) loaded: bool,
    /// The tree that was saved last.
    saved: Option<Arc<Folder>>,
}

impl Checkpoints {
    /// Looks at the whole work tree and stores nothing.
    pub(crate) fn scan_worktree(&self, job: &Job<'_>) -> Result<Scan, Error> {
        let filter = self.capture_filter(job);
        let mut cache = self.lock_stat_cache(job.cancel)?;
        self.load_stat_cache(&mut cache, &filter);
        let options = ScanOptions {
            last: cache.scan.as_ref(),
            ..ScanOptions::default()
        };
        let scan = scan::scan(job, &filter, options)?;
        cache.scan = Some(scan.clone());
        Ok(scan)
    }

    /// The folders whose entries are captured, as last seen; the root is the
    /// first. For those who watch them. Empty before the first look.
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

    /// Saves what is known of the work tree, when that is news: the next process
    /// need not read all files. Losing it is no harm.
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
            git_index: scan.git_index.clone(),
            stored: stored.map(|(_, generation)| *generation),
        });
        let dir = self.state_dir();
        self.storage.make_dir(&dir)?;
        files::replace(&dir.join(CACHE_FILE), &bytes)?;
        cache.saved = Some(tree);
        Ok(())
    }

    /// Whoever holds it is the only one who looks at the work tree in this
    /// process. Not for those who go on to wait for the store's lock.
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

    /// Takes up what was saved, once. What can't be read is not there.
    pub(crate) fn load_stat_cache(&self, cache: &mut StatCache, filter: &CaptureFilter<'_>) {
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
            filter,
            saved.filter_fingerprint,
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
