//! `sightline.showTurns`.

use sightline_base::{path::uri_to_path, plural::plural};
use sightline_engine::{
    error::Error,
    handlers::checkpoint::list_checkpoints::{self, list_turns},
    render::{
        plain,
        timeline::{Clock, Timeline},
    },
    request_context::RequestContext,
};
use sightline_protocol::checkpoint::{ListCheckpointsParams, ListTurnsParams};

use crate::editor_features::{
    NoParams,
    command_result::{self, CommandResult},
};

/// Name of the document.
const DOCUMENT: &str = "turns";

/// Maximum number of turns, and of other checkpoints.
const LIMIT: u32 = 200;

/// Opens a document with the turns of agents and the checkpoints, newest first.
///
/// # Errors
/// The errors of the requests it uses.
pub(crate) fn run(context: &RequestContext<'_>, _: NoParams) -> Result<CommandResult, Error> {
    let params = ListTurnsParams {
        limit: Some(LIMIT),
        ..ListTurnsParams::default()
    };
    let turns = list_turns(context, params)?.turns;
    let checkpoints = list_checkpoints::run(context, ListCheckpointsParams::default())?.checkpoints;
    if turns.is_empty() && checkpoints.is_empty() {
        return command_result::message(context, "no turns and no checkpoints yet");
    }
    let mut text = "# Turns of agents and checkpoints, newest first\n\n\
        The code actions of a line show its changes, and restore everything to the state before the turn.\n\n"
        .to_owned();
    let timeline = Timeline { checkpoints, turns };
    let lines = timeline.text(&Clock::dated(), LIMIT as usize, false);
    text.push_str(&plain(&lines));
    let message = format!(
        "{} are in the opened document",
        plural(timeline.turns.len(), "turn")
    );
    command_result::document(context, message, (DOCUMENT, ".md"), &text)
}

/// Returns the turn or checkpoint of a line of the document. `None` for any other document.
pub(in crate::editor_features) fn at_line(
    context: &RequestContext<'_>,
    uri: &str,
    line: u32,
) -> Option<String> {
    let path = uri_to_path(uri).ok().flatten()?;
    let name = path.as_path().file_name()?.to_str()?;
    let is_result = || context.services.stores.is_result(path.as_path());
    if !name.starts_with(DOCUMENT) || !is_result() {
        return None;
    }
    // Documents with results are not in the session, and are never changed.
    let text = std::fs::read_to_string(path.as_path()).ok()?;
    // The date, the time, and the name.
    let named = text.lines().nth(line as usize)?.split_whitespace().nth(2)?;
    let is_turn = named.rsplit_once('.').is_some_and(|(session, number)| {
        session.contains('-') && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_id = named.len() == 8 && named.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_turn || is_id).then(|| named.to_owned())
}
