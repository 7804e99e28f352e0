//! `sightline.showEnvironment`.

use sightline_protocol::environment::EnvironmentDetailsParams;

use super::command_result;
use crate::handlers::{HandlerResult, RequestContext, environment_details};

/// Opens a document with the block an agent would get now, without marking anything as
/// delivered.
pub(super) fn environment(context: &RequestContext<'_>, _: &str) -> HandlerResult {
    let params = EnvironmentDetailsParams {
        include_files: true,
        consume: false,
        ..EnvironmentDetailsParams::default()
    };
    let block = environment_details::run(context, params)?;
    let text = format!("{}\n", block.text);
    command_result::document(
        context,
        "the environment details are in the opened document",
        ("environment", ".md"),
        &text,
    )
}
