//! The requests of the protocol, one file each.
//!
//! A handler is a function from params and [`Context`] to a result: it converts
//! at the edge and calls [`sightline_core`]. It runs off the reading thread, with
//! the session as it was when the request arrived, and may panic without harm.

pub mod check_access;
pub mod environment_details;
pub mod list_files;
pub mod notifications;
pub mod read_file;
pub mod results;
pub mod tracking;

use std::{cell::RefCell, sync::Arc};

use serde_json::{Value, value::RawValue};
use sightline_core::{access::AccessView, cancel::Cancel, error::Error};
use sightline_protocol::method::{self, Request};

use crate::{jobs::Commit, server::Server, session::Snapshot};

/// What a handler works with.
pub struct Context<'a> {
    /// The shared state, for what outlives the request.
    pub server: &'a Arc<Server>,
    /// The session as the request found it.
    pub snapshot: Snapshot,
    /// Raised when the client cancels.
    pub cancel: Cancel,
    commits: RefCell<Vec<Commit>>,
}

impl<'a> Context<'a> {
    /// What the handler of one request works with.
    pub fn new(server: &'a Arc<Server>, snapshot: Snapshot, cancel: Cancel) -> Self {
        Self {
            server,
            snapshot,
            cancel,
            commits: RefCell::default(),
        }
    }

    /// The access rules as they stand on disk now.
    pub fn view(&self) -> AccessView {
        self.server.view(&self.snapshot)
    }

    /// Does `commit` when it is certain that the client gets the answer.
    pub fn when_answered(&self, commit: impl FnOnce() + Send + 'static) {
        self.commits.borrow_mut().push(Box::new(commit));
    }

    /// What is to be done when the client gets the answer.
    pub fn into_commits(self) -> Vec<Commit> {
        self.commits.into_inner()
    }
}

/// Where a request may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneRule {
    /// Beside all others.
    Pool,
    /// Those that name a task wait for each other: they read and write its
    /// records, and a client may send them without waiting for answers.
    ByTask,
}

/// One request: how to schedule and how to run it.
pub struct Handler {
    /// The method's name.
    pub name: &'static str,
    /// Where it runs.
    pub lane: LaneRule,
    /// Runs it.
    pub run: fn(&Context<'_>, Value) -> Result<Box<RawValue>, Error>,
}

const HANDLERS: &[Handler] = &[
    Handler {
        name: method::EnvironmentDetails::NAME,
        lane: LaneRule::ByTask,
        run: |context, params| {
            typed::<method::EnvironmentDetails>(context, params, environment_details::run)
        },
    },
    Handler {
        name: method::CheckAccess::NAME,
        lane: LaneRule::Pool,
        run: |context, params| typed::<method::CheckAccess>(context, params, check_access::run),
    },
    Handler {
        name: method::ListFiles::NAME,
        lane: LaneRule::Pool,
        run: |context, params| typed::<method::ListFiles>(context, params, list_files::run),
    },
    Handler {
        name: method::ReadFile::NAME,
        lane: LaneRule::ByTask,
        run: |context, params| typed::<method::ReadFile>(context, params, read_file::run),
    },
    Handler {
        name: method::TrackFile::NAME,
        lane: LaneRule::ByTask,
        run: |context, params| typed::<method::TrackFile>(context, params, tracking::track_file),
    },
    Handler {
        name: method::RecordModel::NAME,
        lane: LaneRule::ByTask,
        run: |context, params| {
            typed::<method::RecordModel>(context, params, tracking::record_model)
        },
    },
    Handler {
        name: method::RecordEnvironment::NAME,
        lane: LaneRule::ByTask,
        run: |context, params| {
            typed::<method::RecordEnvironment>(context, params, tracking::record_environment)
        },
    },
    Handler {
        name: method::TaskContext::NAME,
        lane: LaneRule::ByTask,
        run: |context, params| {
            typed::<method::TaskContext>(context, params, tracking::task_context)
        },
    },
];

/// The handler of a method, by its name on the wire.
pub fn method(name: &str) -> Option<&'static Handler> {
    HANDLERS.iter().find(|handler| handler.name == name)
}

/// A method's name for people: `sightline/listFiles` is `list files`.
pub fn command_title(method: &str) -> String {
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
    context: &Context<'_>,
    params: Value,
    run: fn(&Context<'_>, M::Params) -> Result<M::Result, Error>,
) -> Result<Box<RawValue>, Error> {
    let params = serde_path_to_error::deserialize(params).map_err(|error| {
        let field = error.path().to_string();
        let why = error.into_inner();
        match field.as_str() {
            "." => Error::invalid(format!("{}: {why}", M::NAME)),
            field => Error::invalid(format!("{}: `{field}`: {why}", M::NAME)),
        }
    })?;
    let result = run(context, params)?;
    serde_json::value::to_raw_value(&result)
        .map_err(|error| Error::storage(format!("{}: the result: {error}", M::NAME)))
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
        assert_eq!(command_title("sightline/listFiles"), "sightline list files");
    }
}
