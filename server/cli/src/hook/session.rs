//! The session of an event: its folder, the block for its prompts and its checkpoints.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use sightline_agents::{
    Agent,
    hook::{self, HookAnswer, HookInput, KnownSections, ToolCall},
    install::probe,
    judge::{Judge, Refusal, Subject},
};
use sightline_base::{
    clock::now_millis,
    decision_log,
    path::{AbsPath, uri_to_path},
    storage::{Storage, entries},
};
use sightline_checkpoint::Checkpoints;
use sightline_engine::{error::Error, restore_log, settings::config_file};
use sightline_local::process::{ancestors::ancestors, detached::detach};
use sightline_protocol::{
    decision::{Decision, DecisionVerdict},
    environment::{EnvironmentDetailsParams, Mode},
};

use super::{
    super::{Workspace, agents, gateway, internal, offline, requests::Requests},
    Call,
    access_check::AccessCheck,
    redaction,
    seen_files::{RunningTool, SeenFiles},
    session_file::SessionFile,
    turns::SessionTurns,
    unsaved::{UnsavedFiles, unsaved_reason},
    with_deadline,
};

/// Time to create a checkpoint. A running server completes it later.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of lines of a search that are searched for names of files.
const MAX_PRINTED_LINES: usize = 1000;
/// Name of hooks in the log of decisions.
const DOOR: &str = "hook";
/// Age after which the state of a session is deleted.
const SESSION_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The session of an event.
pub(super) struct Session {
    pub(super) agent: Agent,
    judge: Judge,
    pub(super) workspace: Workspace,
    task_id: Option<String>,
    mode: Option<Mode>,
    is_attended: bool,
    session: Option<String>,
    tool: Option<String>,
    output: Option<Value>,
    /// The turns of the session, if it wants checkpoints.
    pub(super) turns: Option<SessionTurns>,
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
            judge: Judge {
                folder: cwd.as_path().to_owned(),
                home: sightline_base::path::home_dir(),
            },
            workspace: Workspace::new(Some(root), call.storage.clone()),
            task_id: input.task_id.clone(),
            mode: input.mode,
            is_attended: input.is_attended,
            session: input.session.clone(),
            tool: input.tool.clone(),
            output: input.output.clone(),
            turns: None,
        }
        .with_turns(call, input))
    }

    fn with_turns(mut self, call: &Call, input: &HookInput) -> Self {
        let wanted = input.turn_session.as_ref().filter(|_| call.checkpoints);
        self.turns = wanted.and_then(|session| {
            Some(SessionTurns {
                agent: call.agent.name(),
                session: session.clone(),
                turn: input.turn.clone(),
                is_subagent: input.is_subagent,
                workspace: self.workspace.clone(),
                storage: self.storage()?,
                file: self.session_file(&hook::task_id(call.agent, session), "turn")?,
            })
        });
        self
    }

    /// Returns what checks access for the session.
    pub(super) fn access(&self) -> AccessCheck {
        AccessCheck {
            judge: self.judge.clone(),
            workspace: self.workspace.clone(),
        }
    }

    /// Returns the output of the tool without the contents of denied files. `None` if there are none.
    pub(super) fn redacted_output(&self) -> Result<Option<Value>, Error> {
        let Some(mut output) = self.output.clone() else {
            return Ok(None);
        };
        let folder = self.judge.folder.to_string_lossy().into_owned();
        let hidden = redaction::redact(&self.workspace, folder, &mut output)?;
        self.record(decision_log::redactions(DOOR, &hidden).collect());
        Ok((!hidden.is_empty()).then_some(output))
    }

    /// Records that a tool or a prompt was refused.
    pub(super) fn record_refusal(&self, refusal: &Refusal) {
        let decision = self.decision(&refusal.subject, DecisionVerdict::Denied);
        self.record(vec![Decision {
            rule: refusal.rule.clone(),
            ..decision
        }]);
    }

    /// Records that a tool was refused because it could not be checked.
    pub(super) fn record_unchecked(&self) {
        let subject = Subject::Path("(could not be checked)".to_owned());
        self.record(vec![self.decision(&subject, DecisionVerdict::Denied)]);
    }

    /// Records that a tool was allowed.
    pub(super) fn record_allowed(&self, call: &ToolCall) {
        if !config_file::user_settings().log.allowed {
            return;
        }
        let commands = call.commands.iter().cloned().map(Subject::Command);
        let paths = call.paths.iter().cloned().map(Subject::Path);
        let subjects = commands.chain(paths);
        let decisions = subjects.map(|subject| self.decision(&subject, DecisionVerdict::Allowed));
        self.record(decisions.collect());
    }

    fn decision(&self, subject: &Subject, verdict: DecisionVerdict) -> Decision {
        let settings = config_file::user_settings().log;
        let subject = match subject {
            Subject::Path(path) => path.clone(),
            Subject::Command(line) => decision_log::command_subject(&settings, line),
        };
        decision_log::decision(DOOR, subject, verdict)
    }

    fn record(&self, mut decisions: Vec<Decision>) {
        if self.session.as_deref() == Some(probe::SESSION) {
            return;
        }
        let Some(storage) = self.storage().filter(|_| !decisions.is_empty()) else {
            return;
        };
        for decision in &mut decisions {
            decision.agent = Some(self.agent.name().to_owned());
            decision.session = self.session.clone();
            decision.tool = self.tool.clone();
        }
        decision_log::record(&storage, &config_file::user_settings().log, &decisions);
    }

    /// Forgets what the model knows, after it has lost its context.
    pub(super) fn forget(&self) {
        if let Some(mut file) = self.known_files() {
            file.state.known = KnownSections::default();
            save(&mut file);
        }
    }

    /// Returns why the requests of the agent do not go through the gateway with which it is configured.
    pub(super) fn gateway_problem(&self) -> Option<String> {
        // It has one that was started with it.
        if env::var_os(gateway::run::VARIABLE).is_some() {
            return None;
        }
        let Workspace { root, storage, .. } = &self.workspace;
        agents::gateway_problem(self.agent, root.as_deref()?, storage.as_deref())
            .unwrap_or_else(|error| Some(error.message))
            .map(|why| format!("Sightline: {why}."))
    }

    /// Records that a turn begins.
    pub(super) fn begin_turn(&self, prompt: &str) {
        if let Some(turns) = self.turns.clone() {
            let prompt = prompt.to_owned();
            record_turn("begin a turn", move || turns.begin(&prompt));
        }
    }

    /// Records that the turn has ended, or with `again` that it has ended after it went on.
    pub(super) fn end_turn(&self, again: bool) {
        if let Some(turns) = self.turns.clone() {
            record_turn("end a turn", move || turns.end(again));
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
        let (Some(storage), Some(root)) = (self.storage(), &self.workspace.root) else {
            return Ok(());
        };
        let checkpoints = Checkpoints::new(&storage, &offline::root(&self.workspace)?);
        if checkpoints.git_dir().exists() {
            return Ok(());
        }
        let mut command = Command::new(env::current_exe().map_err(internal)?);
        command
            .args(["checkpoint", "create", "--root"])
            .arg(root)
            .arg("--storage")
            .arg(storage.dir())
            .args(["--automatic", "--label", "first state (automatic)"]);
        // Agents end the process group of a hook.
        detach(&mut command).spawn().map_err(internal)?;
        Ok(())
    }

    /// Creates a checkpoint before the first edit of a turn. A failure does not stop the edit.
    pub(super) fn create_checkpoint(&self) {
        if let Some(turns) = self.turns.clone() {
            record_turn("create a checkpoint before an edit", move || {
                turns.save_first()
            });
        }
    }

    /// Returns a file of the session. Creates its folder.
    fn session_file(&self, task: &str, extension: &str) -> Option<PathBuf> {
        let storage = self.storage()?;
        let folder = storage.dir().join(entries::SESSIONS);
        storage.make_dir(&folder).ok()?;
        Some(folder.join(format!("{task}.{extension}")))
    }

    /// Opens the record of the files that the session has used.
    pub(super) fn seen_files(&self) -> Option<SessionFile<SeenFiles>> {
        let path = self.session_file(self.task_id.as_ref()?, "files")?;
        if !path.exists() {
            path.parent().into_iter().for_each(remove_old_files);
        }
        let opened = SessionFile::<SeenFiles>::open(&path);
        let mut file = opened
            .inspect_err(|error| tracing::warn!(%error, "cannot open the files of a session"))
            .ok()?;
        // Earlier restores do not concern the session.
        if file.state.known_restore == 0 {
            file.state.known_restore = now_millis();
        }
        Some(file)
    }

    /// Opens the record of the files that the session has used, if there is one. It is not saved.
    fn known_files(&self) -> Option<SessionFile<SeenFiles>> {
        let name = format!("{}.files", self.task_id.as_ref()?);
        let path = self.storage()?.dir().join(entries::SESSIONS).join(name);
        path.exists()
            .then(|| SessionFile::open(&path).ok())
            .flatten()
    }

    /// Records that a tool is about to run. Returns an answer if it changes a file with unsaved text
    /// and the session does not know that.
    pub(super) fn begin_tool(&self, call: &ToolCall) -> Option<HookAnswer> {
        let used = self.used_files(call);
        if used.is_empty() && !call.edits {
            return None;
        }
        let mut file = self.seen_files()?;
        let seen = &mut file.state;
        if !call.edits {
            used.iter().for_each(|path| seen.read(path));
            save(&mut file);
            return None;
        }
        let answer = self.unsaved_change(call, seen);
        if answer.is_none() {
            seen.begin_change(RunningTool::of(call), &used);
        }
        save(&mut file);
        answer
    }

    /// Records that a tool has run.
    pub(super) fn end_tool(&self, call: &ToolCall) {
        let mut used = self.used_files(call);
        if !call.searches.is_empty() {
            used.extend(self.printed_files());
        }
        let may_change = call.edits || call.restores;
        if used.is_empty() && !may_change {
            return;
        }
        let Some(mut file) = self.seen_files() else {
            return;
        };
        if may_change {
            file.state.end_change(RunningTool::of(call), &used);
        } else {
            // The beginning is not reported if only the context is installed.
            used.iter().for_each(|path| file.state.read(path));
        }
        if call.restores {
            file.state.known_restore = now_millis();
        }
        save(&mut file);
    }

    /// Returns the files of the workspace that a tool names, and those in its commands that exist.
    fn used_files(&self, call: &ToolCall) -> Vec<AbsPath> {
        let mut used = self.files_of(&call.paths);
        used.extend(self.files_of(&call.own_reads));
        let named = self.files_of(&call.command_words()).into_iter();
        used.extend(named.filter(|path| path.as_path().is_file()));
        used
    }

    /// Returns the files with lines in the output of a search: `PATH:LINE`.
    fn printed_files(&self) -> Vec<AbsPath> {
        let mut output = self.output.clone().unwrap_or_default();
        let texts = redaction::strings(&mut output);
        let lines = texts.iter().flat_map(|text| text.lines());
        let names: BTreeSet<String> = lines
            .filter_map(|line| Some(line.split_once(':')?.0.to_owned()))
            .take(MAX_PRINTED_LINES)
            .collect();
        let mut files = self.files_of(&names.into_iter().collect::<Vec<_>>());
        files.retain(|path| path.as_path().is_file());
        files
    }

    /// Returns the files of the workspace among paths as given by a model.
    fn files_of(&self, paths: &[String]) -> Vec<AbsPath> {
        let root = self.workspace.root.as_deref();
        let paths = paths.iter().filter_map(|path| {
            let full = self.judge.absolute(&self.judge.folder, path);
            let path = match uri_to_path(&full) {
                Ok(Some(path)) => path,
                _ => AbsPath::new(Path::new(&full))?,
            };
            let is_inside = root.is_some_and(|root| path.as_path().starts_with(root));
            (is_inside && !path.as_path().is_dir()).then_some(path)
        });
        paths.collect()
    }

    /// Returns what to answer to a change of files with unsaved text: once for each file, so that an
    /// agent without supervision goes on.
    fn unsaved_change(&self, call: &ToolCall, seen: &mut SeenFiles) -> Option<HookAnswer> {
        let storage = self.storage()?;
        let root = offline::root(&self.workspace).ok()?;
        let unsaved = UnsavedFiles::of(&storage, &root);
        seen.told_unsaved.retain(|uri| unsaved.contains(uri));
        let mut new = unsaved.changed_by(&self.judge, call);
        new.retain(|file| !seen.told_unsaved.contains(&file.uri));
        let reason = unsaved_reason(&new, &root)?;
        seen.told_unsaved
            .extend(new.iter().map(|file| file.uri.clone()));
        Some(if self.is_attended && hook::can_ask(self.agent) {
            HookAnswer::Ask(format!(
                "{reason}. The tool would change the file on disk, without them. Save or discard them first."
            ))
        } else {
            HookAnswer::Deny(format!(
                "{reason}. Ask the user to save or discard them first. To change the file on disk without them, \
                 call the tool again."
            ))
        })
    }

    /// Returns a sentence for each restore that the session does not know.
    fn restores(&self, seen: &mut SeenFiles) -> Vec<String> {
        let root = offline::root(&self.workspace).ok();
        let store = self.storage().zip(root);
        let logged =
            store.map(|(storage, root)| restore_log::read(&Checkpoints::new(&storage, &root)));
        let mut logged = logged.unwrap_or_default();
        logged.retain(|restore| restore.at > seen.known_restore);
        if let Some(last) = logged.last() {
            seen.known_restore = last.at;
        }
        logged.into_iter().map(|restore| restore.text).collect()
    }

    /// Returns the session with this id of an agent, as its hook sees it at a prompt.
    fn at_prompt(
        workspace: &Workspace,
        agent: Agent,
        session: Option<&str>,
    ) -> Result<Self, Error> {
        let root = offline::root(workspace)?.path.as_path().to_owned();
        Ok(Self {
            agent,
            judge: Judge {
                folder: root.clone(),
                home: None,
            },
            workspace: Workspace {
                root: Some(root),
                ..workspace.clone()
            },
            task_id: session.map(|session| hook::task_id(agent, session)),
            mode: None,
            is_attended: false,
            session: session.map(str::to_owned),
            tool: None,
            output: None,
            turns: None,
        })
    }

    /// Returns the block with what the session does not know yet.
    pub(super) fn context(&self) -> Result<Option<String>, Error> {
        // Locks the state of the session. Agents run the hooks of the user and of the project at the same
        // time: only one of them adds the block.
        let Some(mut file) = self.seen_files() else {
            return self.news(&mut SeenFiles::new());
        };
        let block = self.news(&mut file.state)?;
        save(&mut file);
        Ok(block)
    }

    /// Returns the block with what is new for a session that has seen files and knows sections.
    fn news(&self, seen: &mut SeenFiles) -> Result<Option<String>, Error> {
        let params = EnvironmentDetailsParams {
            consume: false,
            changed_files: seen.take_changes(),
            requester_pids: ancestors(),
            ..EnvironmentDetailsParams::default()
        };
        let restores = self.restores(seen);
        let working = self.pending_context(seen);
        let (details, _) = Requests::new(&self.workspace).environment_details(params)?;
        let sections = hook::told_sections(details.sections, self.mode, &restores);
        let mut known = seen.known.clone();
        let block = hook::context_block(&sections, &mut known, hook::markup(self.agent));
        let parts: Vec<String> = working.into_iter().chain(block).collect();
        if parts.is_empty() {
            return Ok(None);
        }
        seen.known = known;
        seen.delivered = Some(now_millis());
        Ok(Some(parts.join("\n\n")))
    }

    fn storage(&self) -> Option<Storage> {
        offline::storage(self.workspace.storage.as_deref()).ok()
    }
}

/// Returns the block that the hook of an agent would add to the next prompt of a session, or of a new one,
/// and when it added the last one. Changes nothing.
pub(crate) fn next_block(
    workspace: &Workspace,
    agent: Agent,
    session: Option<&str>,
) -> Result<(Option<String>, Option<i64>), Error> {
    let mut session = Session::at_prompt(workspace, agent, session)?;
    let file = session.known_files();
    let mut seen = file.map_or_else(SeenFiles::new, |file| file.state);
    // The agent states its mode with the prompt. It stays as it was said last.
    session.mode = seen.known.mode();
    let delivered = seen.delivered;
    Ok((session.news(&mut seen)?, delivered))
}

/// Runs work on a turn. A failure and a late end do not stop the agent; a running server completes the
/// work.
fn record_turn(what: &'static str, work: impl FnOnce() -> Result<(), Error> + Send + 'static) {
    let done = with_deadline("turn", CHECKPOINT_TIMEOUT, move || {
        work().map_err(|error| error.message)
    });
    if let Err(why) = done {
        tracing::warn!("cannot {what}: {why}");
    }
}

pub(super) fn save(file: &mut SessionFile<SeenFiles>) {
    if let Err(error) = file.save() {
        tracing::warn!(%error, "cannot record the files of a session");
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
