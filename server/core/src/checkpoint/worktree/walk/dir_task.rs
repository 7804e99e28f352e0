//! A folder on a walk: what is asked of it, and what was found out so far.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
};

use crate::{
    access::gitignore::bytes_of,
    checkpoint::worktree::{
        capture_filter::{Chain, Judge},
        git_index::Exempt,
        scan_dir::{Dir, os_name},
        snapshot::{Folder, Left, Node, Parts, Reason, Rules, Stamp},
    },
    path::RelPath,
};

/// Paths to look at, as a tree.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// This path itself, with all below it.
    pub(crate) whole: bool,
    pub(crate) names: BTreeMap<Box<[u8]>, Paths>,
}

impl Paths {
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

/// A folder being looked at.
pub(crate) struct Frame<'a> {
    pub(crate) parent: Option<Arc<Frame<'a>>>,
    /// In the folder above.
    pub(crate) name: Box<[u8]>,
    pub(crate) depth: usize,
    /// A folder that is open, and the names that lead from it to this one.
    pub(crate) anchor: Arc<Dir>,
    pub(crate) way: Vec<Box<[u8]>>,
    pub(crate) last: Option<Arc<Folder>>,
    /// Only these; `None` means all.
    pub(crate) paths: Option<&'a Paths>,
    pub(crate) above: Chain,
    /// Rules above changed.
    pub(crate) rejudge: bool,
    /// Pieces of work that are not complete.
    pub(crate) pending: AtomicUsize,
    pub(crate) work: Mutex<Work>,
}

/// What was found out about a folder so far.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) stamp: Stamp,
    pub(crate) settled: bool,
    pub(crate) rules: Option<Rules>,
    /// What holds for names that are not in `changes`.
    pub(crate) base: Option<Arc<Folder>>,
    pub(crate) changes: Vec<(Box<[u8]>, Change)>,
    /// It could not be opened.
    pub(crate) lost: Option<Change>,
}

/// What became of a name.
#[derive(Clone)]
pub(crate) enum Change {
    Node(Node),
    Left(Reason),
    /// There is none, or it is ignored.
    Gone,
}

impl Frame<'_> {
    pub(crate) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its path below the root.
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

    /// Is it ignored, so that of what is in it only what is exempt is captured?
    /// It is captured itself.
    pub(crate) fn is_ignored(&self, judge: &Judge<'_>, exempt: &Exempt) -> bool {
        // Only what holds something exempt can be.
        if !exempt.holds(&self.path(), true) {
            return false;
        }
        let mut way = Vec::new();
        let mut at = self;
        while let Some(parent) = &at.parent {
            way.push(at);
            at = parent;
        }
        let (mut folder, mut is_ignored) = (Vec::new(), false);
        for frame in way.into_iter().rev() {
            let rules = || frame.above.rules().within(&judge.place(&folder));
            is_ignored = is_ignored || rules().ignores(os_name(&frame.name), true);
            if !folder.is_empty() {
                folder.push(b'/');
            }
            folder.extend_from_slice(&frame.name);
            is_ignored &= !exempt.is_itself(&folder);
        }
        is_ignored
    }

    pub(crate) fn note(&self, name: &[u8], change: Change) {
        self.work().changes.push((name.into(), change));
    }
}

/// Puts a folder together of which everything is known.
pub(crate) fn assemble(frame: &Frame<'_>) -> Change {
    let Work {
        stamp,
        settled,
        rules,
        base,
        mut changes,
        lost,
    } = std::mem::take(&mut *frame.work());
    if let Some(lost) = lost {
        return lost;
    }
    if let Some(base) = base.as_ref().filter(|_| changes.is_empty()) {
        return Change::Node(Node::Folder(base.clone()));
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
        let kept = base.left.iter().filter(|left| !is_changed(&left.name));
        parts.left.extend(kept.cloned());
    }
    for (name, change) in changes {
        match change {
            Change::Node(node) => parts.entries.push((name, node)),
            Change::Left(reason) => parts.left.push(Left { name, reason }),
            Change::Gone => {}
        }
    }
    let folder = Folder::new(parts);
    let same = frame.last.as_ref().filter(|last| last.is_same(&folder));
    Change::Node(Node::Folder(
        same.cloned().unwrap_or_else(|| Arc::new(folder)),
    ))
}
