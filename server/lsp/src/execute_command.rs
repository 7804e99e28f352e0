//! `workspace/executeCommand`: parses commands, and shows their results to the user,
//! because some clients discard them.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use sightline_engine::{
    dispatch::{self, Call},
    error::Error,
    handlers::{method_title, result_documents},
    params_compat,
    request_context::{Outcome, RequestContext},
    services::MessageKind,
};

use crate::{capabilities, editor_requests};

/// Maximum length of a result shown as a message, in characters. Longer results are
/// opened as a document.
const MESSAGE_CHARS: usize = 200;

/// How a request arrived, which determines what the user is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Custom request of the editor: nothing is shown.
    Request,
    /// Request of the command line or a hook, which reports decisions itself.
    Socket,
    /// Command: the result is shown if the client discards it.
    Command,
    /// Command for users, which shows its own result.
    UserCommand,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    command: String,
    #[serde(default, borrow)]
    arguments: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow)]
    work_done_token: Option<&'a RawValue>,
}

/// Parses the params of `workspace/executeCommand`. The only argument of a command is its
/// params.
///
/// # Errors
/// `invalidParams`, also for an unknown command.
pub fn parse(text: &str) -> Result<(Call, Origin), Error> {
    let params: Params<'_> = serde_json::from_str(text)
        .map_err(|error| Error::invalid(format!("workspace/executeCommand: {error}")))?;
    let method = params.command.replacen('.', "/", 1);
    let (route, origin) = if let Some(route) = dispatch::request(&method) {
        (route, Origin::Command)
    } else if let Some(route) = editor_requests::command(&method) {
        (route, Origin::UserCommand)
    } else {
        return Err(Error::invalid(format!(
            "workspace/executeCommand: unknown command {:?}; available: {}",
            params.command,
            capabilities::user_commands().join(", ")
        )));
    };
    let arguments = params.arguments.unwrap_or_default();
    let mut call = (route.parse)(arguments.first().map_or("null", |argument| argument.get()));
    // Clients that create the command themselves put the token where LSP defines it.
    call.token = call
        .token
        .or_else(|| serde_json::from_str(params.work_done_token?.get()).ok());
    Ok((call, origin))
}

/// Shows the outcome of a command to the user, if the client discards results or the
/// setting says so.
pub fn show(context: &RequestContext<'_>, origin: Origin, method: &str, outcome: &Outcome) {
    let is_shown = match (origin, outcome) {
        (Origin::Request | Origin::Socket, _) | (Origin::UserCommand, Ok(_)) => false,
        // A plugin shows the error itself.
        (Origin::UserCommand, Err(_)) => !context.snapshot.client_info.plugin,
        (Origin::Command, _) => {
            let setting = context.snapshot.settings.commands.show_results;
            setting.unwrap_or_else(|| context.snapshot.client_info.drops_results())
        }
    };
    if !is_shown {
        return;
    }
    let show_error = |error: &Error| {
        let message = format!("sightline: {error}");
        context.services.show_message(MessageKind::Error, &message);
    };
    let text = match outcome {
        Err(error) => return show_error(error),
        Ok(response) => match &response.summary {
            Some(summary) => summary.clone(),
            None => format_result(&response.result.to_json().unwrap_or_default()),
        },
    };
    let title = method_title(method);
    if text.chars().count() <= MESSAGE_CHARS && text.lines().count() <= 1 {
        let message = format!("{title}: {text}");
        return context.services.show_message(MessageKind::Info, &message);
    }
    let uri = match result_documents::write(context, method, &text) {
        Ok(uri) => uri,
        Err(error) => return show_error(&error),
    };
    let message = format!("{title}: see the opened document");
    context.services.show_message(MessageKind::Info, &message);
    let params = json!({ "uri": uri, "external": false, "takeFocus": true });
    let client = &context.services.client;
    client.request("window/showDocument", &params, |_, answer| {
        if let Err(error) = answer {
            tracing::info!(%error, "the client cannot show documents");
        }
    });
}

/// Formats a result for people: its `text` if it has one, else indented JSON.
fn format_result(json: &str) -> String {
    let value = params_compat::parse("result", Some(json)).unwrap_or_default();
    match value.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None if json.len() <= MESSAGE_CHARS => json.to_owned(),
        None => serde_json::to_string_pretty(&value).unwrap_or_default(),
    }
}
