//! `sightline/unsavedFiles`.

use sightline_protocol::editor::{UnsavedFilesParams, UnsavedFilesResult};

use crate::{error::Error, request_context::ReadContext};

/// Returns the files with unsaved changes that agents may see.
pub fn run(
    context: &ReadContext<'_>,
    params: UnsavedFilesParams,
) -> Result<UnsavedFilesResult, Error> {
    let snapshot = &context.snapshot;
    let view = context.view();
    let roots = view.roots();
    let outside = snapshot.outside_allowed();
    let folder = match &params.folder {
        Some(folder) => Some(roots.absolute(&roots.locate(folder)?)),
        None => None,
    };
    let unsaved = snapshot.editor.unsaved(&view).into_iter();
    let uris = unsaved.filter_map(|uri| {
        let path = roots.absolute(&snapshot.allowed_location(&view, uri, outside)?);
        let is_wanted = folder
            .as_ref()
            .is_none_or(|folder| path.as_path().starts_with(folder.as_path()));
        is_wanted.then(|| path.to_uri())
    });
    Ok(UnsavedFilesResult {
        uris: uris.collect(),
        editor: Some(snapshot.client_info.host.clone()),
        changed_at: snapshot.editor.changed_at,
    })
}
