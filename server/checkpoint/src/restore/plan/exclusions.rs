//! Paths that the checkpoint does not hold.

use sightline_base::{fs::dir::DirWalker, path::RelPath};

use crate::{
    error::Error,
    job::Job,
    metadata::{Checkpoint, excluded::ExcludedThen},
    restore::types::Conflict,
    store::odb::Odb,
    tree_diff::{DeniedPaths, is_held, is_within},
    worktree::{
        scan::Scan,
        snapshot::{ExclusionReason, Folder, below},
    },
};

/// Returns a conflict for each file below or above `wanted` that cannot be read now and that the
/// checkpoint does not contain: a restore would have to delete it without saving it.
pub(super) fn unreadable_conflicts(
    job: &Job<'_>,
    reader: &Odb,
    (now, target): (&Scan, &Checkpoint),
    wanted: &[RelPath],
    exclusions: &mut ExcludedThen<'_>,
) -> Result<Vec<Conflict>, Error> {
    let mut found = Vec::new();
    now.tree.visit(Folder::has_exclusions, |folder, seen| {
        for left in &seen.excluded {
            if matches!(
                left.reason,
                ExclusionReason::Unreadable(_) | ExclusionReason::Unstable
            ) {
                found.push((below(folder, &left.name), &left.reason));
            }
        }
    });
    let mut denied = DeniedPaths::new(job);
    let mut conflicts = Vec::new();
    for (path, reason) in found {
        job.cancel.check()?;
        let is_wanted = wanted.is_empty()
            || wanted
                .iter()
                .any(|some| is_within(&path, some) || is_within(some, &path));
        let is_known = || is_held(reader, target.tree, &path);
        if !is_wanted || exclusions.skips(&path) || denied.denies(&path, false) || is_known()? {
            continue;
        }
        let why = format!("not in the checkpoint, and cannot be read ({reason}); left as it is");
        conflicts.push(Conflict::new(path, why));
    }
    Ok(conflicts)
}

/// Returns a conflict for each wanted path that the checkpoint skipped and that is missing now: a restore
/// cannot bring it back.
pub(super) fn lost_conflicts(
    job: &Job<'_>,
    walker: &mut DirWalker,
    target: &Checkpoint,
    wanted: &[RelPath],
) -> Vec<Conflict> {
    let mut denied = DeniedPaths::new(job);
    let mut conflicts = Vec::new();
    for skipped in &target.metadata.skipped {
        let Some(path) = skipped.named().to_path().filter(|path| !path.is_root()) else {
            continue;
        };
        let is_below = wanted.is_empty() || wanted.iter().any(|some| is_within(&path, some));
        let is_expendable = ExclusionReason::is_expendable(&skipped.reason);
        let is_lost = (is_below && !is_expendable || wanted.contains(&path))
            && matches!(walker.stat(&path), Ok(None))
            && !denied.denies(&path, false);
        if is_lost {
            let why = format!(
                "missing, and not saved in the checkpoint ({})",
                skipped.reason
            );
            conflicts.push(Conflict::new(path, why));
        }
    }
    conflicts
}

/// Requires that each wanted path is in the checkpoint, `planned` or missing. A restore would do
/// nothing otherwise.
pub(super) fn require_held(
    job: &Job<'_>,
    reader: &Odb,
    target: &Checkpoint,
    wanted: &[RelPath],
    planned: &[&RelPath],
    exclusions: &mut ExcludedThen<'_>,
) -> Result<(), Error> {
    let root = job.view.roots().get(job.root);
    for path in wanted {
        let place = root.map(|root| root.path.join(path));
        if planned.iter().any(|one| is_within(one, path))
            || is_held(reader, target.tree, path)?
            || place.is_none_or(|place| place.as_path().symlink_metadata().is_err())
        {
            continue;
        }
        let why = exclusions.find(path);
        return Err(Error::NotHeld {
            path: path.clone(),
            why: why.map_or_else(|| "ignored or skipped".to_owned(), |why| why.to_string()),
        });
    }
    Ok(())
}
