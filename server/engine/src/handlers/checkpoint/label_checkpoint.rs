//! `sightline/labelCheckpoint`.

use super::{
    checkpoint_context::CheckpointContext,
    shared::{check_label, wire},
};
use crate::{
    error::Error,
    request_context::{RequestContext, Response},
};
use sightline_checkpoint::group::Found;
use sightline_protocol::checkpoint::{Checkpoint, LabelCheckpointParams, short_id};

/// `sightline/labelCheckpoint`.
pub fn run(
    context: &RequestContext<'_>,
    params: LabelCheckpointParams,
) -> Result<Response<Checkpoint>, Error> {
    check_label(params.label.as_deref())?;
    let cx = CheckpointContext::begin(context, None, "Labelling a checkpoint")?;
    let Found {
        root,
        store,
        checkpoint,
    } = cx.find(&params.id, params.root.as_deref())?;
    let label = params.label.filter(|label| !label.trim().is_empty());
    let labelled = store
        .set_label(checkpoint.id, label, &context.cancel)
        .map_err(|error| error.in_root(cx.roots(), root))?;
    let labelled = wire(&cx, root, &labelled)?;
    let summary = match &labelled.label {
        Some(label) => format!("checkpoint {}: {label}", short_id(&labelled.id)),
        None => format!("checkpoint {}: no label", short_id(&labelled.id)),
    };
    Ok(Response::from(labelled).with_summary(summary))
}
