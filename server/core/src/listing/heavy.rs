//! Names a recursive listing leaves out whatever `.gitignore` says: folders of
//! dependencies and build results, and hidden folders.

use std::ffi::OsStr;

/// Left out at any depth, as files too.
const NAMES: [&str; 13] = [
    "node_modules",
    "__pycache__",
    "env",
    "venv",
    "dist",
    "out",
    "bundle",
    "vendor",
    "tmp",
    "temp",
    "deps",
    "Pods",
    // Git never lists it either; a worktree has a file of this name.
    ".git",
];

/// Left out directly below the folder named first.
const NESTED: [(&str, &str); 2] = [("target", "dependency"), ("build", "dependencies")];

/// Is the entry `name` of the directory `parent` left out? `parent` is `None`
/// for the listed directory, whose own name decides nothing.
pub(super) fn is_heavy(parent: Option<&OsStr>, name: &OsStr) -> bool {
    NAMES.iter().any(|heavy| name == *heavy)
        || NESTED
            .iter()
            .any(|(above, heavy)| name == *heavy && parent.is_some_and(|parent| parent == *above))
}

/// Does the name begin with a dot?
pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}
