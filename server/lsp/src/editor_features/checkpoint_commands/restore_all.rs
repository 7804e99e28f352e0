//! `sightline.restoreAll`.

use sightline_engine::{
    error::Error, handlers::checkpoint::restore, request_context::RequestContext,
};
use sightline_protocol::checkpoint::{PreviewRestoreParams, RestoreCheckpointParams};

use super::{
    base_checkpoint::BaseCheckpoint,
    undo_last_restore::{kept_paths, named, with_changes},
};
use crate::editor_features::{
    command_result::{self, CommandResult},
    confirm,
    document_arg::DocumentArg,
};

/// Restores all files to a checkpoint or to the state before a turn, by default to the latest
/// checkpoint, after confirmation.
///
/// # Errors
/// The errors of the requests it uses.
pub(crate) fn run(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let state = BaseCheckpoint::of(context, &target)?;
    let params = PreviewRestoreParams {
        id: state.id.clone(),
        undo: Some(false),
        ..PreviewRestoreParams::default()
    };
    let preview = restore::preview_restore::run(context, params)?;
    let kept = kept_paths(&preview);
    if preview.changes.is_empty() {
        let message = match kept.len() {
            0 => format!("already up to date with {state}"),
            _ => format!("cannot restore {state}: {}", named(&kept)),
        };
        return command_result::message(context, message);
    }
    let question = with_changes(&format!("Restore everything to {state}?"), &preview);
    let params = RestoreCheckpointParams {
        id: state.id.clone(),
        token: Some(preview.token),
        ..RestoreCheckpointParams::default()
    };
    let what = format!("restore everything to {state}");
    confirm::ask_to_restore(context, what, question, "Restore", |context| {
        restore::restore_checkpoint::run(context, params)
    })
}
