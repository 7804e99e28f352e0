//! `sightline/previewRestore`.

use super::{
    super::checkpoint_context::CheckpointContext,
    restore_roots::{Restores, action, to_conflict},
    undo_restore::UndoPlan,
};
use crate::{error::Error, request_context::RequestContext};
use sightline_checkpoint::group::Found;
use sightline_protocol::checkpoint::{PreviewRestoreParams, PreviewRestoreResult, RestoreChange};

/// `sightline/previewRestore`.
pub fn run(
    context: &RequestContext<'_>,
    params: PreviewRestoreParams,
) -> Result<PreviewRestoreResult, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Comparing")?;
    let mut result = PreviewRestoreResult::default();
    let paths = params.paths.as_deref();
    let root = params.root.as_deref();
    let named = match params.undo {
        Some(true) => None,
        _ => Some(cx.find(&params.id, root)?),
    };
    let is_undo =
        |found: &Found| params.undo.is_none() && paths.is_none() && found.is_undo_of_files();
    let restores = if let Some(named) = named.filter(|named| !is_undo(named)) {
        Some(Restores::named(&cx, named, paths, params.all_roots)?)
    } else {
        let undone = UndoPlan::find(&cx, Some(&params.id), root, paths)?;
        result.undo_id = Some(undone.named.to_string());
        result.task_id = undone.rewound.map(|(task, _)| task);
        undone.files
    };
    let Some(restores) = restores else {
        return Ok(result);
    };
    let (previews, token) = restores.preview(&cx)?;
    for (root, preview) in previews {
        for change in preview.changes {
            let (path, path_encoded, uri) = cx.name(root, &change.path);
            result.changes.push(RestoreChange {
                path,
                action: action(change.action),
                reason: change.reason,
                uri,
                path_encoded,
            });
        }
        let conflicts = preview.conflicts.into_iter();
        result
            .conflicts
            .extend(conflicts.map(|conflict| to_conflict(&cx, root, conflict)));
    }
    result.token = token;
    Ok(result)
}
