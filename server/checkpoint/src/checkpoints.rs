//! The checkpoints of one workspace root: where they are, and what this process knows about them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use sightline_base::{
    cancel::Cancel,
    path::{RelPath, Root},
    storage::Storage,
};
use sightline_protocol::error::ErrorKind;

use super::{
    job::Job,
    metadata::{cache::MetadataCache, is_checkpoint},
    restore::types::Recovered,
    store::{
        gc::Combination,
        object::Oid,
        refs,
        repair::{self, Rebuilt, VerifiedStore},
        repository::Repository,
    },
    worktree::{
        capture_filter::CaptureFilter,
        scan::{self, Scan, ScanOptions},
        stat_cache::StatCache,
    },
};
use crate::error::Error;

/// Interval between attempts to lock the stat cache.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The checkpoints of one workspace root.
///
/// Nothing is read or created before it is needed. Operations that change the store or the stat
/// cache exclude each other, across threads and processes.
#[derive(Debug)]
pub struct Checkpoints {
    pub(crate) storage: Storage,
    pub(crate) root: Root,
    /// `projects/<name>-<hash>` in the data directory.
    pub(crate) project: PathBuf,
    pub(crate) stat_cache: Mutex<StatCache>,
    pub(crate) metadata_cache: MetadataCache,
    pub(crate) rebuilt: Mutex<Option<Rebuilt>>,
    /// Interrupted restore that another operation completed first.
    pub(crate) recovered: Mutex<Option<Recovered>>,
    /// Store as this process last verified or wrote it.
    pub(crate) verified: Mutex<Option<VerifiedStore>>,
    /// Combination of packs that is not finished.
    pub(crate) combination: Mutex<Option<Combination>>,
}

impl Checkpoints {
    /// Returns the checkpoints of `root`. Creates nothing.
    pub fn new(storage: &Storage, root: &Root) -> Self {
        Self {
            storage: storage.clone(),
            root: root.clone(),
            project: storage.project(root),
            stat_cache: Mutex::default(),
            metadata_cache: MetadataCache::default(),
            rebuilt: Mutex::default(),
            recovered: Mutex::default(),
            verified: Mutex::default(),
            combination: Mutex::default(),
        }
    }

    /// Workspace root.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Path of the bare repository, which may not exist.
    pub fn git_dir(&self) -> PathBuf {
        self.project.join("checkpoints.git")
    }

    /// Returns the files and folders that change when a checkpoint is created, removed or named. Some may
    /// not exist.
    pub fn list_files(&self) -> Vec<PathBuf> {
        let files = ["refs/checkpoints", "packed-refs", "labels"];
        files.map(|file| self.git_dir().join(file)).into()
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.project.join("state")
    }

    pub(crate) fn work_tree(&self) -> &Path {
        self.root.canonical.as_path()
    }

    /// Takes the report of a damaged store that was rebuilt, to be shown to the user once.
    pub fn take_rebuilt(&self) -> Option<Rebuilt> {
        self.rebuilt.lock().take()
    }

    /// Takes the report of an interrupted restore that another operation completed, to be shown to
    /// the user once.
    pub fn take_recovered(&self) -> Option<Recovered> {
        self.recovered.lock().take()
    }

    /// Turns a storage error into `notFound` if one of the checkpoints was pruned by another
    /// process. Pruning removes refs before objects.
    pub(crate) fn unless_pruned<T>(&self, ids: &[Oid], done: Result<T, Error>) -> Result<T, Error> {
        done.map_err(|error| {
            let is_pruned = |id: &&Oid| matches!(refs::exists(&self.git_dir(), **id), Ok(false));
            match ids.iter().find(is_pruned) {
                Some(id) if error.kind() == ErrorKind::Storage => Self::not_found(*id),
                _ => error,
            }
        })
    }

    /// Opens the store, and creates or rebuilds it if needed. The caller holds the lock.
    pub(crate) fn open_or_create(&self) -> Result<Repository, Error> {
        if let Some(repository) = self.verified_repository() {
            return Ok(repository);
        }
        *self.verified() = None;
        let (repository, report) =
            repair::open_or_create(&self.storage, &self.git_dir(), is_checkpoint)?;
        if report.is_some() {
            *self.rebuilt.lock() = report;
        }
        *self.verified() = VerifiedStore::of(&repository)?;
        Ok(repository)
    }

    /// Returns the verified store if nothing changed since. The caller holds the lock.
    pub(crate) fn verified_repository(&self) -> Option<Repository> {
        self.verified()
            .as_ref()
            .and_then(VerifiedStore::reopen_if_unchanged)
    }

    pub(crate) fn verified(&self) -> MutexGuard<'_, Option<VerifiedStore>> {
        self.verified.lock()
    }

    /// Opens the store without changing it. Returns `None` if it does not exist.
    pub(crate) fn repository(&self) -> Result<Option<Repository>, Error> {
        Repository::open(&self.git_dir())
    }

    /// Returns the captured folders of the last scan, the root first, for a watcher. Empty before
    /// the first scan.
    pub fn captured_folders(&self) -> Vec<RelPath> {
        // Cloned, so that the lock is not held.
        let tree = self
            .stat_cache
            .lock()
            .scan
            .as_ref()
            .map(|scan| scan.tree.clone());
        tree.map(|tree| tree.folders()).unwrap_or_default()
    }

    /// Writes the cache file if the cache has changed.
    ///
    /// # Errors
    /// `storage`.
    pub fn save_stat_cache(&self) -> Result<(), Error> {
        self.stat_cache
            .lock()
            .save(&self.storage, &self.state_dir())
    }

    /// Scans the whole work tree without storing anything.
    pub(crate) fn scan_worktree(&self, job: &Job<'_>) -> Result<Scan, Error> {
        let filter = self.capture_filter(job);
        let mut cache = self.lock_stat_cache(job.cancel)?;
        cache.load(&self.state_dir());
        let options = ScanOptions {
            last: cache.scan.as_ref(),
            ..ScanOptions::default()
        };
        let scan = scan::scan(job, &filter, options)?;
        cache.scan = Some(scan.clone());
        Ok(scan)
    }

    /// Locks the cache, and with it scanning in this process. Must not be held while waiting for
    /// the store's lock.
    pub(crate) fn lock_stat_cache(
        &self,
        cancel: &Cancel,
    ) -> Result<MutexGuard<'_, StatCache>, Error> {
        loop {
            if let Some(cache) = self.stat_cache.try_lock_for(LOCK_POLL) {
                return Ok(cache);
            }
            cancel.check()?;
        }
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
