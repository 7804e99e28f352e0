//! Compares two trees, and descends only into subtrees with different ids.
//!
//! A tree is a tree object in the store, or a snapshot of the work tree. Tree objects may come from
//! another machine, so names that are not a single path component are ignored. The server never
//! stores such names.

mod leaf;

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{HashMap, hash_map::Entry as Slot},
    ffi::OsStr,
    sync::Arc,
};

use sightline_access::{Denial, Verdict};
use sightline_base::{
    cancel::Cancel,
    path::{AbsPath, Location, RelPath, os_name},
};

use super::{
    job::Job,
    store::{
        object::{Mode, Oid},
        odb::Odb,
    },
    worktree::snapshot::{Folder, Node as Seen, Stamp},
};
use crate::error::Error;

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// A checkpoint.
    Checkpoint(Oid),
    /// The current work tree.
    WorkTree,
}

impl Side {
    /// Returns the id of the checkpoint, if it is one.
    pub(super) fn checkpoint(&self) -> Option<Oid> {
        match self {
            Self::Checkpoint(id) => Some(*id),
            Self::WorkTree => None,
        }
    }
}

/// A tree to compare.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// A tree object.
    Stored(Oid),
    /// A snapshot of the work tree.
    Seen(Arc<Folder>),
}

impl Tree {
    pub(super) fn oid(&self) -> Oid {
        match self {
            Self::Stored(oid) => *oid,
            Self::Seen(folder) => folder.oid,
        }
    }

    pub(super) fn entries_of<'a>(
        tree: Option<&'a Self>,
        reader: &Odb,
    ) -> Result<Vec<NamedNode<'a>>, Error> {
        tree.map_or_else(|| Ok(Vec::new()), |tree| tree.entries(reader))
    }

    /// Returns the entries sorted by name. git's own order would separate a file and a folder with
    /// the same name.
    fn entries(&self, reader: &Odb) -> Result<Vec<NamedNode<'_>>, Error> {
        let mut entries: Vec<NamedNode<'_>> = match self {
            Self::Stored(Oid::EMPTY_TREE) => Vec::new(),
            Self::Stored(oid) => {
                let entries = reader.tree(*oid)?.into_iter();
                let node = |mode, oid| match mode {
                    Mode::Folder => Node::Folder(Tree::Stored(oid)),
                    _ => Node::Leaf(Leaf::stored(mode, oid)),
                };
                entries
                    .map(|entry| (entry.name.into_vec().into(), node(entry.mode, entry.oid)))
                    .collect()
            }
            Self::Seen(folder) => {
                let entries = folder.entries();
                let node = |node: &Seen| match node {
                    Seen::Folder(folder) => Node::Folder(Tree::Seen(Arc::clone(folder))),
                    Seen::File(file) => Node::Leaf(Leaf {
                        mode: file.mode,
                        oid: file.oid,
                        seen: Some((file.stamp, file.settled)),
                    }),
                };
                entries
                    .map(|entry| (entry.name.into(), node(entry.node)))
                    .collect()
            }
        };
        entries.retain(|(name, _)| component(name).is_some());
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        entries.dedup_by(|later, first| later.0 == first.0);
        Ok(entries)
    }
}

/// Returns `name` if it is a single path component.
fn component(name: &[u8]) -> Option<&OsStr> {
    // Checking the bytes is several times faster than `Path::components`.
    #[cfg(unix)]
    {
        let is_one =
            !matches!(name, b"" | b"." | b"..") && memchr::memchr2(0, b'/', name).is_none();
        is_one.then(|| std::os::unix::ffi::OsStrExt::from_bytes(name))
    }
    #[cfg(not(unix))]
    {
        use std::path::{Component, Path};

        let name = OsStr::new(std::str::from_utf8(name).ok()?);
        if name.as_encoded_bytes().contains(&0) {
            return None;
        }
        let mut components = Path::new(name).components();
        match (components.next(), components.next()) {
            (Some(Component::Normal(only)), None) if only == name => Some(only),
            _ => None,
        }
    }
}

pub(super) type NamedNode<'a> = (Cow<'a, [u8]>, Node);

#[derive(Debug)]
pub(super) enum Node {
    Leaf(Leaf),
    Folder(Tree),
}

impl Node {
    /// Returns whether both have the same content.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(left), Self::Leaf(right)) => left.is_same(right),
            (Self::Folder(left), Self::Folder(right)) => left.oid() == right.oid(),
            _ => false,
        }
    }
}

/// A file, a link, or an empty folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) mode: Mode,
    pub(super) oid: Oid,
    /// For a file or link in a snapshot: its stamp, and whether an equal stamp guarantees equal
    /// content.
    pub(super) seen: Option<(Stamp, bool)>,
}

impl Leaf {
    /// An empty folder.
    pub(super) const FOLDER: Self = Self::stored(Mode::Folder, Oid::EMPTY_TREE);

    /// An entry of a tree object.
    pub(super) const fn stored(mode: Mode, oid: Oid) -> Self {
        let seen = None;
        Self { mode, oid, seen }
    }

    /// Returns whether both have the same mode and content.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.mode, self.oid) == (other.mode, other.oid)
    }

    /// Inode of a file in a snapshot.
    pub(super) fn inode(&self) -> Option<u64> {
        self.seen.map(|(stamp, _)| stamp.inode)
    }

    /// Returns whether it is a regular file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.mode, Mode::File | Mode::Executable)
    }
}

/// A path that differs.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) path: RelPath,
    pub(super) left: Option<Leaf>,
    pub(super) right: Option<Leaf>,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparison {
    /// Sorted by path. A folder is only listed if it is empty and not a folder on the other side.
    pub(super) leaves: Vec<Difference>,
    /// Folders of the left side that are not folders on the right; sorted by path.
    pub(super) folders_gone: Vec<RelPath>,
}

/// Compares the paths in `wanted` with everything below them, or everything if it is empty.
pub(super) fn compare(
    reader: &Odb,
    left: &Tree,
    right: &Tree,
    wanted: &[RelPath],
    cancel: &Cancel,
) -> Result<Comparison, Error> {
    let mut found = Comparison::default();
    let mut todo = vec![(RelPath::default(), Some(left.clone()), Some(right.clone()))];
    if left.oid() == right.oid() {
        todo.clear();
    }
    while let Some((folder, left, right)) = todo.pop() {
        cancel.check()?;
        let entries = |tree| Tree::entries_of(tree, reader);
        let mut left = entries(left.as_ref())?.into_iter().peekable();
        let mut right = entries(right.as_ref())?.into_iter().peekable();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((left, _)), Some((right, _))) => left.cmp(right),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let on_left = order.is_le().then(|| left.next()).flatten();
            let on_right = order.is_ge().then(|| right.next()).flatten();
            // The common case, checked before the name is decoded.
            if let (Some((_, left)), Some((_, right))) = (&on_left, &on_right)
                && left.is_same(right)
            {
                continue;
            }
            let name = on_left.as_ref().or(on_right.as_ref());
            let Some(name) = name.and_then(|(name, _)| component(name)) else {
                continue;
            };
            let path = folder.child(name);
            let is_wanted = wanted.is_empty() || wanted.iter().any(|above| is_within(&path, above));
            if !is_wanted && !wanted.iter().any(|below| is_within(below, &path)) {
                continue;
            }
            let (left, tree_left) = split(on_left.map(|(_, node)| node));
            let (right, tree_right) = split(on_right.map(|(_, node)| node));
            let leaves = match (&tree_left, &tree_right) {
                (Some(_), Some(_)) => (None, None),
                (Some(tree), None) => {
                    if is_wanted {
                        found.folders_gone.push(path.clone());
                    }
                    (empty(tree), right)
                }
                (None, Some(tree)) => (left, empty(tree)),
                (None, None) => (left, right),
            };
            let differs = match &leaves {
                (Some(left), Some(right)) => !left.is_same(right),
                (None, None) => false,
                _ => true,
            };
            if differs && is_wanted {
                found.leaves.push(Difference {
                    path: path.clone(),
                    left: leaves.0,
                    right: leaves.1,
                });
            }
            if tree_left.is_some() || tree_right.is_some() {
                todo.push((path, tree_left, tree_right));
            }
        }
    }
    found.leaves.sort_by(|a, b| a.path.cmp(&b.path));
    found.folders_gone.sort();
    Ok(found)
}

/// Returns the files and links that differ, without those that the current access rules deny. Sorted by
/// path.
pub(super) fn shown_differences(
    job: &Job<'_>,
    reader: &Odb,
    (left, right): (&Tree, &Tree),
    wanted: &[RelPath],
) -> Result<Vec<Difference>, Error> {
    let mut denied = DeniedPaths::new(job);
    let mut shown = Vec::new();
    for mut difference in compare(reader, left, right, wanted, job.cancel)?.leaves {
        job.cancel.check()?;
        let is_no_folder = |leaf: &Leaf| leaf.mode != Mode::Folder;
        let versions = [difference.left, difference.right].map(|leaf| leaf.filter(is_no_folder));
        [difference.left, difference.right] = versions;
        if versions.iter().any(Option::is_some)
            && !denied.denies_versions(reader, &difference.path, false, versions)
        {
            shown.push(difference);
        }
    }
    Ok(shown)
}

/// Separates leaves and folders.
pub(super) fn split(node: Option<Node>) -> (Option<Leaf>, Option<Tree>) {
    match node {
        Some(Node::Leaf(leaf)) => (Some(leaf), None),
        Some(Node::Folder(tree)) => (None, Some(tree)),
        None => (None, None),
    }
}

fn empty(tree: &Tree) -> Option<Leaf> {
    (tree.oid() == Oid::EMPTY_TREE).then_some(Leaf::FOLDER)
}

/// Returns whether `path` is the folder or below it.
pub(super) fn is_within(path: &RelPath, folder: &RelPath) -> bool {
    path.as_path().starts_with(folder.as_path())
}

/// Finds the entry at `path` in a tree object. The root is a folder.
fn entry_at(reader: &Odb, tree: Oid, path: &RelPath) -> Result<Option<Leaf>, Error> {
    let mut found = Leaf::stored(Mode::Folder, tree);
    for name in path.components() {
        if found.mode != Mode::Folder {
            return Ok(None);
        }
        let mut entries = reader.tree(found.oid)?.into_iter();
        match entries.find(|entry| component(&entry.name) == Some(name)) {
            Some(entry) => found = Leaf::stored(entry.mode, entry.oid),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// Finds the file or link at `path` in a tree object.
pub(super) fn find(reader: &Odb, tree: Oid, path: &RelPath) -> Result<Option<Leaf>, Error> {
    Ok(entry_at(reader, tree, path)?.filter(|found| found.mode != Mode::Folder))
}

/// Returns whether a tree object has a file, link or folder at `path`.
pub(super) fn is_held(reader: &Odb, tree: Oid, path: &RelPath) -> Result<bool, Error> {
    Ok(entry_at(reader, tree, path)?.is_some())
}

/// Returns whether a tree object has a folder at `path`.
pub(super) fn has_folder(reader: &Odb, tree: Oid, path: &RelPath) -> Result<bool, Error> {
    Ok(entry_at(reader, tree, path)?.is_some_and(|found| found.mode == Mode::Folder))
}

/// Caches which folders the current access rules deny.
pub(super) struct DeniedPaths<'a> {
    job: &'a Job<'a>,
    folders: HashMap<RelPath, bool>,
}

impl<'a> DeniedPaths<'a> {
    pub(super) fn new(job: &'a Job<'a>) -> Self {
        Self {
            job,
            folders: HashMap::new(),
        }
    }

    /// Returns whether the path, or a folder above it, is denied with any content.
    pub(super) fn denies(&mut self, path: &RelPath, is_dir: bool) -> bool {
        self.denial(path, is_dir).is_some()
    }

    /// Returns the denial of the path, or `Some(None)` if a folder above it is denied.
    fn denial(&mut self, path: &RelPath, is_dir: bool) -> Option<Option<Denial>> {
        let above: Vec<RelPath> = path.above().collect();
        let is_inside = above.into_iter().rev().any(|folder| {
            let (view, root) = (self.job.view, self.job.root);
            match self.folders.entry(folder) {
                Slot::Occupied(known) => *known.get(),
                Slot::Vacant(slot) => {
                    let denied = view.check_entry(root, slot.key(), true).is_some();
                    *slot.insert(denied)
                }
            }
        });
        if is_inside {
            return Some(None);
        }
        let view = self.job.view;
        view.check_entry(self.job.root, path, is_dir).map(Some)
    }

    /// [`Self::denies`] for the file that is there now, whose content may decide.
    pub(super) fn denies_file(&mut self, path: &RelPath) -> bool {
        match self.denial(path, false) {
            Some(Some(denial)) if denial.by_content => {
                let (view, root) = (self.job.view, self.job.root);
                view.judge_entry(root, path, false).is_some()
            }
            denial => denial.is_some(),
        }
    }

    /// [`Self::denies`] for two versions of a path. If its content decides, it is denied if one of them is secret, or the
    /// file on the disk.
    pub(super) fn denies_versions(
        &mut self,
        reader: &Odb,
        path: &RelPath,
        is_dir: bool,
        versions: [Option<Leaf>; 2],
    ) -> bool {
        let denial = match self.denial(path, is_dir) {
            None => return false,
            Some(Some(denial)) if denial.by_content => denial,
            Some(_) => return true,
        };
        let (view, root) = (self.job.view, self.job.root);
        let is_secret = |version: Option<Leaf>| match version {
            // Only the current scan has seen it, which leaves out secret contents.
            Some(leaf) if leaf.seen.is_some() && matches!(reader.contains(leaf.oid), Ok(false)) => {
                false
            }
            Some(leaf) if leaf.is_file() => {
                let content = reader.blob(leaf.oid);
                content.map_or(true, |content| {
                    denial.clone().of_content(&content).is_some()
                })
            }
            Some(_) => true,
            None => view.judge_entry(root, path, false).is_some(),
        };
        versions.into_iter().any(is_secret)
    }

    /// Returns whether a file contains access rules for the folder it is in.
    pub(super) fn is_rule_file(&self, path: &RelPath) -> bool {
        self.job.view.is_nested_rule_file(self.job.root, path)
    }

    /// Returns whether a link points to a denied path, existing or not. The content of the link
    /// then contains a denied name.
    pub(super) fn denies_target(&mut self, link: &RelPath, target: &[u8]) -> bool {
        let view = self.job.view;
        let Some(root) = view.roots().get(self.job.root) else {
            return true;
        };
        let folder = root.path.join(&link.parent().unwrap_or_default());
        let Some(target) = AbsPath::new(&folder.as_path().join(os_name(target))) else {
            return true;
        };
        let place = view.roots().place(target);
        if let Verdict::Denied(_) = view.check(&place) {
            return true;
        }
        // A missing target may have been a folder.
        matches!(place, Location::Inside { root, rel } if view.check_entry(root, &rel, true).is_some())
    }
}
