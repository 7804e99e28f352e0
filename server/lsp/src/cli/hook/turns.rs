//! The turns of an agent's session, of which each begins with a prompt.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};
use sightline_protocol::checkpoint::AgentTurn;

use crate::error::Error;

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
pub(super) struct State {
    /// Number of prompts.
    prompts: u64,
    /// The last turn with a checkpoint.
    saved: Option<String>,
}

impl SessionTurns {
    /// Records that a turn begins.
    pub(super) fn begin(&self, file: &Path) -> Result<(), Error> {
        let (mut file, mut state) = open(file)?;
        state.prompts += 1;
        write(&mut file, &state)
    }

    /// Runs `create` if the turn has no checkpoint yet. Parallel tools wait for it. It is not
    /// repeated within a turn, even if it fails.
    pub(super) fn save_first(
        &self,
        file: &Path,
        create: impl FnOnce(AgentTurn) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut file, mut state) = open(file)?;
        let turn = self
            .turn
            .clone()
            .unwrap_or_else(|| state.prompts.to_string());
        if state.saved.as_ref() == Some(&turn) {
            return Ok(());
        }
        state.saved = Some(turn.clone());
        write(&mut file, &state)?;
        create(AgentTurn {
            agent: self.agent.to_owned(),
            session: self.session.clone(),
            turn,
        })
    }
}

/// Opens and locks the file. Unreadable content counts as none.
pub(super) fn open(path: &Path) -> Result<(File, State), Error> {
    let opened = || {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // A pipe must not block, and a link must not lead to another file.
            let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
            options.mode(0o600).custom_flags(flags.bits().cast_signed());
        }
        let mut file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        file.lock()?;
        let mut text = Vec::new();
        Read::by_ref(&mut file)
            .take(64 * 1024)
            .read_to_end(&mut text)?;
        Ok((file, serde_json::from_slice(&text).unwrap_or_default()))
    };
    opened().map_err(|error: io::Error| failed(path, &error))
}

fn write(file: &mut File, state: &State) -> Result<(), Error> {
    let written = serde_json::to_vec(state).map_err(io::Error::from);
    written
        .and_then(|text| {
            file.rewind()?;
            file.set_len(0)?;
            file.write_all(&text)
        })
        .map_err(|error| Error::storage(format!("cannot write the turns of a session: {error}")))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::storage(format!("cannot open {}: {error}", path.display()))
}
