//! Runs the requests of the protocol, sent as custom requests or through
//! `workspace/executeCommand`.
//!
//! Both become one [`BoundRequest`]. For commands, the result can also be shown to the
//! user, because some clients discard command results.

use std::{ops::Range, sync::Arc};

use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use sightline_protocol::files::ProgressToken;
use sightline_workspace::{cancel::Cancel, error::Error};
use tower_lsp::lsp_types::MessageType;

use crate::{
    editor_features,
    handlers::{self, Handler, HandlerResult},
    params_compat,
    raw_message::{Params, RawMessage},
    response_body::ResponseBody,
    scheduler::{queue_rule::LARGE_PARAMS, root_queues::Job},
    session::Snapshot,
    shared_state::Server,
};

/// Maximum length of a result shown as a message, in characters. Longer results are
/// opened as a document.
const MESSAGE_CHARS: usize = 200;

/// How a request arrived, which determines what the user is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Custom request: nothing is shown.
    Request,
    /// Command: the result is shown if the client discards it.
    Command,
    /// Command of [`editor_features`], which shows its own result.
    EditorCommand,
}

/// Where the params of a request are.
enum ParamsSource {
    /// The params of the message.
    Message,
    /// A range of the message's text.
    Range(Range<usize>),
    /// No params.
    Absent,
}

/// A request parsed from a message.
pub struct ParsedRequest {
    handler: &'static Handler,
    params: ParamsSource,
    token: Option<ProgressToken>,
    origin: Origin,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecuteCommand<'a> {
    command: String,
    #[serde(default, borrow)]
    arguments: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow)]
    work_done_token: Option<&'a RawValue>,
}

impl ParsedRequest {
    /// Parses a custom request.
    pub fn from_request(handler: &'static Handler, message: &RawMessage) -> Self {
        let params = message.envelope().params.as_ref();
        Self {
            handler,
            params: ParamsSource::Message,
            token: params.and_then(|params| find_token(params.text())),
            origin: Origin::Request,
        }
    }

    /// Parses `workspace/executeCommand`, whose only argument is the params.
    ///
    /// # Errors
    /// `invalidParams` for an unknown command.
    pub fn from_command(message: &RawMessage) -> Result<Self, Error> {
        let params = message.envelope().params.as_ref();
        let text = params.map_or("null", Params::text);
        let params: ExecuteCommand<'_> = serde_json::from_str(text)
            .map_err(|error| Error::invalid(format!("workspace/executeCommand: {error}")))?;
        let method = params.command.replacen('.', "/", 1);
        let protocol_command = handlers::method(&method).map(|handler| (handler, Origin::Command));
        let editor_command = || Some((editor_features::command(&method)?, Origin::EditorCommand));
        let (handler, origin) = protocol_command.or_else(editor_command).ok_or_else(|| {
            let names: Vec<String> = crate::capabilities::commands();
            Error::invalid(format!(
                "workspace/executeCommand: unknown command {:?}; available: {}",
                params.command,
                names.join(", ")
            ))
        })?;
        // Clients that create the command themselves put the token where LSP defines it.
        let client_token = params
            .work_done_token
            .and_then(|token| serde_json::from_str(token.get()).ok());
        let argument = params.arguments.unwrap_or_default().first().copied();
        let argument = argument.map_or("null", RawValue::get);
        Ok(Self {
            handler,
            params: message
                .range_of(argument.as_bytes())
                .map_or(ParamsSource::Absent, ParamsSource::Range),
            token: find_token(argument).or(client_token),
            origin,
        })
    }

    /// Token under which progress is reported, and by which the request can be cancelled.
    pub fn token(&self) -> Option<&ProgressToken> {
        self.token.as_ref()
    }

    /// Attaches the message that contains the params.
    pub fn bind(self, message: Arc<RawMessage>) -> BoundRequest {
        BoundRequest {
            parsed: self,
            message,
        }
    }
}

/// A request with the message that contains its params.
pub struct BoundRequest {
    parsed: ParsedRequest,
    message: Arc<RawMessage>,
}

impl BoundRequest {
    fn with_params<T>(&self, work: impl FnOnce(&Params<'_>) -> T) -> T {
        let text = match &self.parsed.params {
            ParamsSource::Message => match &self.message.envelope().params {
                Some(params) => return work(params),
                None => None,
            },
            ParamsSource::Range(range) => self.message.text().get(range.clone()),
            ParamsSource::Absent => None,
        };
        work(&Params::unsplit(text.unwrap_or("null")))
    }
}

/// Takes a snapshot of the session and schedules the request. Returns a job that can run
/// at once on any thread, if the request is not queued.
#[must_use]
pub fn start(server: &Arc<Server>, id: Value, cancel: Cancel, call: BoundRequest) -> Option<Job> {
    let snapshot = server.snapshot();
    let handler = call.parsed.handler;
    let queue = call.with_params(|params| {
        let registry = server.checkpoints();
        handler
            .queue
            .queue(handler.name, &snapshot, registry, params.text())
    });
    let scheduler = server.scheduler().clone();
    let server = server.clone();
    scheduler.run(id, queue, handler.name, move || {
        let context = handlers::RequestContext::new(&server, snapshot, cancel)
            .with_message(call.message.clone())
            .with_progress_token(call.parsed.token.clone());
        let origin = call.parsed.origin;
        let part: handlers::Stage = Box::new(move |context| {
            context.server.inject_fault(handler.name);
            call.with_params(|params| handler.run(context, params))
        });
        let on_outcome: handlers::OnOutcome = Box::new(move |context, outcome| {
            match (origin, outcome) {
                (Origin::Request, _) | (Origin::EditorCommand, Ok(_)) => {}
                (Origin::Command, outcome) => show(context, handler.name, outcome),
                // A plugin shows the error itself.
                (Origin::EditorCommand, Err(_)) if context.snapshot.client_info.plugin => {}
                (Origin::EditorCommand, Err(error)) => {
                    let message = format!("sightline: {error}");
                    context.server.show_message(MessageType::ERROR, &message);
                }
            }
        });
        context.step(part, on_outcome)
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenField {
    #[serde(default)]
    work_done_token: Option<ProgressToken>,
}

/// Extracts `workDoneToken` from params. Most params have none, which is checked without
/// parsing.
fn find_token(params: &str) -> Option<ProgressToken> {
    let may_contain = params.len() <= LARGE_PARAMS && params.starts_with('{');
    if !may_contain || memmem::find(params.as_bytes(), b"\"workDoneToken\"").is_none() {
        return None;
    }
    let reported: TokenField = serde_json::from_str(params).ok()?;
    reported.work_done_token
}

/// Shows a command's result to the user, if the client discards results or the setting
/// says so.
fn show(context: &handlers::RequestContext<'_>, method: &str, outcome: &HandlerResult) {
    let snapshot: &Snapshot = &context.snapshot;
    let wanted = snapshot.settings.show_results;
    if !wanted.unwrap_or_else(|| snapshot.client_info.drops_results()) {
        return;
    }
    let text = match outcome {
        Err(error) => {
            let message = format!("sightline: {error}");
            return context.server.show_message(MessageType::ERROR, &message);
        }
        Ok(result) => context.summary().unwrap_or_else(|| format_result(result)),
    };
    if text.chars().count() <= MESSAGE_CHARS && text.lines().count() <= 1 {
        let message = format!("{}: {text}", handlers::method_title(method));
        return context.server.show_message(MessageType::INFO, &message);
    }
    match handlers::result_documents::write(context, method, &text) {
        Ok(uri) => {
            let message = format!(
                "{}: see the opened document",
                handlers::method_title(method)
            );
            context.server.show_message(MessageType::INFO, &message);
            let params = json!({ "uri": uri, "external": false, "takeFocus": true });
            context
                .server
                .client()
                .request("window/showDocument", &params, |answer| {
                    if let Err(error) = answer {
                        tracing::info!(%error, "the client cannot show documents");
                    }
                });
        }
        Err(error) => context
            .server
            .show_message(MessageType::ERROR, &format!("sightline: {error}")),
    }
}

/// Formats a result for people: its `text` if it has one, else indented JSON.
fn format_result(result: &ResponseBody) -> String {
    let text = result.text();
    let value = params_compat::parse("result", Some(&text)).unwrap_or_default();
    match value.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None if text.len() <= MESSAGE_CHARS => text.into_owned(),
        None => serde_json::to_string_pretty(&value).unwrap_or_default(),
    }
}
