//! `sightline/createCheckpoint`.

use super::{
    checkpoint_context::{CheckpointContext, selected_roots},
    maintenance,
    shared::{check_label, conversation_mark, members, notify_created, wire},
};
use crate::{
    error::Error,
    render,
    request_context::{RequestContext, Response},
};
use sightline_base::{cancel::Cancel, limits, storage::TaskId};
use sightline_checkpoint::{
    Checkpoint as StoredCheckpoint, CheckpointMetadata, CreateIf, Keep, Request,
    group::group_root_uris,
};
use sightline_protocol::{
    checkpoint::{Checkpoint, CheckpointKind, CreateCheckpointParams},
    error::ErrorKind,
};
use std::sync::Arc;

/// `sightline/createCheckpoint`.
pub fn run(
    context: &RequestContext<'_>,
    params: CreateCheckpointParams,
) -> Result<Response<Checkpoint>, Error> {
    let task = params.task_id.as_deref().map(TaskId::new).transpose()?;
    check_label(params.label.as_deref())?;
    if let Some(turn) = &params.turn
        && [&turn.agent, &turn.session, &turn.turn]
            .iter()
            .any(|text| text.len() > limits::MAX_LABEL_BYTES)
    {
        let limit = limits::MAX_LABEL_BYTES;
        let why = format!("a field of `turn` exceeds the limit of {limit} bytes");
        return Err(Error::new(ErrorKind::TooLarge, why));
    }
    let cx = CheckpointContext::begin(context, params.work_done_token, "Creating a checkpoint")?;
    let roots = selected_roots(cx.roots(), params.root.as_deref())?;
    let messages = match &task {
        Some(task) => conversation_mark(context, task),
        None => None,
    };
    let request = Request {
        metadata: CheckpointMetadata {
            task: task.map(|task| task.as_str().to_owned()),
            label: params.label,
            turn: params.turn,
            turn_end: params.turn_end,
            automatic: params.automatic,
            messages,
            group: (roots.len() > 1).then(|| uuid::Uuid::new_v4().to_string()),
            group_roots: group_root_uris(cx.roots(), roots.iter().copied()),
            ..CheckpointMetadata::default()
        },
        confirm_large: params.confirm_large,
        create_if: if params.first {
            CreateIf::First
        } else {
            CreateIf::Always
        },
    };
    let mut taken = Vec::new();
    for root in roots {
        match create_in_root(&cx, root, &request) {
            Ok(stored) => taken.push((root, stored)),
            Err(error) => {
                remove_created(&cx, &taken);
                return Err(error);
            }
        }
    }
    let members = members(cx.roots(), &taken);
    let checkpoints = taken.iter().map(|(root, stored)| {
        let mut checkpoint = wire(&cx, *root, stored)?;
        checkpoint.group = (members.len() > 1).then(|| members.clone());
        Ok(checkpoint)
    });
    let checkpoints: Vec<Checkpoint> = checkpoints.collect::<Result<_, Error>>()?;
    if request.metadata.turn.is_some() {
        for (root, _) in &taken {
            prune_automatic(&cx, *root);
        }
    }
    for checkpoint in &checkpoints {
        // Else an earlier one was returned.
        let is_created = match request.create_if {
            CreateIf::First => checkpoint.kind == CheckpointKind::Automatic,
            _ => !request.metadata.turn_end || checkpoint.kind == CheckpointKind::TurnEnd,
        };
        if is_created {
            notify_created(context, checkpoint);
        }
    }
    let first = checkpoints
        .into_iter()
        .next()
        .ok_or_else(|| Error::invalid("no folder is open; checkpoints need an open folder"))?;
    let summary = render::created(&first);
    Ok(Response::from(first).with_summary(summary))
}

/// Creates the checkpoint of one root.
fn create_in_root(
    cx: &CheckpointContext<'_>,
    root: usize,
    request: &Request,
) -> Result<Arc<StoredCheckpoint>, Error> {
    let context = cx.request;
    let (known, checkpoints) = cx.root_checkpoints(root)?;
    let taken = cx.with_job(&[root], &context.cancel, |job| {
        checkpoints
            .store
            .create_in_turn(job, request, Some(&checkpoints.changes))
    });
    let stored = taken.map_err(|error| error.in_root(cx.roots(), root))?;
    context.services.checkpoints.remember(stored.id, known);
    cx.scanned(&checkpoints);
    maintenance::schedule(context.services, &checkpoints);
    Ok(stored)
}

/// Removes the created members of a group that failed. Restoring one would look like
/// restoring the whole group.
fn remove_created(cx: &CheckpointContext<'_>, taken: &[(usize, Arc<StoredCheckpoint>)]) {
    for (root, stored) in taken {
        let keep = Keep {
            without: vec![stored.id],
            ..Keep::default()
        };
        let pruned = cx
            .root_checkpoints(*root)
            .and_then(|(_, checkpoints)| Ok(checkpoints.store.prune(&keep, &Cancel::default())?));
        if let Err(error) = pruned {
            tracing::warn!(%error, "cannot remove a checkpoint of a failed group");
        }
    }
}

/// Removes automatic checkpoints beyond the setting.
fn prune_automatic(cx: &CheckpointContext<'_>, root: usize) {
    let keep = cx.request.snapshot.settings.checkpoints.keep_automatic as usize;
    let pruned = cx.root_checkpoints(root).and_then(|(_, checkpoints)| {
        Ok(checkpoints
            .store
            .prune_automatic(keep, &cx.request.cancel)?)
    });
    if let Err(error) = pruned {
        tracing::warn!(%error, "cannot remove old automatic checkpoints");
    }
}
