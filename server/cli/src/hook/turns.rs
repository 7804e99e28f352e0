//! The turns of an agent's session: each begins with a prompt, and ends when the agent has answered.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sightline_base::storage::Storage;
use sightline_checkpoint::{AgentProcess, Checkpoints, Turn, TurnStart};
use sightline_engine::error::Error;
use sightline_local::process::ancestors::ancestors;
use sightline_protocol::{
    checkpoint::{AgentTurn, CreateCheckpointParams},
    method::CreateCheckpoint,
    settings::TurnNames,
};

use super::{
    super::{Workspace, offline, requests::Requests},
    session_file::SessionFile,
};

/// A session, and its turn if the agent names it.
#[derive(Clone)]
pub(super) struct SessionTurns {
    pub(super) agent: &'static str,
    pub(super) session: String,
    pub(super) turn: Option<String>,
    /// Whether a subagent runs. It belongs to the turn of the agent that started it.
    pub(super) is_subagent: bool,
    pub(super) workspace: Workspace,
    /// The data directory.
    pub(super) storage: Storage,
    /// File of the session, locked while a turn begins, ends, or gets its checkpoint.
    pub(super) file: PathBuf,
}

/// What the file of a session holds.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct State {
    /// The last turn before whose first edit a checkpoint was created, or was tried to.
    saved: Option<String>,
}

impl SessionTurns {
    pub(super) fn store(&self) -> Result<Checkpoints, Error> {
        let root = offline::root(&self.workspace)?;
        Ok(Checkpoints::new(&self.storage, &root))
    }

    /// Records that a turn begins with a prompt. Turns that were interrupted end.
    pub(super) fn begin(&self, prompt: &str) -> Result<(), Error> {
        if self.is_subagent {
            return Ok(());
        }
        let _lock = SessionFile::<State>::open(&self.file)?;
        self.begin_turn(&self.store()?, Some(prompt))?;
        Ok(())
    }

    fn begin_turn(&self, store: &Checkpoints, prompt: Option<&str>) -> Result<Turn, Error> {
        for turn in store.interrupted_turns(self.agent, &self.session)? {
            if let Err(error) = self.end_turn(store, &turn) {
                tracing::warn!(%error, turn = %turn.name, "cannot save the end of a turn");
            }
        }
        let requests = Requests::offline(&self.workspace);
        let context = requests.offline_server()?.context();
        let settings = &context.snapshot.settings.checkpoints;
        let is_stored = settings.turn_names == TurnNames::Prompt;
        let start = TurnStart {
            agent: self.agent.to_owned(),
            session: self.session.clone(),
            key: self.turn.clone(),
            prompt: prompt.filter(|_| is_stored).map(str::to_owned),
            process: AgentProcess::among(ancestors().get(1..).unwrap_or_default()),
        };
        Ok(store.begin_turn(&context.view(), start)?)
    }

    /// Creates a checkpoint if the turn has none yet. Parallel tools wait for it. It is not repeated
    /// within a turn, even if it fails.
    pub(super) fn save_first(&self) -> Result<(), Error> {
        let mut file = SessionFile::<State>::open(&self.file)?;
        let store = self.store()?;
        let last = store.last_turn(self.agent, &self.session)?;
        let turn = match last.filter(|last| self.is_in(last)) {
            Some(turn) => turn,
            None => self.begin_turn(&store, None)?,
        };
        let name = turn.name.to_string();
        if turn.before.is_some() || file.state.saved.as_ref() == Some(&name) {
            return Ok(());
        }
        file.state.saved = Some(name);
        file.save()?;
        self.create(&turn, false)
    }

    /// Returns whether the session is still in its last turn. Another name of the agent is that of a turn
    /// whose prompt was missed.
    fn is_in(&self, last: &Turn) -> bool {
        let is_other = self.turn.is_some() && last.key.is_some() && self.turn != last.key;
        self.is_subagent || !is_other
    }

    /// Records that the last turn ended. Unless `again`, a turn that has ended is left as it is.
    pub(super) fn end(&self, again: bool) -> Result<(), Error> {
        if self.is_subagent {
            return Ok(());
        }
        let _lock = SessionFile::<State>::open(&self.file)?;
        let store = self.store()?;
        match store.last_turn(self.agent, &self.session)? {
            Some(turn) if again || turn.ended.is_none() => self.end_turn(&store, &turn),
            _ => Ok(()),
        }
    }

    fn end_turn(&self, store: &Checkpoints, turn: &Turn) -> Result<(), Error> {
        match turn.before {
            Some(_) => self.create(turn, true),
            None => Ok(store.end_turn(&turn.name)?),
        }
    }

    fn create(&self, turn: &Turn, turn_end: bool) -> Result<(), Error> {
        let requests = Requests::new(&self.workspace);
        let params = CreateCheckpointParams {
            root: requests.root_uri()?,
            turn: Some(AgentTurn {
                agent: turn.agent.clone(),
                session: turn.session.clone(),
                turn: turn.name.to_string(),
            }),
            turn_end,
            ..CreateCheckpointParams::default()
        };
        requests.with_maintenance(|requests| requests.call::<CreateCheckpoint>(params))?;
        Ok(())
    }
}
