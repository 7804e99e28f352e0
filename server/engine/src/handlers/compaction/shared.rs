//! The conversation that a compaction works on, given or stored.

use std::{collections::HashMap, sync::Arc};

use serde_json::value::RawValue;
use sightline_base::{path::Location, storage::TaskId};
use sightline_conversation::{
    ContextWindow,
    compaction::{CompactionInput, IndexedMessage, KeyFileText, TrackedFile, WorkspaceAccess},
    model_info::DEFAULT_CONTEXT_WINDOW,
    tokens::{Calibration, Encoding, Family},
};
use sightline_protocol::{
    environment::ModelRef,
    error::ErrorKind,
    files::ReadFileParams,
    tracker::{FileMetadataEntry, WindowUsage},
};
use sightline_tasks::{Conversation, load_calibration};

use crate::{
    error::Error,
    handlers::{conversation::shared::messages_to_send, read_file},
    request_context::TaskContext,
    settings::models::context_window,
};

/// Returns the stored task to use, if no messages are given.
pub(super) fn stored_task(
    task_id: Option<&str>,
    messages: Option<&[&RawValue]>,
) -> Result<Option<TaskId>, Error> {
    match (messages, task_id) {
        (Some(_), _) => Ok(None),
        (None, Some(task_id)) => Ok(Some(TaskId::new(task_id)?)),
        (None, None) => Err(Error::invalid("messages or taskId is required")),
    }
}

/// A stored conversation and its task's records.
pub(super) struct StoredTask {
    pub(super) conversation: Arc<Conversation>,
    calibration: Calibration,
    tracked: Vec<TrackedFile>,
    /// The last recorded model.
    pub(super) model: Option<ModelRef>,
}

impl StoredTask {
    pub(super) fn load(context: &TaskContext<'_>, task: &TaskId) -> Result<Self, Error> {
        let store = context.task_store()?;
        let conversation = store.load(task, &context.cancel)?;
        let dir = context.storage()?.task(task);
        let tracker = context.tracker(task.as_str())?;
        let records = tracker.records()?;
        let model = records.models.last();
        Ok(Self {
            conversation,
            calibration: load_calibration(&dir)?,
            tracked: merge_tracked(&records.files),
            model: model.map(|entry| ModelRef::Id(entry.model_id.clone())),
        })
    }
}

/// Returns how full the context window of a task's last model is. `None` without a stored conversation or a model.
pub(in crate::handlers) fn usage(
    context: &TaskContext<'_>,
    task_id: &str,
) -> Result<Option<WindowUsage>, Error> {
    let stored = match StoredTask::load(context, &TaskId::new(task_id)?) {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
        stored => stored?,
    };
    let Some(model) = &stored.model else {
        return Ok(None);
    };
    with_conversation(context, None, Some(&stored), Some(model), |conversation| {
        Ok(Some(WindowUsage {
            model_id: model.id().to_owned(),
            tokens: conversation.all_tokens(&context.cancel)?,
            context_window: conversation.window.size as u64,
        }))
    })
}

/// Merges the entries of each file, keeping the latest time of each kind.
fn merge_tracked(entries: &[FileMetadataEntry]) -> Vec<TrackedFile> {
    let mut files: Vec<TrackedFile> = Vec::new();
    let mut places = HashMap::new();
    for entry in entries {
        let place = *places.entry(entry.path.as_str()).or_insert_with(|| {
            files.push(TrackedFile {
                path: entry.path.clone(),
                ..TrackedFile::default()
            });
            files.len() - 1
        });
        let file = &mut files[place];
        file.agent_edited_at = file.agent_edited_at.max(entry.cline_edit_date);
        file.user_edited_at = file.user_edited_at.max(entry.user_edit_date);
        file.read_at = file.read_at.max(entry.cline_read_date);
    }
    files
}

/// Runs `work` on the messages that would be sent, given or stored.
pub(super) fn with_conversation<T>(
    context: &TaskContext<'_>,
    given: Option<&[&RawValue]>,
    stored: Option<&StoredTask>,
    model: Option<&ModelRef>,
    work: impl FnOnce(&CompactionInput<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let view = context.view();
    let outside = context.snapshot.outside_allowed();
    let allowed = |path: &str| -> Option<Location> {
        let location = view.roots().locate(path).ok()?;
        view.require(&location, outside).ok().map(|()| location)
    };
    let name = |path: &str| -> Option<String> {
        allowed(path).map(|location| view.roots().result_path(&location).0)
    };
    let may_name_command = |command: &str| view.may_show_command(command);
    let read = |path: &str, lines: u64, bytes: u64| read_key_file(context, path, lines, bytes);
    let workspace = WorkspaceAccess {
        name: &name,
        may_name_command: &may_name_command,
        read: &read,
    };
    let default = Calibration::default();
    let run = |items: &[IndexedMessage<'_>]| {
        work(&CompactionInput {
            items,
            // Same default as `countTokens`.
            family: model.map_or(Family::of_encoding(Encoding::O200kBase), |model| {
                Family::of_model(model.id())
            }),
            window: model.map_or(ContextWindow::with_size(DEFAULT_CONTEXT_WINDOW), |model| {
                context_window(&context.snapshot.settings.conversation, model)
            }),
            counter: context.counter(),
            calibration: stored.map_or(&default, |stored| &stored.calibration),
            tracked: stored.map_or(&[], |stored| &stored.tracked),
            workspace: &workspace,
        })
    };
    let Some(stored) = stored else {
        let messages = given.unwrap_or_default().iter().enumerate();
        let items: Vec<IndexedMessage<'_>> = messages
            .map(|(index, message)| IndexedMessage { index, message })
            .collect();
        return run(&items);
    };
    let messages = stored.conversation.raw_messages();
    let outcome = messages_to_send(context, &stored.conversation, &messages)?;
    let items: Vec<IndexedMessage<'_>> = outcome
        .sent
        .iter()
        .filter_map(|sent| {
            Some(IndexedMessage {
                index: sent.index,
                message: sent.message(&messages)?,
            })
        })
        .collect();
    run(&items)
}

/// Reads the beginning of a file, under the access rules.
fn read_key_file(
    context: &TaskContext<'_>,
    path: &str,
    lines: u64,
    bytes: u64,
) -> Option<KeyFileText> {
    let params = ReadFileParams {
        path: path.to_owned(),
        task_id: None,
        start_line: None,
        end_line: Some(lines.max(1)),
        max_bytes: Some(bytes),
    };
    let read = read_file::run(context, params).ok()?;
    Some(KeyFileText {
        path: path.to_owned(),
        text: read.text,
        total_lines: read.total_lines,
    })
}
