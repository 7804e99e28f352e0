//! Names that a recursive listing leaves out whatever `.gitignore` contains: directories of dependencies and
//! build results, and hidden directories.

use std::ffi::OsStr;

/// Excluded at any depth, also as files.
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
    // In a worktree this is a file.
    ".git",
];

/// Parent directories and names that are excluded directly below them.
const NESTED: [(&str, &str); 2] = [("target", "dependency"), ("build", "dependencies")];

/// Returns whether the entry `name` of the directory `parent` is excluded. `parent` is `None` for the listed
/// directory, whose own name does not matter.
pub(super) fn is_excluded(parent: Option<&OsStr>, name: &OsStr) -> bool {
    NAMES.iter().any(|excluded| name == *excluded)
        || NESTED.iter().any(|(above, excluded)| {
            name == *excluded && parent.is_some_and(|parent| parent == *above)
        })
}

/// Returns whether a name starts with a dot.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}
