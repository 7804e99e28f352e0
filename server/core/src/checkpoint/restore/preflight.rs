//! Can what a restore is about be read? Found out before anything is changed:
//! a damaged object must not cost the only good copy, which stands in the
//! workspace.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use rayon::prelude::*;
use sightline_protocol::error::ErrorKind;

use super::{
    super::{
        Oid,
        store::{
            object::{Kind, Mode},
            object_reader::{ObjectReader, Unreadable},
            repository::Repository,
        },
        tree_diff::Leaf,
        worktree::snapshot::Folder,
    },
    apply::only_mode,
    plan::Step,
};
use crate::{cancel::Cancel, error::Error, escape::one_line, path::RelPath};

/// So many paths are named.
const NAMED: usize = 10;
/// So many bytes that were read to see that they are whole are kept until they are
/// written: enough for what an agent changes between two checkpoints. In tests few,
/// so that some contents are kept and some are not.
const KEPT: usize = if cfg!(test) { 8 } else { 16 << 20 };

/// Contents by their names, as far as they were kept.
pub(super) type Contents = HashMap<Oid, Vec<u8>>;

/// Every content that would be written is whole; gives those that were kept.
///
/// # Errors
/// `storage` names those that are not; `cancelled`.
pub(super) fn require_contents(
    repository: &Repository,
    target: Oid,
    steps: &[Step],
    cancel: &Cancel,
) -> Result<Contents, Error> {
    let kept = Mutex::new((KEPT, Contents::new()));
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let read = |reader: &ObjectReader, oid| {
        let room = lock().0;
        if let Some(bytes) = reader.verify_and_read(Kind::Blob, oid, room)? {
            let (room, contents) = &mut *lock();
            if let Some(left) = room.checked_sub(bytes.len())
                && !contents.contains_key(&oid)
            {
                *room = left;
                contents.insert(oid, bytes);
            }
        }
        Ok(())
    };
    let bad = unreadable(repository, steps, |step| step.after, read, cancel)?;
    if bad.is_empty() {
        let (_, contents) = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        return Ok(contents);
    }
    Err(Error::storage(format!(
        "checkpoint {target} can't be restored: what it holds of {} is damaged in the store {}; nothing was changed; restore other paths of it by naming them, or another checkpoint (sightline/verifyCheckpoints says which are whole)",
        names(&bad),
        repository.dir().display()
    )))
}

/// The folders of what is restored can be read back: they were remembered, and
/// who completes this restore once it was interrupted reads them.
///
/// # Errors
/// `storage`.
pub(super) fn require_folders(
    repository: &Repository,
    folders: &[Oid],
    cancel: &Cancel,
) -> Result<(), Error> {
    folders.par_iter().with_min_len(16).try_for_each_init(
        || repository.reader(),
        |reader, folder| {
            cancel.check()?;
            let unreadable = |why| reader.unreadable(Kind::Tree, *folder, why);
            reader.verify(Kind::Tree, *folder).map_err(unreadable)
        },
    )
}

/// What keeps the undo point from taking back these steps; `None` when nothing
/// does. Looks at what an undo, and the recovery of a restore that was
/// interrupted, would read: `folders` as in [`folders_above`], and contents.
pub(super) fn undo_problem(
    repository: &Repository,
    folders: &[Oid],
    steps: &[Step],
    cancel: &Cancel,
) -> Result<Option<String>, Error> {
    match require_folders(repository, folders, cancel) {
        Err(error) if error.kind == ErrorKind::Storage => return Ok(Some(error.message)),
        checked => checked?,
    }
    let check = |reader: &ObjectReader, oid| reader.verify(Kind::Blob, oid);
    let bad = unreadable(repository, steps, |step| step.before, check, cancel)?;
    Ok((!bad.is_empty()).then(|| format!("the content of {} is damaged", names(&bad))))
}

/// The folders of a tree that lead to these paths.
pub(super) fn folders_above<'a>(
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
    // It is stored nowhere.
    above.remove(&Oid::EMPTY_TREE);
    above.into_iter().collect()
}

/// The paths of the steps whose content on one side can't be read.
fn unreadable(
    repository: &Repository,
    steps: &[Step],
    side: impl Fn(&Step) -> Option<Leaf> + Sync,
    read: impl Fn(&ObjectReader, Oid) -> Result<(), Unreadable> + Sync,
    cancel: &Cancel,
) -> Result<Vec<RelPath>, Error> {
    let has_content = |step: &&Step| match (&step.before, &step.after) {
        (Some(before), Some(after)) => !only_mode(before, after),
        _ => true,
    };
    let steps: Vec<&Step> = steps.iter().filter(has_content).collect();
    let bad: Vec<Option<RelPath>> = steps
        .into_par_iter()
        .map_init(
            || repository.reader(),
            |reader, step| {
                cancel.check()?;
                let leaf = side(step).filter(|leaf| leaf.mode != Mode::Folder);
                let read = leaf.map(|leaf| read(reader, leaf.oid));
                Ok(matches!(read, Some(Err(_))).then(|| step.path.clone()))
            },
        )
        .collect::<Result<_, Error>>()?;
    Ok(bad.into_iter().flatten().collect())
}

fn names(paths: &[RelPath]) -> String {
    let named = paths.iter().take(NAMED);
    let named = named.map(|path| one_line(&path.to_wire().0).into_owned());
    let mut text = named.collect::<Vec<_>>().join(", ");
    if let Some(more) = paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
