//! `sightline mcp`: a server of the Model Context Protocol on standard input and output.
//!
//! Each call asks the running server of the workspace, because an editor can start or exit between
//! calls. If no server is running, the call reads from disk, and its result says so. Errors are
//! results with `isError`, because models do not see protocol errors.
//!
//! [`stdio`] reads and writes messages, [`backend`] runs the tools. [`servers`] are the commands for other
//! servers, which [`rules`] judges.

mod backend;
mod hub;
mod manage;
mod rules;
mod servers;
mod stdio;

use std::{path::PathBuf, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::{QuitReason, RequestContext, ServerInitializeError},
};
use sightline_agents::mcp::{self, page::cut};
use sightline_engine::error::Error;
use sightline_local::process::version::VERSION;

use self::{backend::Backend, stdio::Stdio};
use super::{DONE, Workspace, internal};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Mcp {
    #[command(subcommand)]
    command: Option<servers::Command>,
    /// Workspace folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Offer only tools that change nothing.
    #[arg(long)]
    read_only: bool,
    /// Offer only these tools.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tools: Vec<String>,
}

/// Serves one client until the end of input.
pub(super) fn run(arguments: Mcp) -> Result<i32, Error> {
    if let Some(command) = arguments.command {
        return servers::run(command);
    }
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
    let backend = Arc::new(Backend::new(workspace)?);
    let tools: Arc<[mcp::Tool]> = tools.into();
    // Servers of the user may change files, and are not among named tools.
    if !arguments.read_only && arguments.tools.is_empty() && hub::run(&backend, &tools)? {
        return Ok(DONE);
    }
    let server = McpServer { tools, backend };
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
struct McpServer {
    tools: Arc<[mcp::Tool]>,
    backend: Arc<Backend>,
}

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
        let tools = self.tools.iter();
        let tools = tools.map(|tool| serde_json::from_value(tool.to_json()));
        let tools = tools.collect::<Result<Vec<_>, _>>();
        let tools = tools.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let backend = self.backend.clone();
        let client = context
            .peer
            .peer_info()
            .map(|info| info.client_info.name.clone());
        let Some(tool) = self.tools.iter().find(|tool| tool.name == request.name) else {
            let message = format!("there is no tool {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let tool = tool.clone();
        // A panic fails this call only.
        let answer =
            tokio::task::spawn_blocking(move || backend.call(&tool, arguments, client.as_deref()))
                .await;
        let result = match answer {
            Ok(answer) => call_result(answer),
            Err(_) => {
                CallToolResult::error(vec![ContentBlock::text(format!("{} failed", request.name))])
            }
        };
        Ok(result.into())
    }
}

/// Returns the result of one of our tools.
fn call_result(answer: Result<backend::Answer, Error>) -> CallToolResult {
    match answer {
        Ok(answer) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
            result.structured_content = answer.structured;
            result
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(cut(&error.message))]),
    }
}
