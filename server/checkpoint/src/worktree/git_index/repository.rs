//! A repository that overlaps the work tree, and the paths in its index.

use std::sync::OnceLock;

use sightline_base::{
    clock::now_nanos,
    fs::dir::{FileType, stat_file},
};
use sightline_context::git::index::{GitIndex, TrackedKind, TrackedPath};

use super::{TrackedPaths, is_below};
use crate::worktree::snapshot::Stamp;

/// Maximum size of an index, in bytes; some millions of files.
const MAX_INDEX_BYTES: u64 = 1 << 30;
/// Maximum number of files in a folder that a sparse index does not list.
const MAX_SPARSE_FILES: usize = 1_000_000;

/// A repository that overlaps the work tree.
pub(crate) struct Repository {
    /// Its top folder, relative to the root.
    pub(super) top: Vec<u8>,
    /// Path of the root in the repository, if that begins above the root.
    below: Vec<u8>,
    /// Its index, or why it has none.
    pub(super) index: Result<GitIndex, String>,
    /// Stamp of the index file, taken before it is read; empty if that cannot be used.
    pub(super) stamp: Stamp,
    /// Whether an equal stamp guarantees equal content.
    pub(super) settled: bool,
    /// Read on first use.
    listed: OnceLock<Result<Listed, String>>,
}

/// Content of an index.
struct Listed {
    paths: TrackedPaths,
    sparse: Vec<SparseFolder>,
}

/// A folder whose files a sparse index does not list. Usually, it does not exist.
struct SparseFolder {
    /// Relative to the root.
    path: Vec<u8>,
    entry: TrackedPath,
    files: OnceLock<Result<TrackedPaths, String>>,
}

impl Repository {
    pub(super) fn new(top: Vec<u8>, below: Vec<u8>, index: Result<GitIndex, String>) -> Self {
        let started_at = now_nanos();
        let stamp = index.as_ref().ok().and_then(stamp).unwrap_or_default();
        Self {
            top,
            below,
            settled: stamp.is_settled(started_at),
            stamp,
            index,
            listed: OnceLock::new(),
        }
    }

    /// Returns the first tracked path at `path` that is allowed: the file, or one in the folder.
    pub(super) fn find(
        &self,
        path: &[u8],
        is_dir: bool,
        is_allowed: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Box<[u8]>>, String> {
        let first = |paths: &TrackedPaths| {
            let at = paths.at(path, is_dir);
            at.iter().find(|path| is_allowed(path)).cloned()
        };
        let index = self.index.as_ref().map_err(String::clone)?;
        let listed = match self.listed.get_or_init(|| self.list(index)) {
            Ok(listed) => listed,
            Err(why) => return Err(why.clone()),
        };
        let mut found = first(&listed.paths);
        for folder in &listed.sparse {
            let may_have = is_below(path, &folder.path) || is_dir && is_below(&folder.path, path);
            if found.is_none() && may_have {
                let files = folder.files.get_or_init(|| {
                    let files = index.files_in_sparse_folder(&folder.entry, MAX_SPARSE_FILES)?;
                    Ok(TrackedPaths::new(
                        files.iter().filter_map(|file| self.place(file)).collect(),
                    ))
                });
                found = first(files.as_ref().map_err(String::clone)?);
            }
        }
        Ok(found)
    }

    fn list(&self, index: &GitIndex) -> Result<Listed, String> {
        let entries = index.tracked_paths(MAX_INDEX_BYTES)?;
        let sparse = entries
            .iter()
            .filter(|entry| matches!(entry.kind, TrackedKind::SparseFolder(_)))
            .filter_map(|entry| {
                Some(SparseFolder {
                    path: self.below_root(&entry.path)?,
                    entry: entry.clone(),
                    files: OnceLock::new(),
                })
            });
        Ok(Listed {
            sparse: sparse.collect(),
            paths: TrackedPaths::new(entries.iter().filter_map(|one| self.place(one)).collect()),
        })
    }

    /// Returns a tracked path as [`TrackedPaths`] has it.
    fn place(&self, entry: &TrackedPath) -> Option<Box<[u8]>> {
        let mut path = self.below_root(&entry.path)?;
        match entry.kind {
            TrackedKind::File => {}
            TrackedKind::Submodule => path.push(b'/'),
            TrackedKind::SparseFolder(_) => return None,
        }
        Some(path.into())
    }

    /// Converts a path of the index to one relative to the root. Returns `None` if it is outside
    /// the root or invalid.
    fn below_root(&self, path: &[u8]) -> Option<Vec<u8>> {
        let path = match (&*self.top, &*self.below) {
            (b"", b"") => path.to_vec(),
            (b"", below) => path.strip_prefix(below)?.strip_prefix(b"/")?.to_vec(),
            (top, _) => [top, b"/", path].concat(),
        };
        // An index can contain arbitrary bytes.
        let is_path = path
            .split(|byte| *byte == b'/')
            .all(|name| !matches!(name, b"" | b"." | b".." | b".git"));
        is_path.then_some(path)
    }
}

fn stamp(index: &GitIndex) -> Option<Stamp> {
    let found = stat_file(&index.open().ok()??).ok()?;
    (found.kind == FileType::File).then_some(found.stamp)
}
