//! `sightline/checkAccess`.

use sightline_core::{error::Error, limits};
use sightline_protocol::{
    access::{CheckAccessParams, CheckAccessResult},
    error::ErrorKind,
};

use super::Context;

/// Judges paths, in their order, and a command line.
pub fn run(context: &Context<'_>, params: CheckAccessParams) -> Result<CheckAccessResult, Error> {
    if params.paths.len() > limits::MAX_CHECKED_PATHS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "{} paths at once are over the limit of {}; ask in parts",
                params.paths.len(),
                limits::MAX_CHECKED_PATHS
            ),
        ));
    }
    let view = context.view();
    let command = params.command.as_deref();
    Ok(CheckAccessResult {
        paths: view.check_all(&params.paths, &context.cancel)?,
        command: command.map(|command| view.check_command(command)),
    })
}
