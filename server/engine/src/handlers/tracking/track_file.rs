//! `sightline/trackFile`.

use sightline_access::{Content, PathKind};
use sightline_base::clock::{now_millis, now_nanos};
use sightline_context::tracker::{ContentHash, FileEvent};
use sightline_protocol::{
    error::ErrorKind,
    tracker::{TrackFileParams, TrackFileResult},
};

use crate::{error::Error, handlers::read_file::open_document, request_context::TaskContext};

/// Records that a task read or edited a file.
pub fn run(context: &TaskContext<'_>, params: TrackFileParams) -> Result<TrackFileResult, Error> {
    let snapshot = &context.snapshot;
    let tracker = context.tracker(&params.task_id)?;
    let content_hash = match &params.content_hash {
        Some(hash) => Some(ContentHash::parse(hash)?),
        None => None,
    };
    let view = context.view();
    let location = view.roots().locate(&params.path)?;
    let abs = view.roots().absolute(&location);
    let open = open_document(snapshot, &abs).map(|(_, open)| open);
    // Denied files are not recorded, because records are listed by name.
    match open {
        Some(open) => open.require(&view, &location, snapshot.outside_allowed())?,
        None => view.require(&location, snapshot.outside_allowed())?,
    }
    if view.check_kind(&location, Content::OnDisk).1 == PathKind::Folder {
        let message = format!("cannot track {:?}: it is a folder", params.path);
        return Err(Error::new(ErrorKind::Unsupported, message).with_path(params.path));
    }
    let (path, _) = view.roots().result_path(&location);
    let unsaved = open.filter(|open| open.is_unsaved(&view, Some(&abs)));
    let event = FileEvent {
        path: &path,
        abs: &abs,
        operation: params.operation,
        content_hash,
        content: unsaved.map(|open| ContentHash::of_chunks(open.document.text().chunks())),
        now: params.now.unwrap_or_else(now_millis),
        received: now_nanos(),
    };
    let entry = tracker.track(&event, &context.cancel)?;
    context.tracked_files().add(abs.as_path());
    Ok(TrackFileResult { entry })
}
