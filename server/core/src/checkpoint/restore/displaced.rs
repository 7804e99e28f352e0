//! What was taken out of its place, until it is certain that nobody needs it.
//!
//! A restore never writes into a file and never deletes one by its name: what
//! stands there gets an unfinished name, by an exchange with the new file where
//! there is one. Once every step is taken it is looked at: when it holds what the
//! plan saw, which the undo point has, and no process may still write to it, it is
//! removed. Else someone saved it at that moment. It gets its place back, or,
//! where something newer has the place by then, it is kept beside and named.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    io, thread,
    time::Duration,
};

use sha2::{Digest, Sha256};

use super::{
    super::{Oid, tree_diff::Leaf},
    apply::{cannot, changed},
    open_files, step,
};
use crate::{
    fs::dir::{Dir, Found},
    path::RelPath,
};

/// How names of unfinished files end.
const ENDING: &str = ".sightline-restore";
/// How often, and how long each time, a file that is open for writing is waited for.
const WAITS: u32 = 10;
const WAIT: Duration = Duration::from_millis(10);
const OPEN: &str = "another program has it open for writing, so it is left as it is; close it there and restore it again";
/// So many names are tried for a file that is kept.
const TRIES: u32 = 100;

/// The name of the unfinished file for `path`, which also what is taken out there
/// gets: always the same, so that it is found again.
pub(super) fn unfinished(undo: Oid, path: &RelPath) -> OsString {
    let mut hash = Sha256::new();
    hash.update(undo.as_bytes());
    hash.update(path.as_path().as_os_str().as_encoded_bytes());
    let digest = hash.finalize();
    let hex: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(".{hex}{ENDING}").into()
}

/// A second one, for file systems that cannot exchange names.
pub(super) fn spare(unfinished: &OsStr) -> OsString {
    let mut name = OsString::from(".");
    name.push(unfinished);
    name
}

/// Which of these files, by their unfinished names, a process may still write to.
/// One that is being saved is waited for, but not for long.
pub(super) fn open_for_writing(names: &HashSet<OsString>) -> HashSet<OsString> {
    let mut open = open_files::open_for_writing(ENDING, names);
    for _ in 0..WAITS {
        if open.is_empty() {
            break;
        }
        thread::sleep(WAIT);
        open = open_files::open_for_writing(ENDING, &open);
    }
    open
}

/// A place and the unfinished name beside it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) dir: &'a Dir,
    pub(super) name: &'a OsStr,
    pub(super) beside: &'a OsStr,
}

/// What a step put there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    pub(super) leaf: Leaf,
    pub(super) inode: u64,
}

impl Place<'_> {
    /// What stands beside, which is complete, and what stands there change places.
    pub(super) fn exchange(&self) -> io::Result<()> {
        match self.dir.exchange(self.beside, self.name)? {
            true => Ok(()),
            false => self.exchange_by_steps(),
        }
    }

    /// The same where the system cannot do it at once: between, nothing is there.
    pub(super) fn exchange_by_steps(&self) -> io::Result<()> {
        let Self { dir, name, beside } = self;
        let spare = spare(beside);
        dir.rename_new(name, &spare)?;
        step();
        let where_it_is = |error: io::Error| {
            let spare = spare.display();
            io::Error::other(format!("{error}; what stood there is now {spare}"))
        };
        if let Err(error) = dir.rename_new(beside, name) {
            dir.rename_new(&spare, name).map_err(where_it_is)?;
            return Err(error);
        }
        step();
        dir.rename_new(&spare, beside).map_err(where_it_is)
    }

    /// Looks at what was taken out, and removes it or gives it back. `before` is
    /// what the plan saw, `put` what has its place now, `is_open` whether a process
    /// may still write to it.
    ///
    /// # Errors
    /// Why it was given back or kept.
    pub(super) fn settle(
        &self,
        before: Option<&Leaf>,
        put: Option<Put>,
        is_open: bool,
    ) -> Result<(), String> {
        step();
        let out = match self.dir.leaf(self.beside) {
            // Somebody else removed it.
            Ok(None) if matches!(self.dir.look(self.beside), Ok(None)) => return Ok(()),
            out => out,
        };
        let is_seen =
            matches!((&out, before), (Ok(Some((leaf, _))), Some(before)) if leaf.is_same(before));
        let removed = match (is_seen, is_open) {
            (true, false) => self.dir.remove(self.beside),
            _ => Ok(()),
        };
        if is_seen && !is_open && removed.is_ok() {
            return Ok(());
        }
        step();
        let given_back = match put {
            Some(put) => self.give_back(put),
            None => self.dir.rename_new(self.beside, self.name).is_ok(),
        };
        let reason = match (removed, given_back) {
            (Err(error), _) => cannot("remove what it replaces", &error),
            (Ok(()), true) if is_seen => return Err(OPEN.to_owned()),
            (Ok(()), true) => return Err(changed()),
            (Ok(()), false) => {
                "it was saved more than once while it was restored; the newest has its place"
                    .to_owned()
            }
        };
        if given_back {
            return Err(reason);
        }
        let kept = self.keep();
        Err(format!(
            "{reason}; what it replaced is kept as {}",
            kept.display()
        ))
    }

    /// Exchanges them again, unless something newer than what was put there has the
    /// place by now.
    fn give_back(&self, put: Put) -> bool {
        if !self.holds(self.name, put) || self.exchange().is_err() {
            return false;
        }
        step();
        let names = HashSet::from([self.beside.to_owned()]);
        if open_for_writing(&names).is_empty() && self.holds(self.beside, put) {
            let _ = self.dir.remove(self.beside);
            return true;
        }
        // It was saved between: that is the newest.
        self.exchange().is_err()
    }

    /// Is that still what was put there?
    fn holds(&self, name: &OsStr, put: Put) -> bool {
        let inode = |found: Option<Found>| found.map(|found| found.stamp.inode);
        matches!(self.dir.look(name), Ok(found) if inode(found) == Some(put.inode))
            && matches!(self.dir.leaf(name), Ok(Some((leaf, _))) if leaf.is_same(&put.leaf))
    }

    /// Gives what stands beside a name of its own that people can find.
    pub(super) fn keep(&self) -> OsString {
        kept_names(self.name)
            .find(|name| self.dir.rename_new(self.beside, name).is_ok())
            .unwrap_or_else(|| self.beside.to_owned())
    }
}

/// Gives the file `name` a second name under which it is kept, unless it has one.
///
/// # Errors
/// If the folder cannot be written, or the file system has no hard links.
pub(super) fn keep_too(dir: &Dir, name: &OsStr) -> io::Result<OsString> {
    if let Some(kept) = kept_as(dir, name, name)? {
        return Ok(kept);
    }
    for kept in kept_names(name) {
        match dir.link(name, &kept) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => return linked.map(|()| kept),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns the name under which a file of `name`, called `now` at the moment, is kept too.
pub(super) fn kept_as(dir: &Dir, name: &OsStr, now: &OsStr) -> io::Result<Option<OsString>> {
    let Some(found) = dir.look(now)?.filter(|found| found.links > 1) else {
        return Ok(None);
    };
    let is_it = |kept: &OsString| matches!(dir.look(kept), Ok(Some(other)) if other.stamp.inode == found.stamp.inode);
    Ok(kept_names(name).find(is_it))
}

fn kept_names(name: &OsStr) -> impl Iterator<Item = OsString> {
    (1..TRIES).map(|number| {
        let mut kept = name.to_owned();
        kept.push(format!(".kept-{number}"));
        kept
    })
}
