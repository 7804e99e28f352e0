//! Lists servers with their states, and changes what the user decided about them.

use std::path::{Path, PathBuf};

use sightline_base::clock::now_millis;
use sightline_protocol::mcp::{McpServer, McpServerState};

use super::{
    config::{self, Server},
    secrets::{masked, secrets},
    store::{self, State, Store, Version},
};

/// The servers of workspace folders.
#[derive(Clone, Debug)]
pub struct Manager {
    /// State of servers.
    pub store: Store,
    /// The file of the user with servers.
    pub user_file: PathBuf,
    /// The workspace folders.
    pub roots: Vec<PathBuf>,
}

/// Why something cannot be done with a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum Error {
    /// There is no such server.
    NotFound(String),
    /// Its entry is invalid.
    Invalid(String),
    /// A file cannot be read or written.
    Storage(String),
}

impl From<String> for Error {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}

impl From<sightline_base::error::Error> for Error {
    fn from(error: sightline_base::error::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

impl Manager {
    /// Returns the servers, with their states in the sessions of agents.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn list(&self) -> Result<Vec<McpServer>, Error> {
        let state = self.store.state()?;
        let live = self.live();
        Ok(self
            .read()
            .into_iter()
            .map(|server| self.shown(&server, &state, &live))
            .collect())
    }

    /// Returns a server as [`Self::list`] does.
    ///
    /// # Errors
    /// If there is none with this name, or a file cannot be read.
    pub fn get(&self, name: &str) -> Result<McpServer, Error> {
        let server = self.find(name)?;
        Ok(self.shown(&server, &self.store.state()?, &self.live()))
    }

    /// Describes a server with its state: as the user decided, else in the session that used it last.
    fn shown(&self, server: &Server, state: &State, live: &[McpServer]) -> McpServer {
        let decided = state.of(server);
        let of_name = live.iter().filter(|live| live.name == server.name);
        let live = of_name.max_by_key(|live| (live.pid.is_some(), live.started_at));
        let mut shown = described(server);
        shown.state = decided;
        shown.reason = server.problem.clone();
        let Some(live) = live else {
            shown.tools = self.store.seen_tools(server, state);
            return shown;
        };
        shown.pid = live.pid;
        shown.started_at = live.started_at;
        shown.calls = live.calls;
        shown.errors = live.errors;
        shown.tools = live.tools.clone();
        // The session reads a decision after a moment.
        let is_old = match live.state {
            McpServerState::Untrusted => true,
            McpServerState::Disabled => live.reason.is_none(),
            _ => false,
        };
        if decided == McpServerState::Idle && !is_old {
            shown.state = live.state;
            shown.reason = live.reason.clone();
        }
        shown
    }

    /// Returns the servers of the sessions in these folders.
    fn live(&self) -> Vec<McpServer> {
        let mut sessions = self.store.sessions();
        sessions.retain(|session| self.roots.contains(&session.root));
        let servers = sessions.into_iter().flat_map(|session| session.servers);
        servers.collect()
    }

    /// Returns what changes when the configuration or a decision of the user does.
    pub fn configuration_versions(&self) -> Vec<Option<Version>> {
        let files = config::files(&self.user_file, &self.roots);
        let versions = files.iter().map(|path| store::version(path));
        versions.chain([self.store.state_version()]).collect()
    }

    /// Returns what changes when the list does.
    pub fn versions(&self) -> Vec<Option<Version>> {
        let mut versions = self.configuration_versions();
        versions.push(self.store.sessions_version());
        versions
    }

    /// Reads the configured servers.
    pub fn read(&self) -> Vec<Server> {
        config::read(&self.user_file, &self.roots)
    }

    /// Returns a configured server.
    ///
    /// # Errors
    /// If there is none with this name, or a file cannot be read.
    pub fn find(&self, name: &str) -> Result<Server, Error> {
        let servers = self.read();
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        let unread = servers
            .iter()
            .find(|server| server.is_file())
            .and_then(|file| file.problem.clone());
        let found = servers.into_iter().find(|server| server.name == name);
        found.ok_or_else(|| {
            if let Some(why) = unread {
                return Error::Storage(why);
            }
            Error::NotFound(if names.is_empty() {
                format!("there is no server {name}; add one with `sightline mcp add`")
            } else {
                let names = names.join(", ");
                format!("there is no server {name}; the servers are {names}")
            })
        })
    }

    /// Trusts the command of a server of the project, and the definitions that its tools have now.
    ///
    /// # Errors
    /// If there is no such server, its entry is invalid, or the decision cannot be stored.
    pub fn trust(&self, name: &str) -> Result<(), Error> {
        let server = self.find(name)?;
        if let Some(problem) = server.problem {
            return Err(Error::Invalid(problem));
        }
        Ok(self.store.change_state(|state| {
            state.trust(&server);
            state.accepted.insert(name.to_owned(), now_millis());
        })?)
    }

    /// Switches a server on or off.
    ///
    /// # Errors
    /// If there is no such server, or the decision cannot be stored.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> Result<(), Error> {
        self.find(name)?;
        Ok(self.store.change_state(|state| {
            state.enabled.insert(name.to_owned(), enabled);
        })?)
    }

    /// Lets all sessions restart a server.
    ///
    /// # Errors
    /// If there is no such server, or the wish cannot be stored.
    pub fn restart(&self, name: &str) -> Result<(), Error> {
        self.find(name)?;
        Ok(self.store.change_state(|state| {
            state.restarts.insert(name.to_owned(), now_millis());
        })?)
    }

    /// Returns what a server printed.
    ///
    /// # Errors
    /// If there is no such server, or its log cannot be read.
    pub fn log(&self, name: &str) -> Result<String, Error> {
        self.find(name)?;
        Ok(self.store.read_log(name)?)
    }
}

/// Describes a server without its state.
pub(super) fn described(server: &Server) -> McpServer {
    let entry = &server.entry;
    let mut hidden = entry.env.clone();
    hidden.extend(entry.headers.clone());
    let secrets = secrets(&hidden);
    let command = match &entry.url {
        Some(url) => vec![url],
        None => [&entry.command].into_iter().chain(&entry.args).collect(),
    };
    McpServer {
        name: server.name.clone(),
        source: server.source.display().to_string(),
        root: server.root.as_deref().map(shown_path),
        command: command
            .into_iter()
            .map(|word| masked(word, &secrets))
            .collect(),
        env: entry.env.keys().cloned().collect(),
        ignored_fields: server.ignored.clone(),
        ..McpServer::default()
    }
}

fn shown_path(path: &Path) -> String {
    path.display().to_string()
}
