//! `sightline/openFile`.

use serde_json::json;
use sightline_protocol::{
    editor::{OpenFileParams, OpenFileResult},
    error::ErrorKind,
};

use crate::{error::Error, request_context::RequestContext};

/// Asks the editor to show a file. Its response is not waited for.
pub fn run(context: &RequestContext<'_>, params: OpenFileParams) -> Result<OpenFileResult, Error> {
    let snapshot = &context.snapshot;
    let view = context.view();
    let location = view.roots().locate(&params.path)?;
    let path = view.roots().absolute(&location);
    // The user follows a rule to its line. Nothing of the file is returned, and it stays hidden.
    let rule_files = snapshot.access.get().rule_files();
    if !rule_files.iter().any(|file| file.path == path.as_path()) {
        view.require(&location, snapshot.outside_allowed())?;
    }
    let client = &context.services.client;
    if !snapshot.client_info.shows_documents || client.is_closed() {
        let message = "no editor is connected that can show documents";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if !path.as_path().is_file() {
        let message = format!("cannot show {}: no such file", params.path);
        return Err(Error::new(ErrorKind::NotFound, message).with_path(params.path));
    }
    let mut request = json!({ "uri": path.to_uri(), "external": false, "takeFocus": false });
    if let Some(line) = params.line {
        let position = json!({ "line": line.saturating_sub(1), "character": 0 });
        request["selection"] = json!({ "start": position, "end": position });
    }
    client.request("window/showDocument", &request, |_, answer| {
        if let Err(error) = answer {
            tracing::info!(%error, "the client cannot show a file");
        }
    });
    Ok(OpenFileResult {
        path: view.roots().result_path(&location).0,
    })
}
