//! A folder on a walk: what is asked of it, and what was found out so far.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
};

use super::{
    disk::{Dir, os_name},
    rules::{Chain, Judge},
    tracked::Exempt,
    tree::{Folder, Left, Node, Parts, Reason, Rules, Stamp},
};
use crate::{access::gitignore::bytes_of, path::RelPath};

/// Paths to look at, as a tree.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// This path itself, with all below it.
    pub(super) whole: bool,
    pub(super) names: BTreeMap<Box<[u8]>, Paths>,
}

impl Paths {
    pub(super) fn new<'a>(paths: impl Iterator<Item = &'a RelPath>) -> Self {
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

    pub(super) fn is_everything(&self) -> bool {
        self.whole
    }
}

/// A folder being looked at.
pub(super) struct Frame<'a> {
    pub(super) parent: Option<Arc<Frame<'a>>>,
    /// In the folder above.
    pub(super) name: Box<[u8]>,
    pub(super) depth: usize,
    /// A folder that is open, and the names that lead from it to this one.
    pub(super) anchor: Arc<Dir>,
    pub(super) way: Vec<Box<[u8]>>,
    pub(super) last: Option<Arc<Folder>>,
    /// Only these; `None` means all.
    pub(super) paths: Option<&'a Paths>,
    pub(super) above: Chain,
    /// Rules above changed.
    pub(super) rejudge: bool,
    /// Pieces of work that are not complete.
    pub(super) pending: AtomicUsize,
    pub(super) work: Mutex<Work>,
}

/// What was found out about a folder so far.
#[derive(Default)]
pub(super) struct Work {
    pub(super) stamp: Stamp,
    pub(super) settled: bool,
    pub(super) rules: Option<Rules>,
    /// What holds for names that are not in `changes`.
    pub(super) base: Option<Arc<Folder>>,
    pub(super) changes: Vec<(Box<[u8]>, Change)>,
    /// It could not be opened.
    pub(super) lost: Option<Change>,
}

/// What became of a name.
#[derive(Clone)]
pub(super) enum Change {
    Node(Node),
    Left(Reason),
    /// There is none, or it is ignored.
    Gone,
}

impl Frame<'_> {
    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its path below the root.
    pub(super) fn path(&self) -> Vec<u8> {
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
    pub(super) fn is_ignored(&self, judge: &Judge<'_>, exempt: &Exempt) -> bool {
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

    pub(super) fn note(&self, name: &[u8], change: Change) {
        self.work().changes.push((name.into(), change));
    }
}

/// Puts a folder together of which everything is known.
pub(super) fn assemble(frame: &Frame<'_>) -> Change {
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
