//! `sightline mcp`: a server of the Model Context Protocol on standard input and output.
//!
//! Each call asks the running server of the workspace, because an editor can start or exit between
//! calls. If no server is running, the call reads from disk, and its result says so.
//!
//! [`servers`] are the commands for other servers, which [`rules`] judges.

#[cfg(feature = "hub")]
mod manage;
mod rules;
#[cfg(feature = "hub")]
mod servers;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;
use sightline_access::CommandGuard;
use sightline_agents::mcp;
use sightline_engine::{
    dispatch::Handler,
    error::Error,
    handlers::mcp_servers::{locations, manager},
};
use sightline_hub::{
    hub::{Setup, UserServers, serve},
    tools::{self, Answered, Tools},
};
use sightline_local::process::{ancestors::ancestors, version::VERSION};
use sightline_protocol::{
    decision::Decision,
    environment::{EnvironmentDetailsParams, EnvironmentDetailsResult},
    files::{ReadFileParams, ReadFileResult},
};

use self::rules::WorkspaceRules;
use super::{
    DONE, Workspace,
    hook::guard::HookGuard,
    offline,
    requests::{IfSilent, Requests},
};

/// The files on disk may be older than what the user sees.
const SILENT_SERVER: &str = "the Sightline server of the user's editor is running but does not answer, so \
unsaved text is unknown; nothing was done. Try again later, or ask the user to check the editor";

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Mcp {
    #[cfg(feature = "hub")]
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
    #[cfg(feature = "hub")]
    if let Some(command) = arguments.command {
        return servers::run(command);
    }
    let workspace = Workspace::new(arguments.root, arguments.storage);
    let mut offered = mcp::tools();
    offered.retain(|tool| {
        let is_named =
            arguments.tools.is_empty() || arguments.tools.iter().any(|name| name == tool.name);
        is_named && (tool.read_only || !arguments.read_only)
    });
    if offered.is_empty() {
        let names: Vec<&str> = mcp::tools().iter().map(|tool| tool.name).collect();
        let message = format!("no tool is left; the tools are {}", names.join(", "));
        return Err(Error::invalid(message));
    }
    // Servers of the user may change files, and are not among named tools.
    let has_servers = cfg!(feature = "hub") && !arguments.read_only && arguments.tools.is_empty();
    // Our own tools need neither a home nor a data directory.
    let servers = has_servers.then(|| user_servers(&workspace).ok()).flatten();
    serve(setup(&workspace, servers, offered)?)
        .map_err(|error| Error::storage(error.to_string()))?;
    Ok(DONE)
}

/// Returns the servers of the user.
fn user_servers(workspace: &Workspace) -> Result<UserServers, Error> {
    let root = offline::root(workspace)?.canonical.as_path().to_owned();
    let storage = offline::storage(workspace.storage.as_deref())?;
    Ok(UserServers {
        locations: locations(root.clone())?,
        manager: manager(storage, vec![root])?,
    })
}

/// Returns the requests of the tools and rules.
fn requests(workspace: &Workspace) -> Result<Arc<Requests>, Error> {
    Requests::of_server(workspace, IfSilent::Fail(SILENT_SERVER)).map(Arc::new)
}

/// Returns what a session needs.
fn setup(
    workspace: &Workspace,
    servers: Option<UserServers>,
    offered: Vec<mcp::Tool>,
) -> Result<Setup, Error> {
    let requests = requests(workspace)?;
    let root = requests.root()?.clone();
    let folder = root.canonical.as_path().to_owned();
    Ok(Setup {
        rules: Arc::new(WorkspaceRules::new(requests.clone(), root.clone())),
        own: Arc::new(Tools {
            offered,
            requests,
            root,
        }),
        servers,
        root: folder.into(),
        info: json!({ "name": mcp::SERVER_NAME, "version": VERSION }),
        instructions: mcp::INSTRUCTIONS.to_owned(),
    })
}

impl tools::Requests for Requests {
    fn call<M: Handler>(&self, params: M::Params) -> Answered<M::Result> {
        self.call_from::<M>(params)
    }

    fn environment_details(
        &self,
        params: EnvironmentDetailsParams,
    ) -> Answered<EnvironmentDetailsResult> {
        self.environment_details(EnvironmentDetailsParams {
            requester_pids: ancestors(),
            ..params
        })
    }

    fn read_file(&self, params: ReadFileParams) -> Answered<ReadFileResult> {
        self.read_file(params)
    }

    fn guard(&self, folder: &Path) -> Result<Box<dyn CommandGuard>, Error> {
        Ok(Box::new(HookGuard::new(&self.workspace, folder)?))
    }

    fn record(&self, decisions: &[Decision]) {
        offline::record(self.workspace.storage.as_deref(), decisions);
    }
}
