//! Parts that several requests about tracking use.

use std::collections::HashMap;

use sightline_access::AccessView;
use sightline_base::{
    clock::{now_millis, now_nanos},
    path::{AbsPath, uri_to_path},
};
use sightline_context::tracker::{ContentHash, FileRef, Tracker};
use sightline_protocol::tracker::TaskContextResult;

use crate::{error::Error, request_context::TaskContext, session::Snapshot};

/// Names of files that changed since a task saw them.
pub(in crate::handlers) struct Stale {
    /// Files with different content.
    pub(in crate::handlers) changed: Vec<String>,
    /// Deleted files.
    pub(in crate::handlers) deleted: Vec<String>,
}

/// Returns the files that changed since a task saw them, without denied ones.
pub(in crate::handlers) fn stale(
    context: &TaskContext<'_>,
    tracker: &Tracker,
) -> Result<Stale, Error> {
    let snapshot = &context.snapshot;
    let view = context.view();
    let unsaved = unsaved(&view, snapshot);
    let scan = tracker.scan(&unsaved, now_millis(), now_nanos(), &context.cancel)?;
    let allowed = |abs: &AbsPath| {
        let location = view.roots().place(abs.clone());
        view.require(&location, snapshot.outside_allowed()).is_ok()
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
pub(in crate::handlers) fn records(
    context: &TaskContext<'_>,
    tracker: &Tracker,
) -> Result<TaskContextResult, Error> {
    let view = context.view();
    let outside = context.snapshot.outside_allowed();
    let mut records = tracker.records()?;
    records.files.retain(|entry| {
        let located = view.roots().locate(&entry.path);
        located.is_ok_and(|location| view.require(&location, outside).is_ok())
    });
    Ok(records)
}

/// Returns the hashes of unsaved documents, by file.
pub(in crate::handlers) fn unsaved(
    view: &AccessView,
    snapshot: &Snapshot,
) -> HashMap<AbsPath, ContentHash> {
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
