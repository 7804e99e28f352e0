//! A file below a task that only grows: a log.
//!
//! Nothing in it is ever changed or replaced. Whoever holds the [`TaskLock`]
//! adds whole lines with one write; when that fails, what got into the file is
//! cut off again. A write is durable only after [`Written::sync`], so that
//! several can share the wait for the disk.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{ErrorKind as Io, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::UNIX_EPOCH,
};

use super::{
    TaskDir, TaskLock,
    files::{admit, cannot_open, failed, open, regular, sync_dir},
};
use crate::error::Error;

/// What tells one state of a log from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which file it is.
    identity: (u64, u64),
    /// Its length in bytes.
    pub len: u64,
    /// When it was written last, nanoseconds since the Unix epoch.
    pub mtime_ns: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok();
        let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let identity = (0, 0);
        Self {
            identity,
            len: metadata.len(),
            mtime_ns: since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0)),
        }
    }

    /// Do both tell of the same file?
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl TaskDir {
    /// The state of a log; `None` when there is none.
    ///
    /// # Errors
    /// Kind `storage` when it can't be told, or is no regular file.
    pub fn stamp(&self, name: &str) -> Result<Option<Stamp>, Error> {
        let path = self.path().join(name);
        match fs::symlink_metadata(&path) {
            Ok(metadata) => regular(&path, &metadata).map(Some),
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(failed("look at", &path, &error)),
        }
    }

    /// Opens a log for reading; `None` when there is none.
    ///
    /// # Errors
    /// Kind `storage` when it can't be opened, or is no regular file.
    pub fn open_log(&self, name: &str) -> Result<Option<(File, Stamp)>, Error> {
        let path = self.path().join(name);
        let mut options = OpenOptions::new();
        options.read(true);
        match open(&path, &mut options) {
            Ok(file) => {
                let stamp = admit(&path, &file)?;
                Ok(Some((file, stamp)))
            }
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(cannot_open(&path, &error)),
        }
    }
}

impl TaskLock {
    /// Adds `lines` to a log, which begins with them if there is none. `known`
    /// tells whether its name is known to be on the disk, and learns it.
    ///
    /// # Errors
    /// Kind `storage`; then nothing was added.
    pub fn append(
        &self,
        name: &str,
        lines: &[u8],
        known: &Arc<AtomicBool>,
    ) -> Result<Written, Error> {
        let path = self.dir.join(name);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = open(&path, &mut options).map_err(|error| cannot_open(&path, &error))?;
        let before = admit(&path, &file)?;
        let written = file.write_all(lines).and_then(|()| file.metadata());
        let metadata = written.map_err(|error| {
            // A later writer repairs what can't be cut off.
            let _ = file.set_len(before.len);
            failed("write", &path, &error)
        })?;
        Ok(Written {
            file: Arc::new(file),
            path,
            before,
            stamp: Stamp::of(&metadata),
            known: Arc::clone(known),
        })
    }
}

/// Lines added to a log that may not be on the disk yet.
#[derive(Clone, Debug)]
#[must_use = "what is not synced may be lost when the machine stops"]
pub struct Written {
    file: Arc<File>,
    path: PathBuf,
    /// The log before.
    pub(crate) before: Stamp,
    /// The log after.
    pub(crate) stamp: Stamp,
    known: Arc<AtomicBool>,
}

impl Written {
    /// Does syncing one make the other durable too, if it was written before?
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.stamp.is_of_same_file(&other.stamp)
    }

    /// Waits until the lines, and all lines before them, are on the disk.
    ///
    /// # Errors
    /// Kind `storage`; then they may be there or not.
    pub fn sync(&self) -> Result<(), Error> {
        self.file
            .sync_data()
            .map_err(|error| failed("flush", &self.path, &error))?;
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
