//! Files that a scan of the workspace left out, either when the checkpoint was created or now.

use std::collections::HashSet;

use super::{
    super::{
        Checkpoint, Job, Skipped,
        store::object_reader::ObjectReader,
        tree_diff::{DeniedPaths, find, has_folder, is_within},
        worktree::{
            capture_filter::HistoricRules,
            scan::{Scan, below, visit_annotated},
            snapshot::SkipReason,
        },
    },
    Conflict,
};
use crate::{error::Error, path::RelPath};

/// Files that the checkpoint left out.
pub(super) struct SavedExclusions<'a> {
    /// Path as stored, and whether it is encoded.
    skipped: HashSet<(&'a str, bool)>,
    rules: HistoricRules<'a>,
}

impl<'a> SavedExclusions<'a> {
    pub(super) fn new(skipped: &'a [Skipped], rules: HistoricRules<'a>) -> Self {
        let skipped = skipped.iter();
        Self {
            skipped: skipped
                .map(|skipped| (skipped.path.as_str(), skipped.encoded))
                .collect(),
            rules,
        }
    }

    /// Returns whether the checkpoint skipped the path or a folder above it.
    fn skips(&self, path: &RelPath) -> bool {
        let mut above = Some(path.clone());
        while let Some(place) = above.filter(|place| !place.is_root()) {
            let (text, encoded) = place.to_wire();
            if self.skipped.contains(&(text.as_str(), encoded)) {
                return true;
            }
            above = place.parent();
        }
        false
    }

    /// Returns why a path can be missing from the checkpoint although it existed. `None` means that
    /// it did not exist.
    pub(super) fn reason(
        &mut self,
        path: &RelPath,
        is_dir: bool,
    ) -> Result<Option<&'static str>, Error> {
        if self.skips(path) {
            return Ok(Some("skipped by the checkpoint; left as it is"));
        }
        // An entry without a path marks an incomplete list.
        if self.skipped.contains(&("", false)) {
            return Ok(Some(
                "may have been skipped by the checkpoint, whose list is incomplete; left as it is",
            ));
        }
        if !self.rules.knows(path) {
            return Ok(Some(
                "may have been ignored by the checkpoint, whose ignore rules are unknown; left as it is",
            ));
        }
        let excluded = self.rules.excludes(path, is_dir)?;
        Ok(excluded.then_some("ignored when the checkpoint was created; left as it is"))
    }
}

/// Returns a conflict for each file below or above `wanted` that cannot be read now and that the
/// checkpoint does not contain: a restore would have to delete it without saving it.
pub(super) fn unreadable_conflicts(
    job: &Job<'_>,
    reader: &ObjectReader,
    (now, target): (&Scan, &Checkpoint),
    wanted: &[RelPath],
    exclusions: &SavedExclusions<'_>,
) -> Result<Vec<Conflict>, Error> {
    let mut found = Vec::new();
    visit_annotated(&now.tree, |folder, seen| {
        for left in &seen.skipped {
            if matches!(
                left.reason,
                SkipReason::Unreadable(_) | SkipReason::Unstable
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
        let is_known = || {
            Ok(find(reader, target.tree, &path)?.is_some()
                || has_folder(reader, target.tree, &path)?)
        };
        if !is_wanted || exclusions.skips(&path) || denied.denies(&path, false) || is_known()? {
            continue;
        }
        conflicts.push(Conflict {
            path,
            reason: format!("not in the checkpoint, and cannot be read ({reason}); left as it is"),
        });
    }
    Ok(conflicts)
}
