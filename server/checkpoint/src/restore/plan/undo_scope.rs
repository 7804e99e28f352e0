//! The differences that an undo reverts: those that its restore made, unless the path changed
//! since.

use std::collections::HashSet;

use sightline_base::path::RelPath;

use crate::{
    checkpoints::Checkpoints,
    error::Error,
    job::Job,
    metadata::{Checkpoint, Purpose},
    named_path::NamedPath,
    restore::record::Restored,
    store::{object::Mode, odb::Odb},
    tree_diff::{Comparison, Difference, Tree, compare},
};

/// Paths that an undo may change.
pub(in crate::restore) enum UndoScope {
    Known {
        restored: Restored,
        /// Folders above them.
        above: HashSet<RelPath>,
    },
    /// The changes of the restore were not recorded, and its checkpoint no longer exists.
    Unknown,
}

/// Differences between the workspace and an undo point, as the undo treats them.
#[derive(Default)]
pub(super) struct Later {
    /// Paths that changed after the restore, with the reason to keep them. Sorted by path.
    pub(super) changed: Vec<(RelPath, &'static str)>,
    /// Paths that the restore did not change.
    pub(super) unrelated: Vec<RelPath>,
}

impl UndoScope {
    fn new(restored: Restored) -> Self {
        let above = folders_above(restored.keys());
        Self::Known { restored, above }
    }

    /// Returns whether the path, or one above or below it, was restored.
    pub(super) fn contains(&self, path: &RelPath) -> bool {
        let Self::Known { restored, above } = self else {
            return true;
        };
        above.contains(path) || is_at_or_below(path, restored)
    }

    /// Removes the differences that are unrelated to the restore.
    pub(super) fn limit(&self, found: &mut Comparison) -> Later {
        let mut later = Later::default();
        found.leaves.retain(|difference| {
            let path = difference.path.clone();
            match self.relation(difference) {
                Relation::AsRestored => true,
                Relation::Changed(how) => {
                    later.changed.push((path, how));
                    true
                }
                Relation::Unrelated => {
                    later.unrelated.push(path);
                    false
                }
            }
        });
        found.folders_gone.retain(|folder| {
            let is_related = self.contains(folder);
            if !is_related {
                later.unrelated.push(folder.clone());
            }
            is_related
        });
        later
    }

    fn relation(&self, Difference { path, left, .. }: &Difference) -> Relation {
        let Self::Known { restored, above } = self else {
            return Relation::Changed("may have changed after the restore, which was not recorded");
        };
        let is_empty_folder = left.is_some_and(|leaf| leaf.mode == Mode::Folder);
        match (restored.get(path), left) {
            (Some(Some(after)), Some(now)) if now.is_same(after) => Relation::AsRestored,
            (Some(None), None) => Relation::AsRestored,
            (Some(_), None) => Relation::Changed("deleted after the restore"),
            (Some(None), Some(_)) => Relation::Changed("created after the restore"),
            (Some(Some(_)), Some(_)) => Relation::Changed("changed after the restore"),
            // A folder took the place of a restored file, or a file that of its folder.
            (None, _) if is_at_or_below(path, restored) => {
                Relation::Changed("changed after the restore")
            }
            (None, Some(_)) if above.contains(path) && !is_empty_folder => {
                Relation::Changed("changed after the restore")
            }
            (None, _) => Relation::Unrelated,
        }
    }
}

enum Relation {
    /// The restore changed the path, and it is as the restore left it.
    AsRestored,
    /// The restore changed the path, and it changed since.
    Changed(&'static str),
    Unrelated,
}

/// Returns the folders above the paths, without the root.
pub(super) fn folders_above<'a>(paths: impl Iterator<Item = &'a RelPath>) -> HashSet<RelPath> {
    let mut above = HashSet::new();
    for path in paths {
        for folder in path.above() {
            if !above.insert(folder) {
                break;
            }
        }
    }
    above
}

fn is_at_or_below(path: &RelPath, restored: &Restored) -> bool {
    path.ancestors().any(|at| restored.contains_key(&at))
}

impl Checkpoints {
    /// Returns the scope of an undo, or `None` if `undo` is not an undo point.
    pub(in crate::restore) fn undo_scope(
        &self,
        job: &Job<'_>,
        reader: &Odb,
        undo: &Checkpoint,
    ) -> Result<Option<UndoScope>, Error> {
        let Purpose::Undo { restoring, paths } = &undo.metadata.purpose else {
            return Ok(None);
        };
        if let Some(restored) = self.read_record(undo.id)? {
            return Ok(Some(UndoScope::new(restored)));
        }
        let Some(restoring) = restoring else {
            return Ok(Some(UndoScope::new(Restored::new())));
        };
        let target = match self.get(*restoring) {
            Ok(target) => target,
            Err(Error::NotFound(_)) => return Ok(Some(UndoScope::Unknown)),
            Err(error) => return Err(error),
        };
        // An older version made the restore, or on another machine.
        let paths: Vec<RelPath> = paths.iter().filter_map(NamedPath::to_path).collect();
        let (left, right) = (Tree::Stored(undo.tree), Tree::Stored(target.tree));
        let found = compare(reader, &left, &right, &paths, job.cancel)?;
        let restored = found.leaves.into_iter();
        let restored = restored.map(|difference| (difference.path, difference.right));
        Ok(Some(UndoScope::new(restored.collect())))
    }
}
