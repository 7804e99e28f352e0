//! Repositories: what the user's says about itself, and the door to libgit2.
//!
//! [`Repository`] reads the user's repository under the access rules, without libgit2. Nothing
//! opens one with libgit2 without [`isolate`].
//!
//! libgit2 reads the user's and the system's git configuration and refuses
//! repositories owned by someone else. Both would make answers depend on the
//! machine instead of the repository, so both are switched off, once and for
//! the whole process.

pub(crate) mod config;
mod repository;

use std::{path::Path, sync::Once};

use git2::ConfigLevel;

pub use repository::Repository;

static ISOLATED: Once = Once::new();

/// Makes libgit2 independent of configuration outside the repository and of
/// who owns it. Whoever creates or opens a repository with libgit2
/// calls this first; calls after the first cost nothing.
///
/// Ownership protects the git command from running what a stranger's
/// configuration names (hooks, monitors, filters). Here nothing is ever run.
pub fn isolate() {
    ISOLATED.call_once(set_global_options);
}

#[allow(unsafe_code)]
fn set_global_options() {
    for level in [
        ConfigLevel::ProgramData,
        ConfigLevel::System,
        ConfigLevel::XDG,
        ConfigLevel::Global,
    ] {
        // SAFETY: the call writes a process-wide table of libgit2 that is read
        // when configuration is opened. `Once` makes it happen before the
        // first repository of this process is opened and never again, so no
        // other thread reads the table meanwhile.
        let set = unsafe { git2::opts::set_search_path(level, "") };
        // The only failure is lack of memory for an empty string; the search
        // path then stays the user's.
        let _ = set;
    }
    // SAFETY: as above; it writes one process-wide flag.
    let set = unsafe { git2::opts::set_verify_owner_validation(false) };
    let _ = set;
}

/// The version control system a folder is under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vcs {
    /// git.
    Git,
    /// Mercurial.
    Mercurial,
    /// None that is known.
    None,
}

impl Vcs {
    /// Which one `dir` is under: the innermost of `dir` and its parents that
    /// has a mark of one.
    pub fn of(dir: &Path) -> Self {
        let has = |dir: &Path, mark: &str| std::fs::symlink_metadata(dir.join(mark)).is_ok();
        for dir in dir.ancestors() {
            if has(dir, ".git") {
                return Self::Git;
            }
            if has(dir, ".hg") {
                return Self::Mercurial;
            }
        }
        Self::None
    }

    /// As the environment block prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Mercurial => "mercurial",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_outside_the_repository_is_not_read() {
        isolate();
        let folder = tempfile::tempdir().unwrap();
        let made = git2::Repository::init(folder.path()).unwrap();
        let config = made.config().unwrap();
        let mut entries = config.entries(None).unwrap();
        while let Some(entry) = entries.next() {
            assert_eq!(entry.unwrap().level(), ConfigLevel::Local);
        }
    }

    #[test]
    fn the_innermost_mark_tells_the_system() {
        isolate();
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(Vcs::of(&below), Vcs::Git);
        std::fs::create_dir(below.join(".hg")).unwrap();
        assert_eq!(Vcs::of(&below), Vcs::Mercurial);
    }
}
