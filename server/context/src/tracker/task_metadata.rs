//! `task_metadata.json`: the records of a task, in Cline's format.
//!
//! JSON with two-space indentation and no final newline. Unknown keys and unknown records are
//! preserved.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sightline_protocol::tracker::{
    EnvironmentEntry, FileMetadataEntry, FileOperation, ModelUsageEntry, RecordState,
};

/// Maximum replaced records kept per path. The oldest are dropped. Cline keeps all, so its file
/// grows without bound.
const MAX_STALE_PER_PATH: usize = 100;

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskMetadata {
    #[serde(default)]
    files_in_context: Section<FileRecord>,
    #[serde(default)]
    model_usage: Section<ModelUsageEntry>,
    #[serde(default)]
    environment_history: Section<EnvironmentEntry>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Records of one kind. Older files lack some kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Section<T>(Vec<Record<T>>);

impl<T> Default for Section<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A record, or a value written by another version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Record<T> {
    Known(Known<T>),
    Foreign(Value),
}

/// A record with its unknown keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Known<T> {
    #[serde(flatten)]
    record: T,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// A [`FileMetadataEntry`] as stored: unknown dates are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FileRecord {
    path: String,
    record_state: RecordState,
    record_source: FileOperation,
    cline_read_date: Option<i64>,
    cline_edit_date: Option<i64>,
    user_edit_date: Option<i64>,
}

impl<T> Section<T> {
    fn known(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().filter_map(|record| match record {
            Record::Known(known) => Some(&known.record),
            Record::Foreign(_) => None,
        })
    }

    fn push(&mut self, record: T) {
        let other = Map::new();
        self.0.push(Record::Known(Known { record, other }));
    }

    /// Appends a record unless it equals the last one apart from its time.
    fn push_new(&mut self, record: T, same: impl Fn(&T, &T) -> bool) -> bool {
        if let Some(Record::Known(last)) = self.0.last()
            && same(&last.record, &record)
        {
            return false;
        }
        self.push(record);
        true
    }
}

impl TaskMetadata {
    /// Parses the file. Returns `None` if it is corrupt.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Records the event `source` on `path`. Earlier records of the path become stale; the new one
    /// carries their latest dates.
    pub(super) fn record_file(
        &mut self,
        path: &str,
        source: FileOperation,
        now: i64,
    ) -> FileMetadataEntry {
        let mut new = FileRecord {
            path: path.to_owned(),
            record_state: RecordState::Active,
            record_source: source,
            cline_read_date: None,
            cline_edit_date: None,
            user_edit_date: None,
        };
        let mut stale = 0;
        for record in &mut self.files_in_context.0 {
            let Record::Known(Known { record: old, .. }) = record else {
                continue;
            };
            if old.path != path {
                continue;
            }
            old.record_state = RecordState::Stale;
            new.cline_read_date = new.cline_read_date.max(old.cline_read_date);
            new.cline_edit_date = new.cline_edit_date.max(old.cline_edit_date);
            new.user_edit_date = new.user_edit_date.max(old.user_edit_date);
            stale += 1;
        }
        match source {
            FileOperation::ReadTool | FileOperation::FileMentioned => {
                new.cline_read_date = Some(now);
            }
            FileOperation::ClineEdited => {
                new.cline_read_date = Some(now);
                new.cline_edit_date = Some(now);
            }
            FileOperation::UserEdited => new.user_edit_date = Some(now),
        }
        self.drop_oldest(path, stale - stale.min(MAX_STALE_PER_PATH));
        self.files_in_context.push(new.clone());
        wire(&new)
    }

    fn drop_oldest(&mut self, path: &str, mut count: usize) {
        self.files_in_context.0.retain(|record| match record {
            Record::Known(known) if count > 0 && known.record.path == path => {
                count -= 1;
                false
            }
            _ => true,
        });
    }

    /// Removes the newest record of `path` if it is the user edit of `date`, which was in fact an
    /// edit of the agent.
    pub(super) fn retract_user_edit(&mut self, path: &str, date: i64) {
        let newest = self.files_in_context.0.iter().rposition(
            |record| matches!(record, Record::Known(known) if known.record.path == path),
        );
        let Some(newest) = newest else { return };
        if let Some(Record::Known(Known { record, .. })) = self.files_in_context.0.get(newest)
            && record.record_source == FileOperation::UserEdited
            && record.user_edit_date == Some(date)
        {
            self.files_in_context.0.remove(newest);
        }
    }

    /// Records a model. Returns false if it equals the last one.
    pub(super) fn record_model(&mut self, entry: ModelUsageEntry) -> bool {
        self.model_usage.push_new(entry, |last, new| {
            ModelUsageEntry {
                ts: new.ts,
                ..last.clone()
            } == *new
        })
    }

    /// Records an environment. Returns false if it equals the last one.
    pub(super) fn record_environment(&mut self, entry: EnvironmentEntry) -> bool {
        self.environment_history.push_new(entry, |last, new| {
            EnvironmentEntry {
                ts: new.ts,
                ..last.clone()
            } == *new
        })
    }

    /// Returns all file records, oldest first.
    pub(super) fn files(&self) -> Vec<FileMetadataEntry> {
        self.files_in_context.known().map(wire).collect()
    }

    /// Returns all model records, oldest first.
    pub(super) fn models(&self) -> Vec<ModelUsageEntry> {
        self.model_usage.known().cloned().collect()
    }

    /// Returns all environment records, oldest first.
    pub(super) fn environments(&self) -> Vec<EnvironmentEntry> {
        self.environment_history.known().cloned().collect()
    }
}

fn wire(record: &FileRecord) -> FileMetadataEntry {
    FileMetadataEntry {
        path: record.path.clone(),
        record_state: record.record_state,
        record_source: record.record_source,
        cline_read_date: record.cline_read_date,
        cline_edit_date: record.cline_edit_date,
        user_edit_date: record.user_edit_date,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_data_is_preserved() {
        let text = r#"{
  "files_in_context": [
    {
      "path": "a",
      "record_state": "active",
      "record_source": "read_tool",
      "cline_read_date": 1,
      "cline_edit_date": null,
      "user_edit_date": null,
      "colour": {
        "deep": [
          1.5
        ]
      }
    },
    {
      "path": "b",
      "record_source": "dreamt_of"
    },
    7
  ],
  "model_usage": [
    {
      "ts": 1,
      "model_id": "m",
      "model_provider_id": "p",
      "mode": "act",
      "price": 3
    }
  ],
  "environment_history": [],
  "later_section": {
    "x": "é\u0001"
  }
}"#;
        let mut metadata = TaskMetadata::parse(text.as_bytes()).unwrap();
        assert_eq!(metadata.text().unwrap(), text);
        metadata.record_file("a", FileOperation::ClineEdited, 2);
        let text = metadata.text().unwrap();
        for kept in ["colour", "dreamt_of", "    7", "price", "later_section"] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
        assert_eq!(metadata.files().len(), 2);
        assert_eq!(metadata.files()[0].record_state, RecordState::Stale);
    }

    #[test]
    fn corrupt_files_are_rejected() {
        for bad in [
            "",
            "{oops",
            "[]",
            "7",
            r#"{"files_in_context":{}}"#,
            "\u{feff}{}",
        ] {
            assert_eq!(TaskMetadata::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(TaskMetadata::parse(b"{\"a\":\"\xff\"}"), None);
        assert_eq!(TaskMetadata::parse(b"{}"), Some(TaskMetadata::default()));
    }

    #[test]
    fn stale_records_are_capped_per_path() {
        let mut metadata = TaskMetadata::default();
        metadata.record_file("b", FileOperation::ReadTool, 0);
        for now in 1..=200 {
            metadata.record_file("a", FileOperation::ReadTool, now);
        }
        let files = metadata.files();
        assert_eq!(files.len(), MAX_STALE_PER_PATH + 2);
        assert_eq!(files[0].path, "b");
        assert_eq!(files[1].cline_read_date, Some(100));
        assert_eq!(files[files.len() - 1].cline_read_date, Some(200));
    }
}
