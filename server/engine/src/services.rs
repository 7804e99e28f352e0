//! The services shared by all threads: the client, the stores, and the senders of jobs.
//!
//! They lie below the handlers and the main loop. The session is not one of them: the main
//! loop owns it, and others get a [`Snapshot`].

pub mod active_tasks;
pub mod agents;
pub mod checkpoint_registry;
pub mod confirmations;
#[cfg(target_os = "linux")]
mod hidden_paths;
pub mod mcp_watch;
pub mod stores;
pub mod tracked_files;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use sightline_access::{AccessView, redact::KeptContents};
use sightline_base::escape;
use sightline_conversation::tokens::Counter;
use sightline_exec::HiddenPath;
use sightline_protocol::{
    editor::{DidChangeAccessRulesParams, DidChangeContextParams},
    method::{DidChangeAccessRules, DidChangeContext, Notification},
};

use crate::{
    client::Client,
    jobs::JobSender,
    progress::ProgressListener,
    services::{
        active_tasks::ActiveTasks, agents::Agents, checkpoint_registry::CheckpointRegistry,
        confirmations::Confirmations, mcp_watch::McpWatch, stores::Stores,
        tracked_files::TrackedFiles,
    },
    session::Snapshot,
};

/// Called with a method's name before its handler runs. Tests use it to inject panics.
pub type FaultHook = fn(&str);

/// Kind of a message to the user, with the number of LSP's `MessageType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Something failed.
    Error = 1,
    /// Something needs attention.
    Warning = 2,
    /// Something was done.
    Info = 3,
}

/// Minimum interval between context change notifications.
const NOTIFY_AFTER: Duration = Duration::from_millis(50);

/// The services shared by all threads.
pub struct Services {
    /// The client connection.
    pub client: Arc<Client>,
    /// Sends jobs to the main loop.
    pub jobs: JobSender,
    /// Counts tokens and caches the counts.
    pub counter: Counter,
    /// The data directory.
    pub stores: Stores,
    /// The checkpoint stores of the open roots.
    pub checkpoints: CheckpointRegistry,
    /// The tasks used in this session.
    pub active_tasks: ActiveTasks,
    /// The files that tasks track.
    pub tracked_files: TrackedFiles,
    /// The contents of denied files.
    pub hidden_contents: KeptContents,
    #[cfg(target_os = "linux")]
    hidden_paths: hidden_paths::HiddenPaths,
    /// The open question to the user.
    pub confirmations: Confirmations,
    /// Watches the MCP servers of agents.
    pub mcp_watch: McpWatch,
    /// Identifies this session in stored data.
    pub session_id: String,
    /// Receives progress in this process.
    pub progress_listener: Option<Arc<ProgressListener>>,
    /// Injects faults.
    pub fault: Option<FaultHook>,
    agents: OnceLock<Arc<dyn Agents>>,
    context_change_pending: AtomicBool,
}

impl Services {
    /// Creates the services of a session.
    pub fn new(client: Client, jobs: JobSender) -> Self {
        Self {
            client: Arc::new(client),
            jobs,
            counter: Counter::default(),
            stores: Stores::default(),
            checkpoints: CheckpointRegistry::default(),
            active_tasks: ActiveTasks::default(),
            tracked_files: TrackedFiles::default(),
            confirmations: Confirmations::default(),
            hidden_contents: KeptContents::default(),
            #[cfg(target_os = "linux")]
            hidden_paths: hidden_paths::HiddenPaths::default(),
            mcp_watch: McpWatch::default(),
            agents: OnceLock::new(),
            session_id: uuid::Uuid::new_v4().to_string(),
            progress_listener: None,
            fault: None,
            context_change_pending: AtomicBool::new(false),
        }
    }

    /// Runs short `work` after a delay.
    pub fn run_after(
        self: &Arc<Self>,
        after: Duration,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let services = Arc::downgrade(self);
        self.jobs.run_later(after, move || {
            if let Some(services) = services.upgrade() {
                work(&services);
            }
        });
    }

    /// Calls the fault hook of tests.
    pub fn inject_fault(&self, method: &str) {
        if let Some(fault) = self.fault {
            fault(method);
        }
    }

    /// Returns the current access rules. Notifies the client if they changed on disk.
    pub fn view(&self, snapshot: &Snapshot) -> AccessView {
        self.refresh_view(snapshot).0
    }

    /// Lists the denied files and folders of a view of a snapshot that git does not track.
    ///
    /// # Errors
    /// Why no list is kept.
    #[cfg(target_os = "linux")]
    pub fn hidden_paths(
        &self,
        snapshot: &Snapshot,
        view: &AccessView,
    ) -> Result<Vec<HiddenPath>, String> {
        self.hidden_paths.get(view, snapshot.access.get())
    }

    /// Keeps no list.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn hidden_paths(&self, _: &Snapshot, _: &AccessView) -> Result<Vec<HiddenPath>, String> {
        Err("changes are only known on Linux".to_owned())
    }

    /// Like [`Self::view`]. Also returns whether the rules changed.
    pub fn refresh_view(&self, snapshot: &Snapshot) -> (AccessView, bool) {
        let (view, changed) = snapshot.access.get().view();
        if !changed.is_empty() && snapshot.settings.notifications {
            for root in changed.iter().filter_map(|index| view.roots().get(*index)) {
                let params = DidChangeAccessRulesParams {
                    root: root.path.to_uri(),
                };
                let client = &self.client;
                client.notify_latest(DidChangeAccessRules::NAME, &params.root, &params);
            }
        }
        if !changed.is_empty() {
            snapshot.revisions.lock().context_changed();
        }
        (view, !changed.is_empty())
    }

    /// Notifies the client and connected agents of changed context, debounced.
    pub fn context_changed(self: &Arc<Self>, snapshot: &Snapshot) {
        self.show_to_agents(snapshot);
        let wanted = snapshot.settings.notifications;
        if !wanted || self.context_change_pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let revisions = snapshot.revisions.clone();
        self.run_after(NOTIFY_AFTER, move |services| {
            services
                .context_change_pending
                .store(false, Ordering::Release);
            let revision = revisions.lock().last_change();
            let params = DidChangeContextParams { revision };
            let client = &services.client;
            client.notify_latest(DidChangeContext::NAME, "", &params);
        });
    }

    /// Shows the connected agents what they may see of a changed session, debounced.
    pub fn show_to_agents(&self, snapshot: &Snapshot) {
        if let Some(agents) = self.agents() {
            agents.session_changed(snapshot);
        }
    }

    /// Sets the agents that are connected to this session, once.
    pub fn connect_agents(&self, agents: Arc<dyn Agents>) {
        let _ = self.agents.set(agents);
    }

    /// Returns the agents that are connected to this session, unless it has no editor.
    pub fn agents(&self) -> Option<&dyn Agents> {
        self.agents.get().map(|agents| &**agents)
    }

    /// Sends `window/showMessage`, on one line.
    pub fn show_message(&self, kind: MessageKind, message: &str) {
        let message = message.replace(['\n', '\r'], " ");
        let message = escape::one_line(&message);
        let params = json!({ "type": kind as u8, "message": message });
        self.client.notify("window/showMessage", &params);
    }
}
