//! `sightline agents check`: runs the installed hooks as the agents would, with a denied file.

use std::{
    ffi::OsStr,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde::Serialize;
use sightline_access::RULE_FILE;
use sightline_agents::{
    Agent,
    install::{
        Locations, Part, Scope,
        probe::{self, ToolHook},
    },
};
use sightline_base::fs::find_program;
use sightline_engine::error::Error;

use super::{
    super::{DONE, NEGATIVE, Workspace, internal, offline, print, print_json, print_message},
    gateway::Setup,
    locations, program, read_text,
    status::{codex_trusts_hooks, invalid, scope_name, switched_off},
    targets,
};

/// The search path of a program that a desktop or a service starts.
const SHORT_PATH: &str = if cfg!(windows) {
    r"C:\Windows\System32;C:\Windows\System32\WindowsPowerShell\v1.0;C:\Program Files\Git\bin"
} else {
    "/usr/bin:/bin:/usr/sbin:/sbin"
};
/// Variables of the session that a hook may need.
const VARIABLES: &str = "HOME LANG LOGNAME SHELL TMPDIR USER XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR APPDATA LOCALAPPDATA PATHEXT \
     SystemRoot TEMP USERPROFILE";
/// Time for a hook to answer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The denied file of the probe.
const DENIED: &str = "denied.txt";

/// The result for a hook.
#[derive(Serialize)]
pub(super) struct Outcome {
    agent: &'static str,
    title: &'static str,
    scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    refused: bool,
    /// What happened.
    detail: String,
}

pub(super) fn check(workspace: &Workspace, named: &[Agent]) -> Result<i32, Error> {
    let root = offline::root(workspace)?;
    let outcomes = run_hooks(root.path.as_path(), named)?;
    if workspace.json {
        print_json(&outcomes)?;
    } else if outcomes.is_empty() {
        print_message("no hooks are installed; see `sightline agents install`");
    }
    for outcome in outcomes.iter().filter(|_| !workspace.json) {
        let mark = if outcome.refused { "ok  " } else { "FIX " };
        let name = format!("{} ({})", outcome.title, outcome.scope);
        print(&format!("{mark}{name}: {}\n", outcome.detail))?;
    }
    let all_refuse = !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.refused);
    Ok(if all_refuse { DONE } else { NEGATIVE })
}

/// Runs the hooks of the named agents, or of all.
///
/// # Errors
/// The temporary folder cannot be created, or the home directory is unknown.
pub(super) fn run_hooks(root: &Path, named: &[Agent]) -> Result<Vec<Outcome>, Error> {
    let locations = locations(root.to_owned())?;
    let setup = Setup::read(None)?;
    let project = tempfile::tempdir().map_err(internal)?;
    // Without links, as agents have it.
    let folder = sightline_base::path::canonicalize(project.path()).map_err(internal)?;
    let made = fs::create_dir(folder.join(".git"))
        .and_then(|()| fs::write(folder.join(RULE_FILE), format!("{DENIED}\n")))
        .and_then(|()| fs::write(folder.join(DENIED), "This file is denied.\n"));
    made.map_err(internal)?;
    let mut outcomes = Vec::new();
    for agent in Agent::ALL {
        let is_named = named.contains(&agent);
        if named.is_empty() || is_named {
            let found = check_agent(agent, &locations, &setup, &folder)?;
            if found.is_empty() && is_named {
                let detail = "no hook runs before its tools; see `sightline agents install`";
                outcomes.push(Outcome::new(
                    agent,
                    Scope::User,
                    None,
                    Err(detail.to_owned()),
                ));
            }
            outcomes.extend(found);
        }
    }
    Ok(outcomes)
}

impl Outcome {
    /// Creates it with what was refused, or why nothing was.
    fn new(
        agent: Agent,
        scope: Scope,
        path: Option<&Path>,
        result: Result<String, String>,
    ) -> Self {
        Self {
            agent: agent.name(),
            title: agent.title(),
            scope: scope_name(scope),
            path: path.map(Path::to_owned),
            refused: result.is_ok(),
            detail: result.unwrap_or_else(|why| why),
        }
    }
}

/// Runs the hooks of an agent, in both scopes.
fn check_agent(
    agent: Agent,
    locations: &Locations,
    setup: &Setup,
    folder: &Path,
) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = Vec::new();
    for scope in [Scope::User, Scope::Project] {
        for target in targets(
            agent,
            scope,
            &[Part::Access],
            locations,
            &program(scope)?,
            setup,
        ) {
            let Some(text) = read_text(&target.path) else {
                continue;
            };
            if let Some(why) = invalid(&target, &text) {
                outcomes.push(Outcome::new(agent, scope, Some(&target.path), Err(why)));
                continue;
            }
            for hook in probe::tool_hooks(agent, &target, &text) {
                let stopped = stopped(agent, scope, locations);
                let result = match stopped {
                    Some(why) => Err(why),
                    None => run(agent, &hook, folder),
                };
                outcomes.push(Outcome::new(agent, scope, Some(&target.path), result));
            }
        }
    }
    Ok(outcomes)
}

/// Returns why an agent runs none of its hooks.
fn stopped(agent: Agent, scope: Scope, locations: &Locations) -> Option<String> {
    let switch = switched_off(agent, locations, &[Part::Access])
        .into_iter()
        .next();
    let unapproved =
        agent == Agent::Codex && scope == Scope::User && !codex_trusts_hooks(locations);
    switch
        .map(|switch| switch.to_string())
        .or_else(|| unapproved.then(|| "not approved: open Codex and enter /hooks".to_owned()))
}

/// Runs a hook with the denied file. Returns how it refused, or why it did not check it.
fn run(agent: Agent, hook: &ToolHook, folder: &Path) -> Result<String, String> {
    match answer(agent, hook, folder, SHORT_PATH.as_ref())? {
        Answer::Refused => Ok(format!("refused {DENIED}")),
        Answer::ProgramFailed(why) => {
            // An agent that is started in a terminal has a longer search path.
            let path = std::env::var_os("PATH").unwrap_or_default();
            match answer(agent, hook, folder, &path)? {
                Answer::Refused => Ok(format!(
                    "refused {DENIED}; without a terminal, with PATH={SHORT_PATH}, every file is refused"
                )),
                Answer::ProgramFailed(_) => Err(format!(
                    "refuses every file, because its program does not run: {why}. Run \
                     `sightline agents install --yes`, or install Sightline again"
                )),
            }
        }
    }
}

/// How a hook refused.
enum Answer {
    /// Its program checked the file.
    Refused,
    /// Its program did not run, and why.
    ProgramFailed(String),
}

/// Runs a hook with the denied file and a search path.
///
/// # Errors
/// Why it did not refuse.
fn answer(agent: Agent, hook: &ToolHook, folder: &Path, path: &OsStr) -> Result<Answer, String> {
    let input = probe::input(agent, folder, DENIED);
    let (mut command, input) = match hook {
        ToolHook::Line(line) => {
            let (shell, option) = probe::shell(line);
            let mut command = Command::new(shell);
            command.args([option, line]);
            (command, input)
        }
        ToolHook::Program(program, arguments) => {
            let mut command = Command::new(program);
            command.args(arguments);
            (command, input)
        }
        ToolHook::Plugin(plugin) => {
            let node = find_program("node").ok_or(
                "cannot be checked: `node`, which runs its plugin here, is not on the PATH",
            )?;
            let mut command = Command::new(node);
            command.args(["--input-type=module", "-"]);
            (command, probe::plugin_runner(agent, plugin, &input))
        }
        ToolHook::SomeTools(pattern) => {
            return Err(format!("runs before some tools only: `{pattern}`"));
        }
    };
    let variables = VARIABLES
        .split(' ')
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .current_dir(folder)
        .env_clear()
        .envs(variables)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (output, errors) = output(command, input)?;
    let in_short = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().take(40).collect();
        words.join(" ")
    };
    match probe::refusal(agent, &output) {
        Some(reason) if probe::is_missing(&reason) => {
            let why = in_short(&errors);
            let is_silent = why.is_empty();
            Ok(Answer::ProgramFailed(if is_silent {
                "not found".to_owned()
            } else {
                why
            }))
        }
        Some(_) => Ok(Answer::Refused),
        None => {
            let said = in_short(&[errors, output].join(" "));
            let separator = if said.is_empty() { "" } else { ": " };
            Err(format!("did NOT refuse {DENIED}{separator}{said}"))
        }
    }
}

/// Runs a command with standard input. Returns its standard output and standard error.
fn output(mut command: Command, input: String) -> Result<(String, String), String> {
    let mut child = command
        .spawn()
        .map_err(|error| format!("did NOT refuse {DENIED}: cannot start its hook: {error}"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        // A hook that does not read is judged by its answer.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(input.as_bytes());
        }
        let mut read = [String::new(), String::new()];
        if let Some(mut stdout) = stdout {
            let _ = stdout.read_to_string(&mut read[0]);
        }
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_string(&mut read[1]);
        }
        let _ = done.send(read);
    });
    let read = finished.recv_timeout(TIMEOUT);
    let _ = child.kill();
    let _ = child.wait();
    let [output, errors] =
        read.map_err(|_| format!("did NOT refuse {DENIED}: no answer within a minute"))?;
    Ok((output, errors))
}
