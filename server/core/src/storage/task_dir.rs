//! The directory of one task, and the right to write in it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use sightline_protocol::error::ErrorKind;

use super::{
    Storage, TaskId,
    files::{
        admit, aside, cannot_open, failed, is_same_file, is_unfinished, make_dir, open, read,
        sync_dir, tighten, write,
    },
};
use crate::error::Error;

/// Files only a task has.
const TASK_FILES: &[&str] = &[
    "conversation.jsonl",
    "tracked_files.json",
    "calibration.json",
];
pub(super) const LOCK_FILE: &str = ".lock";
/// How long one holder of a lock is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The directory of one task.
#[derive(Clone, Debug)]
pub struct TaskDir {
    pub(super) storage: Storage,
    pub(super) id: TaskId,
    pub(super) dir: PathBuf,
}

impl TaskDir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Is there such a directory? A link to one is none.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.dir).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Was anything of a task ever stored in it? Any folder may stand beside
    /// the tasks, and is nobody's to delete.
    pub fn is_task(&self) -> bool {
        let is_file = |name: &&str| {
            let metadata = fs::symlink_metadata(self.dir.join(name));
            metadata.is_ok_and(|metadata| metadata.is_file())
        };
        self.exists() && TASK_FILES.iter().any(is_file)
    }

    /// The content of a file; `None` when there is none.
    ///
    /// # Errors
    /// Kind `storage` when it can't be read or is over [`limits::MAX_STATE_FILE_BYTES`](crate::limits::MAX_STATE_FILE_BYTES).
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        read(&self.dir.join(name))
    }

    /// Becomes the only writer, creating the directory where needed; waits up
    /// to five seconds for another one.
    ///
    /// # Errors
    /// Kind `busy` when another writer stays; kind `storage` when the directory
    /// can't be made.
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
                        return Err(Error::new(
                            ErrorKind::Busy,
                            format!(
                                "task {} is being written by another process; try again",
                                self.id
                            ),
                        ));
                    }
                    Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
                }
            }
            // Whoever held it may have deleted the task and the file with it.
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

    /// `None` when the task was deleted just now.
    fn lock_file(&self, path: &Path) -> Result<Option<File>, Error> {
        if !self.exists() {
            self.storage.create()?;
            make_dir(&self.dir)?;
            if fs::symlink_metadata(&self.dir).is_ok_and(|found| !found.is_dir()) {
                return Err(Error::storage(format!(
                    "{} is a link or no directory; move it away",
                    self.dir.display()
                )));
            }
        }
        tighten(&self.dir, 0o700)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match open(path, &mut options) {
            Ok(file) => admit(path, &file).map(|_| Some(file)),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(cannot_open(path, &error)),
        }
    }
}

/// The right to write below one task; given back when dropped.
#[derive(Debug)]
pub struct TaskLock {
    pub(super) dir: PathBuf,
    pub(super) file: File,
}

impl Drop for TaskLock {
    fn drop(&mut self) {
        // A process that another thread starts just now has the file open as well, and
        // so the lock, until it runs its program.
        let _ = self.file.unlock();
    }
}

impl TaskLock {
    /// Replaces a file, atomically and durably.
    ///
    /// # Errors
    /// Kind `storage`; the old content is then still there.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        write(&self.dir.join(name), content)
    }

    /// Gives a file that makes no sense another name, `NAME.corrupt-<millis>`,
    /// so that a new one can be written without destroying it.
    ///
    /// # Errors
    /// Kind `storage`.
    pub fn set_aside(&self, name: &str) -> Result<PathBuf, Error> {
        let from = self.dir.join(name);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let to = aside(&from, since.unwrap_or_default().as_millis());
        fs::rename(&from, &to).map_err(|error| failed("set aside", &from, &error))?;
        sync_dir(&self.dir)?;
        Ok(to)
    }

    /// Removes what killed writers left: every live one holds this lock.
    fn sweep(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.dir).map_err(|error| failed("list", &self.dir, &error))?;
        for entry in entries.flatten() {
            if is_unfinished(&entry.file_name()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}
