//! Sends requests to a running server.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use sightline_protocol::error::{ErrorData, ErrorKind};
use sightline_workspace::{error::Error, path::Root, storage::Storage};

use super::transport::{self, ClientStream};
use crate::connection::frame::{FrameReader, write_frame};

/// Time after which a silent server is considered dead.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Sends a request to the newest server of a root. Returns `None` if no server answers.
pub fn request(
    storage: &Storage,
    root: &Root,
    method: &str,
    params: &Value,
) -> Option<Result<Value, Error>> {
    let dir = storage.run_dir(transport::runtime_dir().as_deref());
    find_sockets(&dir, &storage.run_key(root))
        .iter()
        .find_map(|socket| {
            let stream = transport::connect(socket)?;
            exchange(stream, method, params)
                .inspect_err(|error| tracing::info!(%error, "cannot reach a server"))
                .ok()
        })
}

/// Returns the sockets of a root, newest first.
pub(super) fn find_sockets(dir: &Path, key: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries
        .filter(transport::is_socket)
        .filter(|entry| {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(key));
            rest.is_some_and(|rest| rest.starts_with('-') && rest.ends_with(transport::SUFFIX))
        })
        .map(|entry| entry.path())
        .collect();
    sockets.sort();
    sockets.reverse();
    sockets
}

#[derive(Deserialize)]
struct Failure {
    message: String,
    data: Option<ErrorData>,
}

fn exchange(
    stream: ClientStream,
    method: &str,
    params: &Value,
) -> io::Result<Result<Value, Error>> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut frame = Vec::new();
    write_frame(&mut frame, request.to_string().as_bytes())?;
    let mut answer: Value =
        transport::with_timeout(stream, RESPONSE_TIMEOUT, move |mut stream| {
            stream.write_all(&frame)?;
            let Some(Ok(body)) = FrameReader::new(stream).next_frame()? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            Ok(serde_json::from_slice(&body)?)
        })?;
    let Some(failure) = answer.get_mut("error").map(Value::take) else {
        return Ok(Ok(answer["result"].take()));
    };
    let failure: Failure = serde_json::from_value(failure)?;
    let data = failure.data;
    let kind = data.as_ref().map_or(ErrorKind::Internal, |data| data.kind);
    let mut error = Error::new(kind, failure.message);
    if let Some(data) = data {
        error.path = data.path;
        error.rule = data.rule;
    }
    // An older server may not support the request; fall back to the disk.
    match kind {
        ErrorKind::Unsupported | ErrorKind::NotInitialized => Err(io::Error::other(error.message)),
        _ => Ok(Err(error)),
    }
}
