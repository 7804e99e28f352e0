//! What changed in a root since its last checkpoint, told so that nothing has
//! to be scanned for.
//!
//! A checkpoint may trust this only if it is last_full_scan: a change that ended
//! before the checkpoint was asked for must be in. So the answer is "anything
//! may have changed" unless every captured folder is watched, and the system's
//! own queue is emptied whenever somebody asks (`linux`). Where that cannot be
//! had, the answer is always that one, and the work tree is scanned.

#[cfg(target_os = "linux")]
mod inotify;

use std::sync::Arc;

use sightline_core::{
    checkpoint::changes::{ChangeSource, Changes},
    path::{AbsPath, RelPath},
};

use crate::checkpoint_registry::RootCheckpoints;

/// The changes of one root.
pub struct DirtyTracker {
    #[cfg(target_os = "linux")]
    inner: inotify::InotifyTracker,
}

impl DirtyTracker {
    /// Those of the root at this path, which has no links. Nothing is watched
    /// before the first checkpoint.
    pub fn new(root: AbsPath) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = root;
        Self {
            #[cfg(target_os = "linux")]
            inner: inotify::InotifyTracker::new(root),
        }
    }

    /// The work tree was scanned at: its folders are known, and can be watched.
    pub fn scanned(&self, of: &Arc<RootCheckpoints>) {
        #[cfg(target_os = "linux")]
        self.inner.scanned(of);
        #[cfg(not(target_os = "linux"))]
        let _ = of;
    }

    /// Somebody says that this path changed.
    pub fn mark(&self, path: RelPath) {
        #[cfg(target_os = "linux")]
        self.inner.put_back(Changes::Known(vec![path]));
        #[cfg(not(target_os = "linux"))]
        let _ = path;
    }
}

impl ChangeSource for DirtyTracker {
    fn take(&self) -> Changes {
        #[cfg(target_os = "linux")]
        return self.inner.take();
        #[cfg(not(target_os = "linux"))]
        Changes::Unknown
    }

    fn put_back(&self, changes: Changes) {
        #[cfg(target_os = "linux")]
        self.inner.put_back(changes);
        #[cfg(not(target_os = "linux"))]
        let _ = changes;
    }
}
