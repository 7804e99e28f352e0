//! The state shared by all threads.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crossbeam_channel::Sender;
use serde_json::Value;
use sightline_conversation::{
    task::{RetentionLimits, TaskStore},
    tokens::Counter,
};
use sightline_protocol::{
    editor::{DidChangeAccessRulesParams, DidChangeContextParams},
    environment::ModelRef,
    files::ProgressToken,
    method::{DidChangeAccessRules, DidChangeContext, Notification},
};
use sightline_workspace::{
    access::AccessView,
    cancel::Cancel,
    clock::now_millis,
    error::Error,
    escape,
    path::Root,
    storage::{Storage, TaskId},
    tracker::Tracker,
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
    handlers,
    ipc::{IpcServer, SocketRequest},
    logging,
    mutex::lock,
    progress::{Progress, ProgressListener},
    scheduler::{JobSender, all_task_keys},
    session::{Session, Snapshot},
    settings::Problem,
};

/// Called with a method's name before its handler runs. Tests use it to inject panics.
pub type FaultHook = fn(&str);

/// A planned compaction.
#[derive(Clone, Debug)]
pub struct PlannedCompaction {
    /// The model it was planned for.
    pub model: ModelRef,
    /// Number of compactions before it.
    pub compactions: u64,
}

/// Minimum interval between context change notifications.
const NOTIFY_AFTER: Duration = Duration::from_millis(50);

/// The state shared by all threads.
pub struct Server {
    session: Mutex<Session>,
    client: Arc<Client>,
    jobs: JobSender,
    runtime: tokio::runtime::Handle,
    initialize: Mutex<Value>,
    storage: Mutex<Option<Storage>>,
    counter: Counter,
    session_id: String,
    /// The latest planned compaction of each task.
    planned: Mutex<HashMap<TaskId, PlannedCompaction>>,
    tasks_stored: Mutex<Option<(PathBuf, TaskStore)>>,
    /// Tasks used in this session.
    tasks: Mutex<BTreeSet<String>>,
    file_watcher: FileWatcher,
    checkpoints: CheckpointRegistry,
    context_change_pending: AtomicBool,
    confirmations: Confirmations,
    ipc_server: IpcServer,
    published_diagnostics: PublishedDiagnostics,
    fault: Option<FaultHook>,
    progress_listener: Option<Arc<ProgressListener>>,
}

impl Server {
    /// Creates a server that has not been initialized.
    pub fn new(
        client: Arc<Client>,
        runtime: tokio::runtime::Handle,
        jobs: JobSender,
        sockets: Sender<SocketRequest>,
        fault: Option<FaultHook>,
    ) -> Arc<Self> {
        let ipc_server = IpcServer::new(sockets);
        let session = Session::default();
        Self::with_session(session, client, runtime, jobs, ipc_server, fault, None)
    }

    /// Creates a server without a client, on one root, for the command line.
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
            JobSender::closed(),
            IpcServer::default(),
            None,
            progress_listener,
        )
    }

    fn with_session(
        session: Session,
        client: Arc<Client>,
        runtime: tokio::runtime::Handle,
        jobs: JobSender,
        ipc_server: IpcServer,
        fault: Option<FaultHook>,
        progress_listener: Option<ProgressListener>,
    ) -> Arc<Self> {
        Arc::new(Self {
            session: Mutex::new(session),
            jobs,
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
            ipc_server,
            published_diagnostics: PublishedDiagnostics::default(),
            fault,
            progress_listener: progress_listener.map(Arc::new),
        })
    }

    /// Runs `work` on the session, under its lock. Must not do I/O.
    pub fn session<T>(&self, work: impl FnOnce(&mut Session) -> T) -> T {
        work(&mut lock(&self.session))
    }

    /// Takes a snapshot of the session.
    pub fn snapshot(&self) -> Snapshot {
        self.session(Session::snapshot)
    }

    /// Returns the client connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the sender of jobs to the main loop.
    pub fn jobs(&self) -> &JobSender {
        &self.jobs
    }

    /// Returns the token counter, which caches its counts.
    pub fn counter(&self) -> &Counter {
        &self.counter
    }

    /// Returns the file watcher.
    pub fn file_watcher(&self) -> &FileWatcher {
        &self.file_watcher
    }

    /// Returns the checkpoint stores of the roots.
    pub fn checkpoints(&self) -> &CheckpointRegistry {
        &self.checkpoints
    }

    /// Returns the diagnostics sent to the client.
    pub fn published_diagnostics(&self) -> &PublishedDiagnostics {
        &self.published_diagnostics
    }

    /// Returns the sockets the command line connects to.
    pub fn ipc_server(&self) -> &IpcServer {
        &self.ipc_server
    }

    /// Returns the pending confirmations.
    pub fn confirmations(&self) -> &Confirmations {
        &self.confirmations
    }

    /// Runs `work` after a delay.
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

    /// Begins progress, with a title for the user.
    pub fn begin_progress(&self, token: Option<ProgressToken>, title: &str) -> Progress {
        let listener = self.progress_listener.clone();
        Progress::begin(self.client.clone(), listener, token, title)
    }

    /// Stores the params of `initialize` for its handler, which tower-lsp passes none.
    pub fn store_initialize_params(&self, params: Value) {
        *lock(&self.initialize) = params;
    }

    /// Takes the params of `initialize`.
    pub fn take_initialize_params(&self) -> Value {
        lock(&self.initialize).take()
    }

    /// Calls the fault hook of tests.
    pub fn inject_fault(&self, method: &str) {
        if let Some(fault) = self.fault {
            fault(method);
        }
    }

    /// Returns the current access rules. Notifies the client if they changed on disk.
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

    /// Opens the data directory of a snapshot's settings.
    ///
    /// # Errors
    /// Kind `storage` if it cannot be used.
    pub fn storage(&self, snapshot: &Snapshot) -> Result<Storage, Error> {
        let path = match &snapshot.settings.storage_path {
            Some(path) => path.clone(),
            None => default_storage_dir()?,
        };
        let mut kept = lock(&self.storage);
        if let Some(storage) = kept.as_ref().filter(|storage| storage.dir() == path) {
            return Ok(storage.clone());
        }
        let storage = Storage::open(&path)?;
        *kept = Some(storage.clone());
        Ok(storage)
    }

    /// Returns the store of conversations.
    ///
    /// # Errors
    /// Kind `storage` if the data directory cannot be used.
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

    /// Stores the latest planned compaction of a task.
    pub fn set_planned_compaction(&self, task: &TaskId, plan: PlannedCompaction) {
        lock(&self.planned).insert(task.clone(), plan);
    }

    /// Returns the latest planned compaction of a task.
    pub fn planned_compaction(&self, task: &TaskId) -> Option<PlannedCompaction> {
        lock(&self.planned).get(task).cloned()
    }

    /// Returns the id that identifies this session in stored data.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Opens the file tracker of a task.
    ///
    /// # Errors
    /// `invalidParams` for an invalid id, `storage` if it cannot be read.
    pub fn tracker(&self, snapshot: &Snapshot, task_id: &str) -> Result<Tracker, Error> {
        let task = TaskId::new(task_id)?;
        let tracker = Tracker::open(&self.storage(snapshot)?, &task, self.view(snapshot));
        self.touch_task(&task);
        Ok(tracker)
    }

    /// Forgets a deleted task.
    pub fn forget_task(&self, task: &TaskId) {
        lock(&self.tasks).remove(task.as_str());
        lock(&self.planned).remove(task);
    }

    /// Marks a task as used in this session, which exempts it from pruning.
    pub fn touch_task(&self, task: &TaskId) {
        lock(&self.tasks).insert(task.as_str().to_owned());
    }

    /// Returns the tasks used in this session.
    pub fn active_tasks(&self) -> BTreeSet<String> {
        lock(&self.tasks).clone()
    }

    /// Notifies the client of changed context, debounced.
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

    /// Applies changed settings and reports invalid ones to the user.
    pub fn settings_changed(self: &Arc<Self>, problems: &[Problem]) {
        let settings = self.session(|session| session.settings().clone());
        logging::set_level(settings.log_level);
        if let Some(file) = &settings.log_file
            && let Err(error) = logging::set_file(file)
        {
            self.show_message(
                MessageType::WARNING,
                &format!(
                    "sightline: cannot open the log file {}: {error}",
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
                "sightline: invalid settings, using defaults: {}",
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

    /// Schedules deletion of the tasks that exceed the configured limits.
    pub fn prune_tasks(self: &Arc<Self>) {
        let limits = self.session(|session| RetentionLimits::from(session.settings().tasks));
        if limits == RetentionLimits::default() {
            return;
        }
        let server = self.clone();
        self.jobs.run(all_task_keys(), "tasks", move || {
            let store = server.task_store(&server.snapshot());
            let pruned = store.and_then(|store| {
                let tasks = server.active_tasks();
                let is_in_use = |task: &TaskId| tasks.contains(task.as_str());
                let now = now_millis();
                store.prune(&limits, &is_in_use, now, &Cancel::default())
            });
            match pruned {
                Ok(pruned) => {
                    tracing::info!(removed = pruned.removed.len(), "tasks pruned");
                    handlers::checkpoint::prune_checkpoints::forget_tasks(&server, pruned.removed);
                }
                Err(error) => tracing::warn!(%error, "cannot delete old tasks"),
            }
        });
    }

    /// Sends `window/showMessage`, on one line.
    pub fn show_message(&self, kind: MessageType, message: &str) {
        let message = message.replace(['\n', '\r'], " ");
        let message = escape::one_line(&message);
        let params = serde_json::json!({ "type": kind, "message": message });
        self.client.notify("window/showMessage", &params);
    }
}

/// Returns the platform's data directory for this application.
///
/// # Errors
/// Kind `storage` if the user has no home directory.
pub fn default_storage_dir() -> Result<PathBuf, Error> {
    directories::ProjectDirs::from("", "", "sightline")
        .map(|places| places.data_dir().to_path_buf())
        .filter(|path: &PathBuf| Path::is_absolute(path))
        .ok_or_else(|| {
            Error::storage("cannot find the data directory: no home directory; set `storage.path`")
        })
}
