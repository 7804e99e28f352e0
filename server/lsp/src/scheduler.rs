//! Job for one request: beside the reading of others, cancellable, panic-proof, and
//! answered exactly once.
//!
//! A request is *in flight* from [`Scheduler::register`] until somebody claims it to
//! answer it: the job when it ends, or `$/cancelRequest` (or the same by the token
//! of its progress). Whoever claims it
//! answers; the other one finds nothing and stays background. What an answer is to
//! change (output marked as read) is a [`OnDelivered`], made only by a job that has
//! claimed its request: a cancelled request changes nothing.
//!
//! Requests that only read run in the pool. Those that name a task run on the
//! task queue, one after the other. Those that change a workspace root, or its
//! checkpoints, take a enqueue_job in the queue of each root they change ([`RootQueues`]):
//! one writer per root, in order of arrival, and nothing else waits for it. A
//! job that needs both, because it is also about a conversation, takes its enqueue_job
//! in both when it arrives ([`TaskOrdering`]).
//!
//! A job begins when there is room for its answer ([`Client::wait_for_room`]).
//!
//! What a job has [`Written`] reaches the disk before the request is answered.
//! One thread sees to that for all of them: while it waits for the disk, later
//! jobs write, and the next wait covers them together.

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
use sightline_core::{cancel::Cancel, error::Error, limits, line, storage::Written};
use sightline_protocol::{
    error::{ErrorData, ErrorKind},
    files::ProgressToken,
};

use crate::{
    client::{Client, OutgoingMessage},
    response_body::ResponseBody,
    scheduler::root_queues::{Job, RootQueues, Ticket},
    sync::lock,
};

/// Where a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// In the pool, beside others: it only reads.
    Pool,
    /// One after the other, in the order of arrival: it touches a task's records.
    Tasks,
    /// After those before it that change the same workspace roots.
    Roots {
        /// The roots it changes, by their path without links.
        roots: Vec<PathBuf>,
        /// What it has to do with tasks.
        tasks: TaskOrdering,
    },
}

/// What a job of a root has to do with the task queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOrdering {
    /// Nothing.
    Unordered,
    /// It comes after the task requests before it: it looks at what they wrote.
    AfterTasks,
    /// It changes a conversation: task requests after it wait for its end.
    BlocksTasks,
}

/// What a job came to.
pub enum Step {
    /// Its end.
    Done(Response),
    /// It goes on elsewhere; the request is answered there.
    Then(Queue, Continuation),
}

/// The rest of a job.
pub type Continuation = Box<dyn FnOnce() -> Result<Step, Error> + Send>;

/// What is done once it is certain that the client gets the answer.
pub type OnDelivered = Box<dyn FnOnce() + Send>;

/// What a job gives back.
pub struct Response {
    /// The answer.
    pub result: ResponseBody,
    /// What is done when the client gets it.
    pub commits: Vec<OnDelivered>,
    /// What must be on the disk before that.
    pub written: Vec<Written>,
}

/// A job that is done but for the disk.
struct PendingFlush {
    scheduler: Arc<Scheduler>,
    method: &'static str,
    id: Value,
    done: Response,
}

/// A request nobody has answered.
struct InFlight {
    cancel: Cancel,
    /// Its progress is reported under this token.
    token: Option<ProgressToken>,
}

/// How long what is being stored is waited for at the end.
const STORING_GRACE: Duration = Duration::from_secs(2);

/// The requests in flight and the threads that work on them.
pub struct Scheduler {
    client: Arc<Client>,
    pool: tokio::runtime::Handle,
    tasks: Mutex<Option<Sender<Job>>>,
    roots: Mutex<RootQueues>,
    flusher: Mutex<Option<Sender<PendingFlush>>>,
    in_flight: Mutex<HashMap<String, InFlight>>,
    /// Scheduler that wait or run, also of requests that were cancelled.
    active: Mutex<usize>,
    idle: Condvar,
}

impl Scheduler {
    /// Scheduler whose answers go to `client` and whose pool is the blocking
    /// threads of `pool`.
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

    /// Takes a request in. `None`, and it is answered, when its id is in
    /// flight already or too many are.
    pub fn register(&self, id: &Value, token: Option<&ProgressToken>) -> Option<Cancel> {
        let refused = {
            let mut in_flight = lock(&self.in_flight);
            let count = in_flight.len();
            match in_flight.entry(id.to_string()) {
                Entry::Occupied(_) => {
                    let why = format!("a request with id {id} is already being worked on");
                    protocol_error(id, INVALID_REQUEST, ErrorKind::InvalidParams, &why)
                }
                Entry::Vacant(_) if count >= limits::MAX_IN_FLIGHT => {
                    let why = format!(
                        "{count} requests wait already, which is the limit; send this one again later"
                    );
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

    /// Runs `work` and answers request `id` with what it returns. What the pool
    /// would run now is given back: whoever has a thread to spare runs it there,
    /// others [`Self::spawn`] it.
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
            let outcome = guarded(method, work);
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

    /// Answers once what was written is on the disk.
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
                    flush(std::iter::once(first).chain(waiting.try_iter()).collect());
                }
            });
        }
        let unsent = match &*flusher {
            Some(sender) => sender.send(waiting).err().map(|unsent| unsent.0),
            None => Some(waiting),
        };
        // Without that thread this one waits.
        if let Some(waiting) = unsent {
            *flusher = None;
            drop(flusher);
            flush(vec![waiting]);
        }
    }

    /// Runs `work` on a queue; nobody is answered.
    pub fn run_in_background(
        self: &Arc<Self>,
        queue: Queue,
        name: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) {
        let work = self.enqueue_job(queue, background(name, work));
        work.into_iter().for_each(|work| self.spawn(work));
    }

    /// Runs `work` if nobody changes that root now; it is told to stop when
    /// somebody comes who wants to.
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

    /// `$/cancelRequest`: answers at once, and tells the work to stop. False
    /// when no such request is in flight here.
    pub fn cancel(&self, id: &Value) -> bool {
        let found = lock(&self.in_flight)
            .get(&id.to_string())
            .map(|request| request.cancel.clone());
        let Some(cancel) = found else {
            return false;
        };
        // What is being stored is answered as it comes out.
        if cancel.cancel() && self.claim(id).is_some() {
            self.client.send(error_body(id, &Error::cancelled()));
        }
        true
    }

    /// `window/workDoneProgress/cancel`: as [`Self::cancel`], for the request
    /// whose progress is reported under that token.
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

    /// Waits until every job has ended, `grace` at most; then tells what is
    /// left to stop, and waits a little for what can't: it is being stored.
    pub fn finish(&self, grace: Duration) {
        lock(&self.roots).stop_idle();
        if self.wait_until_idle(grace) {
            return;
        }
        for request in lock(&self.in_flight).values() {
            request.cancel.cancel();
        }
        self.wait_until_idle(STORING_GRACE);
    }

    /// Have all jobs ended within that time?
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

    /// Answers a request that nobody has claimed.
    fn answer(&self, method: &str, id: &Value, outcome: Result<Response, Error>) {
        if self.claim(id).is_none() {
            return;
        }
        self.client.send(match outcome {
            Ok(done) => {
                for commit in done.commits {
                    let _ = guarded(method, || {
                        commit();
                        Ok(())
                    });
                }
                OutgoingMessage::of_result(id, done.result)
            }
            Err(error) => error_body(id, &error).into(),
        });
    }

    fn claim(&self, id: &Value) -> Option<InFlight> {
        lock(&self.in_flight).remove(&id.to_string())
    }

    /// Gives a job its enqueue_job; one of the pool comes back.
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

    /// Runs work in the pool.
    pub fn spawn(&self, work: Job) {
        let work = Arc::new(Mutex::new(Some(work)));
        let here = work.clone();
        let take = move || lock(&work).take();
        let spawned = catch_unwind(AssertUnwindSafe(|| {
            self.pool
                .spawn_blocking(move || take().into_iter().for_each(|work| work()))
        }));
        // It panics when the system has no thread for it.
        if spawned.is_err() {
            tracing::error!("no thread to be had");
            let work = lock(&here).take();
            work.into_iter().for_each(|work| work());
        }
    }

    /// Counts a job from now until it has ended.
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

    /// Stands in the task queue for a job of a root. The job ends the wait of
    /// the task requests behind it by dropping what is given.
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

    /// Gives a enqueue_job in the queues of roots its work.
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
        // Without that thread the pool does it, though not in order.
        if let Some(job) = unsent {
            *tasks = None;
            drop(self.pool.spawn_blocking(job));
        }
    }
}

/// Job that nobody waits for: when it panics, the log says so.
fn background(name: &'static str, work: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send {
    move || {
        let _ = guarded(name, || {
            work();
            Ok(())
        });
    }
}

/// A thread that works on what it is sent; `None` when the system has no more.
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
            tracing::error!(name, %error, "no thread to be had");
            None
        }
    }
}

/// Waits for the disk once for each file, then answers all.
fn flush(batch: Vec<PendingFlush>) {
    let mut flushed: Vec<(Written, Result<(), Error>)> = Vec::new();
    for waiting in batch {
        let durable = waiting.done.written.iter().try_for_each(|written| {
            // All of the batch was written before the first wait.
            let known = flushed
                .iter()
                .find(|(other, _)| other.is_same_file(written));
            if let Some((_, outcome)) = known {
                return outcome.clone();
            }
            let outcome = guarded(waiting.method, || written.sync());
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

/// Runs `work`; a panic becomes an `internal` error that names what panicked.
pub(crate) fn guarded<T>(name: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic_text(&*panic);
        tracing::error!(name, why, "a handler panicked");
        Err(Error::new(
            ErrorKind::Internal,
            format!("{name}: a defect of the server ({why}); the server goes on"),
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

/// JSON-RPC's code for a message that is no request at this point.
pub(crate) const INVALID_REQUEST: i64 = -32600;

/// The body of an error answer.
pub(crate) fn error_body(id: &Value, error: &Error) -> Vec<u8> {
    let data = ErrorData {
        kind: error.kind,
        path: error.path.clone(),
        rule: error.rule.clone(),
    };
    body_of_error(id, error.kind.code(), &error.message, &data)
}

/// The body of an error answer whose code is JSON-RPC's, not the kind's.
pub(crate) fn protocol_error(id: &Value, code: i64, kind: ErrorKind, message: &str) -> Vec<u8> {
    let data = ErrorData {
        kind,
        path: None,
        rule: None,
    };
    body_of_error(id, code, message, &data)
}

fn body_of_error(id: &Value, code: i64, message: &str, data: &ErrorData) -> Vec<u8> {
    // It may name a value of any length, and hold what it names.
    let message = &*line::printable(message);
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
