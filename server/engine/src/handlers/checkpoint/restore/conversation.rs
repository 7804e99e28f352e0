//! Rewinds a task's conversation to a checkpoint, and reverts that.

use sightline_base::{cancel::Cancel, storage::TaskId};
use sightline_checkpoint::{
    Checkpoint, CheckpointMetadata, ConversationMark, Request, restore::Options, to_i64,
};
use sightline_protocol::task::MessageMeta;
use sightline_tasks::{RewindId, RewindPoint};

use super::super::shared::conversation_mark;
use crate::{
    error::Error, handlers::conversation::shared::entry_meta, request_context::TaskContext,
};

/// Returns the options of a restore whose undo point belongs to a task.
pub(super) fn options(
    context: &TaskContext<'_>,
    token: Option<String>,
    force: bool,
    task: Option<&TaskId>,
) -> Options {
    Options {
        token,
        force,
        undo: Request {
            metadata: CheckpointMetadata {
                messages: task.and_then(|task| conversation_mark(context, task)),
                task: task.map(|task| task.as_str().to_owned()),
                ..CheckpointMetadata::default()
            },
            ..Request::default()
        },
    }
}

/// Rewinds the conversation of a task to its position at a checkpoint.
pub(super) fn rewind(
    context: &TaskContext<'_>,
    task: &TaskId,
    checkpoint: &Checkpoint,
) -> Result<(TaskId, RewindId), Error> {
    let store = context.task_store()?;
    let meta = entry_meta(context, MessageMeta::default());
    let is_its_task = checkpoint.metadata.task.as_deref() == Some(task.as_str());
    let conversation_mark = checkpoint.metadata.messages.filter(|_| is_its_task);
    let to = match conversation_mark {
        Some(ConversationMark {
            entry: Some(entry), ..
        }) => RewindPoint::Entry(entry),
        Some(ConversationMark { messages: 0, .. }) => RewindPoint::Beginning,
        // The checkpoint was created without the task, or by a version that only stored
        // counts.
        _ => RewindPoint::Time(to_i64(checkpoint.metadata.created)),
    };
    let counted = conversation_mark
        .map(|conversation_mark| (conversation_mark.messages, conversation_mark.compactions));
    let id = store.rewind(task, to, counted, &meta, &context.cancel)?;
    Ok((task.clone(), id))
}

/// Reverts a rewind. Returns the id of the new rewind.
pub(super) fn undo_rewind(
    context: &TaskContext<'_>,
    task: &TaskId,
    id: RewindId,
) -> Result<RewindId, Error> {
    let store = context.task_store()?;
    let meta = entry_meta(context, MessageMeta::default());
    Ok(store.undo_rewind(task, id, &meta, &Cancel::default())?)
}

pub(super) fn messages(context: &TaskContext<'_>, task: &TaskId) -> u64 {
    conversation_mark(context, task).map_or(0, |conversation_mark| conversation_mark.messages)
}
