//! Error responses, and panics turned into errors.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::Value;
use sightline_protocol::error::{ErrorData, ErrorKind};
use sightline_workspace::{escape, limits};

use crate::error::Error;

/// JSON-RPC: parse error.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: invalid request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: method not found.
pub const METHOD_NOT_FOUND: i64 = -32601;

impl From<sightline_workspace::error::Error> for Error {
    fn from(error: sightline_workspace::error::Error) -> Self {
        Self {
            kind: error.kind,
            message: error.message,
            path: error.path,
            rule: error.rule,
        }
    }
}

impl From<sightline_conversation::error::Error> for Error {
    fn from(error: sightline_conversation::error::Error) -> Self {
        match error {
            sightline_conversation::error::Error::Workspace(error) => error.into(),
            other => Self::new(other.kind(), other.to_string()),
        }
    }
}

/// Builds an error response.
pub fn error_body(id: &Value, error: &Error) -> Vec<u8> {
    let data = ErrorData {
        kind: error.kind,
        path: error.path.clone(),
        rule: error.rule.clone(),
    };
    body(id, error.kind.code(), &error.message, &data)
}

/// Builds an error response with a JSON-RPC error code.
pub fn protocol_error(id: &Value, code: i64, kind: ErrorKind, message: &str) -> Vec<u8> {
    let data = ErrorData {
        kind,
        path: None,
        rule: None,
    };
    body(id, code, message, &data)
}

fn body(id: &Value, code: i64, message: &str, data: &ErrorData) -> Vec<u8> {
    // The message may quote values of any length and content.
    let message = &*escape::printable(message);
    let end = message.floor_char_boundary(limits::MAX_ERROR_MESSAGE_BYTES);
    let cut = format!("{}...", &message[..end]);
    let message = if end < message.len() { &cut } else { message };
    let body = serde_json::json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": { "code": code, "message": message, "data": data },
    });
    body.to_string().into_bytes()
}

/// Runs `work`. A panic becomes an `internal` error that names the method.
///
/// # Errors
/// The errors of `work`, and `internal`.
pub fn catch_panic<T>(name: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic_text(&*panic);
        tracing::error!(name, why, "a handler panicked");
        Err(Error::new(
            ErrorKind::Internal,
            format!("{name}: internal error: {why}. This is a bug; the server is still running."),
        ))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
