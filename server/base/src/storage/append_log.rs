//! Append-only logs in a task directory.
//!
//! The holder of the [`TaskLock`] appends whole lines with one write. If the write fails, the file
//! is truncated to its old length. Appended lines are durable only after [`UnsyncedWrite::sync`],
//! so that several writes can share one flush.

use std::{
    fs::File,
    io::{ErrorKind as Io, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    TaskDir, TaskLock,
    atomic_file::{
        cannot_open, check_regular, failed, open, open_regular, private_options, regular, sync_dir,
    },
};
use crate::{
    error::Error,
    fs::dir::{FileInfo, lstat, stat_file},
};

/// Identity, length and modification time of a log, compared to detect changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStamp {
    /// Device and inode.
    identity: (u64, u64),
    /// Length in bytes.
    pub len: u64,
    /// Modification time, in nanoseconds since the Unix epoch.
    pub mtime_ns: u64,
}

impl LogStamp {
    pub(super) fn of(file: &FileInfo) -> Self {
        Self {
            identity: file.identity(),
            len: file.stamp.size,
            mtime_ns: u64::try_from(file.stamp.mtime).unwrap_or(0),
        }
    }

    /// Returns whether both stamps are of the same file.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl TaskDir {
    /// Returns the stamp of a log, or `None` if it does not exist.
    ///
    /// # Errors
    /// `storage`, if its metadata cannot be read or it is not a regular file.
    pub fn stamp(&self, name: &str) -> Result<Option<LogStamp>, Error> {
        let path = self.path().join(name);
        match lstat(&path) {
            Ok(found) => regular(&path, &found).map(Some),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(failed("read the metadata of", &path, error)),
        }
    }

    /// Opens a log for reading. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// `storage`, if it cannot be opened or is not a regular file.
    pub fn open_log(&self, name: &str) -> Result<Option<(File, LogStamp)>, Error> {
        let path = self.path().join(name);
        match open_regular(&path) {
            Ok(file) => {
                let stamp = check_regular(&path, &file)?;
                Ok(Some((file, stamp)))
            }
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(cannot_open(&path, error)),
        }
    }
}

impl TaskLock {
    /// Appends `lines` to a log, creating it if needed. `known` records whether the log's directory
    /// entry is durable, and is set by [`UnsyncedWrite::sync`].
    ///
    /// # Errors
    /// `storage`. Nothing was appended.
    pub fn append(
        &self,
        name: &str,
        lines: &[u8],
        known: &Arc<AtomicBool>,
    ) -> Result<UnsyncedWrite, Error> {
        let path = self.dir.join(name);
        let mut options = private_options();
        options.read(true).append(true).create(true);
        let mut file = open(&path, &mut options).map_err(|error| cannot_open(&path, error))?;
        let before = check_regular(&path, &file)?;
        let written = file.write_all(lines).and_then(|()| stat_file(&file));
        let after = written.map_err(|error| {
            // If this fails too, the next writer repairs the log.
            let _ = file.set_len(before.len);
            failed("write", &path, error)
        })?;
        Ok(UnsyncedWrite {
            file: Arc::new(file),
            path,
            before,
            stamp: LogStamp::of(&after),
            known: Arc::clone(known),
        })
    }
}

/// Lines appended to a log that may not be durable yet.
#[derive(Clone, Debug)]
#[must_use = "unsynced lines are lost if the machine crashes"]
pub struct UnsyncedWrite {
    file: Arc<File>,
    path: PathBuf,
    /// Stamp before the write.
    pub before: LogStamp,
    /// Stamp after the write.
    pub stamp: LogStamp,
    known: Arc<AtomicBool>,
}

impl UnsyncedWrite {
    /// Waits until these lines and all earlier ones are on the disk.
    ///
    /// # Errors
    /// `storage`. The lines may or may not be durable.
    pub fn sync(&self) -> Result<(), Error> {
        self.file
            .sync_data()
            .map_err(|error| failed("flush", &self.path, error))?;
        if self.known.load(Ordering::Acquire) {
            return Ok(());
        }
        for dir in self.path.ancestors().skip(1).take(2) {
            sync_dir(dir)?;
        }
        self.known.store(true, Ordering::Release);
        Ok(())
    }
}
