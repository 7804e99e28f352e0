//! `sightline mcp wrap` and other commands for servers of other programs.

use std::{ffi::OsString, io, path::PathBuf, sync::Arc};

use sightline_base::escape::one_line;
use sightline_engine::error::Error;
use sightline_hub::{
    connect::{self, HEADERS},
    process::Start,
    wrap::wrap,
};

use super::{
    super::{DONE, Workspace, offline, print_message},
    manage::{self, Action, Add, Adopt, List, Named},
    requests,
    rules::WorkspaceRules,
};

/// As of shells: the command was not found, or cannot be executed.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Run an MCP server on standard input and output. Calls that read denied files are refused, and
    /// denied files are taken out of its results.
    Wrap(Wrap),
    /// List the MCP servers that agents get, with their state.
    List(List),
    /// Add a server: a known one, one at an address, or a command.
    Add(Add),
    /// Remove a server.
    Remove(Named),
    /// Move servers here from the configuration of an agent.
    Adopt(Adopt),
    /// Move a server back to the configuration of its agent.
    Release(Named),
    /// Let a server of the project run, and accept changed tools.
    Trust(Named),
    /// Offer a server to agents.
    Enable(Named),
    /// Do not offer a server to agents.
    Disable(Named),
    /// Restart a server in all sessions, at its next call.
    Restart(Named),
    /// Print what a server printed.
    Log(Named),
    /// Start a server, and list its tools.
    Test(Named),
    /// Connect standard input and output to a server at an address of this machine.
    #[command(hide = true)]
    Connect(Connect),
    /// Run a command until it or another process ends, and end all that it started.
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(clap::Args)]
pub(super) struct Wrap {
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Name of the server in messages.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Command and its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

#[derive(clap::Args)]
pub(super) struct Connect {
    /// `http://127.0.0.1:PORT/...` or `http://[::1]:PORT/...`.
    #[arg(value_name = "URL")]
    url: String,
    /// `http` or `sse`.
    #[arg(value_name = "TRANSPORT")]
    transport: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct Supervise {
    /// The process for which the command runs.
    #[arg(long, value_name = "PID")]
    parent: u32,
    /// Command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub(super) fn run(command: Command) -> Result<i32, Error> {
    match command {
        Command::Wrap(arguments) => run_wrap(arguments),
        Command::List(arguments) => manage::list(&arguments),
        Command::Add(arguments) => manage::add(&arguments),
        Command::Remove(named) => manage::remove(&named),
        Command::Adopt(arguments) => manage::adopt(&arguments),
        Command::Release(named) => manage::release(&named),
        Command::Trust(named) => manage::act(Action::Trust, &named),
        Command::Enable(named) => manage::act(Action::Enable, &named),
        Command::Disable(named) => manage::act(Action::Disable, &named),
        Command::Restart(named) => manage::act(Action::Restart, &named),
        Command::Log(named) => manage::act(Action::Log, &named),
        Command::Test(named) => manage::test(&named),
        Command::Connect(arguments) => connect(&arguments),
        Command::Supervise(arguments) => Ok(supervise(&arguments)),
    }
}

/// Serves one agent until the server or the agent ends.
fn run_wrap(arguments: Wrap) -> Result<i32, Error> {
    let requests = requests(&Workspace::new(arguments.root, arguments.storage))?;
    let root = requests.root()?.clone();
    let folder = offline::current()?.as_path().to_owned();
    let program = PathBuf::from(&arguments.command[0]);
    let name = arguments.name.unwrap_or_else(|| {
        let name = program.file_name().unwrap_or(program.as_os_str());
        name.to_string_lossy().into_owned()
    });
    let start = Start {
        command: arguments.command,
        ..Start::default()
    };
    let rules = Arc::new(WorkspaceRules::new(requests, root));
    wrap(rules, folder, &name, &start)
        .map_err(|error| Error::storage(format!("cannot relay the MCP server {name}: {error}")))
}

fn connect(arguments: &Connect) -> Result<i32, Error> {
    let headers = std::env::var(HEADERS).ok();
    connect::connect(
        &arguments.url,
        arguments.transport.as_deref(),
        headers.as_deref(),
    )
    .map_err(|error| Error::storage(format!("cannot connect to the MCP server: {error}")))?;
    Ok(DONE)
}

#[cfg(unix)]
fn supervise(arguments: &Supervise) -> i32 {
    let outcome = sightline_hub::supervise::supervise(arguments.parent, &arguments.command);
    outcome.unwrap_or_else(|error| cannot_run(arguments, &error))
}

#[cfg(not(unix))]
fn supervise(arguments: &Supervise) -> i32 {
    cannot_run(arguments, &io::ErrorKind::Unsupported.into())
}

fn cannot_run(arguments: &Supervise, error: &io::Error) -> i32 {
    let program = one_line(&arguments.command[0].to_string_lossy()).into_owned();
    let (why, code) = match error.kind() {
        io::ErrorKind::NotFound => ("no such program".to_owned(), NOT_FOUND),
        _ => (error.to_string(), NOT_EXECUTABLE),
    };
    print_message(&format!("cannot run {program}: {why}"));
    code
}
