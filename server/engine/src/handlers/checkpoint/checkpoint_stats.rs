//! `sightline/checkpointStats`.

use std::time::UNIX_EPOCH;

use super::{
    checkpoint_context::{CheckpointContext, selected_roots},
    shared::to_i64,
};
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
        let (oldest, newest) = (stats.oldest.map(to_i64), stats.newest.map(to_i64));
        total.oldest = [total.oldest, oldest].into_iter().flatten().min();
        total.newest = total.newest.max(newest);
        verified.push(stats.verified);
    }
    let oldest = verified.into_iter().min().flatten();
    let since = oldest.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    total.verified_at = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    Ok(total)
}
