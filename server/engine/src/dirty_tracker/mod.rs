//! Tracks which paths changed in a root since its last checkpoint, so that it need not be
//! scanned.
//!
//! The list must be complete: it includes every change that finished before the
//! checkpoint was requested. This holds only if every captured directory is watched and
//! the system's event queue is drained on each request (`inotify`). Otherwise, and on
//! other systems, the answer is "unknown", and the work tree is scanned.

#[cfg(target_os = "linux")]
pub(crate) mod inotify;

use std::sync::Arc;

use sightline_base::path::{AbsPath, RelPath};
use sightline_checkpoint::{ChangeSource, Changes, Checkpoints};

/// Tracks the changes of one root.
pub struct DirtyTracker {
    #[cfg(target_os = "linux")]
    inner: inotify::InotifyTracker,
}

impl DirtyTracker {
    /// Creates a tracker for a canonical root path. Watches nothing before the first
    /// checkpoint.
    pub fn new(root: AbsPath) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = root;
        Self {
            #[cfg(target_os = "linux")]
            inner: inotify::InotifyTracker::new(root),
        }
    }

    /// Records a scan of the work tree, after which its directories can be watched.
    pub fn scanned(&self, checkpoints: &Arc<Checkpoints>) {
        #[cfg(target_os = "linux")]
        self.inner.scanned(checkpoints);
        #[cfg(not(target_os = "linux"))]
        let _ = checkpoints;
    }

    /// Marks a path as changed.
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
