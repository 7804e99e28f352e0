//! What a look at the work tree, then or now, did not take in.

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

/// What the checkpoint left alone.
pub(super) struct Then<'a> {
    /// Path and whether it is encoded, as kept with it.
    skipped: HashSet<(&'a str, bool)>,
    rules: HistoricRules<'a>,
}

impl<'a> Then<'a> {
    pub(super) fn new(skipped: &'a [Skipped], rules: HistoricRules<'a>) -> Self {
        let skipped = skipped.iter();
        Self {
            skipped: skipped
                .map(|skipped| (skipped.path.as_str(), skipped.encoded))
                .collect(),
            rules,
        }
    }

    /// Did it skip the path, or a folder it lies in?
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

    /// Why a path is not in the checkpoint although it may have been there.
    pub(super) fn left_alone(
        &mut self,
        path: &RelPath,
        is_dir: bool,
    ) -> Result<Option<&'static str>, Error> {
        if self.skips(path) {
            return Ok(Some("the checkpoint skipped it, so it is kept"));
        }
        // The list says so itself when it is not complete.
        if self.skipped.contains(&("", false)) {
            return Ok(Some(
                "the checkpoint skipped more than it lists, so it is kept",
            ));
        }
        if !self.rules.knows(path) {
            return Ok(Some(
                "the rules in force when the checkpoint was taken are not known any more, so it is kept",
            ));
        }
        let excluded = self.rules.excludes(path, is_dir)?;
        Ok(excluded.then_some("it was ignored when the checkpoint was taken, so it is kept"))
    }
}

/// What stands there, below or above `wanted`, and could not be read just now, while the
/// checkpoint has nothing there. It may be what a restore has to delete.
pub(super) fn unread(
    job: &Job<'_>,
    reader: &ObjectReader,
    (now, target): (&Scan, &Checkpoint),
    wanted: &[RelPath],
    then: &Then<'_>,
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
    let mut unread = Vec::new();
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
        if !is_wanted || then.skips(&path) || denied.denies(&path, false) || is_known()? {
            continue;
        }
        unread.push(Conflict {
            path,
            reason: format!("the checkpoint does not have it, and what it holds is not known ({reason}), so it is kept"),
        });
    }
    Ok(unread)
}
