//! `sightline agents`: shows, adds and removes our entries in the configuration of coding
//! agents.
//!
//! Without `--yes` nothing is written. What is written is recorded in the data directory, so
//! that it can be removed byte for byte.

mod check;
mod gateway;
mod installer;
mod report;
mod status;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gateway::Setup;
use installer::Installer;
use serde_json::Value;
use sightline_agents::{
    Agent,
    install::{self, Locations, Part, Program, Scope, Target},
};
use sightline_base::fs::{config_file::File, find_programs};
use sightline_engine::error::Error;
pub(super) use sightline_engine::handlers::mcp_servers::locations;
pub(super) use status::{AgentState, gateway_problem};

use super::{
    NEGATIVE, Workspace,
    checkpoints::{below_agent, confirm_below_agent},
    internal, print_message,
};

/// Name of the program.
const NAME: &str = "sightline";

#[derive(clap::Subcommand)]
pub(super) enum Agents {
    /// Show which agents are connected.
    Status {
        #[command(flatten)]
        workspace: Workspace,
        /// Only these agents.
        #[arg(long, value_name = "AGENT", value_parser = agent_parser())]
        agent: Vec<Agent>,
    },
    /// Run each installed hook as its agent would, with a denied file in a temporary folder.
    ///
    /// The exit code is 0 only if all of them refuse the file.
    Check {
        #[command(flatten)]
        workspace: Workspace,
        /// Only these agents.
        #[arg(long, value_name = "AGENT", value_parser = agent_parser())]
        agent: Vec<Agent>,
    },
    /// Connect agents: show the changes of their configuration, or make them with --yes.
    ///
    /// The exit code is 1 if there is something to do.
    Install {
        #[command(flatten)]
        change: Change,
        /// With `--only gateway`: replace addresses of yours, to which the gateway forwards then.
        #[arg(long)]
        chain: bool,
    },
    /// Remove what `install` added: show the changes, or make them with --yes.
    Uninstall(Change),
}

#[derive(clap::Args)]
pub(super) struct Change {
    /// Workspace folder, for --project.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Only these agents; by default, all that have been used.
    #[arg(long, value_name = "AGENT", value_parser = agent_parser())]
    agent: Vec<Agent>,
    /// Change the configuration of the user. This is the default.
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Change the configuration of the project, for a team.
    #[arg(long)]
    project: bool,
    /// Only these parts; by default all of them.
    #[arg(long, value_name = "PART", value_parser = part_parser(), value_delimiter = ',')]
    only: Vec<Part>,
    /// Also print the changes of each file at a terminal. In pipes, they are always printed.
    #[arg(long)]
    diff: bool,
    /// Write the changes.
    #[arg(short, long)]
    yes: bool,
    /// Print the changes as JSON.
    #[arg(long)]
    json: bool,
}

/// Reads the name of an agent.
pub(super) fn agent_parser() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::name))
        .try_map(|name| Agent::from_name(&name).ok_or("no agent has this name"))
}

/// Reads the name of a part.
fn part_parser() -> impl TypedValueParser<Value = Part> {
    let named = Part::ALL.map(|part| PossibleValue::new(part.name()).help(help(part)));
    PossibleValuesParser::new(named).try_map(|name| {
        let part = Part::ALL.into_iter().find(|part| part.name() == name);
        part.ok_or("no part has this name")
    })
}

fn help(part: Part) -> &'static str {
    match part {
        Part::Mcp => "tools for unsaved text, access checks and checkpoints",
        Part::Context => "the editor's context with each prompt",
        Part::Access => "denied files are refused to the agent's tools",
        Part::Checkpoints => "checkpoints before and after each turn; includes context and access",
        Part::Gateway => {
            "requests to models go through the gateway (Claude Code, Codex, Qwen Code, opencode)"
        }
        Part::Commands => {
            "commands cannot open denied files that git does not track (Claude Code, opencode; Linux)"
        }
    }
}

pub(super) fn run(command: Agents) -> Result<i32, Error> {
    match command {
        Agents::Status { workspace, agent } => status::status(&workspace, &agent),
        Agents::Check { workspace, agent } => check::check(&workspace, &agent),
        Agents::Install { change, chain } => edit(&change, |installer, change| {
            installer.install(change, chain);
        }),
        Agents::Uninstall(change) => edit(&change, Installer::uninstall),
    }
}

/// Returns what `status --json` prints.
pub(super) fn status_json(root: &Path) -> Result<Value, Error> {
    let rows = status::Status::read_all(root, None, &[])?;
    Ok(rows.iter().map(status::Status::json).collect())
}

/// Returns what `check --json` prints.
pub(super) fn check_json(root: &Path, named: &[Agent]) -> Result<Value, Error> {
    serde_json::to_value(check::run_hooks(root, named)?).map_err(internal)
}

/// Shows the changes that `edit` makes, or makes them. An agent cannot remove or replace entries without the user: they
/// are what refuses denied files to it.
fn edit(change: &Change, edit: impl Fn(&mut Installer, &Change)) -> Result<i32, Error> {
    if change.yes && below_agent().is_some() {
        let mut plan = Installer::new(change, false)?;
        edit(&mut plan, change);
        if plan.replaces() && !confirm_below_agent("Entries of agents are removed or replaced. ")? {
            print_message("nothing was changed");
            return Ok(NEGATIVE);
        }
    }
    let mut installer = Installer::new(change, change.yes)?;
    edit(&mut installer, change);
    installer.finish(change.json, change.diff)
}

/// Returns how agents start this program. Agents that a desktop or a service starts have a shorter
/// search path than a shell, so the configuration of a user has the absolute path: that of the search
/// path, which stays the same over updates, if it leads to this file. A team shares the name.
fn program(scope: Scope) -> Result<Program, Error> {
    if scope == Scope::Project {
        return Ok(Program::new(NAME));
    }
    let this = std::env::current_exe().map_err(internal)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = find_programs(&path, NAME).find(|file| is_same_file(file, &this));
    Ok(Program::new(found.unwrap_or(this).to_string_lossy()))
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| sightline_base::path::canonicalize(path).ok();
    real(a).is_some_and(|a| Some(a) == real(b))
}

/// Returns the files that hold `parts` for an agent. A file that names `program` by another path is
/// expected to keep it.
fn targets(
    agent: Agent,
    scope: Scope,
    parts: &[Part],
    locations: &Locations,
    program: &Program,
    setup: &Setup,
) -> Vec<Target> {
    let of = |program: &Program| {
        let mut targets = install::targets(agent, scope, parts, locations, program);
        setup.add_to(&mut targets, agent, scope, parts, locations, program);
        targets
    };
    let as_written = |target: Target| {
        let text = read_text(&target.path)?;
        let written = Program::new(target.content.spelling(&text)?);
        let is_path = !program.is_bare() && !written.is_bare();
        let is_same = is_path && is_same_file(program.path().as_ref(), written.path().as_ref());
        let mut targets = of(&written).into_iter();
        is_same.then(|| targets.find(|written| written.path == target.path))?
    };
    of(program)
        .into_iter()
        .map(|target| as_written(target.clone()).unwrap_or(target))
        .collect()
}

/// Returns the text of a configuration file.
pub(super) fn read_text(path: &Path) -> Option<String> {
    let file = File::read(path).ok().filter(File::exists)?;
    Some(file.text().to_owned())
}

/// Returns the agents that are connected, for the user or in a project, or have a problem.
pub(super) fn states(project: &Path, storage: Option<&Path>) -> Result<Vec<AgentState>, Error> {
    let locations = locations(project.to_owned())?;
    let setup = Setup::read(storage)?;
    let states = Agent::ALL.map(|agent| AgentState::read(agent, &locations, &setup));
    let mut states = states.into_iter().collect::<Result<Vec<_>, _>>()?;
    states.retain(|state| state.is_connected() || !state.problems.is_empty());
    Ok(states)
}
