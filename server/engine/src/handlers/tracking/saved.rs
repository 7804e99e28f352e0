//! Records saved documents, on `textDocument/didSave`.

use std::sync::Arc;

use sightline_base::{cancel::Cancel, path::uri_to_path};
use sightline_context::tracker::ContentHash;

use crate::{
    jobs::all_task_keys, request_context::RequestContext, services::Services, session::Snapshot,
};

/// Handles a save: tasks that saw the document's text know the file on disk, even if
/// saving changed line endings.
pub fn schedule(services: &Arc<Services>, snapshot: &Snapshot, uri: &str) {
    let Some(open) = snapshot.editor.document(uri) else {
        return;
    };
    let Some(path) = uri_to_path(uri).ok().flatten() else {
        return;
    };
    let text = open.document.text().clone();
    let worker = services.clone();
    let work = move |snapshot: Snapshot| {
        // Evaluated in the job, after reads that arrived before the save.
        let tasks = worker.active_tasks.used();
        if tasks.is_empty() {
            return;
        }
        let context = RequestContext::new(&worker, snapshot);
        let hash = ContentHash::of_chunks(text.chunks());
        for task in tasks {
            let tracker = context.tracker(&task);
            let noted =
                tracker.and_then(|tracker| Ok(tracker.saved(&path, hash, &Cancel::default())?));
            if let Err(error) = noted {
                tracing::warn!(%error, "cannot record a saved file");
            }
        }
    };
    services
        .jobs
        .run(all_task_keys(), "textDocument/didSave", work);
}
