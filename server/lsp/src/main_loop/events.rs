//! The events of the main loop, and their sources.

use std::time::Duration;

use crossbeam_channel::{Receiver, select_biased};

use super::run_call::{Answer, ReplyTo};
use crate::{
    connection::reader::Input,
    ipc::SocketRequest,
    scheduler::{JobId, JobMessage},
};

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
    /// The session ends.
    End(End),
}

/// The sources of events.
pub(super) struct Events {
    pub(super) input: Receiver<Input>,
    pub(super) done: Receiver<TaskDone>,
    pub(super) jobs: Receiver<JobMessage>,
    pub(super) sockets: Receiver<SocketRequest>,
    pub(super) end: Receiver<End>,
}

impl Events {
    /// Returns the next event. Jobs come first, because they belong to messages that were
    /// handled before.
    pub(super) fn next(&self) -> Event {
        let event = select_biased! {
            recv(self.jobs) -> job => job.map(Event::Job),
            recv(self.end) -> end => end.map(Event::End),
            recv(self.done) -> done => done.map(Event::TaskDone),
            recv(self.input) -> input => input.map(Event::Input),
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
    /// The response, if it was a request.
    pub(super) answer: Option<(ReplyTo, Answer)>,
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
