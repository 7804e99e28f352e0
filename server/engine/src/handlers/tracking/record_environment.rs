//! `sightline/recordEnvironment`.

use sightline_base::clock::now_millis;
use sightline_context::tracker::environment_entry;
use sightline_protocol::tracker::{RecordEnvironmentParams, RecordedResult};

use crate::{error::Error, request_context::TaskContext};

/// Records the editor and the system of a task, if they changed.
pub fn run(
    context: &TaskContext<'_>,
    params: RecordEnvironmentParams,
) -> Result<RecordedResult, Error> {
    let snapshot = &context.snapshot;
    let tracker = context.tracker(&params.task_id)?;
    // A client without a name is recorded as unknown.
    let host = if snapshot.client_info.name.is_empty() {
        ""
    } else {
        snapshot.client_info.host.as_str()
    };
    let now = params.now.unwrap_or_else(now_millis);
    let entry = environment_entry(host, &snapshot.client_info.version, now);
    let recorded = tracker.record_environment(entry)?;
    Ok(RecordedResult { recorded })
}
