//! `sightline checkpoint show`.

use serde::Serialize;
use sightline_base::escape::one_line;
use sightline_engine::{
    error::Error,
    handlers::checkpoint::reference::unknown_checkpoint,
    render::{BOLD, DIM, counts, difference, time_and_age},
};
use sightline_protocol::{
    checkpoint::{
        Checkpoint, DiffCheckpointsParams, DiffCheckpointsResult, ListCheckpointsParams,
        ListTurnsParams, ListedTurn,
    },
    error::ErrorKind,
    method::{DiffCheckpoints, ListCheckpoints, ListTurns},
};

use super::{TURNS, list_all, print_as};
use crate::requests::Requests;

/// The output with `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    checkpoint: Checkpoint,
    /// What changed since the checkpoint before it.
    changes: DiffCheckpointsResult,
    /// What its turn changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_changes: Option<DiffCheckpointsResult>,
    /// The turn, if it was recorded here, and its place in its session.
    #[serde(skip)]
    turn: Option<(ListedTurn, String)>,
}

pub(super) fn show(requests: &Requests, written: &str) -> Result<i32, Error> {
    let named = requests.call::<ListCheckpoints>(ListCheckpointsParams {
        id: Some(written.to_owned()),
        root: requests.root_uri()?,
        ..ListCheckpointsParams::default()
    })?;
    let checkpoint = named
        .checkpoints
        .into_iter()
        .next()
        .ok_or_else(|| unknown_checkpoint(written))?;
    let listed = list_all(requests)?;
    let mut from_shown = listed.iter().skip_while(|one| one.id != checkpoint.id);
    let changes = match from_shown.nth(1) {
        Some(before) => requests.call::<DiffCheckpoints>(DiffCheckpointsParams {
            from: before.id.clone(),
            to: Some(checkpoint.id.clone()),
            ..DiffCheckpointsParams::default()
        })?,
        None => DiffCheckpointsResult::default(),
    };
    // A turn that edited nothing has the checkpoint of another one.
    let name = if written.contains('.') {
        Some(written.trim_end_matches('+').to_owned())
    } else {
        checkpoint.turn.as_ref().and_then(|turn| turn.name.clone())
    };
    let turn = match &name {
        Some(name) => described_turn(requests, name, &checkpoint)?,
        None => None,
    };
    let compared = name.map(|from| {
        requests.call::<DiffCheckpoints>(DiffCheckpointsParams {
            from,
            root: requests.root_uri()?,
            ..DiffCheckpointsParams::default()
        })
    });
    // The end of the turn may not have been saved.
    let turn_changes = match compared {
        Some(Err(error)) if error.kind == ErrorKind::NotFound => None,
        changes => changes.transpose()?,
    };
    print_as(
        &requests.workspace,
        &Shown {
            checkpoint,
            changes,
            turn_changes,
            turn,
        },
        text,
    )
}

/// Returns a turn, with its place in its session and which of its states is shown.
fn described_turn(
    requests: &Requests,
    name: &str,
    shown: &Checkpoint,
) -> Result<Option<(ListedTurn, String)>, Error> {
    let params = ListTurnsParams {
        root: requests.root_uri()?,
        limit: Some(TURNS),
        ..ListTurnsParams::default()
    };
    let turns = requests.call::<ListTurns>(params)?.turns;
    let Some(turn) = turns.iter().find(|turn| turn.name == name) else {
        return Ok(None);
    };
    let of_session = turns
        .iter()
        .filter(|one| (&one.agent, &one.session) == (&turn.agent, &turn.session));
    let last = of_session.map(|one| one.number).max().unwrap_or_default();
    let side = match &turn.before {
        None => "without changes, so its state is that of another checkpoint",
        Some(_) if turn.after.as_ref() == Some(&shown.id) => "the state after it",
        Some(_) => "the state before it",
    };
    let place = format!(
        "{name}, {} of {last} in its session, {}; {side}",
        turn.number,
        time_and_age(turn.started_at)
    );
    Ok(Some((turn.clone(), place)))
}

fn text(shown: &Shown) -> String {
    let one = &shown.checkpoint;
    let created = time_and_age(one.created_at);
    let mut lines = format!("{BOLD}{}{BOLD:#}\ncreated  {created}\n", one.id);
    let (agent, place, prompt) = match (&shown.turn, &one.turn) {
        (Some((turn, place)), _) => (Some(&turn.agent), Some(place), turn.prompt.as_ref()),
        (None, Some(turn)) => (Some(&turn.agent), None, turn.prompt.as_ref()),
        (None, None) => (None, None, None),
    };
    let branch = one.head.as_ref().and_then(|head| head.branch.clone());
    for (name, value) in [
        ("label", one.label.as_ref()),
        ("task", one.task_id.as_ref()),
        ("agent", agent),
        ("turn", place),
        ("prompt", prompt),
        ("branch", branch.as_ref()),
    ] {
        if let Some(value) = value {
            lines.push_str(&format!("{name:<7}  {}\n", one_line(value)));
        }
    }
    // Next to a turn, it would look like what the turn changed.
    if shown.turn_changes.is_none() {
        lines.push_str(&format!("changes  {}\n", counts(one)));
    }
    for skipped in &one.skipped {
        let (path, reason) = (one_line(&skipped.path), one_line(&skipped.reason));
        lines.push_str(&format!("skipped  {path}  {DIM}{reason}{DIM:#}\n"));
    }
    let mut add = |title: &str, changes: &DiffCheckpointsResult| {
        if !changes.files.is_empty() {
            lines.push_str(&format!("\n{BOLD}{title}{BOLD:#}\n"));
            lines.extend(changes.files.iter().map(difference));
        }
    };
    if let Some(changes) = &shown.turn_changes {
        add("changed by the turn", changes);
    }
    add("changed since the checkpoint before", &shown.changes);
    lines
}
