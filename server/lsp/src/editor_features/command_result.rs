//! How a command reports its result to the user and to the client.

use serde::Serialize;
use serde_json::json;
use sightline_base::{escape, path::uri_to_path};
use sightline_engine::{
    error::Error,
    handlers::result_documents,
    request_context::{RequestContext, Response},
    services::MessageKind,
};

/// The result of every command.
#[derive(Serialize)]
pub struct CommandResult {
    /// What happened, in one line.
    message: String,
    /// The document with the details.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
}

/// Shows and returns a message.
pub(super) fn message(
    context: &RequestContext<'_>,
    text: impl Into<String>,
) -> Result<CommandResult, Error> {
    let message = text.into();
    context
        .services
        .show_message(MessageKind::Info, &format!("sightline: {message}"));
    without_message(message)
}

/// Returns a message without showing it.
pub(super) fn without_message(message: impl Into<String>) -> Result<CommandResult, Error> {
    Ok(CommandResult {
        message: escape::printable(&message.into()).into_owned(),
        uri: None,
    })
}

/// Opens a new document that `message` describes. If the client cannot show it, the
/// message contains its path.
pub(super) fn document(
    context: &RequestContext<'_>,
    message: impl Into<String>,
    (name, ending): (&str, &str),
    text: &str,
) -> Result<CommandResult, Error> {
    let message = message.into();
    let uri = result_documents::write_as(context, name, ending, text)?;
    let params = json!({ "uri": uri, "external": false, "takeFocus": true });
    let services = context.services.clone();
    let (shown, place) = (message.clone(), uri.clone());
    context
        .services
        .client
        .request("window/showDocument", &params, move |_, answer| {
            // Eglot 1.9 answers requests that it does not know with null.
            let is_open = answer.is_ok_and(|answer| answer["success"] == true);
            let path = uri_to_path(&place).ok().flatten();
            let message = match path.filter(|_| !is_open) {
                Some(path) => format!("sightline: {shown}; saved as {}", path.display()),
                None => format!("sightline: {shown}"),
            };
            services.show_message(MessageKind::Info, &message);
        });
    Ok(CommandResult {
        message: escape::printable(&message).into_owned(),
        uri: Some(uri),
    })
}

/// Shows an error that no response carries.
pub(super) fn show_error(context: &RequestContext<'_>, error: &Error) {
    context
        .services
        .show_message(MessageKind::Error, &format!("sightline: {error}"));
}

/// Shows what a restore or undo did, or its error, which no response carries.
pub(super) fn show_summary<R>(context: &RequestContext<'_>, done: Result<Response<R>, Error>) {
    match done {
        Ok(done) => {
            let text = format!("sightline: {}", done.summary.unwrap_or_default());
            context.services.show_message(MessageKind::Info, &text);
        }
        Err(error) => show_error(context, &error),
    }
}
