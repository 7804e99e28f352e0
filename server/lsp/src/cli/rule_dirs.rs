//! Folders with rules of their own below the workspace folder. The server applies only the rules
//! of workspace folders and above; what agents read is also checked by these.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use sightline_workspace::{access::RULE_FILE, path::uri_to_path};

/// Returns the folders with rules above a path, and above the target of a link, that are not the
/// root or above it. `path` is an absolute path or a `file:` URI.
pub(super) fn below(root: &Path, path: &str) -> BTreeSet<PathBuf> {
    let mut dirs = folders_above(path);
    dirs.retain(|dir| !root.starts_with(dir) && dir.join(RULE_FILE).symlink_metadata().is_ok());
    dirs
}

/// Returns whether a path, or the target of a link, is in a folder.
pub(super) fn is_below(path: &str, folder: &Path) -> bool {
    folders_above(path).contains(folder)
}

fn folders_above(path: &str) -> BTreeSet<PathBuf> {
    let of_uri = uri_to_path(path).ok().flatten();
    let path = of_uri
        .as_ref()
        .map_or(Path::new(path), |path| path.as_path());
    let real = path.canonicalize();
    let real = real.iter().flat_map(|path| path.ancestors());
    path.ancestors().chain(real).map(Path::to_owned).collect()
}
