//! Exports a task as JSON that can be imported.

use std::io::BufReader;

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use serde_with::skip_serializing_none;
use sightline_base::{cancel::Cancel, error::Error, storage::TaskId};

use crate::failed;
use sightline_context::tracker::{METADATA_FILE, is_metadata};
use sightline_conversation::{ContextHistory, DeletedRange};

use super::{
    TaskStore,
    entry::{
        LogEntry,
        jsonl::{for_each_line, trimmed},
    },
    log::{LOG_FILE, not_found},
};

/// Format name in exported JSON.
pub(super) const FORMAT: &str = "sightline-task";
pub(super) const VERSION: u32 = 1;

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportDocument<'a> {
    format: &'a str,
    version: u32,
    task_id: &'a str,
    title: &'a str,
    created_at: i64,
    updated_at: i64,
    cwd: Option<&'a str>,
    git_branch: Option<&'a str>,
    messages: Vec<&'a RawValue>,
    deleted_range: Option<DeletedRange>,
    context_history: &'a ContextHistory,
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
            deleted_range: conversation.truncation.deleted_range,
            context_history: &conversation.truncation.history,
            task_metadata: metadata.and_then(|text| allowed_metadata(&text, may_name)),
            log: self.log_entries(task, cancel)?,
        };
        serde_json::to_string(&document).map_err(failed("export", format!("task {task}")))
    }

    /// Returns the valid lines of the log as written.
    fn log_entries(&self, task: &TaskId, cancel: &Cancel) -> Result<Vec<Box<RawValue>>, Error> {
        let dir = self.storage.task(task);
        let (file, _) = dir.open_log(LOG_FILE)?.ok_or_else(|| not_found(task))?;
        let mut entries = Vec::new();
        for_each_line(BufReader::new(file), cancel, |line, _, _| {
            let line = trimmed(line);
            if LogEntry::read(line).is_some() {
                entries.extend(serde_json::from_slice::<Box<RawValue>>(line));
            }
        })?
        .map_err(failed("read", format!("task {task}")))?;
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
