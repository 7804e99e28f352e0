//! `sightline gateway`: starts the program `sightline-gateway`, which is next to this one. This
//! program has neither TLS nor an HTTP client.

use std::{collections::BTreeMap, env, io, path::PathBuf, process::Command};

use serde::Serialize;
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
    upstreams: BTreeMap<String, String>,
}

/// Replaces this process by the gateway.
pub(super) fn run(arguments: &Gateway) -> Result<i32, Error> {
    let mut upstreams = BTreeMap::new();
    for given in &arguments.upstream {
        let (name, address) = given
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("not NAME=URL: {given}")))?;
        upstreams.insert(name.to_owned(), address.to_owned());
    }
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
    let settings = offline::session(&first)?.snapshot().settings;
    let options = Options {
        storage: match &settings.storage.path {
            Some(folder) => folder.clone(),
            None => default_storage_dir()?,
        },
        port: arguments.port,
        roots: roots
            .iter()
            .map(|root| root.path.as_path().to_owned())
            .collect(),
        secrets: settings.access.secrets,
        dry_run: arguments.dry_run,
        upstreams,
    };
    let mut command = command(&options)?;
    replace_this_process(&mut command)
}

#[cfg(unix)]
fn replace_this_process(command: &mut Command) -> Result<i32, Error> {
    let error = exec::execute(command);
    Err(cannot_start(command, &error))
}

#[cfg(not(unix))]
fn replace_this_process(command: &mut Command) -> Result<i32, Error> {
    match command.status() {
        Ok(status) => Ok(status.code().unwrap_or(super::FAILURE)),
        Err(error) => Err(cannot_start(command, &error)),
    }
}

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
