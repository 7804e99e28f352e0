//! A repository that overlaps the work tree, and the paths in its index.

use sightline_workspace::{
    fs::dir::{FileType, stat_file},
    git::index::{GitIndex, TrackedKind, TrackedPath},
};

use crate::worktree::snapshot::{ExclusionReason, Folder, Stamp};

/// Maximum size of an index, in bytes; some millions of files.
const MAX_INDEX_BYTES: u64 = 1 << 30;
/// Maximum number of files in a folder that a sparse index does not list.
const MAX_SPARSE_FILES: usize = 1_000_000;

/// A repository that overlaps the work tree.
pub(super) struct Repository {
    /// Its top folder, relative to the root.
    pub(super) top: Vec<u8>,
    /// Path of the root in the repository, if that begins above the root.
    below: Vec<u8>,
    /// Its index, or why it has none.
    pub(super) index: Result<GitIndex, String>,
    /// Stamp of the index file; empty if that cannot be used.
    pub(super) stamp: Stamp,
}

fn stamp(index: &GitIndex) -> Option<Stamp> {
    let found = stat_file(&index.open().ok()??).ok()?;
    (found.kind == FileType::File).then_some(found.stamp)
}

/// The tracked paths in the index of a repository.
#[derive(Default)]
pub(super) struct ListedPaths {
    /// Relative to the root, and whether each is a submodule.
    pub(super) paths: Vec<(Vec<u8>, bool)>,
    /// Why some are missing, if they are.
    pub(super) problem: Option<String>,
    pub(super) is_sparse: bool,
}

impl Repository {
    pub(super) fn new(top: Vec<u8>, below: Vec<u8>, index: Result<GitIndex, String>) -> Self {
        Self {
            top,
            below,
            stamp: index.as_ref().ok().and_then(stamp).unwrap_or_default(),
            index,
        }
    }

    pub(super) fn tracked_paths(&self, tree: &Folder) -> ListedPaths {
        let mut found = ListedPaths::default();
        let listed = self.index.as_ref().map_err(String::clone);
        let listed = listed.and_then(|index| Ok((index, index.tracked_paths(MAX_INDEX_BYTES)?)));
        let (index, listed) = match listed {
            Ok(listed) => listed,
            Err(why) => {
                found.problem = Some(why);
                return found;
            }
        };
        let paths = &mut found.paths;
        for entry in listed {
            found.is_sparse |= matches!(entry.kind, TrackedKind::SparseFolder(_));
            let Some(path) = self.below_root(entry.path.clone()) else {
                continue;
            };
            match entry.kind {
                TrackedKind::File => paths.push((path, false)),
                TrackedKind::Submodule => paths.push((path, true)),
                // Usually, such a folder does not exist.
                TrackedKind::SparseFolder(_) if !has_ignored(tree, &path) => {}
                TrackedKind::SparseFolder(_) => {
                    match index.files_in_sparse_folder(&entry, MAX_SPARSE_FILES) {
                        Ok(files) => paths.extend(files.into_iter().filter_map(
                            |TrackedPath { path, kind }| {
                                Some((self.below_root(path)?, kind == TrackedKind::Submodule))
                            },
                        )),
                        Err(why) => found.problem = Some(why),
                    }
                }
            }
        }
        found
    }

    /// Converts a path of the index to one relative to the root. Returns `None` if it is outside
    /// the root or invalid.
    fn below_root(&self, path: Vec<u8>) -> Option<Vec<u8>> {
        let path = match (&*self.top, &*self.below) {
            (b"", b"") => path,
            (b"", below) => path.strip_prefix(below)?.strip_prefix(b"/")?.to_vec(),
            (top, _) => [top, b"/", &path].concat(),
        };
        // An index can contain arbitrary bytes.
        let is_path = path
            .split(|byte| *byte == b'/')
            .all(|name| !matches!(name, b"" | b"." | b".." | b".git"));
        is_path.then_some(path)
    }
}

/// Returns whether the folder, or one above it, is ignored, or anything in it.
pub(super) fn has_ignored(tree: &Folder, path: &[u8]) -> bool {
    let ignores = |folder: &Folder, name: Option<&[u8]>| {
        let mut excluded = folder.excluded.iter();
        excluded.any(|entry| {
            entry.reason == ExclusionReason::Ignored && name.is_none_or(|name| *entry.name == *name)
        })
    };
    let mut at = tree;
    for name in path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
    {
        if ignores(at, Some(name)) {
            return true;
        }
        match at.get(name).and_then(|entry| entry.folder()) {
            Some(folder) => at = folder,
            None => return false,
        }
    }
    let mut found = false;
    at.visit(Folder::has_exclusions, |_, folder| {
        found |= ignores(folder, None)
    });
    found
}

/// Returns whether the path is the folder `top` or in it. Everything is in the empty one.
pub(super) fn is_below(path: &[u8], top: &[u8]) -> bool {
    let rest = path.strip_prefix(top);
    rest.is_some_and(|rest| top.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
}
