//! `sightline/verifyCheckpoints`.

use super::checkpoint_context::{CheckpointContext, selected_roots};
use crate::{error::Error, request_context::RequestContext};
use sightline_protocol::checkpoint::{VerifyCheckpointsParams, VerifyCheckpointsResult};

/// `sightline/verifyCheckpoints`.
pub fn run(
    context: &RequestContext<'_>,
    params: VerifyCheckpointsParams,
) -> Result<VerifyCheckpointsResult, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Verifying checkpoints")?;
    let mut problems = Vec::new();
    for root in selected_roots(cx.roots(), params.root.as_deref())? {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        problems.extend(cx.with_job(&[root], &context.cancel, |job| {
            checkpoints.store.verify(job)
        })?);
    }
    Ok(VerifyCheckpointsResult {
        ok: problems.is_empty(),
        problems,
    })
}
