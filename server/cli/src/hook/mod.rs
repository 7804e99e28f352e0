//! `sightline hook`: answers one event of a coding agent.
//!
//! Agents take an exit code other than 0 as a refusal, or let a tool run if its hook fails. So the
//! exit code is always 0, unknown events and options are ignored, and a tool call, also of an unknown
//! agent, or a prompt with a mention that cannot be checked is refused: built-in secrets are denied
//! everywhere.

mod access_check;
pub(super) mod guard;
mod redaction;
mod seen_files;
mod session;
mod session_file;
mod turns;
mod unsaved;
mod working_context;

use std::{
    ffi::OsString,
    io::{self, Read},
    mem,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;

use sightline_agents::{
    Agent,
    hook::{self, EventKind, HookAnswer, HookEvent},
    judge,
};
use sightline_base::json_repair;
use sightline_local::process::logging;
use sightline_protocol::settings::LogLevel;

use super::{DONE, print, print_message};
use session::Session;
pub(crate) use session::next_block;

/// Time to read standard input. Busy machines start agents' writers late.
const INPUT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to answer. Agents kill a hook after 10 seconds, and then let the tool run.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time to record which files a tool uses. It does not stop the tool.
const RECORD_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of the input, in bytes. gemini-cli sends the content of mentioned files.
const MAX_INPUT: usize = 64 * 1024 * 1024;

/// Arguments for help texts. [`main`] reads them.
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
    /// Record the turns, with a checkpoint before the first edit and at the end of each.
    #[arg(long)]
    checkpoints: bool,
    /// Print where the time goes to standard error.
    #[arg(long)]
    trace: bool,
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
    // A closed pipe cannot be reported.
    let _ = match Call::parse(arguments) {
        Ok(call) => {
            logging::start();
            let answer = panic::catch_unwind(AssertUnwindSafe(|| call.answer()));
            let answer = answer.unwrap_or_else(|_| call.failure(true, "internal error"));
            print(&hook::render(call.agent, call.kind, &answer))
        }
        Err(why) => {
            print_message(&format!("sightline hook: {why}; nothing was checked"));
            Ok(())
        }
    };
    DONE
}

impl Call {
    fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
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
                "--trace" => logging::set_level(LogLevel::Debug),
                _ if event.is_none() && !name.starts_with('-') => event = Some(argument),
                _ => {}
            }
        }
        let (event, name) = (event.unwrap_or_default(), agent.unwrap_or_default());
        let Some(agent) = Agent::from_name(&name) else {
            let known = Agent::ALL.map(Agent::name).join(", ");
            return Err(format!(
                "`--agent {name}` in the settings of the agent is not one of {known}"
            ));
        };
        let Some(kind) = hook::event_kind(agent, &event) else {
            return Err(format!("{event:?} is not an event of {}", agent.title()));
        };
        Ok(Self {
            agent,
            kind,
            root: root.map(PathBuf::from),
            storage: storage.map(PathBuf::from),
            checkpoints,
        })
    }

    fn answer(&self) -> HookAnswer {
        let end = Instant::now() + TIMEOUT;
        let left = || end.saturating_duration_since(Instant::now());
        let (text, read) = read_input();
        let mentions = text.contains(&b'@');
        let (agent, kind) = (self.agent, self.kind);
        let parsed = read.and_then(|()| {
            with_deadline("parse", left(), move || {
                hook::parse(agent, kind, &parse_json(&text)?)
            })
        });
        let input = match parsed {
            Ok(Some(input)) => input,
            Ok(None) => return HookAnswer::Nothing,
            Err(why) => return self.failure(mentions, &why),
        };
        let session = match Session::new(self, &input) {
            Ok(session) => session,
            Err(error) => return self.failure(mentions, &error.message),
        };
        let access = session.access();
        match input.event {
            HookEvent::SessionStart {
                context_lost,
                continues,
            } => {
                if context_lost {
                    session.forget();
                }
                let session = Arc::new(session);
                let asking = session.clone();
                let problem =
                    self.optional("gateway", left(), move || Ok(asking.gateway_problem()));
                if let Some(why) = problem {
                    return HookAnswer::Notice(why);
                }
                if !continues {
                    return HookAnswer::Nothing;
                }
                let work = move || Ok(session.working_context());
                let context = self.optional("working context", left(), work);
                context.map_or(HookAnswer::Nothing, HookAnswer::Context)
            }
            HookEvent::Compaction => {
                session.forget();
                session.add_context_to_next_prompt();
                HookAnswer::Nothing
            }
            HookEvent::Prompt {
                mentions: names,
                text,
            } => {
                match with_deadline("check", left(), move || access.denied_mention(&names)) {
                    Ok(Some(refusal)) => {
                        session.record_refusal(&refusal);
                        return HookAnswer::Deny(refusal.reason);
                    }
                    Ok(None) => {}
                    Err(why) => return self.failure(mentions, &why),
                }
                session.begin_turn(&text);
                let context = self.optional("context", left(), move || {
                    session.start_first_checkpoint();
                    session.context().map_err(|error| error.message)
                });
                context.map_or(HookAnswer::Nothing, HookAnswer::Context)
            }
            HookEvent::ToolCall(call) => {
                let call = Arc::new(call);
                let checked = call.clone();
                match with_deadline("check", left(), move || access.denied_tool(&checked)) {
                    Ok(Some(refusal)) => {
                        session.record_refusal(&refusal);
                        return HookAnswer::Deny(refusal.reason);
                    }
                    Ok(None) => session.record_allowed(&call),
                    Err(why) => {
                        session.record_unchecked();
                        return self.failure(mentions, &why);
                    }
                }
                let edits = call.edits;
                let session = Arc::new(session);
                let (recorder, limit) = (session.clone(), left().min(RECORD_TIMEOUT));
                let answer = self.optional("record", limit, move || Ok(recorder.begin_tool(&call)));
                // The user may allow what the answer asks for.
                if edits && !matches!(answer, Some(HookAnswer::Deny(_))) {
                    session.create_checkpoint();
                }
                answer.unwrap_or(HookAnswer::Nothing)
            }
            HookEvent::ToolEnd(call) => {
                let limit = left().min(RECORD_TIMEOUT);
                let session = Arc::new(session);
                let recorder = session.clone();
                self.optional("record", limit, move || {
                    recorder.end_tool(&call);
                    Ok(Some(()))
                });
                let redacted = self.optional("redact", left(), move || {
                    let output = session.redacted_output();
                    output.map_err(|error| error.message)
                });
                redacted.map_or(HookAnswer::Nothing, HookAnswer::Output)
            }
            HookEvent::TurnEnd => {
                session.end_turn(true);
                HookAnswer::Nothing
            }
            HookEvent::SessionEnd => {
                session.end_turn(false);
                HookAnswer::Nothing
            }
        }
    }

    /// Runs a phase without which the event can be answered.
    fn optional<T: Send + 'static>(
        &self,
        phase: &'static str,
        limit: Duration,
        work: impl FnOnce() -> Result<Option<T>, String> + Send + 'static,
    ) -> Option<T> {
        with_deadline(phase, limit, work).unwrap_or_else(|why| {
            tracing::warn!(
                agent = self.agent.name(),
                phase,
                why,
                "a phase of a hook failed"
            );
            None
        })
    }

    /// Refuses what could not be checked: a tool, and a prompt that may mention a file. A model
    /// chooses how large and how slow a call is, and built-in secrets are denied in every folder.
    fn failure(&self, mentions: bool, why: &str) -> HookAnswer {
        tracing::warn!(agent = self.agent.name(), why, "cannot answer a hook");
        let can_read = match self.kind {
            EventKind::ToolCall => true,
            EventKind::Prompt => hook::reads_mentions(self.agent) && mentions,
            EventKind::SessionStart
            | EventKind::ToolEnd
            | EventKind::Compaction
            | EventKind::TurnEnd
            | EventKind::SessionEnd => false,
        };
        if can_read {
            HookAnswer::Deny(judge::unchecked(why))
        } else {
            HookAnswer::Nothing
        }
    }
}

/// Runs `work`, a phase of the answer, on a thread. A panic and the end of the time are errors.
fn with_deadline<T: Send + 'static>(
    phase: &'static str,
    limit: Duration,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (done, outcome) = mpsc::channel();
    thread::Builder::new()
        .name("hook".to_owned())
        .spawn(move || {
            let result = tracing::debug_span!("hook", phase).in_scope(work);
            let _ = done.send(result);
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

/// Reads standard input. An error comes with what was read before.
fn read_input() -> (Vec<u8>, Result<(), String>) {
    let shared = Arc::new(Mutex::new(Vec::new()));
    let text = Arc::clone(&shared);
    let read = with_deadline("read", INPUT_TIMEOUT, move || {
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
    (text, read)
}

/// Parses JSON that an agent wrote. Ignores a byte order mark; invalid UTF-8 and lone surrogates are replaced.
fn parse_json(text: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err("the hook input is empty".to_owned());
    }
    json_repair::parse(text).map_err(|error| format!("the hook input is not JSON: {error}"))
}
