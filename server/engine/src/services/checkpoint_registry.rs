//! The checkpoint stores of the open roots, kept open between requests.
//!
//! Each root keeps its store's caches and a [`DirtyTracker`], so that a checkpoint scans
//! only what changed.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Root, Roots},
    storage::Storage,
};
use sightline_checkpoint::{Checkpoints, Oid};

use crate::dirty_tracker::DirtyTracker;

/// Maximum number of checkpoint ids whose root is cached.
const MAX_KNOWN_IDS: usize = 10_000;

/// The checkpoint store of one root.
pub struct RootCheckpoints {
    /// The store.
    pub store: Arc<Checkpoints>,
    /// Paths changed in the work tree since the last scan.
    pub changes: DirtyTracker,
    /// Maintenance is scheduled.
    maintenance_pending: AtomicBool,
}

impl RootCheckpoints {
    /// Records that the work tree was scanned, and watches it.
    pub fn scanned(&self) {
        self.changes.scanned(&self.store);
    }

    /// Records that maintenance is scheduled. Returns false if it was already.
    pub fn schedule_maintenance(&self) -> bool {
        !self.maintenance_pending.swap(true, Ordering::AcqRel)
    }

    /// Records that maintenance is no longer scheduled.
    pub fn begin_maintenance(&self) {
        self.maintenance_pending.store(false, Ordering::Release);
    }

    /// Repacks small packs and saves caches.
    pub fn maintain(&self, cancel: &Cancel) {
        let done = self.store.tidy(cancel);
        if let Err(error) = done
            && !cancel.is_cancelled()
        {
            tracing::warn!(%error, "cannot maintain the checkpoint store");
        }
    }

    /// Repacks small packs of a store that is not idle.
    pub fn combine_packs(&self) {
        if let Err(error) = self.store.combine_packs(&Cancel::default()) {
            tracing::warn!(%error, "cannot combine the packs of the checkpoint store");
        }
    }
}

/// The checkpoint stores of the open roots.
#[derive(Default)]
pub struct CheckpointRegistry {
    /// By canonical root path; the first value is the data directory.
    roots: Mutex<HashMap<PathBuf, (PathBuf, Arc<RootCheckpoints>)>>,
    /// The root of each known checkpoint id, so that a request can be queued without
    /// reading the disk.
    ids: Mutex<HashMap<Oid, PathBuf>>,
}

impl CheckpointRegistry {
    /// Returns the store of a root, opening it if necessary.
    pub fn open(&self, storage: &Storage, root: &Root) -> Arc<RootCheckpoints> {
        let key = root.canonical.as_path();
        let mut roots = self.roots.lock();
        if let Some((dir, known)) = roots.get(key)
            && dir == storage.dir()
        {
            return known.clone();
        }
        let made = Arc::new(RootCheckpoints {
            store: Arc::new(Checkpoints::new(storage, root)),
            changes: DirtyTracker::new(root.canonical.clone()),
            maintenance_pending: AtomicBool::new(false),
        });
        let dir = storage.dir().to_owned();
        roots.insert(key.to_owned(), (dir, made.clone()));
        made
    }

    /// Closes the stores of roots that are no longer open.
    pub fn retain(&self, roots: &Roots) {
        let is_open = |path: &PathBuf| {
            let mut roots = roots.as_slice().iter();
            roots.any(|root| root.canonical.as_path() == path)
        };
        self.roots.lock().retain(|path, _| is_open(path));
    }

    /// Caches the root of a checkpoint.
    pub fn remember(&self, id: Oid, root: &Root) {
        let mut ids = self.ids.lock();
        if ids.len() >= MAX_KNOWN_IDS {
            ids.clear();
        }
        ids.insert(id, root.canonical.as_path().to_owned());
    }

    /// Marks a file as changed, as reported by the editor.
    pub fn mark_changed(&self, path: &AbsPath) {
        for checkpoints in self.all() {
            let root = checkpoints.store.root();
            let below = path.relative_to(&root.path);
            if let Some(rel) = below.or_else(|| path.relative_to(&root.canonical)) {
                checkpoints.changes.mark(rel);
            }
        }
    }

    /// Returns the canonical root of a known checkpoint, without reading the disk.
    pub fn known_root(&self, id: &Oid) -> Option<PathBuf> {
        self.ids.lock().get(id).cloned()
    }

    /// Runs maintenance on every open store, synchronously.
    pub fn maintain(&self) {
        for checkpoints in self.all() {
            checkpoints.maintain(&Cancel::default());
        }
    }

    fn all(&self) -> Vec<Arc<RootCheckpoints>> {
        let roots = self.roots.lock();
        roots.values().map(|(_, known)| known.clone()).collect()
    }
}
