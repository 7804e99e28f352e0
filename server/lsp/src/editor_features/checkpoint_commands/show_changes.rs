//! `sightline.showChanges`.

use sightline_base::{escape::one_line, plural::plural};
use sightline_engine::{
    error::Error, handlers::checkpoint::diff_checkpoints, render, request_context::RequestContext,
};
use sightline_protocol::checkpoint::DiffCheckpointsParams;

use super::base_checkpoint::BaseCheckpoint;
use crate::editor_features::{
    command_result::{self, CommandResult},
    document_arg::DocumentArg,
};

/// Shows the changes since a checkpoint, by default the latest.
///
/// # Errors
/// The errors of the requests it uses.
pub(crate) fn run(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let from = BaseCheckpoint::of(context, &target)?;
    let params = DiffCheckpointsParams {
        from: from.id.clone(),
        paths: target.named().map(|path| vec![path.to_owned()]),
        patch: true,
        ..DiffCheckpointsParams::default()
    };
    let difference = diff_checkpoints::run(context, params)?;
    // The name of a turn means what the turn changed.
    let when = match target.id.as_deref().filter(|id| id.contains('.')) {
        Some(turn) => format!("in {}", one_line(turn)),
        None => format!("since {from}"),
    };
    if difference.files.is_empty() {
        return command_result::message(context, format!("nothing changed {when}"));
    }
    let count = plural(difference.files.len(), "file");
    let message = format!("{count} changed {when}");
    let mut text = format!("{message} (unsaved text is not included)\n\n");
    let lines: String = difference.files.iter().map(render::difference).collect();
    text.push_str(&render::plain(&lines));
    text.push('\n');
    text.push_str(&difference.text.unwrap_or_default());
    command_result::document(context, message, ("changes", ".diff"), &text)
}
