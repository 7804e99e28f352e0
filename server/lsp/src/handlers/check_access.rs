//! `sightline/checkAccess`.
//!
//! A request may contain a hundred thousand paths: they are borrowed from its text, and
//! each verdict is serialized on the thread that found it.

use serde::Deserialize;
use sightline_protocol::{
    access::{CheckAccessParams, PathAccess},
    error::ErrorKind,
    method::{CheckAccess, Request},
};
use sightline_workspace::{error::Error, limits};

use super::{HandlerResult, RequestContext, parse_params, parse_strict, serialize_error};
use crate::{raw_message::Text, response_body::ResponseBody, scheduler::Queue};

/// From this number of paths on, freeing the caches of a check takes milliseconds.
const MANY_PATHS: usize = 10_000;

/// [`CheckAccessParams`], borrowed.
#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(default, borrow)]
    paths: Vec<Text<'a>>,
    #[serde(default)]
    command: Option<String>,
}

/// Checks paths, in order, and a command line.
pub fn run(context: &RequestContext<'_>, params: &str) -> HandlerResult {
    if let Some(asked) = parse_strict::<Asked<'_>>(params) {
        return check(context, &asked.paths, asked.command.as_deref());
    }
    let asked: CheckAccessParams = parse_params::<CheckAccess>(params)?;
    check(context, &asked.paths, asked.command.as_deref())
}

fn check<P: AsRef<str> + Sync>(
    context: &RequestContext<'_>,
    paths: &[P],
    command: Option<&str>,
) -> HandlerResult {
    if paths.len() > limits::MAX_CHECKED_PATHS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "{} paths exceed the limit of {}; split the request",
                paths.len(),
                limits::MAX_CHECKED_PATHS
            ),
        ));
    }
    let view = context.view();
    let serialize_error = |error| serialize_error(CheckAccess::NAME, &error);
    let write = |written: &mut Vec<u8>, verdict: PathAccess| {
        if !written.is_empty() {
            written.push(b',');
        }
        serde_json::to_writer(written, &verdict).map_err(serialize_error)
    };
    // The pieces form a `CheckAccessResult`.
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
        let readers = context.snapshot.settings.recursive_readers;
        let verdict = view.check_command_with(command, readers);
        pieces.push(serde_json::to_vec(&verdict).map_err(serialize_error)?);
    }
    pieces.push(b"}".to_vec());
    if paths.len() >= MANY_PATHS {
        // The response does not wait for the caches to be freed.
        let scheduler = context.server.scheduler();
        scheduler.run_in_background(Queue::Pool, "free access caches", move || drop(view));
    }
    Ok(ResponseBody::from_pieces(pieces))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sightline_protocol::access::{AccessKind, CheckAccessResult};
    use sightline_workspace::{
        cancel::Cancel,
        path::{AbsPath, Root},
    };

    use super::*;
    use crate::{handlers, shared_state::Server};

    fn check_params(params: &Value) -> CheckAccessResult {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".clineignore"), "*7\n").unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let root = Root::new(AbsPath::new(folder.path()).unwrap(), None);
        let server = Server::offline(root, runtime.handle().clone(), None);
        let context = RequestContext::new(&server, server.snapshot(), Cancel::default());
        let handler = handlers::method(CheckAccess::NAME).unwrap();
        let answer = context
            .run_to_completion(handler, params.to_string())
            .unwrap();
        serde_json::from_str(&answer.text()).unwrap()
    }

    #[test]
    fn verdicts_are_in_the_order_of_the_paths() {
        for count in [0, 1, 2, 511, 512, 513, 1023, 1024, 1025, 2500] {
            let path = |at| format!("in {} /\"{at}", at / 100);
            let paths: Vec<String> = (0..count).map(path).collect();
            for params in [
                json!({ "paths": paths }),
                json!({ "paths": paths, "command": "cat 17" }),
                json!({ "paths": paths, "workDoneToken": null, "command": null }),
            ] {
                let answer = check_params(&params);
                assert_eq!(answer.command.is_some(), params["command"].is_string());
                let found: Vec<&str> = answer.paths.iter().map(|one| &*one.path).collect();
                assert_eq!(found, paths);
                assert!(answer.paths.iter().all(|one| {
                    let denied = one.path.ends_with('7');
                    (one.access == AccessKind::Denied) == denied
                }));
            }
        }
    }

    #[test]
    fn borrowed_params_equal_the_protocol_type() {
        let params = CheckAccessParams {
            paths: vec!["a".to_owned(), "\u{1}".to_owned()],
            command: Some("ls".to_owned()),
        };
        let text = serde_json::to_string(&params).unwrap();
        let asked: Asked<'_> = parse_strict(&text).unwrap();
        let paths: Vec<String> = asked.paths.iter().map(|path| path.0.to_string()).collect();
        let command = asked.command;
        assert_eq!(CheckAccessParams { paths, command }, params);
    }
}
