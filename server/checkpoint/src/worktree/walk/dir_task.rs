//! The task of one folder: its parameters, and its state so far.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    sync::{Arc, OnceLock, atomic::AtomicUsize},
};

use parking_lot::{Mutex, MutexGuard};
use sightline_access::{gitignore::bytes_of, gitignore_stack::IgnoreRules};
use sightline_base::{
    fs::dir::Dir,
    path::{RelPath, os_name},
};

use crate::worktree::{
    exclusions::{PathHash, PathSalt},
    snapshot::{ExcludedEntry, ExclusionReason, Folder, FolderRules, Node, Parts, Stamp},
};

/// A set of paths, as a tree.
#[derive(Debug, Default)]
pub(crate) struct PathTree {
    /// Whether everything below this path is included.
    pub(crate) whole: bool,
    pub(crate) names: BTreeMap<Box<[u8]>, PathTree>,
}

impl PathTree {
    pub(crate) fn new<'a>(paths: impl Iterator<Item = &'a RelPath>) -> Self {
        let mut all = Self::default();
        for path in paths {
            let bytes = bytes_of(path.as_path());
            let mut at = &mut all;
            if !bytes.is_empty() {
                for name in bytes.split(|byte| *byte == b'/') {
                    at = at.names.entry(name.into()).or_default();
                }
            }
            at.whole = true;
        }
        all
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.whole
    }
}

/// A folder to process.
pub(crate) struct DirTask<'a> {
    pub(crate) parent: Option<Arc<DirTask<'a>>>,
    /// Name in the parent folder.
    pub(crate) name: Box<[u8]>,
    pub(crate) depth: usize,
    /// An open ancestor, and the names that lead from it to this folder.
    pub(crate) anchor: Arc<Dir>,
    pub(crate) path_from_anchor: Vec<Box<[u8]>>,
    pub(crate) last: Option<Arc<Folder>>,
    /// Limits the walk to these paths; `None` means all.
    pub(crate) paths: Option<&'a PathTree>,
    pub(crate) above: IgnoreRules,
    /// Whether it is ignored, and captured only because of tracked paths, if that is known.
    pub(crate) is_ignored: OnceLock<bool>,
    /// Whether rules above the folder changed.
    pub(crate) reevaluate: bool,
    /// Number of unfinished parts.
    pub(crate) pending: AtomicUsize,
    pub(crate) state: Mutex<DirState>,
}

/// State of a folder so far.
#[derive(Default)]
pub(crate) struct DirState {
    pub(crate) stamp: Stamp,
    pub(crate) settled: bool,
    pub(crate) rules: Option<FolderRules>,
    /// Applies to names that are not in `changes`.
    pub(crate) base: Option<Arc<Folder>>,
    pub(crate) changes: Vec<(Box<[u8]>, EntryResult)>,
    /// Set if the folder is not captured.
    pub(crate) excluded: Option<EntryResult>,
}

/// Result for an entry.
#[derive(Clone)]
pub(crate) enum EntryResult {
    Node(Node),
    Excluded(ExclusionReason),
    Denied,
    /// Denied now. Its content may change, which the stamp of the folder does not tell.
    DeniedByContent,
    /// It does not exist, or is `.git`.
    Gone,
}

impl DirTask<'_> {
    pub(crate) fn state(&self) -> MutexGuard<'_, DirState> {
        self.state.lock()
    }

    /// Opens the folder, and returns its stamp from before its names are read.
    pub(crate) fn open(&self) -> io::Result<(Arc<Dir>, Stamp)> {
        let mut entered: Option<Dir> = None;
        for name in &self.path_from_anchor {
            let above = entered.as_ref().unwrap_or(&self.anchor);
            entered = Some(above.open_dir(os_name(name))?);
        }
        let dir = entered.map_or_else(|| self.anchor.clone(), Arc::new);
        let stamp = dir.stamp()?;
        Ok((dir, stamp))
    }

    /// Path relative to the root.
    pub(crate) fn path(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = self;
        while let Some(parent) = &at.parent {
            names.push(&*at.name);
            at = parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    pub(crate) fn note(&self, name: &[u8], change: EntryResult) {
        self.state().changes.push((name.into(), change));
    }
}

/// Assembles a finished folder. `salt` is the salt of the hashes of denied paths.
pub(crate) fn assemble(task: &DirTask<'_>, salt: PathSalt) -> EntryResult {
    let DirState {
        stamp,
        settled,
        rules,
        base,
        mut changes,
        excluded,
    } = std::mem::take(&mut *task.state());
    if let Some(excluded) = excluded {
        return excluded;
    }
    if let Some(base) = base.as_ref().filter(|_| changes.is_empty()) {
        return EntryResult::Node(Node::Folder(base.clone()));
    }
    changes.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut parts = Parts {
        stamp,
        settled,
        rules,
        ..Parts::default()
    };
    if let Some(base) = &base {
        let is_changed = |name: &[u8]| {
            changes
                .binary_search_by(|(other, _)| (**other).cmp(name))
                .is_ok()
        };
        let kept = base.entries().filter(|entry| !is_changed(entry.name));
        let kept = kept.map(|entry| (entry.name.into(), entry.node.clone()));
        parts.entries.extend(kept);
        let kept = base.excluded.iter().filter(|left| !is_changed(&left.name));
        parts.excluded.extend(kept.cloned());
        if !base.denied.is_empty() {
            let path = task.path();
            let changed: HashSet<PathHash> = changes
                .iter()
                .map(|(name, _)| salt.hash_in(&path, name))
                .collect();
            let kept = base.denied.iter().filter(|hash| !changed.contains(hash));
            parts.denied.extend(kept);
        }
    }
    for (name, change) in changes {
        match change {
            EntryResult::Node(node) => parts.entries.push((name, node)),
            EntryResult::Excluded(reason) => parts.excluded.push(ExcludedEntry { name, reason }),
            EntryResult::Denied => parts.denied.push(salt.hash_in(&task.path(), &name)),
            EntryResult::DeniedByContent => {
                parts.denied.push(salt.hash_in(&task.path(), &name));
                parts.settled = false;
            }
            EntryResult::Gone => {}
        }
    }
    let folder = Folder::new(parts);
    let same = task.last.as_ref().filter(|last| last.is_same(&folder));
    EntryResult::Node(Node::Folder(
        same.cloned().unwrap_or_else(|| Arc::new(folder)),
    ))
}
