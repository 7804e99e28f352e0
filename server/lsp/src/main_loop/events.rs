//! The events of the main loop, and their sources.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::{Receiver, never, select_biased};
use serde_json::Value;
use sightline_engine::{jobs::JobMessage, settings::config_file::ConfigFiles};
use sightline_ipc::SocketRequest;

use super::run_call::Answer;
use crate::{connection::reader::Input, scheduler::JobId};

/// What the main loop reacts to.
pub(super) enum Event {
    /// Input of the client.
    Input(Input),
    /// A job has ended.
    TaskDone(TaskDone),
    /// Work without a request: after a delay, a notification, or a change of a file.
    Job(JobMessage),
    /// A request of the command line.
    Socket(SocketRequest),
    /// The configuration files have been read. `None` if that failed.
    ConfigFiles(Option<Arc<ConfigFiles>>),
    /// The session ends.
    End(End),
}

/// The sources of events.
pub(super) struct Events {
    pub(super) input: Receiver<Input>,
    pub(super) done: Receiver<TaskDone>,
    pub(super) jobs: Receiver<JobMessage>,
    pub(super) sockets: Receiver<SocketRequest>,
    /// Gets the configuration files while they are being read. No input is handled until then.
    pub(super) config_files: Option<Receiver<Arc<ConfigFiles>>>,
    pub(super) end: Receiver<End>,
}

impl Events {
    /// Returns the next event. Jobs come first, because they belong to messages that were
    /// handled before.
    pub(super) fn next(&self) -> Event {
        let (no_input, no_files) = (never(), never());
        let (input, files) = match &self.config_files {
            Some(files) => (&no_input, files),
            None => (&self.input, &no_files),
        };
        let event = select_biased! {
            recv(self.jobs) -> job => job.map(Event::Job),
            recv(self.end) -> end => end.map(Event::End),
            recv(self.done) -> done => done.map(Event::TaskDone),
            recv(files) -> files => Ok(Event::ConfigFiles(files.ok())),
            recv(input) -> input => input.map(Event::Input),
            recv(self.sockets) -> request => request.map(Event::Socket),
        };
        event.unwrap_or(Event::End(End::InputClosed))
    }

    /// Returns the next event of a job within `left`.
    pub(super) fn next_of_jobs(&self, left: Duration) -> Option<Event> {
        let event = select_biased! {
            recv(self.jobs) -> job => job.map(Event::Job),
            recv(self.done) -> done => done.map(Event::TaskDone),
            default(left) => return None,
        };
        event.ok()
    }
}

/// A job that has ended.
pub(super) struct TaskDone {
    pub(super) job: JobId,
    /// The id and the response, if it was a request of the client.
    pub(super) answer: Option<(Value, Answer)>,
}

/// Why the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client sent `exit`.
    Exit,
    /// The client closed its end.
    InputClosed,
    /// stdout is closed.
    OutputClosed,
    /// A signal asked the process to end.
    Signal,
    /// The parent process exited.
    ParentGone,
}
