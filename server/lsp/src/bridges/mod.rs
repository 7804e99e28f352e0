//! The IDE protocols of agents: local sockets that tell an agent what the user selects.
//!
//! A bridge is open while its setting is true and the workspace has a folder. [`view`] builds the
//! state that agents may see, after each change and once a second while an agent is connected,
//! because rules change on disk. It is published as the newest value of a channel: a connection
//! sends the newest state when it can, so a slow agent delays nothing.
//!
//! [`claude`] serves Claude Code and opencode, [`http`] gemini-cli, Qwen Code and Copilot CLI, and [`codex`] Codex. The formats are those of
//! `sightline_agents::ide`. [`discovery`] writes the files by which agents find a socket.

mod claude;
#[cfg(unix)]
mod codex;
mod discovery;
mod http;
#[cfg(unix)]
mod socket;
mod token;
mod view;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use sightline_agents::ide::view::EditorView;
#[cfg(not(unix))]
use sightline_protocol::error::ErrorKind;
use sightline_workspace::access::AccessView;
use tokio::{
    runtime::Handle,
    sync::{broadcast, watch},
    task::JoinHandle,
};

use crate::{error::Error, session::Snapshot, settings};
use discovery::DiscoveryFile;
use view::ViewBuilder;

/// Maximum number of connections to a bridge.
const MAX_CONNECTIONS: usize = 16;
/// Maximum number of mentions that wait for an agent.
const MAX_MENTIONS: usize = 16;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Protocol {
    Claude,
    Gemini,
    Copilot,
    Codex,
}

impl Protocol {
    /// Returns the protocols that the settings ask for.
    fn wanted(settings: settings::Bridges) -> Vec<Self> {
        let all = [
            (Self::Claude, settings.claude_ide),
            (Self::Gemini, settings.gemini_ide),
            (Self::Copilot, settings.copilot_ide),
            (Self::Codex, settings.codex_ide),
        ];
        all.into_iter()
            .filter(|(_, is_on)| *is_on)
            .map(|(one, _)| one)
            .collect()
    }

    fn start(self, context: BridgeContext) -> Result<OpenBridge, Error> {
        match self {
            Self::Claude => claude::start(context),
            Self::Gemini => http::start_gemini(context),
            #[cfg(unix)]
            Self::Copilot => http::start_copilot(context),
            #[cfg(unix)]
            Self::Codex => codex::start(context),
            #[cfg(not(unix))]
            Self::Copilot | Self::Codex => {
                let why = "this agent is served on Unix only";
                Err(Error::new(ErrorKind::Unsupported, why))
            }
        }
    }
}

/// Lines of a file that the user sends to the agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The absolute path.
    pub path: PathBuf,
    /// The first and the last line, from 0. `None` for the whole file.
    pub lines: Option<(u32, u32)>,
}

/// What a bridge needs.
#[derive(Clone)]
pub(super) struct BridgeContext {
    pub(super) runtime: Handle,
    /// The newest state that agents may see.
    pub(super) views: watch::Receiver<Arc<EditorView>>,
    /// Mentions by the user.
    pub(super) mentions: broadcast::Sender<Mention>,
    pub(super) connections: Connections,
    /// The roots, which agents compare with their folder.
    pub(super) roots: Vec<PathBuf>,
    /// Name for the user of an agent.
    pub(super) ide_name: String,
}

/// The connected agents.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<(u64, BTreeMap<u64, String>)>>);

/// A connected agent, until it is dropped.
pub(super) struct Connected(Connections, u64);

impl Connections {
    pub(super) fn add(&self) -> Connected {
        let (last, names) = &mut *self.0.lock();
        *last += 1;
        names.insert(*last, "agent".to_owned());
        Connected(self.clone(), *last)
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().1.values().cloned().collect()
    }
}

impl Connected {
    /// Sets the name that the agent gives itself.
    pub(super) fn set_name(&self, name: &str) {
        let name = name.chars().take(64).collect();
        self.0.0.lock().1.insert(self.1, name);
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.0.lock().1.remove(&self.1);
    }
}

/// An open bridge. Dropping it closes its socket and its connections, and removes its files.
struct OpenBridge {
    accepting: JoinHandle<()>,
    /// None once it is closed.
    files: Arc<Mutex<Option<Vec<DiscoveryFile>>>>,
}

impl OpenBridge {
    fn new(accepting: JoinHandle<()>, files: Vec<DiscoveryFile>) -> Self {
        let files = Arc::new(Mutex::new(Some(files)));
        Self { accepting, files }
    }
}

impl Drop for OpenBridge {
    fn drop(&mut self) {
        self.files.lock().take();
        self.accepting.abort();
    }
}

/// The bridges of a session.
pub struct Bridges {
    runtime: Handle,
    views: watch::Sender<Arc<EditorView>>,
    mentions: broadcast::Sender<Mention>,
    connections: Connections,
    open: Mutex<Open>,
    /// The session at the last change.
    changed: Mutex<Option<Snapshot>>,
    builder: Mutex<ViewBuilder>,
    is_any_open: AtomicBool,
    is_scheduled: AtomicBool,
}

#[derive(Default)]
struct Open {
    is_closed: bool,
    roots: Vec<PathBuf>,
    bridges: BTreeMap<Protocol, OpenBridge>,
}

impl Bridges {
    /// Creates the bridges of a session, all closed.
    pub fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            views: watch::Sender::default(),
            mentions: broadcast::Sender::new(MAX_MENTIONS),
            connections: Connections::default(),
            open: Mutex::default(),
            changed: Mutex::default(),
            builder: Mutex::default(),
            is_any_open: AtomicBool::new(false),
            is_scheduled: AtomicBool::new(false),
        }
    }

    /// Opens and closes bridges as the settings and roots of a session say. Writes files. Returns
    /// whether the first bridge was opened, and why others cannot be opened.
    pub fn update(&self, snapshot: &Snapshot) -> (bool, Vec<Error>) {
        let mut errors = Vec::new();
        let roots = view::root_paths(snapshot);
        let wanted = match roots.is_empty() {
            true => Vec::new(),
            false => Protocol::wanted(snapshot.settings.bridges),
        };
        let open = &mut *self.open.lock();
        if open.is_closed {
            return (false, errors);
        }
        if open.roots != roots {
            open.bridges.clear();
            open.roots = roots;
        }
        open.bridges.retain(|protocol, _| wanted.contains(protocol));
        for protocol in wanted {
            if open.bridges.contains_key(&protocol) {
                continue;
            }
            match protocol.start(self.context(open.roots.clone())) {
                Ok(bridge) => drop(open.bridges.insert(protocol, bridge)),
                Err(error) => errors.push(error),
            }
        }
        let is_any_open = !open.bridges.is_empty();
        let was_any_open = self.is_any_open.swap(is_any_open, Ordering::AcqRel);
        (is_any_open && !was_any_open, errors)
    }

    fn context(&self, roots: Vec<PathBuf>) -> BridgeContext {
        let folder = roots.first().and_then(|root| root.file_name());
        let folder = folder.unwrap_or_default().to_string_lossy();
        BridgeContext {
            runtime: self.runtime.clone(),
            views: self.views.subscribe(),
            mentions: self.mentions.clone(),
            connections: self.connections.clone(),
            ide_name: format!("{} ({folder})", discovery::IDE_NAME),
            roots,
        }
    }

    /// Closes all bridges, permanently.
    pub fn close(&self) {
        let open = &mut *self.open.lock();
        open.is_closed = true;
        open.bridges.clear();
        self.is_any_open.store(false, Ordering::Release);
    }

    /// Returns whether a bridge is open.
    pub fn is_open(&self) -> bool {
        self.is_any_open.load(Ordering::Acquire)
    }

    /// Returns the names of the connected agents.
    pub fn connected(&self) -> Vec<String> {
        self.connections.names()
    }

    /// Remembers a changed session. Returns whether [`Self::publish`] must be called soon.
    pub fn session_changed(&self, snapshot: &Snapshot) -> bool {
        if Protocol::wanted(snapshot.settings.bridges).is_empty() {
            return false;
        }
        *self.changed.lock() = Some(snapshot.clone());
        !self.is_scheduled.swap(true, Ordering::AcqRel)
    }

    /// Publishes the state of the session at its last change, by the rules that `access` returns.
    pub fn publish(&self, access: impl FnOnce(&Snapshot) -> AccessView) {
        let builder = &mut *self.builder.lock();
        self.is_scheduled.store(false, Ordering::Release);
        let Some(snapshot) = self.changed.lock().clone() else {
            return;
        };
        let new = builder.build(&access(&snapshot), &snapshot);
        self.views.send_if_modified(|view| {
            let is_changed = **view != new;
            if is_changed {
                *view = Arc::new(new);
            }
            is_changed
        });
    }
}
