//! `sightline.restoreAll`.

use sightline_engine::{
    error::Error, handlers::checkpoint::restore, jobs::keys_of_roots,
    request_context::RequestContext,
};
use sightline_protocol::checkpoint::{PreviewRestoreParams, RestoreCheckpointParams};

use super::{
    base_checkpoint::{BaseCheckpoint, latest},
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
    let view = context.view();
    let state = match &target.id {
        Some(id) => BaseCheckpoint::named(id),
        None => latest(context, target.root(context, &view)?)?,
    };
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
    let mut question = with_changes(&format!("Restore everything to {state}?"), &preview);
    for warning in &preview.warnings {
        question.push_str(&format!(" Warning: {warning}."));
    }
    let params = RestoreCheckpointParams {
        id: state.id.clone(),
        token: Some(preview.token),
        ..RestoreCheckpointParams::default()
    };
    let services = context.services.clone();
    let what = format!("restore everything to {state}");
    confirm::ask(
        context.services,
        what,
        &question,
        "Restore",
        move |snapshot| {
            let (worker, keys) = (services.clone(), keys_of_roots(snapshot.roots()));
            services.jobs.run(keys, "restore a checkpoint", move |_| {
                let context = RequestContext::new(&worker, snapshot);
                let restored = restore::restore_checkpoint::run(&context, params);
                command_result::show_summary(&context, restored);
            });
        },
    );
    command_result::without_message(question)
}
