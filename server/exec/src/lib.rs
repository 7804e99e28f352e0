//! Runs a command for which denied files do not exist: the kernel refuses to open them.
//!
//! [`hidden_paths`] lists the denied files and folders of the workspace that git does not track. A server
//! keeps the folders ([`DeniedEntries`]) and reads those again that have changed.
//! [`hide`] covers them, for the calling process and everything that it starts: a file by an
//! unreadable file, a folder by an empty one. It uses a user and a mount namespace, so it needs no
//! privileges, and nothing outside of the process changes.
//!
//! Tracked files stay readable: git would see a covered file as changed, and the repository
//! contains their content anyway. A file that is created or becomes denied later is not hidden.
//! Programs that were already running, such as a container engine, can open hidden files for the
//! command.
//!
//! Read next: `list`, `namespace` (Linux), `profile` (a profile for `sandbox-exec` of macOS).
//!
//! Modules:
//!
//! - `list`: lists denied entries that git does not track
//! - `namespace`: covers them in a user and a mount namespace (Linux)
//! - `profile`: a profile for `sandbox-exec` (macOS, never tried)

mod list;
#[cfg(target_os = "linux")]
mod namespace;
mod profile;

pub use sightline_protocol::access::Cover;

pub use self::{
    list::{DeniedEntries, HiddenPath, Tracked, hidden_in, hidden_paths, mount_namespace},
    profile::macos_profile,
};

/// Why files cannot be hidden, and what to do. Displayed as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CannotHide(String);

impl CannotHide {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Covers the paths, for this process and all processes that it starts. It cannot be undone. Does
/// nothing if all are covered already.
///
/// The process keeps its user, but loses all capabilities: root cannot open files that only their
/// owner may read. Programs with a set-user-ID bit, such as `sudo`, do not get their privileges.
///
/// # Errors
/// If the kernel or a security module forbids namespaces, the process has more than one thread, a
/// path cannot be covered, or the current folder is hidden. The process must not run the command
/// then; its namespaces may have changed.
pub fn hide(paths: &[HiddenPath]) -> Result<(), CannotHide> {
    #[cfg(target_os = "linux")]
    return namespace::hide(paths);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = paths;
        Err(CannotHide::new("denied files can be hidden on Linux only"))
    }
}
