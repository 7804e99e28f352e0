//! `sightline/undoRestore`.

use super::{
    super::{
        checkpoint_context::{CheckpointContext, FoundCheckpoint, NO_RESTORE},
        shared::{conversation_mark, selected_roots},
    },
    conversation::{messages, undo_rewind},
    restore_roots::{
        find_group, preview_all, require_open, restore_roots, root_restores, undo_point,
        with_summary,
    },
    root_restore::RootRestore,
};
use crate::{
    error::Error,
    request_context::{RequestContext, Response},
};
use sightline_checkpoint::{Checkpoint, Oid, Purpose, restore::Options};
use sightline_protocol::{
    checkpoint::{RestoreCheckpointResult, RestoredTask, UndoRestoreParams},
    error::ErrorKind,
};
use sightline_workspace::storage::TaskId;
use std::sync::Arc;

/// `sightline/undoRestore`.
pub(crate) fn run(
    context: &RequestContext<'_>,
    params: UndoRestoreParams,
) -> Result<Response<RestoreCheckpointResult>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Undoing a restore")?;
    let UndoPlan {
        parts,
        conversation_only,
        task,
        rewound,
        ..
    } = UndoPlan::find(
        &cx,
        params.undo_id.as_deref(),
        None,
        params.paths.as_deref(),
    )?;
    let mut options = Options {
        token: params.token,
        force: params.force,
        messages: task
            .as_ref()
            .and_then(|task| conversation_mark(context, task)),
        task,
        ..Options::default()
    };
    let previews = match parts.len() {
        0 | 1 => Vec::new(),
        _ => preview_all(&cx, &parts, options.token.as_deref())?,
    };
    let reverted = match rewound {
        None => None,
        Some((task, id)) => {
            let task = TaskId::new(&task)?;
            let id = undo_rewind(context, &task, id.parse()?)?;
            options.rewind = Some(id.to_string());
            Some((task, id))
        }
    };
    let outcome = match &conversation_only {
        Some(found) if parts.is_empty() => undo_point(&cx, found, &options),
        _ => restore_roots(&cx, &parts, previews, &options),
    };
    match (outcome, reverted) {
        (Ok(mut result), reverted) => {
            result.task = reverted.map(|(task, _)| RestoredTask {
                messages: messages(context, &task),
                task_id: task.as_str().to_owned(),
            });
            Ok(with_summary(result))
        }
        (Err(error), None) => Err(error),
        (Err(error), Some((task, id))) => {
            undo_rewind(context, &task, id)?;
            Err(error)
        }
    }
}

/// What an undo reverts.
pub(super) struct UndoPlan {
    /// The given or latest undo point.
    pub(super) named: Oid,
    /// The files of all roots that were restored together.
    pub(super) parts: Vec<RootRestore>,
    /// An undo point of a conversation only.
    pub(super) conversation_only: Option<FoundCheckpoint>,
    pub(super) task: Option<TaskId>,
    /// Task and rewind id of the conversation.
    pub(super) rewound: Option<(String, String)>,
}

impl UndoPlan {
    /// Finds an undo point, by default the latest of a root or of all. With `paths`, the
    /// conversation is left as it is.
    pub(super) fn find(
        cx: &CheckpointContext<'_>,
        id: Option<&str>,
        root: Option<&str>,
        paths: Option<&[String]>,
    ) -> Result<Self, Error> {
        let named = match id {
            Some(id) => cx.find(id)?,
            None => last_undo(cx, root)?,
        };
        if !is_undo(&named.checkpoint) {
            return Err(Error::invalid(format!(
                "{} is not an undo point; restore it instead",
                named.checkpoint.id
            )));
        }
        let id = named.checkpoint.id;
        let found = match named.checkpoint.metadata.group.clone() {
            Some(group) => {
                let found = find_group(cx, &group, is_undo)?;
                let instead = "restore only this checkpoint";
                require_open(cx, &named.checkpoint, &found, instead)?;
                found
            }
            None => vec![named],
        };
        let rewound = found.iter().filter(|_| paths.is_none()).find_map(|found| {
            let metadata = &found.checkpoint.metadata;
            Some((metadata.task.clone()?, metadata.rewind.clone()?))
        });
        let task = found
            .iter()
            .find_map(|f| f.checkpoint.metadata.task.clone());
        let task = task.as_deref().map(TaskId::new).transpose()?;
        let mut undone = Self {
            named: id,
            parts: Vec::new(),
            conversation_only: None,
            task,
            rewound,
        };
        let (files, conversation): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|found| is_undo_of_files(&found.checkpoint));
        undone.conversation_only = conversation.into_iter().next();
        if !files.is_empty() {
            undone.parts = root_restores(cx, files, paths, true)?;
        } else if paths.is_some() {
            return Err(Error::invalid(
                "the restore changed only the conversation; omit `paths`",
            ));
        }
        Ok(undone)
    }
}

fn is_undo(checkpoint: &Checkpoint) -> bool {
    matches!(checkpoint.metadata.purpose, Purpose::Undo { .. })
}

/// Returns whether the checkpoint is the undo point of a restore of files.
pub(super) fn is_undo_of_files(checkpoint: &Checkpoint) -> bool {
    matches!(
        checkpoint.metadata.purpose,
        Purpose::Undo {
            restoring: Some(_),
            ..
        }
    )
}

/// Returns the latest undo point of the named root, or of all.
fn last_undo(cx: &CheckpointContext<'_>, root: Option<&str>) -> Result<FoundCheckpoint, Error> {
    let mut last: Option<FoundCheckpoint> = None;
    for root in selected_roots(cx.roots(), root)? {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        let Some(id) = checkpoints.store.last_undo()? else {
            continue;
        };
        let checkpoint = checkpoints.store.get(id)?;
        let age = |checkpoint: &Arc<Checkpoint>| {
            (checkpoint.metadata.created, checkpoint.metadata.sequence)
        };
        if last
            .as_ref()
            .is_none_or(|last| age(&last.checkpoint) < age(&checkpoint))
        {
            last = Some(FoundCheckpoint {
                root,
                checkpoints,
                checkpoint,
            });
        }
    }
    last.ok_or_else(|| Error::new(ErrorKind::NotFound, NO_RESTORE))
}
