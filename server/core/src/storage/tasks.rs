//! All tasks together: which there are, and deleting one.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use sightline_protocol::error::ErrorKind;
use uuid::Uuid;

use super::{
    Storage, TASKS, TaskDir, TaskId, TaskLock,
    files::{failed, is_unfinished, make_dir, read, replace, sync_dir, write},
    task_dir::LOCK_FILE,
};
use crate::error::Error;

/// How the names of tasks being deleted begin.
const DELETED: &str = ".deleted-";
/// How the names of tasks being made begin.
const MADE: &str = ".made-";
/// Unfinished files and tasks older than this have no living writer.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);

impl Storage {
    /// Ids of all tasks, sorted.
    ///
    /// # Errors
    /// Kind `storage`.
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

    /// A file that stands beside the tasks; `None` when there is none.
    ///
    /// # Errors
    /// Kind `storage`.
    pub fn read_beside_tasks(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        read(&self.dir.join(TASKS).join(name))
    }

    /// Replaces a file that stands beside the tasks, atomically.
    ///
    /// # Errors
    /// Kind `storage`.
    pub fn write_beside_tasks(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.create()?;
        write(&self.dir.join(TASKS).join(name), content)
    }

    /// Makes a task of these files: all of it, or nothing.
    ///
    /// # Errors
    /// `conflict` when there is one, kind `storage`.
    pub fn create_task(&self, id: &TaskId, files: &[(&str, &[u8])]) -> Result<(), Error> {
        let dir = self.task(id).dir;
        let exists = || {
            Error::new(
                ErrorKind::Conflict,
                format!("task {id} is there already; delete it first, or name another id"),
            )
        };
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
            fs::rename(&made, &dir).map_err(|error| match dir.exists() {
                true => exists(),
                false => failed("create", &dir, &error),
            })
        });
        if placed.is_err() {
            let _ = fs::remove_dir_all(&made);
        }
        placed?;
        sync_dir(&tasks)
    }

    /// Removes what killed processes left of tasks they were deleting or making.
    ///
    /// # Errors
    /// Kind `storage`.
    pub fn sweep_deleted(&self) -> Result<(), Error> {
        for entry in self.entries_of_tasks()? {
            let name = entry.file_name();
            let is_made = begins(&name, MADE) && is_forgotten(&entry.path());
            if begins(&name, DELETED) || is_made {
                let _ = fs::remove_dir_all(entry.path());
            } else if is_unfinished(&name) && is_forgotten(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    fn entries_of_tasks(&self) -> Result<Vec<fs::DirEntry>, Error> {
        let tasks = self.dir.join(TASKS);
        if fs::symlink_metadata(&tasks).is_ok_and(|metadata| !metadata.is_dir()) {
            let message = format!("{} is no directory; move it away", tasks.display());
            return Err(Error::storage(message));
        }
        match fs::read_dir(&tasks) {
            Ok(entries) => Ok(entries.flatten().collect()),
            Err(error) if error.kind() == Io::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed("list", &tasks, &error)),
        }
    }
}

impl TaskDir {
    /// The lock, if the task exists and nobody holds it.
    ///
    /// # Errors
    /// Kind `storage`.
    pub fn try_lock(&self) -> Result<Option<TaskLock>, Error> {
        if !self.exists() {
            return Ok(None);
        }
        match self.lock_within(Duration::ZERO) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind == ErrorKind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Bytes its files take.
    pub fn bytes(&self) -> u64 {
        bytes_below(&self.dir)
    }

    /// When one of its files was written last.
    pub fn modified(&self) -> Option<SystemTime> {
        let entries = fs::read_dir(&self.dir).ok()?.flatten();
        let files = entries.filter(|entry| entry.file_name() != LOCK_FILE);
        files
            .filter_map(|entry| entry.metadata().ok()?.modified().ok())
            .max()
    }
}

impl TaskLock {
    /// Deletes the task; bytes its files took. A process killed meanwhile
    /// leaves all of it or nothing with its name.
    ///
    /// # Errors
    /// Kind `storage`.
    pub fn delete(self) -> Result<u64, Error> {
        let bytes = bytes_below(&self.dir);
        let tasks = self.dir.parent().unwrap_or(&self.dir).to_path_buf();
        let gone: PathBuf = tasks.join(format!("{DELETED}{}", Uuid::new_v4()));
        fs::rename(&self.dir, &gone).map_err(|error| failed("delete", &self.dir, &error))?;
        sync_dir(&tasks)?;
        // What stays is swept later.
        let _ = fs::remove_dir_all(&gone);
        Ok(bytes)
    }
}

/// Is it a name we give, of `start` and a uuid?
fn begins(name: &OsStr, start: &str) -> bool {
    let uuid = name.to_str().and_then(|name| name.strip_prefix(start));
    uuid.is_some_and(|uuid| Uuid::parse_str(uuid).is_ok())
}

fn is_forgotten(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.map(|modified| modified.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > FORGOTTEN)
}

/// Lengths of all files below `dir`; links are not followed.
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
