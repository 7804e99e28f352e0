//! The standard LSP methods, routed by tower-lsp.
//!
//! [`StandardMethods`] calls its service directly on the main loop. Each handler changes
//! the session and returns without awaiting, so changes take effect in arrival order. The
//! session is in a mutex only because the service requires it; nothing waits for it.

use std::{sync::Arc, thread};

use crossbeam_channel::{Receiver, bounded};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use sightline_access::{Origin, RULE_FILE};
use sightline_base::path::{Root, uri_to_path};
use sightline_context::document::{Change, PositionEncoding};
use sightline_engine::{
    error_response::{INVALID_REQUEST, METHOD_NOT_FOUND, catch_panic, error_body, protocol_error},
    handlers::{checkpoint::recovery, tasks, tracking},
    params_compat,
    services::{MessageKind, Services},
    session::{Phase, Session, client_info::folder, normalize_uri},
    settings::{Problem, config_file::ConfigFiles, sources::Source},
};
use sightline_ipc::IpcServer;
use sightline_local::process::logging;
use sightline_protocol::{
    editor::{Position, Range},
    error::ErrorKind,
};
use tokio::runtime::Handle;
use tower_lsp::{
    ExitedError, LanguageServer, LspService, async_trait, jsonrpc,
    lsp_types::{
        self, DidChangeConfigurationParams, DidChangeTextDocumentParams,
        DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams, DidCloseTextDocumentParams,
        DidOpenTextDocumentParams, DidSaveTextDocumentParams, InitializeParams, InitializeResult,
        InitializedParams,
    },
};
use tower_service::Service;

use crate::{
    bridges::Bridges,
    capabilities::{initialize_result, registrations},
    file_watcher,
};

/// The service of the standard methods, and the session they change.
pub struct StandardMethods {
    service: LspService<LspHandlers>,
    runtime: Handle,
}

impl StandardMethods {
    /// Creates the service, with a new session.
    pub fn new(
        services: &Arc<Services>,
        bridges: &Arc<Bridges>,
        sockets: &Arc<IpcServer>,
        session: Session,
        runtime: Handle,
    ) -> Self {
        let (service, _socket) = LspService::new(|_| LspHandlers {
            session: Mutex::new(session),
            initialize: Mutex::default(),
            config_read: Mutex::default(),
            services: services.clone(),
            bridges: bridges.clone(),
            sockets: sockets.clone(),
        });
        Self { service, runtime }
    }

    /// Returns the session.
    pub fn session(&self) -> MutexGuard<'_, Session> {
        self.service.inner().session()
    }

    /// Applies configuration files. Returns false if they were read for other workspace folders.
    pub fn set_config_files(&self, files: Arc<ConfigFiles>) -> bool {
        let handlers = self.service.inner();
        let session = &mut handlers.session();
        let is_current = files.are_for(session.roots().as_slice());
        if is_current {
            handlers.set_config_files(session, files);
        }
        is_current
    }

    /// Returns a function that reads the configuration files again, for another thread.
    pub fn config_reader(&self) -> impl FnOnce() -> ConfigFiles + Send + 'static {
        let session = self.service.inner().session();
        config_reader(&session)
    }

    /// Returns the channel of the configuration files, if a message made a thread read them.
    pub fn take_config_read(&self) -> Option<Receiver<Arc<ConfigFiles>>> {
        self.service.inner().config_read.lock().take()
    }

    /// Resolves the links of the workspace folders again. Returns whether a folder is another one
    /// now.
    pub fn resolve_roots_again(&self) -> bool {
        let handlers = self.service.inner();
        let session = &mut handlers.session();
        let has_changed = session.resolve_roots_again();
        if has_changed {
            handlers.roots_changed(session);
        }
        has_changed
    }

    /// Records that the client reported the focus.
    pub fn focused(&self) {
        self.service.inner().sockets.focused();
    }

    /// Calls a method. Returns the response, if it is a request.
    pub fn call(
        &mut self,
        method: &str,
        id: Option<&Value>,
        params: Option<&str>,
    ) -> Option<Vec<u8>> {
        let called = catch_panic(method, || {
            let mut params = params_compat::parse(method, params)?;
            params_compat::fill_defaults(method, &mut params);
            Ok(self.call_service(method, id, params))
        });
        match (called, id) {
            (Ok(Ok(response)), id) => response.map(|response| body(method, id, &response)),
            (Ok(Err(_exited)), Some(id)) => {
                let message = format!("{method}: the server is exiting");
                let kind = ErrorKind::InvalidParams;
                Some(protocol_error(id, INVALID_REQUEST, kind, &message))
            }
            (Err(error), Some(id)) => Some(error_body(id, &error)),
            (Ok(Err(_)), None) => None,
            (Err(_), None) => {
                tracing::warn!(method, "dropped");
                None
            }
        }
    }

    fn call_service(
        &mut self,
        method: &str,
        id: Option<&Value>,
        params: Value,
    ) -> Result<Option<jsonrpc::Response>, ExitedError> {
        let params = match method {
            // tower-lsp rejects any params here, even `null`.
            "shutdown" => None,
            "initialized" => Some(json!({})),
            // Parsed leniently by `client_info` instead.
            "initialize" => {
                *self.service.inner().initialize.lock() = params;
                Some(json!({ "capabilities": {} }))
            }
            _ if params.is_null() => None,
            _ => Some(params),
        };
        let mut request = jsonrpc::Request::build(method.to_owned());
        if let Some(params) = params {
            request = request.params(params);
        }
        request = match id {
            Some(Value::String(id)) => request.id(id.clone()),
            Some(id) => request.id(id.as_i64().unwrap_or_default()),
            None => request,
        };
        self.runtime.block_on(self.service.call(request.finish()))
    }
}

fn body(method: &str, id: Option<&Value>, response: &jsonrpc::Response) -> Vec<u8> {
    let Some(error) = response.error() else {
        return serde_json::to_vec(response).unwrap_or_default();
    };
    // tower-lsp's errors contain neither the method nor a kind.
    let code = error.code.code();
    let kind = match code {
        METHOD_NOT_FOUND => ErrorKind::Unsupported,
        -32002 => ErrorKind::NotInitialized,
        -32800 => ErrorKind::Cancelled,
        INVALID_REQUEST | -32602 => ErrorKind::InvalidParams,
        _ => ErrorKind::Internal,
    };
    let message = format!("{method}: {}", error.message);
    protocol_error(id.unwrap_or(&Value::Null), code, kind, &message)
}

fn config_reader(session: &Session) -> impl FnOnce() -> ConfigFiles + Send + 'static + use<> {
    let (files, roots) = (session.config_files().clone(), session.roots().clone());
    move || files.read_again(roots.as_slice())
}

struct LspHandlers {
    session: Mutex<Session>,
    /// Gets the configuration files that a thread is reading.
    config_read: Mutex<Option<Receiver<Arc<ConfigFiles>>>>,
    /// The params of `initialize`, which tower-lsp does not pass on.
    initialize: Mutex<Value>,
    services: Arc<Services>,
    bridges: Arc<Bridges>,
    sockets: Arc<IpcServer>,
}

impl LspHandlers {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock()
    }

    /// Requests the `sightline` configuration section and applies the response.
    fn pull_configuration(&self) {
        let services = self.services.clone();
        let (bridges, sockets) = (self.bridges.clone(), self.sockets.clone());
        let params = json!({ "items": [{ "section": "sightline" }] });
        self.services.client.request(
            "workspace/configuration",
            &params,
            move |session, answer| {
                let Ok(answer) = answer else { return };
                let value = answer.get(0).cloned().unwrap_or_default();
                let problems = session.configure(Source::Configuration, &value);
                settings_changed(&services, &bridges, &sockets, session, &problems);
            },
        );
    }

    /// Lets a thread read the configuration files. The main loop handles later messages of the client
    /// after that.
    fn read_config_files(&self, session: &Session) {
        let (sender, files) = bounded(1);
        let read = config_reader(session);
        let started = thread::Builder::new()
            .name("configuration".to_owned())
            .spawn(move || sender.send(Arc::new(read())));
        match started {
            Ok(_) => *self.config_read.lock() = Some(files),
            Err(error) => tracing::warn!(%error, "cannot read the configuration files"),
        }
    }

    fn set_config_files(&self, session: &mut Session, files: Arc<ConfigFiles>) {
        if *session.config_files() == files {
            return;
        }
        let problems = session.set_config_files(files);
        settings_changed(
            &self.services,
            &self.bridges,
            &self.sockets,
            session,
            &problems,
        );
        self.services.context_changed(&session.snapshot());
    }

    /// Updates what depends on the workspace folders.
    fn roots_changed(&self, session: &mut Session) {
        let files = session.read_config_files();
        self.set_config_files(session, files);
        let snapshot = session.snapshot();
        self.services.checkpoints.retain(snapshot.access.roots());
        recovery::schedule(&self.services, &snapshot);
        self.sockets.update(&self.services);
        self.bridges.schedule_update(&self.services);
        self.services.tracked_files.wake_watcher();
        self.services.context_changed(&snapshot);
    }

    /// Marks a file as changed on disk.
    fn changed(&self, uri: &str) {
        if let Some(path) = uri_to_path(uri).ok().flatten() {
            self.services.checkpoints.mark_changed(&path);
        }
    }

    /// Records that the user edits a document. Clients that report the focus are asked for it only,
    /// because editors also change documents that were changed on disk.
    fn used(&self, session: &Session) {
        if !session.reports_focus() {
            self.sockets.focused();
        }
    }

    fn edited(&self, session: &mut Session, known: bool) {
        self.used(session);
        if !known {
            tracing::warn!("change of a document that is not open");
        }
        self.services.context_changed(&session.snapshot());
    }
}

/// Applies changed settings and reports invalid ones to the user.
fn settings_changed(
    services: &Arc<Services>,
    bridges: &Arc<Bridges>,
    sockets: &Arc<IpcServer>,
    session: &mut Session,
    problems: &[Problem],
) {
    let settings = session.settings().clone();
    logging::set_level(settings.log.level);
    if let Some(file) = &settings.log.file
        && let Err(error) = logging::set_file(file)
    {
        let file = file.display();
        services.show_message(
            MessageKind::Warning,
            &format!("sightline: cannot open the log file {file}: {error}"),
        );
    }
    if !problems.is_empty() {
        let listed: Vec<String> = problems.iter().map(Problem::to_string).collect();
        let message = format!(
            "sightline: invalid settings are ignored: {}",
            listed.join("; ")
        );
        services.show_message(MessageKind::Warning, &message);
    }
    if settings.notifications || settings.diagnostics.changed_files {
        file_watcher::start(services);
    }
    services.jobs.refresh_diagnostics();
    tasks::prune::schedule(services, &settings);
    sockets.update(services);
    bridges.configure(&settings);
    bridges.schedule_update(services);
    services.show_to_agents(&session.snapshot());
}

#[async_trait]
impl LanguageServer for LspHandlers {
    async fn initialize(&self, _: InitializeParams) -> jsonrpc::Result<InitializeResult> {
        self.services.inject_fault("initialize");
        let params = self.initialize.lock().take();
        let mut session = self.session();
        let problems = session.initialize(&params);
        session.phase = Phase::Running;
        settings_changed(
            &self.services,
            &self.bridges,
            &self.sockets,
            &mut session,
            &problems,
        );
        let result = initialize_result(session.client_info());
        serde_json::from_value(result).map_err(|error| {
            tracing::error!(%error, "cannot build the result of initialize");
            jsonrpc::Error::internal_error()
        })
    }

    async fn initialized(&self, _: InitializedParams) {
        let snapshot = self.session().snapshot();
        let registrations = registrations(
            &snapshot.client_info,
            snapshot.settings.checkpoints.blame_hover,
        );
        if !registrations.is_empty() {
            let params = json!({ "registrations": registrations });
            self.services
                .client
                .request("client/registerCapability", &params, |_, answer| {
                    if let Err(error) = answer {
                        tracing::info!(%error, "the client cannot register capabilities");
                    }
                });
        }
        if snapshot.client_info.configuration {
            self.pull_configuration();
        }
        recovery::schedule(&self.services, &snapshot);
    }

    async fn shutdown(&self) -> jsonrpc::Result<()> {
        self.session().phase = Phase::ShutDown;
        self.bridges.close();
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        let uri = normalize_uri(document.uri.as_str());
        let mut session = self.session();
        let path = uri_to_path(&uri).ok().flatten();
        // Clients that do not report the focus would make it the active document.
        if path
            .as_ref()
            .is_some_and(|path| self.services.stores.is_result(path.as_path()))
        {
            return;
        }
        let origin = path.map_or_else(Origin::default, |path| Origin::of(session.roots(), &path));
        session.edit(|editor| {
            let (language, version) = (document.language_id, document.version);
            editor.open(uri, language, version, &document.text, origin);
        });
        session.open_files_changed();
        // So that changes of its file are noticed from now on.
        self.services.tracked_files.wake_watcher();
        self.used(&session);
        self.services.jobs.refresh_diagnostics();
        self.services.context_changed(&session.snapshot());
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let uri = normalize_uri(params.text_document.uri.as_str());
        let changes: Vec<Change> = params.content_changes.into_iter().map(change).collect();
        let version = params.text_document.version;
        let mut session = self.session();
        let encoding: PositionEncoding = session.client_info().encoding;
        let known = session.edit(|editor| editor.change(&uri, version, &changes, encoding));
        if uri.ends_with(RULE_FILE) {
            self.services.jobs.refresh_diagnostics();
        }
        self.edited(&mut session, known);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        let uri = normalize_uri(params.text_document.uri.as_str());
        let mut session = self.session();
        let known = session.edit(|editor| editor.save(&uri));
        tracking::saved::schedule(&self.services, &session.snapshot(), &uri);
        if let Some(path) = uri_to_path(&uri).ok().flatten()
            && session.config_files().contains(path.as_path())
        {
            self.read_config_files(&session);
        }
        self.changed(&uri);
        self.services.jobs.refresh_diagnostics();
        self.edited(&mut session, known);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        let uri = normalize_uri(params.text_document.uri.as_str());
        let mut session = self.session();
        let known = session.edit(|editor| editor.close(&uri));
        session.open_files_changed();
        self.services.jobs.refresh_diagnostics();
        self.edited(&mut session, known);
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        let mut session = self.session();
        let problems = session.configure(Source::DidChange, &params.settings);
        settings_changed(
            &self.services,
            &self.bridges,
            &self.sockets,
            &mut session,
            &problems,
        );
        if session.client_info().configuration {
            self.pull_configuration();
        }
        self.services.context_changed(&session.snapshot());
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let roots = |folders: Vec<lsp_types::WorkspaceFolder>| -> Vec<Root> {
            let folders = folders.iter().map(serde_json::to_value);
            folders
                .filter_map(|value| folder(&value.unwrap_or(Value::Null)))
                .collect()
        };
        let (removed, added) = (roots(params.event.removed), roots(params.event.added));
        let mut session = self.session();
        session.change_roots(&removed, added);
        self.roots_changed(&mut session);
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        // The kind of change is ignored: some clients report all changes as one kind,
        // others only their own changes. The disk is checked instead.
        for change in &params.changes {
            self.changed(&normalize_uri(change.uri.as_str()));
        }
        self.services.jobs.refresh_diagnostics();
        self.services.tracked_files.wake_watcher();
    }
}

fn change(event: lsp_types::TextDocumentContentChangeEvent) -> Change {
    let position = |position: lsp_types::Position| Position {
        line: position.line,
        character: position.character,
    };
    Change {
        range: event.range.map(|range| Range {
            start: position(range.start),
            end: position(range.end),
        }),
        text: event.text,
    }
}
