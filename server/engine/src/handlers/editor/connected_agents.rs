//! `sightline/connectedAgents`.

use sightline_protocol::editor::{ConnectedAgentsParams, DidChangeBridgesParams};

use crate::{error::Error, request_context::RequestContext};

/// Returns the agents that are connected by their IDE protocol, after they are paused or resumed.
pub fn run(
    context: &RequestContext<'_>,
    params: ConnectedAgentsParams,
) -> Result<DidChangeBridgesParams, Error> {
    let Some(agents) = context.services.agents() else {
        return Ok(DidChangeBridgesParams::default());
    };
    if let Some(is_paused) = params.is_paused {
        agents.set_paused(is_paused);
    }
    Ok(DidChangeBridgesParams {
        agents: agents.names(),
        is_paused: agents.is_paused(),
        // Only the editor needs it, and gets it with changes.
        ..DidChangeBridgesParams::default()
    })
}
