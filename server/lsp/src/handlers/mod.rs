//! The requests of the protocol, one file each.
//!
//! A handler is a function from params and [`RequestContext`] to a result: it converts
//! at the edge and calls [`sightline_core`]. It runs as a job ([`crate::jobs`]), with
//! the session as it was when the request arrived, and may panic without harm.

#![allow(
    clippy::missing_errors_doc,
    reason = "how a request fails stands in the method table, for clients too"
)]

pub mod check_access;
mod checkpoint_context;
pub mod checkpoints;
pub mod compaction;
pub mod conversation;
pub mod count_tokens;
pub mod environment_details;
pub mod list_files;
pub mod notifications;
pub mod read_file;
pub mod restore;
pub mod result_documents;
pub mod tasks;
pub mod tracking;

use std::{cell::RefCell, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sightline_core::{access::AccessView, cancel::Cancel, error::Error, storage::Written};
use sightline_protocol::{
    compaction::{ApplyCompactionParams, PlanCompactionParams},
    conversation::{Message, TruncateHistoryParams},
    files::ProgressToken,
    method::{self, Request},
    task::AppendMessagesParams,
    tokens::CountTokensParams,
};

use crate::{
    params_compat,
    progress::Progress,
    raw_message::{Params, RawMessage},
    response_body::ResponseBody,
    scheduler::{OnDelivered, Queue, Response, Step},
    server::Server,
    session::Snapshot,
};

/// What a handler works with.
pub struct RequestContext<'a> {
    /// The shared state, for what outlives the request.
    pub server: &'a Arc<Server>,
    /// The session as the request found it.
    pub snapshot: Snapshot,
    /// Raised when the client cancels.
    pub cancel: Cancel,
    message: Option<Arc<RawMessage>>,
    token: Option<ProgressToken>,
    commits: RefCell<Vec<OnDelivered>>,
    written: RefCell<Vec<Written>>,
    rest: RefCell<Option<(Queue, Stage)>>,
    summary: RefCell<Option<String>>,
}

/// A part of a request that runs on one queue.
pub type Stage = Box<dyn FnOnce(&RequestContext<'_>) -> HandlerResult + Send>;

/// Sees how a request came out.
pub type OnOutcome = Box<dyn FnOnce(&RequestContext<'_>, &HandlerResult) + Send>;

impl<'a> RequestContext<'a> {
    /// What the handler of one request works with.
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

    /// The same for a request whose progress is reported under a token.
    #[must_use]
    pub fn reporting(mut self, token: Option<ProgressToken>) -> Self {
        self.token = token;
        self
    }

    /// The same for a request that came in a message.
    #[must_use]
    pub fn of(mut self, message: Arc<RawMessage>) -> Self {
        self.message = Some(message);
        self
    }

    /// Progress of the request: under the token in its params, else under the
    /// one that came beside them. `title` is for people.
    pub fn progress(&self, token: Option<ProgressToken>, title: &str) -> Progress {
        Progress::begin(self.server, token.or_else(|| self.token.clone()), title)
    }

    /// The access rules as they stand on disk now.
    pub fn view(&self) -> AccessView {
        self.server.view(&self.snapshot)
    }

    /// Does `commit` when it is certain that the client gets the answer.
    pub fn on_delivered(&self, commit: impl FnOnce() + Send + 'static) {
        self.commits.borrow_mut().push(Box::new(commit));
    }

    /// The answer waits until this is on the disk.
    pub fn answer_when_durable(&self, written: Written) {
        self.written.borrow_mut().push(written);
    }

    /// The request is answered by `rest`, on another queue; what the handler
    /// returns is not sent.
    pub fn continue_on(
        &self,
        queue: Queue,
        rest: impl FnOnce(&RequestContext<'_>) -> HandlerResult + Send + 'static,
    ) {
        *self.rest.borrow_mut() = Some((queue, Box::new(rest)));
    }

    /// The result in one line for people, for clients that show results.
    pub fn summarize(&self, summary: impl Into<String>) {
        *self.summary.borrow_mut() = Some(summary.into());
    }

    /// The result in one line for people.
    pub fn summary(&self) -> Option<String> {
        self.summary.borrow().clone()
    }

    /// Runs a whole request on this thread, for a caller that waits for it and
    /// has nobody else to wait for.
    ///
    /// # Errors
    /// As the request.
    pub fn run_to_completion(self, handler: &'static Handler, params: String) -> HandlerResult {
        let part: Stage = Box::new(move |context| handler.run(context, &Params::whole(&params)));
        let mut step = self.step(part, Box::new(|_, _| ()))?;
        let done = loop {
            match step {
                Step::Done(done) => break done,
                Step::Then(_, next) => step = next()?,
            }
        };
        done.written.iter().try_for_each(Written::sync)?;
        done.commits.into_iter().for_each(|commit| commit());
        Ok(done.result)
    }

    /// Runs the first part of a request, or a later one. `on_outcome` sees how it
    /// came out once nothing is left.
    ///
    /// # Errors
    /// As the request.
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
                context.reporting(token).step(rest, on_outcome)
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

/// The result of a request, as it is written.
pub type HandlerResult = Result<ResponseBody, Error>;

/// Where a request may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRule {
    /// Beside all others.
    Pool,
    /// Those that name a task wait for each other: they read and write its
    /// records, and a client may send them without waiting for answers.
    ByTask,
    /// After those before it that name a task: it looks at all of them.
    Tasks,
    /// After those before it that change the same workspace roots, which its
    /// params tell.
    Roots,
}

/// One request: how to schedule and how to run it.
pub struct Handler {
    /// The method's name.
    pub name: &'static str,
    /// Where it runs.
    pub queue: QueueRule,
    /// Runs it on its params.
    pub run: HandlerFn,
}

/// What a handler works on.
pub enum HandlerFn {
    /// The text of its params.
    Text(fn(&RequestContext<'_>, &str) -> HandlerResult),
    /// Its params, of which messages were taken out.
    Messages(fn(&RequestContext<'_>, &Params<'_>) -> HandlerResult),
}

impl Handler {
    /// Runs the request.
    ///
    /// # Errors
    /// As the request.
    pub fn run(&self, context: &RequestContext<'_>, params: &Params<'_>) -> HandlerResult {
        match self.run {
            HandlerFn::Text(run) => run(context, params.text()),
            HandlerFn::Messages(run) => run(context, params),
        }
    }
}

/// A row of the table: how the params are read, of which method, on which queue,
/// by what it is run.
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
    handler!(with_messages, TruncateHistory, ByTask, conversation::truncate),
    handler!(typed, RollbackHistory, ByTask, conversation::rollback),
    handler!(typed, ClassifyError, Pool, conversation::classify_error),
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

/// The handler of a method, by its name on the wire.
pub fn method(name: &str) -> Option<&'static Handler> {
    HANDLERS.iter().find(|handler| handler.name == name)
}

/// Are there messages in the params of this method?
pub fn takes_messages(name: &str) -> bool {
    method(name).is_some_and(|handler| matches!(handler.run, HandlerFn::Messages(_)))
}

/// A method's name for people: `sightline/listFiles` is `list files`.
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

/// A request with messages in its params.
pub trait WithMessages {
    /// Takes them out.
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

/// Like [`typed`], for a request with messages: they are not copied, and the
/// result may hold some of them.
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
    ResponseBody::of(result).map_err(|error| serialize_error(method, &error))
}

/// Like [`to_body`], for a result that holds parts of the request.
fn to_body_borrowing(
    context: &RequestContext<'_>,
    method: &str,
    result: &impl Serialize,
) -> HandlerResult {
    let Some(message) = &context.message else {
        return to_body(method, result);
    };
    ResponseBody::within(message, result).map_err(|error| serialize_error(method, &error))
}

fn serialize_error(method: &str, error: &serde_json::Error) -> Error {
    Error::storage(format!("{method}: the result: {error}"))
}

/// Params from their text. What is as it should be is read where it stands: a
/// conversation is megabytes, and its messages stay as they were written.
fn parse_params<M: Request>(text: &str) -> Result<M::Params, Error> {
    if let Some(params) = parse_strict(text) {
        return Ok(params);
    }
    let params = params_compat::object(M::NAME, Some(text))?;
    serde_path_to_error::deserialize(params).map_err(|error| {
        let field = error.path().to_string();
        let why = error.into_inner();
        match field.as_str() {
            "." => Error::invalid(format!("{}: {why}", M::NAME)),
            field => Error::invalid(format!("{}: `{field}`: {why}", M::NAME)),
        }
    })
}

/// Params as they should be written, which most are.
fn parse_strict<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    // An array would be read as the fields, in order.
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
