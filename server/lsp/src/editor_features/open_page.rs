//! `sightline.openPage`.

use std::{env, process::Command, thread};

use serde_json::json;
use sightline_engine::{error::Error, request_context::RequestContext};
use sightline_local::process::detached::{detach, start_and_read_line};
use sightline_protocol::error::ErrorKind;

use super::{
    NoParams,
    command_result::{self, CommandResult},
};

/// Starts `sightline ui` for the first workspace folder, and asks the client to open its address in a
/// browser. The process ends with this one, or when no page has been open for a while.
///
/// # Errors
/// No folder is open, the client cannot open addresses, or the process does not start.
pub(crate) fn run(context: &RequestContext<'_>, _: NoParams) -> Result<CommandResult, Error> {
    let client = &context.services.client;
    if !context.snapshot.client_info.shows_documents {
        let message = "the editor cannot open a browser; run `sightline ui`";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let Some(root) = context.snapshot.roots().first() else {
        return Err(Error::new(ErrorKind::NotFound, "no folder is open"));
    };
    let failed =
        |why: &dyn std::fmt::Display| Error::storage(format!("cannot start `sightline ui`: {why}"));
    let program = env::current_exe().map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    command
        .args(["ui", "--no-open", "--ends-with-parent", "--root"])
        .arg(root.path.as_path())
        .arg("--storage")
        .arg(context.storage()?.dir());
    let (mut process, address) =
        start_and_read_line(detach(&mut command)).map_err(|error| failed(&error))?;
    // Ends with the page, and is then no zombie.
    thread::spawn(move || process.wait());
    let address = address.trim_end();
    if !address.starts_with("http://127.0.0.1:") {
        return Err(failed(
            &"it printed no address; run it in a terminal to see why",
        ));
    }
    let request = json!({ "uri": address, "external": true });
    client.request("window/showDocument", &request, |_, answer| {
        if let Err(error) = answer {
            tracing::info!(%error, "the client cannot open a browser");
        }
    });
    command_result::message(context, "the page is opened in a browser")
}
