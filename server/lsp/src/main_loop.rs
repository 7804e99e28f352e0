//! The main loop: one thread applies notifications to the session, dispatches requests,
//! and sends responses.
//!
//! The reader thread ([`reader`]) sends messages in arrival order. The loop takes a snapshot
//! of the session for each request and starts it where [`sightline_engine::dispatch`] says:
//! on the loop itself, or in the thread pool once earlier requests with the same keys have
//! ended. A request is in flight until the loop answers it: when its job is done, or when
//! it is cancelled (`$/cancelRequest`, or the token of its progress). Only the loop
//! removes requests from the map, so each is answered once.
//!
//! Only `exit` and the end of input end the server.

mod events;
mod run_call;

use std::{
    collections::HashMap,
    io::{PipeReader, PipeWriter},
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Sender, unbounded};
use parking_lot::Mutex;
use serde_json::{Value, value::RawValue};
use sightline_base::{cancel::Cancel, limits};
use sightline_engine::{
    client::Client,
    dispatch::{Call, Place, Scope},
    error::Error,
    error_response::{
        INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, catch_panic, error_body, protocol_error,
    },
    handlers::notifications,
    jobs::{Job, JobMessage, JobSender, Key, Keys},
    services::{FaultHook, Services},
    session::{Phase, Session, Snapshot},
    settings::config_file,
};
use sightline_ipc::{ConnectionWork, IpcServer, SocketRequest};
use sightline_local::{frame::BadFrame, process::parent_watch};
use sightline_protocol::{
    error::ErrorKind,
    method::{DidFocus, Notification},
};

use crate::{
    bridges::Bridges,
    connection::in_flight::InFlightRequests,
    connection::message::{InvalidMessage, Message},
    connection::reader::{self, Input},
    connection::writer::FrameWriter,
    document_sync::StandardMethods,
    editor_features::diagnostics::Diagnostics,
    execute_command::Origin,
    file_watcher,
    scheduler::{JobId, KeyedQueue},
};

use events::{End, Event, Events, TaskDone};
use run_call::{Answer, run_call};

/// Time for running jobs to finish after `exit` or the end of input.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(300);

/// Additional time at the end of a session for jobs that are storing data.
const STORING_GRACE: Duration = Duration::from_secs(2);

/// Options of [`serve`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Called before each handler. Tests use it to inject panics.
    pub fault: Option<FaultHook>,
    /// End when the parent process does, and on a termination signal while a bridge is open.
    pub watch_parent: bool,
    /// Use the user's configuration file.
    pub user_config: bool,
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
    let (ends, end) = unbounded();
    let (job_sender, jobs) = unbounded();
    let (socket_sender, sockets) = unbounded();
    let (done_sender, done) = unbounded();
    let output = Arc::new(FrameWriter::new(output));
    let client = Client::new(output.clone());
    let mut services = Services::new(client, JobSender::new(job_sender));
    services.fault = options.fault;
    let services = Arc::new(services);
    let bridges = Bridges::new(&services, file_watcher::start);
    let ipc_server = Arc::new(IpcServer::new(socket_sender.clone()));
    let writer = start_writer(output.clone(), ends.clone());
    if options.watch_parent {
        let of_parent = ends.clone();
        parent_watch::watch_parent(move || {
            let _ = of_parent.send(End::ParentGone);
        });
        bridges.end_on_signal(move || {
            let _ = ends.send(End::Signal);
        });
    }
    let user_config = options.user_config.then(config_file::user_file).flatten();
    let session = Session::new(user_config);
    let mut main_loop = MainLoop {
        standard: StandardMethods::new(
            &services,
            &bridges,
            &ipc_server,
            session,
            runtime.handle().clone(),
        ),
        services,
        bridges,
        output: output.clone(),
        diagnostics: Arc::default(),
        runtime: runtime.handle().clone(),
        in_flight: InFlightRequests::default(),
        queue: KeyedQueue::default(),
        idle_work: HashMap::new(),
        done: done_sender,
        socket_requests: socket_sender,
        events: Events {
            input: reader::start(input, output.clone()),
            done,
            jobs,
            sockets,
            config_files: None,
            end,
        },
    };
    let reason = main_loop.run();
    tracing::info!(?reason, "session ended");
    output.end_waits();
    ipc_server.close();
    main_loop.bridges.close();
    main_loop.shut_down();
    let is_orderly = main_loop.standard.session().phase == Phase::ShutDown;
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
        if output.write().is_err() {
            let _ = ends.send(End::OutputClosed);
            return;
        }
        let _ = done.send(());
    });
    finished
}

/// Where a job runs, and its work.
enum Work {
    /// In the thread pool. Returns the id and the response if it is a request of the client.
    Pool(Box<dyn FnOnce() -> Option<(Value, Answer)> + Send>),
    /// In the thread of a connection.
    Connection(mpsc::Sender<ConnectionWork>, ConnectionWork),
}

/// Receiver of a response.
enum ReplyTo {
    /// The client; the id of the request.
    Client(Value),
    /// A connection of the command line; the id of the request.
    Socket(Value, mpsc::Sender<ConnectionWork>),
}

struct MainLoop {
    services: Arc<Services>,
    bridges: Arc<Bridges>,
    output: Arc<FrameWriter>,
    /// The standard methods, and the session.
    standard: StandardMethods,
    runtime: tokio::runtime::Handle,
    in_flight: InFlightRequests,
    diagnostics: Arc<Diagnostics>,
    queue: KeyedQueue<Key, Work>,
    /// Work that is cancelled when another job needs its keys.
    idle_work: HashMap<JobId, (Keys, Cancel)>,
    done: Sender<TaskDone>,
    /// Sends a request of a socket again once the configuration files have been read.
    socket_requests: Sender<SocketRequest>,
    events: Events,
}

impl MainLoop {
    fn run(&mut self) -> End {
        loop {
            let event = self.events.next();
            if let Some(end) = self.handle_event(event) {
                return end;
            }
        }
    }

    /// Handles an event. Returns the reason if the session ends.
    fn handle_event(&mut self, event: Event) -> Option<End> {
        match event {
            Event::Input(Input::Message(message)) => return self.handle_message(message),
            Event::Input(Input::Invalid(InvalidMessage { code, message })) => {
                self.reject(&Value::Null, code, ErrorKind::InvalidParams, &message);
            }
            Event::Input(Input::BadFrame(bad)) => self.reject_frame(&bad),
            Event::Input(Input::End) => return Some(End::InputClosed),
            Event::TaskDone(done) => self.handle_done(done),
            Event::Job(JobMessage::Run(job)) => self.start_job(job),
            Event::Job(JobMessage::Later(after, work)) => {
                self.runtime.spawn(async move {
                    tokio::time::sleep(after).await;
                    work();
                });
            }
            Event::Job(JobMessage::RefreshDiagnostics) => {
                self.diagnostics.schedule(&self.services);
            }
            Event::Job(JobMessage::ConfigFiles(files)) => {
                self.standard.set_config_files(files);
            }
            Event::ConfigFiles(files) => {
                self.events.config_files = None;
                files.map(|files| self.standard.set_config_files(files));
            }
            Event::Socket(request) => self.handle_socket_request(request),
            Event::End(end) => return Some(end),
        }
        None
    }

    fn handle_message(&mut self, message: Message) -> Option<End> {
        match message {
            Message::Call { id, method, call } => {
                if self.accepts_request(&id, &method) {
                    self.handle_call(id, &method, call);
                }
            }
            Message::Request { id, method, params } => {
                if self.accepts_request(&id, &method) {
                    self.handle_standard(&method, Some(id), params);
                }
            }
            Message::Notification { method, params } => {
                return self.handle_notification(&method, params);
            }
            Message::Response { id, answer } => {
                let session = &mut self.standard.session();
                let client = &self.services.client;
                if !client.deliver_response(session, &id, answer) {
                    tracing::debug!(%id, "unexpected response");
                }
            }
        }
        None
    }

    /// Returns whether a request can be handled. Answers it if not.
    fn accepts_request(&self, id: &Value, method: &str) -> bool {
        let kind = ErrorKind::InvalidParams;
        if !(id.is_string() || id.is_i64()) {
            let message = format!("{method}: the id must be an integer or a string, not {id}");
            self.reject(&Value::Null, INVALID_REQUEST, kind, &message);
        } else if method == "exit" {
            let message = "exit is a notification; send it without an id";
            self.reject(id, INVALID_REQUEST, kind, message);
        } else if method.starts_with("$/") {
            let message = format!("unknown request {method}");
            self.reject(id, METHOD_NOT_FOUND, ErrorKind::Unsupported, &message);
        } else {
            return true;
        }
        false
    }

    fn phase(&self) -> Phase {
        self.standard.session().phase
    }

    fn snapshot(&self) -> Snapshot {
        self.standard.session().snapshot()
    }

    /// Handles a request of our own.
    fn handle_call(&mut self, id: Value, method: &str, call: Result<(Call, Origin), Error>) {
        let client = &self.services.client;
        match self.phase() {
            Phase::Running => {}
            Phase::Starting => {
                let why = format!("{method}: send `initialize` first");
                let error = Error::new(ErrorKind::NotInitialized, why);
                return client.send(error_body(&id, &error));
            }
            Phase::ShutDown => {
                let message = format!("{method}: the server has been shut down");
                let kind = ErrorKind::InvalidParams;
                return self.reject(&id, INVALID_REQUEST, kind, &message);
            }
        }
        let (call, origin) = match call {
            Ok(parsed) => parsed,
            Err(error) => return client.send(error_body(&id, &error)),
        };
        let cancel = match self.in_flight.insert(&id, call.token.clone()) {
            Ok(cancel) => cancel,
            Err(refused) => return client.send(refused),
        };
        self.start_call(call, origin, cancel, ReplyTo::Client(id));
    }

    fn handle_socket_request(&mut self, mut request: SocketRequest) {
        if self.phase() != Phase::Running {
            let why = format!("{}: the server is not running", request.call.method);
            let error = Error::new(ErrorKind::NotInitialized, why);
            let body = error_body(&request.id, &error);
            let _ = request.connection.send(Box::new(|| Some(body)));
            return;
        }
        // Agents ask over the socket. Not every editor's server watches the files.
        let files = request.config_files.take();
        if !files.is_some_and(|files| self.standard.set_config_files(files)) {
            let read = self.standard.config_reader();
            let requests = self.socket_requests.clone();
            let read_first = move |mut request: SocketRequest| {
                request.config_files = Some(Arc::new(read()));
                let _ = requests.send(request);
                None
            };
            let connection = request.connection.clone();
            let _ = connection.send(Box::new(move || read_first(request)));
            return;
        }
        let reply = ReplyTo::Socket(request.id, request.connection);
        self.start_call(request.call, Origin::Socket, Cancel::default(), reply);
    }

    fn place(&self, call: &Call, snapshot: &Snapshot) -> Place {
        call.place(&Scope {
            snapshot,
            checkpoints: &self.services.checkpoints,
        })
    }

    /// Takes a snapshot of the session and runs the request where its route says.
    fn start_call(&mut self, call: Call, origin: Origin, cancel: Cancel, reply: ReplyTo) {
        let mut snapshot = self.snapshot();
        let mut place = self.place(&call, &snapshot);
        // A checkpoint of a folder that was reached by an old link would lack the work in the new one.
        if place.uses_root() && self.standard.resolve_roots_again() {
            snapshot = self.snapshot();
            place = self.place(&call, &snapshot);
        }
        let services = self.services.clone();
        let run = move |id: &Value| run_call(&services, call, origin, snapshot, cancel, id);
        let work = match (reply, &place) {
            (ReplyTo::Client(id), Place::Inline) => {
                let answer = run(&id);
                return self.answer(&id, answer);
            }
            (ReplyTo::Client(id), _) => {
                let output = self.output.clone();
                Work::Pool(Box::new(move || {
                    // Ends with the session, too.
                    while !output.wait_for_room(Duration::MAX) {}
                    let answer = run(&id);
                    Some((id, answer))
                }))
            }
            (ReplyTo::Socket(id, connection), _) => {
                Work::Connection(connection, Box::new(move || Some(run(&id).body)))
            }
        };
        let keys = match place {
            Place::Inline | Place::Pool => Keys::new(),
            Place::Queue(keys) => keys,
        };
        self.push(keys, None, work);
    }

    /// Starts work without a request.
    fn start_job(&mut self, job: Job) {
        let Job {
            name,
            keys,
            is_idle_work,
            work,
        } = job;
        if is_idle_work && keys.iter().any(|(key, _)| !self.queue.is_free(key)) {
            return;
        }
        let cancel = Cancel::default();
        let raised = cancel.clone();
        let snapshot = self.snapshot();
        let work = move || {
            let _ = catch_panic(name, || {
                work(snapshot, &cancel);
                Ok(())
            });
            None
        };
        let work = Work::Pool(Box::new(work));
        self.push(keys, is_idle_work.then_some(raised), work);
    }

    fn push(&mut self, keys: Keys, idle_cancel: Option<Cancel>, work: Work) {
        for (idle_keys, cancel) in self.idle_work.values() {
            let is_needed = |(key, _): &(Key, _)| keys.iter().any(|(other, _)| other == key);
            if idle_keys.iter().any(is_needed) {
                cancel.cancel();
            }
        }
        let idle = idle_cancel.map(|cancel| (keys.clone(), cancel));
        let (job, work) = self.queue.push(keys, work);
        if let Some(idle) = idle {
            self.idle_work.insert(job, idle);
        }
        if let Some(work) = work {
            self.spawn(job, work);
        }
    }

    /// Runs a job.
    fn spawn(&self, job: JobId, work: Work) {
        let done = self.done.clone();
        let work = match work {
            Work::Pool(work) => work,
            Work::Connection(connection, work) => {
                let ended = TaskDone { job, answer: None };
                let sent = connection.send(Box::new(move || {
                    let body = work();
                    let _ = done.send(ended);
                    body
                }));
                if sent.is_err() {
                    // The thread of the connection has ended.
                    let _ = self.done.send(TaskDone { job, answer: None });
                }
                return;
            }
        };
        let run = move || {
            let answer = work();
            let _ = done.send(TaskDone { job, answer });
        };
        let run = Arc::new(Mutex::new(Some(run)));
        let here = run.clone();
        let take = move |run: &Mutex<Option<_>>| run.lock().take();
        // `spawn_blocking` panics when the system cannot create a thread.
        let spawned = catch_panic("a job", || {
            self.runtime
                .spawn_blocking(move || take(&run).into_iter().for_each(|run| run()));
            Ok(())
        });
        if spawned.is_err() {
            take(&here).into_iter().for_each(|run| run());
        }
    }

    fn handle_done(&mut self, done: TaskDone) {
        self.idle_work.remove(&done.job);
        if let Some((id, answer)) = done.answer {
            self.answer(&id, answer);
        }
        for (job, work) in self.queue.done(done.job) {
            self.spawn(job, work);
        }
    }

    /// Sends a response, unless the request has been cancelled.
    fn answer(&mut self, id: &Value, answer: Answer) {
        if !self.in_flight.remove(id) {
            return;
        }
        if let Some(on_delivered) = answer.on_delivered {
            on_delivered(&mut self.standard.session());
        }
        self.services.client.send(answer.body);
    }

    /// Handles a notification. Returns the reason if the session ends.
    fn handle_notification(&mut self, method: &str, params: Option<Box<RawValue>>) -> Option<End> {
        let field = |name: &str| {
            let params: Value = serde_json::from_str(params.as_ref()?.get()).ok()?;
            params.get(name).cloned()
        };
        match method {
            "exit" => return Some(End::Exit),
            "$/cancelRequest" => {
                let cancelled = field("id").and_then(|id| self.in_flight.cancel(&id));
                cancelled
                    .into_iter()
                    .for_each(|body| self.services.client.send(body));
            }
            "window/workDoneProgress/cancel" => {
                let token = field("token").and_then(|token| serde_json::from_value(token).ok());
                if let Some(token) = token {
                    for body in self.in_flight.cancel_progress(&token) {
                        self.services.client.send(body);
                    }
                }
            }
            _ if method.starts_with("$/") => {}
            _ if notifications::handles(method) => {
                let params = params.as_deref().map(RawValue::get);
                let session = &mut self.standard.session();
                let handled = catch_panic(method, || {
                    notifications::handle(&self.services, session, method, params)
                });
                if handled.is_err() {
                    tracing::warn!(method, "dropped: malformed params");
                } else if method == DidFocus::NAME {
                    self.standard.focused();
                }
            }
            _ => self.handle_standard(method, None, params),
        }
        None
    }

    fn handle_standard(&mut self, method: &str, id: Option<Value>, params: Option<Box<RawValue>>) {
        let params = params.as_deref().map(RawValue::get);
        if let Some(body) = self.standard.call(method, id.as_ref(), params) {
            self.services.client.send(body);
        }
        self.events.config_files = self.standard.take_config_read();
    }

    /// Waits for all jobs to end, then cancels the rest and waits a little longer for
    /// those that are storing data.
    fn shut_down(&mut self) {
        for (_, cancel) in self.idle_work.values() {
            cancel.cancel();
        }
        self.finish_jobs(SHUTDOWN_GRACE);
        self.in_flight.stop();
        self.finish_jobs(STORING_GRACE);
    }

    fn finish_jobs(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        while !self.queue.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.next_of_jobs(left) {
                Some(event) => drop(self.handle_event(event)),
                None => return,
            }
        }
    }

    fn reject_frame(&self, bad: &BadFrame) {
        match bad {
            BadFrame::Header(why) => {
                let message = format!("malformed message header: {why}");
                let kind = ErrorKind::InvalidParams;
                self.reject(&Value::Null, PARSE_ERROR, kind, &message);
            }
            BadFrame::TooLarge(bytes) => {
                let limit = limits::MAX_FRAME_BYTES;
                let why = format!("a message of {bytes} bytes exceeds the limit of {limit}");
                let error = Error::new(ErrorKind::TooLarge, why);
                self.services.client.send(error_body(&Value::Null, &error));
            }
        }
    }

    /// Sends a protocol error. The message may quote the client, so it is not logged.
    fn reject(&self, id: &Value, code: i64, kind: ErrorKind, message: &str) {
        tracing::warn!(code, "answered with a protocol error");
        let body = protocol_error(id, code, kind, message);
        self.services.client.send(body);
    }
}
