//! `sightline/appendMessages`, `loadTask`, `listTasks`, `resumeTask` and `deleteTask`:
//! stored conversations.

use std::path::Path;

use serde_json::{Number, value::RawValue};
use sightline_conversation::{
    self as conversation, DeletedRange, TruncateAction, TruncateOutcome,
    task::{Conversation, EntryMeta, EntryOrigin, ResumeOptions, TaskStore},
};
use sightline_protocol::{
    conversation::Message,
    error::ErrorKind,
    task::{
        AppendMessagesParams, AppendMessagesResult, DeleteTaskParams, DeleteTaskResult,
        ListTasksParams, ListTasksResult, LoadTaskParams, LoadTaskResult, MessageMeta,
        ResumeTaskParams, ResumeTaskResult, TaskMetadata,
    },
};
use sightline_workspace::{
    clock::now_millis, error::Error, git::Repository, path::AbsPath, storage::TaskId,
};

use super::{
    RequestContext, checkpoint::prune_checkpoints::remove_task_checkpoints, raw, tracking,
};

/// `sightline/appendMessages`.
pub fn append(
    context: &RequestContext<'_>,
    params: AppendMessagesParams,
) -> Result<AppendMessagesResult, Error> {
    let task = TaskId::new(&params.task_id)?;
    context.server.touch_task(&task);
    let store = context.server.task_store(&context.snapshot)?;
    let meta = meta(context, params.meta.unwrap_or_default());
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
        context.server.prune_tasks();
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
        Err(error) if error.kind == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Returns the metadata recorded with stored messages.
pub(super) fn meta(context: &RequestContext<'_>, given: MessageMeta) -> EntryMeta {
    let snapshot = &context.snapshot;
    let root = snapshot.access.roots().primary();
    let root = root.map(|root| root.path.as_path().to_string_lossy().into_owned());
    let cwd = given.cwd.or(root);
    let branch = || {
        let view = context.view();
        Repository::discover(&view, Path::new(cwd.as_deref()?))?.branch()
    };
    let version = match snapshot.client_info.version.as_str() {
        "" => env!("CARGO_PKG_VERSION"),
        version => version,
    };
    EntryMeta {
        origin: EntryOrigin {
            git_branch: given.git_branch.or_else(branch),
            session_id: given
                .session_id
                .or_else(|| Some(context.server.session_id().to_owned())),
            version: given.version.or_else(|| Some(version.to_owned())),
            cwd,
        },
        now: given.now.unwrap_or_else(now_millis),
    }
}

/// `sightline/loadTask`.
pub fn load(context: &RequestContext<'_>, params: LoadTaskParams) -> Result<LoadTaskResult, Error> {
    let task = TaskId::new(&params.task_id)?;
    let store = context.server.task_store(&context.snapshot)?;
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
    context: &RequestContext<'_>,
    task_id: &str,
    conversation: &Conversation,
) -> Result<TaskMetadata, Error> {
    let tracker = context.server.tracker(&context.snapshot, task_id)?;
    let records = tracking::records(context, &tracker)?;
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

/// `sightline/listTasks`.
pub fn list(
    context: &RequestContext<'_>,
    params: ListTasksParams,
) -> Result<ListTasksResult, Error> {
    let store = context.server.task_store(&context.snapshot)?;
    let limit = params.limit.map(|limit| limit as usize);
    let tasks = store.list(limit, &context.cancel)?;
    Ok(ListTasksResult { tasks })
}

/// `sightline/resumeTask`.
pub fn resume(
    context: &RequestContext<'_>,
    params: ResumeTaskParams,
) -> Result<ResumeTaskResult, Error> {
    let snapshot = &context.snapshot;
    let store = context.server.task_store(snapshot)?;
    let task = match &params.task_id {
        Some(task_id) => TaskId::new(task_id)?,
        None => newest(context, &store)?,
    };
    let tracker = context.server.tracker(snapshot, task.as_str())?;
    let stale = tracking::stale(context, &tracker)?;
    let root = snapshot.access.roots().primary();
    let cwd = root.map(|root| root.path.display());
    let settings = &snapshot.settings.conversation;
    let how = ResumeOptions {
        now: params.now.unwrap_or_else(now_millis),
        cwd: cwd.as_deref(),
        changed: &stale.changed,
        deleted: &stale.deleted,
        profile: settings.profile,
        notices: &settings.notices,
    };
    let resumed = store.resume(&task, &how, &context.cancel)?;
    Ok(ResumeTaskResult {
        task_id: task.as_str().to_owned(),
        messages: resumed.messages.into_iter().map(Message).collect(),
        interrupted_tools: resumed.interrupted_tools,
        resumption: resumed.resumption,
    })
}

/// Returns the most recently updated task of this workspace.
fn newest(context: &RequestContext<'_>, store: &TaskStore) -> Result<TaskId, Error> {
    let roots = context.snapshot.access.roots().as_slice().iter();
    let roots: Vec<AbsPath> = roots.map(|root| root.path.clone()).collect();
    let found = store.newest(&roots, &context.cancel)?;
    found.ok_or_else(|| {
        let why = "no stored task of this workspace; specify a task";
        Error::new(ErrorKind::NotFound, why)
    })
}

/// `sightline/deleteTask`. Deletes the task and its checkpoints.
pub fn delete(
    context: &RequestContext<'_>,
    params: DeleteTaskParams,
) -> Result<DeleteTaskResult, Error> {
    let task = TaskId::new(&params.task_id)?;
    let store = context.server.task_store(&context.snapshot)?;
    context.cancel.commit()?;
    let deleted = match store.delete(&task) {
        Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
        deleted => deleted,
    };
    context.server.forget_task(&task);
    let removed = remove_task_checkpoints(context, &task);
    let freed_bytes = match (deleted, removed) {
        // A task may have nothing but checkpoints left.
        (Err(_), Ok(removed)) if removed.removed > 0 => removed.freed_bytes,
        (Err(error), _) | (Ok(_), Err(error)) => return Err(error),
        (Ok(freed), Ok(removed)) => freed + removed.freed_bytes,
    };
    Ok(DeleteTaskResult { freed_bytes })
}

/// Returns what would be sent of a stored conversation.
pub(super) fn messages_to_send(
    context: &RequestContext<'_>,
    stored: &Conversation,
    messages: &[&RawValue],
) -> Result<TruncateOutcome, Error> {
    let settings = &context.snapshot.settings.conversation;
    let request = conversation::TruncateRequest {
        messages,
        deleted_range: stored.truncation.deleted_range,
        history: stored.truncation.history.clone(),
        action: TruncateAction::Apply,
        time: &Number::from(now_millis()),
        profile: settings.profile,
        notices: &settings.notices,
    };
    conversation::truncate_scanned(request, &stored.outlines(), &context.cancel)
}

pub(super) fn owned(messages: &[&RawValue]) -> Vec<Message> {
    let messages = messages.iter().copied();
    messages.map(|raw| Message(raw.to_owned())).collect()
}
