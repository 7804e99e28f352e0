//! `sightline exec`: runs a command that cannot open denied files.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use sightline_agents::{
    Agent,
    install::{Program, SHELL_PREFIX, Scope, can_hide_commands},
};
use sightline_exec::{CannotHide, HiddenPath, hidden_paths, mount_namespace};

use sightline_base::{
    escape::one_line,
    path::{Root, Roots},
};
use sightline_engine::{
    error::Error,
    session::Snapshot,
    settings::{
        config_file,
        visible_to::{are_visible_to, is_line_visible_to},
    },
};
use sightline_ipc::{self as ipc, client::Reply};
use sightline_protocol::{
    access::HiddenPathsParams, error::ErrorKind, method::HiddenPaths, settings::AgentCommands,
};

use super::{Workspace, offline, print_message};

/// Nothing was run, because files cannot be hidden.
const CANNOT_HIDE: i32 = 125;
/// As of shells: the command cannot be executed.
const NOT_EXECUTABLE: i32 = 126;
/// As of shells: the command was not found.
const NOT_FOUND: i32 = 127;
/// Shells that run the command lines of agents.
const SHELLS: [&str; 5] = ["bash", "zsh", "sh", "dash", "ksh"];

#[derive(clap::Args)]
pub(super) struct Exec {
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Take the only argument as a command line for `sh -c`.
    #[arg(long)]
    shell: bool,
    /// Command and its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Replaces this process by the command. Returns an exit code if that fails.
pub(super) fn run(exec: Exec) -> i32 {
    match command_words(&exec).and_then(|words| prepare(exec.root, &words)) {
        Ok(command) => replace_by(command),
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &Error) -> i32 {
    print_message(&format!("nothing was run: {}", error.message));
    CANNOT_HIDE
}

/// Replaces this process. Returns an exit code if that fails.
fn replace_by(mut command: Command) -> i32 {
    let error = execute(&mut command);
    let program = one_line(&command.get_program().to_string_lossy()).into_owned();
    print_message(&match error.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => {
            format!("{program}: command not found")
        }
        _ => format!("cannot run {program}: {error}"),
    });
    if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_EXECUTABLE
    }
}

/// A command line that an agent gives to this program, which it takes for its shell.
pub(super) struct AgentLine {
    line: OsString,
    /// The command of the model in it.
    command: Option<String>,
}

impl AgentLine {
    /// Returns the line in the arguments of this process. opencode passes it as to a shell, Claude Code as the only
    /// argument to the program in its variable: of its shell tool, a hook or an MCP server. Subcommands are the user's.
    pub(super) fn new(
        arguments: &[OsString],
        is_subcommand: impl FnOnce(&str) -> bool,
    ) -> Option<Self> {
        match arguments {
            [_, option, line] if option == "-c" => Some(Self {
                line: line.clone(),
                command: line.to_str().map(str::to_owned),
            }),
            [program, line] if env::var_os(SHELL_PREFIX).as_ref() == Some(program) => {
                let text = line.to_string_lossy();
                let is_line = text.contains(char::is_whitespace);
                let is_ours = !is_line && (text.starts_with('-') || is_subcommand(&text));
                (!is_ours).then(|| Self {
                    line: line.clone(),
                    command: user_command(&text).map(str::to_owned),
                })
            }
            _ => None,
        }
    }

    /// Replaces this process by the shell of the agent, which runs the line. Hides denied files from it
    /// if the user's settings say so.
    pub(super) fn run(&self) -> i32 {
        match prepare_agent_line(self) {
            Ok(command) => replace_by(command),
            Err(error) => refuse(&error),
        }
    }
}

/// Replaces this process by the user's shell, if opencode starts it in one of its terminals.
pub(super) fn run_agent_terminal(arguments: &[OsString]) -> Option<i32> {
    let is_terminal = arguments.len() == 1 && env::var_os("OPENCODE_TERMINAL").is_some();
    is_terminal.then(|| replace_by(command(&[agent_shell(), "-l".into()])))
}

fn prepare_agent_line(agent: &AgentLine) -> Result<Command, Error> {
    let settings = config_file::user_settings().access;
    let text = agent.line.to_string_lossy();
    let program = Program::new(env::args_os().next().unwrap_or_default().to_string_lossy());
    let words = [agent_shell(), "-c".into(), agent.line.clone()];
    let is_visible = || {
        let line = agent.command.as_deref();
        line.is_some_and(|line| is_line_visible_to(&settings.visible_to, line))
    };
    // Hooks read denied files to find their contents in texts.
    if settings.commands == AgentCommands::Check || program.is_own_line(&text) || is_visible() {
        return Ok(command(&words));
    }
    let workspace = Workspace::new(None, None);
    hide_from(
        &workspace,
        &offline::session(&workspace)?.snapshot(),
        &words,
    )
}

/// Returns the shell of the agent.
fn agent_shell() -> OsString {
    let shell = env::var_os("SHELL").unwrap_or_default();
    let name = Path::new(&shell).file_name().unwrap_or_default();
    let is_known = SHELLS.iter().any(|known| name == *known);
    if is_known { shell } else { "sh".into() }
}

/// Returns the command of the model in a line of Claude Code's shell tool:
/// `source SNAPSHOT ... && eval 'COMMAND' < /dev/null && pwd -P >| FILE`. Everything before the
/// command is the agent's.
fn user_command(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("source ")?;
    let (_, rest) = rest.split_once(" && eval ")?;
    let (command, rest) = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => rest
            .split_once(' ')
            .map(|(word, _)| (word, &rest[word.len()..]))?,
    };
    let rest = rest.strip_prefix(" < /dev/null").unwrap_or(rest);
    let file = rest.strip_prefix(" && pwd -P >| ")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    file.chars().all(is_plain).then_some(command)
}

/// Returns why files cannot be hidden from commands on this system. `None` if they can.
pub(super) fn hiding_problem() -> Option<String> {
    let attempt = || {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join(".env"), "")?;
        let mut command = Command::new(env::current_exe()?);
        command.arg("exec").arg("--root").arg(folder.path());
        command.args(["--", "true"]).output()
    };
    let attempt: io::Result<_> = attempt();
    match attempt {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Some(one_line(text.trim()).into_owned())
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Returns why files cannot be hidden from the commands of an agent.
pub(super) fn cannot_hide(agent: Agent, scope: Scope) -> Option<String> {
    offers_no_way(agent, scope).or_else(|| {
        let why = hiding_problem()?;
        Some(format!("cannot hide files from commands: {why}"))
    })
}

/// Returns a message about an agent whose settings cannot hide files from its commands.
pub(super) fn offers_no_way(agent: Agent, scope: Scope) -> Option<String> {
    (!can_hide_commands(agent, scope)).then(|| {
        format!(
            "cannot hide files from commands of {}: only Claude Code and opencode offer a way, in the settings of the user; start the agent with `sightline exec -- {}`",
            agent.title(),
            agent.name()
        )
    })
}

fn command_words(exec: &Exec) -> Result<Vec<OsString>, Error> {
    match &exec.command[..] {
        [line] if exec.shell => Ok(vec!["sh".into(), "-c".into(), line.clone()]),
        _ if exec.shell => Err(Error::invalid(
            "--shell takes one argument, the command line; quote it".to_owned(),
        )),
        words => Ok(words.to_vec()),
    }
}

/// Hides the denied files from this process, unless the user's settings show them to the command.
fn prepare(root: Option<PathBuf>, words: &[OsString]) -> Result<Command, Error> {
    let workspace = Workspace::new(root, None);
    let session = offline::session(&workspace)?.snapshot();
    if is_visible_to(&session.settings.access.visible_to, words) {
        return Ok(command(words));
    }
    hide_from(&workspace, &session, words)
}

/// Hides the denied files from this process.
fn hide_from(
    workspace: &Workspace,
    session: &Snapshot,
    words: &[OsString],
) -> Result<Command, Error> {
    let unavailable = |error: CannotHide| Error::new(ErrorKind::Unsupported, error.to_string());
    // A repository in a project hides what the project denies, too.
    let mut named = session.roots().iter().filter(|_| workspace.root.is_some());
    let roots = match named.next() {
        Some(root) => offline::roots_above(&root.path),
        None => offline::roots_above(&offline::current()?),
    };
    let hidden = match hidden_by_server(workspace, &roots) {
        Some(hidden) => hidden,
        None => {
            let secrets = session.settings.access.secrets;
            let rules = session
                .access
                .get()
                .updated(Roots::new(roots).into(), Vec::new(), secrets);
            hidden_paths(&rules.view().0).map_err(unavailable)?
        }
    };
    hidden_from(words, &hidden).map_err(unavailable)
}

/// Asks the server that runs in the innermost of these folders, which keeps the list. `None` if it cannot say.
fn hidden_by_server(workspace: &Workspace, roots: &[Root]) -> Option<Vec<HiddenPath>> {
    let storage = offline::storage(workspace.storage.as_deref()).ok()?;
    let params = HiddenPathsParams {
        roots: roots.iter().map(|root| root.canonical.to_uri()).collect(),
        // Without a name, it may not be the server's.
        mounts: Some(mount_namespace()?),
    };
    let Reply::Answered(Ok(result)) =
        ipc::client::request::<HiddenPaths>(&storage, roots.first()?, &params)
    else {
        return None;
    };
    let hidden = result.paths.into_iter().map(|hidden| HiddenPath {
        path: hidden.path.into(),
        cover: hidden.cover,
    });
    Some(hidden.collect())
}

#[cfg(not(target_os = "macos"))]
fn hidden_from(words: &[OsString], hidden: &[HiddenPath]) -> Result<Command, CannotHide> {
    sightline_exec::hide(hidden)?;
    Ok(command(words))
}

/// Never tried.
#[cfg(target_os = "macos")]
fn hidden_from(words: &[OsString], hidden: &[HiddenPath]) -> Result<Command, CannotHide> {
    let mut command = Command::new("/usr/bin/sandbox-exec");
    command
        .arg("-p")
        .arg(sightline_exec::macos_profile(hidden))
        .args(words);
    Ok(command)
}

fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Replaces this process by a command. Returns why that failed.
#[cfg(unix)]
pub(super) fn execute(command: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

#[cfg(not(unix))]
pub(super) fn execute(_: &mut Command) -> io::Error {
    io::Error::from(io::ErrorKind::Unsupported)
}

/// Returns whether the user's settings show denied files to a command.
fn is_visible_to(entries: &[String], words: &[OsString]) -> bool {
    match words {
        [shell, option, line] if shell == OsStr::new("sh") && option == OsStr::new("-c") => line
            .to_str()
            .is_some_and(|line| is_line_visible_to(entries, line)),
        words => {
            let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
            words.is_some_and(|words| are_visible_to(entries, &words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_the_model_is_found_in_a_line() {
        let line = |command: &str| {
            format!(
                "source /s.sh 2>/dev/null || true && eval {command} < /dev/null && pwd -P >| /tmp/c-1"
            )
        };
        for (command, found) in [
            ("'npm run dev'", Some("npm run dev")),
            ("ls", Some("ls")),
            ("'a' 'b'", None),
            (r"'it'\''s'", None),
            ("'npm run dev' && eval 'cat .env'", None),
            (
                "'npm run dev' < /dev/null && pwd -P >| /x && eval 'cat .env'",
                None,
            ),
        ] {
            assert_eq!(user_command(&line(command)), found, "{command}");
        }
        assert_eq!(user_command("npm run dev"), None);
    }
}
