//! Edits the file of the user with servers, and those of agents.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sightline_protocol::mcp::McpServer;

use super::{
    config::{self, KNOWN, KnownServer, SERVERS, Server},
    manage::{Manager, described},
    store::State,
};
use crate::{
    Agent,
    install::{
        Locations, Scope,
        json::{remove_member, set_member},
        patch::ReversePatch,
    },
};

/// The version of the program that connects to servers of other machines.
const REMOTE: &str = "mcp-remote@0.15.1";

impl Manager {
    /// Adds a server to the file of the user: a known one, the one at an address, or a command. Returns its
    /// name and what is known of it.
    ///
    /// # Errors
    /// If its name is taken or invalid, or the file cannot be changed.
    pub fn add(
        &self,
        name: &str,
        command: &[String],
    ) -> Result<(String, Option<KnownServer>), String> {
        let is_address = name.starts_with("https://") || name.starts_with("http://");
        let known = KNOWN
            .iter()
            .find(|known| known.name == name && command.is_empty());
        let (name, command): (String, Vec<String>) = match known {
            Some(known) => (
                name.to_owned(),
                known
                    .command
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect(),
            ),
            None if is_address && command.is_empty() => {
                let command = ["npx", "-y", REMOTE, name].map(str::to_owned);
                (name_of_address(name), command.into())
            }
            None if command.is_empty() => {
                let known: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
                return Err(format!(
                    "the server {name} is not known; give its command: `sightline mcp add {name} -- CMD ARGS...`. Known \
                     servers: {}",
                    known.join(", ")
                ));
            }
            None => (name.to_owned(), command.to_vec()),
        };
        config::check_name(&name)?;
        self.change(|text| {
            if config::parse(&self.user_file, text)?
                .get(SERVERS)
                .is_some_and(|all| all.get(&name).is_some())
            {
                return Err(format!("there is a server {name} already; remove it first"));
            }
            let entry = json!({ "command": command[0], "args": command[1..] });
            set_member(text, SERVERS, &name, &entry).map_err(|error| error.to_string())
        })?;
        Ok((name, known.copied()))
    }

    /// Removes a server from the file of the user.
    ///
    /// # Errors
    /// If it is not there, or the file cannot be changed.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        let server = self.find(name).map_err(|error| error.to_string())?;
        if server.root.is_some() {
            return Err(format!(
                "{name} is a server of the project; remove it from {}",
                server.source.display()
            ));
        }
        self.change(|text| {
            let removed = remove_member(text, SERVERS, name).map_err(|error| error.to_string())?;
            removed.ok_or_else(|| format!("there is no server {name}"))
        })
    }

    /// Moves a server from the configuration of an agent to the file of the user. Returns the file of the
    /// agent.
    ///
    /// # Errors
    /// If no agent has such a server, or a file cannot be changed.
    pub fn adopt(&self, name: &str, locations: &Locations) -> Result<PathBuf, String> {
        let files = Agent::ALL
            .into_iter()
            .filter_map(|agent| json_file(agent, Scope::User, locations));
        for (path, member) in files {
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            let Some(entry) = config::parse(&path, &text)?
                .get(member)
                .and_then(|all| all.get(name))
                .cloned()
            else {
                continue;
            };
            config::check_name(name)?;
            let removed = remove_member(&text, member, name).map_err(|error| error.to_string())?;
            let removed =
                removed.ok_or_else(|| format!("cannot remove {name} from {}", path.display()))?;
            let record = Adopted {
                path: path.clone(),
                patch: ReversePatch::new(&text, &removed),
            };
            self.change(|text| {
                if config::parse(&self.user_file, text)?
                    .get(SERVERS)
                    .is_some_and(|all| all.get(name).is_some())
                {
                    return Err(format!("there is a server {name} already; remove it first"));
                }
                set_member(text, SERVERS, name, &entry).map_err(|error| error.to_string())
            })?;
            self.store
                .write_adopted(name, &record)
                .map_err(|error| error.to_string())?;
            write(&path, &removed)?;
            return Ok(path);
        }
        Err(format!(
            "no agent has a server {name} in a JSON file of the user"
        ))
    }

    /// Moves a server back to the agent that had it. Returns the file of the agent.
    ///
    /// # Errors
    /// If it was not adopted, the file of the agent has changed since, or a file cannot be changed.
    pub fn release(&self, name: &str) -> Result<PathBuf, String> {
        let record: Option<Adopted> = self
            .store
            .adopted(name)
            .map_err(|error| error.to_string())?;
        let record = record.ok_or_else(|| format!("the server {name} was not adopted"))?;
        let shown = record.path.display();
        let text = fs::read_to_string(&record.path)
            .map_err(|error| format!("cannot read {shown}: {error}"))?;
        let original = record.patch.apply(&text).ok_or_else(|| {
            format!("cannot put {name} back: {shown} has changed there; add it by hand and remove it here")
        })?;
        write(&record.path, &original)?;
        self.remove(name)?;
        self.store.forget_adopted(name);
        Ok(record.path)
    }

    /// Changes the file of the user.
    fn change(&self, change: impl FnOnce(&str) -> Result<String, String>) -> Result<(), String> {
        let path: &Path = &self.user_file;
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let mut changed = change(&text)?;
        if !changed.ends_with('\n') {
            changed.push('\n');
        }
        write(path, &changed)
    }
}

/// Writes a file, through a link as a user would, and creates its folder.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A server that was moved from the configuration of an agent.
#[derive(Debug, Serialize, Deserialize)]
struct Adopted {
    /// The file of the agent.
    path: PathBuf,
    /// Restores the earlier text.
    patch: ReversePatch,
}

/// Returns the JSON file with the servers of an agent, and the name of their object.
fn json_file(agent: Agent, scope: Scope, locations: &Locations) -> Option<(PathBuf, &'static str)> {
    let member = match agent {
        // Its file is TOML.
        Agent::Codex => return None,
        Agent::Opencode => "mcp",
        _ => SERVERS,
    };
    Some((locations.mcp(agent, scope)?, member))
}

/// Returns the servers in the configuration of all agents.
pub fn servers_of_agents(locations: &Locations) -> Vec<McpServer> {
    let mut found: Vec<McpServer> = Vec::new();
    for agent in Agent::ALL {
        for server in of_agent(agent, locations) {
            let mut shown = described(&server);
            shown.agent = Some(agent.name().to_owned());
            shown.state = State::default().of(&server);
            shown.reason = server.problem;
            found.push(shown);
        }
    }
    found
}

/// Returns the servers that an agent has in its own JSON files. `client` is the name that it gives itself.
pub fn servers_of_agent(client: &str, locations: &Locations) -> Vec<Server> {
    let client = client.to_ascii_lowercase();
    Agent::ALL
        .into_iter()
        .find(|agent| client.contains(agent.name()))
        .into_iter()
        .flat_map(|agent| of_agent(agent, locations))
        .filter(|server| !server.entry.disabled)
        .collect()
}

fn of_agent(agent: Agent, locations: &Locations) -> Vec<Server> {
    [Scope::User, Scope::Project]
        .into_iter()
        .filter_map(|scope| json_file(agent, scope, locations))
        .flat_map(|(path, member)| {
            // Its own messages say what is wrong with its file.
            config::read_file(&path, None, member).unwrap_or_default()
        })
        .collect()
}

/// Returns a name for the server at an address: that of its host.
fn name_of_address(address: &str) -> String {
    let host = address
        .split('/')
        .nth(2)
        .unwrap_or_default()
        .rsplit('@')
        .next()
        .unwrap_or_default()
        .split(':')
        .next()
        .unwrap_or_default();
    let parts: Vec<&str> = host
        .split('.')
        .filter(|part| !matches!(*part, "mcp" | "www" | "api"))
        .collect();
    let name = parts.first().copied().unwrap_or_default();
    name.chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(24)
        .collect()
}
