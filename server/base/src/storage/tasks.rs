//! Lists, creates and deletes tasks.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use uuid::Uuid;

use super::{
    Storage, TASKS, TaskDir, TaskId, TaskLock,
    atomic_file::{failed, is_unfinished, make_dir, read, replace, sync_dir, unusable, write},
    task_dir::LOCK_FILE,
};
use crate::error::Error;

/// Name prefix of a task that is being deleted.
const DELETED: &str = ".deleted-";
/// Name prefix of a task that is being created.
const MADE: &str = ".made-";
/// Age after which temporary files and directories have no live writer.
const MAX_LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);

impl Storage {
    /// Returns the ids of all tasks, sorted.
    ///
    /// # Errors
    /// `storage`.
    pub fn task_ids(&self) -> Result<Vec<TaskId>, Error> {
        let mut ids: Vec<TaskId> = self
            .entries_of_tasks()?
            .iter()
            .filter_map(|entry| TaskId::new(entry.file_name().to_str()?).ok())
            .filter(|id| self.task(id).is_task())
            .collect();
        ids.sort();
        Ok(ids)
    }

    /// Reads a file in the directory of the tasks. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// `storage`.
    pub fn read_beside_tasks(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        read(&self.dir.join(TASKS).join(name))
    }

    /// Replaces a file in the directory of the tasks, atomically.
    ///
    /// # Errors
    /// `storage`.
    pub fn write_beside_tasks(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.create()?;
        write(&self.dir.join(TASKS).join(name), content)
    }

    /// Creates a task with these files, atomically.
    ///
    /// # Errors
    /// `conflict`, if it exists; `storage`.
    pub fn create_task(&self, id: &TaskId, files: &[(&str, &[u8])]) -> Result<(), Error> {
        let dir = self.task(id).dir;
        let exists = || Error::TaskExists(id.to_string());
        if dir.exists() {
            return Err(exists());
        }
        self.create()?;
        let tasks = self.dir.join(TASKS);
        let made = tasks.join(format!("{MADE}{}", Uuid::new_v4()));
        make_dir(&made)?;
        let filled = files
            .iter()
            .try_for_each(|(name, content)| replace(&made.join(name), content));
        let placed = filled.and_then(|()| {
            fs::rename(&made, &dir).map_err(|error| {
                if dir.exists() {
                    exists()
                } else {
                    failed("create", &dir, error)
                }
            })
        });
        if placed.is_err() {
            let _ = fs::remove_dir_all(&made);
        }
        placed?;
        sync_dir(&tasks)
    }

    /// Removes leftovers of killed processes that were deleting or creating tasks.
    ///
    /// # Errors
    /// `storage`.
    pub fn sweep_deleted(&self) -> Result<(), Error> {
        for entry in self.entries_of_tasks()? {
            let name = entry.file_name();
            let is_made = begins(&name, MADE) && is_leftover(&entry.path());
            if begins(&name, DELETED) || is_made {
                let _ = fs::remove_dir_all(entry.path());
            } else if is_unfinished(&name) && is_leftover(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    fn entries_of_tasks(&self) -> Result<Vec<fs::DirEntry>, Error> {
        let tasks = self.dir.join(TASKS);
        if fs::symlink_metadata(&tasks).is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(unusable(&tasks, "is not a directory; move it away"));
        }
        match fs::read_dir(&tasks) {
            Ok(entries) => Ok(entries.flatten().collect()),
            Err(error) if error.kind() == Io::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed("list", &tasks, error)),
        }
    }
}

impl TaskDir {
    /// Takes the lock if the task exists and is not locked.
    ///
    /// # Errors
    /// `storage`.
    pub fn try_lock(&self) -> Result<Option<TaskLock>, Error> {
        if !self.exists() {
            return Ok(None);
        }
        match self.lock_within(Duration::ZERO) {
            Ok(lock) => Ok(Some(lock)),
            Err(Error::TaskLocked(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the total size of its files, in bytes.
    pub fn bytes(&self) -> u64 {
        bytes_below(&self.dir)
    }

    /// Returns the latest modification time of its files.
    pub fn modified(&self) -> Option<SystemTime> {
        let entries = fs::read_dir(&self.dir).ok()?.flatten();
        let files = entries.filter(|entry| entry.file_name() != LOCK_FILE);
        files
            .filter_map(|entry| entry.metadata().ok()?.modified().ok())
            .max()
    }
}

impl TaskLock {
    /// Deletes the task and returns the freed bytes. A process killed during the call leaves the
    /// complete task or none.
    ///
    /// # Errors
    /// `storage`.
    pub fn delete(self) -> Result<u64, Error> {
        let bytes = bytes_below(&self.dir);
        let tasks = self.dir.parent().unwrap_or(&self.dir).to_path_buf();
        let gone: PathBuf = tasks.join(format!("{DELETED}{}", Uuid::new_v4()));
        fs::rename(&self.dir, &gone).map_err(|error| failed("delete", &self.dir, error))?;
        sync_dir(&tasks)?;
        // The remaining files are removed by `sweep_deleted`.
        let _ = fs::remove_dir_all(&gone);
        Ok(bytes)
    }
}

/// Returns whether `name` consists of `start` and a UUID.
fn begins(name: &OsStr, start: &str) -> bool {
    let uuid = name.to_str().and_then(|name| name.strip_prefix(start));
    uuid.is_some_and(|uuid| Uuid::parse_str(uuid).is_ok())
}

fn is_leftover(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.map(|modified| modified.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > MAX_LEFTOVER_AGE)
}

/// Returns the total size of all files below `dir`, without following links.
fn bytes_below(dir: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
                continue;
            };
            if metadata.is_dir() {
                dirs.push(entry.path());
            } else {
                bytes = bytes.saturating_add(metadata.len());
            }
        }
    }
    bytes
}
