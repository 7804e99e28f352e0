//! Embeds the release and commit of this build.
//!
//! Runs the `git` program on the repository that contains this package, and on no other.
//! A source archive (even inside another repository) or a machine without git produces a
//! build that only knows its release.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Read at run time: this script may be compiled once and run for another copy of the
    // source.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let commit = package.and_then(|package| commit(&package.join("../..")));
    let (version, long_version) = versions(env!("CARGO_PKG_VERSION"), commit.as_ref());
    println!("cargo::rustc-env=SIGHTLINE_VERSION={version}");
    println!("cargo::rustc-env=SIGHTLINE_LONG_VERSION={long_version}");
    for file in commit.iter().flat_map(|commit| &commit.moved_by) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

/// Returns the version for programs and the version for people.
pub(crate) fn versions(release: &str, commit: Option<&Commit>) -> (String, String) {
    match commit {
        Some(Commit { id, day, .. }) => {
            (format!("{release}+{id}"), format!("{release} ({id} {day})"))
        }
        None => (release.to_owned(), release.to_owned()),
    }
}

/// The commit a build was made from.
pub(crate) struct Commit {
    /// Abbreviated to at least ten digits.
    pub(crate) id: String,
    /// Commit date: `2026-01-31`.
    pub(crate) day: String,
    /// Files that change when `HEAD` moves.
    pub(crate) moved_by: Vec<PathBuf>,
}

/// Returns the commit that is checked out in `repository`, or `None` if it is not a
/// repository.
pub(crate) fn commit(repository: &Path) -> Option<Commit> {
    let git_dir = repository.join(".git");
    if !git_dir.exists() {
        return None;
    }
    let git_output = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(repository);
        // Explicit, so that git does not search the parent directories.
        git.arg("--git-dir").arg(&git_dir).args(arguments);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
            git.env_remove(variable);
        }
        let output = git.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.trim().to_owned())
    };
    let shown = git_output(&["log", "-1", "--abbrev=10", "--format=%h %cs"])?;
    let (id, day) = shown.split_once(' ')?;
    // The reflog of `HEAD` records every commit and checkout. Without a reflog, the
    // branch's ref file changes.
    let mut watched = vec!["HEAD".to_owned(), "logs/HEAD".to_owned()];
    watched.extend(git_output(&["symbolic-ref", "--quiet", "HEAD"]));
    let moved_by = watched
        .iter()
        .filter_map(|name| git_output(&["rev-parse", "--git-path", name]))
        .map(|path| repository.join(path))
        // Cargo treats a missing file as changed on every build.
        .filter(|path| path.exists())
        .collect();
    Some(Commit {
        id: id.to_owned(),
        day: day.to_owned(),
        moved_by,
    })
}
