//! Paths that a restore and its recovery never change: denied paths, the data of version control
//! systems, files that contain access rules, and the server's own data.

use std::ffi::OsStr;

use super::repository_folders::RepositoryFolders;
use crate::{
    job::Job,
    restore::types::Conflict,
    store::{object::Oid, odb::Odb},
    tree_diff::{DeniedPaths, Leaf, find, is_within},
    worktree::capture_filter::reserved_names,
};
use sightline_base::path::RelPath;

/// Checks paths by the current access rules.
pub(in crate::restore) struct ProtectedPaths<'a> {
    pub(in crate::restore) reader: &'a Odb,
    pub(in crate::restore) denied: DeniedPaths<'a>,
    /// Data directory of the server, if it is below the root.
    pub(in crate::restore) own_data: Option<&'a RelPath>,
    /// Files that contain access rules.
    pub(in crate::restore) rule_files: &'a [RelPath],
    pub(in crate::restore) repositories: RepositoryFolders<'a>,
}

/// Returns the files below the root that contain access rules, now or in the tree `target`.
pub(in crate::restore) fn rule_files(job: &Job<'_>, reader: &Odb, target: Oid) -> Vec<RelPath> {
    let text = |path: &RelPath| {
        let leaf = find(reader, target, path).ok()?.filter(Leaf::is_file)?;
        reader.blob(leaf.oid).ok()
    };
    job.view.rule_files(job.root, &text)
}

/// Reason why a path is protected.
pub(in crate::restore) enum Protection {
    /// Denied by access rules: counted, but not named.
    Denied,
    /// The conflict to report. Of a folder with the data of a version control system, it is reported
    /// once.
    Reported(Conflict),
}

impl ProtectedPaths<'_> {
    /// `versions`: those that the step replaces and writes.
    pub(in crate::restore) fn check(
        &mut self,
        path: &RelPath,
        is_dir: bool,
        versions: [Option<Leaf>; 2],
    ) -> Option<Protection> {
        if self
            .denied
            .denies_versions(self.reader, path, is_dir, versions)
        {
            return Some(Protection::Denied);
        }
        let reported = |path: &RelPath, reason: &str| {
            Some(Protection::Reported(Conflict::new(path.clone(), reason)))
        };
        if path.components().any(is_reserved_by_git) {
            return reported(path, "part of a git repository; left as it is");
        }
        if let Some((folder, system)) = self.repositories.find(path) {
            return reported(&folder, &format!("{system}; left as it is"));
        }
        // Includes the folders and links that lead to a rule file.
        if self.rule_files.iter().any(|file| is_within(file, path))
            || self.denied.is_rule_file(path)
        {
            let reason = "contains access rules, which are not restored; edit it by hand";
            return reported(path, reason);
        }
        let is_own = self.own_data.is_some_and(|data| is_within(path, data));
        is_own
            .then(|| reported(path, "contains the server's own data; left as it is"))
            .flatten()
    }
}

/// Returns a conflict that counts the denied paths without naming them.
pub(in crate::restore) fn denied_conflict(count: u64) -> Option<Conflict> {
    let paths = if count == 1 { "path" } else { "paths" };
    (count > 0).then(|| {
        let why = format!("access rules deny {count} {paths} that may differ; left as they are");
        Conflict::new(RelPath::default(), why)
    })
}

/// Returns whether git refuses the name in a tree, on any platform.
fn is_reserved_by_git(name: &OsStr) -> bool {
    reserved_names::is_refused_by_git(name.as_encoded_bytes(), false)
}
