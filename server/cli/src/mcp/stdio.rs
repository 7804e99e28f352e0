//! Messages of the Model Context Protocol on standard input and output, one JSON object a line.
//!
//! The transports of `rmcp` do not answer lines that they cannot parse, so clients would wait for
//! these requests. Here a thread reads the lines and answers invalid ones.

use std::{
    collections::HashMap,
    io::{self, BufRead, Read, Write},
    sync::Arc,
    thread,
};

use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ClientRequest, CustomRequest, ErrorCode, ErrorData, JsonRpcRequest,
        ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Mutex, mpsc};

/// Maximum length of a message, in bytes: the default of `rmcp`.
const MAX_LINE: u64 = 16 << 20;
/// Number of messages that are read before the first one is taken.
const QUEUED_MESSAGES: usize = 64;
/// Requests that this server answers. Other methods are unknown to it.
const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/call",
    "tools/list",
];

/// A connection. Clones share the messages.
#[derive(Clone)]
pub(super) struct Stdio(Arc<Mutex<mpsc::Receiver<ClientJsonRpcMessage>>>);

/// The thread that reads standard input. It ends with the input, or with an error.
pub(super) type Reader = thread::JoinHandle<io::Result<()>>;

/// Starts to read standard input.
pub(super) fn open() -> io::Result<(Stdio, Reader)> {
    let (sender, receiver) = mpsc::channel(QUEUED_MESSAGES);
    let reader = thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || read_lines(io::stdin().lock(), &sender))?;
    Ok((Stdio(Arc::new(Mutex::new(receiver))), reader))
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.0.lock().await.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn send(message: ServerJsonRpcMessage) -> io::Result<()> {
    tokio::task::spawn_blocking(move || write_line(&message)).await?
}

fn write_line(message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

/// Reads messages until the end of the input, and answers lines that are not valid.
fn read_lines(
    mut input: impl BufRead,
    messages: &mpsc::Sender<ClientJsonRpcMessage>,
) -> io::Result<()> {
    let cannot_read = |error| io::Error::other(format!("cannot read standard input: {error}"));
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(cannot_read)? == 0 {
            return Ok(());
        }
        let parsed = if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
            input.skip_until(b'\n').map_err(cannot_read)?;
            let message = format!("the message is longer than {MAX_LINE} bytes");
            Err(ErrorData::invalid_request(message, None))
        } else {
            parse(&line)
        };
        match parsed {
            Ok(Some(message)) => {
                if messages.blocking_send(message).is_err() {
                    // The server has ended.
                    return Ok(());
                }
            }
            Ok(None) => {}
            Err(error) => reject(&line, error)?,
        }
    }
}

/// Reads one message. Returns `None` for an empty line.
fn parse(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, ErrorData> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(line) {
        // `rmcp` reads a request of any method, with any params, as this one.
        Ok(ClientJsonRpcMessage::Request(JsonRpcRequest {
            request: ClientRequest::CustomRequest(CustomRequest { method, .. }),
            ..
        })) => Err(if METHODS.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("invalid params of {method}"), None)
        } else {
            let message = format!("unknown method {method}");
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
        }),
        Ok(message) => Ok(Some(message)),
        Err(error) if error.is_data() => Err(ErrorData::invalid_request(error.to_string(), None)),
        Err(error) => Err(ErrorData::parse_error(error.to_string(), None)),
    }
}

/// Answers a line with an error, unless it is a notification or a response.
fn reject(line: &[u8], error: ErrorData) -> io::Result<()> {
    // Raw values may be nested deeply and may have invalid escapes.
    let text = String::from_utf8_lossy(line);
    let members: HashMap<String, &RawValue> = serde_json::from_str(&text).unwrap_or_default();
    let has = |name| members.contains_key(name);
    let is_notification = has("method") && !has("id");
    let is_response = !has("method") && (has("result") || has("error"));
    if is_notification || is_response {
        return Ok(());
    }
    let is_valid = |id: &&RawValue| !id.get().starts_with(['[', '{', 't', 'f']);
    write_line(&Answer {
        jsonrpc: "2.0",
        id: members.get("id").copied().filter(is_valid),
        error,
    })
}

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    /// As the client wrote it; null if it cannot be read.
    id: Option<&'a RawValue>,
    error: ErrorData,
}
