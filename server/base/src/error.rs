//! The error type of this crate.

use std::{io, path::PathBuf};

use sightline_protocol::{access::AccessRule, error::ErrorKind};

use crate::limits::MAX_STATE_FILE_BYTES;

/// A failed operation. Each message names the operation, its object, the cause and, if there is one, the remedy.
/// A `path: String` is a path as shown to the client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// A parameter is invalid.
    #[error("{0}")]
    InvalidParams(String),
    /// A path cannot exist on this machine.
    #[error("path {path:?}: {why}")]
    InvalidPath {
        /// The path as written by the client.
        path: String,
        /// The cause.
        why: String,
    },
    /// A file was passed where a directory is needed.
    #[error("{0} is not a directory; list its parent directory instead")]
    NotADirectory(String),
    /// The access rules deny a path.
    #[error("{path} is hidden from agents: {reason}")]
    AccessDenied {
        /// The path.
        path: String,
        /// The cause.
        reason: String,
        /// The rule that decided.
        rule: Option<AccessRule>,
    },
    /// A path is outside of all roots.
    #[error(
        "{0} is outside every workspace folder; open its folder, or set `access.outsideWorkspace` to \"allow\""
    )]
    Outside(String),
    /// A symlink in a root leads to a directory outside of all roots, which is never listed.
    #[error("cannot list {0}: it is a link to a directory outside every workspace folder")]
    LinkToOutside(String),
    /// A file or directory cannot be opened.
    #[error("cannot open {path}: {}", cause(source))]
    Open {
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A directory cannot be listed.
    #[error("cannot list {path}: {source}")]
    List {
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// An open file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The path has a type or content that is not supported.
    #[error("cannot {action} {path}: it is {what}")]
    Unsupported {
        /// The verb.
        action: &'static str,
        /// The path.
        path: String,
        /// What it is, and what to do.
        what: String,
    },
    /// A file was replaced between the check and the access, several times.
    #[error("cannot open {0}: it was replaced repeatedly; try again")]
    Replaced(String),
    /// A file exceeds a limit.
    #[error("{path} exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// A task is imported under an id that exists.
    #[error("task {0} already exists; delete it first, or use another id")]
    TaskExists(String),
    /// Another process holds the lock of a task.
    #[error("task {0} is being written by another process; try again")]
    TaskLocked(String),
    /// Another operation failed.
    #[error("{1}")]
    Failed(ErrorKind, String),
    /// I/O on the data directory failed.
    #[error(
        "cannot {action} {}: {source}; check its permissions and free space, or set storage.path to another directory",
        path.display()
    )]
    Storage {
        /// The verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The data directory, or an entry of it, has the wrong type, owner or version.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// The problem, and what to do.
        problem: String,
    },
    /// A file of the data directory exceeds the limit, so it could not be read back.
    #[error("{} exceeds the limit of {MAX_STATE_FILE_BYTES} bytes; start a new task", .0.display())]
    StateFileTooLarge(PathBuf),
    /// The tracked files cannot be encoded, which is a bug.
    #[error("cannot write the tracked files: {0}; please report this bug")]
    Encode(#[source] serde_json::Error),
}

/// Returns whether the error means that the file does not exist.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    ) || is_impossible_name(error)
}

/// Returns whether no file of Windows can have a name such as `*.txt`.
fn is_impossible_name(error: &io::Error) -> bool {
    const ERROR_INVALID_NAME: i32 = 123;
    cfg!(windows) && error.raw_os_error() == Some(ERROR_INVALID_NAME)
}

/// Returns an error as the system words it.
fn cause(error: &io::Error) -> String {
    if is_absent(error) && error.raw_os_error().is_none() {
        return "no such file or directory".to_owned();
    }
    error.to_string()
}

impl Error {
    /// Returns the stable kind for clients.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Cancelled => ErrorKind::Cancelled,
            Self::InvalidParams(_) | Self::InvalidPath { .. } | Self::NotADirectory(_) => {
                ErrorKind::InvalidParams
            }
            Self::AccessDenied { .. } | Self::Outside(_) | Self::LinkToOutside(_) => {
                ErrorKind::AccessDenied
            }
            Self::Open { source, .. } => kind_of_open(source),
            Self::List { source, .. } if is_absent(source) => ErrorKind::NotFound,
            Self::List { .. } | Self::Read { .. } | Self::Unsupported { .. } => {
                ErrorKind::Unsupported
            }
            Self::Replaced(_) | Self::TaskExists(_) => ErrorKind::Conflict,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::TaskLocked(_) => ErrorKind::Busy,
            Self::Failed(kind, _) => *kind,
            Self::Storage { .. }
            | Self::Unusable { .. }
            | Self::StateFileTooLarge(_)
            | Self::Encode(_) => ErrorKind::Storage,
        }
    }

    /// Returns the path in the workspace that the error is about, as shown to the client.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::NotADirectory(path)
            | Self::Outside(path)
            | Self::LinkToOutside(path)
            | Self::Replaced(path)
            | Self::InvalidPath { path, .. }
            | Self::AccessDenied { path, .. }
            | Self::Open { path, .. }
            | Self::List { path, .. }
            | Self::Read { path, .. }
            | Self::Unsupported { path, .. }
            | Self::TooLarge { path, .. } => Some(path),
            Self::Cancelled
            | Self::InvalidParams(_)
            | Self::TaskExists(_)
            | Self::TaskLocked(_)
            | Self::Failed(..)
            | Self::Storage { .. }
            | Self::Unusable { .. }
            | Self::StateFileTooLarge(_)
            | Self::Encode(_) => None,
        }
    }

    /// Returns the rule that denied access.
    pub fn rule(&self) -> Option<&AccessRule> {
        match self {
            Self::AccessDenied { rule, .. } => rule.as_ref(),
            _ => None,
        }
    }

    /// Creates the error of an invalid parameter.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidParams(message.into())
    }
}

fn kind_of_open(error: &io::Error) -> ErrorKind {
    // The error of opening a socket, or a device without a driver.
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
        return ErrorKind::Unsupported;
    }
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::AccessDenied,
        io::ErrorKind::IsADirectory => ErrorKind::Unsupported,
        _ => ErrorKind::Storage,
    }
}
