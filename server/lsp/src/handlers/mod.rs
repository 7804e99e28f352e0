//! The requests of the protocol.
//!
//! A handler is a function from params and a [`RequestContext`] to a result. It converts
//! wire types and calls the feature crates. It runs as a job of the [`crate::scheduler`],
//! on a snapshot of the session. A panic becomes an error response.

#![allow(
    clippy::missing_errors_doc,
    reason = "errors are documented in the method table"
)]

pub mod check_access;
mod checkpoint_context;
pub mod checkpoints;
pub mod compaction;
pub mod count_tokens;
pub mod environment_details;
pub mod list_files;
pub mod notifications;
pub mod read_file;
pub mod restore;
pub mod result_documents;
pub mod tasks;
pub mod tracking;
pub mod truncate_history;

use std::{cell::RefCell, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sightline_protocol::{
    compaction::{ApplyCompactionParams, PlanCompactionParams},
    conversation::{Message, TruncateHistoryParams},
    files::ProgressToken,
    method::{self, Request},
    task::AppendMessagesParams,
    tokens::CountTokensParams,
};
use sightline_workspace::{
    access::AccessView, cancel::Cancel, error::Error, storage::UnsyncedWrite,
};

use crate::{
    params_compat,
    progress::Progress,
    raw_message::{Params, RawMessage},
    response_body::ResponseBody,
    scheduler::{OnDelivered, Queue, Response, Step, queue_rule::QueueRule},
    session::Snapshot,
    shared_state::Server,
};

/// The context of one request.
pub struct RequestContext<'a> {
    /// The shared state, for effects that outlive the request.
    pub server: &'a Arc<Server>,
    /// The session when the request arrived.
    pub snapshot: Snapshot,
    /// Raised when the client cancels.
    pub cancel: Cancel,
    message: Option<Arc<RawMessage>>,
    token: Option<ProgressToken>,
    commits: RefCell<Vec<OnDelivered>>,
    written: RefCell<Vec<UnsyncedWrite>>,
    rest: RefCell<Option<(Queue, Stage)>>,
    summary: RefCell<Option<String>>,
}

/// The part of a request that runs on one queue.
pub type Stage = Box<dyn FnOnce(&RequestContext<'_>) -> HandlerResult + Send>;

/// Observes the outcome of a request.
pub type OnOutcome = Box<dyn FnOnce(&RequestContext<'_>, &HandlerResult) + Send>;

impl<'a> RequestContext<'a> {
    /// Creates the context of a request.
    pub fn new(server: &'a Arc<Server>, snapshot: Snapshot, cancel: Cancel) -> Self {
        Self {
            server,
            snapshot,
            cancel,
            message: None,
            token: None,
            commits: RefCell::default(),
            written: RefCell::default(),
            rest: RefCell::default(),
            summary: RefCell::default(),
        }
    }

    /// Sets the token for progress reports.
    #[must_use]
    pub fn with_progress_token(mut self, token: Option<ProgressToken>) -> Self {
        self.token = token;
        self
    }

    /// Sets the message that contains the request.
    #[must_use]
    pub fn with_message(mut self, message: Arc<RawMessage>) -> Self {
        self.message = Some(message);
        self
    }

    /// Begins progress, under the token of the params or of the request. `title` is shown
    /// to the user.
    pub fn progress(&self, token: Option<ProgressToken>, title: &str) -> Progress {
        Progress::begin(self.server, token.or_else(|| self.token.clone()), title)
    }

    /// Returns the current access rules.
    pub fn view(&self) -> AccessView {
        self.server.view(&self.snapshot)
    }

    /// Runs `commit` once it is certain that the response is sent.
    pub fn on_delivered(&self, commit: impl FnOnce() + Send + 'static) {
        self.commits.borrow_mut().push(Box::new(commit));
    }

    /// Delays the response until this data is synced.
    pub fn answer_when_durable(&self, written: UnsyncedWrite) {
        self.written.borrow_mut().push(written);
    }

    /// Continues the request with `rest` on another queue. The handler's own result is
    /// discarded.
    pub fn continue_on(
        &self,
        queue: Queue,
        rest: impl FnOnce(&RequestContext<'_>) -> HandlerResult + Send + 'static,
    ) {
        *self.rest.borrow_mut() = Some((queue, Box::new(rest)));
    }

    /// Sets a one-line summary of the result for the user.
    pub fn summarize(&self, summary: impl Into<String>) {
        *self.summary.borrow_mut() = Some(summary.into());
    }

    /// Returns the summary.
    pub fn summary(&self) -> Option<String> {
        self.summary.borrow().clone()
    }

    /// Runs a whole request on this thread. For callers without a scheduler.
    ///
    /// # Errors
    /// The request's errors.
    pub fn run_to_completion(self, handler: &'static Handler, params: String) -> HandlerResult {
        let part: Stage = Box::new(move |context| handler.run(context, &Params::unsplit(&params)));
        let mut step = self.step(part, Box::new(|_, _| ()))?;
        let done = loop {
            match step {
                Step::Done(done) => break done,
                Step::Then(_, next) => step = next()?,
            }
        };
        done.written.iter().try_for_each(UnsyncedWrite::sync)?;
        done.commits.into_iter().for_each(|commit| commit());
        Ok(done.result)
    }

    /// Runs one stage of a request. `on_outcome` is called after the last one.
    ///
    /// # Errors
    /// The request's errors.
    pub fn step(self, part: Stage, on_outcome: OnOutcome) -> Result<Step, Error> {
        self.cancel.check()?;
        let outcome = part(&self);
        if outcome.is_ok()
            && let Some((queue, rest)) = self.rest.take()
        {
            let (server, snapshot) = (self.server.clone(), self.snapshot);
            let (cancel, token) = (self.cancel, self.token);
            let next = move || {
                let context = RequestContext::new(&server, snapshot, cancel);
                context.with_progress_token(token).step(rest, on_outcome)
            };
            return Ok(Step::Then(queue, Box::new(next)));
        }
        on_outcome(&self, &outcome);
        Ok(Step::Done(Response {
            result: outcome?,
            commits: self.commits.into_inner(),
            written: self.written.into_inner(),
        }))
    }
}

/// The serialized result of a request.
pub type HandlerResult = Result<ResponseBody, Error>;

/// A request: how to queue and how to run it.
pub struct Handler {
    /// The method's name.
    pub name: &'static str,
    /// How it is queued.
    pub queue: QueueRule,
    /// The function that handles it.
    pub run: HandlerFn,
}

/// A handler function.
pub enum HandlerFn {
    /// Takes the params as text.
    Text(fn(&RequestContext<'_>, &str) -> HandlerResult),
    /// Takes params whose messages are extracted.
    Messages(fn(&RequestContext<'_>, &Params<'_>) -> HandlerResult),
}

impl Handler {
    /// Runs the request.
    ///
    /// # Errors
    /// The request's errors.
    pub fn run(&self, context: &RequestContext<'_>, params: &Params<'_>) -> HandlerResult {
        match self.run {
            HandlerFn::Text(run) => run(context, params.text()),
            HandlerFn::Messages(run) => run(context, params),
        }
    }
}

/// A row of the handler table: how params are parsed, the method, its queue rule, and its
/// function.
macro_rules! handler {
    ($read:ident, $method:ident, $queue:ident, $run:path) => {
        Handler {
            name: method::$method::NAME,
            queue: QueueRule::$queue,
            run: handler!($read, $method, $run),
        }
    };
    (text, $method:ident, $run:path) => {
        HandlerFn::Text($run)
    };
    (typed, $method:ident, $run:path) => {
        HandlerFn::Text(|context, params| typed::<method::$method>(context, params, $run))
    };
    (with_messages, $method:ident, $run:path) => {
        HandlerFn::Messages(|context, params| {
            with_messages::<method::$method>(context, params, $run)
        })
    };
}

#[rustfmt::skip]
const HANDLERS: &[Handler] = &[
    handler!(typed, EnvironmentDetails, ByTask, environment_details::run),
    handler!(text, CheckAccess, Pool, check_access::run),
    handler!(typed, ListFiles, Pool, list_files::run),
    handler!(typed, ReadFile, ByTask, read_file::run),
    handler!(typed, TrackFile, ByTask, tracking::track_file),
    handler!(typed, RecordModel, ByTask, tracking::record_model),
    handler!(typed, RecordEnvironment, ByTask, tracking::record_environment),
    handler!(typed, TaskContext, ByTask, tracking::task_context),
    handler!(with_messages, CountTokens, ByTask, count_tokens::run),
    handler!(with_messages, TruncateHistory, ByTask, truncate_history::truncate),
    handler!(typed, RollbackHistory, ByTask, truncate_history::rollback),
    handler!(typed, ClassifyError, Pool, truncate_history::classify_error),
    handler!(with_messages, AppendMessages, ByTask, tasks::append),
    handler!(typed, LoadTask, ByTask, tasks::load),
    handler!(typed, ListTasks, Tasks, tasks::list),
    handler!(typed, ResumeTask, Tasks, tasks::resume),
    handler!(typed, DeleteTask, ByTask, tasks::delete),
    handler!(with_messages, PlanCompaction, ByTask, compaction::plan),
    handler!(with_messages, ApplyCompaction, ByTask, compaction::apply),
    handler!(typed, CreateCheckpoint, Roots, checkpoints::create),
    handler!(typed, ListCheckpoints, Pool, checkpoints::list),
    handler!(typed, DiffCheckpoints, Pool, checkpoints::diff),
    handler!(typed, PreviewRestore, Pool, restore::preview),
    handler!(typed, RestoreCheckpoint, Roots, restore::restore),
    handler!(typed, UndoRestore, Roots, restore::undo),
    handler!(typed, CheckpointStats, Pool, checkpoints::stats),
    handler!(typed, PruneCheckpoints, Roots, checkpoints::prune),
    handler!(typed, VerifyCheckpoints, Pool, checkpoints::verify),
];

/// Returns the handler of a method.
pub fn method(name: &str) -> Option<&'static Handler> {
    HANDLERS.iter().find(|handler| handler.name == name)
}

/// Returns whether a method's params contain conversation messages.
pub fn takes_messages(name: &str) -> bool {
    method(name).is_some_and(|handler| matches!(handler.run, HandlerFn::Messages(_)))
}

/// Formats a method's name for people: `sightline/listFiles` becomes `sightline list
/// files`.
pub fn method_title(method: &str) -> String {
    let verb = method.rsplit('/').next().unwrap_or(method);
    let mut title = String::from("sightline ");
    for c in verb.chars() {
        if c.is_ascii_uppercase() {
            title.push(' ');
        }
        title.push(c.to_ascii_lowercase());
    }
    title
}

fn typed<M: Request>(
    context: &RequestContext<'_>,
    params: &str,
    run: fn(&RequestContext<'_>, M::Params) -> Result<M::Result, Error>,
) -> HandlerResult {
    to_body(M::NAME, &run(context, parse_params::<M>(params)?)?)
}

/// Params with conversation messages.
pub trait WithMessages {
    /// Removes and returns the messages.
    fn take_messages(&mut self) -> Option<Vec<Message>>;
}

impl WithMessages for CountTokensParams {
    fn take_messages(&mut self) -> Option<Vec<Message>> {
        Some(std::mem::take(&mut self.messages))
    }
}

impl WithMessages for AppendMessagesParams {
    fn take_messages(&mut self) -> Option<Vec<Message>> {
        Some(std::mem::take(&mut self.messages))
    }
}

impl WithMessages for PlanCompactionParams {
    fn take_messages(&mut self) -> Option<Vec<Message>> {
        self.messages.take()
    }
}

impl WithMessages for ApplyCompactionParams {
    fn take_messages(&mut self) -> Option<Vec<Message>> {
        self.messages.take()
    }
}

impl WithMessages for TruncateHistoryParams {
    fn take_messages(&mut self) -> Option<Vec<Message>> {
        self.messages.take()
    }
}

/// Like [`typed`], for params with messages. The messages are borrowed, and the result
/// may contain some of them.
fn with_messages<M: Request<Params: WithMessages>>(
    context: &RequestContext<'_>,
    params: &Params<'_>,
    run: fn(&RequestContext<'_>, M::Params, Option<&[&RawValue]>) -> HandlerResult,
) -> HandlerResult {
    if params.has_extracted_messages() {
        return run(
            context,
            parse_params::<M>(params.text())?,
            params.messages(),
        );
    }
    if let Ok(split) = Params::split(params.text()) {
        return run(context, parse_params::<M>(split.text())?, split.messages());
    }
    let mut params = parse_params::<M>(params.text())?;
    let messages = params.take_messages();
    let messages: Option<Vec<&RawValue>> = messages
        .as_ref()
        .map(|messages| messages.iter().map(|message| &*message.0).collect());
    run(context, params, messages.as_deref())
}

pub(crate) fn to_body(method: &str, result: &impl Serialize) -> HandlerResult {
    ResponseBody::serialize(result).map_err(|error| serialize_error(method, &error))
}

/// Like [`to_body`], for a result that borrows from the request.
fn to_body_borrowing(
    context: &RequestContext<'_>,
    method: &str,
    result: &impl Serialize,
) -> HandlerResult {
    let Some(message) = &context.message else {
        return to_body(method, result);
    };
    ResponseBody::serialize_borrowing(message, result)
        .map_err(|error| serialize_error(method, &error))
}

fn serialize_error(method: &str, error: &serde_json::Error) -> Error {
    Error::storage(format!("{method}: cannot serialize the result: {error}"))
}

/// Parses params. Well-formed params are parsed directly from the text, without copying
/// messages.
fn parse_params<M: Request>(text: &str) -> Result<M::Params, Error> {
    if let Some(params) = parse_strict(text) {
        return Ok(params);
    }
    let params = params_compat::parse_object(M::NAME, Some(text))?;
    serde_path_to_error::deserialize(params).map_err(|error| {
        let field = error.path().to_string();
        let why = error.into_inner();
        match field.as_str() {
            "." => Error::invalid(format!("{}: {why}", M::NAME)),
            field => Error::invalid(format!("{}: `{field}`: {why}", M::NAME)),
        }
    })
}

/// Parses params that need no compatibility handling.
fn parse_strict<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    // serde would accept an array of the fields in order.
    let is_object = text.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use sightline_protocol::method::{Direction, METHODS};

    use super::*;

    #[test]
    fn every_method_of_the_protocol_has_a_handler() {
        for row in METHODS {
            match row.direction {
                Direction::Request => assert!(method(row.name).is_some(), "{}", row.name),
                Direction::ClientNotification => {
                    assert!(notifications::handles(row.name), "{}", row.name);
                }
                Direction::ServerNotification => {}
            }
        }
    }

    #[test]
    fn titles_read_well() {
        assert_eq!(method_title("sightline/listFiles"), "sightline list files");
    }
}
