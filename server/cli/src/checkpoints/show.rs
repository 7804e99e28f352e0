//! `sightline checkpoint show`.

use serde::Serialize;
use sightline_base::escape::one_line;
use sightline_engine::{
    error::Error,
    handlers::checkpoint::reference::unknown_checkpoint,
    render::{BOLD, DIM, counts, difference, time_and_age},
};
use sightline_protocol::{
    checkpoint::{Checkpoint, DiffCheckpointsParams, DiffCheckpointsResult, ListCheckpointsParams},
    error::ErrorKind,
    method::{DiffCheckpoints, ListCheckpoints},
};

use super::{list_all, print_as};
use crate::{DONE, requests::Requests};

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
    let turn = if written.contains('.') {
        Some(written.trim_end_matches('+').to_owned())
    } else {
        checkpoint.turn.as_ref().and_then(|turn| turn.name.clone())
    };
    let compared = turn.map(|from| {
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
        },
        text,
    )?;
    Ok(DONE)
}

fn text(shown: &Shown) -> String {
    let one = &shown.checkpoint;
    let created = time_and_age(one.created_at);
    let mut lines = format!("{BOLD}{}{BOLD:#}\ncreated  {created}\n", one.id);
    let turn = one.turn.as_ref();
    let agent = turn.map(|turn| format!("{} {} turn {}", turn.agent, turn.session, turn.turn));
    let prompt = turn.and_then(|turn| turn.prompt.clone());
    let branch = one.head.as_ref().and_then(|head| head.branch.clone());
    for (name, value) in [
        ("label", &one.label),
        ("task", &one.task_id),
        ("agent", &agent),
        ("prompt", &prompt),
        ("branch", &branch),
    ] {
        if let Some(value) = value {
            lines.push_str(&format!("{name:<7}  {}\n", one_line(value)));
        }
    }
    lines.push_str(&format!("changes  {}\n", counts(one)));
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
