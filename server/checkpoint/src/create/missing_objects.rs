//! Compares a new tree with the previous one: counts the differing files, and finds the objects
//! that are not stored yet. Skips equal subtrees.

use std::{collections::HashMap, sync::Arc};

use sightline_base::{
    cancel::Cancel,
    path::{RelPath, os_name},
};

use crate::{
    error::Error,
    metadata::Counts,
    store::{
        object::{Mode, Oid},
        odb::Odb,
    },
    tree_diff::{Tree, split},
    worktree::snapshot::Folder,
};

/// Objects that the store lacks.
#[derive(Debug, Default)]
pub(crate) struct MissingObjects<'a> {
    pub(crate) files: Vec<(RelPath, Mode, Oid)>,
    pub(crate) folders: Vec<&'a Arc<Folder>>,
}

/// Compares `tree` with the stored tree `base`, which is `None` without a previous tree. `has` takes an object and whether it is a folder, and returns whether the object need not be stored.
pub(crate) fn find_missing<'a>(
    tree: &'a Arc<Folder>,
    base: Option<Oid>,
    reader: &Odb,
    cancel: &Cancel,
    has: impl Fn(Oid, bool) -> bool,
) -> Result<(Counts, MissingObjects<'a>), Error> {
    let mut counts = Counts::default();
    let mut missing = MissingObjects::default();
    let mut rest = vec![(RelPath::default(), Some(tree), base.map(Tree::Stored))];
    if base == Some(tree.oid) {
        rest.clear();
    }
    while let Some((path, new, old)) = rest.pop() {
        cancel.check()?;
        if let Some(new) = new
            && !has(new.oid, true)
        {
            missing.folders.push(new);
        }
        let entries = match Tree::entries_of(old.as_ref(), reader) {
            // Nothing is known to be stored then.
            Err(Error::Damaged(_)) => Vec::new(),
            entries => entries?,
        };
        let mut before: HashMap<_, _> = entries.into_iter().collect();
        for now in new.into_iter().flat_map(|new| new.entries()) {
            let (leaf, tree) = split(before.remove(now.name));
            let below = now.folder();
            if let (Some(below), Some(tree)) = (below, &tree)
                && below.oid == tree.oid()
            {
                continue;
            }
            if below.is_some() || tree.is_some() {
                rest.push((path.child(os_name(now.name)), below, tree));
            }
            if below.is_some() {
                counts.deleted += u64::from(leaf.is_some());
                continue;
            }
            match leaf {
                Some(leaf) if (leaf.mode, leaf.oid) == (now.mode, now.oid) => continue,
                Some(_) => counts.modified += 1,
                None => counts.added += 1,
            }
            if !has(now.oid, false) {
                let path = path.child(os_name(now.name));
                missing.files.push((path, now.mode, now.oid));
            }
        }
        for (name, node) in before {
            match split(Some(node)) {
                (_, Some(tree)) => rest.push((path.child(os_name(&name)), None, Some(tree))),
                _ => counts.deleted += 1,
            }
        }
    }
    Ok((counts, missing))
}
