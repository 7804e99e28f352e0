//! `sightline/restoreCheckpoint`. The conversation is rewound first, which is one log entry
//! and easily reverted if the files fail.

use super::{
    super::{checkpoint_context::CheckpointContext, shared::conversation_mark},
    conversation::{messages, rewind, undo_rewind},
    restore_roots::{parts, preview_all, restore_roots, undo_point, with_summary},
};
use crate::{
    error::Error,
    request_context::{RequestContext, Response},
};
use sightline_checkpoint::restore::Options;
use sightline_protocol::checkpoint::{
    RestoreCheckpointParams, RestoreCheckpointResult, RestoreMode, RestoredTask,
};
use sightline_workspace::storage::TaskId;

/// `sightline/restoreCheckpoint`.
pub(crate) fn run(
    context: &RequestContext<'_>,
    params: RestoreCheckpointParams,
) -> Result<Response<RestoreCheckpointResult>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Restoring")?;
    let paths = params.paths.as_deref();
    let parts = parts(&cx, &params.id, paths, params.all_roots)?;
    let Some(first) = parts.first() else {
        return Err(Error::invalid("nothing to restore"));
    };
    let checkpoint = first.found.checkpoint.clone();
    let task = params
        .task_id
        .as_deref()
        .or(checkpoint.metadata.task.as_deref());
    let task = task.map(TaskId::new).transpose()?;
    let mut options = Options {
        token: params.token,
        force: params.force,
        messages: task
            .as_ref()
            .and_then(|task| conversation_mark(context, task)),
        task: task.clone(),
        ..Options::default()
    };
    let previews = match params.mode {
        RestoreMode::Task => Vec::new(),
        // A single root is checked by its restore.
        _ if parts.len() == 1 => Vec::new(),
        _ => preview_all(&cx, &parts, options.token.as_deref())?,
    };
    let rewound = match params.mode {
        RestoreMode::Files => None,
        RestoreMode::Task | RestoreMode::FilesAndTask => {
            let task = task.ok_or_else(|| {
                let why = "the checkpoint belongs to no task; specify a task";
                Error::invalid(why)
            })?;
            Some(rewind(context, &task, &checkpoint)?)
        }
    };
    options.rewind = rewound.as_ref().map(|(_, id)| id.to_string());
    let outcome = match params.mode {
        RestoreMode::Task => undo_point(&cx, &first.found, &options),
        RestoreMode::Files | RestoreMode::FilesAndTask => {
            restore_roots(&cx, &parts, previews, &options)
        }
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
