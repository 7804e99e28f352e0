//! `sightline/checkAccess`.

use serde::Serialize;
use serde_json::value::RawValue;
use sightline_core::{error::Error, limits};
use sightline_protocol::{
    access::{CheckAccessParams, CommandAccess},
    error::ErrorKind,
    method::{CheckAccess, Request},
};

use super::{Answer, Context, written};
use crate::jobs::Lane;

/// Freeing so many takes milliseconds.
const MANY_PATHS: usize = 10_000;

/// A `CheckAccessResult` whose verdicts were written where they were judged.
#[derive(Serialize)]
struct Written {
    paths: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<CommandAccess>,
}

/// Judges paths, in their order, and a command line.
pub fn run(context: &Context<'_>, params: CheckAccessParams) -> Answer {
    if params.paths.len() > limits::MAX_CHECKED_PATHS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "{} paths at once are over the limit of {}; ask in parts",
                params.paths.len(),
                limits::MAX_CHECKED_PATHS
            ),
        ));
    }
    let view = context.view();
    let command = params.command.as_deref();
    let result = Written {
        paths: view.check_all(&params.paths, &context.cancel, |verdict| {
            written(CheckAccess::NAME, &verdict)
        })?,
        command: command.map(|command| view.check_command(command)),
    };
    let answer = written(CheckAccess::NAME, &result);
    if params.paths.len() >= MANY_PATHS {
        // Nobody waits until all these texts are freed.
        let free = move || drop((params, result, view));
        let jobs = context.server.jobs();
        jobs.run_silent(Lane::Pool, "what was checked", free);
    }
    answer
}
