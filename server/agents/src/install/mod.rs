//! The configuration of agents: which files hold our entries, and how entries are added and
//! removed. Works on texts; the command line reads and writes the files.
//!
//! Read next: [`targets`] lists the files of an agent, [`Content`] edits one of them, and
//! [`patch`] undoes an edit byte for byte.

pub mod codex_trust;
pub mod json;
mod locations;
pub mod patch;
mod plugin;
mod program;
pub mod record;
pub mod toml;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub use locations::Locations;
pub use program::Program;

use crate::{Agent, hook};
use json::{Entry, Slot};
use record::RecordedFile;
use toml::TomlTable;

/// Name of the MCP server and of our entries.
const NAME: &str = "sightline";
/// Time after which an agent gives up a hook, in seconds. The hook has a shorter deadline of its
/// own, because an agent runs the tool if the hook is too slow.
const HOOK_TIMEOUT: u32 = 10;

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
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 4] = [Self::Mcp, Self::Context, Self::Access, Self::Checkpoints];

    /// The parts that are installed if none are named.
    pub const DEFAULT: [Self; 3] = [Self::Mcp, Self::Context, Self::Access];

    /// Returns the name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Context => "context",
            Self::Access => "access",
            Self::Checkpoints => "checkpoints",
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
    /// The file.
    pub path: PathBuf,
    /// Our content.
    pub content: Content,
}

/// Our content of a file.
#[derive(Clone, Debug)]
pub enum Content {
    /// Entries of a JSON or JSONC file.
    Json(Vec<Entry>),
    /// A table of a TOML file.
    Toml(Box<TomlTable>),
    /// A file of our own, which starts this program.
    Whole(String, Program),
}

/// How much of our content a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// None.
    Absent,
    /// All, as it would be installed now.
    Current,
    /// A part, or another version.
    Outdated,
}

/// A file that cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The text is not valid; the parser's message.
    Syntax(String),
    /// This is not an object; names from the top.
    NotAnObject(Vec<&'static str>),
    /// This is not an array.
    NotAnArray(&'static str),
    /// The table is written inline, so no table can be added below it.
    InlineTable(&'static str),
    /// An entry with our name starts another program.
    NotOurs(String),
    /// The file was not written by this program.
    NotOurFile,
    /// A name is written twice in one object.
    DuplicateName(String),
    /// The edit would change something else.
    OtherChange,
}

impl std::fmt::Display for EditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax(message) => write!(f, "the file is not valid: {message}"),
            Self::NotAnObject(names) if names.is_empty() => {
                f.write_str("the file is not an object")
            }
            Self::NotAnObject(names) => write!(f, "`{}` is not an object", names.join(".")),
            Self::NotAnArray(name) => write!(f, "`{name}` is not an array"),
            Self::InlineTable(name) => {
                write!(
                    f,
                    "`{name}` is an inline table; write it as [{name}.NAME] tables"
                )
            }
            Self::NotOurs(name) => write!(
                f,
                "`{name}` is there, but does not start `sightline mcp`; rename or remove it"
            ),
            Self::NotOurFile => {
                f.write_str("the file is there, but `sightline agents install` did not write it; rename or remove it")
            }
            Self::DuplicateName(name) => {
                write!(f, "`{name}` is written twice; remove one of them")
            }
            Self::OtherChange => f.write_str(
                "the entry cannot be changed without changing others; change it by hand",
            ),
        }
    }
}

impl std::error::Error for EditError {}

impl Content {
    /// Returns the text with our content. `text` is `None` if there is no file.
    ///
    /// # Errors
    /// If the file cannot be edited.
    pub fn add(&self, text: Option<&str>) -> Result<String, EditError> {
        let text = text.unwrap_or_default();
        match self {
            Self::Json(entries) => json::add(text, entries).map(|added| {
                // A new file ends with a line break.
                if text.is_empty() {
                    format!("{added}\n")
                } else {
                    added
                }
            }),
            Self::Toml(table) => toml::add(text, table),
            Self::Whole(..) if !text.trim().is_empty() && !self.is_our_file(text) => {
                Err(EditError::NotOurFile)
            }
            Self::Whole(content, _) => Ok(content.clone()),
        }
    }

    /// Returns the text without our content, or `None` if nothing else is left.
    ///
    /// # Errors
    /// If the file cannot be edited.
    pub fn remove(&self, text: &str) -> Result<Option<String>, EditError> {
        Ok(match self {
            Self::Json(entries) => {
                let rest = json::remove(text, entries)?;
                (!json::is_empty(&rest)).then_some(rest)
            }
            Self::Toml(table) => {
                let rest = toml::remove(text, table)?;
                (!rest.trim().is_empty()).then_some(rest)
            }
            Self::Whole(..) => (!self.is_our_file(text)).then(|| text.to_owned()),
        })
    }

    /// Returns whether a whole file is ours, in any version.
    fn is_our_file(&self, text: &str) -> bool {
        let Self::Whole(content, program) = self else {
            return false;
        };
        if text == content {
            return true;
        }
        // The plugins begin with this line; the hooks of Copilot run our program only.
        match serde_json::from_str::<Value>(text) {
            Ok(file) => {
                let events = file["hooks"].as_object();
                let hooks = events
                    .into_iter()
                    .flat_map(|events| events.values())
                    .flat_map(|hooks| hooks.as_array().into_iter().flatten());
                let lines: Vec<Option<&str>> = hooks.map(|hook| hook["bash"].as_str()).collect();
                let words = ["hook".to_owned()];
                !lines.is_empty()
                    && lines
                        .iter()
                        .all(|line| line.is_some_and(|line| program::runs(program, line, &words)))
            }
            Err(_) => text.starts_with(plugin::FIRST_LINE),
        }
    }

    /// Returns the text as it was before our content was added; `None` if there was no file.
    /// `self` is the content with all parts, and `recorded` the last change. If something else has
    /// changed the file since, the rest is what is not ours.
    pub fn original(&self, text: Option<&str>, recorded: Option<&RecordedFile>) -> Option<String> {
        let text = text?;
        let created = recorded.is_some_and(|file| file.created);
        if let Some(original) = recorded.and_then(|file| file.patch.apply(text)) {
            return (!created).then_some(original);
        }
        match (self.presence(text), self.remove(text)) {
            (Ok(Presence::Current | Presence::Outdated), Ok(rest)) if rest.is_some() || created => {
                rest
            }
            // Others may have created a file of entries; a whole file is ours.
            (Ok(Presence::Current | Presence::Outdated), Ok(_)) => {
                (!matches!(self, Self::Whole(..))).then(|| self.empty())
            }
            _ => Some(text.to_owned()),
        }
    }

    /// Returns a file without entries.
    pub fn empty(&self) -> String {
        match self {
            Self::Json(_) => "{}\n".to_owned(),
            Self::Toml(_) | Self::Whole(..) => String::new(),
        }
    }

    /// Returns what an agent gets, such as `3 hooks`.
    pub fn summary(&self) -> Vec<String> {
        let hooks = |count: usize| match count {
            0 => None,
            1 => Some("1 hook".to_owned()),
            count => Some(format!("{count} hooks")),
        };
        let server = || "MCP server".to_owned();
        match self {
            Self::Json(entries) => {
                let is_hook = |entry: &&Entry| matches!(entry.slot, Slot::Element { .. });
                let count = entries.iter().filter(is_hook).count();
                let server = (count < entries.len()).then(server);
                hooks(count).into_iter().chain(server).collect()
            }
            Self::Toml(_) => vec![server()],
            Self::Whole(text, _) if text.starts_with(plugin::FIRST_LINE) => {
                vec!["plugin".to_owned()]
            }
            // Each line with a hook of Copilot CLI has one command.
            Self::Whole(text, _) => hooks(text.matches("\"bash\"").count())
                .into_iter()
                .collect(),
        }
    }

    /// Returns how much of our content a text has.
    ///
    /// # Errors
    /// If the file cannot be parsed.
    pub fn presence(&self, text: &str) -> Result<Presence, EditError> {
        let found: Vec<Option<bool>> = match self {
            Self::Json(entries) => entries
                .iter()
                .map(|entry| json::find(text, entry))
                .collect::<Result<_, EditError>>()?,
            Self::Toml(table) => vec![toml::find(text, table)?],
            Self::Whole(content, _) => vec![self.is_our_file(text).then_some(text == content)],
        };
        Ok(if found.iter().all(Option::is_none) {
            Presence::Absent
        } else if found.iter().all(|entry| *entry == Some(true)) {
            Presence::Current
        } else {
            Presence::Outdated
        })
    }
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
            (_, content) => targets.push(Target { path, content }),
        }
    };
    if parts.contains(&Part::Mcp) {
        put(locations.mcp(agent, scope), mcp(agent, program));
    }
    let checkpoints = parts.contains(&Part::Checkpoints);
    let hooks = Hooks {
        context: checkpoints || parts.contains(&Part::Context),
        access: checkpoints || parts.contains(&Part::Access),
        checkpoints,
    };
    if hooks.context || hooks.access {
        put(locations.hooks(agent, scope), hooks.content(agent, program));
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
    parts
}

fn mcp(agent: Agent, program: &Program) -> Content {
    let command = program.path();
    let (parent, value) = match agent {
        Agent::Claude => (
            "mcpServers",
            json!({ "type": "stdio", "command": command, "args": ["mcp"], "env": {} }),
        ),
        Agent::Codex => {
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
        Agent::Gemini | Agent::Qwen => (
            "mcpServers",
            json!({ "command": command, "args": ["mcp"], "timeout": 30_000 }),
        ),
        Agent::Copilot => (
            "mcpServers",
            json!({ "type": "local", "command": command, "args": ["mcp"], "tools": ["*"] }),
        ),
        Agent::Opencode => (
            "mcp",
            json!({ "type": "local", "command": [command, "mcp"], "enabled": true }),
        ),
        Agent::Cline => ("mcpServers", json!({ "command": command, "args": ["mcp"] })),
    };
    Content::Json(vec![Entry {
        parent: vec![parent],
        slot: Slot::Member(NAME),
        value,
        program: program.clone(),
    }])
}

/// The hooks to install.
struct Hooks {
    context: bool,
    access: bool,
    checkpoints: bool,
}

impl Hooks {
    /// Returns the events of an agent, with whether they concern tools.
    fn events(&self, agent: Agent) -> Vec<(&'static str, bool)> {
        use hook::EventKind::{Prompt, SessionStart, ToolCall};
        let wanted = |kind| match kind {
            SessionStart | Prompt => self.context,
            ToolCall => self.access,
        };
        let events = hook::events(agent).iter().filter(|(_, kind)| wanted(*kind));
        events
            .map(|(name, kind)| (*name, *kind == ToolCall))
            .collect()
    }

    fn arguments(&self, agent: Agent, event: &str) -> Vec<String> {
        let mut arguments = vec!["hook", event, "--agent", agent.name()];
        if self.checkpoints {
            arguments.push("--checkpoints");
        }
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn content(&self, agent: Agent, program: &Program) -> Content {
        match agent {
            Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Qwen => {
                let events = self.events(agent).into_iter();
                Content::Json(
                    events
                        .map(|(event, of_tools)| Entry {
                            parent: vec!["hooks"],
                            slot: Slot::Element {
                                array: event,
                                words: ["hook", event, "--agent", agent.name()]
                                    .map(str::to_owned)
                                    .to_vec(),
                            },
                            value: self.group(agent, event, of_tools, program),
                            program: program.clone(),
                        })
                        .collect(),
                )
            }
            Agent::Copilot => {
                let events = self.events(agent).into_iter().map(|(event, _)| {
                    let bash = program.guarded(&self.arguments(agent, event));
                    let hook =
                        json!({ "type": "command", "bash": bash, "timeoutSec": HOOK_TIMEOUT });
                    (event.to_owned(), json!([hook]))
                });
                let file = json!({ "version": 1, "hooks": Value::Object(events.collect()) });
                Content::Whole(format!("{file:#}\n"), program.clone())
            }
            Agent::Opencode => Content::Whole(plugin::opencode(self, program), program.clone()),
            Agent::Cline => Content::Whole(plugin::cline(self, program), program.clone()),
        }
    }

    /// Returns a group of hooks for one event.
    fn group(&self, agent: Agent, event: &str, of_tools: bool, program: &Program) -> Value {
        let arguments = self.arguments(agent, event);
        let (hook, matcher) = match agent {
            // Started without a shell.
            Agent::Claude => (
                json!({ "type": "command", "command": program.path(), "args": arguments, "timeout": HOOK_TIMEOUT }),
                "*",
            ),
            Agent::Codex => (
                json!({ "type": "command", "command": program.shell_line(&arguments), "timeout": HOOK_TIMEOUT }),
                ".*",
            ),
            // gemini-cli refuses every prompt if the program is missing.
            _ => (
                json!({ "type": "command", "name": NAME, "command": program.guarded(&arguments), "timeout": HOOK_TIMEOUT * 1000 }),
                ".*",
            ),
        };
        if of_tools {
            json!({ "matcher": matcher, "hooks": [hook] })
        } else {
            json!({ "hooks": [hook] })
        }
    }
}

#[cfg(test)]
mod tests;
