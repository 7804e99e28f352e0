//! The files that tasks track, watched by the file watcher.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::mpsc,
};

use parking_lot::Mutex;

/// The tracked files, and the channel that wakes the file watcher.
#[derive(Default)]
pub struct TrackedFiles {
    paths: Mutex<BTreeSet<PathBuf>>,
    watcher: Mutex<Option<mpsc::Sender<()>>>,
}

impl TrackedFiles {
    /// Adds a file.
    pub fn add(&self, path: &Path) {
        if self.paths.lock().insert(path.to_path_buf()) {
            self.wake_watcher();
        }
    }

    /// Returns all files.
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        self.paths.lock().clone()
    }

    /// Makes the file watcher scan now, if it runs.
    pub fn wake_watcher(&self) {
        if let Some(watcher) = &*self.watcher.lock() {
            let _ = watcher.send(());
        }
    }

    /// Connects the file watcher. Returns its channel, or `None` if one is connected.
    pub fn connect_watcher(&self) -> Option<(mpsc::Sender<()>, mpsc::Receiver<()>)> {
        let mut watcher = self.watcher.lock();
        if watcher.is_some() {
            return None;
        }
        let (sender, receiver) = mpsc::channel();
        *watcher = Some(sender.clone());
        Some((sender, receiver))
    }
}
