//! `sightline/taskContext`.

use sightline_protocol::tracker::{TaskContextParams, TaskContextResult};

use super::shared::{records, stale};
use crate::{error::Error, handlers::compaction::shared::usage, request_context::TaskContext};

/// Returns a task's records, and the files that changed since it saw them.
pub fn run(
    context: &TaskContext<'_>,
    params: TaskContextParams,
) -> Result<TaskContextResult, Error> {
    let tracker = context.tracker(&params.task_id)?;
    let stale = stale(context, &tracker)?;
    let mut records = records(context, &tracker)?;
    records.changed = stale.changed;
    records.deleted = stale.deleted;
    if params.usage {
        records.usage = usage(context, &params.task_id)?;
    }
    Ok(records)
}
