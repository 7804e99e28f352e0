//! `sightline checkpoint show`.

use serde::Serialize;
use sightline_base::escape::one_line;
use sightline_engine::{error::Error, handlers::checkpoint::reference::unknown_checkpoint};
use sightline_protocol::{
    checkpoint::{Checkpoint, DiffCheckpointsParams, DiffCheckpointsResult, ListCheckpointsParams},
    method::{DiffCheckpoints, ListCheckpoints},
};

use super::{
    format::{BOLD, DIM, counts, difference, relative_time},
    list_all, print_as,
};
use crate::{DONE, requests::Requests};

/// The output with `--json`.
#[derive(Serialize)]
struct Shown {
    checkpoint: Checkpoint,
    /// What changed since the checkpoint before it.
    changes: DiffCheckpointsResult,
}

pub(super) fn show(requests: &Requests, written: &str) -> Result<i32, Error> {
    let named = requests.call::<ListCheckpoints>(ListCheckpointsParams {
        id: Some(written.to_owned()),
        root: requests.root()?,
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
    print_as(
        requests.workspace,
        &Shown {
            checkpoint,
            changes,
        },
        text,
    )?;
    Ok(DONE)
}

fn text(shown: &Shown) -> String {
    let one = &shown.checkpoint;
    let mut lines = format!(
        "{BOLD}{}{BOLD:#}\ncreated  {}\n",
        one.id,
        relative_time(one.created_at)
    );
    let turn = one.turn.as_ref();
    let turn = turn.map(|turn| format!("{} {} turn {}", turn.agent, turn.session, turn.turn));
    for (name, value) in [
        ("label", &one.label),
        ("task", &one.task_id),
        ("agent", &turn),
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
    if !shown.changes.files.is_empty() {
        lines.push('\n');
        lines.extend(shown.changes.files.iter().map(difference));
    }
    lines
}
