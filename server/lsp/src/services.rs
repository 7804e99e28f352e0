//! The services shared by all threads: the client, the stores, and the senders of jobs.
//!
//! They lie below the handlers and the main loop. The session is not one of them: the main
//! loop owns it, and others get a [`Snapshot`].

pub mod active_tasks;
pub mod checkpoint_registry;
pub mod confirmations;
pub mod hidden_contents;
pub mod stores;
pub mod tracked_files;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use sightline_access::AccessView;
use sightline_base::escape;
use sightline_conversation::tokens::Counter;
use sightline_protocol::{
    editor::{DidChangeAccessRulesParams, DidChangeContextParams},
    method::{DidChangeAccessRules, DidChangeContext, Notification},
};
use tower_lsp::lsp_types::MessageType;

use crate::{
    bridges::Bridges,
    connection::{client::Client, progress::ProgressListener},
    scheduler::JobSender,
    services::{
        active_tasks::ActiveTasks, checkpoint_registry::CheckpointRegistry,
        confirmations::Confirmations, hidden_contents::KeptContents, stores::Stores,
        tracked_files::TrackedFiles,
    },
    session::Snapshot,
};

/// Called with a method's name before its handler runs. Tests use it to inject panics.
pub type FaultHook = fn(&str);

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
    /// The open question to the user.
    pub confirmations: Confirmations,
    /// The IDE protocols of agents.
    pub bridges: Bridges,
    /// Identifies this session in stored data.
    pub session_id: String,
    /// Receives progress in this process.
    pub progress_listener: Option<Arc<ProgressListener>>,
    /// Injects faults.
    pub fault: Option<FaultHook>,
    runtime: tokio::runtime::Handle,
    context_change_pending: AtomicBool,
}

impl Services {
    /// Creates the services of a session.
    pub fn new(client: Client, jobs: JobSender, runtime: tokio::runtime::Handle) -> Self {
        let client = Arc::new(client);
        Self {
            client: client.clone(),
            jobs,
            counter: Counter::default(),
            stores: Stores::default(),
            checkpoints: CheckpointRegistry::default(),
            active_tasks: ActiveTasks::default(),
            tracked_files: TrackedFiles::default(),
            confirmations: Confirmations::default(),
            hidden_contents: KeptContents::default(),
            bridges: Bridges::new(client.clone()),
            session_id: uuid::Uuid::new_v4().to_string(),
            progress_listener: None,
            fault: None,
            runtime,
            context_change_pending: AtomicBool::new(false),
        }
    }

    /// Runs `work` after a delay.
    pub fn run_after(
        self: &Arc<Self>,
        after: Duration,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let services = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(after).await;
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
    pub fn show_to_agents(self: &Arc<Self>, snapshot: &Snapshot) {
        if self.bridges.session_changed(snapshot) {
            self.run_after(NOTIFY_AFTER, Self::publish_to_agents);
        }
    }

    /// Shows the connected agents what they may see by the current rules.
    pub fn publish_to_agents(self: &Arc<Self>) {
        let services = self.clone();
        // Access checks read the disk.
        self.runtime.spawn_blocking(move || {
            services.bridges.publish(|snapshot| services.view(snapshot));
        });
    }

    /// Sends `window/showMessage`, on one line.
    pub fn show_message(&self, kind: MessageType, message: &str) {
        let message = message.replace(['\n', '\r'], " ");
        let message = escape::one_line(&message);
        let params = json!({ "type": kind, "message": message });
        self.client.notify("window/showMessage", &params);
    }
}
