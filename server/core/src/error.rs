//! The one error of this crate: a kind for programs, a message for people.

use std::fmt;

use sightline_protocol::{access::AccessRule, error::ErrorKind};

/// What was attempted, on what, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The stable kind.
    pub kind: ErrorKind,
    /// One sentence for people; names the value.
    pub message: String,
    /// The path in question.
    pub path: Option<String>,
    /// The rule that denied.
    pub rule: Option<AccessRule>,
}

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            path: None,
            rule: None,
        }
    }

    /// A parameter makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    /// The client cancelled.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the request was cancelled")
    }

    /// The server's own data could not be read or written.
    pub fn storage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Storage, message)
    }

    /// Names the path in question.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Names the rule that denied.
    #[must_use]
    pub fn with_rule(mut self, rule: Option<AccessRule>) -> Self {
        self.rule = rule;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
