//! The checkpoint that a command compares with.

use sightline_base::{escape::one_line, path::Root};
use sightline_engine::{
    error::Error, handlers::checkpoint::list_checkpoints, request_context::RequestContext,
};
use sightline_protocol::{
    checkpoint::{Checkpoint, CheckpointPurpose, ListCheckpointsParams, short_id},
    error::ErrorKind,
};

use crate::editor_features::document_arg::DocumentArg;

/// The checkpoint to compare with.
pub(in crate::editor_features) struct BaseCheckpoint {
    pub(in crate::editor_features) id: String,
    label: Option<String>,
}

impl BaseCheckpoint {
    /// Returns the named checkpoint, else the latest of the folder.
    pub(super) fn of(context: &RequestContext<'_>, target: &DocumentArg) -> Result<Self, Error> {
        match &target.id {
            Some(id) => Ok(Self {
                id: id.clone(),
                label: None,
            }),
            None => latest(context, target.root(context, &context.view())?),
        }
    }
}

impl std::fmt::Display for BaseCheckpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.id.contains('.') {
            return write!(f, "the state before {}", self.id);
        }
        let short = short_id(&self.id);
        match &self.label {
            Some(label) => write!(f, "checkpoint {short} ({})", one_line(label)),
            None => write!(f, "checkpoint {short}"),
        }
    }
}

/// Returns the latest checkpoint of a folder, except undo points.
pub(in crate::editor_features) fn latest(
    context: &RequestContext<'_>,
    root: &Root,
) -> Result<BaseCheckpoint, Error> {
    let params = ListCheckpointsParams {
        root: Some(root.path.to_uri()),
        ..ListCheckpointsParams::default()
    };
    let listed = list_checkpoints::run(context, params)?.checkpoints;
    let is_asked = |one: &Checkpoint| one.purpose != Some(CheckpointPurpose::Undo);
    let latest = listed.into_iter().find(is_asked).ok_or_else(|| {
        let why = format!("no checkpoint of {} yet; create one first", root.name);
        Error::new(ErrorKind::NotFound, why)
    })?;
    Ok(BaseCheckpoint {
        id: latest.id,
        label: latest.label,
    })
}
