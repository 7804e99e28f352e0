//! The servers in the configuration of agents, in the format of each.

use std::{fs, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    client::Client,
    config::{self, SERVERS, Server},
};
use crate::{
    Agent,
    install::{
        Locations, Scope,
        json::{remove_at, set},
        toml,
    },
};

/// The member with the servers in the file of Codex.
const CODEX_SERVERS: &str = "mcp_servers";

/// Where an agent keeps servers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AgentFile {
    pub(super) path: PathBuf,
    /// Names of the objects that contain the servers, from the top. `None` in TOML.
    parents: Option<Vec<String>>,
    /// Whether it is a file of the user. Others share those of the project.
    pub(super) of_user: bool,
}

/// Returns where a client keeps servers: for the user, then for the project.
pub(super) fn files(client: Client, locations: &Locations) -> Vec<AgentFile> {
    let member = match client {
        Client::Agent(Agent::Codex) => None,
        Client::Agent(Agent::Opencode) => Some("mcp"),
        Client::Zed => Some("context_servers"),
        _ => Some(SERVERS),
    };
    let (config, home, project) = (locations.config(), &locations.home, &locations.project);
    let place = |scope| match (client, scope) {
        (Client::Agent(agent), scope) => locations.mcp(agent, scope),
        (Client::Cursor, Scope::User) => Some(home.join(".cursor/mcp.json")),
        (Client::Cursor, Scope::Project) => Some(project.join(".cursor/mcp.json")),
        (Client::Mcphub, Scope::User) => Some(config.join("mcphub/servers.json")),
        (Client::Mcphub, Scope::Project) => Some(project.join(".mcphub/servers.json")),
        (Client::Zed, Scope::User) => Some(config.join("zed/settings.json")),
        (Client::Zed, Scope::Project) => Some(project.join(".zed/settings.json")),
    };
    let mut files: Vec<AgentFile> = [Scope::User, Scope::Project]
        .into_iter()
        .filter_map(|scope| {
            Some(AgentFile {
                path: place(scope)?,
                parents: member.map(|member| vec![member.to_owned()]),
                of_user: scope == Scope::User,
            })
        })
        .collect();
    // Claude Code also keeps servers of the user for one project.
    if client == Client::Agent(Agent::Claude)
        && let Some(user) = files.first().cloned()
    {
        let project = locations.project.to_string_lossy().into_owned();
        let parents = vec!["projects".to_owned(), project, SERVERS.to_owned()];
        files.push(AgentFile {
            parents: Some(parents),
            ..user
        });
    }
    files
}

/// Returns the servers that a client has itself. What is wrong with its files is in its own messages.
pub(super) fn servers(client: Client, locations: &Locations) -> Vec<Server> {
    let mut found: Vec<Server> = Vec::new();
    for file in files(client, locations) {
        let Ok(text) = fs::read_to_string(&file.path) else {
            continue;
        };
        for (name, entry) in file.entries(&text).unwrap_or_default() {
            let server = Server::new(&name, &file.path, None, &text, &normalized(client, &entry));
            found.push(server);
        }
    }
    found
}

impl AgentFile {
    /// Returns the entries in a text of the file.
    fn entries(&self, text: &str) -> Result<Map<String, Value>, String> {
        let value = match &self.parents {
            Some(_) => config::parse(&self.path, text)?,
            None => toml::value(text)
                .ok_or_else(|| format!("cannot read {}: it is not TOML", self.path.display()))?,
        };
        let mut object = &value;
        match &self.parents {
            Some(parents) => {
                for parent in parents {
                    object = &object[parent.as_str()];
                }
            }
            None => object = &object[CODEX_SERVERS],
        }
        Ok(object.as_object().cloned().unwrap_or_default())
    }

    /// Returns the entry of a server.
    pub(super) fn entry(&self, text: &str, name: &str) -> Result<Option<Value>, String> {
        Ok(self.entries(text)?.remove(name))
    }

    /// Removes a server from a text of the file.
    pub(super) fn without(&self, text: &str, name: &str) -> Result<String, String> {
        let removed = match &self.parents {
            Some(parents) => remove_at(text, &path_of(parents, name)),
            None => toml::remove_named(text, [CODEX_SERVERS, name]),
        };
        removed
            .map_err(|error| format!("cannot change {}: {error}", self.path.display()))?
            .ok_or_else(|| format!("cannot remove {name} from {}", self.path.display()))
    }

    /// Adds a server again to a text of the file, which has changed.
    pub(super) fn with(&self, text: &str, name: &str, entry: &Value) -> Result<String, String> {
        let added = match &self.parents {
            Some(parents) => set(text, &path_of(parents, name), entry),
            None => toml::add_named(text, [CODEX_SERVERS, name], entry),
        };
        added.map_err(|error| format!("cannot change {}: {error}", self.path.display()))
    }
}

fn path_of<'a>(parents: &'a [String], name: &'a str) -> Vec<&'a str> {
    let parents = parents.iter().map(String::as_str);
    parents.chain([name]).collect()
}

/// Returns an entry of a client as one of ours.
pub(super) fn normalized(client: Client, entry: &Value) -> Value {
    let Some(members) = entry.as_object() else {
        return entry.clone();
    };
    let mut own = members.clone();
    let mut tools = Map::new();
    let rename = |own: &mut Map<String, Value>, from: &str, to: &str| {
        if let Some(value) = own.remove(from) {
            own.insert(to.to_owned(), value);
        }
    };
    match client {
        Client::Agent(Agent::Codex) => {
            rename(&mut own, "env_vars", "inherit");
            rename(&mut own, "http_headers", "headers");
            for (from, to) in [
                ("startup_timeout_sec", "startTimeout"),
                ("tool_timeout_sec", "timeout"),
            ] {
                rename(&mut own, from, to);
                set_seconds(&mut own, to, 1.0);
            }
        }
        Client::Agent(Agent::Gemini | Agent::Qwen) => {
            rename(&mut own, "httpUrl", "url");
            set_seconds(&mut own, "timeout", 1000.0);
        }
        Client::Agent(Agent::Opencode) => set_seconds(&mut own, "timeout", 1000.0),
        _ => set_seconds(&mut own, "timeout", 1.0),
    }
    // Older versions of Zed nest them.
    if let Some(Value::Object(program)) = own.get("command").cloned() {
        own.remove("command");
        own.extend(program);
        rename(&mut own, "path", "command");
    }
    for (from, to) in [
        ("enabled_tools", "allow"),
        ("includeTools", "allow"),
        ("tools", "allow"),
        ("disabled_tools", "deny"),
        ("excludeTools", "deny"),
    ] {
        if own.get(from).is_some_and(Value::is_array)
            && let Some(names) = own.remove(from)
        {
            tools.insert(to.to_owned(), names);
        }
    }
    if !tools.is_empty() {
        own.insert("tools".to_owned(), tools.into());
    }
    own.into()
}

/// Sets a time to whole seconds.
fn set_seconds(own: &mut Map<String, Value>, name: &str, per_second: f64) {
    if let Some(time) = own.get(name).and_then(Value::as_f64) {
        let seconds = (time / per_second).ceil().max(1.0);
        own.insert(name.to_owned(), json!(seconds as u64));
    }
}
