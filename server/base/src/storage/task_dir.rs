//! The directory of a task and its write lock.

use std::{
    fs::{self, File, TryLockError},
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Storage, TaskId,
    atomic_file::{
        aside, cannot_open, check_regular, failed, is_same_file, is_unfinished, make_dir, open,
        private_options, read, restrict_permissions, sync_dir, unusable, write,
    },
};
use crate::{clock::now_millis, error::Error};

/// Files that identify a task directory.
const TASK_FILES: &[&str] = &[
    "conversation.jsonl",
    "tracked_files.json",
    "calibration.json",
];
pub(super) const LOCK_FILE: &str = ".lock";
/// Maximum wait for another holder of the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The directory of one task.
#[derive(Clone, Debug)]
pub struct TaskDir {
    pub(super) storage: Storage,
    pub(super) id: TaskId,
    pub(super) dir: PathBuf,
}

impl TaskDir {
    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns whether the directory exists. A symbolic link does not count.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.dir).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Returns whether the directory contains files of a task. Other directories next to the tasks
    /// are never deleted.
    pub fn is_task(&self) -> bool {
        let is_file = |name: &&str| {
            let metadata = fs::symlink_metadata(self.dir.join(name));
            metadata.is_ok_and(|metadata| metadata.is_file())
        };
        self.exists() && TASK_FILES.iter().any(is_file)
    }

    /// Reads a file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// `storage`, if it cannot be read or exceeds
    /// [`limits::MAX_STATE_FILE_BYTES`](crate::limits::MAX_STATE_FILE_BYTES).
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        read(&self.dir.join(name))
    }

    /// Takes the write lock, creating the directory if needed. Waits up to five seconds for another
    /// writer.
    ///
    /// # Errors
    /// `busy`, if the other writer keeps the lock; `storage`, if the directory cannot be created or has a later version.
    pub fn lock(&self) -> Result<TaskLock, Error> {
        self.lock_within(LOCK_PATIENCE)
    }

    pub(super) fn lock_within(&self, patience: Duration) -> Result<TaskLock, Error> {
        let path = self.dir.join(LOCK_FILE);
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_millis(1);
        loop {
            let Some(file) = self.lock_file(&path)? else {
                continue;
            };
            loop {
                match file.try_lock() {
                    Ok(()) => break,
                    Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                        std::thread::sleep(pause);
                        pause = (pause * 2).min(Duration::from_millis(10));
                    }
                    Err(TryLockError::WouldBlock) => {
                        return Err(Error::TaskLocked(self.id.to_string()));
                    }
                    Err(TryLockError::Error(error)) => return Err(failed("lock", &path, error)),
                }
            }
            // The previous holder may have deleted the task, and the lock file with it.
            if is_same_file(&file, &path) {
                let lock = TaskLock {
                    dir: self.dir.clone(),
                    file,
                };
                lock.sweep()?;
                return Ok(lock);
            }
        }
    }

    /// Returns `None` if the task was deleted concurrently.
    fn lock_file(&self, path: &Path) -> Result<Option<File>, Error> {
        // A later version may have converted the directory since it was opened.
        self.storage.check_version()?;
        if !self.exists() {
            self.storage.create()?;
            make_dir(&self.dir)?;
            if fs::symlink_metadata(&self.dir).is_ok_and(|found| !found.is_dir()) {
                return Err(unusable(&self.dir, "is not a directory; move it away"));
            }
        }
        restrict_permissions(&self.dir, 0o700)?;
        let mut options = private_options();
        options.read(true).write(true).create(true);
        match open(path, &mut options) {
            Ok(file) => check_regular(path, &file).map(|_| Some(file)),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(cannot_open(path, error)),
        }
    }
}

/// The write lock of a task, released when dropped.
#[derive(Debug)]
pub struct TaskLock {
    pub(super) dir: PathBuf,
    pub(super) file: File,
}

impl Drop for TaskLock {
    fn drop(&mut self) {
        // A child process started by another thread inherits the lock until it calls `exec`, so it
        // is released explicitly.
        let _ = self.file.unlock();
    }
}

impl TaskLock {
    /// Replaces a file, atomically and durably.
    ///
    /// # Errors
    /// `storage`. The old content is kept.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        write(&self.dir.join(name), content)
    }

    /// Renames a corrupt file to `NAME.corrupt-<millis>`, so that writing a new one does not
    /// destroy it.
    ///
    /// # Errors
    /// `storage`.
    pub fn set_aside(&self, name: &str) -> Result<PathBuf, Error> {
        let from = self.dir.join(name);
        let to = aside(&from, now_millis());
        fs::rename(&from, &to).map_err(|error| failed("rename", &from, error))?;
        sync_dir(&self.dir)?;
        Ok(to)
    }

    /// Removes temporary files of killed writers. Live writers hold this lock.
    fn sweep(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.dir).map_err(|error| failed("list", &self.dir, error))?;
        for entry in entries.flatten() {
            if is_unfinished(&entry.file_name()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}
