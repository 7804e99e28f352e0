//! The error type of this crate.

use std::{
    io::{self, ErrorKind as Io},
    path::PathBuf,
    process::ExitStatus,
};

use sightline_base::{
    error::Error as WorkspaceError,
    path::{RelPath, Roots},
};
use sightline_protocol::error::ErrorKind;

/// A failed operation on checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A checkpoint id or a git remote is invalid.
    #[error("{0}")]
    InvalidParams(String),
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
    /// The access rules cannot be used, so everything would be denied.
    #[error("{0}; checkpoints cannot be created, compared or restored until then")]
    RulesUnusable(String),
    /// Checkpoints of this folder would capture far more than a project.
    #[error("cannot create checkpoints of {what} ({}); open another folder, or a subfolder", root.display())]
    RefusedRoot {
        /// The kind of folder.
        what: &'static str,
        /// The folder.
        root: PathBuf,
    },
    /// The first checkpoint would exceed a limit.
    #[error(
        "the first checkpoint would contain more than {max_files} files (setting checkpoints.maxFiles) or {max_total_size} bytes (checkpoints.maxTotalSize); exclude files with .gitignore or checkpoints.exclude, or confirm the size (`confirmLarge`, or --confirm-large on the command line)"
    )]
    TooLarge {
        /// The limit of files.
        max_files: u64,
        /// The limit of bytes.
        max_total_size: u64,
    },
    /// Another process holds a lock.
    #[error("{0}")]
    Locked(String),
    /// The workspace is not in the expected state.
    #[error("{0}")]
    Conflict(String),
    /// A file was changed while it was compared.
    #[error("{path} {how} during the comparison; try again")]
    Changed {
        /// The file.
        path: RelPath,
        /// What happened to it.
        how: String,
    },
    /// The workspace folder cannot be scanned.
    #[error("cannot scan the workspace folder {}: {source}", root.display())]
    Scan {
        /// The folder.
        root: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A restore cannot open the workspace folder.
    #[error("cannot open the workspace folder {}: {source}", root.display())]
    OpenRoot {
        /// The folder.
        root: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Restored files may be lost in a power failure.
    #[error("cannot flush the restored files of {} to disk: {source}; they are checked again on the next start", root.display())]
    Flush {
        /// The workspace folder.
        root: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Memory or open files ran out.
    #[error("cannot scan the workspace: {0}; try again")]
    OutOfResources(#[source] io::Error),
    /// The program git is missing.
    #[error("cannot run git: {0}; install git and make sure it is on the PATH")]
    GitMissing(#[source] io::Error),
    /// The state of the git process is unknown.
    #[error("cannot wait for git: {0}")]
    GitWait(#[source] io::Error),
    /// git reported an error.
    #[error(
        "cannot {command} checkpoints: {output} ({status}); the remote must be a URL or path that exists and needs no prompt"
    )]
    GitFailed {
        /// The git command.
        command: String,
        /// Its exit status.
        status: ExitStatus,
        /// Its output.
        output: String,
    },
    /// A checkpoint cannot be committed.
    #[error("cannot commit the checkpoint: {cause}")]
    Commit {
        /// The cause.
        cause: String,
        /// Its kind.
        kind: ErrorKind,
    },
    /// The file system of the store does not support locks.
    #[error("the file system of {} does not support locks; set storage.path to a directory on another file system", .0.display())]
    LocksUnsupported(PathBuf),
    /// The store is damaged.
    #[error("{0}")]
    Damaged(String),
    /// An object may be in a pack that cannot be opened.
    #[error("{0}")]
    Unavailable(String),
    /// A restore stopped before it changed anything, or cannot be completed.
    #[error("{0}")]
    Restore(String),
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
    /// Data cannot be encoded, which is a bug.
    #[error("cannot encode {object}: {source}; please report this bug")]
    Encode {
        /// The data.
        object: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Storage or the access rules failed, or the request was cancelled.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

impl Error {
    /// Returns the stable kind for clients.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidParams(_) => ErrorKind::InvalidParams,
            Self::NotFound(_) | Self::NotHeld { .. } | Self::Scan { .. } => ErrorKind::NotFound,
            Self::Commit { kind, .. } => *kind,
            Self::RulesUnusable(_) => ErrorKind::AccessDenied,
            Self::RefusedRoot { .. } | Self::GitMissing(_) => ErrorKind::Unsupported,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Locked(_) => ErrorKind::Busy,
            Self::Conflict(_) | Self::Changed { .. } => ErrorKind::Conflict,
            Self::OutOfResources(_) => ErrorKind::Internal,
            Self::OpenRoot { .. }
            | Self::Flush { .. }
            | Self::GitWait(_)
            | Self::GitFailed { .. }
            | Self::LocksUnsupported(_)
            | Self::Damaged(_)
            | Self::Unavailable(_)
            | Self::Restore(_)
            | Self::Encode { .. } => ErrorKind::Storage,
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

    /// Returns a function for `map_err`.
    pub(crate) fn encode<E: std::error::Error + Send + Sync + 'static>(
        object: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Encode {
            object,
            source: Box::new(source),
        }
    }
}
