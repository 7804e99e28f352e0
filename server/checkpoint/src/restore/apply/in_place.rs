//! Writes the new content into the file itself, under a lease.
//!
//! Creating a file and unlinking the one it replaces costs about ten times as much
//! as overwriting it. A [`Lease`] makes overwriting safe: no other process has the
//! file open, and one that opens it waits. Where no lease is granted, the file is
//! replaced instead, see [`super`].
//!
//! A kill can leave a file partly written: [`is_partly_written`] recognizes it.

use std::{
    fs::File,
    io::{self, Seek, Write},
};

use super::{
    displaced_files::FileSlot,
    file_content::verify_content,
    step_error::{StepError, changed_error, failure},
};
use crate::{
    restore::crash_point::crash_point_under_lease,
    store::object::{Kind, Mode, name_of},
    tree_diff::Leaf,
    worktree::read_file,
};
use sightline_base::fs::{
    dir::{Access, FileInfo, stat_file},
    lease::Lease,
};

/// Largest old or new content that is written in place, in bytes. The old one is held
/// in memory, and for larger files the cost of creating and unlinking is small in comparison.
const MAX_BYTES: usize = 1024 * 1024;
/// Size of a write, in bytes; small in tests, so that a kill can come between two.
const PIECE: usize = if cfg!(test) { 4 } else { MAX_BYTES };

/// Writes `content` into the file at `slot`, which the plan saw as `before` and which is
/// `found` now. Returns `false`, with nothing changed, if it must be replaced instead.
///
/// # Errors
/// Why the file is left, or was put back, as it was, or why it is partly written.
pub(in crate::restore) fn write(
    slot: &FileSlot<'_>,
    before: &Leaf,
    found: FileInfo,
    content: &[u8],
) -> Result<bool, StepError> {
    let is_suitable = before.mode == Mode::File
        && found.links == 1
        // Writing clears the set-user-ID bits.
        && found.stamp.mode & 0o6000 == 0
        && found.stamp.size <= MAX_BYTES as u64
        && content.len() <= MAX_BYTES
        // A reader that stops waiting for the lease would apply no ignore rules.
        && slot.name != ".gitignore";
    if !is_suitable {
        return Ok(false);
    }
    let Ok(file) = slot.dir.open(slot.name, Access::Write) else {
        return Ok(false);
    };
    let Some(lease) = Lease::take(&file) else {
        return Ok(false);
    };
    if !stat_file(&file).is_ok_and(|now| is_same_file(now, found)) {
        return Err(changed_error().into());
    }
    // The content, not the stamp: a write through a mapping moves the stamp later.
    let mut old = Vec::new();
    read_file::read_at_most(&file, found.stamp.size + 1, &mut old)
        .map_err(|error| failure("read it", &error))?;
    if name_of(Kind::Blob, &old) != before.oid {
        return Err(changed_error().into());
    }
    crash_point_under_lease();
    if !lease.is_held() {
        return Ok(false);
    }
    let written = overwrite(&file, content).and_then(|()| verify_content(&file, content));
    let is_in_place = || matches!(slot.dir.stat(slot.name), Ok(Some(now)) if now.stamp.inode == found.stamp.inode);
    let problem = match written {
        Ok(()) if is_in_place() => {
            if lease.release() {
                return Ok(true);
            }
            return Err(
                "written after this process was stopped for long; if another program saved it in that time, its version is lost"
                    .to_owned()
                    .into(),
            );
        }
        // Another file, which is newer, was renamed to this name.
        Ok(()) => changed_error(),
        Err(error) => failure("write it", &error),
    };
    if verify_content(&file, &old).is_ok() {
        return Err(problem.into());
    }
    if !lease.is_held() {
        return Err(StepError::partly_written(format!(
            "{problem}; another program may have changed it since, so it is left as it is"
        )));
    }
    overwrite(&file, &old).map_err(|error| {
        StepError::partly_written(format!(
            "{problem}; cannot write the previous content back: {error}; the restore of this file is completed before the next checkpoint operation"
        ))
    })?;
    Err(problem.into())
}

/// Compares all but the times, which opening for writing can change (overlayfs).
fn is_same_file(now: FileInfo, found: FileInfo) -> bool {
    let identity = |found: FileInfo| {
        (
            found.kind,
            found.links,
            found.stamp.inode,
            found.stamp.size,
            found.stamp.mode,
        )
    };
    identity(now) == identity(found)
}

fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    for piece in content.chunks(PIECE) {
        #[cfg(test)]
        tests::check_write(content, piece)?;
        file.write_all(piece)?;
        crash_point_under_lease();
    }
    if file.metadata()?.len() != content.len() as u64 {
        file.set_len(content.len() as u64)?;
    }
    crash_point_under_lease();
    Ok(())
}

/// Returns whether a file that held `old` can hold `now` because the process died while it wrote
/// `new` there, or while it wrote `old` back: a beginning of `old`, then of `new`, then the rest
/// of `old`.
pub(in crate::restore) fn is_partly_written(now: &[u8], old: &[u8], new: &[u8]) -> bool {
    if old.len() > MAX_BYTES || new.len() > MAX_BYTES || now.len() < old.len() {
        return false;
    }
    let common = |from: usize, content: &[u8]| {
        let content = content.get(from..).unwrap_or_default();
        let pairs = now[from..].iter().zip(content);
        pairs.take_while(|(a, b)| a == b).count()
    };
    let is_partly = |back: usize| {
        let written = back + common(back, new);
        written == now.len() || now.len() == old.len() && now[written..] == old[written..]
    };
    is_partly(0) || is_partly(common(0, old))
}

#[cfg(test)]
pub(in crate::restore) mod tests {
    use std::io;

    use parking_lot::Mutex;

    use super::is_partly_written;

    /// Contents whose writes fail, with the piece at which they fail.
    pub(in crate::restore) static FAILING_WRITES: Mutex<Vec<(&[u8], &[u8])>> =
        Mutex::new(Vec::new());

    pub(in crate::restore) fn check_write(content: &[u8], piece: &[u8]) -> io::Result<()> {
        if FAILING_WRITES.lock().contains(&(content, piece)) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    #[test]
    fn a_partly_written_file_is_recognized() {
        for (old, new) in [
            ("short", "a much longer content"),
            ("this was not so long before", "short"),
            ("same size", "SAME SIZE"),
            ("", "new"),
            ("old", ""),
        ] {
            let (old, new) = (old.as_bytes(), new.as_bytes());
            for written in 0..=new.len() {
                let rest = old.get(written..).unwrap_or_default();
                let now = [&new[..written], rest].concat();
                assert!(is_partly_written(&now, old, new), "{now:?}");
            }
            assert!(!is_partly_written(b"something else", old, new));
        }
        for now in ["a much longer conTENT", "shor", "", "shart"] {
            let (old, new) = (b"short", b"a much longer content");
            assert!(!is_partly_written(now.as_bytes(), old, new), "{now}");
        }
    }

    #[test]
    fn an_interrupted_write_of_the_previous_content_is_recognized() {
        let (old, new) = (
            b"previous content".as_slice(),
            b"NEW TEXT, LONGER".as_slice(),
        );
        for written in 0..=new.len() {
            for back in 0..=written {
                let now = [&old[..back], &new[back..written], &old[written..]].concat();
                assert!(is_partly_written(&now, old, new), "{now:?}");
            }
        }
        let large = vec![b'x'; super::MAX_BYTES + 1];
        assert!(!is_partly_written(&large, b"x", &large));
    }
}
