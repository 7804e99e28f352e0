//! `sightline/resumeTask`.

use sightline_base::{clock::now_millis, path::AbsPath, storage::TaskId};
use sightline_protocol::{
    error::ErrorKind,
    task::{ResumeTaskParams, ResumeTaskResult},
};
use sightline_tasks::{ResumeOptions, TaskStore};

use crate::{error::Error, handlers::tracking::shared::stale, request_context::TaskContext};

/// Prepares a task to be continued, by default the newest of this workspace.
pub fn run(context: &TaskContext<'_>, params: ResumeTaskParams) -> Result<ResumeTaskResult, Error> {
    let snapshot = &context.snapshot;
    let store = context.task_store()?;
    let task = match &params.task_id {
        Some(task_id) => TaskId::new(task_id)?,
        None => newest(context, &store)?,
    };
    let tracker = context.tracker(task.as_str())?;
    let stale = stale(context, &tracker)?;
    let root = snapshot.access.roots().primary();
    let cwd = root.map(|root| root.path.display());
    let how = ResumeOptions {
        now: params.now.unwrap_or_else(now_millis),
        cwd: cwd.as_deref(),
        changed: &stale.changed,
        deleted: &stale.deleted,
        settings: &snapshot.settings.conversation,
    };
    Ok(store.resume(&task, &how, &context.cancel)?)
}

/// Returns the most recently updated task of this workspace.
fn newest(context: &TaskContext<'_>, store: &TaskStore) -> Result<TaskId, Error> {
    let roots = context.snapshot.roots().iter();
    let roots: Vec<AbsPath> = roots.map(|root| root.path.clone()).collect();
    let found = store.newest(&roots, &context.cancel)?;
    found.ok_or_else(|| {
        let why = "no stored task of this workspace; specify a task";
        Error::new(ErrorKind::NotFound, why)
    })
}
