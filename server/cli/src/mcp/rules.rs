//! The access rules of the workspace, for servers of other programs.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use sightline_access::AccessView;
use sightline_agents::{
    hook::ToolCall,
    judge::{Judge, Refusal, Subject},
};
use sightline_base::{decision_log, path::Root};
use sightline_checkpoint::{Checkpoints, Turn, TurnName};
use sightline_engine::{error::Error, settings::config_file};
use sightline_hub::judge::Rules;
use sightline_local::process::ancestors::ancestors;
use sightline_protocol::{
    checkpoint::{AgentTurn, CreateCheckpointParams},
    decision::Decision,
    method::CreateCheckpoint,
};

use super::super::{hook::guard::HookGuard, offline, requests::Requests};

/// Time between two calls after which another turn has begun, if the agent reports none.
const PAUSE: Duration = Duration::from_secs(60);

/// Judges as hooks do.
pub(super) struct WorkspaceRules {
    requests: Arc<Requests>,
    root: Root,
    /// Where turns are recorded.
    turns: OnceLock<Checkpoints>,
    saved: Mutex<Saved>,
}

/// Before which calls the workspace was saved.
#[derive(Default)]
struct Saved {
    /// The last turn, and the version of the record that it was read from.
    turn: Option<Turn>,
    version: Option<Option<(SystemTime, u64)>>,
    /// Name of the last turn with a call.
    called: Option<TurnName>,
    /// The last call outside of turns.
    call: Option<Instant>,
}

impl Saved {
    /// Returns whether no checkpoint is needed before a call.
    fn is_done(&self) -> bool {
        match &self.turn {
            Some(turn) => turn.before.is_some() || self.called.as_ref() == Some(&turn.name),
            None => self.call.is_some_and(|last| last.elapsed() < PAUSE),
        }
    }
}

impl WorkspaceRules {
    pub(super) fn new(requests: Arc<Requests>, root: Root) -> Self {
        Self {
            requests,
            root,
            turns: OnceLock::new(),
            saved: Mutex::default(),
        }
    }

    /// Reads the turn again, if its record has changed.
    fn refresh(&self, saved: &mut Saved) -> Result<(), Error> {
        let turns = match self.turns.get() {
            Some(turns) => turns,
            None => {
                let storage = offline::storage(self.requests.workspace.storage.as_deref())?;
                let turns = Checkpoints::new(&storage, &self.root);
                self.turns.get_or_init(|| turns)
            }
        };
        let version = Some(turns.turns_version());
        if saved.version != version {
            saved.turn = turns.running_turn(&ancestors())?;
            saved.version = version;
        }
        Ok(())
    }

    /// Creates a checkpoint unless there is one for this turn. It is not repeated, even if it fails.
    fn save(&self) -> Result<(), Error> {
        // Parallel calls wait for it.
        let mut saved = self.saved.lock();
        self.refresh(&mut saved)?;
        let is_done = saved.is_done();
        saved.call = Some(Instant::now());
        saved.called = saved.turn.as_ref().map(|turn| turn.name.clone());
        if is_done {
            return Ok(());
        }
        let turn = saved.turn.clone();
        self.requests
            .call::<CreateCheckpoint>(CreateCheckpointParams {
                root: self.requests.root_uri()?,
                automatic: turn.is_none(),
                turn: turn.map(|turn| AgentTurn {
                    agent: turn.agent,
                    session: turn.session,
                    turn: turn.name.to_string(),
                }),
                ..CreateCheckpointParams::default()
            })?;
        Ok(())
    }
}

impl Rules for WorkspaceRules {
    fn refusal(&self, folder: &Path, call: &ToolCall) -> Result<Option<Refusal>, String> {
        let judge = Judge {
            folder: folder.to_owned(),
            home: sightline_base::path::home_dir(),
        };
        let guard = || {
            let guard = HookGuard::new(&self.requests.workspace, folder);
            guard.map_err(|error| error.message)
        };
        judge.tool_call(call, guard, |params| {
            let checked = self.requests.check_access(params);
            checked.map_err(|error| error.message)
        })
    }

    fn denied(&self, door: &str, refusal: &Refusal) -> Decision {
        let subject = match &refusal.subject {
            Subject::Path(path) => path.clone(),
            Subject::Command(line) => {
                decision_log::command_subject(&config_file::user_settings().log, line)
            }
        };
        decision_log::denied(door, subject, refusal.rule.clone())
    }

    fn record(&self, decisions: &[Decision]) {
        offline::record(self.requests.workspace.storage.as_deref(), decisions);
    }

    fn save_before_change(&self) {
        if let Err(error) = self.save() {
            tracing::warn!(%error, "cannot create a checkpoint before a call");
        }
    }

    fn is_saved(&self) -> bool {
        let saved = self.saved.try_lock();
        saved.is_some_and(|mut saved| self.refresh(&mut saved).is_ok() && saved.is_done())
    }

    fn view(&self) -> Result<AccessView, String> {
        let server = self.requests.offline_server();
        server
            .map(|server| server.context().view())
            .map_err(|error| error.message)
    }
}
