//! `sightline agents status`.

use std::path::Path;

use serde_json::json;
use sightline_agents::{
    Agent,
    install::{Locations, Part, Presence, Program, Scope, codex_trust, installed, targets},
};
use sightline_protocol::error::ErrorKind;

use super::{
    super::{DONE, Workspace, config_file::File, offline, print},
    AgentName, locations, on_path, program, read_text,
};
use crate::error::Error;

/// What an agent has.
struct Installed {
    parts: Vec<Part>,
    /// Other versions of our entries.
    outdated: bool,
}

impl Installed {
    fn read(agent: Agent, scope: Scope, locations: &Locations, program: &Program) -> Self {
        let parts = installed(agent, scope, locations, program, read_text);
        let mut targets = targets(agent, scope, &parts, locations, program).into_iter();
        let outdated = targets.any(|target| {
            let text = read_text(&target.path).unwrap_or_default();
            target.content.presence(&text) != Ok(Presence::Current)
        });
        Self { parts, outdated }
    }
}

pub(super) fn status(workspace: &Workspace, named: &[AgentName]) -> Result<i32, Error> {
    let root = offline::root(workspace)?;
    let locations = locations(root.path.as_path().to_owned())?;
    let program = program()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut rows = Vec::new();
    let mut lines = String::new();
    for agent in Agent::ALL {
        if !named.is_empty() && !named.contains(&AgentName(agent)) {
            continue;
        }
        let is_used = locations.folder(agent).is_dir();
        let user = Installed::read(agent, Scope::User, &locations, &program);
        let project = Installed::read(agent, Scope::Project, &locations, &program);
        let names = |parts: &[Part]| parts.iter().map(|part| part.name()).collect::<Vec<_>>();
        let mut notes = Vec::new();
        for (scope, installed) in [("user", &user), ("project", &project)] {
            if !installed.parts.is_empty() {
                notes.push(format!("{} ({scope})", names(&installed.parts).join(", ")));
            }
            if installed.outdated {
                notes.push(format!(
                    "out of date ({scope}): run `sightline agents install --agent {}`",
                    agent.name()
                ));
            }
        }
        if notes.is_empty() {
            notes.push(
                if is_used {
                    "not connected"
                } else {
                    "not found"
                }
                .to_owned(),
            );
        }
        let trusted = (agent == Agent::Codex && user.parts.contains(&Part::Access))
            .then(|| codex_trusts_hooks(&locations));
        if trusted == Some(false) {
            notes.push("hooks not approved yet: open Codex and enter /hooks".to_owned());
        }
        let on_path = on_path(&path, program_name(agent));
        if is_used && !on_path {
            notes.push(format!("`{}` is not on the PATH", program_name(agent)));
        }
        lines.push_str(&format!("{:<13} {}\n", agent.title(), notes.join("; ")));
        rows.push(json!({
            "agent": agent.name(),
            "title": agent.title(),
            "used": is_used,
            "onPath": on_path,
            "user": names(&user.parts),
            "project": names(&project.parts),
            "outdated": user.outdated || project.outdated,
            "trusted": trusted,
        }));
    }
    print(&if workspace.json {
        format!("{}\n", json!(rows))
    } else {
        lines
    })?;
    Ok(DONE)
}

/// Returns the name of an agent's program.
fn program_name(agent: Agent) -> &'static str {
    agent.name()
}

fn codex_trusts_hooks(locations: &Locations) -> bool {
    let folder = locations.folder(Agent::Codex);
    let path = folder.join("hooks.json");
    let text = |path: &Path| File::read(path).map(|file| file.text().to_owned());
    let hooks = text(&path)
        .map_err(|_| ErrorKind::Storage)
        .and_then(|text| serde_json::from_str(&text).map_err(|_| ErrorKind::InvalidParams));
    let config = text(&folder.join("config.toml")).unwrap_or_default();
    hooks.is_ok_and(|hooks| codex_trust::is_trusted(&config, &hooks, &path.to_string_lossy()))
}
