//! `sightline mcp list`, `add` and other commands of the user for MCP servers.

use std::fmt::Write;

use sightline_agents::servers::Manager;
use sightline_base::storage::Storage;
use sightline_engine::{
    error::Error,
    handlers::mcp_servers::{locations, manager},
};
use sightline_protocol::{
    mcp::{
        ListMcpServersParams, McpServer, McpServerParams, McpServerState, SetMcpServerEnabledParams,
    },
    method::{ListMcpServers, McpServerLog, RestartMcpServer, SetMcpServerEnabled, TrustMcpServer},
};

use super::super::{
    DONE, NEGATIVE, Workspace,
    agents::AgentName,
    offline, print, print_json, print_message,
    requests::{Attached, Requests},
};

#[derive(clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    workspace: Workspace,
    /// List the servers in the configuration of agents instead, which `adopt` moves.
    #[arg(long)]
    found: bool,
}

#[derive(clap::Args)]
pub(super) struct Add {
    #[command(flatten)]
    workspace: Workspace,
    /// A known server, an address, or a name for the command.
    #[arg(value_name = "NAME|URL")]
    name: String,
    /// Command and its arguments.
    #[arg(value_name = "CMD", last = true)]
    command: Vec<String>,
}

#[derive(clap::Args)]
pub(super) struct Named {
    #[command(flatten)]
    workspace: Workspace,
    /// Name of the server.
    name: String,
}

#[derive(clap::Args)]
pub(super) struct Adopt {
    #[command(flatten)]
    workspace: Workspace,
    /// The agent, if several have a server with this name.
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Names of servers.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// What the user decides about a server, or asks.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Trust,
    Enable,
    Disable,
    Restart,
    Log,
}

/// Returns what manages the servers of the workspace.
pub(super) fn own_manager(workspace: &Workspace) -> Result<Manager, Error> {
    let dir = offline::storage_dir(workspace.storage.as_deref())?;
    let root = offline::root(workspace)?.canonical.as_path().to_owned();
    manager(Storage::open(&dir)?, vec![root])
}

pub(super) fn list(arguments: &List) -> Result<i32, Error> {
    let requests = Requests::new(&arguments.workspace, Attached { offline: false });
    let listed = requests.call::<ListMcpServers>(ListMcpServersParams {
        root: requests.root()?,
        found: arguments.found,
    })?;
    if arguments.workspace.json {
        print_json(&listed)?;
        return Ok(DONE);
    }
    let listed = listed.0;
    if listed.is_empty() {
        let source = if arguments.found { " of agents" } else { "" };
        print_message(&format!(
            "no MCP servers{source}; add one with `sightline mcp add NAME`"
        ));
        return Ok(DONE);
    }
    let names = listed.iter().map(|server| server.name.len());
    let width = names.max().unwrap_or_default();
    let mut text = String::new();
    for server in &listed {
        let _ = writeln!(text, "{:width$}  {}", server.name, description(server));
    }
    print(&text)?;
    Ok(DONE)
}

/// Returns the state of a server as one line.
fn description(server: &McpServer) -> String {
    let mut text = match &server.agent {
        Some(agent) => format!("{agent:8}  {}  {}", server.command.join(" "), server.source),
        None => format!("{:9}", state(server.state)),
    };
    let offered: Vec<_> = server.tools.iter().filter(|tool| tool.enabled).collect();
    if !offered.is_empty() {
        let tokens: u64 = offered.iter().map(|tool| tool.tokens).sum();
        let _ = write!(text, "  {} tools, about {tokens} tokens", offered.len());
    }
    let changed = server.tools.iter().filter(|tool| tool.changed);
    let changed: Vec<&str> = changed.map(|tool| tool.name.as_str()).collect();
    if !changed.is_empty() {
        let _ = write!(text, "  changed: {}", changed.join(", "));
    }
    if let Some(pid) = server.pid {
        let _ = write!(text, "  process {pid}, {} calls", server.calls);
    }
    if let Some(reason) = &server.reason {
        let _ = write!(text, "  {reason}");
    } else if server.state == McpServerState::Untrusted {
        let _ = write!(
            text,
            "  {} ({}); sightline mcp trust {}",
            server.command.join(" "),
            server.source,
            server.name
        );
    }
    if !server.ignored_fields.is_empty() {
        let _ = write!(
            text,
            "  without effect: {}",
            server.ignored_fields.join(", ")
        );
    }
    text.trim_end().to_owned()
}

fn state(state: McpServerState) -> &'static str {
    match state {
        McpServerState::Disabled => "disabled",
        McpServerState::Untrusted => "untrusted",
        McpServerState::Idle => "idle",
        McpServerState::Starting => "starting",
        McpServerState::Ready => "ready",
        McpServerState::Failed => "failed",
        McpServerState::Changed => "changed",
    }
}

pub(super) fn add(arguments: &Add) -> Result<i32, Error> {
    let manager = own_manager(&arguments.workspace)?;
    let added = manager
        .add(&arguments.name, &arguments.command)
        .map_err(Error::invalid)?;
    let about = added
        .1
        .map(|known| format!(": {}", known.about))
        .unwrap_or_default();
    print(&format!(
        "added {} to {}{about}\n",
        added.0,
        manager.user_file.display()
    ))?;
    Ok(DONE)
}

pub(super) fn adopt(arguments: &Adopt) -> Result<i32, Error> {
    let manager = own_manager(&arguments.workspace)?;
    let root = manager.roots.first().cloned().unwrap_or_default();
    let locations = locations(root)?;
    let agent = arguments.agent.map(AgentName::agent);
    for name in &arguments.names {
        match manager.adopt(name, agent, &locations) {
            Ok(path) => print(&format!("moved {name} here from {}\n", path.display()))?,
            Err(why) => return Ok(refused(&why)),
        }
    }
    Ok(DONE)
}

pub(super) fn release(arguments: &Named) -> Result<i32, Error> {
    let name = &arguments.name;
    match own_manager(&arguments.workspace)?.release(name) {
        Ok(path) => {
            print(&format!("moved {name} back to {}\n", path.display()))?;
            Ok(DONE)
        }
        Err(why) => Ok(refused(&why)),
    }
}

pub(super) fn remove(arguments: &Named) -> Result<i32, Error> {
    let name = &arguments.name;
    match own_manager(&arguments.workspace)?.remove(name) {
        Ok(()) => {
            print(&format!("removed {name}\n"))?;
            Ok(DONE)
        }
        Err(why) => Ok(refused(&why)),
    }
}

fn refused(why: &str) -> i32 {
    print_message(why);
    NEGATIVE
}

/// Runs the request for a server that the editors send too.
pub(super) fn act(action: Action, arguments: &Named) -> Result<i32, Error> {
    let requests = Requests::new(&arguments.workspace, Attached { offline: false });
    let name = arguments.name.clone();
    let params = McpServerParams {
        name: name.clone(),
        root: requests.root()?,
    };
    let set_enabled = |enabled| {
        requests.call::<SetMcpServerEnabled>(SetMcpServerEnabledParams {
            name: name.clone(),
            enabled,
            root: params.root.clone(),
        })
    };
    let (server, text) = match action {
        Action::Log => {
            let log = requests.call::<McpServerLog>(params)?;
            if arguments.workspace.json {
                print_json(&log)?;
            } else {
                print(&log.text)?;
            }
            return Ok(DONE);
        }
        Action::Trust => {
            let server = requests.call::<TrustMcpServer>(params)?;
            let text = format!("trusted {name}: {}", server.command.join(" "));
            (server, text)
        }
        Action::Enable => (set_enabled(true)?, format!("enabled {name}")),
        Action::Disable => (set_enabled(false)?, format!("disabled {name}")),
        Action::Restart => (
            requests.call::<RestartMcpServer>(params)?,
            format!("{name} restarts at its next call"),
        ),
    };
    if arguments.workspace.json {
        print_json(&server)?;
    } else {
        print(&format!("{text}\n"))?;
    }
    Ok(DONE)
}
