//! A snapshot of the work tree in memory: names, stamps and object ids.
//!
//! Unchanged folders are shared between snapshots.

use std::{cmp::Ordering, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    capture_filter::repository_data::VersionControl,
    exclusions::PathHash,
    permissions::{ReadPermission, ReadPermissionSet},
};
use crate::store::object::{Kind, Mode, Oid, encode_tree, name_of, name_order};
#[cfg(test)]
use sightline_access::gitignore::bytes_of;
pub(crate) use sightline_base::fs::{Stamp, dir::SpecialFile};
use sightline_base::path::{RelPath, os_name};

/// Joins a folder and a name; an empty name means the folder.
pub(crate) fn below(folder: &[u8], name: &[u8]) -> RelPath {
    let names = folder.split(|byte| *byte == b'/').chain([name]);
    let names = names.filter(|name| !name.is_empty());
    names.fold(RelPath::default(), |path, name| path.child(os_name(name)))
}

/// A file or link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    pub(crate) stamp: Stamp,
    /// Whether an equal stamp guarantees equal content.
    pub(crate) settled: bool,
    pub(crate) oid: Oid,
    pub(crate) mode: Mode,
}

impl File {
    pub(crate) fn read_permission(&self) -> ReadPermission {
        ReadPermission::of(self.mode, &self.stamp)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    File(File),
    Folder(Arc<Folder>),
}

impl Node {
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::File(file) => file.mode,
            Self::Folder(_) => Mode::Folder,
        }
    }

    pub(crate) fn oid(&self) -> Oid {
        match self {
            Self::File(file) => file.oid,
            Self::Folder(folder) => folder.oid,
        }
    }

    fn is_folder(&self) -> bool {
        matches!(self, Self::Folder(_))
    }

    /// Returns whether both are identical including stamps; folders must be shared.
    pub(crate) fn is_same(&self, other: &Node) -> bool {
        match (self, other) {
            (Self::File(left), Self::File(right)) => left == right,
            (Self::Folder(left), Self::Folder(right)) => Arc::ptr_eq(left, right),
            _ => false,
        }
    }
}

/// An entry of a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) mode: Mode,
    pub(crate) oid: Oid,
    pub(crate) node: &'a Node,
}

impl<'a> Entry<'a> {
    pub(crate) fn folder(&self) -> Option<&'a Arc<Folder>> {
        match self.node {
            Node::Folder(folder) => Some(folder),
            Node::File(_) => None,
        }
    }

    pub(crate) fn file(&self) -> Option<&'a File> {
        match self.node {
            Node::File(file) => Some(file),
            Node::Folder(_) => None,
        }
    }
}

/// An entry that is not captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExcludedEntry {
    pub(crate) name: Box<[u8]>,
    pub(crate) reason: ExclusionReason,
}

/// Why an entry is not captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ExclusionReason {
    /// Ignored by git. Not listed as skipped.
    Ignored,
    /// A folder excluded by the settings.
    BySettings,
    /// A file above the size limit; its size in bytes.
    TooLarge(u64),
    /// Not a file, folder or link.
    Special(SpecialFile),
    /// The system denies reading it; the error number.
    Unreadable(i32),
    /// It kept changing while it was read.
    Unstable,
    /// git does not allow the name.
    InvalidName,
    /// The path is too long.
    TooLong,
    /// The server's data directory.
    OwnData,
    /// The own data of a version control system, apart from `.git`.
    RepositoryData(VersionControl),
    /// A folder whose access rules cannot be used.
    RulesUnusable,
}

impl ExclusionReason {
    /// Returns whether a stored reason is that of entries which come and go: folders of dependencies, and
    /// sockets and the like.
    pub(crate) fn is_expendable(stored: &str) -> bool {
        let special = [SpecialFile::Pipe, SpecialFile::Socket, SpecialFile::Device];
        special
            .map(Self::Special)
            .iter()
            .chain([&Self::BySettings])
            .any(|reason| reason.to_string() == stored)
    }

    /// Returns whether the reason can change without changing the folder's stamp.
    pub(crate) fn needs_recheck(&self) -> bool {
        matches!(
            self,
            Self::TooLarge(_)
                | Self::Unreadable(_)
                | Self::Unstable
                | Self::RepositoryData(_)
                | Self::RulesUnusable
        )
    }
}

impl fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored => f.write_str("ignored"),
            Self::BySettings => f.write_str("excluded by checkpoints.exclude"),
            Self::TooLarge(bytes) => {
                write!(f, "{bytes} bytes, above the limit checkpoints.maxFileSize")
            }
            Self::Special(SpecialFile::Pipe) => f.write_str("a named pipe"),
            Self::Special(SpecialFile::Socket) => f.write_str("a socket"),
            Self::Special(SpecialFile::Device) => f.write_str("a device"),
            Self::Unreadable(number) => {
                let error = std::io::Error::from_raw_os_error(*number);
                write!(f, "cannot be read: {error}")
            }
            Self::Unstable => f.write_str("kept changing while it was read"),
            Self::InvalidName => f.write_str("git does not allow this name"),
            Self::TooLong => f.write_str("the path is too long"),
            Self::OwnData => f.write_str("contains the server's own data"),
            Self::RepositoryData(system) => system.fmt(f),
            Self::RulesUnusable => f.write_str("its access rules cannot be used"),
        }
    }
}

/// Rules that a folder adds to those above it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderRules {
    /// Whether the folder has an entry called `.git`.
    pub(crate) git: bool,
    /// Content of `info/exclude`, if a repository begins here.
    pub(crate) excludes: Option<Arc<[u8]>>,
    /// Content of `.gitignore`, if there is one; empty if it cannot be read.
    pub(crate) gitignore: Option<Arc<[u8]>>,
    /// Hash of the access rules that begin here, if there are any.
    pub(crate) access: Option<u128>,
}

impl FolderRules {
    /// Returns whether the folder has any source of rules.
    pub(crate) fn has_sources(&self) -> bool {
        self.git || self.gitignore.is_some() || self.access.is_some()
    }
}

/// A folder. `oid` is the id of its tree object. Empty folders are kept, with [`Oid::EMPTY_TREE`].
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) oid: Oid,
    /// Taken before the names were read.
    pub(crate) stamp: Stamp,
    /// Whether an equal stamp guarantees equal names.
    pub(crate) settled: bool,
    /// Whether the folder, or one below it, has excluded or denied entries.
    has_exclusions: bool,
    /// Whether the folder, or one below it, has rules.
    has_rules: bool,
    /// Read permissions that occur below it.
    pub(crate) read_permissions: ReadPermissionSet,
    /// Number of files and links below it, and their total size in bytes.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Entries that are not captured, sorted by name.
    pub(crate) excluded: Box<[ExcludedEntry]>,
    /// Entries that access rules deny, sorted. Their names are not kept, because the stat cache is
    /// written to disk.
    pub(crate) denied: Box<[PathHash]>,
    pub(crate) rules: Option<Box<FolderRules>>,
    /// Concatenated names of the entries.
    names: Box<[u8]>,
    /// In git's order, see `object::name_order`.
    items: Box<[Item]>,
}

#[derive(Clone, Debug)]
struct Item {
    /// End of its name in `names`.
    end: u32,
    node: Node,
}

/// Content of a new folder.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) stamp: Stamp,
    pub(crate) settled: bool,
    pub(crate) entries: Vec<(Box<[u8]>, Node)>,
    pub(crate) excluded: Vec<ExcludedEntry>,
    pub(crate) denied: Vec<PathHash>,
    pub(crate) rules: Option<FolderRules>,
}

impl Folder {
    /// Builds a folder from unsorted parts.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            stamp,
            settled,
            mut entries,
            mut excluded,
            mut denied,
            rules,
        } = parts;
        entries.sort_unstable_by(|(left, a), (right, b)| {
            name_order(left, a.is_folder(), right, b.is_folder())
        });
        excluded.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        denied.sort_unstable();
        let mut names = Vec::with_capacity(entries.iter().map(|(name, _)| name.len()).sum());
        let mut items = Vec::with_capacity(entries.len());
        let (mut files, mut bytes) = (0, 0);
        let mut has_exclusions = !excluded.is_empty() || !denied.is_empty();
        let mut has_rules = rules.is_some();
        let mut read_permissions = ReadPermissionSet::default();
        for (name, node) in entries {
            match &node {
                Node::File(file) => {
                    files += 1;
                    bytes += file.stamp.size;
                    read_permissions.add(file.read_permission());
                }
                Node::Folder(folder) => {
                    files += folder.files;
                    bytes += folder.bytes;
                    has_exclusions |= folder.has_exclusions;
                    has_rules |= folder.has_rules;
                    read_permissions.add_all(folder.read_permissions);
                }
            }
            names.extend_from_slice(&name);
            let end = u32::try_from(names.len()).unwrap_or(u32::MAX);
            items.push(Item { end, node });
        }
        let mut folder = Self {
            oid: Oid::EMPTY_TREE,
            stamp,
            settled,
            has_exclusions,
            has_rules,
            read_permissions,
            files,
            bytes,
            excluded: excluded.into(),
            denied: denied.into(),
            rules: rules.map(Box::new),
            names: names.into(),
            items: items.into(),
        };
        if !folder.items.is_empty() {
            folder.oid = name_of(Kind::Tree, &folder.encode());
        }
        folder
    }

    /// Encodes the tree object.
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode_tree(
            self.entries()
                .map(|entry| (entry.mode, entry.name, entry.oid)),
        )
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Entries in git's order.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        (0..self.items.len()).map(|index| self.entry(index))
    }

    /// Entry at position `index`.
    pub(crate) fn entry(&self, index: usize) -> Entry<'_> {
        let start = match index.checked_sub(1) {
            Some(before) => self.items[before].end as usize,
            None => 0,
        };
        let Item { end, node } = &self.items[index];
        Entry {
            name: &self.names[start..*end as usize],
            mode: node.mode(),
            oid: node.oid(),
            node,
        }
    }

    /// Looks up an entry by name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Entry<'_>> {
        // The sort position depends on the type.
        [false, true].into_iter().find_map(|is_folder| {
            let index = self.position(name, is_folder).ok()?;
            Some(self.entry(index))
        })
    }

    fn position(&self, name: &[u8], is_folder: bool) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.items.len());
        while low < high {
            let middle = low.midpoint(high);
            let entry = self.entry(middle);
            match name_order(entry.name, entry.node.is_folder(), name, is_folder) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Looks up a path. Returns `None` for the root.
    #[cfg(test)]
    pub(crate) fn find(&self, rel: &RelPath) -> Option<Entry<'_>> {
        let path = bytes_of(rel.as_path());
        let mut names = path.split(|byte| *byte == b'/');
        let mut entry = self.get(names.next()?)?;
        for name in names {
            entry = entry.folder()?.get(name)?;
        }
        Some(entry)
    }

    /// Returns whether the folder, or one below it, has excluded or denied entries.
    pub(crate) fn has_exclusions(&self) -> bool {
        self.has_exclusions
    }

    /// Returns whether the folder, or one below it, has ignore rules.
    pub(crate) fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// Calls `visit` with the path of this folder and of each one below it for which `is_relevant`
    /// returns true. Does not descend into others.
    pub(crate) fn visit<'a>(
        &'a self,
        is_relevant: impl Fn(&Self) -> bool,
        mut visit: impl FnMut(&[u8], &'a Self),
    ) {
        let mut rest = vec![(Vec::new(), self)];
        while let Some((path, folder)) = rest.pop() {
            if !is_relevant(folder) {
                continue;
            }
            visit(&path, folder);
            for entry in folder.entries() {
                if let Some(below) = entry.folder().filter(|below| is_relevant(below)) {
                    let mut path = path.clone();
                    if !path.is_empty() {
                        path.push(b'/');
                    }
                    path.extend_from_slice(entry.name);
                    rest.push((path, below));
                }
            }
        }
    }

    /// Returns the paths of all folders, this one first.
    pub(crate) fn folders(&self) -> Vec<RelPath> {
        let mut folders = Vec::new();
        self.visit(|_| true, |path, _| folders.push(below(path, b"")));
        folders
    }

    /// Returns whether both are identical, including stamps.
    pub(crate) fn is_same(&self, other: &Folder) -> bool {
        self.oid == other.oid
            && self.stamp == other.stamp
            && self.settled == other.settled
            && self.excluded == other.excluded
            && self.denied == other.denied
            && self.rules == other.rules
            && self.names == other.names
            && self.items.len() == other.items.len()
            && self
                .items
                .iter()
                .zip(&other.items)
                .all(|(left, right)| left.end == right.end && left.node.is_same(&right.node))
    }
}

impl Drop for Folder {
    /// Iterative, because a tree may be deeper than the stack allows.
    fn drop(&mut self) {
        let mut rest: Vec<Node> = std::mem::take(&mut self.items)
            .into_vec()
            .into_iter()
            .map(|item| item.node)
            .collect();
        while let Some(node) = rest.pop() {
            let Node::Folder(folder) = node else { continue };
            if let Some(mut folder) = Arc::into_inner(folder) {
                let items = std::mem::take(&mut folder.items).into_vec();
                rest.extend(items.into_iter().map(|item| item.node));
            }
        }
    }
}
