//! `sightline/deleteTask`.

use sightline_base::storage::TaskId;
use sightline_protocol::{
    error::ErrorKind,
    task::{DeleteTaskParams, DeleteTaskResult},
};

use crate::{
    error::Error, handlers::checkpoint::prune_checkpoints::remove_task_checkpoints,
    request_context::RequestContext,
};

/// Deletes a task and its checkpoints.
pub fn run(
    context: &RequestContext<'_>,
    params: DeleteTaskParams,
) -> Result<DeleteTaskResult, Error> {
    let task = TaskId::new(&params.task_id)?;
    let store = context.task_store()?;
    context.cancel.commit()?;
    let deleted = match store.delete(&task) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        deleted => deleted,
    };
    context.services.active_tasks.forget(&task);
    let removed = remove_task_checkpoints(context, &task);
    let freed_bytes = match (deleted, removed) {
        // A task may have nothing but checkpoints left.
        (Err(_), Ok(removed)) if removed.removed > 0 => removed.freed_bytes,
        (Err(error), _) => return Err(error.into()),
        (Ok(_), Err(error)) => return Err(error),
        (Ok(freed), Ok(removed)) => freed + removed.freed_bytes,
    };
    Ok(DeleteTaskResult { freed_bytes })
}
