//! What was changed after a restore, which its undo would take away.

use std::collections::HashMap;

use super::{
    super::{
        Checkpoint, Checkpoints, Job, NamedPath, Purpose,
        store::repository::Repository,
        tree_diff::{Tree, compare, is_within},
        worktree::scan::Scan,
    },
    Preview,
};
use crate::{error::Error, path::RelPath};

impl Checkpoints {
    /// Says in the preview of an undo point which paths are not as the restore left
    /// them. Says nothing when the restored checkpoint is gone.
    pub(super) fn note_later_changes(
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
        let reader = repository.reader();
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
            // The restore did not touch other paths, so whatever differs there is later.
            let how = match is_restored {
                true => later.get(&change.path).copied(),
                false => Some("changed"),
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
