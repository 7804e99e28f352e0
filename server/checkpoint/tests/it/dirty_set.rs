//! Changes that a test reports.

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard};
use sightline_base::path::RelPath;
use sightline_checkpoint::{ChangeSource, Changes};

/// The changes so far. Initially unknown.
#[derive(Debug, Default)]
pub(crate) struct DirtySet(Mutex<Option<BTreeSet<RelPath>>>);

impl DirtySet {
    /// Adds a path that was created, changed or removed. For a created or removed folder, the
    /// folder itself is enough.
    pub(crate) fn mark(&self, path: RelPath) {
        let mut noted = self.noted();
        let Some(paths) = &mut *noted else { return };
        if path.ancestors().any(|at| paths.contains(&at)) {
            return;
        }
        paths.retain(|other| !other.as_path().starts_with(path.as_path()));
        paths.insert(path);
    }

    /// Records that anything may have changed.
    pub(crate) fn mark_unknown(&self) {
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
