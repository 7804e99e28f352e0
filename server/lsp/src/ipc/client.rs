//! Sends requests to a running server.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sightline_protocol::{
    error::{ErrorData, ErrorKind},
    method::Request,
};
use sightline_workspace::{error::Error, path::Root, storage::Storage};

use super::transport::{self, ClientStream};
use crate::connection::frame::{FrameReader, write_frame};

/// Time after which a silent server is considered dead.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Sends a request to the newest server of a root. Returns `None` if no server answers.
pub fn request<M: Request>(
    storage: &Storage,
    root: &Root,
    params: &M::Params,
) -> Option<Result<M::Result, Error>> {
    let dir = storage.run_dir(transport::runtime_dir().as_deref());
    find_sockets(&dir, &storage.run_key(root))
        .iter()
        .find_map(|socket| {
            let stream = transport::connect(socket)?;
            exchange::<M>(stream, params)
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

#[derive(Serialize)]
struct Message<'a, P> {
    jsonrpc: &'static str,
    id: u32,
    method: &'static str,
    params: &'a P,
}

#[derive(Deserialize)]
struct Answer<R> {
    result: Option<R>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
    data: Option<ErrorData>,
}

fn exchange<M: Request>(
    stream: ClientStream,
    params: &M::Params,
) -> io::Result<Result<M::Result, Error>> {
    let mut frame = Vec::new();
    let message = serde_json::to_vec(&Message {
        jsonrpc: "2.0",
        id: 1,
        method: M::NAME,
        params,
    })?;
    write_frame(&mut frame, &message)?;
    let body = transport::with_timeout(stream, RESPONSE_TIMEOUT, move |mut stream| {
        stream.write_all(&frame)?;
        match FrameReader::new(stream).next_frame()? {
            Some(Ok(body)) => Ok(body),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    })?;
    let answer: Answer<M::Result> = serde_json::from_slice(&body)?;
    let failure = match answer {
        Answer {
            error: Some(failure),
            ..
        } => failure,
        Answer {
            result: Some(result),
            ..
        } => return Ok(Ok(result)),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
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
