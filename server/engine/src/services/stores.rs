//! The data directory of the settings, and the store of conversations in it.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sightline_base::storage::Storage;
use sightline_tasks::TaskStore;

use crate::{error::Error, settings::Settings};

/// The opened stores.
#[derive(Default)]
pub struct Stores(Mutex<Option<Opened>>);

#[derive(Clone)]
struct Opened {
    storage: Storage,
    tasks: TaskStore,
}

impl Stores {
    /// Opens the data directory.
    ///
    /// # Errors
    /// Kind `storage` if it cannot be used.
    pub fn storage(&self, settings: &Settings) -> Result<Storage, Error> {
        Ok(self.open(settings)?.storage)
    }

    /// Returns the store of conversations.
    ///
    /// # Errors
    /// Kind `storage` if the data directory cannot be used.
    pub fn tasks(&self, settings: &Settings) -> Result<TaskStore, Error> {
        Ok(self.open(settings)?.tasks)
    }

    /// Returns whether this is the path of a result document.
    pub fn is_result(&self, path: &Path) -> bool {
        let opened = self.0.lock();
        opened
            .as_ref()
            .is_some_and(|opened| opened.storage.is_result(path))
    }

    fn open(&self, settings: &Settings) -> Result<Opened, Error> {
        let path = match &settings.storage.path {
            Some(path) => path.clone(),
            None => default_storage_dir()?,
        };
        let mut kept = self.0.lock();
        if let Some(opened) = kept.as_ref().filter(|opened| opened.storage.dir() == path) {
            return Ok(opened.clone());
        }
        let storage = Storage::open(&path)?;
        let tasks = TaskStore::new(storage.clone());
        Ok(kept.insert(Opened { storage, tasks }).clone())
    }
}

/// Returns the platform's data directory for this application.
///
/// # Errors
/// Kind `storage` if the user has no home directory.
pub fn default_storage_dir() -> Result<PathBuf, Error> {
    directories::ProjectDirs::from("", "", "sightline")
        .map(|places| places.data_dir().to_path_buf())
        .filter(|path| path.is_absolute())
        .ok_or_else(|| {
            Error::storage("cannot find the data directory: no home directory; set `storage.path`")
        })
}
