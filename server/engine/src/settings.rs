//! Settings: merges the settings of configuration files and of the client, and fills in defaults.
//!
//! [`config_file`] reads the files, `project` says what the file of a project may set, and
//! [`sources`] merges. An invalid value is reported and replaced by its default; the server always
//! starts.

pub mod config_file;
#[cfg(test)]
mod file_tests;
pub mod models;
mod project;
pub mod sources;
#[cfg(test)]
mod tests;
pub mod values;
pub mod visible_to;

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
    sync::LazyLock,
};

use serde_json::{Map, Value};
use serde_path_to_error::Segment;
pub use sightline_protocol::settings::Settings;

use values::join;

/// Maximum number of invalid items that are left out of lists and of models one by one.
const MAX_INVALID_ITEMS: usize = 20;

/// All settings with their defaults. Settings without a default are `null`.
pub static DEFAULTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(Settings::default()).unwrap_or_default());

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

impl Problem {
    fn new(path: &str, message: String) -> Self {
        Self {
            path: path.to_owned(),
            message,
            file: None,
            line: None,
        }
    }

    fn of_value(path: &str, why: &str, value: &Value) -> Self {
        Self::new(path, format!("{why} (is {})", format_value(value)))
    }

    /// Returns the problem without the value.
    fn without_value(&self) -> &str {
        if self.message.starts_with("is unknown") {
            return &self.message;
        }
        let why = self.message.split_once(" (is ").map(|(why, _)| why);
        why.filter(|why| why.starts_with("must be "))
            .unwrap_or("has a value that is not allowed")
    }
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
    let (mut settings, problems) = Reader::default().read(merged);
    for agent in &settings.agents.connect {
        settings.bridges.connect(*agent);
    }
    (settings, problems)
}

/// Returns the invalid settings of a configuration file.
fn problems_in_file(values: &Value) -> Vec<Problem> {
    let reader = Reader {
        is_own_file: true,
        problems: Vec::new(),
    };
    reader.read(values).1
}

#[derive(Default)]
struct Reader {
    /// The settings are those of a configuration file of Sightline.
    is_own_file: bool,
    problems: Vec<Problem>,
}

impl Reader {
    fn read(mut self, merged: &Value) -> (Settings, Vec<Problem>) {
        let mut values = merged.as_object().cloned().unwrap_or_default();
        if let Value::Object(known) = &*DEFAULTS {
            self.leave_out_unknown(&mut values, known, "");
        }
        let mut values = Value::Object(values);
        loop {
            match serde_path_to_error::deserialize(&values) {
                Ok(settings) => return (settings, self.problems),
                Err(error) => {
                    let path: Vec<Segment> = error.path().iter().cloned().collect();
                    self.leave_out_invalid(&mut values, &path, &error.inner().to_string());
                }
            }
        }
    }

    /// Leaves out keys that the defaults do not have, and values in place of objects. Suggests a similar
    /// known key.
    fn leave_out_unknown(
        &mut self,
        values: &mut Map<String, Value>,
        known: &Map<String, Value>,
        path: &str,
    ) {
        values.retain(|key, value| {
            let full = join(path, key);
            match (known.get(key), value) {
                // Lua encodes an empty table as an array.
                (Some(Value::Object(_)), Value::Array(items)) if items.is_empty() => false,
                (_, Value::Null) => false,
                (Some(Value::Object(known)), Value::Object(fields)) => {
                    // Models have any key.
                    if !known.is_empty() {
                        self.leave_out_unknown(fields, known, &full);
                    }
                    true
                }
                (Some(Value::Object(_)), value) => {
                    let problem = Problem::of_value(&full, "must be an object", value);
                    self.problems.push(problem);
                    false
                }
                (Some(_), _) => true,
                (None, _) => {
                    match known.keys().find(|name| is_similar(name, key)) {
                        Some(near) => {
                            let message = format!("is unknown; did you mean `{near}`?");
                            self.problems.push(Problem::new(&full, message));
                        }
                        None if path.is_empty() && !self.is_own_file => {
                            tracing::info!(setting = full, "unknown setting ignored");
                        }
                        None => self
                            .problems
                            .push(Problem::new(&full, "is unknown".to_owned())),
                    }
                    false
                }
            }
        });
    }

    /// Leaves out an invalid value: a setting, or an item of a list or model of a setting.
    fn leave_out_invalid(&mut self, values: &mut Value, path: &[Segment], why: &str) {
        let mut default = &*DEFAULTS;
        let mut length = 0;
        while let Some(Segment::Map { key }) = path.get(length)
            && let Some(known) = default.get(key)
        {
            default = known;
            length += 1;
        }
        let has_items = default.is_array() || default.is_object();
        if has_items && length < path.len() && self.problems.len() < MAX_INVALID_ITEMS {
            length += 1;
        }
        let path = &path[..length];
        let name = path.iter().fold(String::new(), |name, key| match key {
            Segment::Map { key } => join(&name, key),
            _ => name,
        });
        // If there is no such value, the defaults remain, which are valid.
        let value = take(values, path)
            .unwrap_or_else(|| std::mem::replace(values, Value::Object(Map::new())));
        let why = in_plain_words(why);
        self.problems.push(Problem::of_value(&name, &why, &value));
    }
}

fn take(values: &mut Value, path: &[Segment]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let parent = above.iter().try_fold(values, |value, key| match key {
        Segment::Map { key } => value.get_mut(key),
        _ => None,
    })?;
    match (parent, last) {
        (Value::Object(fields), Segment::Map { key }) => fields.remove(key),
        (Value::Array(items), Segment::Seq { index }) if *index < items.len() => {
            Some(items.remove(*index))
        }
        _ => None,
    }
}

/// Rephrases a message of serde for users.
fn in_plain_words(why: &str) -> String {
    // The value before it can be any text.
    let Some((problem, expected)) = why.rsplit_once(", expected ") else {
        return why.to_owned();
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "a boolean" => "true or false",
        // An enum.
        "string or map" => "a string",
        other => other,
    };
    match problem.split_once(' ') {
        Some(("unknown" | "invalid", _)) => format!("must be {expected}"),
        _ => why.to_owned(),
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
