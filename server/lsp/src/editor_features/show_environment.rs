//! `sightline.showEnvironment`.

use sightline_engine::{
    error::Error, handlers::environment_details, request_context::RequestContext,
};
use sightline_protocol::environment::EnvironmentDetailsParams;

use super::{
    NoParams,
    command_result::{self, CommandResult},
};

/// Opens a document with the block an agent would get now, without marking anything as
/// delivered.
///
/// # Errors
/// The errors of `sightline/environmentDetails`.
pub(crate) fn run(context: &RequestContext<'_>, _: NoParams) -> Result<CommandResult, Error> {
    let params = EnvironmentDetailsParams {
        include_files: true,
        consume: false,
        ..EnvironmentDetailsParams::default()
    };
    let block = environment_details::run(context, params)?.result;
    let text = format!("{}\n", block.text);
    command_result::document(
        context,
        "the environment details are in the opened document",
        ("environment", ".md"),
        &text,
    )
}
