//! The error type of this crate.

use std::io;

use sightline_base::{error::Error as BaseError, limits::MAX_ENTRY_BYTES, storage::TaskId};
use sightline_conversation::error::Error as ConversationError;
use sightline_protocol::error::ErrorKind;

/// A failed operation on a stored task.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter or an imported file is invalid.
    #[error("{0}")]
    InvalidParams(String),
    /// The task has no log.
    #[error("task {0} has no stored conversation; list the tasks to see their ids")]
    TaskNotFound(TaskId),
    /// A file to import or a rewind does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The conversation is not in the expected state.
    #[error("{0}")]
    Conflict(String),
    /// A message does not fit in a log entry.
    #[error(
        "a message exceeds the limit of {MAX_ENTRY_BYTES} bytes; split it into several messages"
    )]
    MessageTooLarge,
    /// Stored data cannot be read or written.
    #[error("cannot {action} {object}: {source}")]
    Storage {
        /// The verb.
        action: &'static str,
        /// What is read or written.
        object: String,
        /// The cause.
        source: io::Error,
    },
    /// A message is invalid or cannot be encoded.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// Storage failed, or the request was cancelled.
    #[error(transparent)]
    Base(#[from] BaseError),
}

impl Error {
    /// Returns the stable kind for clients.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidParams(_) => ErrorKind::InvalidParams,
            Self::TaskNotFound(_) | Self::NotFound(_) => ErrorKind::NotFound,
            Self::Conflict(_) => ErrorKind::Conflict,
            Self::MessageTooLarge => ErrorKind::TooLarge,
            Self::Storage { .. } => ErrorKind::Storage,
            Self::Conversation(error) => error.kind(),
            Self::Base(error) => error.kind(),
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self::Base(BaseError::Cancelled)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidParams(message.into())
    }

    /// Returns a function for `map_err`.
    pub(crate) fn storage<E: Into<io::Error>>(
        action: &'static str,
        object: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Storage {
            action,
            object: object.into(),
            source: source.into(),
        }
    }
}
