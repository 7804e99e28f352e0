//! `sightline/pruneCheckpoints`, and the removal of a deleted task's checkpoints.

use super::{
    checkpoint_context::{CheckpointContext, selected_roots},
    maintenance,
    recovery::try_recover,
};
use crate::{
    error::Error,
    jobs::keys_of_roots,
    request_context::{RequestContext, Response},
    services::Services,
    session::Snapshot,
};
use sightline_base::{plural::plural, storage::TaskId};
use sightline_checkpoint::{Keep, Oid};
use sightline_protocol::checkpoint::{PruneCheckpointsParams, PruneCheckpointsResult};
use std::sync::Arc;

/// `sightline/pruneCheckpoints`.
pub fn run(
    context: &RequestContext<'_>,
    params: PruneCheckpointsParams,
) -> Result<Response<PruneCheckpointsResult>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Removing checkpoints")?;
    let keep = Keep {
        newest: params.keep.map(|keep| keep as usize),
        since: params
            .older_than
            .map(|time| u64::try_from(time).unwrap_or(0)),
        max_bytes: params.max_bytes,
        without: params
            .ids
            .iter()
            .map(|id| Ok(cx.find(id, params.root.as_deref())?.checkpoint.id))
            .collect::<Result<_, Error>>()?,
        labelled: params.labelled,
        ..Keep::default()
    };
    let mut total = PruneCheckpointsResult::default();
    let roots = selected_roots(cx.roots(), params.root.as_deref())?;
    let nothing = Keep {
        labelled: params.labelled,
        ..Keep::default()
    };
    if keep == nothing {
        return Ok(total.into());
    }
    for root in roots {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        let pruned = if params.dry_run {
            checkpoints.store.would_prune(&keep, &context.cancel)
        } else {
            checkpoints.store.prune(&keep, &context.cancel)
        };
        let pruned = pruned.map_err(|error| error.in_root(cx.roots(), root))?;
        total.removed += pruned.removed.len() as u64;
        total.freed_bytes += pruned.freed_bytes;
        if pruned.kept_labelled > 0 {
            *total.kept_labelled.get_or_insert(0) += pruned.kept_labelled;
        }
        if params.dry_run {
            let removed = pruned.removed.iter();
            total.checkpoints.extend(removed.map(Oid::to_string));
        } else {
            maintenance::schedule(context.services, &checkpoints);
        }
    }
    let count = plural(total.removed, "checkpoint");
    let bytes = plural(total.freed_bytes, "byte");
    let summary = if params.dry_run {
        format!("{count} would be removed, about {bytes} freed")
    } else {
        format!("{count} removed, {bytes} freed")
    };
    Ok(Response::from(total).with_summary(summary))
}

/// Removes a task's checkpoints in all open roots.
pub(in crate::handlers) fn remove_task_checkpoints(
    context: &RequestContext<'_>,
    task: &TaskId,
) -> Result<PruneCheckpointsResult, Error> {
    let keep = Keep {
        without_task: Some(task.clone()),
        ..Keep::default()
    };
    let mut total = PruneCheckpointsResult::default();
    for root in context.snapshot.roots() {
        let checkpoints = context.checkpoints(root)?;
        if !checkpoints.store.git_dir().exists() {
            continue;
        }
        try_recover(context, root);
        let pruned = checkpoints.store.prune(&keep, &context.cancel)?;
        total.removed += pruned.removed.len() as u64;
        total.freed_bytes += pruned.freed_bytes;
    }
    Ok(total)
}

/// Schedules removal of the checkpoints of deleted tasks.
pub(in crate::handlers) fn forget_tasks(
    services: &Arc<Services>,
    snapshot: Snapshot,
    tasks: Vec<TaskId>,
) {
    if tasks.is_empty() {
        return;
    }
    let worker = services.clone();
    let keys = keys_of_roots(snapshot.roots());
    // The snapshot whose roots are the keys.
    services.jobs.run(keys, "prune checkpoints", move |_| {
        let context = RequestContext::new(&worker, snapshot);
        for task in tasks {
            if let Err(error) = remove_task_checkpoints(&context, &task) {
                tracing::warn!(%error, "cannot remove the checkpoints of a deleted task");
            }
        }
    });
}
