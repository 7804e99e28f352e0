//! `sightline/checkpointStats`.

use super::checkpoint_context::{CheckpointContext, selected_roots};
use crate::{error::Error, request_context::RequestContext};
use sightline_protocol::checkpoint::{CheckpointStatsParams, CheckpointStatsResult};

/// `sightline/checkpointStats`.
pub fn run(
    context: &RequestContext<'_>,
    params: CheckpointStatsParams,
) -> Result<CheckpointStatsResult, Error> {
    let cx = CheckpointContext::begin(context, None, "Reading checkpoints")?;
    let mut total = CheckpointStatsResult::default();
    let mut verified = Vec::new();
    for root in selected_roots(cx.roots(), params.root.as_deref())? {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        let stats = checkpoints.store.stats()?;
        total.count += stats.count;
        total.bytes += stats.bytes;
        total.oldest = [total.oldest, stats.oldest].into_iter().flatten().min();
        total.newest = total.newest.max(stats.newest);
        verified.push(stats.verified_at);
    }
    total.verified_at = verified.into_iter().min().flatten();
    Ok(total)
}
