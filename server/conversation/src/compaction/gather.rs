//! Extracts an agent's activity from its messages and from the task's tracker records: files
//! changed, read and mentioned, and commands run. Contains only names that access rules allow.

use std::collections::HashMap;

use sightline_base::{
    cancel::Cancel,
    error::Error,
    limits::{MAX_COMMAND_BYTES, MAX_PATH_BYTES},
};

use crate::{
    truncation::file_markers::{FILE_CONTENT, FINAL_FILE_CONTENT, FileTool, parse_header},
    truncation::normalize_path,
    wire::json::string_equals,
};

use super::{
    TrackedFile, WorkspaceAccess,
    activity::{Activity, FileActivity},
    activity_list::{self, ListItem},
    scanned_message::{MessagePart, ScannedMessage, members, string},
    summary::PreviousSummary,
};

/// Keys under which tool calls pass a file path.
const PATH_KEYS: [&str; 5] = [
    "path",
    "file_path",
    "filePath",
    "absolutePath",
    "notebook_path",
];
/// Keys under which tool calls pass a command.
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];
/// Words in the names of tools that change files.
const CHANGE_WORDS: [&str; 6] = ["write", "edit", "replace", "patch", "diff", "create_file"];
/// Words in the names of tools that read files.
const READ_WORDS: [&str; 3] = ["read", "view", "open_file"];
/// Words in the names of tools that run commands.
const RUN_WORDS: [&str; 5] = ["command", "bash", "shell", "exec", "terminal"];
/// Prefix and suffix of a command result header, for agents that write tool calls as text.
const COMMAND_HEADER: (&str, &str) = ("[execute_command for '", "'] Result:");

/// What a tool does with its argument.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ToolEffect {
    Changes,
    Reads,
    Runs,
    Other,
}

/// Collects the activity. `previous` is the content of the first message if that is a summary.
///
/// # Errors
/// `cancelled`.
pub(super) fn gather(
    messages: &[ScannedMessage<'_>],
    previous: Option<&PreviousSummary>,
    tracked: &[TrackedFile],
    workspace: &WorkspaceAccess<'_>,
    cancel: &Cancel,
) -> Result<Activity, Error> {
    let mut collector = ActivityCollector::default();
    for file in tracked {
        collector.file(&file.path, |entry| {
            entry.changed |= file.agent_edited_at.is_some();
            entry.changed_by_user |= file.user_edited_at.is_some();
            entry.read |= file.read_at.is_some();
            let times = [file.agent_edited_at, file.user_edited_at, file.read_at];
            entry.time = entry.time.max(times.into_iter().flatten().max());
        });
    }
    for listed in previous
        .and_then(|previous| previous.activity_list.as_deref())
        .into_iter()
        .flat_map(activity_list::parse)
    {
        match listed {
            ListItem::Changed(path) => collector.file(path, |entry| entry.changed = true),
            ListItem::Read(path) => collector.file(path, |entry| entry.read = true),
            ListItem::Command(command) => collector.command(command),
        }
    }
    for (position, message) in messages.iter().enumerate() {
        cancel.check()?;
        // File contents in a summary were added by the compaction, not by the agent.
        if position > 0 || previous.is_none() {
            collector.message(position, message);
        }
    }
    collector.allowed(workspace, cancel)
}

#[derive(Default)]
struct ActivityCollector {
    files: Vec<FileActivity>,
    indexes: HashMap<String, usize>,
    /// Sequence number of the last run of each command.
    commands: HashMap<String, usize>,
    ran: usize,
    /// By call id: the path and position of a change, until its result arrives.
    changes: HashMap<String, (String, usize)>,
}

impl ActivityCollector {
    fn file(&mut self, path: &str, note: impl FnOnce(&mut FileActivity)) {
        if path.len() > MAX_PATH_BYTES {
            return;
        }
        let key = normalize_path(path);
        if key.is_empty() {
            return;
        }
        let index = *self.indexes.entry(key).or_insert_with(|| {
            self.files.push(FileActivity {
                path: path.to_owned(),
                ..FileActivity::default()
            });
            self.files.len() - 1
        });
        note(&mut self.files[index]);
    }

    fn named(&mut self, path: &str, position: usize, effect: ToolEffect) {
        self.file(path, |entry| {
            entry.mentions += 1;
            entry.changed |= effect == ToolEffect::Changes;
            entry.read |= effect == ToolEffect::Reads;
            entry.position = entry.position.max(Some(position));
        });
    }

    fn command(&mut self, command: &str) {
        let command = command.trim();
        if command.is_empty() || command.len() > MAX_COMMAND_BYTES {
            return;
        }
        self.ran += 1;
        self.commands.insert(command.to_owned(), self.ran);
    }

    fn message(&mut self, position: usize, message: &ScannedMessage<'_>) {
        for part in message.parts() {
            match part {
                MessagePart::Text(json) => self.text(json, position),
                MessagePart::Call { id, name, input } => self.call(id, &name, input, position),
                MessagePart::Result { id, failed, parts } => {
                    let change = id.and_then(|id| self.changes.remove(id));
                    if let Some((path, position)) = change.filter(|_| !failed) {
                        self.file(&path, |entry| {
                            entry.changed = true;
                            entry.position = entry.position.max(Some(position));
                        });
                    }
                    for part in parts {
                        if let MessagePart::Text(json) = part
                            && !failed
                        {
                            self.text(json, position);
                        }
                    }
                }
                MessagePart::Label(_) => {}
            }
        }
        // Only the next user message can answer a call.
        if message.is_user() {
            self.changes.clear();
        }
    }

    fn call(&mut self, id: Option<&str>, name: &str, input: &str, position: usize) {
        let input = members(input);
        let value = |keys: &[&str]| {
            let found = input
                .iter()
                .find(|(key, _)| keys.iter().any(|name| string_equals(key, name)));
            found.and_then(|(_, value)| string(value))
        };
        let effect = tool_effect(name, value(&["command"]).as_deref());
        if let Some(path) = value(&PATH_KEYS) {
            match id.filter(|_| effect == ToolEffect::Changes) {
                None => self.named(&path, position, effect),
                // Counts as a change once its result reports success.
                Some(id) => {
                    self.named(&path, position, ToolEffect::Other);
                    let change = (path.into_owned(), position);
                    self.changes.insert(id.to_owned(), change);
                }
            }
        }
        if effect == ToolEffect::Runs
            && let Some(command) = value(&COMMAND_KEYS)
        {
            self.command(&command);
        }
    }

    /// Collects from a text: the header of a tool result, and tagged files.
    fn text(&mut self, json: &str, position: usize) {
        if let Some(header) = parse_header(json) {
            let effect = match header.tool {
                FileTool::Read => ToolEffect::Reads,
                FileTool::Edit => ToolEffect::Changes,
            };
            self.named(&header.path, position, effect);
        }
        let has_command = json.contains("[execute_command for");
        if !has_command
            && !json.contains(FILE_CONTENT.needle)
            && !json.contains(FINAL_FILE_CONTENT.needle)
        {
            return;
        }
        let Some(text) = string(json) else {
            return;
        };
        if let Some(rest) = text.strip_prefix(COMMAND_HEADER.0)
            && let Some(end) = rest.find(COMMAND_HEADER.1)
        {
            self.command(&rest[..end]);
        }
        for tagged in FILE_CONTENT.all(&text) {
            self.named(&text[tagged.path], position, ToolEffect::Reads);
        }
        for tagged in FINAL_FILE_CONTENT.all(&text) {
            self.named(&text[tagged.path], position, ToolEffect::Changes);
        }
    }

    /// Keeps what access rules allow, under the names used in results.
    fn allowed(self, workspace: &WorkspaceAccess<'_>, cancel: &Cancel) -> Result<Activity, Error> {
        let mut files: Vec<FileActivity> = Vec::new();
        let mut indexes: HashMap<String, usize> = HashMap::new();
        for mut entry in self.files {
            cancel.check()?;
            let Some(path) = (workspace.name)(&entry.path) else {
                continue;
            };
            match indexes.get(&path) {
                Some(index) => files[*index].merge(&entry),
                None => {
                    indexes.insert(path.clone(), files.len());
                    entry.path = path;
                    files.push(entry);
                }
            }
        }
        let mut commands: Vec<(String, usize)> = self.commands.into_iter().collect();
        commands.sort_by_key(|(_, nth)| std::cmp::Reverse(*nth));
        let mut allowed = Vec::new();
        for (command, _) in commands {
            cancel.check()?;
            if allowed.len() == activity_list::MAX_COMMANDS {
                break;
            }
            if (workspace.may_name_command)(&command) {
                allowed.push(command);
            }
        }
        allowed.reverse();
        Ok(Activity {
            files,
            commands: allowed,
        })
    }
}

/// Derives the effect from the tool's name. Tools with several functions pass the function in
/// `command`.
fn tool_effect(name: &str, command: Option<&str>) -> ToolEffect {
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&CHANGE_WORDS) {
        return if command == Some("view") {
            ToolEffect::Reads
        } else {
            ToolEffect::Changes
        };
    }
    if has(&RUN_WORDS) {
        ToolEffect::Runs
    } else if has(&READ_WORDS) {
        ToolEffect::Reads
    } else {
        ToolEffect::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_by_name() {
        for (name, effect) in [
            ("write_to_file", ToolEffect::Changes),
            ("MultiEdit", ToolEffect::Changes),
            ("apply_patch", ToolEffect::Changes),
            ("Read", ToolEffect::Reads),
            ("execute_command", ToolEffect::Runs),
            ("Bash", ToolEffect::Runs),
            ("list_files", ToolEffect::Other),
            ("", ToolEffect::Other),
        ] {
            assert_eq!(tool_effect(name, None), effect, "{name}");
        }
        let view = tool_effect("str_replace_based_edit_tool", Some("view"));
        assert_eq!(view, ToolEffect::Reads);
    }
}
