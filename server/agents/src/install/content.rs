//! Our content of a file: adds it, removes it, and finds how much of it is there.

use serde_json::Value;

use super::{
    EditError, Program, SHELL_PREFIX, WRITTEN_BY,
    json::{self, Entry, Slot},
    plugin, program,
    record::RecordedFile,
    toml::{self, TomlTable},
};
use crate::gateway::addresses::Addresses;

/// The setting of Sightline that hides files from commands, and its value.
const HIDE_COMMANDS: [&str; 2] = ["access", "commands"];
const HIDE: &str = "hide";

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
    /// Addresses of the gateway, after our other content of the file.
    Gateway(Option<Box<Content>>, Addresses),
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
            Self::HideCommands => toml::set_value(text, &HIDE_COMMANDS, HIDE),
            Self::Gateway(inner, addresses) => {
                let with_inner = match inner {
                    Some(inner) => inner.add(Some(text))?,
                    None => text.to_owned(),
                };
                let added = addresses.add(&with_inner)?;
                Ok(match text.is_empty() && !added.ends_with('\n') {
                    true => format!("{added}\n"),
                    false => added,
                })
            }
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
                let is_ours = toml::get_value(text, &HIDE_COMMANDS)?.as_deref() == Some(HIDE);
                let rest = match is_ours {
                    true => toml::remove_value(text, &HIDE_COMMANDS)?,
                    false => text.to_owned(),
                };
                (!rest.trim().is_empty()).then_some(rest)
            }
            Self::Gateway(inner, addresses) => {
                let rest = addresses.remove(text)?;
                match inner {
                    Some(inner) => inner.remove(&rest)?,
                    None if addresses.is_toml() => (!rest.trim().is_empty()).then_some(rest),
                    None => (!json::is_empty(&rest)).then_some(rest),
                }
            }
        })
    }

    /// Returns whether a whole file is ours, in any version.
    pub(super) fn is_our_file(&self, text: &str) -> bool {
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
            None => is_written_by_us(text),
        }
    }

    /// Returns the text with only a part of our content, or `None` if nothing is left.
    ///
    /// # Errors
    /// If the file cannot be edited.
    pub fn reduce(&self, kept: &Self, text: &str) -> Result<Option<String>, EditError> {
        if let Self::Gateway(inner, addresses) = self {
            let (kept, text) = match kept {
                Self::Gateway(kept, _) => (kept.as_deref(), text.to_owned()),
                kept => (Some(kept), addresses.remove(text)?),
            };
            return match (inner, kept) {
                (Some(inner), Some(kept)) => inner.reduce(kept, &text),
                (Some(inner), None) => inner.remove(&text),
                (None, _) => Ok(Some(text)),
            };
        }
        let rest = self.remove(text)?;
        // Nothing else is there.
        if kept.presence(text) == Ok(Presence::Current) && kept.remove(text)? == rest {
            return Ok(Some(text.to_owned()));
        }
        kept.add(rest.as_deref()).map(Some)
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
            Self::Gateway(_, addresses) if !addresses.is_toml() => "{}\n".to_owned(),
            _ => String::new(),
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
            Self::Gateway(inner, _) => inner.as_ref()?.spelling(text),
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
            Self::Gateway(inner, _) => {
                let inner = inner.iter().flat_map(|inner| inner.summary());
                inner.chain(["address of the gateway".to_owned()]).collect()
            }
            Self::Whole(text, _) if is_written_by_us(text) && text.starts_with('/') => {
                vec!["plugin".to_owned()]
            }
            Self::Whole(text, _) if is_written_by_us(text) => vec!["unit of systemd".to_owned()],
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
        let found = self.find(text)?;
        Ok(if found.iter().all(Option::is_none) {
            Presence::Absent
        } else if found.iter().all(|entry| *entry == Some(true)) {
            Presence::Current
        } else {
            Presence::Outdated
        })
    }

    /// Returns for each entry whether it is as it would be installed now; `None` if there is none.
    fn find(&self, text: &str) -> Result<Vec<Option<bool>>, EditError> {
        Ok(match self {
            Self::Json(entries) => entries
                .iter()
                .map(|entry| Ok(json::find(text, entry)?.map(|found| found.is_current)))
                .collect::<Result<_, EditError>>()?,
            Self::Toml(table) => vec![toml::find(text, table)?],
            Self::HideCommands => {
                let set = toml::get_value(text, &HIDE_COMMANDS)?;
                vec![set.map(|set| set == HIDE)]
            }
            Self::Gateway(inner, addresses) => {
                let mut found = match inner {
                    Some(inner) => inner.find(text)?,
                    None => Vec::new(),
                };
                found.extend(addresses.find(text));
                found
            }
            Self::Whole(content, _) => vec![self.is_our_file(text).then_some(text == content)],
        })
    }
}

/// Returns whether the first line of a file, a comment, says that it is ours.
fn is_written_by_us(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches(['/', '#', ' ']) == WRITTEN_BY
}

/// Returns the command lines of a file with the hooks of Copilot CLI; a hook without one has an empty
/// line. `None` if the text is not JSON.
fn hook_lines(text: &str) -> Option<Vec<String>> {
    hook_lines_of(text, None)
}

/// The same for one event.
pub(super) fn hook_lines_of(text: &str, event: Option<&str>) -> Option<Vec<String>> {
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
