//! `sightline agents`: shows, adds and removes our entries in the configuration of coding
//! agents.
//!
//! Without `--yes` nothing is written. What is written is recorded in the data directory, so
//! that it can be removed byte for byte.

mod status;

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use sightline_agents::{
    Agent,
    install::{
        Content, Locations, Part, Presence, Program, Scope, installed, patch::unified_diff,
        record::Record, targets,
    },
};
use sightline_workspace::storage::{Storage, atomic_file, read_foreign};

use super::{
    DONE, FAILURE, NEGATIVE, Workspace, config_file::File, internal, offline, print, print_message,
};
use crate::error::Error;

/// The record of what was installed, in the data directory.
const RECORD_FILE: &str = "agents.json";
/// Locked while the configuration is changed, in the data directory.
const LOCK_FILE: &str = "agents.lock";
/// Maximum size of the record, in bytes.
const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;

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

struct Installer {
    locations: Locations,
    program: Program,
    storage_dir: PathBuf,
    scope: Scope,
    record: Record,
    /// Held until everything is written.
    _lock: Option<fs::File>,
    /// Whether a file could not be edited.
    failed: bool,
    /// Whether there is something to do.
    pending: bool,
}

impl Installer {
    fn new(change: &Change) -> Result<Self, Error> {
        let workspace = Workspace {
            root: change.root.clone(),
            storage: None,
            json: false,
        };
        let storage_dir = offline::storage_dir(change.storage.as_deref())?;
        let lock = change.yes.then(|| lock(&storage_dir)).transpose()?;
        let path = storage_dir.join(RECORD_FILE);
        let record = match read_foreign(&path, MAX_RECORD_BYTES)? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Error::storage(format!(
                    "cannot read the record of earlier changes in {}: {error}; move it away to go on without it",
                    path.display()
                ))
            })?,
            None => Record::default(),
        };
        Ok(Self {
            locations: locations(offline::root(&workspace)?.path.as_path().to_owned())?,
            program: program()?,
            storage_dir,
            scope: if change.project {
                Scope::Project
            } else {
                Scope::User
            },
            record,
            _lock: lock,
            failed: false,
            pending: false,
        })
    }

    fn agents(&self, named: &[AgentName]) -> Vec<Agent> {
        if !named.is_empty() {
            return named.iter().map(|name| name.0).collect();
        }
        let used = |agent: &Agent| self.locations.folder(*agent).is_dir();
        Agent::ALL.into_iter().filter(used).collect()
    }

    fn install(mut self, change: &Change) -> Result<i32, Error> {
        let agents = self.agents(&change.agent);
        if agents.is_empty() {
            print_message("no agent was found; name one with --agent");
            return Ok(NEGATIVE);
        }
        if std::env::current_exe().is_ok_and(|program| is_in_build_folder(&program)) {
            print_message(
                "this program is in a build folder; agents lose it when the folder is cleaned. Install it, for example with `cargo install`",
            );
        }
        for agent in &agents {
            let mut parts: Vec<Part> = change.only.iter().map(|part| part.0).collect();
            if parts.is_empty() {
                parts = Part::DEFAULT.to_vec();
            }
            // A later installation keeps what was asked for before.
            parts.extend(self.installed(*agent));
            let targets = targets(*agent, self.scope, &parts, &self.locations, &self.program);
            if targets.is_empty() {
                let title = agent.title();
                print_message(&format!(
                    "{title} has no project configuration that Sightline knows"
                ));
            }
            for target in targets {
                self.edit(*agent, &target.path, change.yes, |text| {
                    target
                        .content
                        .add(text)
                        .map(Some)
                        .map_err(|error| error.to_string())
                })?;
            }
        }
        if change.yes && !self.failed && agents.contains(&Agent::Codex) {
            print(
                "Codex runs new hooks after you have approved them: open Codex and enter /hooks.\n",
            )?;
        }
        print_message(
            "built-in secrets (.env, private keys, ...) are denied to agents; `sightline init` writes a file for your own rules",
        );
        self.finish(change)
    }

    fn uninstall(mut self, change: &Change) -> Result<i32, Error> {
        for agent in self.agents(&change.agent) {
            let kept = self.kept_parts(agent, &change.only);
            let of =
                |parts: &[Part]| targets(agent, self.scope, parts, &self.locations, &self.program);
            let (all, kept) = (of(&Part::ALL), of(&kept));
            // The first file may have created the folders of the others.
            for target in all.into_iter().rev() {
                let recorded = self.record.get(&target.path).cloned();
                let kept = kept.iter().find(|kept| kept.path == target.path);
                self.edit(agent, &target.path, change.yes, |text| {
                    let Some(text) = text else { return Ok(None) };
                    let Some(kept) = kept else {
                        // An error says why something of ours cannot be removed.
                        target
                            .content
                            .remove(text)
                            .map_err(|error| error.to_string())?;
                        return Ok(target.content.original(Some(text), recorded.as_ref()));
                    };
                    let presence = |content: &Content| content.presence(text);
                    // Nothing else is there.
                    if presence(&kept.content) == Ok(Presence::Current)
                        && presence(&target.content) == presence(&kept.content)
                    {
                        return Ok(Some(text.to_owned()));
                    }
                    let rest = target.content.remove(text);
                    let rest = rest.map_err(|error| error.to_string())?;
                    let added = kept.content.add(rest.as_deref());
                    added.map(Some).map_err(|error| error.to_string())
                })?;
            }
        }
        self.finish(change)
    }

    /// Returns the parts that stay when `removed` are removed; none if it is empty.
    fn kept_parts(&self, agent: Agent, removed: &[PartName]) -> Vec<Part> {
        if removed.is_empty() {
            return Vec::new();
        }
        let removed: Vec<Part> = removed.iter().map(|part| part.0).collect();
        let mut kept = self.installed(agent);
        kept.retain(|part| !removed.contains(part));
        // Checkpoints include both.
        if removed.contains(&Part::Context) || removed.contains(&Part::Access) {
            kept.retain(|part| *part != Part::Checkpoints);
        }
        kept
    }

    /// Returns the parts that an agent has, in any version.
    fn installed(&self, agent: Agent) -> Vec<Part> {
        installed(agent, self.scope, &self.locations, &self.program, read_text)
    }

    /// Shows or makes the change of a file. `edit` gets its text, or `None` if it does not
    /// exist, and returns the text it should have, or `None` for no file.
    fn edit(
        &mut self,
        agent: Agent,
        path: &Path,
        write: bool,
        edit: impl FnOnce(Option<&str>) -> Result<Option<String>, String>,
    ) -> Result<(), Error> {
        let file = match File::read(path) {
            Ok(file) => file,
            Err(error) => {
                print_message(&error.message);
                self.failed = true;
                return Ok(());
            }
        };
        let before = file.exists().then(|| file.text().to_owned());
        let after = match edit(before.as_deref()) {
            Ok(after) => after,
            Err(error) => {
                let path = path.display();
                print_message(&format!("cannot edit {path}: {error}; nothing was changed"));
                self.failed = true;
                return Ok(());
            }
        };
        if before == after {
            return Ok(());
        }
        self.pending = true;
        if !write {
            return print(&unified_diff(path, before.as_deref(), after.as_deref()));
        }
        match self.write(agent, file, before.as_deref(), after.as_deref()) {
            Ok(done) => print(&format!("{}: {done}\n", path.display())),
            Err(error) => {
                // The other files can still be changed.
                print_message(&error.message);
                self.failed = true;
                Ok(())
            }
        }
    }

    /// Writes or deletes a file, and records it. Returns what was done.
    fn write(
        &mut self,
        agent: Agent,
        file: File,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Result<&'static str, Error> {
        let path = file.path().to_owned();
        let Some(after) = after else {
            file.delete()?;
            let forgotten = self.record.forget(&path);
            let mut folders = forgotten
                .map(|file| file.created_folders)
                .unwrap_or_default();
            while let Some(folder) = folders.last()
                && fs::remove_dir(folder).is_ok()
            {
                folders.pop();
            }
            // Another of our files may be the last one in them.
            self.record.hand_on(&folders);
            self.save_record()?;
            return Ok("deleted");
        };
        let recorded = self.record.get(&path);
        let folders = recorded.map_or_else(
            || missing_folders(&path),
            |recorded| recorded.created_folders.clone(),
        );
        let original = self
            .all_content(agent, &path)
            .and_then(|content| content.original(before, recorded));
        if original.as_deref() == Some(after) {
            file.replace(after)?;
            self.record.forget(&path);
            self.save_record()?;
        } else {
            // An entry of a change that is not made is harmless.
            self.record.note(&path, original.as_deref(), after, folders);
            self.save_record()?;
            file.replace(after)?;
        }
        Ok("written")
    }

    /// Returns our content of a file with all parts.
    fn all_content(&self, agent: Agent, path: &Path) -> Option<Content> {
        targets(
            agent,
            self.scope,
            &Part::ALL,
            &self.locations,
            &self.program,
        )
        .into_iter()
        .find(|target| target.path == path)
        .map(|target| target.content)
    }

    fn save_record(&self) -> Result<(), Error> {
        Storage::open(&self.storage_dir)?.make_dir(&self.storage_dir)?;
        let text = serde_json::to_string_pretty(&self.record).map_err(internal)?;
        atomic_file::replace(&self.storage_dir.join(RECORD_FILE), text.as_bytes())?;
        Ok(())
    }

    fn finish(&self, change: &Change) -> Result<i32, Error> {
        if !self.pending && !self.failed {
            print("Nothing to do.\n")?;
        } else if self.pending && !change.yes {
            print_message("nothing was written; add --yes to write these changes");
        }
        Ok(match (self.failed, self.pending && !change.yes) {
            (true, _) => FAILURE,
            (false, true) => NEGATIVE,
            (false, false) => DONE,
        })
    }
}

/// Returns whether a path is below a folder that tools empty, such as `target`.
fn is_in_build_folder(program: &Path) -> bool {
    let mut folders = program.ancestors();
    folders.any(|folder| folder.join("CACHEDIR.TAG").is_file())
}

/// Waits for other processes that change the configuration of agents.
fn lock(storage_dir: &Path) -> Result<fs::File, Error> {
    Storage::open(storage_dir)?.make_dir(storage_dir)?;
    let path = storage_dir.join(LOCK_FILE);
    let mut options = fs::File::options();
    let opened = options.write(true).create(true).truncate(false).open(&path);
    opened
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| Error::storage(format!("cannot lock {}: {error}", path.display())))
}

/// Returns the folders above a file that do not exist, outermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let missing = above.take_while(|folder| {
        fs::symlink_metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing
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
