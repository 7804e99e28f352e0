//! The error type of this crate.

use sightline_base::error::Error as BaseError;
use sightline_protocol::error::ErrorKind;

/// A failed operation on a conversation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An element of `messages` is not a message.
    #[error("messages[{0}] is not an object; a message has a role and content")]
    InvalidMessage(usize),
    /// Another parameter is invalid.
    #[error("{0}")]
    InvalidParams(String),
    /// The conversation is not in the expected state.
    #[error("{0}")]
    Conflict(String),
    /// A message cannot be encoded, which is a bug.
    #[error("cannot {action}: {source}; please report this bug")]
    Encode {
        /// The verb and its object.
        action: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// The request was cancelled.
    #[error(transparent)]
    Base(#[from] BaseError),
}

impl Error {
    /// Returns the stable kind for clients.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidMessage(_) | Self::InvalidParams(_) => ErrorKind::InvalidParams,
            Self::Conflict(_) => ErrorKind::Conflict,
            Self::Encode { .. } => ErrorKind::Internal,
            Self::Base(error) => error.kind(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidParams(message.into())
    }
}
