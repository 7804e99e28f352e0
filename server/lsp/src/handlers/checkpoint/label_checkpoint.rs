//! `sightline/labelCheckpoint`.

use super::{
    checkpoint_context::{CheckpointContext, FoundCheckpoint},
    shared::{check_label, to_wire, with_root_name},
};
use crate::{
    error::Error,
    request_context::{RequestContext, Response},
};
use sightline_protocol::checkpoint::{Checkpoint, LabelCheckpointParams, short_id};

/// `sightline/labelCheckpoint`.
pub(crate) fn run(
    context: &RequestContext<'_>,
    params: LabelCheckpointParams,
) -> Result<Response<Checkpoint>, Error> {
    check_label(params.label.as_deref())?;
    let cx = CheckpointContext::begin(context, None, "Labelling a checkpoint")?;
    let FoundCheckpoint {
        root,
        checkpoints,
        checkpoint,
    } = cx.find(&params.id)?;
    let (known, _) = cx.root_checkpoints(root)?;
    let label = params.label.filter(|label| !label.trim().is_empty());
    let labelled = checkpoints
        .store
        .set_label(checkpoint.id, label, &context.cancel)
        .map_err(|error| with_root_name(cx.roots(), known, error))?;
    let labelled = to_wire(&cx.view, root, &labelled);
    let summary = match &labelled.label {
        Some(label) => format!("checkpoint {}: {label}", short_id(&labelled.id)),
        None => format!("checkpoint {}: no label", short_id(&labelled.id)),
    };
    Ok(Response::from(labelled).with_summary(summary))
}
