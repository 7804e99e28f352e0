//! Paths that a scan of the workspace left out, either when the checkpoint was created or now.

use std::collections::{HashMap, HashSet};

use sightline_workspace::path::RelPath;

use crate::{
    error::Error,
    job::Job,
    metadata::{Checkpoint, CheckpointMetadata},
    named_path::NamedPath,
    restore::types::Conflict,
    store::odb::Odb,
    tree_diff::{DeniedPaths, find, has_folder, is_within},
    worktree::{
        exclusions::{PathHash, SavedExclusions},
        scan::Scan,
        snapshot::{ExclusionReason, Folder, below},
    },
};

/// Why a path is missing from a checkpoint although it existed, or may have existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exclusion {
    Skipped,
    Ignored,
    Denied,
}

impl Exclusion {
    fn reason(self) -> &'static str {
        match self {
            Self::Skipped => "skipped by the checkpoint; left as it is",
            Self::Ignored => "ignored when the checkpoint was created; left as it is",
            Self::Denied => "denied when the checkpoint was created; left as it is",
        }
    }
}

/// Paths that existed when the checkpoint was created, and that it does not hold.
pub(super) struct ExcludedThen<'a> {
    skipped: HashSet<RelPath>,
    ignored: HashSet<RelPath>,
    denied: HashSet<PathHash>,
    saved: Option<&'a SavedExclusions>,
    /// Why nothing is known about paths that are not listed.
    incomplete: Option<&'static str>,
    /// Folders that were checked before.
    folders: HashMap<RelPath, Option<Exclusion>>,
}

impl<'a> ExcludedThen<'a> {
    pub(super) fn new(metadata: &'a CheckpointMetadata) -> Self {
        let saved = metadata.exclusions.as_ref();
        let skipped: HashSet<RelPath> = metadata
            .skipped
            .iter()
            .filter_map(|skipped| skipped.named().to_path())
            .collect();
        // An entry without a path marks an incomplete list.
        let incomplete = if skipped.contains(&RelPath::default()) {
            Some("may have been skipped by the checkpoint, whose list is incomplete; left as it is")
        } else if saved.is_none() {
            Some(
                "may have been ignored by the checkpoint, whose ignored paths are unknown; left as it is",
            )
        } else {
            None
        };
        Self {
            skipped,
            ignored: saved
                .iter()
                .flat_map(|saved| &saved.ignored)
                .filter_map(NamedPath::to_path)
                .collect(),
            denied: saved
                .iter()
                .flat_map(|saved| &saved.denied)
                .copied()
                .collect(),
            saved,
            incomplete,
            folders: HashMap::new(),
        }
    }

    /// Returns why a path can be missing from the checkpoint although it existed. `None` means that
    /// it did not exist.
    pub(super) fn reason(&mut self, path: &RelPath) -> Option<&'static str> {
        self.find(path).map(Exclusion::reason).or(self.incomplete)
    }

    /// Returns whether the checkpoint skipped the path or a folder above it.
    fn skips(&mut self, path: &RelPath) -> bool {
        self.find(path) == Some(Exclusion::Skipped)
    }

    /// Finds the path, or the deepest folder above it, among the exclusions.
    fn find(&mut self, path: &RelPath) -> Option<Exclusion> {
        if path.is_root() {
            return None;
        }
        self.find_exact(path).or_else(|| {
            let parent = path.parent()?;
            if let Some(known) = self.folders.get(&parent) {
                return *known;
            }
            let found = self.find(&parent);
            self.folders.insert(parent, found);
            found
        })
    }

    fn find_exact(&self, path: &RelPath) -> Option<Exclusion> {
        if self.skipped.contains(path) {
            Some(Exclusion::Skipped)
        } else if self.ignored.contains(path) {
            Some(Exclusion::Ignored)
        } else {
            let salt = self.saved.filter(|_| !self.denied.is_empty())?.salt;
            self.denied
                .contains(&salt.hash_path(path))
                .then_some(Exclusion::Denied)
        }
    }
}

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
        let is_known = || {
            Ok::<_, Error>(
                find(reader, target.tree, &path)?.is_some()
                    || has_folder(reader, target.tree, &path)?,
            )
        };
        if !is_wanted || exclusions.skips(&path) || denied.denies(&path, false) || is_known()? {
            continue;
        }
        let why = format!("not in the checkpoint, and cannot be read ({reason}); left as it is");
        conflicts.push(Conflict::new(path, why));
    }
    Ok(conflicts)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn reason(metadata: &str, path: &str) -> Option<&'static str> {
        let metadata: CheckpointMetadata = serde_json::from_str(metadata).unwrap();
        ExcludedThen::new(&metadata).reason(&RelPath::new(Path::new(path)).unwrap())
    }

    #[test]
    fn an_excluded_folder_covers_everything_below_it() {
        let metadata = r#"{"exclusions":{
                "ignored":[{"path":"a/out"},{"path":"x%FF","encoded":true}],
                "denied":["7c8cf62bdf18add24dace0e14095faf3"],
                "salt":"000102030405060708090a0b0c0d0e0f"},
            "skipped":[{"path":"big","reason":"too large"}]}"#;
        for (path, excluded) in [
            ("a/out", Some(Exclusion::Ignored)),
            ("a/out/deep/er", Some(Exclusion::Ignored)),
            ("a/out.txt", None),
            ("out", None),
            ("a", None),
            ("secret/key", Some(Exclusion::Denied)),
            ("secret/key/deep/er", Some(Exclusion::Denied)),
            ("secret/key2", None),
            ("secret", None),
            ("big", Some(Exclusion::Skipped)),
            ("big/now/a/folder", Some(Exclusion::Skipped)),
            ("x%FF", None),
        ] {
            assert_eq!(
                reason(metadata, path),
                excluded.map(Exclusion::reason),
                "{path}"
            );
        }
    }

    #[test]
    fn everything_is_kept_if_exclusions_are_unknown() {
        for metadata in [
            r#"{"rules":{"exclude":["node_modules"],"maxFileSize":9}}"#,
            r#"{"rules":{"tooMany":true}}"#,
            "{}",
        ] {
            assert!(reason(metadata, "any").unwrap().contains("unknown"));
        }
        let metadata = r#"{"skipped":[{"path":"","reason":"5 more skipped"}],
            "exclusions":{"salt":"000102030405060708090a0b0c0d0e0f"}}"#;
        assert!(reason(metadata, "any").unwrap().contains("incomplete"));
    }
}
