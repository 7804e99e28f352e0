//! Reading one file or link as it is at one moment.

use std::{fs, io, io::Read};

use super::{
    scan_dir::{Dir, Kind},
    snapshot::{File, SkipReason, Stamp},
};
use crate::checkpoint::store::object::{Kind as Object, Mode, name_of};

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 4;

/// What was found.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    File(File),
    /// It is there and can't be captured.
    Skipped(SkipReason),
    /// It is something else now, or gone.
    Replaced,
}

/// Reads the file `name`. Its bytes are in `buffer` when it is captured.
/// `started_at` is from before anything was looked at, in nanoseconds since the epoch.
pub(crate) fn file(
    dir: &Dir,
    name: &[u8],
    limit: u64,
    started_at: i64,
    last: Option<Mode>,
    buffer: &mut Vec<u8>,
) -> ReadOutcome {
    let opened = match dir.open_file(name) {
        Ok((file, Kind::File, stamp)) => (file, stamp),
        Ok(_) => return ReadOutcome::Replaced,
        Err(error) => return failed(&error),
    };
    let (mut file, mut stamp) = opened;
    for attempt in 0..ATTEMPTS {
        if stamp.size > limit {
            return ReadOutcome::Skipped(SkipReason::TooLarge(stamp.size));
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
                oid: name_of(Object::Blob, buffer),
                mode: mode(&stamp, last),
                settled: stamp.is_settled(started_at),
            });
        }
        stamp = after;
    }
    ReadOutcome::Skipped(SkipReason::Unstable)
}

/// Reads as much as the file should have, and tells its stamp afterwards.
fn read_all(file: &mut fs::File, size: u64, buffer: &mut Vec<u8>) -> io::Result<Stamp> {
    read_at_most(file, size, buffer)?;
    Dir::stamp_of(file)
}

/// Reads on until the file ends or `buffer`, whatever was in it, holds so many
/// bytes. The standard library asks how long the file is, and begins with
/// pieces of 8 KiB.
pub(crate) fn read_at_most(mut file: &fs::File, most: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let most = usize::try_from(most).map_err(|_| io::ErrorKind::FileTooLarge)?;
    buffer.truncate(most);
    buffer.reserve_exact(most - buffer.len());
    buffer.resize(most, 0);
    let mut length = 0;
    while length < most {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(length);
    Ok(())
}

/// Whether it may be executed; as before, where the system does not know that.
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

/// Reads the link `name`; where it points is in `buffer`.
pub(crate) fn link(dir: &Dir, name: &[u8], started_at: i64, buffer: &mut Vec<u8>) -> ReadOutcome {
    for _ in 0..ATTEMPTS {
        let before = match dir.stat(name) {
            Ok((Kind::Link, stamp)) => stamp,
            Ok(_) => return ReadOutcome::Replaced,
            Err(error) => return failed(&error),
        };
        match dir.read_link(name) {
            Ok(target) => *buffer = target,
            Err(error) => return failed(&error),
        }
        if dir
            .stat(name)
            .is_ok_and(|after| after == (Kind::Link, before))
        {
            return ReadOutcome::File(File {
                stamp: before,
                oid: name_of(Object::Blob, buffer),
                mode: Mode::Link,
                settled: before.is_settled(started_at),
            });
        }
    }
    ReadOutcome::Skipped(SkipReason::Unstable)
}

/// What an error means for an entry.
pub(crate) fn failed(error: &io::Error) -> ReadOutcome {
    if is_gone(error) {
        return ReadOutcome::Replaced;
    }
    ReadOutcome::Skipped(SkipReason::Unreadable(error.raw_os_error().unwrap_or(0)))
}

/// Does the error say that there is something else, or nothing, of that name?
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_read_as_is_wanted_and_there() {
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
