//! `sightline/selection`.

use sightline_base::limits;
use sightline_protocol::editor::{Selection, SelectionParams, SelectionResult};

use crate::{error::Error, request_context::ReadContext};

/// Returns the active file and the selected text. Nothing is said about a file that agents may
/// not see.
pub fn run(context: &ReadContext<'_>, params: SelectionParams) -> Result<SelectionResult, Error> {
    let snapshot = &context.snapshot;
    let editor = &snapshot.editor;
    let view = context.view();
    let outside = snapshot.outside_allowed();
    let Some(uri) = editor.active() else {
        return Ok(SelectionResult::default());
    };
    let Some(location) = snapshot.allowed_location(&view, uri, outside) else {
        return Ok(SelectionResult::default());
    };
    let document = editor.document(uri);
    let mut result = SelectionResult {
        path: Some(view.roots().result_path(&location).0),
        language_id: document.map(|open| open.language_id.clone()),
        ..SelectionResult::default()
    };
    let mut editors = editor.visible_editors().iter();
    let ranges = editors
        .find(|shown| shown.uri == uri)
        .map_or(&[][..], |shown| &shown.selections);
    let max = params.max_bytes.and_then(|max| usize::try_from(max).ok());
    let mut left = max.map_or(limits::MAX_SELECTED_BYTES, |max| {
        max.min(limits::MAX_SELECTED_BYTES)
    });
    for range in ranges {
        let text = match document {
            Some(open) => {
                let encoding = snapshot.client_info.encoding;
                let text = open.document.slice(*range, encoding, left + 1);
                result.truncated |= text.len() > left;
                let end = text.floor_char_boundary(left);
                text.get(..end).unwrap_or_default().to_owned()
            }
            None => String::new(),
        };
        left -= text.len();
        result.selections.push(Selection {
            range: *range,
            text,
        });
    }
    Ok(result)
}
