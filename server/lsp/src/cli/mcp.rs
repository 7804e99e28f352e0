//! `sightline mcp`: a server of the Model Context Protocol on standard input and output.
//!
//! Each call asks the running server of the workspace, because an editor can start or exit between
//! calls. If no server is running, the call reads from disk, and its result says so. Errors are
//! results with `isError`, because models do not see protocol errors.
//!
//! [`stdio`] reads and writes messages.

mod stdio;

use std::{mem::ManuallyDrop, path::Path, sync::Arc};

use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::{QuitReason, RequestContext, ServerInitializeError},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use sightline_agents::mcp::{self, page::MAX_CHARACTERS, text};
use sightline_protocol::{
    access::CheckAccessParams,
    checkpoint::{
        CreateCheckpointParams, DiffCheckpointsParams, ListCheckpointsParams, PreviewRestoreParams,
        RestoreCheckpointParams, UndoRestoreParams,
    },
    environment::{EnvironmentDetailsParams, ModelRef, SectionId},
    error::ErrorKind,
    files::{ListFilesParams, ReadFileParams},
    method::{
        CheckAccess, CountTokens, CreateCheckpoint, DiffCheckpoints, EnvironmentDetails,
        ListCheckpoints, ListFiles, PreviewRestore, ReadFile, RestoreCheckpoint, UndoRestore,
    },
    tokens::CountTokensParams,
};
use sightline_workspace::{error::Error, path::Root, storage::Storage};

use self::stdio::Stdio;
use super::{
    DONE, Workspace, internal,
    offline::{self, OfflineServer},
    requests::AnsweredBy,
};
use crate::{
    dispatch::Handler,
    ipc::{self, client::Reply},
    process::version::VERSION,
    services::stores::default_storage_dir,
};

/// The files on disk may be older than what the user sees.
const SILENT_SERVER: &str = "the Sightline server of the user's editor is running but does not answer, so \
unsaved text is unknown; nothing was done. Try again later, or ask the user to check the editor";
/// Checkpoints in a list without `limit`.
const LISTED_CHECKPOINTS: u32 = 20;

#[derive(clap::Args)]
pub(super) struct Mcp {
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<std::path::PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<std::path::PathBuf>,
    /// Offer only tools that change nothing.
    #[arg(long)]
    read_only: bool,
    /// Offer only these tools.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tools: Vec<String>,
}

/// Serves one client until the end of input.
pub(super) fn run(arguments: Mcp) -> Result<i32, Error> {
    let workspace = Workspace {
        root: arguments.root,
        storage: arguments.storage,
        json: false,
    };
    let tools = mcp::tools().into_iter().filter(|tool| {
        let is_named =
            arguments.tools.is_empty() || arguments.tools.iter().any(|name| name == tool.name);
        is_named && (tool.read_only || !arguments.read_only)
    });
    let tools: Vec<mcp::Tool> = tools.collect();
    if tools.is_empty() {
        let names: Vec<&str> = mcp::tools().iter().map(|tool| tool.name).collect();
        let message = format!("no tool is left; the tools are {}", names.join(", "));
        return Err(Error::invalid(message));
    }
    let server = McpServer(Arc::new(Backend {
        root: offline::root(&workspace)?,
        workspace,
        tools,
        offline: Mutex::default(),
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(internal)?;
    let (stdio, reader) = stdio::open().map_err(internal)?;
    let outcome = runtime.block_on(serve(server, stdio));
    // Calls cannot be interrupted.
    runtime.shutdown_background();
    outcome?;
    match reader.join() {
        Ok(end) => end.map_err(|error| Error::storage(error.to_string()))?,
        Err(_) => return Err(internal("the thread that reads standard input panicked")),
    }
    Ok(DONE)
}

/// Serves the client until the end of its messages.
async fn serve(server: McpServer, stdio: Stdio) -> Result<(), Error> {
    loop {
        match server.clone().serve(stdio.clone()).await {
            Ok(service) => {
                return match service.waiting().await.map_err(internal)? {
                    QuitReason::JoinError(error) => Err(internal(error)),
                    _ => Ok(()),
                };
            }
            // A notification or response before `initialize` is ignored, and a failed
            // `initialize` was answered.
            Err(
                ServerInitializeError::ExpectedInitializeRequest(Some(_))
                | ServerInitializeError::InitializeFailed(_),
            ) => {}
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(internal(error)),
        }
    }
}

#[derive(Clone)]
struct McpServer(Arc<Backend>);

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new(mcp::SERVER_NAME, VERSION);
        info.instructions = Some(mcp::INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self
            .0
            .tools
            .iter()
            .map(|tool| serde_json::from_value(tool.to_json()));
        let tools = tools.collect::<Result<Vec<_>, _>>();
        let tools = tools.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let backend = self.0.clone();
        if !backend.tools.iter().any(|tool| tool.name == request.name) {
            let message = format!("there is no tool {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let name = request.name.clone();
        // A panic fails this call only.
        let answer = tokio::task::spawn_blocking(move || backend.call(&name, arguments)).await;
        let result = match answer {
            Ok(Ok(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Ok(Err(error)) => CallToolResult::error(vec![ContentBlock::text(error.message)]),
            Err(_) => {
                CallToolResult::error(vec![ContentBlock::text(format!("{} failed", request.name))])
            }
        };
        Ok(result.into())
    }
}

/// Answers tool calls.
struct Backend {
    workspace: Workspace,
    root: Root,
    tools: Vec<mcp::Tool>,
    /// Started by the first call that no running server answers.
    offline: Mutex<Option<Arc<ManuallyDrop<OfflineServer>>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EnvironmentArguments {
    sections: Option<Vec<SectionId>>,
    include_files: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadArguments {
    path: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
    max_characters: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiffArguments {
    from: String,
    to: Option<String>,
    paths: Option<Vec<String>>,
    max_characters: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RestoreArguments {
    id: String,
    paths: Option<Vec<String>>,
    token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct UndoArguments {
    undo_id: Option<String>,
    token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenArguments {
    text: Option<String>,
    path: Option<String>,
    model: Option<String>,
}

impl Backend {
    /// Runs a tool. Returns its result for the model.
    fn call(&self, tool: &str, arguments: JsonObject) -> Result<String, Error> {
        let arguments = Value::Object(arguments);
        match tool {
            "environment_details" => {
                let EnvironmentArguments {
                    sections,
                    include_files,
                } = parsed(arguments)?;
                let params = EnvironmentDetailsParams {
                    include_files,
                    sections,
                    consume: false,
                    ..EnvironmentDetailsParams::default()
                };
                let (result, from) = self.request::<EnvironmentDetails>(params)?;
                let how = "Call again with sections.";
                let text = mcp::page::cut_with_note(&result.text, MAX_CHARACTERS, how);
                Ok(match from {
                    AnsweredBy::Editor => text,
                    AnsweredBy::Disk => format!("No editor is running for this folder.\n\n{text}"),
                })
            }
            "read_file" => {
                let ReadArguments {
                    path,
                    start_line,
                    end_line,
                    max_characters,
                } = parsed(arguments)?;
                let params = ReadFileParams {
                    path: self.absolute(&path),
                    start_line,
                    end_line,
                    ..ReadFileParams::default()
                };
                let (result, from) = self.request::<ReadFile>(params)?;
                let max_characters = max_characters.unwrap_or(MAX_CHARACTERS).max(1);
                let text = text::file(
                    &path,
                    &result,
                    start_line.unwrap_or(1).max(1),
                    max_characters,
                );
                Ok(match from {
                    AnsweredBy::Editor => text,
                    AnsweredBy::Disk => text.replacen(
                        "from the disk",
                        "from the disk; no editor is running for this folder",
                        1,
                    ),
                })
            }
            "list_files" => {
                let mut params: ListFilesParams = parsed(arguments)?;
                params.path = params.path.map(|path| self.absolute(&path));
                params.work_done_token = None;
                Ok(text::files(
                    &self.request::<ListFiles>(params)?.0,
                    MAX_CHARACTERS,
                ))
            }
            "check_access" => {
                let mut params: CheckAccessParams = parsed(arguments)?;
                let asked = std::mem::take(&mut params.paths);
                params.paths = asked.iter().map(|path| self.absolute(path)).collect();
                let mut result = self.request::<CheckAccess>(params)?.0;
                for (verdict, asked) in result.paths.iter_mut().zip(asked) {
                    verdict.path = asked;
                }
                Ok(text::access(&result))
            }
            "checkpoint_create" => {
                let CreateCheckpointParams { label, .. } = parsed(arguments)?;
                let params = CreateCheckpointParams {
                    label,
                    root: self.root_uri(),
                    ..CreateCheckpointParams::default()
                };
                Ok(text::created(&self.request::<CreateCheckpoint>(params)?.0))
            }
            "checkpoint_list" => {
                let ListCheckpointsParams { limit, .. } = parsed(arguments)?;
                let params = ListCheckpointsParams {
                    limit: limit.or(Some(LISTED_CHECKPOINTS)),
                    root: self.root_uri(),
                    ..ListCheckpointsParams::default()
                };
                Ok(text::checkpoints(
                    &self.request::<ListCheckpoints>(params)?.0,
                ))
            }
            "checkpoint_diff" => {
                let DiffArguments {
                    from,
                    to,
                    paths,
                    max_characters,
                } = parsed(arguments)?;
                let params = DiffCheckpointsParams {
                    from: self.checkpoint_id(&from)?,
                    to: to.map(|to| self.checkpoint_id(&to)).transpose()?,
                    paths: self.absolute_paths(paths),
                    patch: true,
                    ..DiffCheckpointsParams::default()
                };
                let result = self.request::<DiffCheckpoints>(params)?.0;
                Ok(text::difference(
                    &result,
                    max_characters.unwrap_or(MAX_CHARACTERS),
                ))
            }
            "checkpoint_restore" => {
                let RestoreArguments { id, paths, token } = parsed(arguments)?;
                let id = self.checkpoint_id(&id)?;
                let paths = self.absolute_paths(paths);
                if token.is_none() {
                    let params = PreviewRestoreParams {
                        id,
                        paths,
                        ..PreviewRestoreParams::default()
                    };
                    return self.preview(params, tool);
                }
                let params = RestoreCheckpointParams {
                    id,
                    paths,
                    token,
                    ..RestoreCheckpointParams::default()
                };
                let result = self.request::<RestoreCheckpoint>(params)?.0;
                Ok(text::restored(&result, MAX_CHARACTERS))
            }
            "checkpoint_undo" => {
                let UndoArguments { undo_id, token } = parsed(arguments)?;
                let undo_id = undo_id.map(|id| self.checkpoint_id(&id)).transpose()?;
                if token.is_none() {
                    let params = PreviewRestoreParams {
                        id: undo_id.unwrap_or_else(|| "last".to_owned()),
                        undo: true,
                        root: self.root_uri(),
                        ..PreviewRestoreParams::default()
                    };
                    return self.preview(params, tool);
                }
                let params = UndoRestoreParams {
                    undo_id,
                    token,
                    ..UndoRestoreParams::default()
                };
                let result = self.request::<UndoRestore>(params)?.0;
                Ok(text::restored(&result, MAX_CHARACTERS))
            }
            "count_tokens" => {
                let TokenArguments { text, path, model } = parsed(arguments)?;
                let text = match (text, path) {
                    (Some(text), None) => text,
                    (None, Some(path)) => {
                        let params = ReadFileParams {
                            path: self.absolute(&path),
                            ..ReadFileParams::default()
                        };
                        self.request::<ReadFile>(params)?.0.text
                    }
                    _ => return Err(Error::invalid("give either text or path")),
                };
                let params = CountTokensParams {
                    texts: vec![text],
                    model: model.map(ModelRef::Id),
                    ..CountTokensParams::default()
                };
                Ok(text::tokens(&self.request::<CountTokens>(params)?.0))
            }
            _ => Err(Error::invalid(format!("there is no tool {tool}"))),
        }
    }

    fn preview(&self, params: PreviewRestoreParams, tool: &str) -> Result<String, Error> {
        let result = self.request::<PreviewRestore>(params)?.0;
        let mut text = text::preview(&result, tool, MAX_CHARACTERS);
        if let (Some(undo), "checkpoint_undo") = (&result.undo_id, tool) {
            text.push_str(&format!(" The undo point is undoId=\"{undo}\"."));
        }
        Ok(text)
    }

    /// Asks the running server, else this process.
    fn request<M: Handler>(&self, params: M::Params) -> Result<(M::Result, AnsweredBy), Error> {
        let dir = match &self.workspace.storage {
            Some(dir) => Some(offline::absolute_path(dir)?.as_path().to_owned()),
            None => default_storage_dir().ok(),
        };
        let storage = dir.and_then(|dir| Storage::open(&dir).ok());
        if let Some(storage) = storage {
            match ipc::client::request::<M>(&storage, &self.root, &params) {
                Reply::Answered(answer) => return Ok((answer?, AnsweredBy::Editor)),
                Reply::Silent => return Err(Error::new(ErrorKind::Busy, SILENT_SERVER)),
                Reply::NoServer => {}
            }
        }
        let server = {
            let mut offline = self.offline.lock();
            match &*offline {
                Some(server) => server.clone(),
                None => offline
                    .insert(Arc::new(OfflineServer::start(&self.workspace)?))
                    .clone(),
            }
        };
        Ok((server.call::<M>(params)?, AnsweredBy::Disk))
    }

    fn root_uri(&self) -> Option<String> {
        Some(self.root.canonical.to_uri())
    }

    /// Makes a path absolute, relative to the workspace folder. URIs are unchanged.
    fn absolute(&self, path: &str) -> String {
        if path.to_ascii_lowercase().starts_with("file:") || Path::new(path).is_absolute() {
            return path.to_owned();
        }
        self.root
            .path
            .as_path()
            .join(path)
            .to_string_lossy()
            .into_owned()
    }

    fn absolute_paths(&self, paths: Option<Vec<String>>) -> Option<Vec<String>> {
        paths.map(|paths| paths.iter().map(|path| self.absolute(path)).collect())
    }

    /// Completes the beginning of an id.
    fn checkpoint_id(&self, beginning: &str) -> Result<String, Error> {
        if beginning.len() == 40 {
            return Ok(beginning.to_owned());
        }
        let params = ListCheckpointsParams {
            root: self.root_uri(),
            ..ListCheckpointsParams::default()
        };
        let listed = self.request::<ListCheckpoints>(params)?.0.checkpoints;
        if beginning == "last"
            && let Some(newest) = listed.first()
        {
            return Ok(newest.id.clone());
        }
        let mut found = listed
            .iter()
            .filter(|checkpoint| beginning.len() >= 4 && checkpoint.id.starts_with(beginning));
        match (found.next(), found.next()) {
            (Some(checkpoint), None) => Ok(checkpoint.id.clone()),
            (Some(_), Some(_)) => Err(Error::invalid(format!(
                "several checkpoints begin with {beginning}"
            ))),
            (None, _) => Err(Error::new(
                ErrorKind::NotFound,
                format!("no checkpoint {beginning}; checkpoint_list shows all"),
            )),
        }
    }
}

/// Reads the arguments of a tool.
fn parsed<T: DeserializeOwned>(arguments: Value) -> Result<T, Error> {
    serde_json::from_value(arguments)
        .map_err(|error| Error::invalid(format!("invalid arguments: {error}")))
}
