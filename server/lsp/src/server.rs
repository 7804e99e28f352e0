//! The state all threads share, and the few things done with it everywhere.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use sightline_core::{
    access::AccessView,
    cancel::Cancel,
    error::Error,
    line,
    path::Root,
    storage::{Storage, TaskId},
    task::{Limits, TaskStore},
    tokens::Counter,
    tracker::Tracker,
};
use sightline_protocol::{
    editor::{DidChangeAccessRulesParams, DidChangeContextParams},
    method::{DidChangeAccessRules, DidChangeContext, Notification},
};
use tower_lsp::lsp_types::MessageType;

use crate::{
    checkpoint_registry::CheckpointRegistry,
    client::Client,
    editor_features::{
        confirm::Confirmations,
        diagnostics::{self, PublishedDiagnostics},
    },
    file_watcher::FileWatcher,
    handlers::{self, compaction::PlannedCompaction},
    ipc::IpcServer,
    logging,
    progress::ProgressListener,
    scheduler::{Queue, Scheduler},
    session::{Session, Snapshot},
    settings::Problem,
    sync::lock,
};

/// Called with a method's name before its handler runs; tests let it panic.
pub type FaultHook = fn(&str);

/// Changes are told to the client at most this often.
const NOTIFY_AFTER: Duration = Duration::from_millis(50);

/// What all threads share.
pub struct Server {
    session: Mutex<Session>,
    client: Arc<Client>,
    scheduler: Arc<Scheduler>,
    runtime: tokio::runtime::Handle,
    initialize: Mutex<Value>,
    storage: Mutex<Option<Storage>>,
    counter: Counter,
    /// Names this session in what it stores.
    session_id: String,
    /// The compactions that were planned last, by task.
    planned: Mutex<HashMap<TaskId, PlannedCompaction>>,
    tasks_stored: Mutex<Option<(PathBuf, TaskStore)>>,
    /// Tasks that were worked on in this session.
    tasks: Mutex<BTreeSet<String>>,
    file_watcher: FileWatcher,
    checkpoints: CheckpointRegistry,
    context_change_pending: AtomicBool,
    confirmations: Confirmations,
    ipc_server: IpcServer,
    published_diagnostics: PublishedDiagnostics,
    fault: Option<FaultHook>,
    progress_listener: Option<ProgressListener>,
}

impl Server {
    /// A server that has not been initialized.
    pub fn new(
        client: Arc<Client>,
        runtime: tokio::runtime::Handle,
        fault: Option<FaultHook>,
    ) -> Arc<Self> {
        Self::with_session(Session::default(), client, runtime, fault, None)
    }

    /// A server without an editor, on one root; for the command line.
    pub fn offline(
        root: Root,
        runtime: tokio::runtime::Handle,
        progress_listener: Option<ProgressListener>,
    ) -> Arc<Self> {
        let client = Arc::new(Client::closed());
        Self::with_session(
            Session::offline(root),
            client,
            runtime,
            None,
            progress_listener,
        )
    }

    fn with_session(
        session: Session,
        client: Arc<Client>,
        runtime: tokio::runtime::Handle,
        fault: Option<FaultHook>,
        progress_listener: Option<ProgressListener>,
    ) -> Arc<Self> {
        Arc::new(Self {
            session: Mutex::new(session),
            scheduler: Arc::new(Scheduler::new(client.clone(), runtime.clone())),
            client,
            runtime,
            initialize: Mutex::default(),
            storage: Mutex::default(),
            counter: Counter::default(),
            session_id: uuid::Uuid::new_v4().to_string(),
            planned: Mutex::default(),
            tasks_stored: Mutex::default(),
            tasks: Mutex::default(),
            file_watcher: FileWatcher::default(),
            checkpoints: CheckpointRegistry::default(),
            context_change_pending: AtomicBool::new(false),
            confirmations: Confirmations::default(),
            ipc_server: IpcServer::default(),
            published_diagnostics: PublishedDiagnostics::default(),
            fault,
            progress_listener,
        })
    }

    /// Works on the session, under its lock: memory work only.
    pub fn session<T>(&self, work: impl FnOnce(&mut Session) -> T) -> T {
        work(&mut lock(&self.session))
    }

    /// The session as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.session(Session::snapshot)
    }

    /// The way out.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The requests in flight.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// Counts tokens, and remembers what it counted.
    pub fn counter(&self) -> &Counter {
        &self.counter
    }

    /// What is watched on disk.
    pub fn file_watcher(&self) -> &FileWatcher {
        &self.file_watcher
    }

    /// The checkpoints of the roots.
    pub fn checkpoints(&self) -> &CheckpointRegistry {
        &self.checkpoints
    }

    /// The diagnostics that the client has.
    pub fn published_diagnostics(&self) -> &PublishedDiagnostics {
        &self.published_diagnostics
    }

    /// Where the command line reaches this server.
    pub fn ipc_server(&self) -> &IpcServer {
        &self.ipc_server
    }

    /// What the user is being asked.
    pub fn confirmations(&self) -> &Confirmations {
        &self.confirmations
    }

    /// Runs `work` once, after a while.
    pub fn run_after(
        self: &Arc<Self>,
        after: Duration,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let server = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(server) = server.upgrade() {
                work(&server);
            }
        });
    }

    /// Who hears of progress in this process.
    pub fn progress_listener(&self) -> Option<&ProgressListener> {
        self.progress_listener.as_ref()
    }

    /// Keeps the params of `initialize` for the handler, which gets none.
    pub fn stash_initialize(&self, params: Value) {
        *lock(&self.initialize) = params;
    }

    /// The params of `initialize`.
    pub fn take_initialize(&self) -> Value {
        lock(&self.initialize).take()
    }

    /// Where a test lets a handler panic.
    pub fn fault(&self, method: &str) {
        if let Some(fault) = self.fault {
            fault(method);
        }
    }

    /// The rules as they stand on disk; tells the client when they changed.
    pub fn view(&self, snapshot: &Snapshot) -> AccessView {
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
            self.session(Session::touch);
        }
        view
    }

    /// The data directory of a snapshot's settings.
    ///
    /// # Errors
    /// Kind `storage` when it cannot be used.
    pub fn storage(&self, snapshot: &Snapshot) -> Result<Storage, Error> {
        let path = match &snapshot.settings.storage_path {
            Some(path) => path.clone(),
            None => default_storage()?,
        };
        let mut kept = lock(&self.storage);
        if let Some(storage) = kept.as_ref().filter(|storage| storage.dir() == path) {
            return Ok(storage.clone());
        }
        let storage = Storage::open(&path)?;
        *kept = Some(storage.clone());
        Ok(storage)
    }

    /// The stored conversations.
    ///
    /// # Errors
    /// Kind `storage` when the data directory cannot be used.
    pub fn task_store(&self, snapshot: &Snapshot) -> Result<TaskStore, Error> {
        let storage = self.storage(snapshot)?;
        let mut kept = lock(&self.tasks_stored);
        if let Some((_, store)) = kept.as_ref().filter(|(dir, _)| dir == storage.dir()) {
            return Ok(store.clone());
        }
        let dir = storage.dir().to_owned();
        let store = TaskStore::new(storage);
        *kept = Some((dir, store.clone()));
        Ok(store)
    }

    /// A compaction of a task was planned.
    pub fn set_planned_compaction(&self, task: &TaskId, plan: PlannedCompaction) {
        lock(&self.planned).insert(task.clone(), plan);
    }

    /// The compaction of a task that was planned last.
    pub fn planned_compaction(&self, task: &TaskId) -> Option<PlannedCompaction> {
        lock(&self.planned).get(task).cloned()
    }

    /// Names this session in what it stores.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The tracker of a task.
    ///
    /// # Errors
    /// `invalidParams` for an impossible id, `storage` when it cannot be read.
    pub fn tracker(&self, snapshot: &Snapshot, task_id: &str) -> Result<Tracker, Error> {
        let task = TaskId::new(task_id)?;
        let tracker = Tracker::open(&self.storage(snapshot)?, &task, self.view(snapshot));
        self.touch_task(&task);
        Ok(tracker)
    }

    /// A task is gone.
    pub fn forget_task(&self, task: &TaskId) {
        lock(&self.tasks).remove(task.as_str());
        lock(&self.planned).remove(task);
    }

    /// A task is worked on in this session, and kept.
    pub fn touch_task(&self, task: &TaskId) {
        lock(&self.tasks).insert(task.as_str().to_owned());
    }

    /// The tasks of this session.
    pub fn active_tasks(&self) -> BTreeSet<String> {
        lock(&self.tasks).clone()
    }

    /// Tells the client, soon and once, that what it can see has changed.
    pub fn context_changed(self: &Arc<Self>) {
        let wanted = self.session(|session| session.settings().notifications);
        if !wanted || self.context_change_pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let server = self.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(NOTIFY_AFTER).await;
            server
                .context_change_pending
                .store(false, Ordering::Release);
            let revision = server.session(|session| session.revision());
            let params = DidChangeContextParams { revision };
            let client = &server.client;
            client.notify_latest(DidChangeContext::NAME, "", &params);
        });
    }

    /// Tells the user, on one line, what could not be used of the settings, and
    /// lets those take effect that are not looked up at every use.
    pub fn settings_changed(self: &Arc<Self>, problems: &[Problem]) {
        let settings = self.session(|session| session.settings().clone());
        logging::set_level(settings.log_level);
        if let Some(file) = &settings.log_file
            && let Err(error) = logging::set_file(file)
        {
            self.show_message(
                MessageType::WARNING,
                &format!(
                    "sightline: the log file {} cannot be opened: {error}",
                    file.display()
                ),
            );
        }
        if !problems.is_empty() {
            let listed: Vec<String> = problems
                .iter()
                .map(|problem| format!("`{}` {}", problem.path, problem.message))
                .collect();
            let message = format!(
                "sightline: wrong settings, using defaults: {}",
                listed.join("; ")
            );
            self.show_message(MessageType::WARNING, &message);
        }
        if settings.notifications || settings.diagnostics.changed_files {
            self.file_watcher.start(self);
        }
        diagnostics::schedule(self);
        self.prune_tasks();
        IpcServer::update(self);
    }

    /// Deletes the tasks that settings do not keep, before later requests.
    pub fn prune_tasks(self: &Arc<Self>) {
        let limits = self.session(|session| Limits::from(session.settings().tasks));
        if limits == Limits::default() {
            return;
        }
        let server = self.clone();
        self.scheduler
            .run_in_background(Queue::Tasks, "tasks", move || {
                let store = server.task_store(&server.snapshot());
                let pruned = store.and_then(|store| {
                    let tasks = server.active_tasks();
                    let is_in_use = |task: &TaskId| tasks.contains(task.as_str());
                    let now = handlers::tracking::now();
                    store.prune(&limits, &is_in_use, now, &Cancel::default())
                });
                match pruned {
                    Ok(pruned) => {
                        tracing::info!(removed = pruned.removed.len(), "tasks pruned");
                        handlers::checkpoints::forget_tasks(&server, pruned.removed);
                    }
                    Err(error) => tracing::warn!(%error, "old tasks could not be deleted"),
                }
            });
    }

    /// `window/showMessage`, on one line.
    pub fn show_message(&self, kind: MessageType, message: &str) {
        let message = message.replace(['\n', '\r'], " ");
        let message = line::one_line(&message);
        let params = serde_json::json!({ "type": kind, "message": message });
        self.client.notify("window/showMessage", &params);
    }
}

/// The platform's place for an application's data.
///
/// # Errors
/// Kind `storage` when the user has no home.
pub fn default_storage() -> Result<PathBuf, Error> {
    directories::ProjectDirs::from("", "", "sightline")
        .map(|places| places.data_dir().to_path_buf())
        .filter(|path: &PathBuf| Path::is_absolute(path))
        .ok_or_else(|| {
            Error::storage("no home directory to keep data in; set `storage.path` to a directory")
        })
}
