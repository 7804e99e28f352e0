//! `sightline.checkpointNow`.

use sightline_engine::{
    error::Error, handlers::checkpoint::create_checkpoint, request_context::RequestContext,
};
use sightline_protocol::checkpoint::CreateCheckpointParams;

use crate::editor_features::{
    command_result::{self, CommandResult},
    document_arg::DocumentArg,
};

/// Creates a checkpoint of every folder.
///
/// # Errors
/// The errors of the requests it uses.
pub(crate) fn run(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let params = CreateCheckpointParams {
        label: target.label,
        ..CreateCheckpointParams::default()
    };
    let created = create_checkpoint::run(context, params)?;
    command_result::message(context, created.summary.unwrap_or_default())
}
