//! What is known of servers between sessions, in the data directory: decisions of the user, lists, logs,
//! and the state of each session that runs.
//!
//! ```text
//! <data directory>/mcp/state.json         trust, switches, restarts
//! <data directory>/mcp/lists/KEY.json     tools, prompts and resources of a server
//! <data directory>/mcp/seen/NAME.json     tools of a server when it ran last
//! <data directory>/mcp/adopted/NAME.json  how to move a server back to its agent
//! <data directory>/mcp/log/NAME.log       what a server printed
//! <data directory>/mcp/sessions/PID.json  servers of a session
//! ```

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use sightline_base::{
    clock::now_millis,
    error::Error,
    storage::{Storage, atomic_file, entries},
};
use sightline_protocol::mcp::{McpServer, McpServerState, McpTool};

use super::config::{Pin, Server};

/// Maximum size of a log, in bytes. Half of it is kept when it is full.
const MAX_LOG: u64 = 256 << 10;

/// The files.
#[derive(Clone, Debug)]
pub struct Store {
    storage: Storage,
    dir: PathBuf,
}

/// Decisions of the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct State {
    /// Hashes of trusted servers of projects, by folder and name.
    pub trusted: BTreeMap<String, String>,
    /// Servers that are switched on or off, by name.
    pub enabled: BTreeMap<String, bool>,
    /// When servers are to be restarted, in milliseconds, by name.
    pub restarts: BTreeMap<String, i64>,
    /// When changed definitions of tools were accepted, in milliseconds, by name.
    pub accepted: BTreeMap<String, i64>,
}

impl State {
    /// Returns what the user decided about a server: `Idle` if it may run.
    pub fn of(&self, server: &Server) -> McpServerState {
        let entry = &server.entry;
        let enabled = self.enabled.get(&server.name).copied();
        if server.problem.is_some() {
            McpServerState::Failed
        } else if !enabled.unwrap_or(entry.enabled && !entry.disabled) {
            McpServerState::Disabled
        } else if let Some(root) = &server.root
            && self.trusted.get(&trust_key(root, &server.name)) != Some(&server.hash())
        {
            McpServerState::Untrusted
        } else {
            McpServerState::Idle
        }
    }

    /// Trusts what a server of a project runs.
    pub(super) fn trust(&mut self, server: &Server) {
        if let Some(root) = &server.root {
            self.trusted
                .insert(trust_key(root, &server.name), server.hash());
        }
    }
}

/// The lists of a server, as it sent them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lists {
    /// Tools.
    pub tools: Vec<Box<RawValue>>,
    /// Prompts.
    pub prompts: Vec<Box<RawValue>>,
    /// Resources.
    pub resources: Vec<Box<RawValue>>,
    /// Templates of resources.
    pub templates: Vec<Box<RawValue>>,
    /// Hashes of the definitions of tools when they were first seen, by name.
    pub pins: BTreeMap<String, String>,
    /// When these were accepted, in milliseconds.
    pub pinned_at: i64,
    /// Whether it failed before it sent any, so that no list waits for it again.
    pub failed: bool,
}

/// The tools of a server when it ran last.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Seen {
    /// Hash of the server that ran.
    hash: String,
    /// When that was, in milliseconds.
    at: i64,
    tools: Vec<McpTool>,
}

/// A session that runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Session {
    /// Its process.
    pub pid: u32,
    /// Its workspace folder.
    pub root: PathBuf,
    /// The agent, as it names itself.
    pub agent: String,
    /// Its servers.
    pub servers: Vec<McpServer>,
}

impl Store {
    /// Uses a data directory. Creates nothing.
    pub fn new(storage: Storage) -> Self {
        let dir = storage.dir().join(entries::MCP);
        Self { storage, dir }
    }

    fn path(&self, folder: &str, name: &str) -> PathBuf {
        self.dir.join(folder).join(name)
    }

    fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
        let Some(content) = atomic_file::read(path)? else {
            return Ok(None);
        };
        let parsed = serde_json::from_slice(&content);
        parsed.map(Some).map_err(|error| {
            Error::invalid(format!(
                "cannot read {}: {error}; delete it",
                path.display()
            ))
        })
    }

    fn write(&self, path: &Path, value: &impl Serialize) -> Result<(), Error> {
        let content = serde_json::to_vec(value)
            .map_err(|error| Error::invalid(format!("cannot write {}: {error}", path.display())))?;
        self.storage.make_dir(path.parent().unwrap_or(&self.dir))?;
        atomic_file::replace(path, &content)
    }

    /// Returns the decisions of the user.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn state(&self) -> Result<State, Error> {
        Ok(Self::read(&self.dir.join("state.json"))?.unwrap_or_default())
    }

    /// Changes the decisions of the user. Other processes wait.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn change_state(&self, change: impl FnOnce(&mut State)) -> Result<(), Error> {
        self.storage.make_dir(&self.dir)?;
        let path = self.dir.join("lock");
        let failed = |error| atomic_file::failed("lock", &path, error);
        // It is released when it is closed.
        let lock = atomic_file::open(&path, OpenOptions::new().write(true).create(true))
            .map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut state = self.state()?;
        change(&mut state);
        self.write(&self.dir.join("state.json"), &state)
    }

    /// Returns what changes when the decisions of the user do.
    pub fn state_version(&self) -> Option<Version> {
        version(&self.dir.join("state.json"))
    }

    /// Returns what changes when the state of a session does.
    pub fn sessions_version(&self) -> Option<Version> {
        version(&self.dir.join("sessions"))
    }

    /// Returns the lists of a server. Those that cannot be read are asked for again.
    pub fn lists(&self, key: &str) -> Option<Lists> {
        Self::read(&self.path("lists", &format!("{key}.json"))).ok()?
    }

    /// Stores the lists of a server.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_lists(&self, key: &str, lists: &Lists) -> Result<(), Error> {
        self.write(&self.path("lists", &format!("{key}.json")), lists)
    }

    /// Returns the tools of a server when it ran last, with what the user decided since.
    pub(super) fn seen_tools(&self, server: &Server, state: &State) -> Vec<McpTool> {
        let seen = Self::read(&self.path("seen", &format!("{}.json", server.name)));
        let seen: Seen = seen.ok().flatten().unwrap_or_default();
        if seen.hash != server.hash() {
            return Vec::new();
        }
        let accepted = state.accepted.get(&server.name);
        let is_accepted = accepted.is_some_and(|at| *at > seen.at);
        let tools = seen.tools.into_iter().map(|tool| {
            let changed = tool.changed && !is_accepted;
            let blocked = changed && server.entry.pin == Pin::Block;
            McpTool {
                enabled: server.entry.tools.offers(&tool.name) && !blocked,
                changed,
                ..tool
            }
        });
        tools.collect()
    }

    /// Stores the tools of a server that runs.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_seen_tools(&self, server: &Server, tools: Vec<McpTool>) -> Result<(), Error> {
        let seen = Seen {
            hash: server.hash(),
            at: now_millis(),
            tools,
        };
        self.write(&self.path("seen", &format!("{}.json", server.name)), &seen)
    }

    /// Returns the record of a server that was moved from the configuration of an agent.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn adopted<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        Self::read(&self.path("adopted", &format!("{name}.json")))
    }

    /// Returns the names of the servers that were moved, sorted.
    pub fn adopted_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.join("adopted"));
        let mut names: Vec<String> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                Some(
                    entry
                        .file_name()
                        .to_str()?
                        .strip_suffix(".json")?
                        .to_owned(),
                )
            })
            .collect();
        names.sort();
        names
    }

    /// Stores such a record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_adopted(&self, name: &str, record: &impl Serialize) -> Result<(), Error> {
        self.write(&self.path("adopted", &format!("{name}.json")), record)
    }

    /// Removes such a record.
    pub fn forget_adopted(&self, name: &str) {
        // It was read before.
        let _ = fs::remove_file(self.path("adopted", &format!("{name}.json")));
    }

    /// Stores the state of this session.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_session(&self, session: &Session) -> Result<(), Error> {
        self.write(
            &self.path("sessions", &format!("{}.json", session.pid)),
            session,
        )
    }

    /// Removes the state of this session.
    pub fn end_session(&self) {
        let name = format!("{}.json", std::process::id());
        // It may never have been written.
        let _ = fs::remove_file(self.path("sessions", &name));
    }

    /// Returns the sessions that run. Removes the files of others.
    pub fn sessions(&self) -> Vec<Session> {
        let entries = fs::read_dir(self.dir.join("sessions"))
            .into_iter()
            .flatten()
            .flatten();
        let found = entries.filter_map(|entry| {
            let session: Session = Self::read(&entry.path()).ok()??;
            if is_running(session.pid) {
                return Some(session);
            }
            let _ = fs::remove_file(entry.path());
            None
        });
        found.collect()
    }

    /// Appends to the log of a server.
    pub fn log(&self, name: &str, text: &str) {
        if let Err(error) = self.append_log(name, text) {
            tracing::warn!(%error, name, "cannot write the log of a server");
        }
    }

    fn append_log(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.log_path(name);
        self.storage.make_dir(&self.dir.join("log"))?;
        if path
            .metadata()
            .is_ok_and(|metadata| metadata.len() > MAX_LOG)
        {
            let old = atomic_file::read(&path)?.unwrap_or_default();
            let kept = &old[old.len().saturating_sub(MAX_LOG as usize / 2)..];
            let start = kept
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            atomic_file::replace(&path, &kept[start..])?;
        }
        let failed = |error| atomic_file::failed("append to", &path, error);
        let mut file = atomic_file::open(&path, OpenOptions::new().append(true).create(true))
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)
    }

    /// Returns the log of a server. Empty if it printed nothing.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_log(&self, name: &str) -> Result<String, Error> {
        let content = atomic_file::read(&self.log_path(name))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    fn log_path(&self, name: &str) -> PathBuf {
        self.path("log", &format!("{name}.log"))
    }
}

/// Returns the key under which the trust in a server of a project is stored.
fn trust_key(root: &Path, name: &str) -> String {
    format!("{}\0{name}", root.display())
}

/// Time and size of a file.
pub type Version = (SystemTime, u64);

/// Returns what changes when a file is written. `None` if it does not exist.
pub fn version(path: &Path) -> Option<Version> {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(unix)]
fn is_running(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    true
}
