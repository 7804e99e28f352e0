//! Access to the user's git repository, and the setup of libgit2.
//!
//! [`Repository`] reads the user's repository under the access rules, without libgit2. Call
//! [`isolate`] before any use of libgit2.
//!
//! By default libgit2 reads the user's and the system's git configuration and refuses repositories
//! of other owners. Then results would depend on the machine, so both are disabled for the whole
//! process.

pub mod config;
pub mod index;
mod repository;

use std::{path::Path, sync::Once};

use git2::ConfigLevel;

pub use repository::Repository;

static ISOLATED: Once = Once::new();

/// Disables configuration from outside a repository and the ownership check in libgit2. Call it
/// before creating or opening a repository with libgit2; repeated calls are cheap.
///
/// The ownership check protects the git command from running programs that a foreign configuration
/// names (hooks, monitors, filters). This server never runs any.
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
        // SAFETY: the call writes a process-wide table of libgit2 that is read when configuration
        // is opened. `Once` runs it before the first repository of this process is opened and never
        // again, so no other thread reads the table at the same time.
        let set = unsafe { git2::opts::set_search_path(level, "") };
        // The only possible failure is running out of memory for an empty string. Then the user's
        // search path stays in use.
        let _ = set;
    }
    // SAFETY: as above; the call writes one process-wide flag.
    let set = unsafe { git2::opts::set_verify_owner_validation(false) };
    let _ = set;
}

/// Version control system of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vcs {
    /// Git.
    Git,
    /// Mercurial.
    Mercurial,
    /// No known system.
    None,
}

impl Vcs {
    /// Returns the system of `dir`: of the innermost directory with a `.git` or `.hg`, from `dir`
    /// upwards.
    pub fn of(dir: &Path) -> Self {
        let has = |dir: &Path, name: &str| std::fs::symlink_metadata(dir.join(name)).is_ok();
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

    /// Returns the name for the environment block.
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
    fn the_innermost_repository_decides() {
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
