//! `sightline/undoRestore`.

use super::{
    super::checkpoint_context::{CheckpointContext, selected_roots},
    conversation::{messages, options, undo_rewind},
    restore_roots::{Restores, undo_point, with_summary},
};
use crate::{
    error::Error,
    request_context::{RequestContext, Response},
};
use sightline_base::storage::TaskId;
use sightline_checkpoint::{Oid, group::Found, restore::Scope};
use sightline_protocol::checkpoint::{RestoreCheckpointResult, RestoredTask, UndoRestoreParams};

/// `sightline/undoRestore`.
pub fn run(
    context: &RequestContext<'_>,
    params: UndoRestoreParams,
) -> Result<Response<RestoreCheckpointResult>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Undoing a restore")?;
    let paths = params.paths.as_deref();
    let plan = UndoPlan::find(
        &cx,
        params.undo_id.as_deref(),
        params.root.as_deref(),
        paths,
    )?;
    let options = options(context, params.token, params.force, plan.task.as_ref());
    let prepared = match &plan.files {
        Some(files) => files.prepare(&cx, &options)?,
        None => Vec::new(),
    };
    let reverted = match plan.rewound {
        None => None,
        Some((task, id)) => {
            let task = TaskId::new(&task)?;
            let id = undo_rewind(context, &task, id.parse()?)?;
            Some((task, id))
        }
    };
    let rewind = reverted.as_ref().map(|(_, id)| id.to_string());
    let outcome = match (plan.files, &plan.conversation_only) {
        (Some(files), _) => files.run(&cx, prepared, rewind),
        (None, Some(found)) => undo_point(&cx, found, &options, rewind),
        (None, None) => Err(Error::invalid("nothing to undo")),
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
pub(super) struct UndoPlan<'a> {
    /// The given or latest undo point.
    pub(super) named: Oid,
    /// Whether the restore to undo is an undo.
    pub(super) is_redo: bool,
    /// Undo point of the latest restore that was not undone, if this one is an undo.
    pub(super) earlier: Option<Oid>,
    /// The files of all roots that were restored together.
    pub(super) files: Option<Restores<'a>>,
    /// An undo point of a conversation only.
    conversation_only: Option<Found>,
    task: Option<TaskId>,
    /// Task and rewind id of the conversation.
    pub(super) rewound: Option<(String, String)>,
}

impl<'a> UndoPlan<'a> {
    /// Finds an undo point, by default or with `last` the latest of a root or of all. With `paths`, the
    /// conversation is left as it is.
    pub(super) fn find(
        cx: &'a CheckpointContext<'_>,
        id: Option<&str>,
        root: Option<&str>,
        paths: Option<&[String]>,
    ) -> Result<Self, Error> {
        let named = match id.filter(|id| *id != "last") {
            Some(id) => cx.find(id, root)?,
            None => {
                let roots = selected_roots(cx.roots(), root)?;
                cx.open_roots()?.last_undo(&roots)?
            }
        };
        if !named.is_undo() {
            let written = id.unwrap_or_default();
            return Err(Error::invalid(format!(
                "{written} is not an undo point; restore it instead"
            )));
        }
        let id = named.checkpoint.id;
        let is_redo = named.store.is_of_undo(&named.checkpoint)?;
        let earlier = match is_redo {
            true => named.store.last_restore()?,
            false => None,
        };
        let found = cx.open_roots()?.group_of(named)?;
        let metadata = || found.iter().map(|found| &found.checkpoint.metadata);
        let rewound = metadata()
            .filter(|_| paths.is_none())
            .find_map(|metadata| Some((metadata.task.clone()?, metadata.rewind.clone()?)));
        let task = metadata()
            .find_map(|metadata| metadata.task.as_deref())
            .map(TaskId::new)
            .transpose()?;
        let (files, conversation): (Vec<_>, Vec<_>) =
            found.into_iter().partition(Found::is_undo_of_files);
        let files = match files.is_empty() {
            false => Some(Restores::of(cx, files, paths, &Scope::Undo)?),
            true if paths.is_some() => {
                return Err(Error::invalid(
                    "the restore changed only the conversation; omit `paths`",
                ));
            }
            true => None,
        };
        Ok(Self {
            named: id,
            is_redo,
            earlier,
            files,
            conversation_only: conversation.into_iter().next(),
            task,
            rewound,
        })
    }
}
