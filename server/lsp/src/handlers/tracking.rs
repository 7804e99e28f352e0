//! `sightline/trackFile`, `recordModel`, `recordEnvironment` and `taskContext`: what a
//! task has seen, and what changed since.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use sightline_protocol::{
    error::ErrorKind,
    settings::OutsideWorkspace,
    tracker::{
        RecordEnvironmentParams, RecordModelParams, RecordedResult, TaskContextParams,
        TaskContextResult, TrackFileParams, TrackFileResult,
    },
};
use sightline_workspace::{
    access::{AccessView, PathKind},
    cancel::Cancel,
    clock::now_millis,
    error::Error,
    path::{AbsPath, uri_to_path},
    tracker::{ContentHash, FileEvent, FileRef, Tracker, environment_entry},
};

use super::{RequestContext, read_file::open_document};
use crate::{scheduler::all_task_keys, session::Snapshot, shared_state::Server};

/// `sightline/trackFile`.
pub fn track_file(
    context: &RequestContext<'_>,
    params: TrackFileParams,
) -> Result<TrackFileResult, Error> {
    let snapshot = &context.snapshot;
    let tracker = context.server.tracker(snapshot, &params.task_id)?;
    let content_hash = match &params.content_hash {
        Some(hash) => Some(ContentHash::parse(hash)?),
        None => None,
    };
    let view = context.view();
    let location = view.roots().locate(&params.path)?;
    // Denied files are not recorded, because records are listed by name.
    view.require(&location, outside_allowed(snapshot))?;
    let abs = view.roots().absolute(&location);
    if view.check_kind(&location).1 == PathKind::Folder {
        let message = format!("cannot track {:?}: it is a folder", params.path);
        return Err(Error::new(ErrorKind::Unsupported, message).with_path(params.path));
    }
    let (path, _) = view.roots().result_path(&location);
    let open = open_document(snapshot, &abs).map(|(_, open)| open);
    if let Some(open) = open {
        view.require_origin(&open.origin, &location, outside_allowed(snapshot))?;
    }
    let unsaved = open.filter(|open| open.is_unsaved(&view, Some(&abs)));
    let event = FileEvent {
        path: &path,
        abs: &abs,
        operation: params.operation,
        content_hash,
        content: unsaved.map(|open| ContentHash::of_chunks(open.document.text().chunks())),
        now: params.now.unwrap_or_else(now_millis),
        received: SystemTime::now(),
    };
    let entry = tracker.track(&event, &context.cancel)?;
    context.server.file_watcher().track(abs.as_path());
    Ok(TrackFileResult { entry })
}

/// `sightline/recordModel`.
pub fn record_model(
    context: &RequestContext<'_>,
    params: RecordModelParams,
) -> Result<RecordedResult, Error> {
    let tracker = context.server.tracker(&context.snapshot, &params.task_id)?;
    let now = params.now.unwrap_or_else(now_millis);
    let recorded = tracker.record_model(&params.model_id, &params.provider_id, params.mode, now)?;
    Ok(RecordedResult { recorded })
}

/// `sightline/recordEnvironment`.
pub fn record_environment(
    context: &RequestContext<'_>,
    params: RecordEnvironmentParams,
) -> Result<RecordedResult, Error> {
    let snapshot = &context.snapshot;
    let tracker = context.server.tracker(snapshot, &params.task_id)?;
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

/// `sightline/taskContext`.
pub fn task_context(
    context: &RequestContext<'_>,
    params: TaskContextParams,
) -> Result<TaskContextResult, Error> {
    let snapshot = &context.snapshot;
    let tracker = context.server.tracker(snapshot, &params.task_id)?;
    let stale = stale(context, &tracker)?;
    let mut records = records(context, &tracker)?;
    records.changed = stale.changed;
    records.deleted = stale.deleted;
    Ok(records)
}

/// Names of files that changed since a task saw them.
pub(super) struct Stale {
    /// Files with different content.
    pub(super) changed: Vec<String>,
    /// Deleted files.
    pub(super) deleted: Vec<String>,
}

/// Returns the files that changed since a task saw them, without denied ones.
pub(super) fn stale(context: &RequestContext<'_>, tracker: &Tracker) -> Result<Stale, Error> {
    let snapshot = &context.snapshot;
    let view = context.view();
    let unsaved = unsaved(&view, snapshot);
    let scan = tracker.scan(&unsaved, now_millis(), SystemTime::now(), &context.cancel)?;
    let allowed = |abs: &AbsPath| {
        let location = view.roots().place(abs.clone());
        view.require(&location, outside_allowed(snapshot)).is_ok()
    };
    let names = |files: Vec<FileRef>| -> Vec<String> {
        let shown = files.into_iter().filter(|file| allowed(&file.abs));
        shown.map(|file| file.path).collect()
    };
    Ok(Stale {
        changed: names(scan.changed),
        deleted: names(scan.deleted),
    })
}

/// Returns a task's records, without files that are denied now.
pub(super) fn records(
    context: &RequestContext<'_>,
    tracker: &Tracker,
) -> Result<TaskContextResult, Error> {
    let view = context.view();
    let outside = outside_allowed(&context.snapshot);
    let mut records = tracker.records()?;
    records.files.retain(|entry| {
        let located = view.roots().locate(&entry.path);
        located.is_ok_and(|location| view.require(&location, outside).is_ok())
    });
    Ok(records)
}

/// Handles a save: tasks that saw the document's text know the file on disk, even if
/// saving changed line endings.
pub fn saved(server: &Arc<Server>, uri: &str) {
    let snapshot = server.snapshot();
    let Some(open) = snapshot.editor.document(uri) else {
        return;
    };
    let Some(path) = uri_to_path(uri).ok().flatten() else {
        return;
    };
    let text = open.document.text().clone();
    let worker = server.clone();
    server
        .jobs()
        .run(all_task_keys(), "textDocument/didSave", move || {
            // Evaluated in the job, after reads that arrived before the save.
            let tasks = worker.active_tasks();
            if tasks.is_empty() {
                return;
            }
            let hash = ContentHash::of_chunks(text.chunks());
            for task in tasks {
                let tracker = worker.tracker(&snapshot, &task);
                let noted =
                    tracker.and_then(|tracker| tracker.saved(&path, hash, &Cancel::default()));
                if let Err(error) = noted {
                    tracing::warn!(%error, "cannot record a saved file");
                }
            }
        });
}

/// Returns whether files outside the workspace may be read and recorded.
pub(super) fn outside_allowed(snapshot: &Snapshot) -> bool {
    snapshot.settings.outside_workspace == OutsideWorkspace::Allow
}

/// Returns the hashes of unsaved documents, by file.
pub(super) fn unsaved(view: &AccessView, snapshot: &Snapshot) -> HashMap<AbsPath, ContentHash> {
    let documents = snapshot.editor.documents().into_iter();
    documents
        .filter_map(|(uri, open)| {
            let path = uri_to_path(uri).ok().flatten()?;
            if !open.is_unsaved(view, Some(&path)) {
                return None;
            }
            Some((path, ContentHash::of_chunks(open.document.text().chunks())))
        })
        .collect()
}
