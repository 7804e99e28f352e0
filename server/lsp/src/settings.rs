//! Settings: merges the settings of configuration files and of the client, and resolves defaults.
//!
//! [`config_file`] reads the files, `project` says what the file of a project may set, and
//! [`sources`] merges. An invalid value is reported and replaced by its default; the server always
//! starts.

mod checkpoints;
pub mod config_file;
mod conversation;
#[cfg(test)]
mod file_tests;
mod project;
pub mod sources;
#[cfg(test)]
mod tests;
mod values;

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    path::PathBuf,
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use sightline_checkpoint as checkpoint;
use sightline_protocol::{
    environment::SectionId,
    settings::{self as wire, LogLevel, Mentions, OutsideWorkspace, RecursiveReaders, Secrets},
};
use sightline_workspace::environment::BlockSettings;

pub use conversation::ConversationSettings;

/// Resolved settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The data directory, if configured.
    pub storage_path: Option<PathBuf>,
    /// Show command results to the user. `None`: depends on the client.
    pub show_results: Option<bool>,
    /// The environment block.
    pub block: BlockSettings,
    /// Whether files that usually contain secrets may be read.
    pub secrets: Secrets,
    /// Access outside the workspace.
    pub outside_workspace: OutsideWorkspace,
    /// Commands that read whole directories containing denied files.
    pub recursive_readers: RecursiveReaders,
    /// Denied files that a prompt mentions.
    pub mentions: Mentions,
    /// First words of commands that may see hidden files.
    pub visible_to: Vec<String>,
    /// The IDE protocols of agents.
    pub bridges: Bridges,
    /// Conversation truncation and its notices.
    pub conversation: ConversationSettings,
    /// What checkpoints capture.
    pub checkpoints: checkpoint::Settings,
    /// Diagnostics in open documents.
    pub diagnostics: Diagnostics,
    /// Retention of stored tasks.
    pub tasks: wire::TaskSettings,
    /// Log level.
    pub log_level: LogLevel,
    /// Log file, instead of stderr.
    pub log_file: Option<PathBuf>,
    /// Send `sightline/did…` notifications.
    pub notifications: bool,
}

/// The IDE protocols of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridges {
    /// Claude Code and opencode.
    pub claude_ide: bool,
    /// gemini-cli and Qwen Code.
    pub gemini_ide: bool,
    /// Copilot CLI.
    pub copilot_ide: bool,
    /// Codex.
    pub codex_ide: bool,
    /// Send selected text.
    pub selection: bool,
    /// Send nothing.
    pub pause: bool,
}

impl Default for Bridges {
    fn default() -> Self {
        Self {
            claude_ide: false,
            gemini_ide: false,
            copilot_ide: false,
            codex_ide: false,
            selection: true,
            pause: false,
        }
    }
}

impl Bridges {
    fn read(reader: &mut Reader<'_>) -> Self {
        let default = Self::default();
        let mut flag = |path: &str, default| reader.read(path).unwrap_or(default);
        Self {
            claude_ide: flag("bridges.claudeIde", default.claude_ide),
            gemini_ide: flag("bridges.geminiIde", default.gemini_ide),
            copilot_ide: flag("bridges.copilotIde", default.copilot_ide),
            codex_ide: flag("bridges.codexIde", default.codex_ide),
            selection: flag("bridges.selection", default.selection),
            pause: flag("bridges.pause", default.pause),
        }
    }
}

/// Diagnostics in open documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// Problems in `.clineignore`.
    pub rules: bool,
    /// Files that changed since the last checkpoint.
    pub changed_files: bool,
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self {
            rules: true,
            changed_files: false,
        }
    }
}

/// An invalid setting, or an invalid configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Path of the setting, such as `environment.ignoredFiles`. Empty for a whole file.
    pub path: String,
    /// The problem, with the value.
    pub message: String,
    /// The configuration file, unless the client sent the setting.
    pub file: Option<PathBuf>,
    /// Line in the file.
    pub line: Option<usize>,
}

impl Display for Problem {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{}:", file.display())?;
            if let Some(line) = self.line {
                write!(formatter, "{line}:")?;
            }
            write!(formatter, " ")?;
        }
        if !self.path.is_empty() {
            write!(formatter, "`{}` ", self.path)?;
        }
        write!(formatter, "{}", self.message)
    }
}

/// Resolves merged settings. Returns the invalid ones as well. Unknown top-level keys of a client may
/// belong to other tools; they are only reported if they look like a typo.
pub fn resolve(merged: &Value) -> (Settings, Vec<Problem>) {
    Reader::new(merged).settings()
}

/// Returns the invalid settings of a configuration file.
fn problems_in_file(values: &Value) -> Vec<Problem> {
    let mut reader = Reader::new(values);
    reader.is_own_file = true;
    reader.settings().1
}
const TOP_LEVEL_KEYS: [&str; 11] = [
    "storage",
    "commands",
    "environment",
    "access",
    "conversation",
    "tasks",
    "checkpoints",
    "diagnostics",
    "bridges",
    "log",
    "notifications",
];

const SECTIONS: [(&str, &[&str]); 11] = [
    ("diagnostics", &["rules", "changedFiles"]),
    ("storage", &["path"]),
    ("commands", &["showResults"]),
    ("environment", &["ignoredFiles", "outsideFiles", "sections"]),
    (
        "access",
        &[
            "secrets",
            "outsideWorkspace",
            "recursiveReaders",
            "mentions",
            "visibleTo",
        ],
    ),
    (
        "bridges",
        &[
            "claudeIde",
            "geminiIde",
            "copilotIde",
            "codexIde",
            "selection",
            "pause",
        ],
    ),
    ("conversation", &["profile", "notices", "models"]),
    ("tasks", &["maxAgeDays", "maxCount", "maxBytes"]),
    (
        "conversation.notices",
        &["duplicateFileRead", "truncation", "missingToolResult"],
    ),
    (
        "checkpoints",
        &[
            "maxFileSize",
            "exclude",
            "maxFiles",
            "maxTotalSize",
            "keepAutomatic",
        ],
    ),
    ("log", &["level", "file"]),
];

fn section_name(id: SectionId) -> String {
    match serde_json::to_value(id) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

struct Reader<'a> {
    root: &'a Value,
    /// The settings are those of a configuration file of Sightline.
    is_own_file: bool,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            is_own_file: false,
            problems: Vec::new(),
        }
    }

    fn settings(mut self) -> (Settings, Vec<Problem>) {
        let reader = &mut self;
        reader.report_unknown_keys("", &TOP_LEVEL_KEYS);
        for (section, keys) in SECTIONS {
            reader.report_unknown_keys(section, keys);
        }
        let environment = wire::EnvironmentSettings {
            ignored_files: reader.read("environment.ignoredFiles"),
            outside_files: reader.read("environment.outsideFiles"),
            sections: Some(reader.sections()),
        };
        let conversation = ConversationSettings::read(reader);
        let tasks = wire::TaskSettings {
            max_age_days: reader.read("tasks.maxAgeDays"),
            max_count: reader.read("tasks.maxCount"),
            max_bytes: reader.read("tasks.maxBytes"),
        };
        let checkpoints = checkpoints::read(reader);
        let marked = Diagnostics::default();
        let diagnostics = Diagnostics {
            rules: reader.read("diagnostics.rules").unwrap_or(marked.rules),
            changed_files: reader
                .read("diagnostics.changedFiles")
                .unwrap_or(marked.changed_files),
        };
        let bridges = Bridges::read(reader);
        let settings = Settings {
            storage_path: reader.absolute("storage.path"),
            show_results: reader.read("commands.showResults"),
            block: BlockSettings::resolve(Some(&environment)),
            secrets: reader.read("access.secrets").unwrap_or_default(),
            outside_workspace: reader.read("access.outsideWorkspace").unwrap_or_default(),
            recursive_readers: reader.read("access.recursiveReaders").unwrap_or_default(),
            mentions: reader.read("access.mentions").unwrap_or_default(),
            visible_to: reader.read("access.visibleTo").unwrap_or_default(),
            bridges,
            conversation,
            checkpoints,
            diagnostics,
            tasks,
            log_level: reader.read("log.level").unwrap_or_default(),
            log_file: reader.absolute("log.file"),
            notifications: reader.read("notifications").unwrap_or(false),
        };
        (settings, self.problems)
    }

    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.')
            .filter(|part| !part.is_empty())
            .try_fold(self.root, |value, part| value.get(part))
            .filter(|value| !value.is_null())
    }

    fn read<T: DeserializeOwned>(&mut self, path: &str) -> Option<T> {
        let value = self.at(path)?;
        match T::deserialize(value) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!("{error} (is {})", format_value(value));
                self.problem(path, message);
                None
            }
        }
    }

    fn sections(&mut self) -> BTreeMap<SectionId, wire::SectionSettings> {
        let names: Vec<String> = SectionId::ALL.into_iter().map(section_name).collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        self.report_unknown_keys("environment.sections", &known);
        let mut sections = BTreeMap::new();
        for (id, name) in SectionId::ALL.into_iter().zip(&names) {
            let path = format!("environment.sections.{name}");
            self.report_unknown_keys(&path, &["enabled", "maxTokens"]);
            let section = wire::SectionSettings {
                enabled: self.read(&format!("{path}.enabled")),
                max_tokens: self.read(&format!("{path}.maxTokens")),
            };
            sections.insert(id, section);
        }
        sections
    }

    fn absolute(&mut self, path: &str) -> Option<PathBuf> {
        let text: String = self.read(path)?;
        let value = PathBuf::from(&text);
        if !value.is_absolute() {
            self.problem(path, format!("must be an absolute path (is {text:?})"));
            return None;
        }
        Some(value)
    }

    /// Reports unknown keys of an object, and suggests a similar known key.
    fn report_unknown_keys(&mut self, path: &str, known: &[&str]) {
        let Some(Value::Object(fields)) = self.at(path) else {
            if let Some(value) = self.at(path).filter(|value| !value.is_object()) {
                let message = format!("must be an object (is {})", format_value(value));
                self.problem(path, message);
            }
            return;
        };
        let unknown: Vec<String> = fields
            .keys()
            .filter(|key| !known.contains(&key.as_str()))
            .cloned()
            .collect();
        for key in unknown {
            let near = known.iter().find(|name| is_similar(name, &key));
            let full = if path.is_empty() {
                key
            } else {
                format!("{path}.{key}")
            };
            match near {
                Some(near) => self.problem(&full, format!("is unknown; did you mean `{near}`?")),
                None if path.is_empty() && !self.is_own_file => {
                    tracing::info!(setting = full, "unknown setting ignored");
                }
                None => self.problem(&full, "is unknown".to_owned()),
            }
        }
    }

    fn problem(&mut self, path: &str, message: String) {
        self.problems.push(Problem {
            path: path.to_owned(),
            message,
            file: None,
            line: None,
        });
    }
}

/// Formats a value for a message.
fn format_value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

/// Returns whether two keys differ only in case or in one character.
fn is_similar(known: &str, key: &str) -> bool {
    let (a, b) = (known.to_lowercase(), key.to_lowercase());
    if a == b {
        return true;
    }
    let prefix = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let suffix = a
        .chars()
        .rev()
        .zip(b.chars().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let longest = a.chars().count().max(b.chars().count());
    a.chars().count().abs_diff(b.chars().count()) <= 1 && prefix + suffix + 1 >= longest
}
