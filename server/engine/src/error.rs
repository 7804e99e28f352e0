//! The error type of this crate: the content of an error response.

use sightline_base::decision_log;
use sightline_protocol::{access::AccessRule, decision::Decision, error::ErrorKind};

/// A failed request or command. The errors of the other crates become one of these in `error_response`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Stable kind, for programs.
    pub kind: ErrorKind,
    /// One sentence for the user, which names the offending value.
    pub message: String,
    /// The path that the error is about.
    pub path: Option<String>,
    /// The rule that denied access.
    pub rule: Option<AccessRule>,
}

impl Error {
    /// Creates an error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            path: None,
            rule: None,
        }
    }

    /// Creates an `invalidParams` error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    /// Creates the error of a cancelled request.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the request was cancelled")
    }

    /// Creates an error about the server's own data.
    pub fn storage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Storage, message)
    }

    /// Returns the decision of now that `door` denied access, if this is the error.
    pub fn refusal(&self, door: &str, tool: &str) -> Option<Decision> {
        let subject = self.path.clone().unwrap_or_default();
        (self.kind == ErrorKind::AccessDenied).then(|| Decision {
            tool: Some(tool.to_owned()),
            ..decision_log::denied(door, subject, self.rule.clone())
        })
    }

    /// Sets the path that the error is about.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}
