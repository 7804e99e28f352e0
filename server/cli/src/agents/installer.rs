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
        Content, Locations, Part, Presence, Program, Scope, Target, installed,
        patch::unified_diff,
        record::{Record, RecordedFile},
    },
};
use sightline_base::{
    fs::{config_file::File, find_program},
    storage::{Storage, atomic_file, entries, read_foreign},
};
use sightline_engine::error::Error;

use super::{
    super::{
        DONE, FAILURE, NEGATIVE, Workspace,
        checkpoints::{below_agent, is_wanted},
        exec,
        gateway::service,
        internal, offline,
    },
    Change, NAME,
    gateway::{Setup, cannot_route, is_configured},
    locations, program, read_text,
    report::{AgentReport, FileChange, Report, about_rules, nothing_found},
    status::switched_off,
    targets,
};

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
    setup: Setup,
    /// Whether the gateway can be written into files of agents.
    is_gateway_ready: bool,
}

impl Installer {
    /// `write` makes the changes.
    pub(super) fn new(change: &Change, write: bool) -> Result<Self, Error> {
        let workspace = Workspace::new(change.root.clone(), None);
        let scope = match change.project {
            true => Scope::Project,
            false => Scope::User,
        };
        let storage_dir = offline::storage_dir(change.storage.as_deref())?;
        let lock = write.then(|| lock(&storage_dir)).transpose()?;
        let path = storage_dir.join(entries::AGENTS);
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
            setup: Setup::read(change.storage.as_deref())?,
            is_gateway_ready: false,
        })
    }

    fn agents(&self, named: &[Agent]) -> Vec<Agent> {
        if !named.is_empty() {
            return named.to_vec();
        }
        let used = |agent: &Agent| self.locations.folder(*agent).is_dir();
        Agent::ALL.into_iter().filter(used).collect()
    }

    /// `chain`: addresses of the user may be replaced by those of the gateway, which forwards to them.
    pub(super) fn install(&mut self, change: &Change, chain: bool) {
        self.setup.chains = chain;
        let agents = self.agents(&change.agent);
        if agents.is_empty() {
            self.report.notes.push(nothing_found());
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
        for agent in agents.clone() {
            let mut parts = change.only.clone();
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
            let limits = [
                (Part::Gateway, cannot_route(agent, self.scope)),
                (Part::Commands, exec::offers_no_way(agent, self.scope)),
            ];
            for (part, why) in limits {
                match why.filter(|_| parts.contains(&part)) {
                    // It would do nothing silently.
                    Some(why) if change.agent.is_empty() => {
                        report.notes.push(why);
                        parts.retain(|one| *one != part);
                    }
                    Some(why) => report.add_problem(&why),
                    None => {}
                }
            }
            if parts.contains(&Part::Gateway) && !report.has_failed() {
                report.add_error(self.prepare_gateway(&agents));
            }
            if parts.contains(&Part::Commands)
                && !report.has_failed()
                && let Some(why) = exec::cannot_hide(agent, self.scope)
            {
                report.add_problem(&why);
            }
            if report.has_failed() || parts.is_empty() {
                self.report.agents.push(report);
                continue;
            }
            let targets = self.targets(agent, &parts);
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
                let noted = self.note_found(&report, &target);
                report.add_error(noted);
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
        if self.is_gateway_ready && self.report.written && self.setup.has_systemd {
            let listening = service::listen().err();
            let report = self.report.agents.last_mut();
            if let (Some(report), Some(why)) = (report, listening) {
                report.add_problem(&format!(
                    "cannot start the gateway: {why}; until it runs, agents get no answer"
                ));
            }
        }
        if self.report.written && self.report.is_pending() {
            let note = "agents that are running use this from their next session";
            self.report.notes.push(note.to_owned());
        }
        let rules = about_rules(&self.locations.project);
        self.report.notes.push(rules);
    }

    /// Chooses the address of the gateway, and the addresses of the user to which it forwards.
    fn prepare_gateway(&mut self, agents: &[Agent]) -> Result<(), Error> {
        if self.is_gateway_ready {
            return Ok(());
        }
        for agent in agents.iter().filter(|_| self.setup.chains) {
            let addresses = self.setup.addresses(*agent);
            let path = self.locations.addresses(*agent);
            let text = path.and_then(|path| read_text(&path));
            let replaced = addresses.replaces(&text.unwrap_or_default());
            self.setup.service.forward_to(replaced);
        }
        if self.report.written {
            self.setup.service.store()?;
        }
        self.setup.has_systemd = service::has_systemd();
        if !self.setup.has_systemd {
            self.report.notes.push(
                "agents get no answer until the gateway runs, and systemd does not start it here: start `sightline gateway --service` when you log in".to_owned(),
            );
        }
        self.is_gateway_ready = true;
        Ok(())
    }

    /// Asks the user, when an agent is connected for the first time, whether to hide files from its commands.
    fn wants_hiding(&self, change: &Change, agent: Agent) -> bool {
        let asks = change.yes
            && !change.json
            && change.only.is_empty()
            && io::stdin().is_terminal()
            && below_agent().is_none()
            && exec::cannot_hide(agent, self.scope).is_none();
        let question = format!(
            "Also hide denied files from the commands of {} (they cannot open them, for example `npm start` its .env)?",
            agent.title()
        );
        asks && is_wanted(&question).unwrap_or(false)
    }

    pub(super) fn uninstall(&mut self, change: &Change) {
        let agents = self.agents(&change.agent);
        for (at, agent) in agents.iter().copied().enumerate() {
            let stays = |other: &Agent| *other != agent && !agents[..at].contains(other);
            let kept = self.kept_parts(agent, &change.only);
            let mut removed = self.installed(agent);
            removed.retain(|part| !kept.contains(part));
            let mut report = AgentReport::new(agent, self.scope, &removed);
            let (all, mut kept) = (self.targets(agent, &Part::ALL), self.targets(agent, &kept));
            let shown = self.targets(agent, &removed);
            let has_gateway = |other: &Agent| {
                stays(other) && is_configured(*other, &self.locations, &self.program)
            };
            let is_last = removed.contains(&Part::Gateway) && !Agent::ALL.iter().any(has_gateway);
            let units = self.setup.units(agent, &self.locations, &self.program);
            if !is_last {
                kept.extend(units);
            } else if self.report.written
                && !units.is_empty()
                && let Err(why) = service::unlisten()
            {
                report.notes.push(format!("cannot stop the gateway: {why}"));
            }
            let hides =
                |other: &Agent| stays(other) && self.installed(*other).contains(&Part::Commands);
            if Agent::ALL.iter().any(hides) {
                let is_shared = |target: &Target| matches!(target.content, Content::HideCommands);
                kept.extend(all.iter().filter(|target| is_shared(target)).cloned());
            }
            // The first file may have created the folders of the others.
            for target in all.into_iter().rev() {
                let recorded = self.record.get(&target.path).cloned();
                let found = recorded.iter().flat_map(|file| file.found.clone());
                let found: Vec<String> = found.collect();
                let kept = kept.iter().find(|kept| kept.path == target.path);
                let kept_names = kept.map_or_else(Vec::new, |kept| kept.content.names());
                let mut staying = found.clone();
                staying.retain(|name| !kept_names.contains(name));
                let content = target.content.without(&found);
                let kept = kept.and_then(|kept| kept.content.without(&found));
                self.edit(&mut report, agent, &target, |text| {
                    let Some(text) = text else { return Ok(None) };
                    let Some(content) = content else {
                        return Ok(original(None, Some(text), recorded.as_ref()));
                    };
                    let Some(kept) = kept else {
                        // An error says why something of ours cannot be removed.
                        content.remove(text).map_err(|error| error.to_string())?;
                        return Ok(original(Some(&content), Some(text), recorded.as_ref()));
                    };
                    let reduced = content.reduce(&kept, text);
                    reduced.map_err(|error| error.to_string())
                });
                let shown = shown.iter().find(|shown| shown.path == target.path);
                let changed = report.files.last_mut();
                if let (Some(shown), Some(changed)) = (shown, changed)
                    && changed.path == target.path
                {
                    changed.content = shown.content.summary();
                }
                let released = self.release(&mut report, &target.path, &staying);
                report.add_error(released);
            }
            if removed.contains(&Part::Gateway) && self.report.written && !report.has_failed() {
                report.add_error(self.setup.service.forget(agent.name(), is_last));
            }
            self.report.agents.push(report);
        }
    }

    /// Returns the parts that stay when `removed` are removed; none if it is empty.
    fn kept_parts(&self, agent: Agent, removed: &[Part]) -> Vec<Part> {
        if removed.is_empty() {
            return Vec::new();
        }
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
        let (scope, locations) = (self.scope, &self.locations);
        targets(agent, scope, parts, locations, &self.program, &self.setup)
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
            Err(error) => return report.add_problem(&error.to_string()),
        };
        let before = file.exists().then(|| file.text().to_owned());
        let after = match edit(before.as_deref()) {
            Ok(after) => after,
            Err(error) => {
                let path = path.display();
                return report
                    .add_problem(&format!("cannot edit {path}: {error}; it was not changed"));
            }
        };
        if before == after {
            return;
        }
        let has_ours = |text: &String| {
            let presence = target.content.presence(text);
            presence.is_ok_and(|presence| presence != Presence::Absent)
        };
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
        let project = sightline_base::path::canonicalize(&self.locations.project).ok()?;
        let mut above = path.ancestors();
        let real = above.find_map(|existing| sightline_base::path::canonicalize(existing).ok())?;
        (!real.starts_with(&project)).then(|| {
            format!(
                "cannot edit {}: a symbolic link of the project leads to {}; it was not changed. Replace the link, or connect the agent for yourself with --user",
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
        let all = self.all_content(agent, &path);
        let found = match recorded {
            Some(recorded) => recorded.found.clone(),
            None => found_in(all.as_ref(), before),
        };
        let content = all.and_then(|all| all.without(&found));
        let original = original(content.as_ref(), before, recorded);
        if original.as_deref() == Some(after) {
            file.replace(after)?;
            self.record.forget(&path);
            self.save_record()?;
        } else {
            // An entry of a change that is not made is harmless.
            self.record
                .note(&path, original.as_deref(), after, folders, found);
            self.save_record()?;
            file.replace(after)?;
        }
        Ok("written")
    }

    /// Records the entries of a file that did not have to be added: the user has written them.
    fn note_found(&mut self, report: &AgentReport, target: &Target) -> Result<(), Error> {
        let path = &target.path;
        if !self.report.written || report.has_failed() || self.record.get(path).is_some() {
            return Ok(());
        }
        let text = read_text(path);
        let found = found_in(Some(&target.content), text.as_deref());
        if let Some(text) = text.filter(|_| !found.is_empty()) {
            self.record
                .note(path, Some(&text), &text, Vec::new(), found);
            self.save_record()?;
        }
        Ok(())
    }

    /// Says which entries stay because they were there before. The next removal removes them.
    fn release(
        &mut self,
        report: &mut AgentReport,
        path: &Path,
        names: &[String],
    ) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        report.notes.push(format!(
            "{}: {} was there before the installation and stays; uninstall again to remove it",
            path.display(),
            names.join(", ")
        ));
        if self.report.written {
            self.record.release(path, names);
            self.save_record()?;
        }
        Ok(())
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
        atomic_file::replace(&self.storage_dir.join(entries::AGENTS), text.as_bytes())?;
        Ok(())
    }

    /// Returns whether a file with our entries changes. The hooks in them refuse denied files to agents.
    pub(super) fn replaces(&self) -> bool {
        self.replaces
    }

    /// Prints the changes. Returns the exit code.
    pub(super) fn finish(&self, is_json: bool, has_diffs: bool) -> Result<i32, Error> {
        self.report
            .print(is_json, has_diffs, &self.locations.home)?;
        Ok(if self.report.has_failed() {
            FAILURE
        } else if self.report.is_empty() || self.report.is_pending() && !self.report.written {
            NEGATIVE
        } else {
            DONE
        })
    }
}

/// Returns the text as it was before our content was added. Without content, everything of ours was there before.
fn original(
    content: Option<&Content>,
    text: Option<&str>,
    recorded: Option<&RecordedFile>,
) -> Option<String> {
    let Some(content) = content else {
        let earlier = recorded.and_then(|file| file.patch.apply(text?));
        return earlier.or_else(|| text.map(str::to_owned));
    };
    content.original(text, recorded)
}

fn found_in(content: Option<&Content>, text: Option<&str>) -> Vec<String> {
    let found = content.zip(text);
    found.map_or_else(Vec::new, |(content, text)| content.found(text))
}

/// Returns whether a path is below a folder that tools empty, such as `target`.
fn is_in_build_folder(program: &Path) -> bool {
    let mut folders = program.ancestors();
    folders.any(|folder| folder.join("CACHEDIR.TAG").is_file())
}

/// Waits for other processes that change the configuration of agents.
fn lock(storage_dir: &Path) -> Result<fs::File, Error> {
    Storage::open(storage_dir)?.make_dir(storage_dir)?;
    let path = storage_dir.join(entries::AGENTS_LOCK);
    let mut options = atomic_file::private_options();
    let opened = atomic_file::open(&path, options.write(true).create(true).truncate(false));
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
