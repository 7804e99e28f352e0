//! `sightline checkpoint prune` and `delete`.

use sightline_base::{clock::now_millis, plural::plural};
use sightline_engine::{
    error::Error,
    render::{checkpoint, more_line, relative_time},
};
use sightline_protocol::{
    checkpoint::{Checkpoint as Listed, PruneCheckpointsParams, PruneCheckpointsResult},
    method::PruneCheckpoints,
};

use super::{
    arguments::{Delete, Length, Prune},
    confirm::{ConfirmArgs, Proceed, ask, require_terminal},
    format::size,
    list_all, print_as,
};
use crate::{DONE, NEGATIVE, Workspace, print_styled as print, print_to, requests::Requests};

/// `sightline checkpoint prune`.
pub(super) fn prune(arguments: &Prune) -> Result<i32, Error> {
    let older_than = arguments
        .older_than
        .map(|age| now_millis().saturating_sub(age));
    if arguments.keep.is_none() && older_than.is_none() && arguments.max_bytes.is_none() {
        return Err(Error::invalid(
            "no limit given; use --keep, --older-than or --max-bytes",
        ));
    }
    let params = PruneCheckpointsParams {
        keep: arguments.keep,
        older_than,
        max_bytes: arguments.max_bytes,
        labelled: arguments.labelled,
        ..PruneCheckpointsParams::default()
    };
    let requests = Requests::offline(&arguments.workspace);
    remove(&requests, &arguments.confirm, &params, arguments.length)
}

/// `sightline checkpoint delete`.
pub(super) fn delete(arguments: &Delete) -> Result<i32, Error> {
    let requests = Requests::offline(&arguments.workspace);
    let params = PruneCheckpointsParams {
        ids: arguments.ids.clone(),
        root: requests.root_uri()?,
        ..PruneCheckpointsParams::default()
    };
    remove(&requests, &arguments.confirm, &params, arguments.length)
}

/// Shows what would be removed, asks, and removes it.
fn remove(
    requests: &Requests,
    confirm: &ConfirmArgs,
    params: &PruneCheckpointsParams,
    length: Length,
) -> Result<i32, Error> {
    let proceed = confirm.proceed_or_ask();
    let workspace: &Workspace = &requests.workspace;
    let prune = |dry_run: bool| {
        requests.call::<PruneCheckpoints>(PruneCheckpointsParams {
            dry_run,
            ..params.clone()
        })
    };
    let see = || {
        let pruned = prune(true)?;
        Ok::<_, Error>((removal_lines(&pruned, &list_all(requests)?, length), pruned))
    };
    if proceed == Proceed::DryRun {
        let (lines, pruned) = see()?;
        print_as(workspace, &pruned, |_| lines)?;
        return Ok(DONE);
    }
    let pruned = requests.with_maintenance(|_| {
        if proceed == Proceed::Ask {
            let (lines, seen) = see()?;
            if seen.removed != 0 {
                require_terminal()?;
            }
            if workspace.json {
                print_to(anstream::stderr().lock(), lines.as_bytes())?;
            } else {
                print(&lines)?;
            }
            if seen.removed != 0 && !ask("This cannot be undone. ")? {
                return Ok(None);
            }
        }
        prune(false).map(Some)
    })?;
    let Some(pruned) = pruned else {
        return Ok(NEGATIVE);
    };
    print_as(workspace, &pruned, |pruned| {
        let freed = size(pruned.freed_bytes);
        format!(
            "{} removed, {freed} freed\n{}",
            plural(pruned.removed, "checkpoint"),
            kept_line(pruned)
        )
    })
}

/// Returns the line that counts the checkpoints kept because of their label. Empty if there
/// are none.
fn kept_line(pruned: &PruneCheckpointsResult) -> String {
    pruned.kept_labelled.map_or_else(String::new, |count| {
        format!(
            "{} with a label kept; --labelled removes them too\n",
            plural(count, "checkpoint")
        )
    })
}

/// Lists the checkpoints that would be removed, after a summary.
fn removal_lines(pruned: &PruneCheckpointsResult, listed: &[Listed], length: Length) -> String {
    let count = pruned.checkpoints.len();
    let kept = kept_line(pruned);
    if count == 0 {
        return format!("nothing to remove\n{kept}");
    }
    let freed = size(pruned.freed_bytes);
    let summary = plural(count, "checkpoint");
    let mut lines = format!("{summary} would be removed, about {freed} freed\n");
    let limit = length.limit();
    let removed = listed
        .iter()
        .filter(|one| pruned.checkpoints.contains(&one.id));
    lines.extend(
        removed
            .take(limit)
            .map(|one| checkpoint(one, &relative_time(one.created_at))),
    );
    lines + &more_line(count, limit) + &kept
}
