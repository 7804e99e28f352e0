//! Test utilities: temporary workspaces, and access checks on them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use sightline_access::{Access, AccessView};
use sightline_base::path::{AbsPath, Root, Roots};
use sightline_protocol::{
    access::{AccessKind, PathAccess},
    settings::Secrets,
};
use tempfile::TempDir;

pub(crate) fn abs(path: &Path) -> AbsPath {
    AbsPath::new(path).unwrap()
}

pub(crate) fn access(roots: &[&Path]) -> Access {
    let roots = roots
        .iter()
        .map(|path| Root::new(abs(path), None))
        .collect();
    Access::new(Arc::new(Roots::new(roots)), Vec::new(), Secrets::Allow)
}

pub(crate) fn view(root: &Path) -> AccessView {
    access(&[root]).view().0
}

pub(crate) fn ask(view: &AccessView, path: &str) -> PathAccess {
    view.check_written(path).1
}

pub(crate) fn kind(view: &AccessView, path: &str) -> AccessKind {
    ask(view, path).access
}

/// Creates an empty directory `ws` with a canonical path in a temporary directory.
pub(crate) fn workspace(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let root = sightline_base::path::canonicalize(parent.path())
        .unwrap()
        .join("ws");
    fs::create_dir(&root).unwrap();
    write(&root, files);
    (parent, root)
}

pub(crate) fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Renames a file over another one. Windows refuses while another thread has that open, so it is tried again.
pub(crate) fn rename(from: &Path, to: &Path) {
    while let Err(error) = fs::rename(from, to) {
        let is_busy = cfg!(windows) && error.kind() == std::io::ErrorKind::PermissionDenied;
        assert!(is_busy, "{error}");
        std::thread::yield_now();
    }
}

/// Removes a file. Under Wine, one that was renamed over an open file may be gone already.
pub(crate) fn remove_file(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        let is_lost = cfg!(windows) && error.kind() == std::io::ErrorKind::NotFound;
        assert!(is_lost, "{error}");
    }
}

#[cfg(unix)]
pub(crate) fn link(target: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, at).unwrap();
}
