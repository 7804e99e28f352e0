//! `sightline/listTasks`.

use sightline_protocol::task::{ListTasksParams, ListTasksResult};

use crate::{error::Error, request_context::TaskContext};

/// Lists the stored tasks, newest first.
pub fn run(context: &TaskContext<'_>, params: ListTasksParams) -> Result<ListTasksResult, Error> {
    let store = context.task_store()?;
    let limit = params.limit.map(|limit| limit as usize);
    let tasks = store.list(limit, &context.cancel)?;
    Ok(ListTasksResult { tasks })
}
