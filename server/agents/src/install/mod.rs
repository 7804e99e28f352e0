//! The configuration of agents: which files hold our entries, and how entries are added and
//! removed. Works on texts; the command line reads and writes the files.
//!
//! Read next: [`targets`] lists the files of an agent, [`Content`] edits one of them, and
//! [`patch`] undoes an edit byte for byte.

pub mod codex_trust;
mod hooks;
pub mod json;
mod json_text;
mod locations;
pub mod patch;
mod plugin;
pub mod probe;
mod program;
pub mod record;
mod setting;
pub mod switches;
pub mod toml;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub use locations::Locations;
pub(crate) use locations::VARIABLES;
pub use program::Program;
pub(crate) use switches::{DOTENV, SWITCH_VARIABLES};

use crate::{Agent, hook};
use hooks::Hooks;
use json::{Entry, Slot};
use record::RecordedFile;
use toml::TomlTable;

/// Name of the MCP server and of our entries.
const NAME: &str = "sightline";
/// Variable of Claude Code with a program that gets each command line as its argument, after it was approved.
pub const SHELL_PREFIX: &str = "CLAUDE_CODE_SHELL_PREFIX";

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
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 5] = [
        Self::Mcp,
        Self::Context,
        Self::Access,
        Self::Checkpoints,
        Self::Commands,
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

/// Our content of a file.
#[derive(Clone, Debug)]
pub enum Content {
    /// Entries of a JSON or JSONC file.
    Json(Vec<Entry>),
    /// A table of a TOML file.
    Toml(Box<TomlTable>),
    /// A file of our own, which starts this program.
    Whole(String, Program),
    /// The setting `access.commands` of Sightline.
    HideCommands,
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
    /// The text is not valid.
    Syntax {
        /// `JSON` or `TOML`.
        format: &'static str,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// The agent reads JSON without comments only, and ignores the file.
    Ignored {
        /// The agent's name for users.
        agent: &'static str,
        /// The line, from 1.
        line: usize,
    },
    /// This is not an object; names from the top.
    NotAnObject(Vec<String>),
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
            Self::Syntax {
                format,
                line,
                message,
            } => write!(f, "the file is not valid {format}, line {line}: {message}"),
            Self::Ignored { agent, line } => write!(
                f,
                "invalid JSON, line {line}: {agent} ignores the file (comments are not allowed, nor are trailing commas)"
            ),
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

impl Target {
    /// Checks that the agent can parse the text of the file.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(&self, text: &str) -> Result<(), EditError> {
        self.content.presence(text)?;
        match self.content {
            Content::Json(_) => json::check(text, self.agent),
            Content::Toml(_) | Content::Whole(..) | Content::HideCommands => Ok(()),
        }
    }
}

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
            Self::HideCommands => setting::add(text),
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
            Self::HideCommands => {
                let rest = setting::remove(text)?;
                (!rest.trim().is_empty()).then_some(rest)
            }
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
        match hook_lines(text) {
            Some(lines) => {
                let words = ["hook".to_owned()];
                let is_ours = |line: &String| program::program_of(program, line, &words).is_some();
                !lines.is_empty() && lines.iter().all(is_ours)
            }
            None => text.starts_with(plugin::FIRST_LINE),
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
        // The user may have set it.
        if matches!(self, Self::HideCommands) && recorded.is_none() {
            return Some(text.to_owned());
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
            Self::Toml(_) | Self::Whole(..) | Self::HideCommands => String::new(),
        }
    }

    /// Returns how a text names the program that our content starts. `None` if it has none of it.
    pub fn spelling(&self, text: &str) -> Option<String> {
        match self {
            Self::Json(entries) => entries
                .iter()
                .find_map(|entry| Some(json::find(text, entry).ok()??.program)),
            Self::Toml(table) => toml::spelling(text, table),
            Self::HideCommands => None,
            Self::Whole(..) if !self.is_our_file(text) => None,
            Self::Whole(_, program) => match hook_lines(text) {
                Some(lines) => {
                    let words = ["hook".to_owned()];
                    lines
                        .iter()
                        .find_map(|line| program::program_of(program, line, &words))
                }
                None => plugin::spelling(text),
            },
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
                let is_prefix = |entry: &&Entry| entry.slot == Slot::Member(SHELL_PREFIX);
                let count = entries.iter().filter(is_hook).count();
                let prefixes = entries.iter().filter(is_prefix).count();
                let prefix = (prefixes > 0).then(|| "prefix of commands".to_owned());
                let server = (count + prefixes < entries.len()).then(server);
                hooks(count)
                    .into_iter()
                    .chain(server)
                    .chain(prefix)
                    .collect()
            }
            Self::Toml(_) => vec![server()],
            Self::HideCommands => vec!["setting".to_owned()],
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
                .map(|entry| Ok(json::find(text, entry)?.map(|found| found.is_current)))
                .collect::<Result<_, EditError>>()?,
            Self::Toml(table) => vec![toml::find(text, table)?],
            Self::HideCommands => vec![setting::find(text)?],
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

/// Returns the command lines of a file with the hooks of Copilot CLI; a hook without one has an empty
/// line. `None` if the text is not JSON.
fn hook_lines(text: &str) -> Option<Vec<String>> {
    hook_lines_of(text, None)
}

/// The same for one event.
fn hook_lines_of(text: &str, event: Option<&str>) -> Option<Vec<String>> {
    let file: Value = serde_json::from_str(text).ok()?;
    let events = file["hooks"].as_object();
    let hooks = events
        .into_iter()
        .flatten()
        .filter(|(name, _)| event.is_none_or(|event| event == name.as_str()))
        .map(|(_, hooks)| hooks)
        .flat_map(|hooks| hooks.as_array().into_iter().flatten());
    Some(
        hooks
            .map(|hook| hook["bash"].as_str().unwrap_or_default().to_owned())
            .collect(),
    )
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
    let checkpoints = parts.contains(&Part::Checkpoints);
    let hooks = Hooks {
        context: checkpoints || parts.contains(&Part::Context),
        access: checkpoints || parts.contains(&Part::Access),
        checkpoints,
    };
    if hooks.context || hooks.access {
        put(locations.hooks(agent, scope), hooks.content(agent, program));
    }
    if parts.contains(&Part::Commands) && (agent, scope) == (Agent::Claude, Scope::User) {
        let prefix = Entry {
            parent: vec!["env"],
            slot: Slot::Member(SHELL_PREFIX),
            value: json!(program.path()),
            program: program.clone(),
        };
        put(locations.hooks(agent, scope), Content::Json(vec![prefix]));
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
    let prefix = commands.first().and_then(|target| {
        let text = read(&target.path)?;
        target.content.presence(&text).ok()
    });
    if prefix.is_some_and(|presence| presence != Presence::Absent) {
        parts.push(Part::Commands);
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
