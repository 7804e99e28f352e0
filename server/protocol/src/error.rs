//! Stable error kinds and their JSON-RPC codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Stable error kind, for programs. The error message is for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ErrorKind {
    /// A parameter is missing, has the wrong type or is invalid.
    InvalidParams,
    /// The file, task or checkpoint does not exist.
    NotFound,
    /// The access rules deny the file.
    AccessDenied,
    /// The state changed since it was read.
    Conflict,
    /// Another operation holds the lock.
    Busy,
    /// The client cancelled the request.
    Cancelled,
    /// The operation does not support this kind of file or folder.
    Unsupported,
    /// The data of the server cannot be read or written.
    Storage,
    /// A limit is exceeded.
    TooLarge,
    /// The server has not answered `initialize` yet.
    NotInitialized,
    /// Internal error: a bug in the server.
    Internal,
}

impl ErrorKind {
    /// Returns the JSON-RPC code: a standard code where one fits, else LSP's
    /// RequestFailed (`-32803`).
    pub fn code(self) -> i64 {
        match self {
            Self::InvalidParams => -32602,
            Self::Cancelled => -32800,
            Self::NotInitialized => -32002,
            Self::Internal => -32603,
            Self::NotFound
            | Self::AccessDenied
            | Self::Conflict
            | Self::Busy
            | Self::Unsupported
            | Self::Storage
            | Self::TooLarge => -32803,
        }
    }
}

/// The `data` of an error response.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// Stable kind of the error.
    pub kind: ErrorKind,
    /// Path that caused the error, if any.
    pub path: Option<String>,
    /// Rule that denied access, if any.
    pub rule: Option<crate::access::AccessRule>,
}
