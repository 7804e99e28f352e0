//! The files that tasks track, watched by the file watcher.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Mutex, mpsc},
};

use crate::mutex::lock;

/// The tracked files, and the channel that wakes the file watcher.
#[derive(Default)]
pub struct TrackedFiles {
    paths: Mutex<BTreeSet<PathBuf>>,
    watcher: Mutex<Option<mpsc::Sender<()>>>,
}

impl TrackedFiles {
    /// Adds a file.
    pub fn add(&self, path: &Path) {
        if lock(&self.paths).insert(path.to_path_buf()) {
            self.wake_watcher();
        }
    }

    /// Returns all files.
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        lock(&self.paths).clone()
    }

    /// Makes the file watcher scan now, if it runs.
    pub fn wake_watcher(&self) {
        if let Some(watcher) = &*lock(&self.watcher) {
            let _ = watcher.send(());
        }
    }

    /// Connects the file watcher. Returns its channel, or `None` if one is connected.
    pub fn connect_watcher(&self) -> Option<(mpsc::Sender<()>, mpsc::Receiver<()>)> {
        let mut watcher = lock(&self.watcher);
        if watcher.is_some() {
            return None;
        }
        let (sender, receiver) = mpsc::channel();
        *watcher = Some(sender.clone());
        Some((sender, receiver))
    }
}
