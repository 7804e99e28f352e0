//! The IDE protocols of agents: local sockets that tell an agent what the user selects.
//!
//! A bridge is open while its setting is true and the workspace has a folder. The state that agents
//! may see is built after each change and once a second while an agent is connected, because rules
//! change on disk. Each request of an agent checks them too. The state is published as the newest
//! value of a channel: a connection sends the newest state when it can, so a slow agent delays
//! nothing. The formats are those of `sightline_agents::ide`.
//!
//! Modules:
//!
//! - `claude`: Claude Code and opencode
//! - `http`: gemini-cli, Qwen Code and Copilot CLI
//! - `codex`: Codex
//! - `view`: builds the state that agents may see, without denied files
//! - `connections`: the connected agents, as the client sees them
//! - `diffs`, `open_diff`: the changes that one agent proposes; shows them in the editor, and creates a
//!   checkpoint before an accepted one

mod claude;
#[cfg(unix)]
mod codex;
mod connections;
mod diffs;
mod http;
mod open_diff;
mod view;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use connections::Connections;
use parking_lot::Mutex;
use sightline_agents::ide::view::EditorView;
use sightline_engine::{
    error::Error,
    jobs::bridge_keys,
    services::{
        MessageKind, Services,
        agents::{Agents, Mention},
    },
    session::Snapshot,
    settings,
};
use sightline_local::{
    discovery::{self, DiscoveryFile},
    process::signals,
};
#[cfg(not(unix))]
use sightline_protocol::error::ErrorKind;
use sightline_protocol::{editor::Range, settings::BridgeSettings};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::{broadcast, watch},
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};
use view::ViewBuilder;

/// Maximum number of mentions that wait for an agent.
const MAX_MENTIONS: usize = 16;

/// Delay between a change of the session and its publication.
const PUBLISH_AFTER: Duration = Duration::from_millis(50);

/// Interval of checks of the rules while an agent is connected.
const RECHECK: Duration = Duration::from_secs(1);

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
    fn wanted(settings: BridgeSettings) -> Vec<Self> {
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

/// What a bridge needs.
#[derive(Clone)]
struct BridgeContext {
    runtime: Handle,
    /// The newest state that agents may see.
    views: watch::Receiver<Arc<EditorView>>,
    bridges: Weak<Bridges>,
    services: Weak<Services>,
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
        let bridges = self.bridges.clone();
        // Access checks read the disk.
        let refresh = move || bridges.upgrade().into_iter().for_each(|one| one.publish());
        let refreshed = self.runtime.spawn_blocking(refresh);
        match refreshed.await {
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
    /// Why some agents cannot find it.
    problems: Vec<Error>,
    /// The variable by which an agent finds it, which may ignore the files without an option.
    variable: Option<(&'static str, String)>,
}

impl OpenBridge {
    fn new(accepting: JoinHandle<()>, files: Vec<DiscoveryFile>, problems: Vec<Error>) -> Self {
        let files = Arc::new(Mutex::new(Some(files)));
        Self {
            accepting,
            files,
            problems,
            variable: None,
        }
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
    this: Weak<Self>,
    services: Weak<Services>,
    /// Called when a bridge is opened while all were closed.
    on_open: fn(&Arc<Services>),
    /// Ends the server on a termination signal, so that the files are removed.
    end: OnceLock<Arc<dyn Fn() + Send + Sync>>,
    views: watch::Sender<Arc<EditorView>>,
    mentions: broadcast::Sender<Mention>,
    connections: Connections,
    open: Mutex<Open>,
    /// The session at the last change. The task of the bridges publishes it.
    changed: watch::Sender<Option<Snapshot>>,
    builder: Mutex<ViewBuilder>,
    requested: Mutex<Option<RequestedSelection>>,
    is_paused: AtomicBool,
    pause_setting: AtomicBool,
    is_open: AtomicBool,
}

#[derive(Default)]
struct Open {
    is_closed: bool,
    roots: Vec<PathBuf>,
    bridges: BTreeMap<Protocol, OpenBridge>,
    /// Publishes changes while a bridge is open.
    publisher: Option<JoinHandle<()>>,
    /// Started with the first bridge. The server needs no asynchronous sockets without them, and
    /// their driver aborts the process if the system fails to wake it.
    runtime: Option<Runtime>,
}

impl Open {
    fn stop_publisher(&mut self) {
        if let Some(publisher) = self.publisher.take() {
            publisher.abort();
        }
    }
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
    /// Creates the bridges of a session, all closed. `on_open` is called when one is opened while
    /// all were closed.
    pub fn new(services: &Arc<Services>, on_open: fn(&Arc<Services>)) -> Arc<Self> {
        let bridges = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            services: Arc::downgrade(services),
            on_open,
            end: OnceLock::new(),
            views: watch::Sender::default(),
            mentions: broadcast::Sender::new(MAX_MENTIONS),
            connections: Connections::new(services.client.clone()),
            open: Mutex::default(),
            changed: watch::Sender::default(),
            builder: Mutex::default(),
            requested: Mutex::default(),
            is_paused: AtomicBool::new(false),
            pause_setting: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
        });
        services.connect_agents(bridges.clone());
        bridges
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
            self.pause(pause);
        }
    }

    /// Pauses or resumes all bridges. Agents forget the focus at once.
    fn pause(&self, is_paused: bool) {
        // Before the view is cleared, so that no unfinished `publish` follows.
        self.is_paused.store(is_paused, Ordering::Release);
        self.connections.set_paused(is_paused);
        if is_paused {
            self.views.send_replace(Arc::default());
        }
    }

    /// Schedules an update to changed settings or roots. Updates run in order, so the last one wins.
    pub fn schedule_update(self: &Arc<Self>, services: &Arc<Services>) {
        let (this, worker) = (self.clone(), services.clone());
        services
            .jobs
            .run(bridge_keys(), "bridges", move |snapshot| {
                let was_open = this.is_open();
                for error in this.update(&snapshot) {
                    worker.show_message(MessageKind::Warning, &format!("sightline: {error}"));
                }
                if !was_open && this.is_open() {
                    (this.on_open)(&worker);
                }
            });
    }

    /// Opens and closes bridges as the settings and roots of a session say. Writes files. Returns what
    /// agents cannot use or find.
    fn update(&self, snapshot: &Snapshot) -> Vec<Error> {
        let mut errors = Vec::new();
        let roots = view::root_paths(snapshot);
        let wanted = match roots.is_empty() {
            true => Vec::new(),
            false => Protocol::wanted(snapshot.settings.bridges),
        };
        let open = &mut *self.open.lock();
        if open.is_closed {
            return errors;
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
                .map(|runtime| self.context(runtime, open.roots.clone()))
                .and_then(|context| protocol.start(context));
            match opened {
                Ok(mut bridge) => {
                    errors.append(&mut bridge.problems);
                    open.bridges.insert(protocol, bridge);
                }
                Err(error) => errors.push(error),
            }
        }
        let variables = open.bridges.values().filter_map(|one| one.variable.clone());
        self.connections.set_environment(
            variables
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        );
        self.is_open
            .store(!open.bridges.is_empty(), Ordering::Release);
        if open.bridges.is_empty() {
            // The rules may be others when a bridge is opened again.
            open.stop_publisher();
            self.views.send_replace(Arc::default());
        } else if let Some(runtime) = &open.runtime {
            let publish =
                || runtime.spawn(publish_changes(self.this.clone(), self.changed.subscribe()));
            open.publisher.get_or_insert_with(publish);
        }
        errors
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

    fn context(&self, runtime: Handle, roots: Vec<PathBuf>) -> BridgeContext {
        let folder = roots.first().and_then(|root| root.file_name());
        let folder = folder.unwrap_or_default().to_string_lossy();
        BridgeContext {
            runtime,
            views: self.views.subscribe(),
            bridges: self.this.clone(),
            services: self.services.clone(),
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
        open.stop_publisher();
        self.is_open.store(false, Ordering::Release);
    }

    /// Publishes the state of the session at its last change, by the current rules.
    fn publish(&self) {
        let Some(services) = self.services.upgrade() else {
            return;
        };
        let builder = &mut *self.builder.lock();
        let Some(snapshot) = self.changed.borrow().clone() else {
            return;
        };
        let (active, selection) = self.focus(&snapshot);
        let mut new = builder.build(&services.view(&snapshot), &snapshot, active, selection);
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

impl Agents for Bridges {
    fn session_changed(&self, snapshot: &Snapshot) {
        if Protocol::wanted(snapshot.settings.bridges).is_empty() {
            return;
        }
        self.changed.send_replace(Some(snapshot.clone()));
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    fn names(&self) -> Vec<String> {
        self.connections.names()
    }

    fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    fn set_paused(&self, is_paused: bool) {
        self.pause(is_paused);
        if !is_paused {
            self.publish();
        }
    }

    fn can_mention(&self) -> bool {
        self.is_open() && self.mentions.receiver_count() > 0
    }

    fn mention(&self, mention: Mention) -> usize {
        self.mentions.send(mention).unwrap_or(0)
    }

    fn derive_selection(&self, snapshot: &Snapshot, uri: &str, range: Range) {
        let editor = &snapshot.editor;
        let Some(open) = editor.document(uri) else {
            return;
        };
        if !self.is_open() || !editor.visible().derived {
            return;
        }
        *self.requested.lock() = Some(RequestedSelection {
            uri: uri.to_owned(),
            version: open.document.version(),
            range,
            active: editor.active().map(str::to_owned),
        });
        self.changed.send_modify(|_| ());
    }
}

/// Publishes each change of the session soon after it, and checks the rules regularly while an agent is
/// connected.
async fn publish_changes(bridges: Weak<Bridges>, mut changed: watch::Receiver<Option<Snapshot>>) {
    changed.mark_changed();
    loop {
        let is_changed = match timeout(RECHECK, changed.changed()).await {
            Ok(Ok(())) => true,
            Ok(Err(_)) => return,
            Err(_) => false,
        };
        if is_changed {
            sleep(PUBLISH_AFTER).await;
            changed.mark_unchanged();
        }
        let Some(bridges) = bridges.upgrade() else {
            return;
        };
        if is_changed || !bridges.connections.names().is_empty() {
            // Access checks read the disk. A panic fails this publication only.
            let _ = spawn_blocking(move || bridges.publish()).await;
        }
    }
}
