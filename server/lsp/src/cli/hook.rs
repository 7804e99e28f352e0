//! `sightline hook`: answers one event of a coding agent.
//!
//! Agents take an exit code other than 0 as a refusal, or let a tool run if its hook fails. So the
//! exit code is always 0, unknown events, agents and options are ignored, and an error while a
//! tool or a mentioned file is checked refuses it if the workspace has access rules.

mod access_check;
mod session;
mod turns;

use std::{
    ffi::OsString,
    io::{self, Read},
    mem,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;

use sightline_agents::{
    Agent,
    hook::{self, EventKind, HookAnswer, HookEvent},
};
use sightline_workspace::{access::RULE_FILE, json_repair};

use super::{DONE, print};
use crate::process::logging;
use session::Session;

/// Time to read standard input. Busy machines start agents' writers late.
const INPUT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to answer. Agents kill a hook after 10 seconds, and then let the tool run.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the input, in bytes. gemini-cli sends the content of mentioned files.
const MAX_INPUT: usize = 64 * 1024 * 1024;
/// Maximum depth of lists and objects in the input, that of serde_json.
const MAX_DEPTH: usize = 127;
/// Variables with the folder of the session that agents set for hooks.
const DIR_VARIABLES: &[&str] = &[
    "CLAUDE_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
    "QWEN_PROJECT_DIR",
];

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
        let end = Instant::now() + TIMEOUT;
        let left = || end.saturating_duration_since(Instant::now());
        let text = match read_input() {
            Ok(text) => text,
            Err((text, why)) => return self.unreadable(&text, &why),
        };
        let input = match parse_json(&text) {
            Ok(input) => input,
            Err(why) => return self.unreadable(&text, &why),
        };
        let dir = hook::session_dir(&input);
        let input = match hook::parse(self.agent, self.kind, &input) {
            Ok(Some(input)) => input,
            Ok(None) => return HookAnswer::Nothing,
            Err(error) => return self.failure(dir, &text, &error.to_string()),
        };
        let Ok(session) = Session::new(self, &input) else {
            return self.failure(dir, &text, "the workspace folder cannot be found");
        };
        let dir = session.cwd.clone();
        let access = session.access();
        match input.event {
            HookEvent::SessionStart { context_lost } => {
                if context_lost {
                    session.forget();
                }
                HookAnswer::Nothing
            }
            HookEvent::Prompt { mentions } => {
                match with_deadline(left(), move || access.denied_mention(&mentions)) {
                    Ok(Some(reason)) => return HookAnswer::Deny(reason),
                    Ok(None) => {}
                    Err(why) => return self.failure(Some(dir), &text, &why),
                }
                let context = with_deadline(left(), move || {
                    session.begin_turn();
                    session.start_first_checkpoint();
                    session.context().map_err(|error| error.message)
                });
                match context {
                    Ok(Some(block)) => HookAnswer::Context(block),
                    Ok(None) => HookAnswer::Nothing,
                    Err(why) => {
                        tracing::warn!(agent = self.agent.name(), why, "cannot add the block");
                        HookAnswer::Nothing
                    }
                }
            }
            HookEvent::ToolCall(call) => {
                let edits = call.edits;
                match with_deadline(left(), move || access.denied_tool(&call)) {
                    Ok(Some(reason)) => return HookAnswer::Deny(reason),
                    Ok(None) => {}
                    Err(why) => return self.failure(Some(dir), &text, &why),
                }
                if edits {
                    session.create_checkpoint();
                }
                HookAnswer::Nothing
            }
        }
    }

    /// Handles input that is not read. A tool call that exceeds a limit is refused everywhere: built-in
    /// secrets are denied in every workspace, and a model chooses the size of arguments.
    fn unreadable(&self, input: &[u8], why: &str) -> HookAnswer {
        let exceeds = input.len() > MAX_INPUT || depth(input) > MAX_DEPTH;
        match self.kind == EventKind::ToolCall && exceeds {
            true => self.refuse(why),
            false => self.failure(None, input, why),
        }
    }

    fn refuse(&self, why: &str) -> HookAnswer {
        HookAnswer::Deny(format!(
            "Sightline could not check this: {why}. Ask the user."
        ))
    }

    /// Refuses what could not be checked, if the workspace may have rules: a tool, and a prompt
    /// that may mention a file. `dir` is the folder of the session, if it is known.
    fn failure(&self, dir: Option<PathBuf>, input: &[u8], why: &str) -> HookAnswer {
        tracing::warn!(agent = self.agent.name(), why, "cannot answer a hook");
        let can_read = match self.kind {
            EventKind::ToolCall => true,
            EventKind::Prompt => hook::reads_mentions(self.agent) && input.contains(&b'@'),
            EventKind::SessionStart => false,
        };
        let mut dirs = match dir {
            Some(dir) => vec![dir],
            None => possible_dirs(input),
        };
        dirs.extend(self.root.clone());
        if can_read && dirs.iter().any(|dir| has_rules(dir)) {
            self.refuse(why)
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
        Err(mpsc::RecvTimeoutError::Timeout) => Err(format!(
            "no answer within {} seconds",
            limit.as_secs_f32().round()
        )),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("internal error".to_owned()),
    }
}

/// Reads standard input. An error comes with what was read.
fn read_input() -> Result<Vec<u8>, (Vec<u8>, String)> {
    let shared = Arc::new(Mutex::new(Vec::new()));
    let text = Arc::clone(&shared);
    let read = with_deadline(INPUT_TIMEOUT, move || {
        let mut chunk = vec![0; 64 * 1024];
        let mut stdin = io::stdin().lock();
        loop {
            match stdin.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(count) => text.lock().extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read standard input: {error}")),
            }
            if text.lock().len() > MAX_INPUT {
                return Err("the hook input is larger than 64 MiB".to_owned());
            }
        }
    });
    let text = mem::take(&mut *shared.lock());
    match read {
        Ok(()) => Ok(text),
        Err(why) => Err((text, why)),
    }
}

/// Parses JSON that an agent wrote. Ignores a byte order mark; invalid UTF-8 and lone surrogates are replaced.
fn parse_json(text: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str(text)
        .or_else(|error| {
            let repaired = json_repair::replace_lone_surrogates(text).ok_or(error)?;
            serde_json::from_str(&repaired)
        })
        .map_err(|error| format!("the hook input is not JSON: {error}"))
}

/// Returns the depth of lists and objects in JSON text, or more if brackets stand in strings.
fn depth(text: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for byte in text {
        match byte {
            b'[' | b'{' => now += 1,
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// Returns folders that may be that of the session: those in input that is incomplete or not
/// JSON, those in variables that agents set, and that of this process.
fn possible_dirs(input: &[u8]) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(input);
    let in_text = text.match_indices("\"cwd\"").filter_map(|(at, name)| {
        let value = text
            .get(at + name.len()..)?
            .trim_start()
            .strip_prefix(':')?;
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
        values.next()?.ok().map(PathBuf::from)
    });
    let variables = DIR_VARIABLES.iter().filter_map(std::env::var_os);
    in_text
        .chain(variables.map(PathBuf::from))
        .chain(std::env::current_dir())
        .collect()
}

/// Returns whether access rules may apply in a folder.
fn has_rules(folder: &Path) -> bool {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.ancestors().any(|folder| {
        let rules = folder.join(RULE_FILE).symlink_metadata();
        !rules.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    })
}
