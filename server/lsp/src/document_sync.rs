//! The standard LSP methods, routed by tower-lsp.
//!
//! [`StandardMethods`] calls its service directly on the main loop. Each handler changes
//! the session and returns without awaiting, so changes take effect in arrival order.

use std::sync::Arc;

use serde_json::{Value, json};
use sightline_protocol::{
    editor::{Position, Range},
    error::ErrorKind,
};
use sightline_workspace::{
    access::{Origin, RULE_FILE},
    document::{Change, PositionEncoding},
    path::{Root, uri_to_path},
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
    capabilities::{folder, initialize_result},
    editor_features::diagnostics,
    error_response::{INVALID_REQUEST, METHOD_NOT_FOUND, catch_panic, error_body, protocol_error},
    handlers,
    ipc::IpcServer,
    params_compat,
    session::{Phase, normalize_uri},
    settings::Source,
    shared_state::Server,
};

/// The service of the standard methods.
pub struct StandardMethods {
    service: LspService<LspHandlers>,
    runtime: Handle,
    server: Arc<Server>,
}

impl StandardMethods {
    /// Methods that work on `server`.
    pub fn new(server: &Arc<Server>, runtime: Handle) -> Self {
        let (service, _socket) = LspService::new(|_| LspHandlers(server.clone()));
        Self {
            service,
            runtime,
            server: server.clone(),
        }
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
            // Parsed leniently by `capabilities` instead.
            "initialize" => {
                self.server.store_initialize_params(params);
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

struct LspHandlers(Arc<Server>);

impl LspHandlers {
    /// Requests the `sightline` configuration section and applies the response.
    fn pull_configuration(&self) {
        let server = self.0.clone();
        let params = json!({ "items": [{ "section": "sightline" }] });
        self.0
            .client()
            .request("workspace/configuration", &params, move |answer| {
                let Ok(answer) = answer else { return };
                let value = answer.get(0).cloned().unwrap_or_default();
                let problems =
                    server.session(|session| session.configure(Source::Configuration, &value));
                server.settings_changed(&problems);
            });
    }

    /// Marks a file as changed on disk.
    fn changed(&self, uri: &str) {
        if let Some(path) = uri_to_path(uri).ok().flatten() {
            self.0.checkpoints().mark_changed(&path);
        }
    }

    fn edited(&self, known: bool) {
        if !known {
            tracing::warn!("change of a document that is not open");
        }
        self.0.context_changed();
    }
}

#[async_trait]
impl LanguageServer for LspHandlers {
    async fn initialize(&self, _: InitializeParams) -> jsonrpc::Result<InitializeResult> {
        self.0.inject_fault("initialize");
        let params = self.0.take_initialize_params();
        let (problems, encoding) = self.0.session(|session| {
            let problems = session.initialize(&params);
            session.phase = Phase::Running;
            (problems, session.client_info().encoding)
        });
        self.0.settings_changed(&problems);
        serde_json::from_value(initialize_result(encoding)).map_err(|error| {
            tracing::error!(%error, "cannot build the result of initialize");
            jsonrpc::Error::internal_error()
        })
    }

    async fn initialized(&self, _: InitializedParams) {
        let info = self.0.session(|session| session.client_info().clone());
        if info.watches_files {
            let watchers = json!([{ "globPattern": "**/.clineignore" }]);
            let params = json!({ "registrations": [{
                "id": "sightline-rules",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": { "watchers": watchers },
            }] });
            self.0
                .client()
                .request("client/registerCapability", &params, |answer| {
                    if let Err(error) = answer {
                        tracing::info!(%error, "the client does not watch files");
                    }
                });
        }
        if info.configuration {
            self.pull_configuration();
        }
        self.0.checkpoints().recover(&self.0);
    }

    async fn shutdown(&self) -> jsonrpc::Result<()> {
        self.0.session(|session| session.phase = Phase::ShutDown);
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        let uri = normalize_uri(document.uri.as_str());
        let roots = self.0.session(|session| session.roots().clone());
        let path = uri_to_path(&uri).ok().flatten();
        let origin = path.map_or_else(Origin::default, |path| Origin::of(&roots, &path));
        self.0.session(|session| {
            session.edit(|editor| {
                let (language, version) = (document.language_id, document.version);
                editor.open(uri, language, version, &document.text, origin);
            });
            session.open_files_changed();
        });
        diagnostics::schedule(&self.0);
        self.0.context_changed();
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let uri = normalize_uri(params.text_document.uri.as_str());
        let changes: Vec<Change> = params.content_changes.into_iter().map(change).collect();
        let version = params.text_document.version;
        let known = self.0.session(|session| {
            let encoding: PositionEncoding = session.client_info().encoding;
            session.edit(|editor| editor.change(&uri, version, &changes, encoding))
        });
        if uri.ends_with(RULE_FILE) {
            diagnostics::schedule(&self.0);
        }
        self.edited(known);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        let uri = normalize_uri(params.text_document.uri.as_str());
        let known = self
            .0
            .session(|session| session.edit(|editor| editor.save(&uri)));
        handlers::tracking::saved(&self.0, &uri);
        self.changed(&uri);
        diagnostics::schedule(&self.0);
        self.edited(known);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        let uri = normalize_uri(params.text_document.uri.as_str());
        let known = self.0.session(|session| {
            let known = session.edit(|editor| editor.close(&uri));
            session.open_files_changed();
            known
        });
        diagnostics::schedule(&self.0);
        self.edited(known);
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        let settings = params.settings;
        let (problems, pull) = self.0.session(|session| {
            let problems = session.configure(Source::DidChange, &settings);
            (problems, session.client_info().configuration)
        });
        self.0.settings_changed(&problems);
        if pull {
            self.pull_configuration();
        }
        self.0.context_changed();
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let roots = |folders: Vec<lsp_types::WorkspaceFolder>| -> Vec<Root> {
            let folders = folders.iter().map(serde_json::to_value);
            folders
                .filter_map(|value| folder(&value.unwrap_or(Value::Null)))
                .collect()
        };
        let (removed, added) = (roots(params.event.removed), roots(params.event.added));
        let roots = self.0.session(|session| {
            session.change_roots(&removed, added);
            session.snapshot()
        });
        let registry = self.0.checkpoints();
        registry.retain(roots.access.roots());
        registry.recover(&self.0);
        IpcServer::update(&self.0);
        self.0.file_watcher().wake();
        self.0.context_changed();
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        // The kind of change is ignored: some clients report all changes as one kind,
        // others only their own changes. The disk is checked instead.
        for change in &params.changes {
            self.changed(&normalize_uri(change.uri.as_str()));
        }
        diagnostics::schedule(&self.0);
        self.0.file_watcher().wake();
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
