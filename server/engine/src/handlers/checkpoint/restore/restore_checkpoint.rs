//! `sightline/restoreCheckpoint`. The conversation is rewound first, which is one log entry
//! and easily reverted if the files fail.

use super::{
    super::checkpoint_context::CheckpointContext,
    conversation::{messages, options, rewind, undo_rewind},
    part::Selection,
    restore_roots::{undo_point, with_summary},
};
use crate::{
    error::Error,
    request_context::{RequestContext, Response},
};
use sightline_base::storage::TaskId;
use sightline_protocol::checkpoint::{
    RestoreCheckpointParams, RestoreCheckpointResult, RestoreMode, RestoredTask,
};

/// `sightline/restoreCheckpoint`.
pub fn run(
    context: &RequestContext<'_>,
    params: RestoreCheckpointParams,
) -> Result<Response<RestoreCheckpointResult>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Restoring")?;
    let selection = Selection {
        id: &params.id,
        root: params.root.as_deref(),
        paths: params.paths.as_deref(),
        all_roots: params.all_roots,
        only: params.only,
        hunks: params.hunks.as_deref(),
    };
    if selection.is_part() && params.mode != RestoreMode::Files {
        let why = "`only` and `hunks` restore files, not the conversation; omit `mode`";
        return Err(Error::invalid(why));
    }
    let restores = selection.restores(&cx, selection.find(&cx)?)?;
    let Some(first) = restores.group.parts.first() else {
        return Err(Error::invalid("nothing to restore"));
    };
    let found = first.found.clone();
    let task = params
        .task_id
        .as_deref()
        .or(found.checkpoint.metadata.task.as_deref());
    let task = task.map(TaskId::new).transpose()?;
    let options = options(context, params.token, params.force, task.as_ref());
    let prepared = match params.mode {
        RestoreMode::Task => Vec::new(),
        RestoreMode::Files | RestoreMode::FilesAndTask => restores.prepare(&cx, &options)?,
    };
    let rewound = match params.mode {
        RestoreMode::Files => None,
        RestoreMode::Task | RestoreMode::FilesAndTask => {
            let task = task.ok_or_else(|| {
                let why = "the checkpoint belongs to no task; specify a task";
                Error::invalid(why)
            })?;
            Some(rewind(context, &task, &found.checkpoint)?)
        }
    };
    let rewind = rewound.as_ref().map(|(_, id)| id.to_string());
    let outcome = match params.mode {
        RestoreMode::Task => undo_point(&cx, &found, &options, rewind),
        RestoreMode::Files | RestoreMode::FilesAndTask => restores.run(&cx, prepared, rewind),
    };
    match (outcome, rewound) {
        (Ok(mut result), rewound) => {
            result.task = rewound.map(|(task, _)| task).map(|task| RestoredTask {
                messages: messages(context, &task),
                task_id: task.as_str().to_owned(),
            });
            Ok(with_summary(result))
        }
        (Err(error), None) => Err(error),
        (Err(mut error), Some((task, id))) => {
            if let Err(kept) = undo_rewind(context, &task, id) {
                error.message = format!("{}; cannot reset the conversation: {kept}", error.message);
            }
            Err(error)
        }
    }
}
