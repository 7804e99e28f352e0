//! The stable kinds of errors a client can meet, and their JSON-RPC codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong, for programs. The message of the error is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ErrorKind {
    /// A parameter is missing, ill-typed or makes no sense.
    InvalidParams,
    /// The named thing does not exist.
    NotFound,
    /// The rules forbid it.
    AccessDenied,
    /// Something changed meanwhile.
    Conflict,
    /// Another operation holds what is needed.
    Busy,
    /// The client cancelled the request.
    Cancelled,
    /// Understood, but not for this kind of thing.
    Unsupported,
    /// The server's own data could not be read or written.
    Storage,
    /// Over a limit.
    TooLarge,
    /// `initialize` has not been answered yet.
    NotInitialized,
    /// A defect of the server.
    Internal,
}

impl ErrorKind {
    /// The JSON-RPC code. Standard codes where one fits; `-32803` is LSP's
    /// RequestFailed ("understood, could not").
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

/// The `data` of an error answer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// The stable kind.
    pub kind: ErrorKind,
    /// The path in question, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The rule that denied, when one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<crate::access::AccessRule>,
}
