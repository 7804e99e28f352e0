//! Tells the program which commit it is built from.
//!
//! Asks the git program, and only about the repository this package lies in: an
//! unpacked archive, also one inside another repository, and a machine without
//! git give a build that knows its release only.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Asked when it runs: compiled once, it may run for another copy of the source.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let commit = package.and_then(|package| commit(&package.join("../..")));
    let (version, long_version) = versions(env!("CARGO_PKG_VERSION"), commit.as_ref());
    println!("cargo::rustc-env=SIGHTLINE_VERSION={version}");
    println!("cargo::rustc-env=SIGHTLINE_LONG_VERSION={long_version}");
    for file in commit.iter().flat_map(|commit| &commit.moved_by) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

/// The version for programs, and the one for people.
pub(crate) fn versions(release: &str, commit: Option<&Commit>) -> (String, String) {
    match commit {
        Some(Commit { id, day, .. }) => {
            (format!("{release}+{id}"), format!("{release} ({id} {day})"))
        }
        None => (release.to_owned(), release.to_owned()),
    }
}

/// What a build says of its source.
pub(crate) struct Commit {
    /// Abbreviated to ten digits or, where that is not unique, a few more.
    pub(crate) id: String,
    /// The committer's day: `2026-01-31`.
    pub(crate) day: String,
    /// Files that change when another commit is checked out or made.
    pub(crate) moved_by: Vec<PathBuf>,
}

/// The commit that is checked out in `repository`; `None` when that is none.
pub(crate) fn commit(repository: &Path) -> Option<Commit> {
    let git_dir = repository.join(".git");
    if !git_dir.exists() {
        return None;
    }
    let ask = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(repository);
        // Named, so that nothing above this folder is found instead.
        git.arg("--git-dir").arg(&git_dir).args(arguments);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
            git.env_remove(variable);
        }
        let output = git.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.trim().to_owned())
    };
    let shown = ask(&["log", "-1", "--abbrev=10", "--format=%h %cs"])?;
    let (id, day) = shown.split_once(' ')?;
    // The log of HEAD has every commit and checkout; where none is kept, the
    // branch's own file.
    let mut watched = vec!["HEAD".to_owned(), "logs/HEAD".to_owned()];
    watched.extend(ask(&["symbolic-ref", "--quiet", "HEAD"]));
    let moved_by = watched
        .iter()
        .filter_map(|name| ask(&["rev-parse", "--git-path", name]))
        .map(|path| repository.join(path))
        // One that is absent would count as changed each time.
        .filter(|path| path.exists())
        .collect();
    Some(Commit {
        id: id.to_owned(),
        day: day.to_owned(),
        moved_by,
    })
}
