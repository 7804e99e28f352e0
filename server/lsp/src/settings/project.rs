//! Settings that the configuration file of a project may make stricter.
//!
//! The file comes with a repository, which others may have written. So it can deny, hide and skip
//! more, but it cannot allow anything, open a connection, name a path, delete data or add text to
//! prompts.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sightline_checkpoint as checkpoint;
use sightline_protocol::environment::SectionId;
use sightline_workspace::environment::BlockSettings;

/// How a project may change a setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProjectRule {
    /// Only to this value.
    Only(Value),
    /// To a smaller number. With the default, unless there is no limit by default.
    AtMost(Option<u64>),
    /// By more items. With the default.
    Add(Vec<String>),
}

/// Settings with one strict value.
const STRICT: [(&str, &str); 6] = [
    ("access.secrets", "deny"),
    ("access.outsideWorkspace", "deny"),
    ("access.recursiveReaders", "deny"),
    ("access.mentions", "deny"),
    ("environment.ignoredFiles", "hide"),
    ("environment.outsideFiles", "hide"),
];

impl ProjectRule {
    /// Returns how a project may change a setting. `None` if it may not.
    pub(super) fn of(path: &str) -> Option<Self> {
        if let Some((_, strict)) = STRICT.iter().find(|(name, _)| *name == path) {
            return Some(Self::Only(json!(strict)));
        }
        let default = checkpoint::Settings::default;
        Some(match path {
            "checkpoints.exclude" => Self::Add(default().exclude),
            "checkpoints.maxFileSize" => Self::AtMost(Some(default().max_file_size)),
            "checkpoints.maxFiles" => Self::AtMost(Some(default().max_files)),
            "checkpoints.maxTotalSize" => Self::AtMost(Some(default().max_total_size)),
            _ => {
                let section = path.strip_prefix("environment.sections.")?;
                let (section, option) = section.split_once('.')?;
                let section: SectionId = serde_json::from_value(json!(section)).ok()?;
                let default = BlockSettings::default().rule(section);
                match option {
                    "enabled" => Self::Only(json!(false)),
                    "maxTokens" => Self::AtMost(default.max_tokens.map(|tokens| tokens as u64)),
                    _ => return None,
                }
            }
        })
    }

    /// Returns the value that replaces the current one. `None` if the current one is as strict.
    pub(super) fn stricter(&self, current: Option<&Value>, wanted: &Value) -> Option<Value> {
        let value = match self {
            Self::Only(strict) => strict.clone(),
            Self::AtMost(default) => {
                let current = current.and_then(Value::as_u64).or(*default);
                let wanted = wanted.as_u64()?;
                if current.is_some_and(|current| current <= wanted) {
                    return None;
                }
                json!(wanted)
            }
            Self::Add(default) => {
                let names = |value: &Value| serde_json::from_value::<Vec<String>>(value.clone());
                let current = current.and_then(|value| names(value).ok());
                let mut all = current.unwrap_or_else(|| default.clone());
                let known: BTreeSet<String> = all.iter().cloned().collect();
                let wanted = names(wanted).ok()?.into_iter();
                all.extend(wanted.filter(|name| !known.contains(name)));
                if all.len() == known.len() {
                    return None;
                }
                json!(all)
            }
        };
        (current != Some(&value)).then_some(value)
    }
}

/// Returns the settings that apply while the file of a project cannot be used: what it denied stays
/// denied.
pub(super) fn strict_settings() -> Value {
    let mut values = json!({});
    for (path, strict) in STRICT {
        super::values::set(&mut values, path, json!(strict));
    }
    values
}
