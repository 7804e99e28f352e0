//! `sightline/readFile`.

use std::path::Path;

use sightline_base::{
    clock::{now_millis, now_nanos},
    path::{AbsPath, uri_to_path},
};
use sightline_context::{
    editor::OpenDocument,
    read::{self, ReadOptions},
    tracker::FileEvent,
};
use sightline_conversation::tokens;
use sightline_protocol::{
    files::{ReadFileParams, ReadFileResult},
    tracker::FileOperation,
};

use crate::{error::Error, request_context::TaskContext, session::Snapshot};

/// Reads a file, and records the read for a task.
pub fn run(context: &TaskContext<'_>, params: ReadFileParams) -> Result<ReadFileResult, Error> {
    let snapshot = &context.snapshot;
    let tracker = match &params.task_id {
        Some(task) => Some(context.tracker(task)?),
        None => None,
    };
    let view = context.view();
    let location = view.roots().locate(&params.path)?;
    let abs = view.roots().absolute(&location);
    let open = match open_document(snapshot, &abs) {
        // Checked by the document's own path, because the requested path may be a symlink
        // to it.
        Some((uri, open)) => {
            let document = uri_to_path(uri).ok().flatten();
            let place = document.map(|path| view.roots().place(path));
            let place = place.as_ref().unwrap_or(&location);
            let outside = snapshot.outside_allowed();
            open.require(&view, place, outside)?;
            Some(open)
        }
        None => None,
    };
    let is_dirty = open.is_some_and(|open| open.is_unsaved(&view, Some(&abs)))
        || open.is_some() && snapshot.editor.has_dirty_tab(&abs.to_uri());
    // An open document without a file only exists in the editor.
    let from_editor = open.filter(|_| is_dirty || !exists(abs.as_path()));
    let options = ReadOptions {
        start_line: params.start_line,
        end_line: params.end_line,
        max_bytes: params.max_bytes,
        allow_outside: snapshot.outside_allowed(),
    };
    let buffer = from_editor.map(|open| open.document.text());
    let content = read::read_file(&view, &location, buffer, &options, &context.cancel)?;
    if let Some(tracker) = tracker {
        let (path, _) = view.roots().result_path(&location);
        let event = FileEvent {
            path: &path,
            abs: &abs,
            operation: FileOperation::ReadTool,
            content_hash: None,
            content: Some(content.content_hash),
            now: now_millis(),
            received: now_nanos(),
        };
        tracker.track(&event, &context.cancel)?;
        context.tracked_files().add(abs.as_path());
    }
    Ok(ReadFileResult {
        tokens: tokens::estimate(&content.text),
        text: content.text,
        source: content.source,
        is_dirty,
        changed_on_disk: is_dirty && open.is_some_and(|open| open.is_changed_on_disk(&view, &abs)),
        total_lines: content.total_lines,
        truncated: content.truncated,
        encoding: content.encoding.map(str::to_owned),
    })
}

/// Returns the open document of a file and its URI, by path or by canonical path.
pub(super) fn open_document<'a>(
    snapshot: &'a Snapshot,
    abs: &AbsPath,
) -> Option<(&'a str, &'a OpenDocument)> {
    let uri = abs.to_uri();
    let documents = snapshot.editor.documents();
    if let Some(found) = documents.iter().find(|(known, _)| **known == uri) {
        return Some(*found);
    }
    let real = sightline_base::path::canonicalize(abs.as_path()).ok()?;
    documents
        .into_iter()
        .filter(|(_, open)| open.document.is_dirty())
        .find(|(uri, _)| resolves_to(uri, &real))
}

fn resolves_to(uri: &str, real: &Path) -> bool {
    let path = uri_to_path(uri).ok().flatten();
    path.and_then(|path| sightline_base::path::canonicalize(path.as_path()).ok())
        .is_some_and(|path| path == real)
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
