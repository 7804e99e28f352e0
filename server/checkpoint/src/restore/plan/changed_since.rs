//! Paths that changed after a restore, whose changes an undo of that restore would discard.

use std::collections::HashMap;

use sightline_workspace::path::RelPath;

use crate::{
    checkpoints::Checkpoints,
    error::Error,
    job::Job,
    metadata::{Checkpoint, Purpose},
    named_path::NamedPath,
    restore::types::Preview,
    store::repository::Repository,
    tree_diff::{Tree, compare, is_within},
    worktree::scan::Scan,
};

impl Checkpoints {
    /// Marks the paths in the preview of an undo that changed after the restore. Does nothing if
    /// the restored checkpoint no longer exists.
    pub(in crate::restore) fn mark_changed_since(
        &self,
        job: &Job<'_>,
        repository: &Repository,
        now: &Scan,
        target: &Checkpoint,
        preview: &mut Preview,
    ) -> Result<(), Error> {
        let Purpose::Undo {
            restoring: Some(restoring),
            paths,
        } = &target.metadata.purpose
        else {
            return Ok(());
        };
        let Ok(restored) = self.get(*restoring) else {
            return Ok(());
        };
        let restored_paths: Vec<RelPath> = paths.iter().filter_map(NamedPath::to_path).collect();
        let (left, right) = (Tree::Seen(now.tree.clone()), Tree::Stored(restored.tree));
        let reader = repository.odb();
        let found = compare(&reader, &left, &right, &restored_paths, job.cancel)?;
        let later: HashMap<&RelPath, &str> = found
            .leaves
            .iter()
            .map(|difference| {
                let how = match (&difference.left, &difference.right) {
                    (None, _) => "deleted",
                    (_, None) => "created",
                    _ => "changed",
                };
                (&difference.path, how)
            })
            .collect();
        for change in &mut preview.changes {
            let is_restored = restored_paths.is_empty()
                || restored_paths
                    .iter()
                    .any(|above| is_within(&change.path, above));
            // The restore changed no other paths, so any difference there is newer.
            let how = if is_restored {
                later.get(&change.path).copied()
            } else {
                Some("changed")
            };
            if let Some(how) = how {
                change
                    .reason
                    .push_str(&format!("; {how} after the restore"));
                change.changed_since = true;
            }
        }
        Ok(())
    }
}
