//! `sightline agents install` and `uninstall`: edits the configuration of agents, and records
//! what was written, so that it can be removed byte for byte.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use sightline_agents::{
    Agent,
    install::{
        Content, Locations, Part, Presence, Program, Scope, Target, installed, patch::unified_diff,
        record::Record,
    },
};
use sightline_base::{
    fs::find_program,
    storage::{Storage, atomic_file, read_foreign},
};
use sightline_engine::error::Error;

use super::{
    super::{
        DONE, FAILURE, NEGATIVE, Workspace,
        checkpoints::{below_agent, is_wanted},
        config_file::File,
        exec, internal, offline,
    },
    AgentName, Change, NAME, PartName, locations, program, read_text,
    report::{AgentReport, FileChange, Report},
    status::switched_off,
    targets,
};

/// The record of what was installed, in the data directory.
const RECORD_FILE: &str = "agents.json";
/// Locked while the configuration is changed, in the data directory.
const LOCK_FILE: &str = "agents.lock";
/// Maximum size of the record, in bytes.
const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;

pub(super) struct Installer {
    locations: Locations,
    program: Program,
    storage_dir: PathBuf,
    scope: Scope,
    record: Record,
    /// Held until everything is written.
    _lock: Option<fs::File>,
    report: Report,
    /// Whether a file with our entries changes.
    replaces: bool,
}

impl Installer {
    /// `write` makes the changes.
    pub(super) fn new(change: &Change, write: bool) -> Result<Self, Error> {
        let workspace = Workspace {
            root: change.root.clone(),
            storage: None,
            json: false,
        };
        let scope = match change.project {
            true => Scope::Project,
            false => Scope::User,
        };
        let storage_dir = offline::storage_dir(change.storage.as_deref())?;
        let lock = write.then(|| lock(&storage_dir)).transpose()?;
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
            program: program(scope)?,
            storage_dir,
            scope,
            record,
            _lock: lock,
            report: Report {
                agents: Vec::new(),
                notes: Vec::new(),
                written: write,
            },
            replaces: false,
        })
    }

    fn agents(&self, named: &[AgentName]) -> Vec<Agent> {
        if !named.is_empty() {
            return named.iter().map(|name| name.0).collect();
        }
        let used = |agent: &Agent| self.locations.folder(*agent).is_dir();
        Agent::ALL.into_iter().filter(used).collect()
    }

    pub(super) fn install(&mut self, change: &Change) {
        let agents = self.agents(&change.agent);
        if agents.is_empty() {
            self.report
                .notes
                .push("no agent was found; name one with --agent".to_owned());
            return;
        }
        if std::env::current_exe().is_ok_and(|program| is_in_build_folder(&program)) {
            self.report.notes.push(
                "this program is in a build folder; agents lose it when the folder is cleaned. Install it, for example with `cargo install`".to_owned(),
            );
        }
        if self.scope == Scope::Project && find_program(NAME).is_none() {
            self.report.notes.push(
                "`sightline` is not on your PATH, where the entries of a project look for it: agents that do not find it have all their tools refused".to_owned(),
            );
        }
        for agent in agents {
            let mut parts: Vec<Part> = change.only.iter().map(|part| part.0).collect();
            if parts.is_empty() {
                parts = Part::DEFAULT.to_vec();
            }
            // A later installation keeps what was asked for before.
            let installed = self.installed(agent);
            if installed.is_empty() && self.wants_hiding(change, agent) {
                parts.push(Part::Commands);
            }
            parts.extend(installed);
            let mut report = AgentReport::new(agent, self.scope, &parts);
            let targets = self.targets(agent, &parts);
            if parts.contains(&Part::Commands)
                && let Some(why) = cannot_hide(agent, self.scope)
            {
                report.add_problem(&why);
                self.report.agents.push(report);
                continue;
            }
            if targets.is_empty() {
                let title = agent.title();
                report.notes.push(format!(
                    "{title} has no project configuration that Sightline knows"
                ));
            }
            for target in targets {
                self.edit(&mut report, agent, &target, |text| {
                    text.map_or(Ok(()), |text| target.check(text))
                        .and_then(|()| target.content.add(text))
                        .map(Some)
                        .map_err(|error| error.to_string())
                });
            }
            if agent == Agent::Codex && !report.files.is_empty() && !report.has_failed() {
                report.notes.push(
                    "Codex runs new hooks after you have approved them: open Codex and enter /hooks"
                        .to_owned(),
                );
            }
            for switch in switched_off(agent, &self.locations, &parts) {
                let title = agent.title();
                report
                    .notes
                    .push(format!("{title}: {switch}; remove the setting"));
            }
            self.report.agents.push(report);
        }
        self.report.notes.push(
            "built-in secrets (.env, private keys, ...) are denied to agents; `sightline init` writes a file for your own rules".to_owned(),
        );
    }

    /// Asks the user, when an agent is connected for the first time, whether to hide files from its commands.
    fn wants_hiding(&self, change: &Change, agent: Agent) -> bool {
        let asks = change.yes
            && !change.json
            && change.only.is_empty()
            && io::stdin().is_terminal()
            && below_agent().is_none()
            && cannot_hide(agent, self.scope).is_none();
        let question = format!(
            "Also hide denied files from the commands of {} (they cannot open them, for example `npm start` its .env)?",
            agent.title()
        );
        asks && is_wanted(&question).unwrap_or(false)
    }

    pub(super) fn uninstall(&mut self, change: &Change) {
        for agent in self.agents(&change.agent) {
            let kept = self.kept_parts(agent, &change.only);
            let mut removed = self.installed(agent);
            removed.retain(|part| !kept.contains(part));
            let mut report = AgentReport::new(agent, self.scope, &removed);
            let (all, kept) = (self.targets(agent, &Part::ALL), self.targets(agent, &kept));
            // The first file may have created the folders of the others.
            for target in all.into_iter().rev() {
                let recorded = self.record.get(&target.path).cloned();
                let kept = kept.iter().find(|kept| kept.path == target.path);
                self.edit(&mut report, agent, &target, |text| {
                    let Some(text) = text else { return Ok(None) };
                    let Some(kept) = kept else {
                        // An error says why something of ours cannot be removed.
                        target
                            .content
                            .remove(text)
                            .map_err(|error| error.to_string())?;
                        return Ok(target.content.original(Some(text), recorded.as_ref()));
                    };
                    let rest = target.content.remove(text);
                    // Nothing else is there.
                    if kept.content.presence(text) == Ok(Presence::Current)
                        && kept.content.remove(text) == rest
                    {
                        return Ok(Some(text.to_owned()));
                    }
                    let rest = rest.map_err(|error| error.to_string())?;
                    let added = kept.content.add(rest.as_deref());
                    added.map(Some).map_err(|error| error.to_string())
                });
            }
            self.report.agents.push(report);
        }
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

    /// Returns the files that hold `parts` for an agent.
    fn targets(&self, agent: Agent, parts: &[Part]) -> Vec<Target> {
        targets(agent, self.scope, parts, &self.locations, &self.program)
    }

    /// Adds the change of a file to the report, and makes it if changes are written. `edit` gets
    /// the text of the file, or `None` if it does not exist, and returns the text it should have,
    /// or `None` for no file.
    fn edit(
        &mut self,
        report: &mut AgentReport,
        agent: Agent,
        target: &Target,
        edit: impl FnOnce(Option<&str>) -> Result<Option<String>, String>,
    ) {
        let path = &target.path;
        if let Some(problem) = self.leaves_project(path) {
            return report.add_problem(&problem);
        }
        let file = match File::read(path) {
            Ok(file) => file,
            Err(error) => return report.add_problem(&error.message),
        };
        let before = file.exists().then(|| file.text().to_owned());
        let after = match edit(before.as_deref()) {
            Ok(after) => after,
            Err(error) => {
                let path = path.display();
                return report
                    .add_problem(&format!("cannot edit {path}: {error}; nothing was changed"));
            }
        };
        if before == after {
            return;
        }
        let has_ours = |text: &String| target.content.spelling(text).is_some();
        self.replaces |= before.as_ref().is_some_and(has_ours);
        let diff = unified_diff(path, before.as_deref(), after.as_deref());
        let mut change = FileChange::new(target, diff);
        if self.report.written {
            match self.write(agent, file, before.as_deref(), after.as_deref()) {
                Ok(done) => change.done = Some(done),
                // The other files can still be changed.
                Err(error) => report.add_problem(&error.message),
            }
        }
        report.files.push(change);
    }

    /// Returns why a file of the project is left alone: a link of the repository leads to a file elsewhere. What an
    /// earlier version wrote through one can be removed.
    fn leaves_project(&self, path: &Path) -> Option<String> {
        if self.scope == Scope::User || self.record.get(path).is_some() {
            return None;
        }
        let project = self.locations.project.canonicalize().ok()?;
        let mut above = path.ancestors();
        let real = above.find_map(|existing| existing.canonicalize().ok())?;
        (!real.starts_with(&project)).then(|| {
            format!(
                "cannot edit {}: a symbolic link of the project leads to {}; nothing was changed. Replace the link, or connect the agent for yourself with --user",
                path.display(),
                real.display()
            )
        })
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
        self.targets(agent, &Part::ALL)
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

    /// Returns whether a file with our entries changes. The hooks in them refuse denied files to agents.
    pub(super) fn replaces(&self) -> bool {
        self.replaces
    }

    /// Prints the changes. Returns the exit code.
    pub(super) fn finish(&self, is_json: bool) -> Result<i32, Error> {
        self.report.print(is_json, &self.locations.home)?;
        Ok(if self.report.has_failed() {
            FAILURE
        } else if self.report.is_empty() || self.report.is_pending() && !self.report.written {
            NEGATIVE
        } else {
            DONE
        })
    }
}

/// Returns why files cannot be hidden from the commands of an agent.
fn cannot_hide(agent: Agent, scope: Scope) -> Option<String> {
    let name = agent.name();
    if (agent, scope) != (Agent::Claude, Scope::User) {
        return Some(format!(
            "cannot hide files from commands of {}: only Claude Code offers a way, in the settings of the user; start the agent with `sightline exec -- {name}`",
            agent.title()
        ));
    }
    let why = exec::hiding_problem()?;
    Some(format!("cannot hide files from commands: {why}"))
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
