//! Lists tasks, with an index that avoids reading every log.
//!
//! `.index.json` next to the tasks stores a summary of each log with the log's length and
//! modification time. A log that has changed since is read again. Without the file, all logs
//! are read. Task ids never start with a dot, so the name cannot collide with a task.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    path::AbsPath,
    storage::{LogStamp, TaskId},
};
use sightline_protocol::task::TaskSummary;

use crate::failed;

use super::{
    TaskStore,
    log::{LOG_FILE, Log},
};

const INDEX_FILE: &str = ".index.json";

/// Content of the index file.
#[derive(Serialize, Deserialize)]
struct IndexFile {
    tasks: Vec<IndexEntry>,
}

/// Summary of a task and the state of its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IndexEntry {
    #[serde(flatten)]
    pub(super) summary: TaskSummary,
    length: u64,
    modified_ns: u64,
}

impl IndexEntry {
    /// Returns whether the summary was made from this state of the log.
    pub(super) fn matches(&self, stamp: LogStamp) -> bool {
        (self.length, self.modified_ns) == (stamp.len, stamp.mtime_ns)
    }

    /// Returns when the log was last written, in milliseconds since the Unix epoch.
    pub(super) fn modified_millis(&self) -> i64 {
        i64::try_from(self.modified_ns / 1_000_000).unwrap_or(i64::MAX)
    }
}

impl TaskStore {
    /// Lists the tasks that have messages, last updated first, at most `limit`.
    ///
    /// # Errors
    /// `cancelled`, kind `storage`.
    pub fn list(&self, limit: Option<usize>, cancel: &Cancel) -> Result<Vec<TaskSummary>, Error> {
        let listed = self.index_entries(cancel)?.into_iter();
        let limit = limit.unwrap_or(usize::MAX);
        Ok(listed.map(|listed| listed.summary).take(limit).collect())
    }

    /// Returns the last updated task whose recorded working directory is in one of the roots.
    /// Without roots, all tasks qualify.
    ///
    /// # Errors
    /// `cancelled`, kind `storage`.
    pub fn newest(&self, roots: &[AbsPath], cancel: &Cancel) -> Result<Option<TaskId>, Error> {
        let is_in_roots = |summary: &TaskSummary| {
            summary
                .cwd
                .as_deref()
                .map(std::path::Path::new)
                .and_then(AbsPath::new)
                .is_some_and(|cwd| roots.iter().any(|root| cwd.relative_to(root).is_some()))
        };
        self.index_entries(cancel)?
            .into_iter()
            .find(|listed| roots.is_empty() || is_in_roots(&listed.summary))
            .map(|listed| TaskId::new(&listed.summary.task_id))
            .transpose()
    }

    /// Lists all tasks that have messages, last updated first. Skips unreadable logs;
    /// [`TaskStore::load`] reports the error.
    pub(super) fn index_entries(&self, cancel: &Cancel) -> Result<Vec<IndexEntry>, Error> {
        let known = self.read_index();
        let mut listed = Vec::new();
        for id in self.storage.task_ids()? {
            cancel.check()?;
            let Ok(Some(stamp)) = self.storage.task(&id).stamp(LOG_FILE) else {
                continue;
            };
            let found = match known.get(id.as_str()).filter(|known| known.matches(stamp)) {
                Some(known) => Some(known.clone()),
                None => self.read_summary(&id, cancel)?,
            };
            listed.extend(found);
        }
        let is_changed = listed.len() != known.len()
            || listed
                .iter()
                .any(|now| known.get(&now.summary.task_id) != Some(now));
        if is_changed {
            // The index is only a cache.
            let _ = self.write_index(&listed);
        }
        listed.retain(|listed| listed.summary.message_count > 0);
        listed.sort_by(|a, b| {
            let (a, b) = (&a.summary, &b.summary);
            (b.updated_at, &a.task_id).cmp(&(a.updated_at, &b.task_id))
        });
        Ok(listed)
    }

    fn read_summary(&self, id: &TaskId, cancel: &Cancel) -> Result<Option<IndexEntry>, Error> {
        let mut fresh = Log::default();
        let known = self.cache.peek(id);
        let mut kept = known.as_deref().map(|cached| cached.log.lock());
        let log = kept.as_deref_mut().unwrap_or(&mut fresh);
        let dir = self.storage.task(id);
        if log.catch_up(&dir, cancel).is_err() {
            cancel.check()?;
            return Ok(None);
        }
        let Some(stamp) = log.stamp() else {
            return Ok(None);
        };
        let now = log.conversation();
        Ok(Some(IndexEntry {
            summary: TaskSummary {
                task_id: id.to_string(),
                created_at: now.info.created_at,
                updated_at: now.info.updated_at,
                message_count: now.messages.len() as u64,
                title: now.info.title.clone(),
                cwd: now.info.cwd.clone(),
            },
            length: stamp.len,
            modified_ns: stamp.mtime_ns,
        }))
    }

    fn read_index(&self) -> HashMap<String, IndexEntry> {
        let text = self.storage.read_beside_tasks(INDEX_FILE).ok().flatten();
        let index = text.and_then(|text| serde_json::from_slice::<IndexFile>(&text).ok());
        index
            .map(|index| index.tasks)
            .unwrap_or_default()
            .into_iter()
            .map(|listed| (listed.summary.task_id.clone(), listed))
            .collect()
    }

    fn write_index(&self, tasks: &[IndexEntry]) -> Result<(), Error> {
        let index = IndexFile {
            tasks: tasks.to_vec(),
        };
        let text = serde_json::to_vec(&index).map_err(failed("write", "the task index"))?;
        self.storage.write_beside_tasks(INDEX_FILE, &text)
    }
}
