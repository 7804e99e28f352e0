//! The session of an event: its folder, the block for its prompts and its checkpoints.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use sightline_agents::{
    Agent,
    hook::{self, HookInput, KnownSections},
};
use sightline_checkpoint::Checkpoints;
use sightline_protocol::{
    checkpoint::CreateCheckpointParams, environment::EnvironmentDetailsParams,
    method::CreateCheckpoint,
};
use sightline_workspace::storage::{Storage, atomic_file};

use super::{
    super::{
        Workspace, internal, offline,
        requests::{Attached, Requests},
    },
    Call,
    access_check::AccessCheck,
    turns::{self, SessionTurns},
    with_deadline,
};
use crate::error::Error;

/// Time to create a checkpoint. A running server completes it later.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(3);
/// Folder of the sessions' state in the data directory.
const SESSIONS: &str = "agent-sessions";
/// Age after which the state of a session is deleted.
const SESSION_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The session of an event.
pub(super) struct Session {
    agent: Agent,
    pub(super) cwd: PathBuf,
    workspace: Workspace,
    task_id: Option<String>,
    /// The turns of the session, if it wants checkpoints.
    turns: Option<SessionTurns>,
}

impl Session {
    pub(super) fn new(call: &Call, input: &HookInput) -> Result<Self, Error> {
        let cwd = input.cwd.as_deref().unwrap_or(Path::new("."));
        let cwd = offline::absolute_path(cwd)?;
        // A folder that was removed has the rules of the one above it.
        let mut existing = cwd.as_path().ancestors().filter(|folder| folder.is_dir());
        let cwd = match existing.next() {
            Some(existing) => offline::absolute_path(existing)?,
            None => cwd,
        };
        let root = match &call.root {
            Some(root) => root.clone(),
            None => offline::root_above(&cwd).canonical.as_path().to_owned(),
        };
        Ok(Self {
            agent: call.agent,
            cwd: cwd.as_path().to_owned(),
            workspace: Workspace {
                root: Some(root),
                storage: call.storage.clone(),
                json: false,
            },
            task_id: input.task_id.clone(),
            turns: input
                .session
                .as_ref()
                .filter(|_| call.checkpoints)
                .map(|session| SessionTurns {
                    agent: call.agent.name(),
                    session: session.clone(),
                    turn: input.turn.clone(),
                }),
        })
    }

    /// Returns what checks access for the session.
    pub(super) fn access(&self) -> AccessCheck {
        AccessCheck {
            cwd: self.cwd.clone(),
            workspace: self.workspace.clone(),
        }
    }

    /// Forgets what the model knows.
    pub(super) fn forget(&self) {
        if let Some(file) = self.state_file() {
            let _ = fs::remove_file(file);
        }
    }

    /// Records that a turn begins.
    pub(super) fn begin_turn(&self) {
        if let (Some(turns), Some(file)) = (&self.turns, self.turn_file())
            && let Err(error) = turns.begin(&file)
        {
            tracing::warn!(%error, "cannot count the turns of a session");
        }
    }

    /// Starts a process that creates the first checkpoint of the folder, which may take longer than an
    /// edit can wait.
    pub(super) fn start_first_checkpoint(&self) {
        if self.turns.is_none() {
            return;
        }
        if let Err(error) = self.spawn_first_checkpoint() {
            tracing::warn!(%error, "cannot start the first checkpoint");
        }
    }

    fn spawn_first_checkpoint(&self) -> Result<(), Error> {
        let (Some(storage), Some(root)) = (self.storage_dir(), &self.workspace.root) else {
            return Ok(());
        };
        let checkpoints =
            Checkpoints::new(&Storage::open(&storage)?, &offline::root(&self.workspace)?);
        if checkpoints.git_dir().exists() {
            return Ok(());
        }
        let mut command = Command::new(env::current_exe().map_err(internal)?);
        command
            .args(["checkpoint", "create", "--root"])
            .arg(root)
            .arg("--storage")
            .arg(storage)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Agents end the process group of a hook.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().map_err(internal)?;
        Ok(())
    }

    /// Creates a checkpoint before the first edit of a turn. A failure does not stop the edit.
    pub(super) fn create_checkpoint(&self) {
        let (Some(turns), Some(file)) = (self.turns.clone(), self.turn_file()) else {
            return;
        };
        let workspace = self.workspace.clone();
        let created = with_deadline(CHECKPOINT_TIMEOUT, move || {
            let create = |turn| {
                let requests = Requests::new(&workspace, Attached { offline: false });
                let params = CreateCheckpointParams {
                    root: requests.root()?,
                    turn: Some(turn),
                    ..CreateCheckpointParams::default()
                };
                requests.with_maintenance(|requests| requests.call::<CreateCheckpoint>(params))?;
                Ok(())
            };
            turns
                .save_first(&file, create)
                .map_err(|error| error.message)
        });
        if let Err(why) = created {
            tracing::warn!(why, "cannot create a checkpoint before an edit");
        }
    }

    /// Returns the file with the turns of the session.
    fn turn_file(&self) -> Option<PathBuf> {
        self.session_file("turn")
    }

    /// Returns a file of the session. Creates its folder.
    fn session_file(&self, extension: &str) -> Option<PathBuf> {
        let folder = self.storage_dir()?.join(SESSIONS);
        Storage::open(&self.storage_dir()?)
            .ok()?
            .make_dir(&folder)
            .ok()?;
        Some(folder.join(format!("{}.{extension}", self.task_id.as_ref()?)))
    }

    /// Returns the block with what the session does not know yet.
    pub(super) fn context(&self) -> Result<Option<String>, Error> {
        let params = EnvironmentDetailsParams {
            task_id: self.task_id.clone(),
            consume: false,
            ..EnvironmentDetailsParams::default()
        };
        let attached = Attached { offline: false };
        let details = attached.environment_details(&self.workspace, params)?.0;
        // Agents run the hooks of the user and of the project at the same time: only one of them adds
        // the block.
        let _lock = self.session_file("lock").map(|file| turns::open(&file));
        let file = self.state_file();
        let stored = file
            .as_deref()
            .and_then(|file| atomic_file::read(file).ok()?);
        let mut known: KnownSections = stored
            .and_then(|stored| serde_json::from_slice(&stored).ok())
            .unwrap_or_default();
        let block = hook::context_block(&details.sections, &mut known, hook::markup(self.agent));
        if block.is_some()
            && let Some(file) = &file
            && let Err(error) = self.store(file, &known)
        {
            // The block will be repeated, which is harmless.
            tracing::warn!(%error, "cannot store what a session knows");
        }
        Ok(block)
    }

    /// Returns the file with the sections that the session knows.
    fn state_file(&self) -> Option<PathBuf> {
        let name = format!("{}.json", self.task_id.as_ref()?);
        Some(self.storage_dir()?.join(SESSIONS).join(name))
    }

    fn storage_dir(&self) -> Option<PathBuf> {
        offline::storage_dir(self.workspace.storage.as_deref()).ok()
    }

    fn store(&self, file: &Path, known: &KnownSections) -> Result<(), Error> {
        let (Some(dir), Some(folder)) = (self.storage_dir(), file.parent()) else {
            return Ok(());
        };
        if !file.exists() {
            Storage::open(&dir)?.make_dir(folder)?;
            remove_old_files(folder);
        }
        let text = serde_json::to_vec(known).map_err(internal)?;
        atomic_file::replace(file, &text)?;
        Ok(())
    }
}

/// Deletes the state of sessions that have ended long ago.
fn remove_old_files(folder: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|time| now.duration_since(time).ok());
        if age.is_some_and(|age| age > SESSION_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
