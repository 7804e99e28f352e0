//! The IDE protocols of agents: local sockets that tell an agent what the user selects.
//!
//! A bridge is open while its setting is true and the workspace has a folder. `view` builds the
//! state that agents may see, after each change and once a second while an agent is connected,
//! because rules change on disk. Each request of an agent checks them too. The state is published
//! as the newest value of a channel: a connection sends the newest state when it can, so a slow
//! agent delays nothing.
//!
//! `claude` serves Claude Code and opencode, `http` gemini-cli, Qwen Code and Copilot CLI, and
//! `codex` Codex. The formats are those of `sightline_agents::ide`. `discovery` writes the
//! files by which agents find a socket, `listener` accepts their connections, and `token` checks
//! who they are.

mod claude;
#[cfg(unix)]
mod codex;
mod connections;
mod discovery;
mod http;
mod listener;
#[cfg(unix)]
mod socket;
mod token;
mod view;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use sightline_agents::ide::view::EditorView;
use sightline_protocol::editor::Range;
#[cfg(not(unix))]
use sightline_protocol::error::ErrorKind;
use sightline_workspace::access::AccessView;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::{broadcast, watch},
    task::JoinHandle,
};

use crate::{
    connection::client::Client, error::Error, process::signals, session::Snapshot, settings,
};
use connections::Connections;
use discovery::DiscoveryFile;
use view::ViewBuilder;

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

/// Publishes the state that agents may see by the current rules. Reads the disk.
pub type Refresh = Arc<dyn Fn() + Send + Sync>;

/// What a bridge needs.
#[derive(Clone)]
struct BridgeContext {
    runtime: Handle,
    /// The newest state that agents may see.
    views: watch::Receiver<Arc<EditorView>>,
    refresh: Refresh,
    /// Mentions by the user.
    mentions: broadcast::Sender<Mention>,
    connections: Connections,
    /// The roots, which agents compare with their folder.
    roots: Vec<PathBuf>,
    /// Name for the user of an agent.
    ide_name: String,
}

impl BridgeContext {
    /// Returns the state that agents may see by the current rules, which may have changed since the
    /// newest state was published.
    async fn current_view(&self) -> Arc<EditorView> {
        let refresh = self.refresh.clone();
        match self.runtime.spawn_blocking(move || refresh()).await {
            Ok(()) => self.views.borrow().clone(),
            Err(_) => Arc::default(),
        }
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

/// A selection that is derived from a request, because the client does not send its selections.
struct RequestedSelection {
    uri: String,
    /// Version of the document.
    version: i32,
    range: Range,
    /// The active document as derived before the request.
    active: Option<String>,
}

/// The bridges of a session.
pub struct Bridges {
    /// Ends the server on a termination signal, so that the files are removed.
    end: OnceLock<Arc<dyn Fn() + Send + Sync>>,
    views: watch::Sender<Arc<EditorView>>,
    mentions: broadcast::Sender<Mention>,
    connections: Connections,
    open: Mutex<Open>,
    /// The session at the last change.
    changed: Mutex<Option<Snapshot>>,
    builder: Mutex<ViewBuilder>,
    requested: Mutex<Option<RequestedSelection>>,
    is_paused: AtomicBool,
    pause_setting: AtomicBool,
    is_any_open: AtomicBool,
    is_scheduled: AtomicBool,
}

#[derive(Default)]
struct Open {
    is_closed: bool,
    roots: Vec<PathBuf>,
    bridges: BTreeMap<Protocol, OpenBridge>,
    /// Started with the first bridge. The server needs no asynchronous sockets without them, and
    /// their driver aborts the process if the system fails to wake it.
    runtime: Option<Runtime>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.bridges.clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Bridges {
    /// Creates the bridges of a session, all closed.
    pub fn new(client: Arc<Client>) -> Self {
        Self {
            end: OnceLock::new(),
            views: watch::Sender::default(),
            mentions: broadcast::Sender::new(MAX_MENTIONS),
            connections: Connections::new(client),
            open: Mutex::default(),
            changed: Mutex::default(),
            builder: Mutex::default(),
            requested: Mutex::default(),
            is_paused: AtomicBool::new(false),
            pause_setting: AtomicBool::new(false),
            is_any_open: AtomicBool::new(false),
            is_scheduled: AtomicBool::new(false),
        }
    }

    /// Sets what ends the server when a termination signal arrives while a bridge is open.
    pub fn end_on_signal(&self, end: impl Fn() + Send + Sync + 'static) {
        let _ = self.end.set(Arc::new(end));
    }

    /// Applies the settings that need no open bridge.
    pub fn configure(&self, settings: &settings::Settings) {
        self.connections.set_notifies(settings.notifications);
        let pause = settings.bridges.pause;
        if self.pause_setting.swap(pause, Ordering::AcqRel) != pause {
            self.set_paused(pause);
        }
    }

    /// Returns whether agents get no editor state.
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    /// Pauses or resumes all bridges, until the setting changes. Agents forget the focus at once;
    /// after resuming, [`Self::publish`] must be called.
    pub fn set_paused(&self, is_paused: bool) {
        // Before the view is cleared, so that no unfinished `publish` follows.
        self.is_paused.store(is_paused, Ordering::Release);
        if is_paused {
            self.views.send_replace(Arc::default());
        }
        self.connections.set_paused(is_paused);
    }

    /// Returns whether an agent is connected that can show mentions.
    pub fn can_mention(&self) -> bool {
        self.is_open() && self.mentions.receiver_count() > 0
    }

    /// Sends lines of a file to the agents. Returns the number of agents.
    pub fn mention(&self, mention: Mention) -> usize {
        self.mentions.send(mention).unwrap_or(0)
    }

    /// Derives the selection from a request of a client that does not send its selections.
    /// Returns whether [`Self::publish`] must be called.
    pub fn derive_selection(&self, snapshot: &Snapshot, uri: &str, range: Range) -> bool {
        let editor = &snapshot.editor;
        let Some(open) = editor.document(uri) else {
            return false;
        };
        if !self.is_open() || !editor.visible().derived {
            return false;
        }
        *self.requested.lock() = Some(RequestedSelection {
            uri: uri.to_owned(),
            version: open.document.version(),
            range,
            active: editor.active().map(str::to_owned),
        });
        true
    }

    /// Opens and closes bridges as the settings and roots of a session say. Writes files. Returns
    /// whether the first bridge was opened, and why others cannot be opened.
    pub fn update(&self, snapshot: &Snapshot, refresh: &Refresh) -> (bool, Vec<Error>) {
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
            let opened = self
                .start_runtime(&mut open.runtime)
                .map(|runtime| self.context(runtime, open.roots.clone(), refresh.clone()))
                .and_then(|context| protocol.start(context));
            match opened {
                Ok(bridge) => drop(open.bridges.insert(protocol, bridge)),
                Err(error) => errors.push(error),
            }
        }
        let is_any_open = !open.bridges.is_empty();
        if !is_any_open {
            // The rules may be others when a bridge is opened again.
            self.views.send_replace(Arc::default());
        }
        let was_any_open = self.is_any_open.swap(is_any_open, Ordering::AcqRel);
        (is_any_open && !was_any_open, errors)
    }

    /// Returns the threads of the bridges. Starts them for the first one.
    fn start_runtime(&self, runtime: &mut Option<Runtime>) -> Result<Handle, Error> {
        if let Some(runtime) = runtime {
            return Ok(runtime.handle().clone());
        }
        let started = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(4)
            .enable_all()
            .build()
            .map_err(|error| Error::storage(format!("cannot start threads: {error}")))?;
        let handle = started.handle().clone();
        if let Some(end) = self.end.get().cloned() {
            signals::on_termination(&handle, move || end());
        }
        *runtime = Some(started);
        Ok(handle)
    }

    fn context(&self, runtime: Handle, roots: Vec<PathBuf>, refresh: Refresh) -> BridgeContext {
        let folder = roots.first().and_then(|root| root.file_name());
        let folder = folder.unwrap_or_default().to_string_lossy();
        BridgeContext {
            runtime,
            views: self.views.subscribe(),
            refresh,
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
        let (active, selection) = self.focus(&snapshot);
        let mut new = builder.build(&access(&snapshot), &snapshot, active, selection);
        self.views.send_if_modified(|view| {
            if self.is_paused() {
                new = EditorView::default();
            }
            let is_changed = **view != new;
            if is_changed {
                *view = Arc::new(new);
            }
            is_changed
        });
    }

    /// Returns the focused document and the selection in it.
    fn focus<'s>(&self, snapshot: &'s Snapshot) -> (Option<&'s str>, Option<Range>) {
        let editor = &snapshot.editor;
        let active = editor.active();
        let requested = self.requested.lock();
        let requested = requested
            .as_ref()
            .filter(|requested| editor.visible().derived && requested.active.as_deref() == active);
        let documents = requested.and_then(|requested| {
            let documents = editor.documents().into_iter();
            let mut same = documents.filter(|(uri, open)| {
                *uri == requested.uri && open.document.version() == requested.version
            });
            Some((same.next()?.0, requested.range))
        });
        match documents {
            Some((uri, range)) => (Some(uri), Some(range)),
            None => (active, active.and_then(|uri| editor.selection(uri))),
        }
    }
}
