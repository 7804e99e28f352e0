//! Settings that the configuration file of a project may make stricter.
//!
//! The file comes with a repository, which others may have written. So it can deny, hide and skip
//! more, but it cannot allow anything, open a connection, name a path, delete data or add text to
//! prompts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{DEFAULTS, values::get};

/// How a project may change a setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProjectRule {
    /// Only to this value.
    Only(Value),
    /// To a smaller number.
    AtMost,
    /// By more items.
    Add,
}

/// Settings with one strict value.
const STRICT: [(&str, &str); 7] = [
    ("access.secrets", "deny"),
    ("access.outsideWorkspace", "deny"),
    ("access.recursiveReaders", "deny"),
    ("access.mentions", "deny"),
    ("environment.ignoredFiles", "hide"),
    ("environment.outsideFiles", "hide"),
    ("checkpoints.turnNames", "none"),
];

impl ProjectRule {
    /// Returns how a project may change a setting. `None` if it may not.
    pub(super) fn of(path: &str) -> Option<Self> {
        if let Some((_, strict)) = STRICT.iter().find(|(name, _)| *name == path) {
            return Some(Self::Only(json!(strict)));
        }
        match path {
            "checkpoints.exclude" => Some(Self::Add),
            "checkpoints.maxFileSize" | "checkpoints.maxFiles" | "checkpoints.maxTotalSize" => {
                Some(Self::AtMost)
            }
            _ => {
                let section = path.strip_prefix("environment.sections.")?;
                get(&DEFAULTS, path)?;
                match section.split_once('.')?.1 {
                    "enabled" => Some(Self::Only(json!(false))),
                    "maxTokens" => Some(Self::AtMost),
                    _ => None,
                }
            }
        }
    }

    /// Returns the value of the setting `path` that replaces the current one. `None` if the current
    /// one, or the default, is as strict.
    pub(super) fn stricter(
        &self,
        path: &str,
        current: Option<&Value>,
        wanted: &Value,
    ) -> Option<Value> {
        let in_effect = current.or_else(|| get(&DEFAULTS, path));
        match self {
            Self::Only(strict) => (current != Some(strict)).then(|| strict.clone()),
            Self::AtMost => {
                let limit = in_effect.and_then(Value::as_u64);
                let wanted = wanted.as_u64()?;
                limit
                    .is_none_or(|limit| limit > wanted)
                    .then(|| json!(wanted))
            }
            Self::Add => {
                let current = in_effect?.as_array()?;
                let mut names: BTreeSet<&str> = current.iter().filter_map(Value::as_str).collect();
                let more: Vec<Value> = wanted
                    .as_array()?
                    .iter()
                    .filter(|name| name.as_str().is_some_and(|name| names.insert(name)))
                    .cloned()
                    .collect();
                (!more.is_empty()).then(|| [current.as_slice(), &more].concat().into())
            }
        }
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
