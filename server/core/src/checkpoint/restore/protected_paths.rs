//! What no restore and no recovery touches, whatever a checkpoint has there.

use std::ffi::OsStr;

use super::{
    super::{
        Job, Oid,
        store::object_reader::ObjectReader,
        tree_diff::{DeniedPaths, Leaf, find, is_within},
        worktree::reserved_names,
    },
    Conflict,
};
use crate::path::RelPath;

/// Judges paths by the rules of now.
pub(super) struct Guard<'a> {
    pub(super) denied: DeniedPaths<'a>,
    /// Where this server keeps its data, when that is below the root.
    pub(super) own_data: Option<&'a RelPath>,
    /// Files that access rules come from.
    pub(super) rule_files: &'a [RelPath],
}

/// Files below the root that access rules come from, now or in the tree `then`.
pub(super) fn rule_files(job: &Job<'_>, reader: &ObjectReader, then: Oid) -> Vec<RelPath> {
    let text = |path: &RelPath| {
        let leaf = find(reader, then, path).ok()?.filter(Leaf::is_file)?;
        reader.blob(leaf.oid).ok()
    };
    job.view.rule_files(job.root, &text)
}

/// Why a path is not touched.
pub(super) enum Off {
    /// Denied ones are counted and not named.
    Denied,
    Named(&'static str),
}

impl Guard<'_> {
    pub(super) fn keeps_off(&mut self, path: &RelPath, is_dir: bool) -> Option<Off> {
        if self.denied.denies(path, is_dir) {
            return Some(Off::Denied);
        }
        if path.components().any(is_gits) {
            return Some(Off::Named("it belongs to a git repository"));
        }
        // Also a folder or link that leads to one.
        if self.rule_files.iter().any(|file| is_within(file, path)) {
            return Some(Off::Named(
                "access rules come from it; change it yourself if you want it back",
            ));
        }
        let is_own = self.own_data.is_some_and(|data| is_within(path, data));
        is_own.then_some(Off::Named("this server keeps its own data there"))
    }
}

/// Paths the rules deny, without their names.
pub(super) fn denied_paths(count: u64) -> Option<Conflict> {
    let paths = if count == 1 { "path" } else { "paths" };
    (count > 0).then(|| Conflict {
        path: RelPath::default(),
        reason: format!("access rules deny {count} {paths} that may differ; left alone"),
    })
}

/// Is that a name git keeps its own things under, on some system at least?
fn is_gits(name: &OsStr) -> bool {
    reserved_names::is_refused_by_git(name.as_encoded_bytes(), false)
}
