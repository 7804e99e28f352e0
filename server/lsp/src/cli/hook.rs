//! `sightline hook`: answers one event of a coding agent.
//!
//! Agents take an exit code other than 0 as a refusal, or let a tool run if its hook fails. So the
//! exit code is always 0, unknown events, agents and options are ignored, and an error while a
//! tool is checked refuses it if the workspace has access rules.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, SystemTime},
};

use sightline_agents::{
    Agent,
    hook::{self, EventKind, HookAnswer, HookEvent, HookInput, KnownSections, ToolCall},
};
use sightline_protocol::{
    access::{CheckAccessParams, CheckAccessResult},
    checkpoint::CreateCheckpointParams,
    environment::EnvironmentDetailsParams,
    method::{CheckAccess, CreateCheckpoint, EnvironmentDetails},
};
use sightline_workspace::{
    access::RULE_FILE,
    error::Error,
    storage::{Storage, atomic_file},
};

use super::{
    DONE, Workspace, internal, offline, print,
    requests::{Attached, Requests},
    turns::SessionTurns,
};
use crate::{dispatch::Handler, process::logging, services::stores::default_storage_dir};

/// Time to read standard input.
const INPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time to create a checkpoint. A running server completes it later.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to answer. Agents kill a hook after 10 seconds, and then let the tool run.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the input, in bytes. gemini-cli sends the content of mentioned files.
const MAX_INPUT: u64 = 8 * 1024 * 1024;
/// Folder of the sessions' state in the data directory.
const SESSIONS: &str = "agent-sessions";
/// Age after which the state of a session is deleted.
const SESSION_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Arguments for help texts. [`main`] reads them, and reports no errors.
#[derive(clap::Args)]
#[allow(dead_code, reason = "read by `main` before the arguments are parsed")]
pub(super) struct Hook {
    /// Name of the event, as the agent calls it.
    event: String,
    /// Agent that runs the hook: claude, codex, gemini, qwen, copilot, opencode or cline.
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// Workspace folder, instead of that of the session.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Create a checkpoint before the first edit of each turn.
    #[arg(long)]
    checkpoints: bool,
}

/// One event to answer.
struct Call {
    agent: Agent,
    kind: EventKind,
    root: Option<PathBuf>,
    storage: Option<PathBuf>,
    checkpoints: bool,
}

/// Runs `sightline hook` with the arguments after `hook`. Returns the exit code, 0.
pub(super) fn main(arguments: impl Iterator<Item = OsString>) -> i32 {
    if let Some(call) = Call::parse(arguments) {
        logging::start();
        let answer = call.answer();
        // A closed pipe cannot be reported.
        let _ = print(&hook::render(call.agent, call.kind, &answer));
    }
    DONE
}

impl Call {
    /// Returns `None` if there is nothing to do.
    fn parse(arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut event, mut agent, mut root, mut storage) = (None, None, None, None);
        let mut checkpoints = false;
        let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let mut value = || value.clone().or_else(|| arguments.next());
            match name {
                "--agent" => agent = value(),
                "--root" => root = value(),
                "--storage" => storage = value(),
                "--checkpoints" => checkpoints = true,
                _ if event.is_none() && !name.starts_with('-') => event = Some(argument),
                _ => {}
            }
        }
        let agent = Agent::from_name(&agent?)?;
        Some(Self {
            agent,
            kind: hook::event_kind(agent, &event?)?,
            root: root.map(PathBuf::from),
            storage: storage.map(PathBuf::from),
            checkpoints,
        })
    }

    fn answer(&self) -> HookAnswer {
        let (agent, kind) = (self.agent, self.kind);
        let parsed = with_deadline(INPUT_TIMEOUT, move || {
            let input = read_input()?;
            hook::parse(agent, kind, &input).map_err(|error| error.to_string())
        });
        let input = match parsed {
            Ok(Some(input)) => input,
            Ok(None) => return HookAnswer::Nothing,
            Err(why) => return self.failure(self.root.clone(), &why),
        };
        let Ok(session) = Session::new(self, &input) else {
            return self.failure(input.cwd, "the workspace folder cannot be found");
        };
        let cwd = session.cwd.clone();
        with_deadline(TIMEOUT, move || {
            session.answer(&input.event).map_err(|error| error.message)
        })
        .unwrap_or_else(|why| self.failure(Some(cwd), &why))
    }

    /// Refuses a tool that could not be checked, if the workspace has rules.
    fn failure(&self, cwd: Option<PathBuf>, why: &str) -> HookAnswer {
        tracing::warn!(agent = self.agent.name(), why, "cannot answer a hook");
        let cwd = cwd.or_else(|| std::env::current_dir().ok());
        if self.kind == EventKind::ToolCall && cwd.is_none_or(|cwd| has_rules(&cwd)) {
            HookAnswer::Deny(format!(
                "Sightline could not check this: {why}. Ask the user."
            ))
        } else {
            HookAnswer::Nothing
        }
    }
}

/// Runs `work` on a thread. A panic and the end of the time are errors.
fn with_deadline<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (done, outcome) = mpsc::channel();
    thread::Builder::new()
        .name("hook".to_owned())
        .spawn(move || {
            let _ = done.send(work());
        })
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    match outcome.recv_timeout(limit) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(format!("no answer within {} seconds", limit.as_secs()))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("internal error".to_owned()),
    }
}

fn read_input() -> Result<Vec<u8>, String> {
    let mut input = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_INPUT + 1)
        .read_to_end(&mut input)
        .map_err(|error| format!("cannot read standard input: {error}"))?;
    if input.len() as u64 > MAX_INPUT {
        return Err("the hook input is larger than 8 MiB".to_owned());
    }
    Ok(input)
}

/// Returns whether access rules may apply in a folder.
fn has_rules(folder: &Path) -> bool {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.ancestors().any(|folder| {
        let rules = folder.join(RULE_FILE).symlink_metadata();
        !rules.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    })
}

/// The session of an event.
#[derive(Clone)]
struct Session {
    agent: Agent,
    cwd: PathBuf,
    workspace: Workspace,
    task_id: Option<String>,
    /// The turns of the session, if it wants checkpoints.
    turns: Option<SessionTurns>,
}

impl Session {
    fn new(call: &Call, input: &HookInput) -> Result<Self, Error> {
        let cwd = input.cwd.as_deref().unwrap_or(Path::new("."));
        let cwd = offline::absolute_path(cwd)?;
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

    fn answer(&self, event: &HookEvent) -> Result<HookAnswer, Error> {
        match event {
            HookEvent::SessionStart { context_lost } => {
                if *context_lost && let Some(file) = self.state_file() {
                    let _ = fs::remove_file(file);
                }
                Ok(HookAnswer::Nothing)
            }
            HookEvent::Prompt { mentions } => {
                if let (Some(turns), Some(file)) = (&self.turns, self.turn_file())
                    && let Err(error) = turns.begin(&file)
                {
                    tracing::warn!(%error, "cannot count the turns of a session");
                }
                if let Some(reason) = self.denied_mention(mentions)? {
                    return Ok(HookAnswer::Deny(reason));
                }
                Ok(self
                    .context()?
                    .map_or(HookAnswer::Nothing, HookAnswer::Context))
            }
            HookEvent::ToolCall(call) => {
                if let Some(reason) = self.denied_tool(call)? {
                    return Ok(HookAnswer::Deny(reason));
                }
                if call.edits {
                    self.create_checkpoint();
                }
                Ok(HookAnswer::Nothing)
            }
        }
    }

    fn call<M: Handler>(&self, params: M::Params) -> Result<M::Result, Error> {
        let attached = Attached { offline: false };
        Ok(attached.call::<M>(&self.workspace, params)?.0)
    }

    /// Creates a checkpoint before the first edit of a turn. A failure does not stop the edit.
    fn create_checkpoint(&self) {
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

    /// Returns the file with the turns of the session. Creates its folder.
    fn turn_file(&self) -> Option<PathBuf> {
        let folder = self.storage_dir()?.join(SESSIONS);
        Storage::open(&self.storage_dir()?)
            .ok()?
            .make_dir(&folder)
            .ok()?;
        Some(folder.join(format!("{}.turn", self.task_id.as_ref()?)))
    }

    /// Checks paths as given by the user or the model, and a command.
    fn check(&self, paths: &[String], command: Option<&str>) -> Result<CheckAccessResult, Error> {
        let params = CheckAccessParams {
            paths: paths.iter().map(|path| self.absolute(path)).collect(),
            command: command.map(str::to_owned),
        };
        let mut result = self.call::<CheckAccess>(params)?;
        if result.paths.len() != paths.len() {
            return Err(internal("incomplete result of an access check"));
        }
        for (checked, path) in result.paths.iter_mut().zip(paths) {
            checked.path.clone_from(path);
        }
        Ok(result)
    }

    fn denied_mention(&self, mentions: &[String]) -> Result<Option<String>, Error> {
        // Only existing files can be added to a prompt.
        let exists = |path: &&String| Path::new(&self.absolute(path)).symlink_metadata().is_ok();
        let existing: Vec<String> = mentions.iter().filter(exists).cloned().collect();
        if existing.is_empty() {
            return Ok(None);
        }
        Ok(hook::denied_mention(&self.check(&existing, None)?))
    }

    fn denied_tool(&self, call: &ToolCall) -> Result<Option<String>, Error> {
        let mut commands = call.commands.iter();
        if call.paths.is_empty() && call.commands.is_empty() {
            return Ok(None);
        }
        let first = commands.next().map(|command| self.in_cwd(command));
        let result = self.check(&call.paths, first.as_deref())?;
        if let Some(reason) = hook::denied_tool(&result) {
            return Ok(Some(reason));
        }
        for command in commands {
            let result = self.check(&[], Some(&self.in_cwd(command)))?;
            if let Some(reason) = hook::denied_tool(&result) {
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    /// Returns an absolute path. URIs are unchanged.
    fn absolute(&self, path: &str) -> String {
        if path.to_ascii_lowercase().starts_with("file:") {
            return path.to_owned();
        }
        let full = match (path.strip_prefix("~/"), directories::BaseDirs::new()) {
            (Some(rest), Some(dirs)) => dirs.home_dir().join(rest),
            _ => self.cwd.join(path),
        };
        full.to_string_lossy().into_owned()
    }

    /// Returns the command as run in the folder of the session. Commands are checked as run in
    /// the root.
    fn in_cwd(&self, command: &str) -> String {
        if self.workspace.root.as_deref() == Some(&self.cwd) {
            return command.to_owned();
        }
        let cwd = self.cwd.to_string_lossy().replace('\'', r"'\''");
        format!("cd '{cwd}'\n{command}")
    }

    /// Returns the block with what the session does not know yet.
    fn context(&self) -> Result<Option<String>, Error> {
        let params = EnvironmentDetailsParams {
            task_id: self.task_id.clone(),
            consume: false,
            ..EnvironmentDetailsParams::default()
        };
        let details = self.call::<EnvironmentDetails>(params)?;
        let file = self.state_file();
        let stored = file.as_deref().and_then(|file| fs::read(file).ok());
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
        match &self.workspace.storage {
            Some(dir) => Some(offline::absolute_path(dir).ok()?.as_path().to_owned()),
            None => default_storage_dir().ok(),
        }
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
        atomic_file::replace(file, &text)
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
