//! `sightline/planCompaction` and `applyCompaction`: replace the older part of a
//! conversation with a summary.

use serde_json::value::RawValue;
use sightline_conversation::{
    ContextWindow,
    compaction::{
        self, ApplyOptions, CompactionInput, IndexedMessage, KeyFileText, PlanOptions, TrackedFile,
        WorkspaceAccess,
    },
    task::{self, CommitResult, CompactedMessage, Compaction},
    tokens::{Calibration, Encoding, Family},
};
use sightline_protocol::{
    compaction::{
        ApplyCompactionParams, ApplyCompactionResult, PlanCompactionParams, PlanCompactionResult,
    },
    environment::ModelRef,
    error::ErrorKind,
    files::ReadFileParams,
    task::MessageMeta,
    tracker::FileMetadataEntry,
};
use sightline_workspace::{
    error::Error, model_info::DEFAULT_CONTEXT_WINDOW, path::Location, storage::TaskId,
};

use super::{RequestContext, raw, read_file, tasks, tracking};
use crate::shared_state::PlannedCompaction;

/// `sightline/planCompaction`.
pub fn plan(
    context: &RequestContext<'_>,
    mut params: PlanCompactionParams,
) -> Result<PlanCompactionResult, Error> {
    let messages = params.messages.take();
    let messages = messages.as_deref().map(raw);
    let messages = messages.as_deref();
    let options = PlanOptions::from_params(&params);
    let task = stored_task(params.task_id.as_deref(), messages)?;
    let stored = match &task {
        Some(task) => Some(StoredTask::load(context, task)?),
        None => None,
    };
    let plan = with_conversation(
        context,
        messages,
        stored.as_ref(),
        Some(&params.model),
        |conversation| compaction::plan(conversation, &options, &context.cancel),
    )?;
    if let (Some(task), Some(stored)) = (&task, &stored) {
        let plan = PlannedCompaction {
            model: params.model.clone(),
            compactions: stored.conversation.info.compactions,
        };
        context.server.set_planned_compaction(task, plan);
    }
    Ok(plan)
}

/// Number of attempts while other requests write to the task.
const ATTEMPTS: usize = 5;

/// `sightline/applyCompaction`.
pub fn apply(
    context: &RequestContext<'_>,
    mut params: ApplyCompactionParams,
) -> Result<ApplyCompactionResult, Error> {
    let messages = params.messages.take();
    let messages = messages.as_deref().map(raw);
    let messages = messages.as_deref();
    let options = ApplyOptions::from_params(&params);
    let apply = |conversation: &CompactionInput<'_>| {
        let applied = compaction::apply(conversation, &options, &context.cancel)?;
        Ok((
            applied,
            conversation
                .items
                .iter()
                .map(|item| item.index)
                .collect::<Vec<_>>(),
        ))
    };
    let Some(task) = stored_task(params.task_id.as_deref(), messages)? else {
        let model = params.model.as_ref();
        return with_conversation(context, messages, None, model, |conversation| {
            let (applied, _) = apply(conversation)?;
            Ok(applied.into_result(conversation.items))
        });
    };
    let store = context.server.task_store(&context.snapshot)?;
    for _ in 0..ATTEMPTS {
        let stored = StoredTask::load(context, &task)?;
        // The planned model, else the recorded one.
        let planned = context.server.planned_compaction(&task);
        let compactions = stored.conversation.info.compactions;
        let is_stale = |planned: &PlannedCompaction| planned.compactions != compactions;
        if params.retain_from.is_some() && planned.as_ref().is_some_and(is_stale) {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("task {task} was compacted after this plan was made; plan again"),
            ));
        }
        let model = planned.as_ref().map(|planned| &planned.model);
        let model = params.model.as_ref().or(model);
        let model = model.or(stored.model.as_ref());
        let outcome = with_conversation(context, None, Some(&stored), model, |conversation| {
            let (applied, indexes) = apply(conversation)?;
            let answer = applied.clone().into_result(conversation.items);
            let Some(first) = &applied.first else {
                // Nothing was removed, so there is nothing to store.
                return Ok((answer, CommitResult::Stored(())));
            };
            let summary = CompactedMessage {
                message: first,
                source: applied.fallback.then(|| indexes.first().copied()).flatten(),
            };
            let kept = conversation.items.iter().skip(applied.retained);
            let kept = kept.map(|item| CompactedMessage {
                message: item.message,
                source: Some(item.index),
            });
            let compaction = Compaction {
                trigger: params.trigger,
                pre_tokens: applied.pre_tokens,
                post_tokens: applied.post_tokens,
                fallback_reason: applied.fallback_reason.clone(),
                messages: std::iter::once(summary).chain(kept).collect(),
            };
            let meta = tasks::meta(context, MessageMeta::default());
            let seen = &stored.conversation;
            let decided = store.compact(&task, seen, &compaction, &meta, &context.cancel)?;
            Ok((
                answer,
                match decided {
                    CommitResult::Stored(_) => CommitResult::Stored(()),
                    CommitResult::Conflict(now) => CommitResult::Conflict(now),
                },
            ))
        })?;
        // Messages were added concurrently: retry with them.
        if let (answer, CommitResult::Stored(())) = outcome {
            return Ok(answer);
        }
    }
    Err(Error::new(
        ErrorKind::Busy,
        format!("task {task} is being written to; try again later"),
    ))
}

/// Returns the stored task to use, if no messages are given.
fn stored_task(
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
struct StoredTask {
    conversation: std::sync::Arc<task::Conversation>,
    calibration: Calibration,
    tracked: Vec<TrackedFile>,
    /// The last recorded model.
    model: Option<ModelRef>,
}

impl StoredTask {
    fn load(context: &RequestContext<'_>, task: &TaskId) -> Result<Self, Error> {
        let store = context.server.task_store(&context.snapshot)?;
        let conversation = store.load(task, &context.cancel)?;
        let dir = context.server.storage(&context.snapshot)?.task(task);
        let tracker = context.server.tracker(&context.snapshot, task.as_str())?;
        let records = tracker.records()?;
        let model = records.models.last();
        Ok(Self {
            conversation,
            calibration: Calibration::load(&dir)?,
            tracked: merge_tracked(&records.files),
            model: model.map(|entry| ModelRef::Id(entry.model_id.clone())),
        })
    }
}

/// Merges the entries of each file, keeping the latest time of each kind.
fn merge_tracked(entries: &[FileMetadataEntry]) -> Vec<TrackedFile> {
    let mut files: Vec<TrackedFile> = Vec::new();
    let mut places = std::collections::HashMap::new();
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
fn with_conversation<T>(
    context: &RequestContext<'_>,
    given: Option<&[&RawValue]>,
    stored: Option<&StoredTask>,
    model: Option<&ModelRef>,
    work: impl FnOnce(&CompactionInput<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let view = context.view();
    let outside = tracking::outside_allowed(&context.snapshot);
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
                context.snapshot.settings.conversation.window(model)
            }),
            counter: context.server.counter(),
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
    let outcome = tasks::messages_to_send(context, &stored.conversation, &messages)?;
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
    context: &RequestContext<'_>,
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
