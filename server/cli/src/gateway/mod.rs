//! `sightline gateway`: starts the program `sightline-gateway`, which is next to this one. This
//! program has neither TLS nor an HTTP client. `run` starts it for an agent, `service` is the one with which
//! agents are configured, `usage` shows what it recorded.

pub(super) mod run;
pub(super) mod service;
pub(super) mod usage;

use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};
use sightline_base::path::Root;
use sightline_engine::{error::Error, settings::config_file};
use sightline_protocol::settings::Secrets;

use self::service::Service;
#[cfg(unix)]
use super::exec;
use super::{Workspace, internal, offline};

#[derive(clap::Args)]
pub(super) struct Gateway {
    /// Port on 127.0.0.1; by default, any free one.
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Listen where `agents install --only gateway` has configured agents to ask, and apply the rules of
    /// the workspace in which each agent runs.
    #[arg(long, conflicts_with = "root")]
    service: bool,
    /// Workspace folder whose denied files are kept out of requests; by default, the workspace.
    #[arg(long, value_name = "DIR")]
    root: Vec<PathBuf>,
    /// Let requests pass unchanged, and only report what would be hidden.
    #[arg(long)]
    dry_run: bool,
    /// Address of a provider. Replaces or adds a name, which is a part of the address for agents.
    #[arg(long, value_name = "NAME=URL")]
    upstream: Vec<String>,
    /// File to which the usage of each request is added; by default, one in the data directory.
    #[arg(long, value_name = "FILE")]
    usage: Option<PathBuf>,
    /// Context window of models that are not known, in tokens, for the file of --usage.
    #[arg(long, value_name = "TOKENS")]
    limit: Option<u32>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
}

/// The argument of `sightline-gateway`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    storage: PathBuf,
    port: u16,
    roots: Vec<PathBuf>,
    /// Whether the workspaces of agents are added to the roots.
    follows_agents: bool,
    secrets: Secrets,
    dry_run: bool,
    usage: Option<PathBuf>,
    limit: Option<u32>,
    upstreams: BTreeMap<String, String>,
    /// Whether the gateway ends with this process.
    ends_with_parent: bool,
    /// Whether it ends after it has checked these.
    only_checks: bool,
}

/// What a gateway prints.
#[derive(Deserialize)]
struct Started {
    url: String,
}

/// Replaces this process by the gateway.
pub(super) fn run(arguments: &Gateway) -> Result<i32, Error> {
    let workspace =
        |root: Option<&PathBuf>| Workspace::new(root.cloned(), arguments.storage.clone());
    let first = workspace(arguments.root.first());
    let mut options = match arguments.service {
        true => options(&offline::storage_dir(arguments.storage.as_deref())?),
        false => workspace_options(&offline::root(&first)?, &first)?,
    };
    for root in arguments.root.iter().skip(1) {
        let root = offline::root(&workspace(Some(root)))?;
        options.roots.push(root.path.as_path().to_owned());
    }
    let service = Service::read(&options.storage)?;
    options.upstreams.clone_from(service.upstreams());
    if arguments.service {
        options.follows_agents = true;
        options.port = service.port().ok_or_else(|| {
            Error::invalid("no agent is configured with the gateway; see `sightline agents install --only gateway`")
        })?;
    }
    for given in &arguments.upstream {
        let (name, address) = given
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("not NAME=URL: {given}")))?;
        let (name, address) = (name.to_owned(), address.to_owned());
        options.upstreams.insert(name, address);
    }
    options.port = arguments.port.unwrap_or(options.port);
    options.dry_run = arguments.dry_run;
    options.limit = arguments.limit;
    if let Some(file) = &arguments.usage {
        options.usage = Some(std::path::absolute(file).map_err(internal)?);
    }
    replace_this_process(&mut command(&options)?)
}

/// Returns the options for a data directory, with the settings of the user.
fn options(storage: &Path) -> Options {
    Options {
        storage: storage.to_owned(),
        port: 0,
        roots: Vec::new(),
        follows_agents: false,
        secrets: config_file::user_settings().access.secrets,
        dry_run: false,
        usage: None,
        limit: None,
        upstreams: BTreeMap::new(),
        ends_with_parent: false,
        only_checks: false,
    }
}

/// Returns the options for a root, with the settings of its workspace.
fn workspace_options(root: &Root, workspace: &Workspace) -> Result<Options, Error> {
    let settings = offline::session(workspace)?.snapshot().settings;
    let storage = settings.storage.path.clone();
    Ok(Options {
        roots: vec![root.path.as_path().to_owned()],
        secrets: settings.access.secrets,
        ..options(&storage.map_or_else(|| offline::storage_dir(None), Ok)?)
    })
}

/// Runs a command in place of this process.
#[cfg(unix)]
fn replace_this_process(command: &mut Command) -> Result<i32, Error> {
    let error = exec::execute(command);
    Err(cannot_start(command, &error))
}

/// Runs a command, and waits for it.
#[cfg(not(unix))]
fn replace_this_process(command: &mut Command) -> Result<i32, Error> {
    match command.status() {
        Ok(status) => Ok(status.code().unwrap_or(super::FAILURE)),
        Err(error) => Err(cannot_start(command, &error)),
    }
}

/// Returns the error of a program that cannot be started.
fn cannot_start(command: &Command, error: &io::Error) -> Error {
    let program = command.get_program().to_string_lossy();
    let why = match error.kind() {
        io::ErrorKind::NotFound => "no such program".to_owned(),
        _ => error.to_string(),
    };
    Error::storage(format!("cannot start {program}: {why}"))
}

/// Returns the command that starts the gateway. A program with that name on the `PATH` is not used.
fn command(options: &Options) -> Result<Command, Error> {
    let this = env::current_exe().map_err(internal)?;
    let program = this.with_file_name(format!("sightline-gateway{}", env::consts::EXE_SUFFIX));
    if !program.is_file() {
        return Err(Error::storage(format!(
            "cannot start the gateway: {} is missing; packages contain it, and in a clone `cargo install --locked --path server/gateway` installs it",
            program.display()
        )));
    }
    let mut command = Command::new(program);
    command.arg(serde_json::to_string(options).map_err(internal)?);
    Ok(command)
}
