//! The error type of this crate.

use std::{fmt::Display, io::ErrorKind as Io};

use sightline_base::{
    error::Error as WorkspaceError,
    path::{RelPath, Roots},
};
use sightline_protocol::error::ErrorKind;

/// A failed operation on checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The checkpoint does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A restore would change nothing at a path, because the checkpoint does not hold it.
    #[error(
        "cannot restore {path}: it is not in the checkpoint, and no checkpoint saves it now ({why}); it was left as it is"
    )]
    NotHeld {
        /// The path.
        path: RelPath,
        /// Why it is not in the checkpoint.
        why: String,
    },
    /// Another process holds a lock.
    #[error("{0}")]
    Locked(String),
    /// A file was changed while it was compared.
    #[error("{path} {how} during the comparison; try again")]
    Changed {
        /// The file.
        path: RelPath,
        /// What happened to it.
        how: String,
    },
    /// The store is damaged.
    #[error("{0}")]
    Damaged(String),
    /// An object may be in a pack that cannot be opened.
    #[error("{0}")]
    Unavailable(String),
    /// One of several workspace folders failed.
    #[error("{name}: {source}")]
    InRoot {
        /// Name of the folder.
        name: String,
        /// The cause.
        source: Box<Error>,
    },
    /// A restore of several folders failed, and one of them could not be rolled back.
    #[error(
        "{source}; cannot roll back the folders restored before: {failed}; undo with `sightline checkpoint undo {undo}`"
    )]
    NotRolledBack {
        /// Why the restore failed.
        source: Box<Error>,
        /// Why the rollback failed.
        failed: String,
        /// Abbreviated id of the undo point of the folder.
        undo: String,
    },
    /// Storage or the access rules failed, or the request was cancelled.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

impl Error {
    /// Returns the stable kind for clients.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_) | Self::NotHeld { .. } => ErrorKind::NotFound,
            Self::Locked(_) => ErrorKind::Busy,
            Self::Changed { .. } => ErrorKind::Conflict,
            Self::Damaged(_) | Self::Unavailable(_) => ErrorKind::Storage,
            Self::InRoot { source, .. } | Self::NotRolledBack { source, .. } => source.kind(),
            Self::Workspace(error) => error.kind(),
        }
    }

    /// Adds the name of the root, if there are several.
    #[must_use]
    pub fn in_root(self, roots: &Roots, root: usize) -> Self {
        match roots.get(root) {
            Some(root) if roots.as_slice().len() > 1 => Self::InRoot {
                name: root.name.clone(),
                source: Box::new(self),
            },
            _ => self,
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self::Workspace(WorkspaceError::Cancelled)
    }

    /// Creates an error that no caller treats in its own way.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Workspace(WorkspaceError::Failed(kind, message.into()))
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    pub(crate) fn storage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Storage, message)
    }

    /// Returns a function for `map_err`.
    pub(crate) fn encode<E: Display>(object: &str) -> impl FnOnce(E) -> Self {
        move |error| {
            Self::storage(format!(
                "cannot encode {object}: {error}; please report this bug"
            ))
        }
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::Damaged(message.into())
    }

    /// Returns whether stored data could not be accessed, such as with too many open files. It may be
    /// intact, unless it is missing.
    pub(crate) fn is_access_failure(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Workspace(WorkspaceError::Storage { source, .. }) => {
                !matches!(source.kind(), Io::NotFound | Io::NotADirectory)
            }
            _ => false,
        }
    }
}
