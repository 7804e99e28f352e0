//! The configuration of agents: which files hold our entries, and how entries are added and
//! removed. Works on texts; the command line reads and writes the files.
//!
//! Read next: [`targets`] lists the files of an agent, [`Content`] edits one of them, and
//! [`patch`] undoes an edit byte for byte.

pub mod codex_trust;
mod content;
pub(crate) mod error;
mod hooks;
pub mod json;
mod json_text;
pub(crate) mod locations;
pub mod patch;
mod plugin;
pub mod probe;
mod program;
pub mod record;
pub mod switches;
pub mod toml;

use std::path::{Path, PathBuf};

use serde_json::json;

pub use content::{Content, Presence};
pub use error::EditError;
pub use locations::Locations;
pub(crate) use locations::VARIABLES;
pub use program::Program;
pub(crate) use switches::{DOTENV, SWITCH_VARIABLES};

use crate::{Agent, hook};
use json::{Entry, Slot};
use toml::TomlTable;

/// Name of the MCP server and of our entries.
pub(crate) const NAME: &str = "sightline";
/// First line of our files, after the sign of a comment.
pub(crate) const WRITTEN_BY: &str =
    "Written by `sightline agents install`; removed by `sightline agents uninstall`.";
/// Variable of Claude Code with a program that gets each command line as its argument, after it was approved.
pub const SHELL_PREFIX: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// The reason for a refusal if `sightline hook` cannot run. It is in a quoted word of a shell and in a
/// string of JavaScript.
const NOT_CHECKED: &str = "Sightline gave no answer, so this cannot be checked: its program is missing, was stopped, or had too little memory. Tell the user to run `sightline doctor`, to install it again, or to remove its hooks from the settings of this agent.";

/// The hooks to install.
struct Hooks {
    context: bool,
    access: bool,
    checkpoints: bool,
    /// Only for opencode, whose plugin can choose the shell.
    commands: bool,
}

/// What an agent gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The tools of `sightline mcp`.
    Mcp,
    /// The block with each prompt.
    Context,
    /// Refusal of denied files.
    Access,
    /// A checkpoint before the first edit of each turn. Includes the context and access, because
    /// one hook does all of it.
    Checkpoints,
    /// Commands cannot open denied files. Only for agents that run them through a program of the user and ask for
    /// approval before that.
    Commands,
    /// Requests to models go through the gateway. Only for agents that read its address from a file of the user.
    Gateway,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 6] = [
        Self::Mcp,
        Self::Context,
        Self::Access,
        Self::Checkpoints,
        Self::Commands,
        Self::Gateway,
    ];

    /// The parts that are installed if none are named.
    pub const DEFAULT: [Self; 4] = [Self::Mcp, Self::Context, Self::Access, Self::Checkpoints];

    /// Returns the name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Context => "context",
            Self::Access => "access",
            Self::Checkpoints => "checkpoints",
            Self::Commands => "commands",
            Self::Gateway => "gateway",
        }
    }
}

/// Whose configuration is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's.
    User,
    /// The project's, shared by its team.
    Project,
}

/// A configuration file and our content of it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The agent that reads the file.
    pub agent: Agent,
    /// The file.
    pub path: PathBuf,
    /// Our content.
    pub content: Content,
}

impl Target {
    /// Checks that the agent can parse the text of the file.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(&self, text: &str) -> Result<(), EditError> {
        let content = match &self.content {
            Content::Gateway(Some(inner), _) => inner,
            content => content,
        };
        content.presence(text)?;
        match content {
            Content::Json(_) => json::check(text, self.agent),
            Content::Gateway(_, addresses) if !addresses.is_toml() => json::check(text, self.agent),
            _ => Ok(()),
        }
    }
}

/// Returns whether an agent runs its commands through a program that we can set, after it has applied its own rules and
/// asked the user.
pub fn can_hide_commands(agent: Agent, scope: Scope) -> bool {
    matches!(agent, Agent::Claude | Agent::Opencode) && scope == Scope::User
}

/// Returns the files that hold `parts` for an agent. Empty if the agent has no configuration in
/// this scope.
pub fn targets(
    agent: Agent,
    scope: Scope,
    parts: &[Part],
    locations: &Locations,
    program: &Program,
) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut put = |path: Option<PathBuf>, content: Content| {
        let Some(path) = path else { return };
        let found = targets
            .iter_mut()
            .find(|target: &&mut Target| target.path == path);
        match (found.map(|target| &mut target.content), content) {
            (Some(Content::Json(entries)), Content::Json(more)) => entries.extend(more),
            (_, content) => targets.push(Target {
                agent,
                path,
                content,
            }),
        }
    };
    if parts.contains(&Part::Mcp) {
        put(locations.mcp(agent, scope), mcp(agent, scope, program));
    }
    let commands = parts.contains(&Part::Commands) && can_hide_commands(agent, scope);
    let checkpoints = parts.contains(&Part::Checkpoints);
    let hooks = Hooks {
        context: checkpoints || parts.contains(&Part::Context),
        access: checkpoints || parts.contains(&Part::Access),
        checkpoints,
        commands: commands && agent == Agent::Opencode,
    };
    if hooks.context || hooks.access || hooks.commands {
        put(locations.hooks(agent, scope), hooks.content(agent, program));
    }
    if commands && agent == Agent::Claude {
        let prefix = Entry {
            parent: vec!["env"],
            slot: Slot::Member(SHELL_PREFIX),
            value: json!(program.path()),
            program: program.clone(),
        };
        put(locations.hooks(agent, scope), Content::Json(vec![prefix]));
    }
    if commands {
        put(Some(locations.own_settings()), Content::HideCommands);
    }
    targets
}

/// Returns the parts that an agent has, in any version. `read` returns the text of a file.
pub fn installed(
    agent: Agent,
    scope: Scope,
    locations: &Locations,
    program: &Program,
    read: impl Fn(&Path) -> Option<String>,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mcp = targets(agent, scope, &[Part::Mcp], locations, program);
    let has_mcp = mcp.iter().any(|target| {
        let presence = read(&target.path).and_then(|text| target.content.presence(&text).ok());
        presence.is_some_and(|presence| presence != Presence::Absent)
    });
    if has_mcp {
        parts.push(Part::Mcp);
    }
    for target in targets(agent, scope, &[Part::Checkpoints], locations, program) {
        let Some(text) = read(&target.path) else {
            continue;
        };
        let has = |wanted: hook::EventKind| {
            hook::events(agent).iter().any(|(event, kind)| {
                *kind == wanted
                    && match &target.content {
                        Content::Json(entries) => entries.iter().any(|entry| {
                            entry.is_in_array(event)
                                && json::find(&text, entry).is_ok_and(|found| found.is_some())
                        }),
                        content => content.is_our_file(&text) && text.contains(event),
                    }
            })
        };
        if has(hook::EventKind::Prompt) {
            parts.push(Part::Context);
        }
        if has(hook::EventKind::ToolCall) {
            parts.push(Part::Access);
        }
        if parts.contains(&Part::Access) && text.contains("--checkpoints") {
            parts.push(Part::Checkpoints);
        }
    }
    let commands = targets(agent, scope, &[Part::Commands], locations, program);
    let hides = commands.first().and_then(|target| {
        let text = read(&target.path)?;
        let presence = target.content.presence(&text).ok()?;
        let is_plugin = matches!(target.content, Content::Whole(..));
        Some(presence != Presence::Absent && (!is_plugin || plugin::sets_shell(&text)))
    });
    if hides == Some(true) {
        parts.push(Part::Commands);
    }
    if scope == Scope::User && crate::gateway::addresses::is_configured(agent, locations, read) {
        parts.push(Part::Gateway);
    }
    parts
}

fn mcp(agent: Agent, scope: Scope, program: &Program) -> Content {
    let command = program.path();
    let (parent, value) = match (agent, scope) {
        // Copilot CLI reads the file of Claude Code.
        (Agent::Claude, _) | (Agent::Copilot, Scope::Project) => (
            "mcpServers",
            json!({ "type": "stdio", "command": command, "args": ["mcp"], "env": {} }),
        ),
        (Agent::Codex, _) => {
            let mut table = toml_edit::Table::new();
            table.insert("command", toml_edit::value(command));
            table.insert(
                "args",
                toml_edit::value(toml_edit::Array::from_iter(["mcp"])),
            );
            // Codex passes few variables on. Without these, no running server is found.
            let variables = toml_edit::Array::from_iter(["XDG_DATA_HOME", "XDG_RUNTIME_DIR"]);
            table.insert("env_vars", toml_edit::value(variables));
            let heading = ["mcp_servers", NAME];
            return Content::Toml(Box::new(TomlTable {
                heading,
                table,
                program: program.clone(),
            }));
        }
        (Agent::Gemini | Agent::Qwen, _) => (
            "mcpServers",
            json!({ "command": command, "args": ["mcp"], "timeout": 30_000 }),
        ),
        (Agent::Copilot, Scope::User) => (
            "mcpServers",
            json!({ "type": "local", "command": command, "args": ["mcp"], "tools": ["*"] }),
        ),
        (Agent::Opencode, _) => (
            "mcp",
            json!({ "type": "local", "command": [command, "mcp"], "enabled": true }),
        ),
        (Agent::Cline, _) => ("mcpServers", json!({ "command": command, "args": ["mcp"] })),
    };
    Content::Json(vec![Entry {
        parent: vec![parent],
        slot: Slot::Member(NAME),
        value,
        program: program.clone(),
    }])
}

#[cfg(test)]
mod tests;
