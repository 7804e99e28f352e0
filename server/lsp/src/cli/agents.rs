//! `sightline agents`: shows, adds and removes our entries in the configuration of coding
//! agents.
//!
//! Without `--yes` nothing is written. What is written is recorded in the data directory, so
//! that it can be removed byte for byte.

mod installer;
mod report;
mod status;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use installer::Installer;
use sightline_agents::{
    Agent,
    install::{Locations, Part, Program, Scope, installed},
};

use super::{Workspace, config_file::File, internal};
use crate::error::Error;

#[derive(clap::Subcommand)]
pub(super) enum Agents {
    /// Show which agents are connected.
    Status {
        #[command(flatten)]
        workspace: Workspace,
        /// Only these agents.
        #[arg(long, value_name = "AGENT")]
        agent: Vec<AgentName>,
    },
    /// Connect agents: show the changes of their configuration, or make them with --yes.
    ///
    /// The exit code is 1 if there is something to do.
    Install(Change),
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
    #[arg(long, value_name = "AGENT")]
    agent: Vec<AgentName>,
    /// Change the configuration of the user. This is the default.
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Change the configuration of the project, for a team.
    #[arg(long)]
    project: bool,
    /// Only these parts; by default mcp, context and access.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<PartName>,
    /// Write the changes.
    #[arg(short, long)]
    yes: bool,
    /// Print the changes as JSON.
    #[arg(long)]
    json: bool,
}

/// The name of an agent as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AgentName(Agent);

impl ValueEnum for AgentName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [AgentName; 7] = [
            AgentName(Agent::Claude),
            AgentName(Agent::Codex),
            AgentName(Agent::Gemini),
            AgentName(Agent::Qwen),
            AgentName(Agent::Copilot),
            AgentName(Agent::Opencode),
            AgentName(Agent::Cline),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(self.0.name().into())
    }
}

/// The name of a part as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartName(Part);

impl ValueEnum for PartName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [PartName; 4] = [
            PartName(Part::Mcp),
            PartName(Part::Context),
            PartName(Part::Access),
            PartName(Part::Checkpoints),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let help = match self.0 {
            Part::Mcp => "tools for unsaved text, access checks and checkpoints",
            Part::Context => "the editor's context with each prompt",
            Part::Access => "denied files are refused to the agent's tools",
            Part::Checkpoints => {
                "a checkpoint before the first edit of each turn; includes context and access"
            }
        };
        Some(clap::builder::PossibleValue::new(self.0.name()).help(help))
    }
}

pub(super) fn run(command: Agents) -> Result<i32, Error> {
    match command {
        Agents::Status { workspace, agent } => status::status(&workspace, &agent),
        Agents::Install(change) => Installer::new(&change)?.install(&change),
        Agents::Uninstall(change) => Installer::new(&change)?.uninstall(&change),
    }
}

/// Returns where the agents keep their configuration.
fn locations(project: PathBuf) -> Result<Locations, Error> {
    let set = |name: &str| {
        let set = std::env::var_os(name).map(PathBuf::from);
        set.filter(|path| path.is_absolute())
    };
    let home = directories::BaseDirs::new()
        .ok_or_else(|| Error::storage("cannot find the home directory"))?;
    Ok(Locations {
        home: home.home_dir().to_owned(),
        project,
        xdg_config: set("XDG_CONFIG_HOME"),
        claude: set("CLAUDE_CONFIG_DIR"),
        codex: set("CODEX_HOME"),
        copilot: set("COPILOT_HOME"),
    })
}

/// Returns the name of this program if the search path finds this file, else its path.
fn program() -> Result<Program, Error> {
    let this = std::env::current_exe().map_err(internal)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let name = format!("sightline{}", std::env::consts::EXE_SUFFIX);
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(&name))
        .find(|file| file.is_file());
    let is_this = found.is_some_and(|found| {
        let real = |path: &Path| path.canonicalize().ok();
        real(&found).is_some() && real(&found) == real(&this)
    });
    Ok(if is_this {
        Program::new("sightline")
    } else {
        Program::new(this.to_string_lossy())
    })
}

/// Returns the text of a configuration file.
fn read_text(path: &Path) -> Option<String> {
    let file = File::read(path).ok().filter(File::exists)?;
    Some(file.text().to_owned())
}

/// Returns the names of the agents that are connected, for the user or in a project.
pub(super) fn connected(project: &Path) -> Result<Vec<&'static str>, Error> {
    let locations = locations(project.to_owned())?;
    let program = program()?;
    let is_connected = |agent: &Agent| {
        [Scope::User, Scope::Project]
            .into_iter()
            .any(|scope| !installed(*agent, scope, &locations, &program, read_text).is_empty())
    };
    let agents = Agent::ALL.into_iter().filter(is_connected);
    Ok(agents.map(Agent::title).collect())
}

/// Returns whether a folder of the search path contains a program.
pub(super) fn on_path(path: &OsStr, program: &str) -> bool {
    let suffix = std::env::consts::EXE_SUFFIX;
    std::env::split_paths(path).any(|folder| folder.join(format!("{program}{suffix}")).is_file())
}
