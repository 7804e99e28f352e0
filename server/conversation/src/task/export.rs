//! Exports a task: as JSON that can be imported, or as Markdown for reading.

use std::{fmt::Write, io::BufReader};

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use sightline_workspace::{
    cancel::Cancel,
    escape::one_line,
    storage::TaskId,
    tracker::{METADATA_FILE, is_metadata},
};

use crate::error::Error;

use super::{
    Conversation, StoredMessage, TaskStore,
    entry::{LogEntry, to_iso},
    jsonl::{RawLine, for_each_line, trimmed},
    log::{LOG_FILE, not_found},
};

/// Format name in exported JSON.
pub(super) const FORMAT: &str = "sightline-task";
pub(super) const VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportDocument<'a> {
    format: &'a str,
    version: u32,
    task_id: &'a str,
    title: &'a str,
    created_at: i64,
    updated_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<&'a str>,
    messages: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_range: Option<[i64; 2]>,
    context_history: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_metadata: Option<Box<RawValue>>,
    /// All entries, including those that are not current.
    log: Vec<Box<RawValue>>,
}

impl TaskStore {
    /// Exports the task as JSON: the current conversation, and the complete log for
    /// [`Self::import`]. Includes only the tracker records whose path `may_name` allows.
    ///
    /// # Errors
    /// `notFound`, `cancelled`, kind `storage`.
    pub fn export_json(
        &self,
        task: &TaskId,
        may_name: &dyn Fn(&str) -> bool,
        cancel: &Cancel,
    ) -> Result<String, Error> {
        let conversation = self.load(task, cancel)?;
        let dir = self.storage.task(task);
        let metadata = dir.read(METADATA_FILE)?.filter(|text| is_metadata(text));
        let facts = &conversation.info;
        let document = ExportDocument {
            format: FORMAT,
            version: VERSION,
            task_id: task.as_str(),
            title: &facts.title,
            created_at: facts.created_at,
            updated_at: facts.updated_at,
            cwd: facts.cwd.as_deref(),
            git_branch: facts.git_branch.as_deref(),
            messages: conversation.raw_messages(),
            deleted_range: conversation.truncation.deleted_range.map(|range| range.0),
            context_history: conversation.truncation.history.clone().into_value(),
            task_metadata: metadata.and_then(|text| allowed_metadata(&text, may_name)),
            log: self.log_entries(task, cancel)?,
        };
        serde_json::to_string(&document).map_err(Error::storage("export", format!("task {task}")))
    }

    /// Exports the current conversation of the task as Markdown.
    ///
    /// # Errors
    /// `notFound`, `cancelled`, kind `storage`.
    pub fn export_markdown(&self, task: &TaskId, cancel: &Cancel) -> Result<String, Error> {
        let conversation = self.load(task, cancel)?;
        let mut text = head(task, &conversation);
        for (index, stored) in conversation.messages.iter().enumerate() {
            cancel.check()?;
            add_message(&mut text, index, stored);
        }
        Ok(text)
    }

    /// Returns the valid lines of the log as written.
    fn log_entries(&self, task: &TaskId, cancel: &Cancel) -> Result<Vec<Box<RawValue>>, Error> {
        let dir = self.storage.task(task);
        let (file, _) = dir.open_log(LOG_FILE)?.ok_or_else(|| not_found(task))?;
        let mut entries = Vec::new();
        let read = for_each_line::<std::io::Error>(BufReader::new(file), |raw, _| {
            let (RawLine::Complete(line) | RawLine::Partial(line)) = raw;
            let line = trimmed(line);
            if !cancel.is_cancelled() && LogEntry::read(line).is_some() {
                entries.extend(serde_json::from_slice::<Box<RawValue>>(line));
            }
            Ok(())
        });
        cancel.check()?;
        read.map_err(Error::storage("read", format!("task {task}")))?;
        Ok(entries)
    }
}

/// Returns the tracker records of a task. Unchanged unless some are removed.
fn allowed_metadata(text: &[u8], may_name: &dyn Fn(&str) -> bool) -> Option<Box<RawValue>> {
    let mut metadata: Value = serde_json::from_slice(text).ok()?;
    let mut left_out = false;
    if let Some(files) = metadata
        .get_mut("files_in_context")
        .and_then(Value::as_array_mut)
    {
        files.retain(|file| {
            let keep = file["path"].as_str().is_none_or(may_name);
            left_out |= !keep;
            keep
        });
    }
    if left_out {
        return serde_json::value::to_raw_value(&metadata).ok();
    }
    serde_json::from_slice(text).ok()
}

fn head(task: &TaskId, conversation: &Conversation) -> String {
    let facts = &conversation.info;
    let title = match facts.title.as_str() {
        "" => task.as_str(),
        title => title,
    };
    let mut text = format!("# {}\n\n- Task: `{task}`\n", one_line(title));
    let _ = writeln!(text, "- Created: {}", to_iso(facts.created_at));
    let _ = writeln!(text, "- Updated: {}", to_iso(facts.updated_at));
    let cwd = facts.cwd.as_deref().map(one_line);
    if let Some(cwd) = cwd {
        let _ = writeln!(text, "- Directory: `{cwd}`");
    }
    let branch = facts.git_branch.as_deref().map(one_line);
    if let Some(branch) = branch {
        let _ = writeln!(text, "- Branch: `{branch}`");
    }
    let _ = writeln!(text, "- Messages: {}", conversation.messages.len());
    text
}

fn add_message(text: &mut String, index: usize, stored: &StoredMessage) {
    let raw = stored.message.get();
    let Ok(message) = serde_json::from_str::<Value>(raw) else {
        // Valid JSON, but a string contains an unpaired surrogate.
        add_heading(text, index, "Message", stored);
        add_fenced(text, "json", raw);
        return;
    };
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => "User",
        Some("assistant") => "Assistant",
        Some(other) => other,
        None => "Message",
    };
    add_heading(text, index, role, stored);
    match message.get("content") {
        Some(Value::String(content)) => add_text(text, content),
        Some(Value::Array(blocks)) => blocks.iter().for_each(|block| add_block(text, block)),
        None | Some(Value::Null) => {}
        Some(other) => add_json(text, other),
    }
}

fn add_heading(text: &mut String, index: usize, role: &str, stored: &StoredMessage) {
    let summary = if stored.is_summary { ", summary" } else { "" };
    let role = one_line(role);
    let _ = write!(
        text,
        "\n## {}. {role}{summary} · {}\n",
        index + 1,
        to_iso(stored.time)
    );
}

fn add_block(text: &mut String, block: &Value) {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    match field("type") {
        Some("text") => add_text(text, field("text").unwrap_or_default()),
        Some("tool_use") => {
            let name = one_line(field("name").unwrap_or_default()).into_owned();
            let id = one_line(field("id").unwrap_or_default()).into_owned();
            let _ = write!(text, "\n**Tool call** {name} ({id})\n");
            add_json(text, block.get("input").unwrap_or(&Value::Null));
        }
        Some("tool_result") => {
            let id = one_line(field("tool_use_id").unwrap_or_default()).into_owned();
            let is_error = block.get("is_error") == Some(&Value::Bool(true));
            let error = if is_error { ", error" } else { "" };
            let _ = write!(text, "\n**Tool result** ({id}{error})\n");
            match block.get("content") {
                Some(Value::String(content)) => add_fenced(text, "", content),
                Some(Value::Array(parts)) => parts.iter().for_each(|part| {
                    match (part.get("type").and_then(Value::as_str), part.get("text")) {
                        (Some("text"), Some(Value::String(content))) => {
                            add_fenced(text, "", content)
                        }
                        _ => add_block(text, part),
                    }
                }),
                _ => {}
            }
        }
        Some("image") => {
            let source = block.get("source");
            let part = |name: &str| source.and_then(|source| source.get(name)?.as_str());
            let kind = one_line(part("media_type").unwrap_or("image")).into_owned();
            let bytes = part("data").map_or(0, |data| data.len() / 4 * 3);
            let _ = write!(text, "\n*Image: {kind}, about {bytes} bytes*\n");
        }
        _ => add_json(text, block),
    }
}

fn add_text(text: &mut String, content: &str) {
    if !content.trim().is_empty() {
        let _ = write!(text, "\n{}\n", content.trim_end());
    }
}

fn add_json(text: &mut String, value: &Value) {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    add_fenced(text, "json", &pretty);
}

/// Appends a fenced block. The fence is longer than any run of backticks in it.
fn add_fenced(text: &mut String, language: &str, content: &str) {
    let longest = content.split(|c| c != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let end = if content.ends_with('\n') { "" } else { "\n" };
    let _ = write!(text, "\n{fence}{language}\n{content}{end}{fence}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        let mut text = String::new();
        add_fenced(&mut text, "", "a\n```\nb\n`````");
        assert_eq!(text, "\n``````\na\n```\nb\n`````\n``````\n");
        text.clear();
        add_fenced(&mut text, "json", "{}\n");
        assert_eq!(text, "\n```json\n{}\n```\n");
    }
}
