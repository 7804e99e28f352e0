//! Compares a new tree with the previous one: counts the differing files, and finds the objects
//! that are not stored yet. Skips equal subtrees.

use std::{cmp::Ordering, sync::Arc};

use sightline_base::{
    cancel::Cancel,
    path::{RelPath, os_name},
};

use crate::{
    error::Error,
    metadata::Counts,
    store::{
        object::{Mode, Oid, TreeEntry, name_order},
        odb::Odb,
    },
    worktree::snapshot::{Entry, Folder},
};

/// The tree to compare with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BaseTree<'a> {
    /// A snapshot whose objects are all in the store.
    InMemory(&'a Arc<Folder>),
    /// A tree object in the store.
    Stored(Oid),
    Empty,
}

/// Objects that the store lacks.
#[derive(Debug, Default)]
pub(crate) struct MissingObjects<'a> {
    pub(crate) files: Vec<(RelPath, Mode, Oid)>,
    pub(crate) folders: Vec<&'a Arc<Folder>>,
}

/// Compares `tree` with `base`. `has` takes an object and whether it is a folder, and returns
/// whether the object need not be stored.
pub(crate) fn find_missing<'a>(
    tree: &'a Arc<Folder>,
    base: BaseTree<'a>,
    reader: &Odb,
    cancel: &Cancel,
    has: impl Fn(Oid, bool) -> bool,
) -> Result<(Counts, MissingObjects<'a>), Error> {
    let mut counts = Counts::default();
    let mut missing = MissingObjects::default();
    let old = match base {
        BaseTree::InMemory(old) => Some(OldFolder::InMemory(old)),
        BaseTree::Stored(oid) => Some(OldFolder::Stored(oid)),
        BaseTree::Empty => None,
    };
    let mut rest = vec![(RelPath::default(), Some(tree), old)];
    while let Some((path, new, old)) = rest.pop() {
        cancel.check()?;
        if let (Some(new), Some(old)) = (new, &old)
            && new.oid == old.oid()
        {
            continue;
        }
        if let Some(new) = new
            && !has(new.oid, true)
        {
            missing.folders.push(new);
        }
        if let (None, Some(OldFolder::InMemory(old))) = (new, &old) {
            counts.deleted += old.files;
            continue;
        }
        let stored = match &old {
            Some(OldFolder::Stored(oid)) => reader.tree(*oid)?,
            _ => Vec::new(),
        };
        let old = match &old {
            Some(OldFolder::InMemory(old)) => old.entries().map(OldEntry::from).collect(),
            _ => stored
                .iter()
                .map(OldEntry::from)
                .collect::<Vec<OldEntry<'_, 'a>>>(),
        };
        let mut old = old.into_iter().peekable();
        let mut new = new.into_iter().flat_map(|new| new.entries()).peekable();
        loop {
            let order = match (new.peek(), old.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(new), Some(old)) => name_order(
                    new.name,
                    new.mode == Mode::Folder,
                    old.name,
                    old.mode == Mode::Folder,
                ),
            };
            let now = if order.is_le() { new.next() } else { None };
            let before = if order.is_ge() { old.next() } else { None };
            let same = |(now, before): (&Entry<'_>, &OldEntry<'_, '_>)| {
                (now.mode, now.oid) == (before.mode, before.oid)
            };
            if now.as_ref().zip(before.as_ref()).is_some_and(same) {
                continue;
            }
            let child = |name: &[u8]| path.child(os_name(name));
            let below = now.and_then(|now| now.folder());
            let folder_before = before.as_ref().and_then(OldEntry::folder);
            if below.is_some() || folder_before.is_some() {
                let name = now.map(|now| now.name);
                let name = name.or(before.as_ref().map(|before| before.name));
                rest.push((child(name.unwrap_or_default()), below, folder_before));
                continue;
            }
            match (&now, &before) {
                (Some(_), Some(_)) => counts.modified += 1,
                (Some(_), None) => counts.added += 1,
                (None, _) => counts.deleted += 1,
            }
            if let Some(now) = now
                && !has(now.oid, false)
            {
                missing.files.push((child(now.name), now.mode, now.oid));
            }
        }
    }
    Ok((counts, missing))
}

enum OldFolder<'a> {
    InMemory(&'a Folder),
    Stored(Oid),
}

impl OldFolder<'_> {
    fn oid(&self) -> Oid {
        match self {
            Self::InMemory(folder) => folder.oid,
            Self::Stored(oid) => *oid,
        }
    }
}

struct OldEntry<'n, 'a> {
    name: &'n [u8],
    mode: Mode,
    oid: Oid,
    memory: Option<&'a Folder>,
}

impl<'a> OldEntry<'_, 'a> {
    fn folder(&self) -> Option<OldFolder<'a>> {
        match self.memory {
            Some(folder) => Some(OldFolder::InMemory(folder)),
            None if self.mode == Mode::Folder => Some(OldFolder::Stored(self.oid)),
            None => None,
        }
    }
}

impl<'a> From<Entry<'a>> for OldEntry<'a, 'a> {
    fn from(entry: Entry<'a>) -> Self {
        Self {
            name: entry.name,
            mode: entry.mode,
            oid: entry.oid,
            memory: entry.folder().map(|folder| &**folder),
        }
    }
}

impl<'n> From<&'n TreeEntry> for OldEntry<'n, '_> {
    fn from(entry: &'n TreeEntry) -> Self {
        Self {
            name: &entry.name,
            mode: entry.mode,
            oid: entry.oid,
            memory: None,
        }
    }
}
