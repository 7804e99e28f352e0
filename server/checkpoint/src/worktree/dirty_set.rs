//! Tracks which paths changed since the last checkpoint.
//!
//! A checkpoint only scans the reported paths, so a source that misses a change would lose it. A
//! source that cannot be sure reports [`Changes::Unknown`].

use std::{collections::BTreeSet, ops::Bound};

use parking_lot::{Mutex, MutexGuard};
use sightline_base::path::RelPath;

/// Number of paths above which a full scan is not slower.
const MAX_PATHS: usize = 10_000;

/// Changes since the last call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Only these paths changed. A folder includes everything below it.
    Known(Vec<RelPath>),
    /// Anything may have changed.
    Unknown,
}

/// Reports changes in a root.
pub trait ChangeSource: Send + Sync {
    /// Takes all changes since the last call, including events that the system has not delivered
    /// yet: every write that finished before this call is included.
    fn take(&self) -> Changes;
    /// Returns changes that were taken and not used.
    fn put_back(&self, changes: Changes);
}

/// The changes so far. Initially unknown.
#[derive(Debug, Default)]
pub struct DirtySet(Mutex<Option<BTreeSet<RelPath>>>);

impl DirtySet {
    /// Adds a path that was created, changed or removed. For a created or removed folder, the
    /// folder itself is enough.
    pub fn mark(&self, path: RelPath) {
        let mut noted = self.noted();
        let Some(paths) = &mut *noted else { return };
        if path.ancestors().any(|at| paths.contains(&at)) {
            return;
        }
        let after = (Bound::Excluded(&path), Bound::Unbounded);
        let below: Vec<RelPath> = paths
            .range::<RelPath, _>(after)
            .take_while(|other| other.as_path().starts_with(path.as_path()))
            .cloned()
            .collect();
        for other in below {
            paths.remove(&other);
        }
        paths.insert(path);
        if paths.len() > MAX_PATHS {
            *noted = None;
        }
    }

    /// Records that anything may have changed.
    pub fn mark_unknown(&self) {
        *self.noted() = None;
    }

    fn noted(&self) -> MutexGuard<'_, Option<BTreeSet<RelPath>>> {
        self.0.lock()
    }
}

impl ChangeSource for DirtySet {
    fn take(&self) -> Changes {
        match self.noted().replace(BTreeSet::new()) {
            Some(paths) => Changes::Known(paths.into_iter().collect()),
            None => Changes::Unknown,
        }
    }

    fn put_back(&self, changes: Changes) {
        match changes {
            Changes::Known(paths) => paths.into_iter().for_each(|path| self.mark(path)),
            Changes::Unknown => self.mark_unknown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn rel(path: &str) -> RelPath {
        RelPath::new(Path::new(path)).unwrap()
    }

    fn marked(paths: &[&str]) -> Changes {
        let set = DirtySet::default();
        assert_eq!(set.take(), Changes::Unknown);
        paths.iter().for_each(|path| set.mark(rel(path)));
        set.take()
    }

    #[test]
    fn a_folder_covers_everything_below_it() {
        let known = |paths: &[&str]| Changes::Known(paths.iter().map(|path| rel(path)).collect());
        assert_eq!(marked(&["a/b", "a", "a/c"]), known(&["a"]));
        assert_eq!(
            marked(&["a b", "a/b/c", "a/b.c", "a/b"]),
            known(&["a/b", "a/b.c", "a b"])
        );
        assert_eq!(marked(&["x/y", ""]), known(&[""]));
    }

    #[test]
    fn unknown_changes_stay_unknown_until_taken() {
        let set = DirtySet::default();
        set.mark(rel("a"));
        assert_eq!(set.take(), Changes::Unknown);
        set.mark(rel("a"));
        let taken = set.take();
        assert_eq!(set.take(), Changes::Known(Vec::new()));
        set.mark(rel("b"));
        set.put_back(taken);
        assert_eq!(set.take(), Changes::Known(vec![rel("a"), rel("b")]));
        set.put_back(Changes::Unknown);
        set.mark(rel("b"));
        assert_eq!(set.take(), Changes::Unknown);
        for number in 0..=MAX_PATHS {
            set.mark(rel(&number.to_string()));
        }
        assert_eq!(set.take(), Changes::Unknown);
    }
}
