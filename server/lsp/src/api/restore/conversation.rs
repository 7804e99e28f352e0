//! The conversation of a task at a checkpoint: back to it, and forth again.

use serde_json::Number;
use sightline_core::{
    cancel::Cancel,
    checkpoint::Record,
    conversation::DeletedRange,
    error::Error,
    storage::TaskId,
    task::{Conversation, RewindId},
};
use sightline_protocol::{error::ErrorKind, task::MessageMeta};

use crate::api::{Context, checkpoints::mark, tasks};

/// Takes the conversation of a task back to where it stood at a checkpoint.
pub(super) fn rewind(
    context: &Context<'_>,
    task: &TaskId,
    record: &Record,
) -> Result<(TaskId, RewindId), Error> {
    let store = context.server.task_store(&context.snapshot)?;
    let meta = tasks::meta(context, MessageMeta::default());
    let mut now = store.load(task, &context.cancel)?;
    let created = Number::from(record.notes.created);
    let is_its_task = record.notes.task.as_deref() == Some(task.as_str());
    let mark = record.notes.messages.filter(|_| is_its_task);
    let is_as_compacted = |now: &Conversation| match mark {
        Some(mark) => mark.compactions == now.facts.compactions,
        None => now.messages.first().is_none_or(|first| {
            u64::try_from(first.time).is_ok_and(|time| time <= record.notes.created)
        }),
    };
    if !is_as_compacted(&now) {
        // The messages it had then come back with what stands for them taken out.
        store.rollback(task, &created, &meta, &context.cancel)?;
        now = store.load(task, &context.cancel)?;
    }
    let (keep, range) = match mark {
        Some(mark) => {
            let keep = usize::try_from(mark.messages).unwrap_or(usize::MAX);
            (keep, mark.deleted_range.map(DeletedRange))
        }
        // It was taken without the task: the messages of the time before.
        None => {
            let before = |time: i64| u64::try_from(time).is_ok_and(|t| t <= record.notes.created);
            let later = now.messages.iter().position(|m| !before(m.time));
            let keep = later.unwrap_or(now.messages.len());
            (keep, now.masks.deleted_range)
        }
    };
    if keep > now.messages.len() {
        let why = format!(
            "task {task} has {} messages and had {keep} at the checkpoint: it was taken back further since",
            now.messages.len()
        );
        return Err(Error::new(ErrorKind::Conflict, why));
    }
    let id = store.rewind(task, keep, range, &created, &meta, &context.cancel)?;
    Ok((task.clone(), id))
}

/// Takes a rewind back; names that in turn.
pub(super) fn unwind(
    context: &Context<'_>,
    task: &TaskId,
    id: RewindId,
) -> Result<RewindId, Error> {
    let store = context.server.task_store(&context.snapshot)?;
    let meta = tasks::meta(context, MessageMeta::default());
    store.undo_rewind(task, id, &meta, &Cancel::default())
}

pub(super) fn messages(context: &Context<'_>, task: &TaskId) -> u64 {
    mark(context, task).map_or(0, |mark| mark.messages)
}
