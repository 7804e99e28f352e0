//! Parts that several checkpoint requests use: the wire form of a checkpoint, its group and
//! the position in its conversation.

use super::checkpoint_context::CheckpointContext;
use crate::{
    error::Error,
    request_context::{RequestContext, TaskContext},
};
use sightline_access::AccessView;
use sightline_base::{limits, path::Roots, plural::plural, storage::TaskId};
use sightline_checkpoint::{
    Checkpoint as StoredCheckpoint, ConversationMark, Purpose, Related, Skipped, to_i64,
};
use sightline_protocol::{
    checkpoint::{
        Checkpoint, CheckpointKind, CheckpointPurpose, CheckpointTurn, DidCreateCheckpointParams,
        GroupMember, SkippedPath,
    },
    error::ErrorKind,
    method::{DidCreateCheckpoint, Notification},
};
use std::{collections::BTreeMap, sync::Arc};

/// Fails if a label is too long.
pub(super) fn check_label(label: Option<&str>) -> Result<(), Error> {
    let length = label.map_or(0, str::len);
    let limit = limits::MAX_LABEL_BYTES;
    if length <= limit {
        return Ok(());
    }
    let why = format!("a label of {length} bytes exceeds the limit of {limit}; shorten it");
    Err(Error::new(ErrorKind::TooLarge, why))
}

/// Notifies the client of a new checkpoint.
pub(super) fn notify_created(context: &RequestContext<'_>, checkpoint: &Checkpoint) {
    if context.snapshot.settings.notifications {
        let params = DidCreateCheckpointParams {
            checkpoint: checkpoint.clone(),
        };
        let client = &context.services.client;
        client.notify(DidCreateCheckpoint::NAME, &params);
    }
}

/// Returns the position in a task's conversation. If it cannot be read, a warning is
/// logged and the checkpoint is created without it.
pub(super) fn conversation_mark(
    context: &TaskContext<'_>,
    task: &TaskId,
) -> Option<ConversationMark> {
    let store = context.task_store().ok()?;
    match store.load(task, &context.cancel) {
        Ok(conversation) => Some(ConversationMark {
            messages: conversation.messages.len() as u64,
            compactions: conversation.info.compactions,
            entry: conversation.entry,
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(ConversationMark::default()),
        Err(error) => {
            tracing::warn!(%error, "cannot read the conversation; the checkpoint is created without it");
            None
        }
    }
}

/// Converts one checkpoint to its wire form.
pub(super) fn wire(
    cx: &CheckpointContext<'_>,
    root: usize,
    stored: &StoredCheckpoint,
) -> Result<Checkpoint, Error> {
    let related = cx.root_checkpoints(root)?.1.store.related_to(stored)?;
    Ok(to_wire(&cx.view, root, stored, &related))
}

/// Converts a checkpoint to its wire form, without its group. Skipped paths that the
/// rules deny are only counted.
pub(super) fn to_wire(
    view: &AccessView,
    root: usize,
    stored: &StoredCheckpoint,
    related: &Related,
) -> Checkpoint {
    let roots = view.roots();
    let metadata = &stored.metadata;
    let (shown, hidden): (Vec<&Skipped>, Vec<&Skipped>) = metadata
        .skipped
        .iter()
        .partition(|skipped| skipped.may_be_shown(view, root));
    let shown = shown.into_iter().map(|skipped| SkippedPath {
        path: skipped.path.clone(),
        reason: skipped.reason.clone(),
        path_encoded: skipped.encoded,
    });
    let counted = (!hidden.is_empty()).then(|| SkippedPath {
        path: String::new(),
        reason: format!(
            "{} hidden by access rules",
            plural(hidden.len(), "skipped path")
        ),
        path_encoded: false,
    });
    let messages = metadata.messages.filter(|_| metadata.task.is_some());
    Checkpoint {
        id: stored.id.to_string(),
        root: roots
            .get(root)
            .map_or_else(String::new, |root| root.path.to_uri()),
        task_id: metadata.task.clone(),
        label: metadata.label.clone(),
        created_at: to_i64(metadata.created),
        added: metadata.counts.added,
        modified: metadata.counts.modified,
        deleted: metadata.counts.deleted,
        skipped: shown.chain(counted).collect(),
        duration_ms: metadata.duration_ms,
        files: metadata.files,
        bytes: metadata.bytes,
        purpose: match metadata.purpose {
            Purpose::Asked => None,
            Purpose::Undo { .. } => Some(CheckpointPurpose::Undo),
            Purpose::Imported => Some(CheckpointPurpose::Imported),
        },
        messages: messages.map(|conversation_mark| conversation_mark.messages),
        group: None,
        imported: metadata.imported.clone(),
        kind: match metadata.purpose {
            Purpose::Undo { .. } => CheckpointKind::UndoPoint,
            Purpose::Imported => CheckpointKind::Imported,
            Purpose::Asked if metadata.automatic => CheckpointKind::Automatic,
            Purpose::Asked if metadata.turn_end => CheckpointKind::TurnEnd,
            Purpose::Asked if metadata.turn.is_some() => CheckpointKind::TurnStart,
            Purpose::Asked => CheckpointKind::Manual,
        },
        turn: metadata.turn.as_ref().map(|turn| CheckpointTurn {
            agent: turn.agent.clone(),
            session: turn.session.clone(),
            turn: turn.turn.clone(),
            ..related
                .turn_of(stored)
                .map_or_else(CheckpointTurn::default, |turn| CheckpointTurn {
                    number: Some(turn.name.number),
                    name: Some(turn.name.to_string()),
                    prompt: turn.prompt,
                    started_at: Some(to_i64(turn.started)),
                    ended_at: turn.ended.map(to_i64),
                    ..CheckpointTurn::default()
                })
        }),
        head: metadata.head.clone(),
        restored_id: match &metadata.purpose {
            Purpose::Undo { restoring, .. } => restoring.map(|id| id.to_string()),
            Purpose::Asked | Purpose::Imported => None,
        },
        undone_by: related.undone_by(stored.id).map(|id| id.to_string()),
    }
}

pub(super) fn members(roots: &Roots, taken: &[(usize, Arc<StoredCheckpoint>)]) -> Vec<GroupMember> {
    let taken = taken.iter();
    taken
        .filter_map(|(root, stored)| {
            Some(GroupMember {
                root: roots.get(*root)?.path.to_uri(),
                id: stored.id.to_string(),
            })
        })
        .collect()
}

/// Returns the members of every group.
pub(super) fn groups(
    cx: &CheckpointContext<'_>,
) -> Result<BTreeMap<String, Vec<GroupMember>>, Error> {
    let mut groups: BTreeMap<String, Vec<GroupMember>> = BTreeMap::new();
    for found in cx.open_roots()?.grouped()? {
        let Some(group) = found.checkpoint.metadata.group.clone() else {
            continue;
        };
        let member = members(cx.roots(), &[(found.root, found.checkpoint)]);
        groups.entry(group).or_default().extend(member);
    }
    Ok(groups)
}
