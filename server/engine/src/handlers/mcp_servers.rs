//! `sightline/listMcpServers` and the other requests about the MCP servers that agents get.

use std::path::PathBuf;

use sightline_agents::{
    install::Locations,
    servers::{self, Manager, servers_of_clients, store::Store},
};
use sightline_base::storage::Storage;
use sightline_protocol::{
    error::ErrorKind,
    mcp::{
        ListMcpServersParams, ListMcpServersResult, McpServer, McpServerLogResult, McpServerParams,
        SetMcpServerEnabledParams,
    },
};

use crate::{
    error::Error, request_context::RequestContext, session::named_root,
    settings::config_file::user_file,
};

impl From<servers::Error> for Error {
    fn from(error: servers::Error) -> Self {
        let kind = match error {
            servers::Error::NotFound(_) => ErrorKind::NotFound,
            servers::Error::Invalid(_) => ErrorKind::Unsupported,
            servers::Error::Storage(_) => ErrorKind::Storage,
        };
        Self::new(kind, error.to_string())
    }
}

/// Returns what manages the servers of workspace folders.
///
/// # Errors
/// Kind `storage` if the user has no home directory.
pub fn manager(storage: Storage, roots: Vec<PathBuf>) -> Result<Manager, Error> {
    let user_file = user_file().ok_or_else(|| {
        Error::storage("cannot find the folder with your configuration: HOME is not set")
    })?;
    Ok(Manager {
        store: Store::new(storage),
        user_file: user_file.with_file_name("mcp.json"),
        roots,
    })
}

/// Returns where the agents keep their configuration.
///
/// # Errors
/// Kind `storage` if the user has no home directory.
pub fn locations(project: PathBuf) -> Result<Locations, Error> {
    let home = sightline_base::path::home_dir()
        .ok_or_else(|| Error::storage("cannot find the home directory"))?;
    Ok(Locations::new(&home, &project, |name| {
        std::env::var_os(name).map(PathBuf::from)
    }))
}

/// Lists the servers.
pub(crate) fn list(
    context: &RequestContext<'_>,
    params: ListMcpServersParams,
) -> Result<ListMcpServersResult, Error> {
    let manager = of(context, params.root.as_deref())?;
    if !params.found {
        return Ok(ListMcpServersResult(manager.list()?));
    }
    let mut found: Vec<McpServer> = Vec::new();
    let roots = manager.roots.iter().cloned();
    for root in roots.chain(manager.roots.is_empty().then(PathBuf::new)) {
        for server in servers_of_clients(&locations(root)?) {
            if !found.contains(&server) {
                found.push(server);
            }
        }
    }
    Ok(ListMcpServersResult(found))
}

/// Switches a server on or off.
pub(crate) fn set_enabled(
    context: &RequestContext<'_>,
    params: SetMcpServerEnabledParams,
) -> Result<McpServer, Error> {
    let manager = of(context, params.root.as_deref())?;
    manager.set_enabled(&params.name, params.enabled)?;
    Ok(manager.get(&params.name)?)
}

/// Restarts a server in all sessions.
pub(crate) fn restart(
    context: &RequestContext<'_>,
    params: McpServerParams,
) -> Result<McpServer, Error> {
    let manager = of(context, params.root.as_deref())?;
    manager.restart(&params.name)?;
    Ok(manager.get(&params.name)?)
}

/// Trusts a server of a project.
pub(crate) fn trust(
    context: &RequestContext<'_>,
    params: McpServerParams,
) -> Result<McpServer, Error> {
    let manager = of(context, params.root.as_deref())?;
    manager.trust(&params.name)?;
    Ok(manager.get(&params.name)?)
}

/// Returns what a server printed.
pub(crate) fn log(
    context: &RequestContext<'_>,
    params: McpServerParams,
) -> Result<McpServerLogResult, Error> {
    let manager = of(context, params.root.as_deref())?;
    let text = manager.log(&params.name)?;
    Ok(McpServerLogResult { text })
}

/// Returns what manages the servers of a folder, or of all. The client gets notifications from now on.
fn of(context: &RequestContext<'_>, root: Option<&str>) -> Result<Manager, Error> {
    let roots = context.snapshot.access.roots();
    let folders = roots
        .as_slice()
        .iter()
        .map(|root| root.canonical.as_path().to_owned());
    let mut manager = manager(context.storage()?, folders.collect())?;
    context.services.watch_mcp(&context.snapshot, &manager);
    if let Some(root) = root {
        let index = named_root(roots, root)?;
        manager.roots = vec![manager.roots.swap_remove(index)];
    }
    Ok(manager)
}
