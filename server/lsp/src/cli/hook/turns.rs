//! The turns of an agent's session, of which each begins with a prompt.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sightline_engine::error::Error;
use sightline_protocol::checkpoint::AgentTurn;

use super::session_file::SessionFile;

/// A session, and its turn if the agent names it.
#[derive(Clone)]
pub(super) struct SessionTurns {
    pub(super) agent: &'static str,
    pub(super) session: String,
    pub(super) turn: Option<String>,
}

/// What the file of a session holds.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct State {
    /// Number of prompts.
    prompts: u64,
    /// The last turn with a checkpoint.
    saved: Option<String>,
}

impl SessionTurns {
    /// Records that a turn begins.
    pub(super) fn begin(&self, file: &Path) -> Result<(), Error> {
        let mut file = SessionFile::<State>::open(file)?;
        file.state.prompts += 1;
        file.save()
    }

    /// Runs `create` if the turn has no checkpoint yet. Parallel tools wait for it. It is not
    /// repeated within a turn, even if it fails.
    pub(super) fn save_first(
        &self,
        file: &Path,
        create: impl FnOnce(AgentTurn) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut file = SessionFile::<State>::open(file)?;
        let state = &mut file.state;
        let turn = self
            .turn
            .clone()
            .unwrap_or_else(|| state.prompts.to_string());
        if state.saved.as_ref() == Some(&turn) {
            return Ok(());
        }
        state.saved = Some(turn.clone());
        file.save()?;
        create(AgentTurn {
            agent: self.agent.to_owned(),
            session: self.session.clone(),
            turn,
        })
    }
}
