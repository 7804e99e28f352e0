//! The steps that an interrupted restore still has to make.

use std::collections::HashSet;

use sightline_base::{fs::dir::DirWalker, path::RelPath};

use crate::{
    error::Error,
    job::Job,
    restore::{
        plan::{
            Step, involves_empty_folder,
            protected_paths::{ProtectedPaths, Protection, denied_conflict, rule_files},
            removed_folders,
            repository_folders::RepositoryFolders,
        },
        types::Conflict,
    },
    store::{object::Oid, odb::Odb},
    tree_diff::{DeniedPaths, Tree, compare},
};

/// Remaining steps of an interrupted restore.
#[derive(Debug, Default)]
pub(super) struct RecoverySteps {
    pub(super) steps: Vec<Step>,
    /// Folders to remove if they are empty after the steps.
    pub(super) folders: Vec<RelPath>,
    /// Protected paths, which are left as they are. Denied paths are only counted.
    pub(super) protected: Vec<Conflict>,
}

/// Returns the steps from one stored tree to another, without the paths in `left_alone`.
///
/// Protected paths are checked again: the access rules may have changed since the restore began,
/// and another program may have written the trees.
pub(super) fn recovery_steps(
    job: &Job<'_>,
    reader: &Odb,
    (from, to): (Oid, Oid),
    wanted: &[RelPath],
    (left_alone, own_data): (&HashSet<RelPath>, Option<&RelPath>),
    walker: &DirWalker,
) -> Result<RecoverySteps, Error> {
    let (left, right) = (Tree::Stored(from), Tree::Stored(to));
    let found = compare(reader, &left, &right, wanted, job.cancel)?;
    let mut protected = ProtectedPaths {
        reader,
        denied: DeniedPaths::new(job),
        own_data,
        rule_files: &rule_files(job, reader, to),
        repositories: RepositoryFolders::new(job, reader, to, walker, &[]),
    };
    let mut recovery = RecoverySteps {
        folders: removed_folders(&found, left_alone),
        ..RecoverySteps::default()
    };
    recovery
        .folders
        .retain(|folder| protected.check(folder, true, [None; 2]).is_none());
    let mut denied_count = 0_u64;
    for difference in found.leaves {
        job.cancel.check()?;
        if left_alone.contains(&difference.path) {
            continue;
        }
        let versions = [difference.left, difference.right];
        match protected.check(
            &difference.path,
            involves_empty_folder(&difference),
            versions,
        ) {
            Some(Protection::Denied) => denied_count += 1,
            Some(Protection::Reported(conflict)) => recovery.protected.push(conflict),
            None => recovery.steps.push(Step {
                path: difference.path,
                before: difference.left,
                after: difference.right,
            }),
        }
    }
    recovery.protected.dedup();
    recovery.protected.extend(denied_conflict(denied_count));
    Ok(recovery)
}
