//! What no restore and no recovery touches, whatever a checkpoint has there.

use std::ffi::OsStr;

use super::{
    super::{
        compare::{Denied, lies_in},
        names,
    },
    Conflict,
};
use crate::path::RelPath;

/// Judges paths by the rules of now.
pub(super) struct Guard<'a> {
    pub(super) denied: Denied<'a>,
    /// Where this server keeps its data, when that is below the root.
    pub(super) own_data: Option<&'a RelPath>,
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
        let is_own = self.own_data.is_some_and(|data| lies_in(path, data));
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
    names::is_refused(name.as_encoded_bytes(), false)
}
