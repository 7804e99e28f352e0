//! `sightline/checkAccess`.
//!
//! A request may hold a hundred thousand paths: they are judged where they stand in
//! its text, and each verdict is written where it was found.

use serde::Deserialize;
use sightline_core::{error::Error, limits};
use sightline_protocol::{
    access::{CheckAccessParams, PathAccess},
    error::ErrorKind,
    method::{CheckAccess, Request},
};

use super::{Answer, Context, params_of, strictly, unwritten};
use crate::{jobs::Lane, json::Json, message::Text};

/// Freeing what was found out for so many takes milliseconds.
const MANY_PATHS: usize = 10_000;

/// [`CheckAccessParams`] in their text.
#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(default, borrow)]
    paths: Vec<Text<'a>>,
    #[serde(default)]
    command: Option<String>,
}

/// Judges paths, in their order, and a command line.
pub fn run(context: &Context<'_>, params: &str) -> Answer {
    if let Some(asked) = strictly::<Asked<'_>>(params) {
        return judge(context, &asked.paths, asked.command.as_deref());
    }
    let asked: CheckAccessParams = params_of::<CheckAccess>(params)?;
    judge(context, &asked.paths, asked.command.as_deref())
}

fn judge<P: AsRef<str> + Sync>(
    context: &Context<'_>,
    paths: &[P],
    command: Option<&str>,
) -> Answer {
    if paths.len() > limits::MAX_CHECKED_PATHS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "{} paths at once are over the limit of {}; ask in parts",
                paths.len(),
                limits::MAX_CHECKED_PATHS
            ),
        ));
    }
    let view = context.view();
    let unwritten = |error| unwritten(CheckAccess::NAME, &error);
    let write = |written: &mut Vec<u8>, verdict: PathAccess| {
        if !written.is_empty() {
            written.push(b',');
        }
        serde_json::to_writer(written, &verdict).map_err(unwritten)
    };
    // A `CheckAccessResult`.
    let mut pieces = vec![br#"{"paths":["#.to_vec()];
    for verdicts in view.check_all(paths, &context.cancel, write)? {
        if pieces.len() > 1 {
            pieces.push(b",".to_vec());
        }
        pieces.push(verdicts);
    }
    pieces.push(b"]".to_vec());
    if let Some(command) = command {
        pieces.push(br#","command":"#.to_vec());
        let verdict = view.check_command(command);
        pieces.push(serde_json::to_vec(&verdict).map_err(unwritten)?);
    }
    pieces.push(b"}".to_vec());
    if paths.len() >= MANY_PATHS {
        // Nobody waits until what was remembered of as many folders is freed.
        let jobs = context.server.jobs();
        jobs.run_silent(Lane::Pool, "what was checked", move || drop(view));
    }
    Ok(Json::joined(pieces))
}
