//! The access rules of the workspace, for servers of other programs.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sightline_access::AccessView;
use sightline_agents::{
    hook::ToolCall,
    judge::{Judge, Refusal, Subject},
};
use sightline_base::{decision_log, storage::Storage};
use sightline_checkpoint::Checkpoints;
use sightline_engine::{error::Error, settings::config_file};
use sightline_hub::judge::Rules;
use sightline_local::process::ancestors::ancestors;
use sightline_protocol::{
    checkpoint::{AgentTurn, CreateCheckpointParams},
    decision::Decision,
};

use super::{super::hook::guard::HookGuard, super::offline, backend::Backend};

/// Time between two calls after which another turn has begun, if the agent reports none.
const PAUSE: Duration = Duration::from_secs(60);

/// Judges as hooks do.
pub(super) struct WorkspaceRules {
    backend: Arc<Backend>,
    saved: Mutex<Saved>,
}

/// Before which calls the workspace was saved.
#[derive(Default)]
struct Saved {
    /// Name of the last turn.
    turn: Option<String>,
    /// The last call outside of turns.
    call: Option<Instant>,
}

impl WorkspaceRules {
    pub(super) fn new(backend: Arc<Backend>) -> Self {
        Self {
            backend,
            saved: Mutex::default(),
        }
    }

    /// Creates a checkpoint unless there is one for this turn. It is not repeated, even if it fails.
    fn save(&self) -> Result<(), Error> {
        // Parallel calls wait for it.
        let mut saved = self.saved.lock();
        let dir = offline::storage_dir(self.backend.workspace.storage.as_deref())?;
        let store = Checkpoints::new(&Storage::open(&dir)?, &self.backend.root);
        let turn = store.running_turn(&ancestors())?;
        let name = turn.as_ref().map(|turn| turn.name.to_string());
        let last = saved.call.replace(Instant::now());
        let is_saved = match &turn {
            Some(turn) => turn.before.is_some() || saved.turn == name,
            None => last.is_some_and(|last| last.elapsed() < PAUSE),
        };
        saved.turn = name;
        if is_saved {
            return Ok(());
        }
        self.backend.create_before_change(CreateCheckpointParams {
            automatic: turn.is_none(),
            turn: turn.map(|turn| AgentTurn {
                agent: turn.agent,
                session: turn.session,
                turn: turn.name.to_string(),
            }),
            ..CreateCheckpointParams::default()
        })
    }
}

impl Rules for WorkspaceRules {
    fn refusal(&self, folder: &Path, call: &ToolCall) -> Result<Option<Refusal>, String> {
        let judge = Judge {
            folder: folder.to_owned(),
            home: directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()),
        };
        let guard = || {
            let guard = HookGuard::new(&self.backend.workspace, folder);
            guard.map_err(|error| error.message)
        };
        judge.tool_call(call, guard, |params| {
            let checked = self.backend.checked_access(params);
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
        offline::record(self.backend.workspace.storage.as_deref(), decisions);
    }

    fn save_before_change(&self) {
        if let Err(error) = self.save() {
            tracing::warn!(%error, "cannot create a checkpoint before a call");
        }
    }

    fn view(&self) -> Result<AccessView, String> {
        self.backend.view().map_err(|error| error.message)
    }
}
