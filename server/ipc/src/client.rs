//! Sends requests to a running server.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use sightline_base::{path::Root, storage::Storage};
use sightline_engine::{error::Error, error_response::METHOD_NOT_FOUND, params_compat};
use sightline_local::frame::{FrameReader, write_frame};
use sightline_protocol::{
    editor::{UnsavedFilesParams, UnsavedFilesResult},
    environment::{EnvironmentDetailsParams, EnvironmentDetailsResult},
    error::{ErrorData, ErrorKind},
    files::{ReadFileParams, ReadFileResult, TextSource},
    method::{
        CheckAccess, CreateCheckpoint, DiffCheckpoints, EnvironmentDetails, HiddenPaths,
        LabelCheckpoint, PreviewRestore, ReadFile, Request, RestoreCheckpoint, UndoRestore,
        UnsavedFiles,
    },
};

use super::{
    socket_dir,
    transport::{self, ClientStream},
};

/// Time to answer a request that needs no work. It is shorter than the deadline of a hook.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// The same for servers that are asked for unsaved text only.
const OTHERS_TIMEOUT: Duration = Duration::from_millis(500);
/// Time to check access. After it, the rules on disk decide.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Time to answer other requests.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
/// The same for requests that read or write the whole workspace.
const WORKSPACE_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns how long a request may take, and whether it changes anything.
fn effort(method: &str) -> (Duration, bool) {
    match method {
        CreateCheckpoint::NAME
        | RestoreCheckpoint::NAME
        | UndoRestore::NAME
        | LabelCheckpoint::NAME => (WORKSPACE_TIMEOUT, true),
        DiffCheckpoints::NAME | PreviewRestore::NAME => (WORKSPACE_TIMEOUT, false),
        CheckAccess::NAME | HiddenPaths::NAME => (CHECK_TIMEOUT, false),
        UnsavedFiles::NAME => (OTHERS_TIMEOUT, false),
        _ => (RESPONSE_TIMEOUT, false),
    }
}

/// Returns whether a request changes checkpoints or files.
pub fn changes(method: &str) -> bool {
    effort(method).1
}

/// How the servers of a root answered a request.
#[derive(Debug)]
pub enum Reply<R> {
    /// A server ran the request.
    Answered(Result<R, Error>),
    /// A server is running but does not answer, such as a stopped process.
    Silent,
    /// No server is running.
    NoServer,
}

/// Sends a request to the server of a root whose editor had the focus last, of those that answer.
pub fn request<M: Request>(storage: &Storage, root: &Root, params: &M::Params) -> Reply<M::Result> {
    let sockets = find_sockets(&socket_dir(storage), &storage.run_key(root));
    request_first(&mut sockets.iter(), M::NAME, params)
}

/// Sends a request by its name like [`request`]. Blocks and files have the unsaved text of all servers.
pub fn request_named(
    storage: &Storage,
    root: &Root,
    method: &str,
    params: &Value,
) -> Reply<Box<RawValue>> {
    match method {
        EnvironmentDetails::NAME => {
            typed::<EnvironmentDetails>(params, |params| environment_details(storage, root, params))
        }
        ReadFile::NAME => typed::<ReadFile>(params, |params| read_file(storage, root, params)),
        _ => {
            let sockets = find_sockets(&socket_dir(storage), &storage.run_key(root));
            request_first(&mut sockets.iter(), method, params)
        }
    }
}

/// Sends a request with the types of its method.
fn typed<M: Request>(
    params: &Value,
    ask: impl FnOnce(&M::Params) -> Reply<M::Result>,
) -> Reply<Box<RawValue>> {
    let params = match params_compat::typed(M::NAME, &params.to_string()) {
        Ok(params) => params,
        Err(error) => return Reply::Answered(Err(error)),
    };
    match ask(&params) {
        Reply::Answered(answer) => Reply::Answered(answer.and_then(|result| {
            serde_json::value::to_raw_value(&result)
                .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
        })),
        Reply::Silent => Reply::Silent,
        Reply::NoServer => Reply::NoServer,
    }
}

/// Reads a file like [`request`]. If that server has no unsaved text of it, but another one does,
/// returns that text. The first server decides whether the file may be read. Silent, if any of them
/// is: it may have unsaved text.
pub fn read_file(storage: &Storage, root: &Root, params: &ReadFileParams) -> Reply<ReadFileResult> {
    let sockets = find_sockets(&socket_dir(storage), &storage.run_key(root));
    let mut others = sockets.iter();
    let reply: Reply<ReadFileResult> = request_first(&mut others, ReadFile::NAME, params);
    let may_be_unsaved = match &reply {
        Reply::Answered(Ok(read)) => read.source == TextSource::Disk,
        // A file that only an editor has.
        Reply::Answered(Err(error)) => error.kind == ErrorKind::NotFound,
        Reply::Silent | Reply::NoServer => false,
    };
    if !may_be_unsaved {
        return reply;
    }
    let mut is_silent = false;
    for socket in others {
        let read: io::Result<Result<ReadFileResult, Error>> =
            ask(socket, OTHERS_TIMEOUT, ReadFile::NAME, params);
        match read {
            Ok(Ok(read)) if read.source == TextSource::Buffer => return Reply::Answered(Ok(read)),
            Err(error) => is_silent |= is_timeout(&error),
            Ok(_) => {}
        }
    }
    if is_silent { Reply::Silent } else { reply }
}

/// Builds the block like [`request`], with the unsaved files of all servers.
pub fn environment_details(
    storage: &Storage,
    root: &Root,
    params: &EnvironmentDetailsParams,
) -> Reply<EnvironmentDetailsResult> {
    let sockets = find_sockets(&socket_dir(storage), &storage.run_key(root));
    let mut params = params.clone();
    for unsaved in unsaved_in(sockets.iter().skip(1), root) {
        params.unsaved_files.extend(unsaved.uris);
    }
    request_first(&mut sockets.iter(), EnvironmentDetails::NAME, &params)
}

/// Returns the unsaved files of each server that answers.
pub fn unsaved_files(storage: &Storage, root: &Root) -> Vec<UnsavedFilesResult> {
    let sockets = find_sockets(&socket_dir(storage), &storage.run_key(root));
    unsaved_in(sockets.iter(), root).collect()
}

fn unsaved_in<'a>(
    sockets: impl Iterator<Item = &'a PathBuf>,
    root: &Root,
) -> impl Iterator<Item = UnsavedFilesResult> {
    let in_root = UnsavedFilesParams {
        folder: Some(root.canonical.to_uri()),
    };
    sockets.filter_map(move |socket| {
        ask(socket, OTHERS_TIMEOUT, UnsavedFiles::NAME, &in_root)
            .ok()?
            .ok()
    })
}

/// Sends a request to the first server that answers.
fn request_first<R: DeserializeOwned>(
    sockets: &mut std::slice::Iter<'_, PathBuf>,
    method: &str,
    params: &impl Serialize,
) -> Reply<R> {
    let mut reply = Reply::NoServer;
    let mut patience = PROBE_TIMEOUT;
    for socket in sockets {
        match ask(socket, patience, method, params) {
            Ok(answer) => return Reply::Answered(answer),
            Err(error) => {
                tracing::info!(%error, "cannot reach a server");
                if is_timeout(&error) {
                    reply = Reply::Silent;
                    // A hook has time for one silent server.
                    patience = OTHERS_TIMEOUT;
                }
            }
        }
    }
    reply
}

/// Sends a request to a server that answers in this time.
fn ask<R: DeserializeOwned>(
    socket: &Path,
    patience: Duration,
    method: &str,
    params: &impl Serialize,
) -> io::Result<Result<R, Error>> {
    // A request without changes that takes no longer is its own probe.
    let (timeout, changes) = effort(method);
    if changes || timeout > patience {
        probe(socket, patience)?;
    }
    let stream = transport::connect(socket).ok_or(io::ErrorKind::NotConnected)?;
    exchange(stream, method, params)
}

/// Fails if a server accepts a connection but does not answer. A request that a stopped server
/// had received would run when it continues.
fn probe(socket: &Path, patience: Duration) -> io::Result<()> {
    let Some(stream) = transport::connect(socket) else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    let answer = transport::with_timeout(stream, patience, |mut stream| {
        // Every server rejects an unknown method at once.
        write_frame(&mut stream, br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#)?;
        FrameReader::new(stream).next_frame()
    });
    match answer {
        Err(error) if is_timeout(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}

/// Returns how many servers accept connections: those of a root, or of all roots and data
/// directories of the socket directory.
pub fn running(storage: &Storage, root: Option<&Root>) -> usize {
    let dir = socket_dir(storage);
    let key = root.map(|root| storage.run_key(root)).unwrap_or_default();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(transport::is_socket)
        .filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.starts_with(&key))
        })
        .filter(|entry| transport::connect(&entry.path()).is_some())
        .count()
}

/// Returns the sockets of a root: the one focused last first, or the newest.
pub(super) fn find_sockets(dir: &Path, key: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut sockets: Vec<(Option<SystemTime>, PathBuf)> = entries
        .filter(transport::is_socket)
        .filter(|entry| {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(key));
            rest.is_some_and(|rest| rest.starts_with('-') && rest.ends_with(transport::SUFFIX))
        })
        .map(|entry| {
            let metadata = entry.metadata();
            let focused = metadata.and_then(|metadata| metadata.modified());
            (focused.ok(), entry.path())
        })
        .collect();
    sockets.sort();
    sockets.into_iter().rev().map(|(_, path)| path).collect()
}

#[derive(Serialize)]
struct Message<'a, P> {
    jsonrpc: &'static str,
    id: u32,
    method: &'a str,
    params: &'a P,
}

#[derive(Deserialize)]
struct Answer<R> {
    result: Option<R>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
    message: String,
    data: Option<ErrorData>,
}

/// Sends a request and receives the answer. Fails if the server cannot have changed
/// anything, so that the request can run elsewhere.
fn exchange<R: DeserializeOwned>(
    stream: ClientStream,
    method: &str,
    params: &impl Serialize,
) -> io::Result<Result<R, Error>> {
    let mut frame = Vec::new();
    let message = serde_json::to_vec(&Message {
        jsonrpc: "2.0",
        id: 1,
        method,
        params,
    })?;
    write_frame(&mut frame, &message)?;
    let (timeout, changes) = effort(method);
    let body = transport::with_timeout(stream, timeout, move |mut stream| {
        stream.write_all(&frame)?;
        Ok(match FrameReader::new(stream).next_frame() {
            Ok(Some(Ok(body))) => Ok(body),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error),
        })
    });
    let answer = match body {
        Ok(received) => received,
        // The request may have been sent.
        Err(error) if is_timeout(&error) => Err(error),
        Err(error) => return Err(error),
    };
    match answer.and_then(|body| parse_answer(&body)) {
        Err(error) if changes && error.kind() != io::ErrorKind::Unsupported => {
            Ok(Err(Error::storage(format!(
                "no answer from the running server: {error}. It may have done its work; see `sightline checkpoint list`"
            ))))
        }
        answer => answer,
    }
}

/// Fails with `Unsupported` if the server rejected the request without running it.
fn parse_answer<R: DeserializeOwned>(body: &[u8]) -> io::Result<Result<R, Error>> {
    let answer: Answer<R> = serde_json::from_slice(body)?;
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
    if failure.code == METHOD_NOT_FOUND || kind == ErrorKind::NotInitialized {
        return Err(io::Error::new(io::ErrorKind::Unsupported, error.message));
    }
    Ok(Err(error))
}
