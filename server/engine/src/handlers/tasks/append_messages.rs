//! `sightline/appendMessages`.

use sightline_base::storage::TaskId;
use sightline_protocol::{
    error::ErrorKind,
    task::{AppendMessagesParams, AppendMessagesResult},
};
use sightline_tasks::TaskStore;

use super::prune;
use crate::{
    error::Error,
    handlers::conversation::shared::{entry_meta, raw},
    request_context::RequestContext,
};

/// Appends messages to a task. Returns when they are on disk.
pub fn run(
    context: &RequestContext<'_>,
    params: AppendMessagesParams,
) -> Result<AppendMessagesResult, Error> {
    let task = TaskId::new(&params.task_id)?;
    context.services.active_tasks.touch(&task);
    let store = context.task_store()?;
    let meta = entry_meta(context, params.meta.unwrap_or_default());
    let messages = raw(&params.messages);
    let count = if messages.is_empty() {
        stored_count(context, &store, &task)?
    } else {
        let appended = store.append(&task, &messages, &meta, &context.cancel)?;
        appended.written.sync()?;
        appended.count
    };
    if count == messages.len() as u64 {
        // A new task may exceed the limit.
        prune::schedule(context.services, &context.snapshot.settings);
    }
    Ok(AppendMessagesResult { count })
}

fn stored_count(
    context: &RequestContext<'_>,
    store: &TaskStore,
    task: &TaskId,
) -> Result<u64, Error> {
    match store.load(task, &context.cancel) {
        Ok(conversation) => Ok(conversation.messages.len() as u64),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}
