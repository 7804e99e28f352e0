//! Displaced files: the old versions of replaced and deleted files, until they can be discarded.
//!
//! A file that is not written [in place](super::in_place) is never overwritten or deleted directly.
//! It is renamed to a temporary name, or exchanged with the new file. After the last step it is
//! checked:
//!
//! - If it has the content that the plan saw (so the undo point has it too), and no process can
//!   still write to it, it is removed.
//! - Otherwise a program saved it during the restore. It gets its name back. If a newer file has
//!   the name by then, the displaced file is kept as `NAME.kept-1`, and the outcome names it.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    io, thread,
    time::Duration,
};

use sha2::{Digest, Sha256};
use sightline_base::{
    escape::hex,
    fs::dir::{Dir, FileInfo},
    path::RelPath,
};

use super::{
    open_by_processes,
    step_error::{changed_error, failure},
};
use crate::{restore::crash_point::crash_point, store::object::Oid, tree_diff::Leaf};

/// Suffix of temporary names.
const TEMP_SUFFIX: &str = ".sightline-restore";
/// Number of waits for files that are open for writing. Together with [`WAIT`], 100 ms: longer than
/// a usual save.
const MAX_WAITS: u32 = 10;
/// Duration of one wait.
const WAIT: Duration = Duration::from_millis(10);
const OPEN_ELSEWHERE: &str =
    "open for writing in another program; left as it is; close it there and restore again";
/// Number of names that are tried for a file that is kept.
const MAX_KEPT_NAMES: u32 = 100;
/// Longest file name of most file systems, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Returns the temporary name for a path, both of the new file and of the displaced one. The name is
/// always the same, so that recovery finds the file.
pub(in crate::restore) fn temp_file_name(undo: Oid, path: &RelPath) -> OsString {
    let mut hash = Sha256::new();
    hash.update(undo.as_bytes());
    hash.update(path.as_path().as_os_str().as_encoded_bytes());
    format!(".{}{TEMP_SUFFIX}", hex(&hash.finalize()[..8])).into()
}

/// Returns a second temporary name, for file systems that cannot exchange names.
pub(in crate::restore) fn spare_name(temp_file_name: &OsStr) -> OsString {
    let mut name = OsString::from(".");
    name.push(temp_file_name);
    name
}

/// Waits a short time until no process has these files open for writing. Returns the temporary names
/// of those that are still open.
pub(in crate::restore) fn wait_until_closed(names: &HashSet<OsString>) -> HashSet<OsString> {
    let mut open = open_by_processes::open_for_writing(TEMP_SUFFIX, names);
    for _ in 0..MAX_WAITS {
        if open.is_empty() {
            break;
        }
        thread::sleep(WAIT);
        open = open_by_processes::open_for_writing(TEMP_SUFFIX, &open);
    }
    open
}

/// Location of a file in its folder, and the temporary name next to it.
#[derive(Clone, Copy)]
pub(in crate::restore) struct FileSlot<'a> {
    pub(in crate::restore) dir: &'a Dir,
    pub(in crate::restore) name: &'a OsStr,
    pub(in crate::restore) temp_name: &'a OsStr,
}

/// New file that a step moved to its final name.
#[derive(Clone, Copy, Debug)]
pub(in crate::restore) struct Installed {
    pub(in crate::restore) leaf: Leaf,
    pub(in crate::restore) inode: u64,
}

impl FileSlot<'_> {
    /// Exchanges the file at the temporary name, which is complete, with the file at the name.
    pub(in crate::restore) fn exchange(&self) -> io::Result<()> {
        if self.dir.exchange(self.temp_name, self.name)? {
            Ok(())
        } else {
            self.exchange_by_renames()
        }
    }

    /// Exchanges the names by three renames, for file systems without an atomic exchange. The name
    /// does not exist in between.
    pub(in crate::restore) fn exchange_by_renames(&self) -> io::Result<()> {
        let Self {
            dir,
            name,
            temp_name,
        } = self;
        let spare = spare_name(temp_name);
        dir.rename_new(name, &spare)?;
        crash_point();
        let where_it_is = |error: io::Error| {
            let spare = spare.display();
            io::Error::other(format!("{error}; the original file is now {spare}"))
        };
        if let Err(error) = dir.rename_new(temp_name, name) {
            dir.rename_new(&spare, name).map_err(where_it_is)?;
            return Err(error);
        }
        crash_point();
        dir.rename_new(&spare, temp_name).map_err(where_it_is)
    }

    /// Removes the displaced file if it is unchanged and closed; otherwise puts it back or keeps it
    /// under a new name. `before` is the file as the plan saw it, `installed` the new file at its
    /// name, and `is_open` whether a process can still write to the displaced file.
    ///
    /// # Errors
    /// Why the file was put back or kept.
    pub(in crate::restore) fn discard_or_put_back(
        &self,
        before: Option<&Leaf>,
        installed: Option<Installed>,
        is_open: bool,
    ) -> Result<(), String> {
        crash_point();
        let displaced = match Leaf::read(self.dir, self.temp_name) {
            // Another process removed it.
            Ok(None) if matches!(self.dir.stat(self.temp_name), Ok(None)) => return Ok(()),
            displaced => displaced,
        };
        let is_unchanged = matches!((&displaced, before), (Ok(Some((leaf, _))), Some(before)) if leaf.is_same(before));
        let removed = if is_unchanged && !is_open {
            self.dir.unlink(self.temp_name)
        } else {
            Ok(())
        };
        if is_unchanged && !is_open && removed.is_ok() {
            return Ok(());
        }
        crash_point();
        let is_put_back = match installed {
            Some(installed) => self.put_back(installed),
            None => self.dir.rename_new(self.temp_name, self.name).is_ok(),
        };
        let reason = match (removed, is_put_back) {
            (Err(error), _) => failure("remove the replaced file", &error),
            (Ok(()), true) if is_unchanged => return Err(OPEN_ELSEWHERE.to_owned()),
            (Ok(()), true) => return Err(changed_error()),
            (Ok(()), false) => {
                "saved more than once during the restore; the newest version is in place".to_owned()
            }
        };
        if is_put_back {
            return Err(reason);
        }
        let kept = self.keep_under_new_name();
        Err(format!(
            "{reason}; the displaced version is kept as {}",
            kept.display()
        ))
    }

    /// Exchanges the names back, unless the new file was changed or replaced. Returns whether the
    /// displaced file has its name back.
    fn put_back(&self, installed: Installed) -> bool {
        if !self.still_holds(self.name, installed) || self.exchange().is_err() {
            return false;
        }
        crash_point();
        let names = HashSet::from([self.temp_name.to_owned()]);
        if wait_until_closed(&names).is_empty() && self.still_holds(self.temp_name, installed) {
            let _ = self.dir.unlink(self.temp_name);
            return true;
        }
        // The new file was saved in between, so it is the newest.
        self.exchange().is_err()
    }

    /// Returns whether `name` is still the unchanged new file.
    fn still_holds(&self, name: &OsStr, installed: Installed) -> bool {
        let inode = |found: Option<FileInfo>| found.map(|found| found.stamp.inode);
        matches!(self.dir.stat(name), Ok(found) if inode(found) == Some(installed.inode))
            && matches!(Leaf::read(self.dir, name), Ok(Some((leaf, _))) if leaf.is_same(&installed.leaf))
    }

    /// Renames the displaced file to a name that users can find, and returns it.
    pub(in crate::restore) fn keep_under_new_name(&self) -> OsString {
        kept_name_candidates(self.name)
            .find(|name| self.dir.rename_new(self.temp_name, name).is_ok())
            .unwrap_or_else(|| self.temp_name.to_owned())
    }
}

/// Links the file `name` to a second name under which it is kept, unless it has one already.
///
/// # Errors
/// If the folder cannot be written, or the file system has no hard links.
pub(in crate::restore) fn link_kept_name(dir: &Dir, name: &OsStr) -> io::Result<OsString> {
    if let Some(kept) = find_kept_name(dir, name, name)? {
        return Ok(kept);
    }
    for kept in kept_name_candidates(name) {
        match dir.hard_link(name, &kept) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => return linked.map(|()| kept),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns the second name under which the file of `name` is kept. `now` is its current name.
pub(in crate::restore) fn find_kept_name(
    dir: &Dir,
    name: &OsStr,
    now: &OsStr,
) -> io::Result<Option<OsString>> {
    let Some(found) = dir.stat(now)?.filter(|found| found.links > 1) else {
        return Ok(None);
    };
    let is_same_file = |kept: &OsString| matches!(dir.stat(kept), Ok(Some(other)) if other.stamp.inode == found.stamp.inode);
    Ok(kept_name_candidates(name).find(is_same_file))
}

fn kept_name_candidates(name: &OsStr) -> impl Iterator<Item = OsString> {
    (1..MAX_KEPT_NAMES).map(move |number| {
        let suffix = format!(".kept-{number}");
        let mut kept = shortened(name, MAX_NAME_BYTES - suffix.len());
        kept.push(suffix);
        kept
    })
}

/// Returns the beginning of a name, at most `max` bytes, that ends with a whole character.
fn shortened(name: &OsStr, max: usize) -> OsString {
    if name.len() <= max {
        return name.to_owned();
    }
    let name = name.to_string_lossy();
    name[..name.floor_char_boundary(max)].into()
}
