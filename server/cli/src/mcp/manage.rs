//! `sightline mcp list`, `add` and other commands of the user for MCP servers.

use std::fmt::Write;

use clap::builder::PossibleValuesParser;
use sightline_agents::servers::{self, Client, starts_ours};
use sightline_base::plural::plural;
use sightline_engine::{error::Error, handlers::mcp_servers::locations};
use sightline_hub::hub::try_server;
use sightline_protocol::{
    mcp::{
        ListMcpServersParams, McpServer, McpServerParams, McpServerState, SetMcpServerEnabledParams,
    },
    method::{ListMcpServers, McpServerLog, RestartMcpServer, SetMcpServerEnabled, TrustMcpServer},
};

use super::{
    super::{DONE, NEGATIVE, Workspace, print, print_as, print_message, requests::Requests},
    setup, user_servers,
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
    /// The agent or editor, if several have a server with this name.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Client::all().map(Client::name)))]
    agent: Option<String>,
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

pub(super) fn list(arguments: &List) -> Result<i32, Error> {
    let requests = Requests::new(&arguments.workspace);
    let listed = requests.call::<ListMcpServers>(ListMcpServersParams {
        root: requests.root_uri()?,
        found: arguments.found,
    })?;
    if listed.0.is_empty() && !arguments.workspace.json {
        print_message(match arguments.found {
            true => "no MCP servers in the configuration of agents",
            false => "no MCP servers; add one with `sightline mcp add NAME`",
        });
    }
    print_as(&arguments.workspace, &listed, |listed| {
        let names = listed.0.iter().map(|server| server.name.len());
        let width = names.max().unwrap_or_default();
        let line =
            |server: &McpServer| format!("{:width$}  {}\n", server.name, description(server));
        listed.0.iter().map(line).collect()
    })
}

/// Returns the state of a server as one line.
fn description(server: &McpServer) -> String {
    let mut text = match &server.agent {
        Some(agent) => format!("{agent:8}  {}  {}", server.command.join(" "), server.source),
        None => format!("{:9}", state(server.state)),
    };
    text.push_str(&size(server));
    if server.pid.is_none() && !server.tools.is_empty() {
        text.push_str(" when it ran last");
    }
    let changed = server.tools.iter().filter(|tool| tool.changed);
    let changed: Vec<&str> = changed.map(|tool| tool.name.as_str()).collect();
    if !changed.is_empty() {
        let _ = write!(text, "  changed: {}", changed.join(", "));
    }
    if let Some(pid) = server.pid {
        let calls = plural(server.calls, "call");
        let _ = write!(text, "  process {pid}, {calls}");
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

/// Returns the number of tools that a server offers, and the size of their definitions.
fn size(server: &McpServer) -> String {
    let offered: Vec<_> = server.tools.iter().filter(|tool| tool.enabled).collect();
    if offered.is_empty() {
        return String::new();
    }
    let tokens: u64 = offered.iter().map(|tool| tool.tokens).sum();
    let count = plural(offered.len(), "tool");
    format!("  {count}, about {tokens} tokens")
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
    let manager = user_servers(&arguments.workspace)?.manager;
    let added = manager
        .add(&arguments.name, &arguments.command)
        .map_err(|error| Error::invalid(error.to_string()))?;
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
    let manager = user_servers(&arguments.workspace)?.manager;
    let root = manager.roots.first().cloned().unwrap_or_default();
    let locations = locations(root)?;
    let client = arguments.agent.as_deref().and_then(Client::from_name);
    let mut without = Vec::new();
    for name in &arguments.names {
        match manager.adopt(name, client, &locations) {
            Ok((client, path)) => {
                print(&format!("moved {name} here from {}\n", path.display()))?;
                if !starts_ours(client, &locations) && !without.contains(&client) {
                    without.push(client);
                }
            }
            Err(error) => return done(Err(error)),
        }
    }
    for client in without {
        let title = client.title();
        let next = match client {
            Client::Agent(agent) => format!(
                ", which it does not start yet: sightline agents install --agent {} --only mcp",
                agent.name()
            ),
            _ => String::new(),
        };
        print(&format!("{title} gets them from `sightline mcp`{next}\n"))?;
    }
    Ok(DONE)
}

/// Moves a server back to the agent that had it.
pub(super) fn release(arguments: &Named) -> Result<i32, Error> {
    let name = &arguments.name;
    let released = user_servers(&arguments.workspace)?.manager.release(name);
    done(released.map(|path| format!("moved {name} back to {}\n", path.display())))
}

/// Removes a server of the user.
pub(super) fn remove(arguments: &Named) -> Result<i32, Error> {
    let name = &arguments.name;
    let manager = user_servers(&arguments.workspace)?.manager;
    manager.find(name)?;
    done(manager.remove(name).map(|()| format!("removed {name}\n")))
}

/// Prints what was done, or why it was not.
fn done(outcome: Result<String, servers::Error>) -> Result<i32, Error> {
    match outcome {
        Ok(text) => print(&text).map(|()| DONE),
        Err(error) => {
            print_message(&error.to_string());
            Ok(NEGATIVE)
        }
    }
}

/// Starts a server as agents do.
pub(super) fn test(arguments: &Named) -> Result<i32, Error> {
    let name = &arguments.name;
    let servers = user_servers(&arguments.workspace)?;
    servers.manager.find(name)?;
    let store = servers.manager.store.clone();
    let logged = store.read_log(name)?.len();
    let setup = setup(&arguments.workspace, Some(servers), Vec::new())?;
    let (server, took) = match try_server(setup, name) {
        Ok(tried) => tried,
        Err(why) => {
            let log = store.read_log(name)?;
            let log = match log.get(logged..).unwrap_or(&log).trim_end() {
                "" => String::new(),
                log => format!(". Its log:\n{log}"),
            };
            print_message(&format!("cannot use {name}: {why}{log}"));
            return Ok(NEGATIVE);
        }
    };
    print_as(&arguments.workspace, &server, |server| {
        let (seconds, size) = (took.as_secs_f64(), size(server));
        let mut text = format!("{name} works, and started in {seconds:.1} s{size}\n");
        for tool in &server.tools {
            let hidden = if tool.enabled { "" } else { "  not offered" };
            let (name, tokens) = (&tool.exposed_as, tool.tokens);
            let _ = writeln!(text, "  {name}  {tokens} tokens{hidden}");
        }
        text
    })
}

/// Runs the request for a server that the editors send too.
pub(super) fn act(action: Action, arguments: &Named) -> Result<i32, Error> {
    let requests = Requests::new(&arguments.workspace);
    let name = arguments.name.clone();
    let params = McpServerParams {
        name: name.clone(),
        root: requests.root_uri()?,
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
            return print_as(&arguments.workspace, &log, |log| log.text.clone());
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
    print_as(&arguments.workspace, &server, |_| format!("{text}\n"))
}
