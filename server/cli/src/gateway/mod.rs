//! `sightline gateway`: starts the program `sightline-gateway`, which is next to this one. This
//! program has neither TLS nor an HTTP client. `run` starts it for an agent, `usage` shows what it
//! recorded.

pub(super) mod run;
pub(super) mod usage;

use std::{collections::BTreeMap, env, io, path::PathBuf, process::Command};

use serde::Serialize;
use sightline_base::path::Root;
use sightline_engine::{error::Error, services::stores::default_storage_dir};
use sightline_protocol::settings::Secrets;

#[cfg(unix)]
use super::exec;
use super::{Workspace, internal, offline};

#[derive(clap::Args)]
pub(super) struct Gateway {
    /// Port on 127.0.0.1; 0 for any free one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
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
    secrets: Secrets,
    dry_run: bool,
    usage: Option<PathBuf>,
    limit: Option<u32>,
    upstreams: BTreeMap<String, String>,
    /// Whether the gateway ends with this process.
    ends_with_parent: bool,
}

/// Replaces this process by the gateway.
pub(super) fn run(arguments: &Gateway) -> Result<i32, Error> {
    let workspace = |root: Option<&PathBuf>| Workspace {
        root: root.cloned(),
        storage: arguments.storage.clone(),
        json: false,
    };
    let first = workspace(arguments.root.first());
    let mut roots = vec![offline::root(&first)?];
    for root in arguments.root.iter().skip(1) {
        roots.push(offline::root(&workspace(Some(root)))?);
    }
    let mut options = options(&roots, &first)?;
    for given in &arguments.upstream {
        let (name, address) = given
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("not NAME=URL: {given}")))?;
        let (name, address) = (name.to_owned(), address.to_owned());
        options.upstreams.insert(name, address);
    }
    options.port = arguments.port;
    options.dry_run = arguments.dry_run;
    options.limit = arguments.limit;
    if let Some(file) = &arguments.usage {
        options.usage = Some(std::path::absolute(file).map_err(internal)?);
    }
    replace_this_process(&mut command(&options)?)
}

/// Returns the options for these roots, with the settings of the workspace.
fn options(roots: &[Root], workspace: &Workspace) -> Result<Options, Error> {
    let settings = offline::session(workspace)?.snapshot().settings;
    let path = |root: &Root| root.path.as_path().to_owned();
    Ok(Options {
        storage: match &settings.storage.path {
            Some(folder) => folder.clone(),
            None => default_storage_dir()?,
        },
        port: 0,
        roots: roots.iter().map(path).collect(),
        secrets: settings.access.secrets,
        dry_run: false,
        usage: None,
        limit: None,
        upstreams: BTreeMap::new(),
        ends_with_parent: false,
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
    Error::storage(format!("cannot start {program}: {error}"))
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
