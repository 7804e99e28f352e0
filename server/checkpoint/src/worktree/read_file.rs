//! Reads a file or link consistently, and detects concurrent changes.

use std::{ffi::OsStr, fs, io, io::Read};

use sightline_base::fs::dir::{Access, Dir, FileInfo, FileType, stat_file};
use sightline_protocol::error::ErrorKind;

use super::snapshot::{ExclusionReason, File, Stamp};
use crate::{
    error::Error,
    store::object::{Kind, Mode, name_of},
};

/// How often a file that changes during the read is read again.
const ATTEMPTS: usize = 4;

/// Result of a read.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    File(File),
    /// The entry exists and cannot be captured.
    Skipped(ExclusionReason),
    /// The entry was removed, or has another type.
    Replaced,
}

/// Reads the file `name` into `buffer`. `started_at` is a time before the scan, in nanoseconds
/// since the epoch.
pub(crate) fn file(
    dir: &Dir,
    name: &OsStr,
    limit: u64,
    started_at: i64,
    last: Option<Mode>,
    buffer: &mut Vec<u8>,
) -> ReadOutcome {
    let (mut file, mut stamp) = match open(dir, name) {
        Ok((file, found)) if found.kind == FileType::File => (file, found.stamp),
        Ok(_) => return ReadOutcome::Replaced,
        Err(error) => return failed(&error),
    };
    for attempt in 0..ATTEMPTS {
        if stamp.size > limit {
            return ReadOutcome::Skipped(ExclusionReason::TooLarge(stamp.size));
        }
        if attempt > 0
            && let Err(error) = io::Seek::rewind(&mut file)
        {
            return failed(&error);
        }
        let after = match read_all(&mut file, stamp.size, buffer) {
            Ok(after) => after,
            Err(error) => return failed(&error),
        };
        if after == stamp && buffer.len() as u64 == stamp.size {
            return ReadOutcome::File(File {
                stamp,
                oid: name_of(Kind::Blob, buffer),
                mode: mode(&stamp, last),
                settled: stamp.is_settled(started_at),
            });
        }
        stamp = after;
    }
    ReadOutcome::Skipped(ExclusionReason::Unstable)
}

/// Opens a file for reading, and returns the metadata of what was opened.
pub(crate) fn open(dir: &Dir, name: &OsStr) -> io::Result<(fs::File, FileInfo)> {
    let file = dir.open(name, Access::Read)?;
    let found = stat_file(&file)?;
    Ok((file, found))
}

/// Reads `size` bytes, and returns the stamp of the file afterwards.
fn read_all(file: &mut fs::File, size: u64, buffer: &mut Vec<u8>) -> io::Result<Stamp> {
    read_at_most(file, size, buffer)?;
    Ok(stat_file(file)?.stamp)
}

/// Reads until the end of the file, or until `buffer` holds `most` bytes.
pub(crate) fn read_at_most(file: &fs::File, most: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    buffer.reserve_exact(usize::try_from(most).map_err(|_| io::ErrorKind::FileTooLarge)?);
    file.take(most).read_to_end(buffer).map(drop)
}

/// Returns the mode of a file. Keeps the last one on systems without an executable bit.
fn mode(stamp: &Stamp, last: Option<Mode>) -> Mode {
    let executable = match last {
        Some(last) if !cfg!(unix) => last == Mode::Executable,
        _ => stamp.mode & 0o100 != 0,
    };
    if executable {
        Mode::Executable
    } else {
        Mode::File
    }
}

/// Reads the target of the link `name` into `buffer`.
pub(crate) fn link(dir: &Dir, name: &OsStr, started_at: i64, buffer: &mut Vec<u8>) -> ReadOutcome {
    for _ in 0..ATTEMPTS {
        let before = match dir.stat(name) {
            Ok(Some(found)) if found.kind == FileType::Symlink => found,
            Ok(_) => return ReadOutcome::Replaced,
            Err(error) => return failed(&error),
        };
        match dir.read_link(name) {
            Ok(target) => *buffer = target,
            Err(error) => return failed(&error),
        }
        if matches!(dir.stat(name), Ok(Some(after)) if after == before) {
            return ReadOutcome::File(File {
                stamp: before.stamp,
                oid: name_of(Kind::Blob, buffer),
                mode: Mode::Link,
                settled: before.stamp.is_settled(started_at),
            });
        }
    }
    ReadOutcome::Skipped(ExclusionReason::Unstable)
}

/// Converts an error into a result for the entry.
pub(crate) fn failed(error: &io::Error) -> ReadOutcome {
    if is_gone(error) {
        return ReadOutcome::Replaced;
    }
    ReadOutcome::Skipped(ExclusionReason::Unreadable(
        error.raw_os_error().unwrap_or(0),
    ))
}

/// Returns whether the error means that the entry is missing or has another type.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return true;
    }
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::Unsupported
    )
}

/// Returns whether memory or open files ran out, which says nothing about the entry.
pub(crate) fn is_resource_error(number: i32) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        [Errno::MFILE, Errno::NFILE, Errno::NOMEM]
            .iter()
            .any(|errno| errno.raw_os_error() == number)
    }
    #[cfg(not(unix))]
    {
        let _ = number;
        false
    }
}

pub(crate) fn resource_error(number: i32) -> Error {
    let error = io::Error::from_raw_os_error(number);
    Error::new(
        ErrorKind::Internal,
        format!("cannot scan the workspace: {error}; try again"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_at_most_the_requested_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "0123456789").unwrap();
        let mut buffer = b"what was there before".to_vec();
        for (most, held) in [(4, "0123"), (10, "0123456789"), (12, "0123456789"), (0, "")] {
            read_at_most(&fs::File::open(&path).unwrap(), most, &mut buffer).unwrap();
            assert_eq!(buffer, held.as_bytes());
        }
        let file = fs::File::open(&path).unwrap();
        read_at_most(&file, 7, &mut buffer).unwrap();
        read_at_most(&file, 7, &mut buffer).unwrap();
        assert_eq!(buffer, b"789");
    }
}
