//! Error responses, and panics turned into errors.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::Value;
use sightline_base::{error::Error as WorkspaceError, escape, limits};
use sightline_checkpoint::error::Error as CheckpointError;
use sightline_protocol::error::{ErrorData, ErrorKind};

use crate::error::Error;

/// JSON-RPC: parse error.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: invalid request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: method not found.
pub const METHOD_NOT_FOUND: i64 = -32601;

impl From<WorkspaceError> for Error {
    fn from(error: WorkspaceError) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
            path: error.path().map(str::to_owned),
            rule: error.rule().cloned(),
        }
    }
}

impl From<CheckpointError> for Error {
    fn from(error: CheckpointError) -> Self {
        let shown = Self::new(error.kind(), error.to_string());
        match error {
            CheckpointError::Workspace(error) => error.into(),
            CheckpointError::InRoot { source, .. }
            | CheckpointError::NotRolledBack { source, .. } => Self {
                message: shown.message,
                ..Self::from(*source)
            },
            CheckpointError::Changed { path, .. } | CheckpointError::NotHeld { path, .. } => {
                shown.with_path(path.to_string())
            }
            _ => shown,
        }
    }
}

/// Builds an error response.
pub fn error_body(id: &Value, error: &Error) -> Vec<u8> {
    body(id, &error_object(error.kind.code(), error))
}

/// Builds an error response with a JSON-RPC error code.
pub fn protocol_error(id: &Value, code: i64, kind: ErrorKind, message: &str) -> Vec<u8> {
    body(id, &error_object(code, &Error::new(kind, message)))
}

/// Builds the error of a response.
pub fn error_object(code: i64, error: &Error) -> Value {
    let data = ErrorData {
        kind: error.kind,
        path: error.path.clone(),
        rule: error.rule.clone(),
    };
    // The message may quote values of any length and content.
    let message = &*escape::printable(&error.message);
    let end = message.floor_char_boundary(limits::MAX_ERROR_MESSAGE_BYTES);
    let cut = format!("{}...", &message[..end]);
    let message = if end < message.len() { &cut } else { message };
    serde_json::json!({ "code": code, "message": message, "data": data })
}

fn body(id: &Value, error: &Value) -> Vec<u8> {
    let body = serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error });
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

#[cfg(test)]
mod tests {
    use std::io;

    use ErrorKind as Kind;
    use sightline_base::path::RelPath;
    use sightline_protocol::access::AccessRule;

    use super::*;

    /// Checks the response to a failed request: code, kind and message.
    fn assert_response(error: impl Into<Error>, code: i64, kind: ErrorKind, message: &str) {
        let error = error.into();
        let response: Value = serde_json::from_slice(&error_body(&Value::from(1), &error)).unwrap();
        let shown = &response["error"];
        assert_eq!(shown["code"], code, "{message}");
        assert_eq!(shown["data"]["kind"], serde_json::json!(kind), "{message}");
        assert_eq!(shown["message"], message);
    }

    fn full() -> io::Error {
        io::Error::other("disk full")
    }

    #[test]
    fn errors_of_the_workspace_have_their_codes() {
        use WorkspaceError as E;
        let f = || "f".to_owned();
        let json = || serde_json::from_str::<u8>("x").unwrap_err();

        let open = |kind: io::ErrorKind| E::Open {
            path: f(),
            source: kind.into(),
        };
        let list = |kind: io::ErrorKind| E::List {
            path: f(),
            source: kind.into(),
        };
        for (error, kind, path) in [
            (E::Cancelled, Kind::Cancelled, None),
            (E::InvalidParams(f()), Kind::InvalidParams, None),
            (
                E::InvalidPath {
                    path: f(),
                    why: f(),
                },
                Kind::InvalidParams,
                Some("f"),
            ),
            (E::NotADirectory(f()), Kind::InvalidParams, Some("f")),
            (
                E::AccessDenied {
                    path: f(),
                    reason: f(),
                    rule: None,
                },
                Kind::AccessDenied,
                Some("f"),
            ),
            (E::Outside(f()), Kind::AccessDenied, Some("f")),
            (E::LinkToOutside(f()), Kind::AccessDenied, Some("f")),
            (open(io::ErrorKind::NotFound), Kind::NotFound, Some("f")),
            (
                open(io::ErrorKind::NotADirectory),
                Kind::NotFound,
                Some("f"),
            ),
            (
                open(io::ErrorKind::PermissionDenied),
                Kind::AccessDenied,
                Some("f"),
            ),
            (
                open(io::ErrorKind::IsADirectory),
                Kind::Unsupported,
                Some("f"),
            ),
            (open(io::ErrorKind::Other), Kind::Storage, Some("f")),
            (list(io::ErrorKind::NotFound), Kind::NotFound, Some("f")),
            (
                list(io::ErrorKind::PermissionDenied),
                Kind::Unsupported,
                Some("f"),
            ),
            (
                E::Read {
                    path: f(),
                    source: full(),
                },
                Kind::Unsupported,
                Some("f"),
            ),
            (
                E::Unsupported {
                    action: "read",
                    path: f(),
                    what: f(),
                },
                Kind::Unsupported,
                Some("f"),
            ),
            (E::Replaced(f()), Kind::Conflict, Some("f")),
            (
                E::TooLarge {
                    path: f(),
                    limit: 5,
                },
                Kind::TooLarge,
                Some("f"),
            ),
            (E::TaskExists(f()), Kind::Conflict, None),
            (E::TaskLocked(f()), Kind::Busy, None),
            (E::Failed(Kind::Internal, f()), Kind::Internal, None),
            (
                E::Storage {
                    action: "write",
                    path: f().into(),
                    source: full(),
                },
                Kind::Storage,
                None,
            ),
            (
                E::Unusable {
                    path: f().into(),
                    problem: f(),
                },
                Kind::Storage,
                None,
            ),
            (E::StateFileTooLarge(f().into()), Kind::Storage, None),
            (E::Encode(json()), Kind::Storage, None),
        ] {
            let message = error.to_string();
            let converted = Error::from(error);
            assert_eq!(converted.path.as_deref(), path, "{message}");
            assert_response(converted, kind.code(), kind, &message);
        }
    }

    #[test]
    fn the_rule_that_denied_access_is_in_the_response() {
        let denied = || WorkspaceError::AccessDenied {
            path: "a.key".to_owned(),
            reason: "matches *.key".to_owned(),
            rule: Some(AccessRule {
                source: ".clineignore".to_owned(),
                line: 3,
                pattern: "*.key".to_owned(),
            }),
        };
        // Also if another crate passes it on.
        for error in [
            Error::from(denied()),
            CheckpointError::from(denied()).into(),
        ] {
            let body = error_body(&Value::from(1), &error);
            let response: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                response["error"],
                serde_json::json!({
                    "code": -32803,
                    "message": "a.key is hidden from agents: matches *.key",
                    "data": {
                        "kind": "accessDenied",
                        "path": "a.key",
                        "rule": { "source": ".clineignore", "line": 3, "pattern": "*.key" },
                    },
                })
            );
        }
    }

    #[test]
    fn errors_of_checkpoints_have_their_codes() {
        use CheckpointError as E;
        let why = || "why".to_owned();
        for (error, kind, message) in [
            (E::NotFound(why()), Kind::NotFound, "why"),
            (E::Locked(why()), Kind::Busy, "why"),
            (
                E::Changed {
                    path: RelPath::new("a/b".as_ref()).unwrap(),
                    how: "changed".to_owned(),
                },
                Kind::Conflict,
                "a/b changed during the comparison; try again",
            ),
            (E::Damaged(why()), Kind::Storage, "why"),
            (E::Unavailable(why()), Kind::Storage, "why"),
            (
                E::Workspace(WorkspaceError::Cancelled),
                Kind::Cancelled,
                "the request was cancelled",
            ),
        ] {
            assert_response(error, kind.code(), kind, message);
        }
        let path = RelPath::new("a/b".as_ref()).unwrap();
        let how = "changed".to_owned();
        let changed = Error::from(E::Changed { path, how });
        assert_eq!(changed.path.as_deref(), Some("a/b"));
    }
}
