//! `sightline/previewRestore`.

use super::{
    super::checkpoint_context::CheckpointContext,
    restore_roots::{Restores, action, to_conflict},
    undo_restore::UndoPlan,
};
use crate::{error::Error, request_context::RequestContext};
use sightline_protocol::checkpoint::{PreviewRestoreParams, PreviewRestoreResult, RestoreChange};

/// `sightline/previewRestore`.
pub(crate) fn run(
    context: &RequestContext<'_>,
    params: PreviewRestoreParams,
) -> Result<PreviewRestoreResult, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Comparing")?;
    let mut result = PreviewRestoreResult::default();
    let paths = params.paths.as_deref();
    let is_undo = match params.undo {
        Some(is_undo) => is_undo,
        None => paths.is_none() && cx.find(&params.id)?.is_undo_of_files(),
    };
    let restores = if is_undo {
        let id = Some(params.id.as_str()).filter(|id| *id != "last");
        let undone = UndoPlan::find(&cx, id, params.root.as_deref(), paths)?;
        result.undo_id = Some(undone.named.to_string());
        result.task_id = undone.rewound.map(|(task, _)| task);
        undone.files
    } else {
        Some(Restores::named(&cx, &params.id, paths, params.all_roots)?)
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
