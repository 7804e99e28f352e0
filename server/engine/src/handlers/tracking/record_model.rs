//! `sightline/recordModel`.

use sightline_base::clock::now_millis;
use sightline_protocol::tracker::{RecordModelParams, RecordedResult};

use crate::{error::Error, request_context::TaskContext};

/// Records the model of a task, if it changed.
pub fn run(context: &TaskContext<'_>, params: RecordModelParams) -> Result<RecordedResult, Error> {
    let tracker = context.tracker(&params.task_id)?;
    let now = params.now.unwrap_or_else(now_millis);
    let recorded = tracker.record_model(&params.model_id, &params.provider_id, params.mode, now)?;
    Ok(RecordedResult { recorded })
}
