//! Paths that existed when a checkpoint was created, and that it does not hold.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use sightline_base::path::RelPath;

use super::CheckpointMetadata;
use crate::{
    named_path::NamedPath,
    worktree::exclusions::{PathHash, SavedExclusions},
};

/// Why a path is missing from a checkpoint although it existed, or may have existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exclusion<'a> {
    /// Skipped for this reason.
    Skipped(&'a str),
    Ignored,
    Denied,
}

impl Exclusion<'_> {
    fn why_left_alone(self) -> &'static str {
        match self {
            Self::Skipped(_) => "skipped by the checkpoint; left as it is",
            Self::Ignored => "ignored when the checkpoint was created; left as it is",
            Self::Denied => "denied when the checkpoint was created; left as it is",
        }
    }
}

impl fmt::Display for Exclusion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skipped(reason) => reason,
            Self::Ignored => "ignored",
            Self::Denied => "denied by access rules",
        })
    }
}

/// Paths that existed when the checkpoint was created, and that it does not hold.
pub(crate) struct ExcludedThen<'a> {
    skipped: HashMap<RelPath, &'a str>,
    ignored: HashSet<RelPath>,
    denied: HashSet<PathHash>,
    saved: Option<&'a SavedExclusions>,
    /// Why nothing is known about paths that are not listed.
    incomplete: Option<&'static str>,
    /// Folders that were checked before.
    folders: HashMap<RelPath, Option<Exclusion<'a>>>,
}

impl<'a> ExcludedThen<'a> {
    pub(crate) fn new(metadata: &'a CheckpointMetadata) -> Self {
        let saved = metadata.exclusions.as_ref();
        let skipped: HashMap<RelPath, &str> = metadata
            .skipped
            .iter()
            .filter_map(|skipped| Some((skipped.named().to_path()?, &*skipped.reason)))
            .collect();
        // An entry without a path marks an incomplete list.
        let incomplete = if skipped.contains_key(&RelPath::default()) {
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
    pub(crate) fn reason(&mut self, path: &RelPath) -> Option<&'static str> {
        let found = self.find(path);
        found.map(Exclusion::why_left_alone).or(self.incomplete)
    }

    /// Returns whether the checkpoint skipped the path or a folder above it.
    pub(crate) fn skips(&mut self, path: &RelPath) -> bool {
        matches!(self.find(path), Some(Exclusion::Skipped(_)))
    }

    /// Finds the path, or the deepest folder above it, among the exclusions.
    pub(crate) fn find(&mut self, path: &RelPath) -> Option<Exclusion<'a>> {
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

    fn find_exact(&self, path: &RelPath) -> Option<Exclusion<'a>> {
        if let Some(reason) = self.skipped.get(path) {
            Some(Exclusion::Skipped(reason))
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
            ("big", Some(Exclusion::Skipped(""))),
            ("big/now/a/folder", Some(Exclusion::Skipped(""))),
            ("x%FF", None),
        ] {
            assert_eq!(
                reason(metadata, path),
                excluded.map(Exclusion::why_left_alone),
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
