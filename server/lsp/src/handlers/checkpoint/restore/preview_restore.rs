//! `sightline/previewRestore`.

use super::{
    super::checkpoint_context::CheckpointContext,
    restore_roots::{TOKEN_SEPARATOR, action, parts, to_conflict},
    undo_restore::{UndoPlan, is_undo_of_files},
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
        None => paths.is_none() && is_undo_of_files(&cx.find(&params.id)?.checkpoint),
    };
    let parts = if is_undo {
        let id = Some(params.id.as_str()).filter(|id| *id != "last");
        let undone = UndoPlan::find(&cx, id, params.root.as_deref(), paths)?;
        result.undo_id = Some(undone.named.to_string());
        result.task_id = undone.rewound.map(|(task, _)| task);
        undone.parts
    } else {
        parts(&cx, &params.id, paths, params.all_roots)?
    };
    let mut tokens = Vec::new();
    for part in &parts {
        let preview = part.preview(&cx)?;
        let root = part.found.root;
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
        tokens.push(preview.token);
    }
    result.token = tokens.join(TOKEN_SEPARATOR);
    Ok(result)
}
