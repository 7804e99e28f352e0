//! Runs requests off the reader thread: queued, cancellable, isolated from panics, and
//! answered exactly once.
//!
//! A request is *in flight* from [`Scheduler::register`] until it is claimed: by its job
//! when that ends, or by a cancellation (`$/cancelRequest`, or the token of its
//! progress). The claimant answers; the other one does nothing. State changes that depend
//! on delivery (output marked as read) are [`OnDelivered`] callbacks, which run only if
//! the job claims the request. A cancelled request therefore changes nothing.
//!
//! Read-only requests run in the thread pool. Requests that name a task run on the task
//! queue, one at a time. Requests that change workspace roots or their checkpoints wait
//! in the queue of each root ([`RootQueues`]): one writer per root, in arrival order. A
//! job that also concerns a conversation enters both kinds of queue on arrival
//! ([`TaskOrdering`]).
//!
//! A job starts when the output has room for its response ([`Client::wait_for_room`]).
//!
//! Data a job has [`UnsyncedWrite`] is synced before the request is answered. One thread syncs
//! for all jobs: while it waits for the disk, later jobs write, and the next sync covers
//! them together.

pub mod queue_rule;
pub mod root_queues;

use std::{
    any::Any,
    collections::{HashMap, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex,
        mpsc::{self, Sender},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use sightline_protocol::{
    error::{ErrorData, ErrorKind},
    files::ProgressToken,
};
use sightline_workspace::{cancel::Cancel, error::Error, escape, limits, storage::UnsyncedWrite};

use crate::{
    client::{Client, OutgoingMessage},
    mutex::lock,
    response_body::ResponseBody,
    scheduler::root_queues::{Job, RootQueues, Ticket},
};

/// Where a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// In the thread pool, concurrently: the job only reads.
    Pool,
    /// One at a time, in arrival order: the job uses a task's records.
    Tasks,
    /// After earlier jobs that change the same workspace roots.
    Roots {
        /// Canonical paths of the roots it changes.
        roots: Vec<PathBuf>,
        /// Its order relative to the task queue.
        tasks: TaskOrdering,
    },
}

/// Order of a root job relative to the task queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOrdering {
    /// Independent of task requests.
    Unordered,
    /// Runs after earlier task requests, because it reads their results.
    AfterTasks,
    /// Changes a conversation: later task requests wait until it ends.
    BlocksTasks,
}

/// Result of a job.
pub enum Step {
    /// The request is answered.
    Done(Response),
    /// The request continues on another queue, which answers it.
    Then(Queue, Continuation),
}

/// The next part of a job.
pub type Continuation = Box<dyn FnOnce() -> Result<Step, Error> + Send>;

/// Runs once it is certain that the response is sent.
pub type OnDelivered = Box<dyn FnOnce() + Send>;

/// The response of a job.
pub struct Response {
    /// The result.
    pub result: ResponseBody,
    /// Callbacks to run when the response is sent.
    pub commits: Vec<OnDelivered>,
    /// Data to sync before the response is sent.
    pub written: Vec<UnsyncedWrite>,
}

/// A response that waits for the disk.
struct PendingFlush {
    scheduler: Arc<Scheduler>,
    method: &'static str,
    id: Value,
    done: Response,
}

/// A request that has not been answered.
struct InFlight {
    cancel: Cancel,
    /// Token of its progress reports.
    token: Option<ProgressToken>,
}

/// Additional time at the end of a session for jobs that are storing data.
const STORING_GRACE: Duration = Duration::from_secs(2);

/// The requests in flight and the threads that work on them.
pub struct Scheduler {
    client: Arc<Client>,
    pool: tokio::runtime::Handle,
    tasks: Mutex<Option<Sender<Job>>>,
    roots: Mutex<RootQueues>,
    flusher: Mutex<Option<Sender<PendingFlush>>>,
    in_flight: Mutex<HashMap<String, InFlight>>,
    /// Queued and running jobs, including those of cancelled requests.
    active: Mutex<usize>,
    idle: Condvar,
}

impl Scheduler {
    /// Sends responses to `client` and uses the blocking threads of `pool`.
    pub fn new(client: Arc<Client>, pool: tokio::runtime::Handle) -> Self {
        Self {
            client,
            pool,
            tasks: Mutex::default(),
            roots: Mutex::default(),
            flusher: Mutex::default(),
            in_flight: Mutex::default(),
            active: Mutex::new(0),
            idle: Condvar::new(),
        }
    }

    /// Registers a request. Answers it with an error and returns `None` if its id is
    /// already in flight or the limit of requests in flight is reached.
    pub fn register(&self, id: &Value, token: Option<&ProgressToken>) -> Option<Cancel> {
        let refused = {
            let mut in_flight = lock(&self.in_flight);
            let count = in_flight.len();
            match in_flight.entry(id.to_string()) {
                Entry::Occupied(_) => {
                    let why = format!("a request with id {id} is already in flight");
                    protocol_error(id, INVALID_REQUEST, ErrorKind::InvalidParams, &why)
                }
                Entry::Vacant(_) if count >= limits::MAX_IN_FLIGHT => {
                    let why =
                        format!("{count} requests are in flight, which is the limit; retry later");
                    error_body(id, &Error::new(ErrorKind::Busy, why))
                }
                Entry::Vacant(free) => {
                    let cancel = Cancel::default();
                    free.insert(InFlight {
                        cancel: cancel.clone(),
                        token: token.cloned(),
                    });
                    return Some(cancel);
                }
            }
        };
        self.client.send(refused);
        None
    }

    /// Schedules `work` and answers request `id` with its result. Returns a job that
    /// needs no queue, so that the caller can run it on its own thread or [`Self::spawn`]
    /// it.
    #[must_use]
    pub fn run(
        self: &Arc<Self>,
        id: Value,
        queue: Queue,
        method: &'static str,
        work: impl FnOnce() -> Result<Step, Error> + Send + 'static,
    ) -> Option<Job> {
        let scheduler = self.clone();
        self.enqueue_job(queue, move || {
            scheduler.client.wait_for_room();
            let started = Instant::now();
            let outcome = catch_panic(method, work);
            tracing::debug!(method, %id, ok = outcome.is_ok(), elapsed = ?started.elapsed(), "done");
            match outcome {
                Ok(Step::Then(queue, next)) => {
                    let rest = scheduler.run(id, queue, method, next);
                    rest.into_iter().for_each(|rest| scheduler.spawn(rest));
                }
                Ok(Step::Done(done)) if !done.written.is_empty() => {
                    scheduler.answer_when_durable(method, id, done);
                }
                Ok(Step::Done(done)) => scheduler.answer(method, &id, Ok(done)),
                Err(error) => scheduler.answer(method, &id, Err(error)),
            }
        })
    }

    /// Answers after syncing the written data.
    fn answer_when_durable(self: Arc<Self>, method: &'static str, id: Value, done: Response) {
        self.begin_job();
        let waiting = PendingFlush {
            scheduler: self.clone(),
            method,
            id,
            done,
        };
        let mut flusher = lock(&self.flusher);
        if flusher.is_none() {
            *flusher = start_thread("disk", |waiting: mpsc::Receiver<PendingFlush>| {
                while let Ok(first) = waiting.recv() {
                    sync_and_answer(std::iter::once(first).chain(waiting.try_iter()).collect());
                }
            });
        }
        let unsent = match &*flusher {
            Some(sender) => sender.send(waiting).err().map(|unsent| unsent.0),
            None => Some(waiting),
        };
        // Falls back to this thread.
        if let Some(waiting) = unsent {
            *flusher = None;
            drop(flusher);
            sync_and_answer(vec![waiting]);
        }
    }

    /// Schedules `work` without a request.
    pub fn run_in_background(
        self: &Arc<Self>,
        queue: Queue,
        name: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) {
        let work = self.enqueue_job(queue, background(name, work));
        work.into_iter().for_each(|work| self.spawn(work));
    }

    /// Runs `work` if no job uses the root. It is cancelled when one arrives.
    pub fn run_idle(
        self: &Arc<Self>,
        root: &Path,
        name: &'static str,
        work: impl FnOnce(&Cancel) + Send + 'static,
    ) {
        let cancel = Cancel::default();
        let entered = lock(&self.roots).enter_idle(root, cancel.clone());
        let Some(ticket) = entered else { return };
        let work = background(name, move || work(&cancel));
        self.enqueue_on_roots(ticket, self.count_job(work), None);
    }

    /// Handles `$/cancelRequest`: cancels the job and answers at once. Returns false if
    /// the request is not in flight.
    pub fn cancel(&self, id: &Value) -> bool {
        let found = lock(&self.in_flight)
            .get(&id.to_string())
            .map(|request| request.cancel.clone());
        let Some(cancel) = found else {
            return false;
        };
        // A request that has started to store data is answered by its job.
        if cancel.cancel() && self.claim(id).is_some() {
            self.client.send(error_body(id, &Error::cancelled()));
        }
        true
    }

    /// Handles `window/workDoneProgress/cancel`: like [`Self::cancel`], by progress
    /// token.
    pub fn cancel_progress(&self, token: &ProgressToken) {
        let named: Vec<Value> = lock(&self.in_flight)
            .iter()
            .filter(|(_, request)| request.token.as_ref() == Some(token))
            .filter_map(|(id, _)| serde_json::from_str(id).ok())
            .collect();
        for id in named {
            self.cancel(&id);
        }
    }

    /// Waits up to `grace` for all jobs to end, then cancels the rest and waits a little
    /// longer for those that are storing data.
    pub fn shut_down(&self, grace: Duration) {
        lock(&self.roots).stop_idle();
        if self.wait_until_idle(grace) {
            return;
        }
        for request in lock(&self.in_flight).values() {
            request.cancel.cancel();
        }
        self.wait_until_idle(STORING_GRACE);
    }

    /// Returns whether all jobs ended within `grace`.
    fn wait_until_idle(&self, grace: Duration) -> bool {
        let deadline = Instant::now() + grace;
        let mut active = lock(&self.active);
        while *active > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            active = self
                .idle
                .wait_timeout(active, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        true
    }

    /// Answers a request unless it has been claimed.
    fn answer(&self, method: &str, id: &Value, outcome: Result<Response, Error>) {
        if self.claim(id).is_none() {
            return;
        }
        self.client.send(match outcome {
            Ok(done) => {
                for commit in done.commits {
                    let _ = catch_panic(method, || {
                        commit();
                        Ok(())
                    });
                }
                OutgoingMessage::response(id, done.result)
            }
            Err(error) => error_body(id, &error).into(),
        });
    }

    fn claim(&self, id: &Value) -> Option<InFlight> {
        lock(&self.in_flight).remove(&id.to_string())
    }

    /// Enqueues a job. Returns it if it belongs to the pool.
    fn enqueue_job(
        self: &Arc<Self>,
        queue: Queue,
        job: impl FnOnce() + Send + 'static,
    ) -> Option<Job> {
        let job = self.count_job(job);
        match queue {
            Queue::Pool => return Some(job),
            Queue::Tasks => self.enqueue_task(job),
            Queue::Roots { roots, tasks } => {
                let held = tasks != TaskOrdering::Unordered;
                let ticket = lock(&self.roots).enter(roots, held);
                let release = held.then(|| self.join_task_queue(ticket, tasks));
                self.enqueue_on_roots(ticket, job, release);
            }
        }
        None
    }

    /// Runs a job in the pool.
    pub fn spawn(&self, work: Job) {
        let work = Arc::new(Mutex::new(Some(work)));
        let here = work.clone();
        let take = move || lock(&work).take();
        let spawned = catch_unwind(AssertUnwindSafe(|| {
            self.pool
                .spawn_blocking(move || take().into_iter().for_each(|work| work()))
        }));
        // `spawn_blocking` panics when the system cannot create a thread.
        if spawned.is_err() {
            tracing::error!("cannot start a thread");
            let work = lock(&here).take();
            work.into_iter().for_each(|work| work());
        }
    }

    /// Counts a job as active until it has ended.
    fn count_job(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) -> Job {
        self.begin_job();
        let scheduler = self.clone();
        Box::new(move || {
            let ended = catch_unwind(AssertUnwindSafe(job));
            scheduler.end_job();
            if let Err(panic) = ended {
                tracing::error!(why = panic_text(&*panic), "a job panicked");
            }
        })
    }

    /// Enters the task queue on behalf of a root job. Dropping the returned sender lets
    /// later task requests continue.
    fn join_task_queue(self: &Arc<Self>, ticket: Ticket, turn: TaskOrdering) -> Sender<()> {
        let (ends, ended) = mpsc::channel::<()>();
        let scheduler = self.clone();
        self.enqueue_task(Box::new(move || {
            let work = lock(&scheduler.roots).release(ticket);
            work.into_iter().for_each(|work| scheduler.spawn(work));
            if turn == TaskOrdering::BlocksTasks {
                let _ = ended.recv();
            }
        }));
        ends
    }

    /// Sets the job of a root queue entry.
    fn enqueue_on_roots(self: &Arc<Self>, ticket: Ticket, job: Job, ends: Option<Sender<()>>) {
        let scheduler = self.clone();
        let work: Job = Box::new(move || {
            job();
            drop(ends);
            let works = lock(&scheduler.roots).leave(ticket);
            works.into_iter().for_each(|work| scheduler.spawn(work));
        });
        let work = lock(&self.roots).set_work(ticket, work);
        work.into_iter().for_each(|work| self.spawn(work));
    }

    fn begin_job(&self) {
        *lock(&self.active) += 1;
    }

    fn end_job(&self) {
        *lock(&self.active) -= 1;
        self.idle.notify_all();
    }

    fn enqueue_task(&self, job: Job) {
        let mut tasks = lock(&self.tasks);
        if tasks.is_none() {
            *tasks = start_thread("tasks", |scheduler: mpsc::Receiver<Job>| {
                scheduler.into_iter().for_each(|job| job());
            });
        }
        let unsent = match &*tasks {
            Some(sender) => sender.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        // Falls back to the pool, which does not keep the order.
        if let Some(job) = unsent {
            *tasks = None;
            drop(self.pool.spawn_blocking(job));
        }
    }
}

/// Work without a request; a panic is logged.
fn background(name: &'static str, work: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send {
    move || {
        let _ = catch_panic(name, || {
            work();
            Ok(())
        });
    }
}

/// Starts a worker thread. Returns `None` if the system cannot create one.
fn start_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(mpsc::Receiver<T>) + Send + 'static,
) -> Option<Sender<T>> {
    let (sender, receiver) = mpsc::channel();
    let started = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(receiver));
    match started {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::error!(name, %error, "cannot start a thread");
            None
        }
    }
}

/// Syncs each file once, then answers all requests of the batch.
fn sync_and_answer(batch: Vec<PendingFlush>) {
    let mut flushed: Vec<(UnsyncedWrite, Result<(), Error>)> = Vec::new();
    for waiting in batch {
        let durable = waiting.done.written.iter().try_for_each(|written| {
            // The whole batch was written before the first sync.
            let known = flushed
                .iter()
                .find(|(other, _)| other.is_same_file(written));
            if let Some((_, outcome)) = known {
                return outcome.clone();
            }
            let outcome = catch_panic(waiting.method, || written.sync());
            flushed.push((written.clone(), outcome.clone()));
            outcome
        });
        let outcome = durable.map(|()| waiting.done);
        waiting
            .scheduler
            .answer(waiting.method, &waiting.id, outcome);
        waiting.scheduler.end_job();
    }
}

/// Runs `work`. A panic becomes an `internal` error that names the method.
pub(crate) fn catch_panic<T>(
    name: &str,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic_text(&*panic);
        tracing::error!(name, why, "a handler panicked");
        Err(Error::new(
            ErrorKind::Internal,
            format!("{name}: internal error: {why}. This is a bug; the server is still running."),
        ))
    })
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// JSON-RPC: invalid request.
pub(crate) const INVALID_REQUEST: i64 = -32600;

/// Builds an error response.
pub(crate) fn error_body(id: &Value, error: &Error) -> Vec<u8> {
    let data = ErrorData {
        kind: error.kind,
        path: error.path.clone(),
        rule: error.rule.clone(),
    };
    body_of_error(id, error.kind.code(), &error.message, &data)
}

/// Builds an error response with a JSON-RPC error code.
pub(crate) fn protocol_error(id: &Value, code: i64, kind: ErrorKind, message: &str) -> Vec<u8> {
    let data = ErrorData {
        kind,
        path: None,
        rule: None,
    };
    body_of_error(id, code, message, &data)
}

fn body_of_error(id: &Value, code: i64, message: &str, data: &ErrorData) -> Vec<u8> {
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
