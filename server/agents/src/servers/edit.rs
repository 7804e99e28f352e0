//! Edits the file of the user with servers, and those of agents.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sightline_base::fs::config_file::File;
use sightline_protocol::mcp::McpServer;

use super::{
    address::loopback,
    agent_files::{self, AgentFile},
    client::Client,
    config::{self, SERVERS, Server},
    known::{KNOWN, KnownServer},
    manage::{Error, Manager, described},
    store::State,
};
use crate::install::{
    EditError, Locations, NAME,
    json::{remove_at, set},
    patch::ReversePatch,
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
    ) -> Result<(String, Option<KnownServer>), Error> {
        let address = if command.is_empty() { name } else { "" };
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
                return Err(Error::Invalid(format!(
                    "the server {name} is not known; give its command: `sightline mcp add {name} -- CMD ARGS...`. Known \
                     servers: {}",
                    known.join(", ")
                )));
            }
            None => (name.to_owned(), command.to_vec()),
        };
        config::check_name(&name)?;
        let entry = match loopback(address) {
            Ok(_) => json!({ "url": address }),
            Err(_) => json!({ "command": command[0], "args": command[1..] }),
        };
        self.change(|text| self.with_new(text, &name, &entry))?;
        Ok((name, known.copied()))
    }

    /// Removes a server from the file of the user.
    ///
    /// # Errors
    /// If it is not there, or the file cannot be changed.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let server = self.find(name)?;
        if server.root.is_some() {
            let file = server.source.display();
            let why = format!("{name} is a server of the project; remove it from {file}");
            return Err(Error::Invalid(why));
        }
        self.change(|text| {
            let removed =
                remove_at(text, &[SERVERS, name]).map_err(|error| self.cannot_change(&error))?;
            removed.ok_or_else(|| format!("there is no server {name}"))
        })?;
        // Another one with this name begins as new.
        Ok(self.store.change_state(|state| {
            state.enabled.remove(name);
        })?)
    }

    fn cannot_change(&self, error: &EditError) -> String {
        format!("cannot change {}: {error}", self.user_file.display())
    }

    /// Moves a server from the configuration of a client to the file of the user. Returns the client and its
    /// file.
    ///
    /// # Errors
    /// If no agent has such a server, or a file cannot be changed.
    pub fn adopt(
        &self,
        name: &str,
        client: Option<Client>,
        locations: &Locations,
    ) -> Result<(Client, PathBuf), Error> {
        for one in Client::all().filter(|one| client.is_none_or(|client| client == *one)) {
            for file in agent_files::files(one, locations) {
                if file.of_user
                    && let Ok(found) = File::read(&file.path)
                    && found.exists()
                    && let Some(entry) = file.entry(found.text(), name)?
                {
                    self.adopt_from(name, one, &file, &found, entry)?;
                    return Ok((one, file.path));
                }
            }
        }
        Err(Error::NotFound(match client {
            Some(client) => format!("{} has no server {name} of the user", client.title()),
            None => format!("no agent has a server {name} of the user"),
        }))
    }

    fn adopt_from(
        &self,
        name: &str,
        client: Client,
        file: &AgentFile,
        found: &File,
        entry: Value,
    ) -> Result<(), Error> {
        let text = found.text();
        let own = agent_files::normalized(client, &entry);
        if let Some(problem) = Server::new(name, &file.path, None, text, &own).problem {
            return Err(Error::Invalid(format!("cannot move {name}: {problem}")));
        }
        let removed = file.without(text, name)?;
        let record = Adopted {
            patch: ReversePatch::new(text, &removed),
            file: file.clone(),
            entry,
        };
        self.change(|text| self.with_new(text, name, &own))?;
        self.store.write_adopted(name, &record)?;
        Ok(found.replace(&removed)?)
    }

    /// Returns the text of the file of the user with another server.
    fn with_new(&self, text: &str, name: &str, entry: &Value) -> Result<String, String> {
        let known = config::parse(&self.user_file, text)?;
        if known
            .get(SERVERS)
            .is_some_and(|all| all.get(name).is_some())
        {
            return Err(format!("there is a server {name} already; remove it first"));
        }
        set(text, &[SERVERS, name], entry).map_err(|error| self.cannot_change(&error))
    }

    /// Moves a server back to the agent that had it. Returns the file of the agent, which gets its earlier
    /// bytes; if it has changed since, the server is added to it.
    ///
    /// # Errors
    /// If it was not adopted, the agent has a server with this name again, or a file cannot be changed.
    pub fn release(&self, name: &str) -> Result<PathBuf, Error> {
        let record: Option<Adopted> = self.store.adopted(name)?;
        let Adopted { file, patch, entry } =
            record.ok_or_else(|| Error::NotFound(format!("the server {name} was not adopted")))?;
        let shown = file.path.display();
        let found = File::read(&file.path)?;
        if !found.exists() {
            return Err(Error::NotFound(format!(
                "cannot read {shown}: it does not exist"
            )));
        }
        let text = found.text();
        let original = match patch.apply(text) {
            Some(original) => original,
            None if file.entry(text, name)?.is_some() => {
                return Err(Error::Invalid(format!(
                    "cannot put {name} back: {shown} has a server {name} again"
                )));
            }
            None => file.with(text, name, &entry)?,
        };
        found.replace(&original)?;
        let is_here = |server: &Server| server.name == name && server.root.is_none();
        if self.read().iter().any(is_here) {
            self.remove(name)?;
        }
        self.store.forget_adopted(name);
        Ok(file.path)
    }

    /// Changes the file of the user.
    fn change(&self, change: impl FnOnce(&str) -> Result<String, String>) -> Result<(), Error> {
        let file = File::read(&self.user_file)?;
        let mut changed = change(file.text())?;
        if !changed.ends_with('\n') {
            changed.push('\n');
        }
        // It may contain tokens.
        Ok(file.private().replace(&changed)?)
    }
}

/// A server that was moved from the configuration of an agent.
#[derive(Debug, Serialize, Deserialize)]
struct Adopted {
    /// The file of the agent.
    file: AgentFile,
    /// Restores its earlier text.
    patch: ReversePatch,
    /// The entry of the agent.
    entry: Value,
}

/// Returns the servers in the configuration of all clients, without `sightline mcp`, which `install` writes.
pub fn servers_of_clients(locations: &Locations) -> Vec<McpServer> {
    let mut found: Vec<McpServer> = Vec::new();
    for client in Client::all() {
        for server in agent_files::servers(client, locations) {
            if server.name == NAME {
                continue;
            }
            let mut shown = described(&server);
            shown.agent = Some(client.name().to_owned());
            shown.state = State::default().of(&server);
            shown.reason = server.problem;
            found.push(shown);
        }
    }
    found
}

/// Returns whether a client starts `sightline mcp`, by which it gets the servers of the user.
pub fn starts_ours(client: Client, locations: &Locations) -> bool {
    agent_files::servers(client, locations)
        .iter()
        .any(|server| server.name == NAME)
}

/// Returns the servers that a client has itself. `name` is the one that it gives itself.
pub fn servers_of_client(name: &str, locations: &Locations) -> Vec<Server> {
    let name = name.to_ascii_lowercase();
    Client::all()
        .find(|client| name.contains(client.name()))
        .into_iter()
        .flat_map(|client| agent_files::servers(client, locations))
        .filter(|server| !server.entry.disabled && server.entry.enabled)
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
    let name = match parts.first().copied().unwrap_or_default() {
        // The names of this machine say nothing.
        "127" | "[" | "" => "local",
        name => name,
    };
    name.chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(24)
        .collect()
}
