//! `sightline.pauseBridges`.

use serde::Deserialize;
use sightline_engine::{error::Error, params_compat, request_context::RequestContext};

use super::command_result::{self, CommandResult};

/// The argument of the command.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PauseArg {
    /// The new state. Absent: the other one.
    is_paused: Option<bool>,
}

impl PauseArg {
    /// Parses the argument of the command.
    ///
    /// # Errors
    /// `invalidParams`.
    pub fn read(method: &str, params: &str) -> Result<Self, Error> {
        let mut params = params_compat::parse_object(method, Some(params))?;
        params_compat::drop_nulls(&mut params);
        serde_json::from_value(params).map_err(|error| Error::invalid(format!("{method}: {error}")))
    }
}

/// Pauses or resumes the IDE protocols of agents, including those that are opened later.
///
/// # Errors
/// None.
pub(crate) fn run(context: &RequestContext<'_>, arg: PauseArg) -> Result<CommandResult, Error> {
    let Some(agents) = context.services.agents() else {
        return command_result::message(context, "no agent is connected");
    };
    let is_paused = arg.is_paused.unwrap_or(!agents.is_paused());
    agents.set_paused(is_paused);
    if is_paused {
        return command_result::message(context, "agents do not get the selection any more");
    }
    command_result::message(context, "agents get the selection again")
}
