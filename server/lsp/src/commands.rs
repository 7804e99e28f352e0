//! Runs a request of the protocol, whichever door it came through.
//!
//! The custom request and `workspace/executeCommand` meet here: one [`Call`],
//! one code path. The command door can also show its result to people, for
//! clients that drop what a command returns.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use sightline_core::{cancel::Cancel, error::Error};
use tower_lsp::lsp_types::MessageType;

use crate::{
    api::{self, Handler, LaneRule},
    jobs::{Lane, guarded},
    lenient,
    server::Server,
    session::Snapshot,
};

/// Params over this many bytes are parsed off the reading thread.
const LARGE_PARAMS: usize = 256 * 1024;

/// Lines shown in a message; longer results go to a document.
const MESSAGE_CHARS: usize = 200;

/// A request to be run.
pub struct Call {
    handler: &'static Handler,
    params: String,
    as_command: bool,
}

impl Call {
    /// A custom request.
    pub fn request(handler: &'static Handler, params: Option<&RawValue>) -> Self {
        Self {
            handler,
            params: params.map_or("null", RawValue::get).to_owned(),
            as_command: false,
        }
    }

    /// `workspace/executeCommand`: the params are its only argument.
    ///
    /// # Errors
    /// `invalidParams` for a command that is not ours.
    pub fn new(params: Option<&RawValue>) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct ExecuteCommand {
            command: String,
            #[serde(default)]
            arguments: Option<Vec<Box<RawValue>>>,
        }
        let text = params.map_or("null", RawValue::get);
        let params: ExecuteCommand = serde_json::from_str(text)
            .map_err(|error| Error::invalid(format!("workspace/executeCommand: {error}")))?;
        let method = params.command.replacen('.', "/", 1);
        let handler = api::method(&method).ok_or_else(|| {
            let names: Vec<String> = crate::capabilities::commands();
            Error::invalid(format!(
                "workspace/executeCommand: {:?} is no command of this server; there are {}",
                params.command,
                names.join(", ")
            ))
        })?;
        let arguments = params.arguments.unwrap_or_default();
        Ok(Self {
            handler,
            params: arguments
                .first()
                .map_or("null", |first| first.get())
                .to_owned(),
            as_command: true,
        })
    }
}

/// Starts a request: what it sees is what the session is now.
pub fn start(server: &Arc<Server>, id: Value, cancel: Cancel, call: Call) {
    let snapshot = server.snapshot();
    let name = call.handler.name;
    let large = call.params.len() > LARGE_PARAMS;
    let parsed = if large {
        None
    } else {
        Some(guarded(name, || lenient::object(name, Some(&call.params))))
    };
    let lane = match (call.handler.lane, &parsed) {
        (LaneRule::Pool, _) => Lane::Pool,
        (LaneRule::ByTask, Some(Ok(params))) if params.get("taskId").is_none() => Lane::Pool,
        // Not known yet whether it names a task: as if it did.
        (LaneRule::ByTask, _) => Lane::Tasks,
    };
    let jobs = server.jobs().clone();
    let server = server.clone();
    jobs.run(id, lane, name, move || {
        cancel.check()?;
        server.fault(name);
        let params = match parsed {
            Some(params) => params?,
            None => lenient::object(name, Some(&call.params))?,
        };
        let context = api::Context::new(&server, snapshot, cancel);
        let outcome = (call.handler.run)(&context, params);
        if call.as_command {
            show(&context, name, &outcome);
        }
        Ok((outcome?, context.into_commits()))
    });
}

/// Shows the outcome of a command to people, where the client or its user
/// wants that.
fn show(context: &api::Context<'_>, method: &str, outcome: &Result<Box<RawValue>, Error>) {
    let snapshot: &Snapshot = &context.snapshot;
    let wanted = snapshot.settings.show_results;
    if !wanted.unwrap_or_else(|| snapshot.client.drops_results()) {
        return;
    }
    let text = match outcome {
        Err(error) => {
            let message = format!("sightline: {error}");
            return context.server.show(MessageType::ERROR, &message);
        }
        Ok(result) => readable(result),
    };
    if text.chars().count() <= MESSAGE_CHARS && text.lines().count() <= 1 {
        let message = format!("{}: {text}", api::command_title(method));
        return context.server.show(MessageType::INFO, &message);
    }
    match api::results::write(context, method, &text) {
        Ok(uri) => {
            let message = format!("{}: see the opened document", api::command_title(method));
            context.server.show(MessageType::INFO, &message);
            let params = json!({ "uri": uri, "external": false, "takeFocus": true });
            context
                .server
                .outbound()
                .request("window/showDocument", &params, |answer| {
                    if let Err(error) = answer {
                        tracing::info!(%error, "the client shows no documents");
                    }
                });
        }
        Err(error) => context
            .server
            .show(MessageType::ERROR, &format!("sightline: {error}")),
    }
}

/// A result for people: its text where it has one, else the JSON, indented.
fn readable(result: &RawValue) -> String {
    let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
    match value.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None if result.get().len() <= MESSAGE_CHARS => result.get().to_owned(),
        None => serde_json::to_string_pretty(&value).unwrap_or_default(),
    }
}
