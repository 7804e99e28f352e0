//! Takes denied files out of what a server sends: its results, and requests and notifications that
//! carry text.

use std::{
    borrow::Cow,
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use sightline_access::{
    AccessView,
    redact::{
        HiddenContents, MIN_VALUE_BYTES, Redacted, Redactor, contents_notice, without_colors,
    },
};
use sightline_base::plural::plural;

use sightline_agents::judge::Refusal;
use sightline_protocol::{access::AccessRule, decision::HiddenFile};

use crate::names::{Hidden, Names};

/// Maximum size of the text of a result, in bytes.
const MAX_TEXT: usize = 4 << 20;
/// Time to judge a result.
const LIMIT: Duration = if cfg!(debug_assertions) {
    Duration::from_secs(5)
} else {
    Duration::from_millis(250)
};
/// Parts of the names of members whose value is a path, also without a separator.
const PATH_MEMBERS: &[&str] = &["name", "path", "file", "uri", "title", "target", "source"];

/// What to do with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Changed,
    /// It names this denied file.
    Removed(Hidden),
}

/// A result or params without denied files.
pub(crate) struct Cleaned {
    pub(crate) changed: bool,
    /// The files that were hidden.
    pub(crate) hidden: Vec<HiddenFile>,
}

/// Why a result is left out.
pub(crate) enum Left {
    /// It contains denied files.
    Denied(Box<Refusal>),
    /// It cannot be judged.
    Unjudged(String),
}

impl From<String> for Left {
    fn from(why: String) -> Self {
        Self::Unjudged(why)
    }
}

/// How a result is judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Folders from which paths may start, besides the roots.
    pub(crate) folders: Vec<PathBuf>,
    /// Why the call is refused unless its result is a list of files.
    pub(crate) only_names: Option<Box<Refusal>>,
    /// Only whole files are hidden: resources, and links to them.
    pub(crate) passes_text: bool,
}

/// Takes denied files out of a result or the params of a message.
///
/// # Errors
/// If it cannot be judged.
pub(crate) fn clean(
    view: &AccessView,
    contents: &HiddenContents,
    scope: &Scope,
    value: &mut Value,
) -> Result<Cleaned, Left> {
    let folder = scope.folders.first().and_then(|folder| folder.to_str());
    let mut cleaner = Cleaner {
        redactor: Redactor::new(view, contents, folder),
        names: Names::new(view, scope.folders.iter().cloned()),
        scope,
        hidden: HashMap::new(),
        redacted: Vec::new(),
        left: MAX_TEXT,
        end: Instant::now() + LIMIT,
    };
    if let Some(why) = &scope.only_names
        && !cleaner.lists_names(value)
    {
        return Err(Left::Denied(why.clone()));
    }
    let changed = match value {
        Value::Object(members) => cleaner.payload(members)?,
        _ => false,
    };
    let hidden = cleaner.hidden.len();
    if hidden > 0
        && let Some(content) = value.get_mut("content").and_then(Value::as_array_mut)
    {
        let note = format!("[Sightline: {} hidden.]", plural(hidden, "name"));
        content.push(json!({ "type": "text", "text": note }));
    }
    let named = |(path, rule)| HiddenFile {
        path,
        rule,
        count: 1,
    };
    let names = cleaner.hidden.into_iter().map(named);
    Ok(Cleaned {
        changed: changed || hidden > 0,
        hidden: cleaner.redacted.into_iter().chain(names).collect(),
    })
}

struct Cleaner<'a> {
    redactor: Redactor<'a>,
    names: Names<'a>,
    scope: &'a Scope,
    /// The files whose names were removed.
    hidden: HashMap<String, Option<AccessRule>>,
    /// The files whose contents were replaced.
    redacted: Vec<HiddenFile>,
    /// Number of bytes of text that may follow.
    left: usize,
    end: Instant,
}

impl Cleaner<'_> {
    /// Cleans the members of a result. Returns whether they changed.
    fn payload(&mut self, members: &mut Map<String, Value>) -> Result<bool, String> {
        let mut changed = false;
        for (name, value) in members {
            changed |= match (name.as_str(), value) {
                ("content" | "contents", Value::Array(items)) => {
                    let mut changed = false;
                    for item in items {
                        changed |= self.item(item)?;
                    }
                    changed
                }
                ("content", value @ Value::Object(_)) => self.item(value)?,
                ("messages", Value::Array(messages)) => {
                    let mut changed = false;
                    for message in messages.iter_mut().filter_map(Value::as_object_mut) {
                        changed |= self.payload(message)?;
                    }
                    changed
                }
                (_, value) => self.member(value, None)? != Fate::Kept,
            };
        }
        Ok(changed)
    }

    /// Cleans an item of a content. Returns whether it changed.
    fn item(&mut self, item: &mut Value) -> Result<bool, String> {
        let Some(members) = item.as_object_mut() else {
            return Ok(self.member(item, None)? != Fate::Kept);
        };
        let kind = members
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "text" | "image" | "audio" => self.parts(members),
            "resource" | "resource_link" | "" => {
                let is_contents = kind.is_empty();
                let resource = match members.get("resource").and_then(Value::as_object) {
                    Some(resource) if kind == "resource" => resource,
                    _ => members,
                };
                let uri = resource.get("uri").and_then(Value::as_str);
                if let Some(denial) = uri.and_then(|uri| self.names.denial(uri)) {
                    let text = contents_notice(&denial.path, denial.rule.as_ref());
                    let count = 1;
                    self.redacted.push(HiddenFile {
                        path: denial.path,
                        rule: denial.rule,
                        count,
                    });
                    *item = if is_contents {
                        let uri = resource.get("uri").cloned();
                        json!({ "uri": uri, "mimeType": "text/plain", "text": text })
                    } else {
                        json!({ "type": "text", "text": text })
                    };
                    return Ok(true);
                }
                self.parts(members)
            }
            _ => Ok(self.member(item, None)? != Fate::Kept),
        }
    }

    /// Cleans all members of an item but its kind and data that is no text.
    fn parts(&mut self, members: &mut Map<String, Value>) -> Result<bool, String> {
        let mut changed = false;
        for (name, value) in members {
            changed |= match (name.as_str(), value) {
                ("type" | "uri" | "mimeType" | "data" | "blob", _) => false,
                ("resource", Value::Object(resource)) => self.parts(resource)?,
                ("text" | "description", Value::String(text)) => {
                    let cleaned = self.text(text)?;
                    let is_cleaned = cleaned.is_some();
                    *text = cleaned.unwrap_or(std::mem::take(text));
                    is_cleaned
                }
                (_, value) => self.member(value, None)? != Fate::Kept,
            };
        }
        Ok(changed)
    }

    /// Cleans a value that cannot be left out. It becomes empty if it names a denied file.
    fn member(&mut self, value: &mut Value, folder: Option<&Path>) -> Result<Fate, String> {
        let fate = self.value(value, folder)?;
        if let Fate::Removed((path, rule)) = fate {
            self.hidden.insert(path, rule);
            empty(value);
            return Ok(Fate::Changed);
        }
        Ok(fate)
    }

    /// Cleans a value. `folder` contains the entries of a tree.
    fn value(&mut self, value: &mut Value, folder: Option<&Path>) -> Result<Fate, String> {
        if self.scope.passes_text {
            return Ok(Fate::Kept);
        }
        match value {
            Value::String(text) => {
                if let Some(denial) = self.names.denial(text) {
                    return Ok(Fate::Removed((denial.path, denial.rule)));
                }
                let cleaned = self.text(text)?;
                Ok(cleaned.map_or(Fate::Kept, |cleaned| {
                    *text = cleaned;
                    Fate::Changed
                }))
            }
            Value::Array(items) => {
                let mut fate = Fate::Kept;
                let mut kept = Vec::with_capacity(items.len());
                for mut item in std::mem::take(items) {
                    match self.value(&mut item, folder)? {
                        Fate::Removed((path, rule)) => {
                            self.hidden.insert(path, rule);
                            fate = Fate::Changed;
                            continue;
                        }
                        Fate::Changed => fate = Fate::Changed,
                        Fate::Kept => {}
                    }
                    kept.push(item);
                }
                *items = kept;
                Ok(fate)
            }
            Value::Object(members) => self.object(members, folder),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(Fate::Kept),
        }
    }

    fn object(
        &mut self,
        members: &mut Map<String, Value>,
        folder: Option<&Path>,
    ) -> Result<Fate, String> {
        let named = members.iter().find_map(|(member, value)| {
            let member = member.to_ascii_lowercase();
            let is_name = PATH_MEMBERS.iter().any(|part| member.contains(part));
            let text = value
                .as_str()
                .filter(|text| is_name || text.contains(['/', '.']))?;
            self.names.denial(text).or_else(|| {
                let folder = folder.filter(|_| is_name)?;
                self.names.denial_at(&folder.join(text))
            })
        });
        if let Some(denial) = named {
            return Ok(Fate::Removed((denial.path, denial.rule)));
        }
        let name = members.get("name").and_then(Value::as_str);
        let below = name.map(|name| match folder {
            Some(folder) => folder.join(name),
            None => self.first_folder(name),
        });
        let mut fate = Fate::Kept;
        let names = members.keys().filter(|name| may_be_hidden(name));
        for name in names.cloned().collect::<Vec<_>>() {
            if let Some(denial) = self.names.denial(&name) {
                self.hidden.insert(denial.path, denial.rule);
                members.remove(&name);
                fate = Fate::Changed;
            } else if let Redacted {
                text: Cow::Owned(shown),
                hidden,
                ..
            } = self.redactor.redact(&name)
            {
                self.redacted.extend(hidden);
                let value = members.remove(&name).unwrap_or_default();
                members.insert(shown, value);
                fate = Fate::Changed;
            }
        }
        for (member, value) in members {
            let folder = if member == "children" {
                below.as_deref()
            } else {
                None
            };
            if self.member(value, folder)? != Fate::Kept {
                fate = Fate::Changed;
            }
        }
        Ok(fate)
    }

    /// Returns the folder with a name at the top of a tree.
    fn first_folder(&self, name: &str) -> PathBuf {
        let mut folders = self.scope.folders.iter().map(|folder| folder.join(name));
        folders
            .find(|folder| folder.is_dir())
            .unwrap_or_else(|| PathBuf::from(name))
    }

    /// Returns a text without denied files. `None` if it stays as it is.
    fn text(&mut self, text: &str) -> Result<Option<String>, String> {
        if self.scope.passes_text {
            return Ok(None);
        }
        self.left = self
            .left
            .checked_sub(text.len())
            .ok_or_else(|| format!("it has more than {MAX_TEXT} bytes of text"))?;
        if Instant::now() > self.end {
            return Err("it takes too long".to_owned());
        }
        if text.trim_start().starts_with(['{', '['])
            && let Ok(mut value) = serde_json::from_str::<Value>(text)
        {
            // The text of its strings was counted above.
            self.left += text.len();
            let changed = self.member(&mut value, None)? != Fate::Kept;
            let written = if text.contains('\n') {
                serde_json::to_string_pretty(&value)
            } else {
                serde_json::to_string(&value)
            };
            return Ok(changed.then(|| written.unwrap_or_default()));
        }
        // Diffs of denied files and secret values, before the lines that would name them are removed.
        let redacted = self.redactor.redact(text);
        self.redacted.extend(redacted.hidden);
        let redacted = redacted.text;
        let mut cleaned = String::new();
        for line in redacted.split_inclusive('\n') {
            match self
                .names
                .in_line(&without_colors(line.trim_end_matches('\n')))
            {
                Some((path, rule)) => {
                    self.hidden.insert(path, rule);
                }
                None => cleaned.push_str(line),
            }
        }
        Ok((cleaned != text).then_some(cleaned))
    }

    /// Returns whether all texts of a result are lists of files.
    fn lists_names(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => text.lines().all(|line| {
                line.trim().is_empty() || self.names.is_listed(line) || is_empty_list(line)
            }),
            Value::Array(items) => items.iter().all(|item| self.lists_names(item)),
            Value::Object(members) => members
                .iter()
                .all(|(name, value)| name == "type" || self.lists_names(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }
}

/// Returns whether a name of a member may be a path or contain a secret value.
fn may_be_hidden(name: &str) -> bool {
    name.contains(['/', '.']) || name.len() >= MIN_VALUE_BYTES
}

/// Returns whether a line says that nothing was found.
fn is_empty_list(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["no matches", "no files", "no results"]
        .iter()
        .any(|start| line.starts_with(start))
        && line.len() < 40
}

/// Removes all texts of a value, and keeps its form.
fn empty(value: &mut Value) {
    match value {
        Value::String(text) => text.clear(),
        Value::Array(items) => items.clear(),
        Value::Object(members) => members.values_mut().for_each(empty),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
