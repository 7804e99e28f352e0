//! `sightline/commitCheckpoint`.

use sightline_protocol::checkpoint::{CommitCheckpointParams, CommitCheckpointResult, short_id};

use super::super::{
    checkpoint_context::CheckpointContext,
    reference::{Reference, TurnSide},
    shared::wire,
};
use crate::{
    error::Error,
    request_context::{RequestContext, Response},
};

/// `sightline/commitCheckpoint`.
pub fn run(
    context: &RequestContext<'_>,
    params: CommitCheckpointParams,
) -> Result<Response<CommitCheckpointResult>, Error> {
    let CommitCheckpointParams {
        id,
        branch,
        message,
        root,
    } = params;
    let cx = CheckpointContext::begin(context, None, "Creating a commit")?;
    let found = cx.find(&id, root.as_deref())?;
    let checkpoint = wire(&cx, found.root, &found.checkpoint)?;
    let message = match message.filter(|message| !message.trim().is_empty()) {
        Some(message) => message,
        None => {
            let named = match Reference::parse(&id)? {
                Reference::Turn(name, TurnSide::After) => {
                    cx.turn(&name, root.as_deref())?.turn.prompt
                }
                _ => None,
            };
            let short = short_id(&checkpoint.id);
            let label = checkpoint.label.or(named);
            label.unwrap_or_else(|| format!("Checkpoint {short}"))
        }
    };
    let commit = cx.with_job(&[found.root], &context.cancel, |job| {
        found
            .store
            .commit(job, found.checkpoint.id, &branch, &message)
    })?;
    let summary = format!("commit {} on the new branch {branch}", short_id(&commit));
    Ok(Response::from(CommitCheckpointResult { commit, branch }).with_summary(summary))
}
