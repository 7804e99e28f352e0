//! `sightline.showTurns`.

use jiff::{Timestamp, tz::TimeZone};
use sightline_base::{escape::one_line, path::uri_to_path};
use sightline_engine::{
    error::Error,
    handlers::checkpoint::list_checkpoints::{self, list_turns},
    plural::plural,
    request_context::RequestContext,
};
use sightline_protocol::checkpoint::{
    Checkpoint, ListCheckpointsParams, ListTurnsParams, ListedTurn, OutsideChanges, TurnFile,
    short_id,
};

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
    let params = ListCheckpointsParams {
        limit: Some(LIMIT),
        ..ListCheckpointsParams::default()
    };
    let mut checkpoints = list_checkpoints::run(context, params)?.checkpoints;
    checkpoints.retain(|one| one.turn.as_ref().is_none_or(|turn| turn.name.is_none()));
    if turns.is_empty() && checkpoints.is_empty() {
        return command_result::message(context, "no turns and no checkpoints yet");
    }
    let turn_entries = turns.iter().map(|turn| (turn.started_at, turn_entry(turn)));
    let others = checkpoints
        .iter()
        .map(|one| (one.created_at, checkpoint_entry(one)));
    let mut entries: Vec<(i64, String)> = turn_entries.chain(others).collect();
    entries.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut text = "# Turns of agents and checkpoints, newest first\n\n\
        The code actions of a line show its changes, and restore everything to the state before the turn.\n\n"
        .to_owned();
    text.extend(entries.into_iter().map(|(_, entry)| entry));
    let message = format!(
        "{} are in the opened document",
        plural(turns.len() as u64, "turn")
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

fn turn_entry(turn: &ListedTurn) -> String {
    let mut line = format!("{}  {}", time(turn.started_at), turn.name);
    if let Some(prompt) = &turn.prompt {
        line.push_str(&format!("  \"{}\"", one_line(prompt)));
    }
    let sum = |of: fn(&TurnFile) -> u64| turn.files.iter().map(of).sum::<u64>();
    match turn.files.len() as u64 + turn.more_files {
        0 => line.push_str("  no changes"),
        count => line.push_str(&format!(
            "  +{} -{}  {}",
            sum(|file| file.additions),
            sum(|file| file.deletions),
            plural(count, "file")
        )),
    }
    if turn.running {
        line.push_str("  running");
    }
    line.push('\n');
    if let Some(outside) = &turn.outside {
        line.push_str(&outside_entry(outside));
    }
    line
}

fn outside_entry(outside: &OutsideChanges) -> String {
    let mut names = outside.turns.clone();
    names.push(
        if names.is_empty() {
            "you, or another program"
        } else {
            "or you"
        }
        .to_owned(),
    );
    let count = outside.files.len() as u64 + outside.more_files;
    format!(
        "                  {}: {}\n",
        names.join(", "),
        plural(count, "file")
    )
}

fn checkpoint_entry(one: &Checkpoint) -> String {
    let label = one.label.as_deref().map(one_line).unwrap_or_default();
    format!(
        "{}  {}  +{} ~{} -{}  {label}\n",
        time(one.created_at),
        short_id(&one.id),
        one.added,
        one.modified,
        one.deleted,
    )
}

fn time(millis: i64) -> String {
    let at = Timestamp::from_millisecond(millis).unwrap_or_default();
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M")
        .to_string()
}
