//! Imports tasks: task folders of Cline 3, and task folders and JSON exports of Sightline.
//!
//! The source is only read and not trusted: sizes are limited, only regular files are read, and
//! contents are validated. A task is created completely or not at all. A malformed file of the
//! source is reported and skipped; the other files are still imported.

use std::{collections::BTreeMap, path::Path};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, SeqAccess, Visitor},
};
use serde_json::{Number, Value, value::RawValue};
use sightline_base::{
    cancel::Cancel,
    error::Error,
    limits::{MAX_ENTRY_BYTES, MAX_IMPORT_BYTES},
    storage::{TaskId, read_foreign},
};
use sightline_context::tracker::{METADATA_FILE, is_metadata};
use sightline_protocol::{error::ErrorKind, task::Recovered};
use uuid::Uuid;

use super::{
    EntryMeta, EntryOrigin, TaskStore, TruncationState,
    conversation::Entries,
    entry::{LogEntry, LogLine, TRUNCATION, jsonl::trimmed},
    export::{FORMAT, VERSION},
    link_lines,
    log::{HISTORY_FILE, LOG_FILE},
};
use sightline_conversation::{
    ContextHistory, DeletedRange,
    wire::{BlockKind, Message, json::decode},
};

const MESSAGES_FILE: &str = "api_conversation_history.json";
const UI_FILE: &str = "ui_messages.json";
/// Name of the file in the first version of Cline.
const OLD_UI_FILE: &str = "claude_messages.json";

/// An imported task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTask {
    /// Id of the task.
    pub task_id: TaskId,
    /// Number of messages in its conversation.
    pub messages: u64,
    /// What could not be imported, for display.
    pub problems: Vec<String>,
}

/// The parts of a task read from a source.
#[derive(Default)]
struct ImportParts {
    /// The task id that the source suggests.
    id: String,
    log: Vec<u8>,
    metadata: Option<Vec<u8>>,
    /// Edits that the log does not record.
    unlogged: ContextHistory,
    problems: Vec<String>,
}

/// The fields of an export that are imported.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportDocument {
    format: String,
    version: u32,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    messages: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    deleted_range: Value,
    #[serde(default)]
    context_history: Value,
    #[serde(default)]
    task_metadata: Option<Box<RawValue>>,
    #[serde(default)]
    log: Option<Vec<Box<RawValue>>>,
}

/// The valid messages of a conversation, and their indexes in the source, which Cline's data
/// refers to.
struct ImportedMessages {
    messages: Vec<Box<RawValue>>,
    indexes: Vec<usize>,
}

impl ImportedMessages {
    /// Converts an index in the source to an index of the valid messages.
    fn index(&self, original: usize) -> Option<usize> {
        self.indexes.binary_search(&original).ok()
    }

    /// Converts a range of the source.
    fn range(&self, original: DeletedRange) -> DeletedRange {
        let before = |end: i64| {
            let is_before = |index: &usize| i64::try_from(*index).is_ok_and(|index| index < end);
            i64::try_from(self.indexes.partition_point(is_before)).unwrap_or(i64::MAX)
        };
        let [first, last] = original.0;
        DeletedRange([before(first), before(last.saturating_add(1)) - 1])
    }
}

/// The imported fields of an entry in Cline's UI messages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UiMessage {
    #[serde(default)]
    ts: Value,
    #[serde(default)]
    conversation_history_index: Value,
    #[serde(default)]
    conversation_history_deleted_range: Value,
}

/// Times of messages and the deleted range, from Cline's UI messages.
#[derive(Default)]
struct UiTimeline {
    first: Option<i64>,
    /// By index of the message.
    times: BTreeMap<usize, i64>,
    range: Option<(DeletedRange, Number)>,
}

impl TaskStore {
    /// Creates a task from `source`: a task folder of Cline 3 or Sightline, or an exported file.
    /// `id` overrides the id of the source.
    ///
    /// # Errors
    /// `notFound`, `invalidParams` if there is no conversation in it, `tooLarge`, `conflict` if the
    /// task already exists, `cancelled`, kind `storage`.
    pub fn import(
        &self,
        source: &Path,
        id: Option<&TaskId>,
        now: i64,
        cancel: &Cancel,
    ) -> Result<ImportedTask, Error> {
        let mut parts = if source.is_dir() {
            from_folder(source, now, cancel)?
        } else {
            from_export(source, now)?
        };
        cancel.check()?;
        let task_id = match id {
            Some(id) => id.clone(),
            None => TaskId::new(&parts.id)?,
        };
        let mut entries = Entries::default();
        for line in parts.log.split(|byte| *byte == b'\n') {
            if let Some(entry) = LogEntry::read(line) {
                entries.push(entry);
            }
        }
        let unlogged = TruncationState {
            deleted_range: None,
            history: std::mem::take(&mut parts.unlogged),
        };
        let conversation = entries.conversation(Recovered::default(), &unlogged);
        if !entries.has_message() {
            return Err(Error::invalid(format!(
                "{} contains no messages{}",
                source.display(),
                parts
                    .problems
                    .iter()
                    .map(|problem| format!("; {problem}"))
                    .collect::<String>()
            )));
        }
        let history = conversation
            .truncation
            .history
            .clone()
            .into_value()
            .to_string();
        let mut files = vec![(LOG_FILE, parts.log.as_slice())];
        if let Some(metadata) = &parts.metadata {
            files.push((METADATA_FILE, metadata));
        }
        if history != "[]" {
            files.push((HISTORY_FILE, history.as_bytes()));
        }
        self.storage.create_task(&task_id, &files)?;
        Ok(ImportedTask {
            task_id,
            messages: conversation.messages.len() as u64,
            problems: std::mem::take(&mut parts.problems),
        })
    }
}

impl ImportParts {
    /// Reads a file of the folder. Reports an error as a problem.
    fn read(&mut self, dir: &Path, name: &str) -> Option<Vec<u8>> {
        read_foreign(&dir.join(name), MAX_IMPORT_BYTES).unwrap_or_else(|error| {
            self.problems.push(format!("skipped {name}: {error}"));
            None
        })
    }

    fn take_metadata(&mut self, text: Option<Vec<u8>>) {
        let is_malformed = text.as_ref().is_some_and(|text| !is_metadata(text));
        if is_malformed {
            self.report_invalid_file(METADATA_FILE);
        }
        self.metadata = text.filter(|_| !is_malformed);
    }

    fn read_history(&mut self, dir: &Path, messages: Option<&ImportedMessages>) -> ContextHistory {
        let Some(text) = self.read(dir, HISTORY_FILE) else {
            return ContextHistory::default();
        };
        self.history(
            serde_json::from_slice(&text).unwrap_or(Value::Null),
            messages,
        )
    }

    /// Parses edits and keeps the valid ones. With `messages`, converts their indexes.
    fn history(&mut self, value: Value, messages: Option<&ImportedMessages>) -> ContextHistory {
        let Value::Array(entries) = value else {
            self.report_invalid_file(HISTORY_FILE);
            return ContextHistory::default();
        };
        let count = entries.len();
        let moved = |mut entry: Value| {
            if let Some(messages) = messages {
                let index = entry.get_mut(0)?;
                let original = usize::try_from(index.as_u64()?).ok()?;
                *index = messages.index(original)?.into();
            }
            // Check each entry on its own.
            let is_valid = ContextHistory::from_value(Value::Array(vec![entry.clone()])).is_ok();
            is_valid.then_some(entry)
        };
        let valid: Vec<Value> = entries.into_iter().filter_map(moved).collect();
        self.report_invalid_entries(HISTORY_FILE, count - valid.len());
        ContextHistory::from_value(Value::Array(valid)).unwrap_or_default()
    }

    /// Keeps the entries that are messages.
    fn messages(&mut self, entries: Vec<Box<RawValue>>) -> ImportedMessages {
        let count = entries.len();
        let is_message = |(_, entry): &(usize, Box<RawValue>)| entry.get().starts_with('{');
        let (indexes, messages): (Vec<usize>, Vec<_>) =
            entries.into_iter().enumerate().filter(is_message).unzip();
        let skipped = count - messages.len();
        if skipped > 0 {
            self.problems
                .push(format!("skipped {skipped} of the messages: not objects"));
        }
        ImportedMessages { messages, indexes }
    }

    fn report_invalid_entries(&mut self, name: &str, count: usize) {
        if count > 0 {
            self.problems.push(format!(
                "skipped {count} of the entries of {name}: malformed"
            ));
        }
    }

    fn report_invalid_file(&mut self, name: &str) {
        self.problems.push(format!("skipped {name}: malformed"));
    }

    /// Adds the valid lines of a log.
    fn take_log<'a>(&mut self, lines: impl Iterator<Item = &'a [u8]>) {
        let mut malformed = 0_u64;
        let mut too_long = 0_u64;
        for line in lines.map(trimmed).filter(|line| !line.is_empty()) {
            if line.len() > MAX_ENTRY_BYTES {
                too_long += 1;
                continue;
            }
            if LogEntry::read(line).is_none() {
                malformed += 1;
                continue;
            }
            // In an export, an entry may span several lines.
            let on_one_line = line.iter().map(|byte| match byte {
                b'\n' | b'\r' => b' ',
                byte => *byte,
            });
            self.log.extend(on_one_line);
            self.log.push(b'\n');
        }
        let why_too_long = format!("longer than the limit of {MAX_ENTRY_BYTES} bytes");
        for (count, why) in [(malformed, "malformed"), (too_long, &why_too_long)] {
            if count > 0 {
                self.problems
                    .push(format!("skipped {count} of the log's lines: {why}"));
            }
        }
    }
}

fn from_folder(dir: &Path, now: i64, cancel: &Cancel) -> Result<ImportParts, Error> {
    let mut parts = ImportParts::default();
    let real_dir = sightline_base::path::canonicalize(dir).ok();
    let name = real_dir.as_deref().unwrap_or(dir).file_name();
    parts.id = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let metadata = parts.read(dir, METADATA_FILE);
    parts.take_metadata(metadata);
    if let Some(log) = read_foreign(&dir.join(LOG_FILE), MAX_IMPORT_BYTES)? {
        parts.take_log(log.split(|byte| *byte == b'\n'));
        parts.unlogged = parts.read_history(dir, None);
        return Ok(parts);
    }
    cancel.check()?;
    let text = read_foreign(&dir.join(MESSAGES_FILE), MAX_IMPORT_BYTES)?.ok_or_else(|| {
        Error::Failed(
            ErrorKind::NotFound,
            format!(
                "{} contains neither {MESSAGES_FILE} nor {LOG_FILE}; pass the folder of one task",
                dir.display()
            ),
        )
    })?;
    let (entries, is_whole) = parse_array_prefix(&text);
    if !is_whole {
        parts.problems.push(format!(
            "{MESSAGES_FILE} is malformed after its first {} messages, which were imported",
            entries.len()
        ));
    }
    let messages = parts.messages(entries);
    let ui = read_ui_timeline(&mut parts, dir);
    let history = parts.read_history(dir, Some(&messages));
    let started_at = ui
        .first
        .or_else(|| parts.id.parse().ok().filter(|millis| *millis > 0))
        .unwrap_or(now);
    let range = ui
        .range
        .as_ref()
        .map(|(range, _)| messages.range(*range).clamped_to(messages.messages.len()));
    let truncation = TruncationState {
        deleted_range: range,
        history,
    };
    let time = ui.range.as_ref().map(|(_, time)| time);
    parts.log = build_log(
        &messages.messages,
        |index| ui.times.get(messages.indexes.get(index)?).copied(),
        started_at,
        &truncation,
        time,
    )?;
    Ok(parts)
}

fn from_export(path: &Path, now: i64) -> Result<ImportParts, Error> {
    let text = read_foreign(path, MAX_IMPORT_BYTES)?.ok_or_else(|| {
        Error::Failed(
            ErrorKind::NotFound,
            format!("file not found: {}", path.display()),
        )
    })?;
    let refused = |why: &str| {
        Error::invalid(format!(
            "{} is not an exported task: {why}; pass a task folder or a file that `sightline task export` wrote",
            path.display()
        ))
    };
    let document: ExportDocument =
        serde_json::from_slice(&text).map_err(|error| refused(&error.to_string()))?;
    if document.format != FORMAT || document.version != VERSION {
        return Err(refused("unknown format or version"));
    }
    let mut parts = ImportParts {
        id: document.task_id.unwrap_or_default(),
        ..ImportParts::default()
    };
    let metadata = document.task_metadata;
    parts.take_metadata(metadata.map(|raw| raw.get().as_bytes().to_vec()));
    let log = document.log.unwrap_or_default();
    parts.take_log(log.iter().map(|line| line.get().as_bytes()));
    if parts.log.is_empty() {
        let messages = parts.messages(document.messages.unwrap_or_default());
        let range = serde_json::from_value(document.deleted_range).ok();
        let truncation = TruncationState {
            deleted_range: range.map(|range| messages.range(DeletedRange(range))),
            history: match document.context_history {
                Value::Null => ContextHistory::default(),
                value => parts.history(value, Some(&messages)),
            },
        };
        parts.log = build_log(&messages.messages, |_| None, now, &truncation, None)?;
    }
    Ok(parts)
}

/// Writes a log of messages. The time of a message is its `ts`, else `time`, else that of the
/// message before it; the first defaults to `started_at`.
fn build_log(
    messages: &[Box<RawValue>],
    time: impl Fn(usize) -> Option<i64>,
    started_at: i64,
    truncation: &TruncationState,
    truncated_at: Option<&Number>,
) -> Result<Vec<u8>, Error> {
    let origin = EntryOrigin {
        cwd: messages.first().and_then(|first| cline_cwd(first)),
        ..EntryOrigin::default()
    };
    let mut meta = EntryMeta {
        origin,
        now: started_at,
    };
    let mut lines = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        meta.now = message_timestamp(message)
            .or_else(|| time(index))
            .unwrap_or(meta.now);
        let line = LogLine::message(None, meta.now, &meta.origin, message);
        lines.push(line.ok_or_else(|| {
            Error::invalid(format!(
                "message {index} of the conversation is not an object"
            ))
        })?);
    }
    if *truncation != TruncationState::default() {
        let uuids: Vec<Uuid> = lines.iter().map(|line| line.uuid).collect();
        let mut line = LogLine::system(None, meta.now, &meta.origin, TRUNCATION);
        line.truncation =
            Some(truncation.to_logged(truncated_at.unwrap_or(&meta.now.into()), &uuids));
        lines.push(line);
    }
    link_lines(&mut lines, None);
    let mut log = Vec::new();
    for line in &lines {
        line.write(&mut log)?;
    }
    Ok(log)
}

#[derive(Deserialize)]
struct TimestampField {
    #[serde(default)]
    ts: Value,
}

fn message_timestamp(message: &RawValue) -> Option<i64> {
    let field: TimestampField = serde_json::from_str(message.get()).ok()?;
    millis(&field.ts)
}

fn millis(value: &Value) -> Option<i64> {
    let whole = value.as_i64();
    whole.or_else(|| value.as_f64().map(|millis| millis as i64))
}

/// Returns the working directory from the environment details of Cline's first message.
fn cline_cwd(message: &RawValue) -> Option<String> {
    let message = Message::scan(message.get())?;
    let mut texts = message
        .blocks()
        .iter()
        .filter(|block| block.kind == BlockKind::Text);
    texts.find_map(|block| {
        let text = decode(message.string(block)?);
        let (_, rest) = text.split_once("\n# Current Working Directory (")?;
        let (cwd, _) = rest.lines().next()?.split_once(") Files")?;
        (!cwd.is_empty()).then(|| cwd.to_owned())
    })
}

fn read_ui_timeline(parts: &mut ImportParts, dir: &Path) -> UiTimeline {
    let mut facts = UiTimeline::default();
    let (name, text) = match parts.read(dir, UI_FILE) {
        Some(text) => (UI_FILE, text),
        None => match parts.read(dir, OLD_UI_FILE) {
            Some(text) => (OLD_UI_FILE, text),
            None => return facts,
        },
    };
    let Ok(entries) = serde_json::from_slice::<Vec<&RawValue>>(&text) else {
        parts.report_invalid_file(name);
        return facts;
    };
    let count = entries.len();
    let messages: Vec<UiMessage> = entries
        .iter()
        .filter_map(|entry| serde_json::from_str(entry.get()).ok())
        .collect();
    parts.report_invalid_entries(name, count - messages.len());
    for message in messages {
        let time = millis(&message.ts);
        facts.first = facts.first.or(time);
        let index = message
            .conversation_history_index
            .as_u64()
            .and_then(|index| usize::try_from(index).ok());
        if let (Some(index), Some(time)) = (index, time) {
            facts.times.entry(index).or_insert(time);
        }
        let range = serde_json::from_value(message.conversation_history_deleted_range);
        if let Ok(range) = range {
            let made = time.or(facts.first).unwrap_or_default();
            facts.range = Some((DeletedRange(range), made.into()));
        }
    }
    facts
}

struct ArrayElements<'a>(&'a mut Vec<Box<RawValue>>);

impl<'de> DeserializeSeed<'de> for ArrayElements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<(), D::Error> {
        list.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ArrayElements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            self.0.push(element);
        }
        Ok(())
    }
}

/// Parses the elements of a JSON array up to the first error. Returns whether the whole array
/// was valid.
fn parse_array_prefix(text: &[u8]) -> (Vec<Box<RawValue>>, bool) {
    let mut elements = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = ArrayElements(&mut elements).deserialize(&mut json);
    let is_whole = read.and_then(|()| json.end()).is_ok();
    (elements, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_read_up_to_the_first_error() {
        let read = |text: &str| {
            let (parts, is_whole) = parse_array_prefix(text.as_bytes());
            (parts.len(), is_whole)
        };
        assert_eq!(read(r#"[{"a":1},{}]"#), (2, true));
        assert_eq!(read(r#"[{"a":1},{"b":"#), (1, false));
        assert_eq!(read(r#"[{"a":1}] x"#), (1, false));
        assert_eq!(read("{}"), (0, false));
        assert_eq!(read(""), (0, false));
    }
}
