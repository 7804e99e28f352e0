//! Reads everything that a restore or its undo will need, before the restore changes a file.
//!
//! The only intact copy of a file can be the one in the workspace: it must not be replaced if the
//! store is damaged.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use rayon::prelude::*;
use sightline_base::{
    cancel::Cancel, escape::one_line, path::RelPath, thread_pool, words::first_of,
};

use super::{
    super::{
        store::{
            object::{Kind, Mode, Oid, Unreadable},
            odb::Odb,
            repository::Repository,
        },
        tree_diff::Leaf,
        worktree::snapshot::Folder,
    },
    plan::Step,
};
use crate::error::Error;

/// Maximum number of paths in an error message.
const MAX_LISTED: usize = 10;
/// Maximum size of the verified contents that are kept in memory until they are written, in
/// bytes. Enough for some thousand source files, each of which is then decompressed once. Small in tests, so
/// that some contents are kept and others are read again.
const CACHE_BYTES: usize = if cfg!(test) { 8 } else { 64 << 20 };

/// Verified file contents by object id. Not all contents fit.
pub(super) type BlobCache = HashMap<Oid, Vec<u8>>;

/// Verifies every content that the steps write, and returns those that fit into the cache.
///
/// # Errors
/// `storage` names the damaged paths; `cancelled`.
pub(super) fn verify_contents(
    repository: &Repository,
    target: Oid,
    steps: &[Step],
    cancel: &Cancel,
) -> Result<BlobCache, Error> {
    let cache = Mutex::new((CACHE_BYTES, BlobCache::new()));
    let read = |reader: &Odb, oid| {
        let bytes = reader.try_read(Kind::Blob, oid)?;
        let (room, contents) = &mut *cache.lock();
        if let Some(left) = room.checked_sub(bytes.len())
            && !contents.contains_key(&oid)
        {
            *room = left;
            contents.insert(oid, bytes);
        }
        Ok(())
    };
    let bad = unreadable_paths(repository, steps, |step| step.after, read, cancel)?;
    if bad.is_empty() {
        let (_, contents) = cache.into_inner();
        return Ok(contents);
    }
    Err(Error::Damaged(format!(
        "cannot restore checkpoint {target}: the content of {} is damaged in the store {}; nothing was changed. Restore other paths of it, or another checkpoint; verify the checkpoints to find the intact ones",
        list_paths(&bad),
        repository.dir().display()
    )))
}

/// Verifies the tree objects of folders.
///
/// # Errors
/// `storage`.
fn verify_folders(repository: &Repository, folders: &[Oid], cancel: &Cancel) -> Result<(), Error> {
    thread_pool::start();
    folders.par_iter().with_min_len(16).try_for_each_init(
        || repository.odb(),
        |reader, folder| {
            cancel.check()?;
            let unreadable = |why| reader.unreadable(Kind::Tree, *folder, why);
            let read = reader.try_read(Kind::Tree, *folder);
            read.map(drop).map_err(unreadable)
        },
    )
}

/// Returns why the undo point cannot undo these steps, or `None` if it can.
///
/// Verifies what an undo and the recovery of an interrupted restore read: `folders`, from
/// [`parent_folders`], and the contents.
pub(super) fn undo_damage(
    repository: &Repository,
    folders: &[Oid],
    steps: &[Step],
    cancel: &Cancel,
) -> Result<Option<String>, Error> {
    match verify_folders(repository, folders, cancel) {
        Err(Error::Damaged(damage)) => return Ok(Some(damage)),
        checked => checked?,
    }
    let check = |reader: &Odb, oid| reader.try_read(Kind::Blob, oid).map(drop);
    let bad = unreadable_paths(repository, steps, |step| step.before, check, cancel)?;
    Ok((!bad.is_empty()).then(|| format!("the content of {} is damaged", list_paths(&bad))))
}

/// Returns the tree objects on the way from the root to these paths.
pub(super) fn parent_folders<'a>(
    tree: &Folder,
    paths: impl Iterator<Item = &'a RelPath>,
) -> Vec<Oid> {
    let mut above = HashSet::from([tree.oid]);
    for path in paths {
        let mut at = tree;
        for name in path.components() {
            let entry = at.get(name.as_encoded_bytes());
            let Some(below) = entry.and_then(|entry| entry.folder().map(|folder| &**folder)) else {
                break;
            };
            above.insert(below.oid);
            at = below;
        }
    }
    // The empty tree is never stored.
    above.remove(&Oid::EMPTY_TREE);
    above.into_iter().collect()
}

/// Returns the paths whose content on one side of the step cannot be read.
fn unreadable_paths(
    repository: &Repository,
    steps: &[Step],
    side: impl Fn(&Step) -> Option<Leaf> + Sync,
    read: impl Fn(&Odb, Oid) -> Result<(), Unreadable> + Sync,
    cancel: &Cancel,
) -> Result<Vec<RelPath>, Error> {
    let steps: Vec<&Step> = steps
        .iter()
        .filter(|step| !step.changes_only_mode())
        .collect();
    thread_pool::start();
    let bad: Vec<Option<RelPath>> = steps
        .into_par_iter()
        .map_init(
            || repository.odb(),
            |reader, step| {
                cancel.check()?;
                let leaf = side(step).filter(|leaf| leaf.mode != Mode::Folder);
                let Some(leaf) = leaf else {
                    return Ok(None);
                };
                match read(reader, leaf.oid) {
                    Err(why @ Unreadable::Unavailable) => {
                        Err(reader.unreadable(Kind::Blob, leaf.oid, why))
                    }
                    read => Ok(read.is_err().then(|| step.path.clone())),
                }
            },
        )
        .collect::<Result<_, Error>>()?;
    Ok(bad.into_iter().flatten().collect())
}

fn list_paths(paths: &[RelPath]) -> String {
    let names = paths
        .iter()
        .map(|path| one_line(&path.to_wire().0).into_owned());
    first_of(&names.collect::<Vec<_>>(), MAX_LISTED)
}
