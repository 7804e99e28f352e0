//! The main loop: reads frames in order and dispatches their messages.
//!
//! Threads: two reader threads take turns running the loop ([`crate::reader_threads`]).
//! The reading thread applies notifications to the session, takes a snapshot for each
//! request, and runs short jobs itself; others go to the [`crate::scheduler`]. The writer
//! thread ([`crate::writer`]) writes what the sender could not write at once. The caller
//! of [`serve`] waits for the end.
//!
//! tower-lsp serves the standard LSP methods. Its futures are polled once on the reading
//! thread, so everything before their first `await` happens in arrival order; the rest is
//! spawned. Requests of our own protocol go to [`crate::handlers`] directly.
//!
//! Only `exit` and the end of input end the server. While too much output is unsent, no
//! input is read ([`FrameWriter::wait_for_room`]): `exit` and cancellations are seen once
//! the client reads again or closes its end.

use std::{
    future::Future,
    io::{PipeReader, PipeWriter},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use serde_json::{Value, json, value::RawValue};
use sightline_protocol::error::ErrorKind;
use sightline_workspace::{cancel::Cancel, error::Error, limits};
use tower_lsp::{LspService, jsonrpc};
use tower_service::Service;

use crate::{
    client::{Client, OutgoingMessage},
    document_sync::LspHandlers,
    editor_features,
    frame::{BadFrame, FrameReader},
    handlers, params_compat, parent_watch,
    raw_message::{Envelope, Params, RawMessage},
    reader_threads::{self, Next},
    response_body::ResponseBody,
    scheduler::root_queues::Job,
    scheduler::{INVALID_REQUEST, error_body, panic_text, protocol_error},
    session::Phase,
    shared_state::{FaultHook, Server},
    start_request::{self, ParsedRequest},
    writer::FrameWriter,
};

/// Time for running jobs to finish after `exit` or the end of input.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(300);

/// Interval between checks for a closed input while reading is paused.
const END_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Why the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client sent `exit`.
    Exit,
    /// The client closed its end.
    EndOfInput,
    /// stdout is closed.
    OutputClosed,
    /// The parent process exited.
    ParentGone,
}

/// Options of [`serve`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Called before each handler. Tests use it to inject panics.
    pub fault: Option<FaultHook>,
    /// End when the parent process does.
    pub watch_parent: bool,
}

/// Serves one client until `exit` or the end of input. Returns the exit code: 0 after
/// `shutdown`, else 1. The streams need not be pipes.
pub fn serve(input: PipeReader, output: PipeWriter, options: Options) -> i32 {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_time()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start threads");
            return 1;
        }
    };
    let (ends, end) = mpsc::channel();
    let output = Arc::new(FrameWriter::new(output));
    let client = Arc::new(Client::new(output.clone()));
    let server = Server::new(client.clone(), runtime.handle().clone(), options.fault);

    let writer = start_writer(output.clone(), ends.clone());
    if options.watch_parent {
        parent_watch::watch_parent(ends.clone());
    }
    let (service, _socket) = {
        let server = server.clone();
        LspService::new(move |_| LspHandlers::new(server))
    };
    let main_loop = MainLoop {
        frames: FrameReader::new(input),
        output: output.clone(),
        server: server.clone(),
        service,
        runtime: runtime.handle().clone(),
    };
    let scheduler = server.scheduler().clone();
    reader_threads::start(main_loop.into_next(ends), move |work| scheduler.spawn(work));

    let reason = end.recv().unwrap_or(End::EndOfInput);
    tracing::info!(?reason, "session ended");
    output.end_waits();
    server.ipc_server().close();
    server.scheduler().shut_down(SHUTDOWN_GRACE);
    let is_orderly = server.session(|session| session.phase) == Phase::ShutDown;
    output.close();
    if reason != End::OutputClosed {
        let _ = writer.recv_timeout(SHUTDOWN_GRACE);
    }
    runtime.shutdown_background();
    i32::from(!is_orderly)
}

/// Starts the writer thread. The returned receiver is notified when it finishes.
fn start_writer(output: Arc<FrameWriter>, ends: Sender<End>) -> Receiver<()> {
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        let written = output.write();
        if written.is_err() {
            let _ = ends.send(End::OutputClosed);
            return;
        }
        let _ = done.send(());
    });
    finished
}

struct MainLoop {
    frames: FrameReader<PipeReader>,
    output: Arc<FrameWriter>,
    server: Arc<Server>,
    service: LspService<LspHandlers>,
    runtime: tokio::runtime::Handle,
}

impl MainLoop {
    /// Returns the function that reads and dispatches one message. It sends the reason to
    /// `ends` when the input ends.
    fn into_next(mut self, ends: Sender<End>) -> impl FnMut() -> Next {
        move || {
            while !self.output.wait_for_room(END_POLL_INTERVAL) {
                if self.is_input_closed() {
                    // Little input is left, and the end of input follows it.
                    self.output.end_waits();
                }
            }
            // The session cannot continue without its reader, so a panic ends it.
            let read = catch_unwind(AssertUnwindSafe(|| self.read()));
            match read.unwrap_or(Err(End::EndOfInput)) {
                Ok(Some(work)) => Next::Job {
                    work,
                    more: self.frames.has_more(),
                },
                Ok(None) => Next::Done,
                Err(end) => {
                    let _ = ends.send(end);
                    Next::End
                }
            }
        }
    }

    /// Returns whether the client has closed its end, even if there is unread input.
    #[cfg(unix)]
    fn is_input_closed(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let closed = PollFlags::HUP | PollFlags::ERR;
        // Sockets can be closed in one direction only.
        #[cfg(target_os = "linux")]
        let closed = closed | PollFlags::RDHUP;
        let mut polled_fds = [PollFd::new(self.frames.stream(), closed)];
        poll(&mut polled_fds, Some(&at_once)).is_ok() && polled_fds[0].revents().intersects(closed)
    }

    /// On other systems, a closed client is noticed on write.
    #[cfg(not(unix))]
    fn is_input_closed(&self) -> bool {
        false
    }

    /// Reads one frame and applies what must happen in arrival order. Returns the job
    /// that is left to run, if any.
    fn read(&mut self) -> Result<Option<Job>, End> {
        match self.frames.next_frame() {
            Ok(Some(Ok(body))) => return self.handle_message(body),
            Ok(Some(Err(bad))) => self.reject_frame(&bad),
            Ok(None) => return Err(End::EndOfInput),
            Err(error) => {
                tracing::info!(%error, "cannot read input");
                return Err(End::EndOfInput);
            }
        }
        Ok(None)
    }

    /// Handles one message.
    fn handle_message(&mut self, body: Vec<u8>) -> Result<Option<Job>, End> {
        let text = match String::from_utf8(body) {
            Ok(text) => text,
            Err(error) => {
                let why = format!(", byte {}", error.utf8_error().valid_up_to());
                self.reject_body(error.as_bytes().len(), PARSE_ERROR, "is not UTF-8", &why);
                return Ok(None);
            }
        };
        let received = match RawMessage::read(text) {
            Ok(received) => Arc::new(received),
            Err((text, error)) => {
                let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
                let (code, what) = if is_json {
                    (INVALID_REQUEST, "is not a JSON-RPC message")
                } else {
                    (PARSE_ERROR, "is not JSON")
                };
                // For non-objects, serde reports no position.
                let at = match error.column() {
                    0 => String::new(),
                    column => format!(", line {} column {column}", error.line()),
                };
                self.reject_body(text.len(), code, what, &at);
                return Ok(None);
            }
        };
        let envelope = received.envelope();
        match (&envelope.method, &envelope.id) {
            (Some(method), id) => {
                tracing::trace!(%method, bytes = received.text().len(), "received");
                let Some(id) = id.clone() else {
                    let params = envelope.params.as_ref().map(Params::text);
                    return if self.handle_notification(method, params) {
                        Err(End::Exit)
                    } else {
                        Ok(None)
                    };
                };
                if let Some((id, cancel, parsed)) = self.handle_request(method, id, &received) {
                    let call = parsed.bind(received.clone());
                    return Ok(start_request::start(&self.server, id, cancel, call));
                }
            }
            (None, Some(id)) => self.handle_response(id, envelope),
            (None, None) => {
                let message = "a message needs a method or an id";
                self.reject(
                    &Value::Null,
                    INVALID_REQUEST,
                    ErrorKind::InvalidParams,
                    message,
                );
            }
        }
        Ok(None)
    }

    /// Handles a request. Returns it if it is one of our own protocol, to be started.
    fn handle_request(
        &mut self,
        method: &str,
        id: Value,
        message: &RawMessage,
    ) -> Option<(Value, Cancel, ParsedRequest)> {
        if !(id.is_string() || id.is_i64()) {
            let message = format!("{method}: the id must be an integer or a string, not {id}");
            let kind = ErrorKind::InvalidParams;
            self.reject(&Value::Null, INVALID_REQUEST, kind, &message);
            return None;
        }
        if method == "exit" {
            let message = "exit is a notification; send it without an id";
            self.reject(&id, INVALID_REQUEST, ErrorKind::InvalidParams, message);
            return None;
        }
        if method.starts_with("$/") {
            let message = format!("unknown request {method}");
            self.reject(&id, METHOD_NOT_FOUND, ErrorKind::Unsupported, &message);
            return None;
        }
        if method == "experimental/runnables" {
            // Zed sends this to every server of a Rust file, and shows `null` as an
            // error.
            let none = ResponseBody::from_pieces(vec![b"[]".to_vec()]);
            self.server
                .client()
                .send(OutgoingMessage::response(&id, none));
            return None;
        }
        let parsed = if method == "workspace/executeCommand" {
            match ParsedRequest::from_command(message) {
                Ok(parsed) => Some(parsed),
                Err(error) => {
                    self.server.client().send(error_body(&id, &error));
                    return None;
                }
            }
        } else {
            let handler = handlers::method(method).or_else(|| editor_features::request(method));
            handler.map(|handler| ParsedRequest::from_request(handler, message))
        };
        let Some(parsed) = parsed else {
            let params = message.envelope().params.as_ref();
            self.call_standard(method, Some(id), params.map(Params::text));
            return None;
        };
        match self.server.session(|session| session.phase) {
            Phase::Running => {}
            Phase::Starting => {
                let why = format!("{method}: send `initialize` first");
                let error = Error::new(ErrorKind::NotInitialized, why);
                self.server.client().send(error_body(&id, &error));
                return None;
            }
            Phase::ShutDown => {
                let message = format!("{method}: the server has been shut down");
                let kind = ErrorKind::InvalidParams;
                self.reject(&id, INVALID_REQUEST, kind, &message);
                return None;
            }
        }
        let cancel = self.server.scheduler().register(&id, parsed.token())?;
        Some((id, cancel, parsed))
    }

    /// Handles a notification. Returns true for `exit`.
    fn handle_notification(&mut self, method: &str, params: Option<&str>) -> bool {
        match method {
            "exit" => return true,
            "$/cancelRequest" => {
                let id = params
                    .and_then(|params| serde_json::from_str::<Value>(params).ok())
                    .and_then(|params| params.get("id").cloned());
                if let Some(id) = id {
                    self.server.scheduler().cancel(&id);
                }
            }
            "window/workDoneProgress/cancel" => {
                let token = params
                    .and_then(|params| serde_json::from_str::<Value>(params).ok())
                    .and_then(|params| params.get("token").cloned())
                    .and_then(|token| serde_json::from_value(token).ok());
                if let Some(token) = token {
                    self.server.scheduler().cancel_progress(&token);
                }
            }
            _ if method.starts_with("$/") => {}
            _ if handlers::notifications::handles(method) => {
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    handlers::notifications::handle(&self.server, method, params)
                }));
                match outcome {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => tracing::warn!(method, "dropped: malformed params"),
                    Err(panic) => {
                        tracing::error!(method, why = panic_text(&*panic), "a handler panicked");
                    }
                }
            }
            _ => self.call_standard(method, None, params),
        }
        false
    }

    /// Passes a standard LSP message to tower-lsp.
    fn call_standard(&mut self, method: &str, id: Option<Value>, params: Option<&str>) {
        let mut params = match params_compat::parse(method, params) {
            Ok(params) => params,
            Err(error) => {
                tracing::warn!(method, "dropped: malformed params");
                return id.map_or((), |id| {
                    self.server.client().send(error_body(&id, &error));
                });
            }
        };
        params_compat::fill_defaults(method, &mut params);
        let params = match method {
            // tower-lsp rejects any params here, even `null`.
            "shutdown" => None,
            "initialized" => Some(json!({})),
            // Parsed leniently by `capabilities` instead.
            "initialize" => {
                self.server.store_initialize_params(params);
                Some(json!({ "capabilities": {} }))
            }
            _ if params.is_null() => None,
            _ => Some(params),
        };
        let mut request = jsonrpc::Request::build(method.to_owned());
        if let Some(params) = params {
            request = request.params(params);
        }
        if let Some(id) = id.as_ref().and_then(to_id) {
            request = request.id(id);
        }
        let called = catch_unwind(AssertUnwindSafe(|| self.service.call(request.finish())));
        let server = self.server.clone();
        let method = method.to_owned();
        let respond = move |outcome: Outcome| respond(&server, &method, id.as_ref(), outcome);
        let mut future = match called {
            Ok(future) => Box::pin(CatchPanic(future)),
            Err(panic) => return respond(Err(panic_text(&*panic).to_owned())),
        };
        let entered = self.runtime.enter();
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        drop(entered);
        match polled {
            Poll::Ready(outcome) => respond(outcome),
            Poll::Pending => {
                self.runtime.spawn(async move { respond(future.await) });
            }
        }
    }

    /// Delivers the client's response to one of our requests.
    fn handle_response(&self, id: &Value, envelope: &Envelope<'_>) {
        let value = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
        let answer = match (envelope.result, envelope.error) {
            (_, Some(error)) => Err(value(error)),
            (result, None) => Ok(result.map(value).unwrap_or_default()),
        };
        if !self.server.client().deliver_response(id, answer) {
            tracing::debug!(%id, "unexpected response");
        }
    }

    fn reject_frame(&self, bad: &BadFrame) {
        match bad {
            BadFrame::Header(why) => {
                let message = format!("malformed message header: {why}");
                self.reject(
                    &Value::Null,
                    PARSE_ERROR,
                    ErrorKind::InvalidParams,
                    &message,
                );
            }
            BadFrame::TooLarge(bytes) => {
                let limit = limits::MAX_FRAME_BYTES;
                let why = format!("a message of {bytes} bytes exceeds the limit of {limit}");
                let error = Error::new(ErrorKind::TooLarge, why);
                self.server.client().send(error_body(&Value::Null, &error));
            }
        }
    }

    /// Rejects a body that is not a message. The error contains the position, but no
    /// content.
    fn reject_body(&self, bytes: usize, code: i64, what: &str, at: &str) {
        let message = format!("a message of {bytes} bytes {what}{at}");
        self.reject(&Value::Null, code, ErrorKind::InvalidParams, &message);
    }

    /// Sends a protocol error. The message may quote the client, so it is not logged.
    fn reject(&self, id: &Value, code: i64, kind: ErrorKind, message: &str) {
        tracing::warn!(code, "answered with a protocol error");
        self.server
            .client()
            .send(protocol_error(id, code, kind, message));
    }
}

/// JSON-RPC: parse error.
const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: method not found.
const METHOD_NOT_FOUND: i64 = -32601;

type Outcome = Result<Result<Option<jsonrpc::Response>, tower_lsp::ExitedError>, String>;

fn respond(server: &Server, method: &str, id: Option<&Value>, outcome: Outcome) {
    let body = match (outcome, id) {
        (Ok(Ok(Some(response))), id) => match response.error() {
            // tower-lsp's errors contain neither the method nor a kind.
            Some(error) => {
                let code = error.code.code();
                let kind = match code {
                    METHOD_NOT_FOUND => ErrorKind::Unsupported,
                    -32002 => ErrorKind::NotInitialized,
                    -32800 => ErrorKind::Cancelled,
                    INVALID_REQUEST | -32602 => ErrorKind::InvalidParams,
                    _ => ErrorKind::Internal,
                };
                let message = format!("{method}: {}", error.message);
                protocol_error(id.unwrap_or(&Value::Null), code, kind, &message)
            }
            None => serde_json::to_vec(&response).unwrap_or_default(),
        },
        (Ok(Ok(None)), _) | (Ok(Err(_)), None) => return,
        (Ok(Err(_exited)), Some(id)) => {
            let message = format!("{method}: the server is exiting");
            protocol_error(id, INVALID_REQUEST, ErrorKind::InvalidParams, &message)
        }
        (Err(why), id) => {
            tracing::error!(method, why, "a handler panicked");
            let Some(id) = id else { return };
            let message = format!(
                "{method}: internal error: {why}. This is a bug; the server is still running."
            );
            error_body(id, &Error::new(ErrorKind::Internal, message))
        }
    };
    server.client().send(body);
}

fn to_id(id: &Value) -> Option<jsonrpc::Id> {
    match id {
        Value::String(text) => Some(jsonrpc::Id::String(text.clone())),
        Value::Number(number) => number.as_i64().map(jsonrpc::Id::Number),
        _ => None,
    }
}

/// Turns a panic of the future into an error.
struct CatchPanic<F>(F);

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = Pin::new(&mut self.0);
        match catch_unwind(AssertUnwindSafe(|| inner.poll(context))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic_text(&*panic).to_owned())),
        }
    }
}
