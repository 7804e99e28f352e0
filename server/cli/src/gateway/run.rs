//! `sightline run`: starts a gateway and an agent whose requests go through it.

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use sightline_agents::{
    Agent,
    gateway::launch::{Launch, Surroundings},
};
use sightline_engine::error::Error;
use sightline_local::process::detached::{detach, start_and_read_line};

use super::{
    super::{
        Workspace,
        agents::{self, agent_parser},
        offline,
    },
    Options, Started, cannot_start, command, replace_this_process,
    service::Service,
    workspace_options,
};

/// Variable of an agent whose gateway was started with it: the address.
pub(crate) const VARIABLE: &str = "SIGHTLINE_GATEWAY";

#[derive(clap::Args)]
pub(crate) struct Run {
    /// The agent, if the name of the program does not say so.
    #[arg(long, value_parser = agent_parser(), value_name = "NAME")]
    agent: Option<Agent>,
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Program of the agent and its arguments.
    #[arg(value_name = "AGENT", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Replaces this process by the agent. Its gateway ends with it.
pub(crate) fn run(arguments: &Run) -> Result<i32, Error> {
    let (program, words) = arguments
        .command
        .split_first()
        .ok_or_else(|| Error::invalid("no agent is named".to_owned()))?;
    let name = match arguments.agent {
        Some(agent) => agent,
        None => agent_of(program)?,
    };
    let workspace = Workspace::new(arguments.root.clone(), None);
    let root = offline::root(&workspace)?;
    let locations = agents::locations(root.path.as_path().to_owned())?;
    let mut settings = workspace_options(&root, &workspace)?;
    let service = Service::read(&settings.storage)?;
    let configured = service.url();
    let surroundings = Surroundings {
        locations: &locations,
        variable: &|name| env::var(name).ok(),
        read: &agents::read_text,
        gateway: configured.as_deref(),
    };
    let given: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let launch = Launch::plan(name, &given, &surroundings).map_err(Error::invalid)?;
    settings.upstreams.clone_from(service.upstreams());
    settings.upstreams.extend(launch.upstreams.clone());
    settings.ends_with_parent = true;
    let (mut gateway, url) = start(&settings)?;
    let mut agent = Command::new(program);
    agent
        .args(launch.arguments(&url))
        .args(words)
        .envs(launch.variables(&url))
        .env(VARIABLE, &url);
    replace_this_process(&mut agent).inspect_err(|_| {
        let _ = gateway.kill();
    })
}

/// Returns the agent by the name of its program.
fn agent_of(program: &OsString) -> Result<Agent, Error> {
    let name = Path::new(program).file_stem().unwrap_or_default();
    Agent::from_name(&name.to_string_lossy()).ok_or_else(|| {
        Error::invalid(format!(
            "{} is no known agent; name it with --agent: {}",
            name.display(),
            Agent::ALL.map(Agent::name).join(", ")
        ))
    })
}

/// Starts a gateway. Returns its address. Keys at the terminal, such as Ctrl-C, do not reach it.
fn start(options: &Options) -> Result<(Child, String), Error> {
    let mut command = command(options)?;
    let started = start_and_read_line(detach(&mut command).stderr(Stdio::inherit()));
    let (mut child, line) = started.map_err(|error| cannot_start(&command, &error))?;
    match serde_json::from_str::<Started>(&line) {
        Ok(started) => Ok((child, started.url)),
        Err(_) => {
            let _ = child.kill();
            let error = io::Error::other("it printed no address");
            Err(cannot_start(&command, &error))
        }
    }
}
