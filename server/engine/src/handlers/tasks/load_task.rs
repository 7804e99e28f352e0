//! `sightline/loadTask`.

use sightline_base::storage::TaskId;
use sightline_conversation::DeletedRange;
use sightline_protocol::task::{LoadTaskParams, LoadTaskResult, TaskMetadata};
use sightline_tasks::Conversation;

use crate::{
    error::Error,
    handlers::{conversation::shared::owned, tracking::shared::records},
    request_context::TaskContext,
};

/// Returns a stored conversation and its metadata.
pub fn run(context: &TaskContext<'_>, params: LoadTaskParams) -> Result<LoadTaskResult, Error> {
    let task = TaskId::new(&params.task_id)?;
    let store = context.task_store()?;
    let conversation = store.load(&task, &context.cancel)?;
    let truncation = &conversation.truncation;
    Ok(LoadTaskResult {
        messages: owned(&conversation.raw_messages()),
        deleted_range: truncation.deleted_range.unwrap_or(DeletedRange::EMPTY).0,
        context_history: truncation.history.clone().into_value(),
        metadata: metadata(context, &params.task_id, &conversation)?,
        recovered: conversation.recovered,
    })
}

fn metadata(
    context: &TaskContext<'_>,
    task_id: &str,
    conversation: &Conversation,
) -> Result<TaskMetadata, Error> {
    let tracker = context.tracker(task_id)?;
    let records = records(context, &tracker)?;
    let facts = conversation.info.clone();
    Ok(TaskMetadata {
        created_at: facts.created_at,
        updated_at: facts.updated_at,
        title: facts.title,
        cwd: facts.cwd,
        git_branch: facts.git_branch,
        compactions: facts.compactions,
        files: records.files,
        models: records.models,
        environments: records.environments,
    })
}
