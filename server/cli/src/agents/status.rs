//! `sightline agents status`, and what `doctor` says about agents: what is connected, and what keeps it
//! from running.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sightline_agents::{
    Agent,
    install::{
        EditError, Locations, Part, Presence, Scope, Target, codex_trust, installed,
        switches::{Switch, switches},
    },
};
use sightline_base::fs::{config_file::File, find_program};
use sightline_engine::error::Error;
use sightline_protocol::error::ErrorKind;

use super::{
    super::{DONE, NEGATIVE, Workspace, offline, print},
    gateway::{Setup, Way, is_configured},
    locations, program, read_text, targets,
};

/// Part of Cline's log that is searched, in bytes.
const LOG_TAIL: u64 = 256 * 1024;
/// Age after which an entry of Cline's log is of no interest.
const LOG_AGE: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// Something that keeps an agent from running what is installed.
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) remedy: String,
    /// Whether nothing of a part runs, so that `status` fails.
    is_fatal: bool,
}

impl Problem {
    fn fatal(what: impl Into<String>, remedy: &str) -> Self {
        Self {
            is_fatal: true,
            ..Self::minor(what, remedy)
        }
    }

    fn minor(what: impl Into<String>, remedy: &str) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.to_owned(),
            is_fatal: false,
        }
    }
}

/// What an agent has.
pub(crate) struct AgentState {
    agent: Agent,
    is_used: bool,
    user: Installed,
    project: Installed,
    /// Whether Codex runs our hooks.
    trusted: Option<bool>,
    pub(crate) problems: Vec<Problem>,
    way: Way,
    /// Whether any agent is configured with the gateway.
    has_gateway: bool,
}

/// What an agent has in one scope.
struct Installed {
    parts: Vec<Part>,
    /// Other versions of our entries.
    outdated: bool,
    problems: Vec<Problem>,
}

impl Installed {
    fn read(
        agent: Agent,
        scope: Scope,
        locations: &Locations,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let program = program(scope)?;
        let parts = installed(agent, scope, locations, &program, read_text);
        let mut problems = Vec::new();
        for target in targets(agent, scope, &Part::ALL, locations, &program, setup) {
            let broken = match File::read(&target.path) {
                Ok(file) if file.exists() => invalid(&target, file.text()),
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            };
            let Some(broken) = broken else { continue };
            problems.push(Problem::fatal(broken, "correct the file"));
        }
        let flag = match scope {
            Scope::User => "",
            Scope::Project => " --project",
        };
        let remedy = format!(
            "run `sightline agents install --agent {}{flag}`",
            agent.name()
        );
        let name = scope_name(scope);
        let has_current =
            |target: &Target, text: &str| target.content.presence(text) == Ok(Presence::Current);
        let by_name = self::program(Scope::Project)?;
        let by_name = targets(agent, scope, &parts, locations, &by_name, setup);
        let (mut outdated, mut bare) = (false, false);
        for target in targets(agent, scope, &parts, locations, &program, setup) {
            let text = read_text(&target.path).unwrap_or_default();
            if has_current(&target, &text) || target.content.presence(&text).is_err() {
                continue;
            }
            let mut by_name = by_name.iter().filter(|_| scope == Scope::User);
            let is_bare = by_name.any(|one| one.path == target.path && has_current(one, &text));
            bare |= is_bare;
            outdated |= !is_bare;
        }
        if outdated {
            let what = format!("out of date ({name})");
            problems.push(Problem::minor(what, &remedy));
        }
        if bare {
            let what = format!(
                "`sightline` is named without its folder ({name}), so it is not found if the agent has a shorter PATH"
            );
            problems.push(Problem::minor(what, &remedy));
        }
        Ok(Self {
            parts,
            outdated,
            problems,
        })
    }
}

/// Returns why an agent cannot read the text of a file.
pub(super) fn invalid(target: &Target, text: &str) -> Option<String> {
    let path = target.path.display();
    Some(match target.check(text).err()? {
        EditError::Syntax { format, line, .. } => format!("{path}: invalid {format}, line {line}"),
        error => format!("{path}: {error}"),
    })
}

impl AgentState {
    pub(super) fn read(agent: Agent, locations: &Locations, setup: &Setup) -> Result<Self, Error> {
        let mut user = Installed::read(agent, Scope::User, locations, setup)?;
        let mut project = Installed::read(agent, Scope::Project, locations, setup)?;
        let mut problems = std::mem::take(&mut user.problems);
        problems.append(&mut project.problems);
        let parts: Vec<Part> = user.parts.iter().chain(&project.parts).copied().collect();
        problems.extend(
            switched_off(agent, locations, &parts)
                .into_iter()
                .map(|switch| Problem::fatal(switch.to_string(), "remove the setting")),
        );
        let has_hooks = |installed: &Installed| {
            [Part::Context, Part::Access]
                .iter()
                .any(|part| installed.parts.contains(part))
        };
        let trusted =
            (agent == Agent::Codex && has_hooks(&user)).then(|| codex_trusts_hooks(locations));
        if trusted == Some(false) {
            let remedy = "open Codex and enter /hooks";
            problems.push(Problem::minor("hooks not approved yet", remedy));
        }
        if agent == Agent::Cline && has_hooks(&user) && has_failed_to_load(&locations.cline_log()) {
            let log = locations.cline_log();
            problems.push(Problem::fatal(
                format!(
                    "Cline went on without plugins in the last 24 hours ({})",
                    log.display()
                ),
                "set CLINE_PLUGIN_IMPORT_TIMEOUT_MS=30000 for Cline and start it again",
            ));
        }
        let way = setup.way(agent, locations);
        if user.parts.contains(&Part::Gateway) {
            problems.extend(problem_of_gateway(&way, setup));
        }
        Ok(Self {
            agent,
            has_gateway: setup.service.port().is_some(),
            way,
            is_used: locations.folder(agent).is_dir(),
            user,
            project,
            trusted,
            problems,
        })
    }

    pub(crate) fn is_connected(&self) -> bool {
        !self.user.parts.is_empty() || !self.project.parts.is_empty()
    }

    fn has_part(&self, part: Part) -> bool {
        self.user.parts.contains(&part) || self.project.parts.contains(&part)
    }

    /// Returns its name, and whether its requests go through the gateway.
    pub(crate) fn title(&self) -> String {
        let title = self.agent.title();
        match self.way {
            Way::Through => format!("{title} (through the gateway)"),
            _ => title.to_owned(),
        }
    }

    /// Returns what is connected, and the problems.
    fn notes(&self, on_path: bool) -> Vec<String> {
        let mut notes = Vec::new();
        for (scope, installed) in [(Scope::User, &self.user), (Scope::Project, &self.project)] {
            if !installed.parts.is_empty() {
                let names = names(&installed.parts).join(", ");
                notes.push(format!("{names} ({})", scope_name(scope)));
            }
        }
        if self.is_connected() && !self.has_part(Part::Checkpoints) {
            notes.push(format!(
                "turns are not saved: `sightline agents install --agent {} --only checkpoints --yes` adds it",
                self.agent.name()
            ));
        }
        for problem in &self.problems {
            notes.push(format!("{}: {}", problem.what, problem.remedy));
        }
        match &self.way {
            Way::Through => notes.push("requests go through the gateway".to_owned()),
            Way::Past(_) if self.is_used && self.has_gateway && !self.has_part(Part::Gateway) => {
                notes.push("requests go past the gateway".to_owned());
            }
            _ => {}
        }
        if notes.is_empty() {
            let note = match (self.is_used, on_path) {
                (true, _) => "not connected",
                (false, true) => "not started yet",
                (false, false) => "not found",
            };
            notes.push(note.to_owned());
        }
        if self.is_used && !on_path {
            notes.push(format!("`{}` is not on the PATH", self.agent.name()));
        }
        notes
    }
}

/// Returns why the requests of an agent that is configured with the gateway do not go through it.
fn problem_of_gateway(way: &Way, setup: &Setup) -> Option<Problem> {
    match way {
        Way::Through => None,
        Way::Past(what) => Some(Problem::fatal(
            format!("requests go past the gateway ({what})"),
            "remove the other address, or run `sightline agents install --only gateway`",
        )),
        Way::NotRunning => {
            let port = setup.service.port().unwrap_or_default();
            Some(Problem::fatal(
                format!("the gateway does not run on port {port}, so the agent gets no answer"),
                "run `systemctl --user start sightline-gateway.socket`, or `sightline gateway --service` without systemd",
            ))
        }
    }
}

/// Returns why the requests of an agent that is configured with the gateway do not go through it, and
/// what to do.
///
/// # Errors
/// If the configuration of the gateway cannot be read.
pub(crate) fn gateway_problem(
    agent: Agent,
    project: &Path,
    storage: Option<&Path>,
) -> Result<Option<String>, Error> {
    let locations = locations(project.to_owned())?;
    if !is_configured(agent, &locations, &program(Scope::User)?) {
        return Ok(None);
    }
    let setup = Setup::read(storage)?;
    let problem = problem_of_gateway(&setup.way(agent, &locations), &setup);
    Ok(problem.map(|Problem { what, remedy, .. }| format!("{what}; {remedy}")))
}

/// What an agent has, and its program on the PATH.
pub(super) struct Status {
    state: AgentState,
    program: Option<PathBuf>,
}

impl Status {
    /// Returns the states of the named agents, or of all.
    ///
    /// # Errors
    /// The home directory is unknown.
    pub(super) fn read_all(
        root: &Path,
        storage: Option<&Path>,
        named: &[Agent],
    ) -> Result<Vec<Self>, Error> {
        let locations = locations(root.to_owned())?;
        let setup = Setup::read(storage)?;
        Agent::ALL
            .into_iter()
            .filter(|agent| named.is_empty() || named.contains(agent))
            .map(|agent| {
                Ok(Self {
                    state: AgentState::read(agent, &locations, &setup)?,
                    program: find_program(agent.name()),
                })
            })
            .collect()
    }

    pub(super) fn json(&self) -> Value {
        let Self { state, program } = self;
        let problems = state.problems.iter().map(|problem| problem.what.as_str());
        json!({
            "agent": state.agent.name(),
            "title": state.agent.title(),
            "used": state.is_used,
            "onPath": program.is_some(),
            "version": program.as_deref().and_then(version),
            "user": names(&state.user.parts),
            "project": names(&state.project.parts),
            "outdated": state.user.outdated || state.project.outdated,
            "trusted": state.trusted,
            "gateway": state.way.name(),
            "problems": problems.collect::<Vec<_>>(),
        })
    }

    fn line(&self) -> String {
        let notes = self.state.notes(self.program.is_some()).join("; ");
        format!("{:<13} {notes}\n", self.state.agent.title())
    }
}

/// Returns the version of an installed program without starting it: that of its npm package, or the one in
/// its path.
fn version(program: &Path) -> Option<String> {
    let program = program.canonicalize().ok()?;
    let package = program.ancestors().skip(1).take(4).find_map(|folder| {
        let text = fs::read_to_string(folder.join("package.json")).ok()?;
        let package: Value = serde_json::from_str(&text).ok()?;
        Some(package["version"].as_str()?.to_owned())
    });
    let is_version =
        |name: &&str| name.starts_with(|c: char| c.is_ascii_digit()) && name.contains('.');
    let mut names = program.iter().rev().filter_map(OsStr::to_str);
    package.or_else(|| names.find(is_version).map(str::to_owned))
}

pub(super) fn status(workspace: &Workspace, named: &[Agent]) -> Result<i32, Error> {
    let root = offline::root(workspace)?;
    let rows = Status::read_all(root.path.as_path(), workspace.storage.as_deref(), named)?;
    print(&if workspace.json {
        let rows: Vec<Value> = rows.iter().map(Status::json).collect();
        format!("{}\n", json!(rows))
    } else {
        rows.iter().map(Status::line).collect()
    })?;
    let mut problems = rows.iter().flat_map(|row| &row.state.problems);
    let fails = problems.any(|problem| problem.is_fatal);
    Ok(if fails { NEGATIVE } else { DONE })
}

fn names(parts: &[Part]) -> Vec<&'static str> {
    parts.iter().map(|part| part.name()).collect()
}

pub(super) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Project => "project",
    }
}

/// Returns the settings that keep an agent from running parts.
pub(super) fn switched_off(agent: Agent, locations: &Locations, parts: &[Part]) -> Vec<Switch> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut found = switches(agent, locations, read_text, variable);
    found.retain(|switch| parts.iter().any(|part| switch.concerns(*part)));
    found
}

pub(super) fn codex_trusts_hooks(locations: &Locations) -> bool {
    let folder = locations.folder(Agent::Codex);
    let path = folder.join("hooks.json");
    let text = |path: &Path| File::read(path).map(|file| file.text().to_owned());
    let hooks = text(&path)
        .map_err(|_| ErrorKind::Storage)
        .and_then(|text| serde_json::from_str(&text).map_err(|_| ErrorKind::InvalidParams));
    let config = text(&folder.join("config.toml")).unwrap_or_default();
    hooks.is_ok_and(|hooks| codex_trust::is_trusted(&config, &hooks, &path.to_string_lossy()))
}

/// Returns whether the log of Cline says that it went on without plugins, a short time ago.
fn has_failed_to_load(log: &Path) -> bool {
    let tail = || -> io::Result<String> {
        let mut file = fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
        let mut tail = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut tail)?;
        Ok(String::from_utf8_lossy(&tail).into_owned())
    };
    let since = jiff::Timestamp::now() - LOG_AGE;
    let is_recent = |line: &str| {
        let entry: Option<serde_json::Value> = serde_json::from_str(line).ok();
        let time = entry.and_then(|entry| entry["time"].as_str()?.parse().ok());
        time.is_none_or(|time: jiff::Timestamp| time > since)
    };
    let tail = tail().unwrap_or_default();
    tail.lines()
        .any(|line| line.contains("plugin loading failed") && is_recent(line))
}
