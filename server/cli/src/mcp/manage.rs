//! `sightline mcp list`, `add` and other commands of the user for MCP servers.

use std::fmt::Write;

use sightline_agents::install::Locations;
use sightline_engine::error::Error;
use sightline_hub::manage::{Listed, to_json};

use super::{
    super::{DONE, NEGATIVE, Workspace, agents, print, print_message},
    hub::manager,
};

/// Bytes of a definition for each token, about.
const BYTES_PER_TOKEN: usize = 4;

#[derive(clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    workspace: Workspace,
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

/// What to do with a server.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Remove,
    Adopt,
    Release,
    Trust,
    Enable,
    Disable,
    Restart,
    Log,
}

pub(super) fn list(arguments: &List) -> Result<i32, Error> {
    let listed = manager(&arguments.workspace)?
        .list()
        .map_err(Error::storage)?;
    if arguments.workspace.json {
        print(&format!("{:#}\n", to_json(&listed)))?;
        return Ok(DONE);
    }
    if listed.is_empty() {
        print_message("no MCP servers; add one with `sightline mcp add NAME`");
        return Ok(DONE);
    }
    let width = listed
        .iter()
        .map(|one| one.state.name.len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for one in &listed {
        let _ = writeln!(text, "{:width$}  {}", one.state.name, description(one));
    }
    print(&text)?;
    Ok(DONE)
}

/// Returns the state of a server as one line.
fn description(one: &Listed) -> String {
    let state = &one.state;
    let mut text = format!("{:9}", state.state);
    let offered: Vec<_> = state.tools.iter().filter(|tool| tool.enabled).collect();
    if !offered.is_empty() {
        let bytes: usize = offered.iter().map(|tool| tool.bytes).sum();
        let _ = write!(
            text,
            "  {} tools, about {} tokens",
            offered.len(),
            bytes / BYTES_PER_TOKEN
        );
    }
    let changed = state
        .tools
        .iter()
        .filter(|tool| tool.changed)
        .map(|tool| tool.name.as_str());
    let changed: Vec<&str> = changed.collect();
    if !changed.is_empty() {
        let _ = write!(text, "  changed: {}", changed.join(", "));
    }
    if let Some(pid) = state.pid {
        let _ = write!(text, "  process {pid}, {} calls", state.calls);
    }
    match (&state.reason, state.state.as_str()) {
        (Some(reason), _) => {
            let _ = write!(text, "  {reason}");
        }
        (None, "untrusted") => {
            let _ = write!(
                text,
                "  {} ({}); sightline mcp trust {}",
                one.command.join(" "),
                one.source.display(),
                state.name
            );
        }
        _ => {}
    }
    if !one.ignored_fields.is_empty() {
        let _ = write!(text, "  without effect: {}", one.ignored_fields.join(", "));
    }
    text.trim_end().to_owned()
}

pub(super) fn add(arguments: &Add) -> Result<i32, Error> {
    let manager = manager(&arguments.workspace)?;
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

pub(super) fn change(action: Action, arguments: &Named) -> Result<i32, Error> {
    let manager = manager(&arguments.workspace)?;
    let name = &arguments.name;
    let done = match action {
        Action::Remove => manager.remove(name).map(|()| format!("removed {name}\n")),
        Action::Trust => manager.trust(name).map(|server| {
            let command = [server.entry.command].into_iter().chain(server.entry.args);
            format!(
                "trusted {name}: {}\n",
                command.collect::<Vec<_>>().join(" ")
            )
        }),
        Action::Enable => manager
            .set_enabled(name, true)
            .map(|()| format!("enabled {name}\n")),
        Action::Disable => manager
            .set_enabled(name, false)
            .map(|()| format!("disabled {name}\n")),
        Action::Restart => manager
            .restart(name)
            .map(|()| format!("{name} restarts at its next call\n")),
        Action::Log => manager.log(name),
        Action::Adopt => {
            let locations: Locations = agents::locations(manager.root.clone())?;
            manager
                .adopt(name, &locations)
                .map(|path| format!("moved {name} here from {}\n", path.display()))
        }
        Action::Release => manager
            .release(name)
            .map(|path| format!("moved {name} back to {}\n", path.display())),
    };
    match done {
        Ok(text) => {
            print(&text)?;
            Ok(DONE)
        }
        Err(why) => {
            print_message(&why);
            Ok(NEGATIVE)
        }
    }
}
