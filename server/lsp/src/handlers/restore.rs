//! `sightline/previewRestore`, `restoreCheckpoint` and `undoRestore`.
//!
//! A restore of several roots is atomic: all roots are previewed before any is changed,
//! and if one fails, those before it are rolled back to their undo points. The
//! conversation is rewound first, which is one log entry and easily reverted if the files
//! fail.

mod conversation;
mod editor_sync;
mod root_restore;

use std::sync::Arc;

use sightline_checkpoint::{
    Checkpoint, Oid, Purpose, Request,
    restore::{Action, Conflict, Options, RestoreTarget, Restored},
};
use sightline_protocol::{
    checkpoint::{
        PreviewRestoreParams, PreviewRestoreResult, RestoreAction, RestoreChange,
        RestoreCheckpointParams, RestoreCheckpointResult, RestoreConflict, RestoreMode,
        RestoreOutcome, RestoredTask, UndoRestoreParams,
    },
    error::ErrorKind,
};
use sightline_workspace::{cancel::Cancel, error::Error, storage::TaskId};

use super::{
    RequestContext, Response,
    checkpoint_context::{CheckpointContext, FoundCheckpoint},
    checkpoints::{
        conversation_mark, group_root_uris, grouped_checkpoints, notify_created, to_wire,
    },
};
use crate::plural::plural;
use conversation::{messages, rewind, undo_rewind};
pub(crate) use editor_sync::workspace_edit;
use editor_sync::{replace_texts, report_changed};
use root_restore::{RootRestore, without_nested};

/// Returns the named checkpoint and, with `all_roots`, the others of its group.
fn parts(
    cx: &CheckpointContext<'_>,
    id: &str,
    paths: Option<&[String]>,
    all_roots: bool,
) -> Result<Vec<RootRestore>, Error> {
    let named = cx.find(id)?;
    let found = match &named.checkpoint.metadata.group {
        Some(group) if all_roots => {
            let found = find_group(cx, group, |_| true)?;
            require_open(
                cx,
                &named.checkpoint,
                &found,
                "restore only this checkpoint",
            )?;
            found
        }
        _ => vec![named],
    };
    let only_this = found.len() == 1;
    let mut parts = Vec::new();
    for found in found {
        let wanted = cx.paths(found.root, paths, only_this)?.wanted();
        if let Some(wanted) = wanted {
            parts.push(RootRestore::new(cx, found, wanted)?);
        }
    }
    if parts.is_empty() {
        return Err(Error::invalid(
            "`paths` selects nothing in the checkpoint's folders",
        ));
    }
    without_nested(cx, parts)
}

/// Returns the checkpoints of a group, in root order.
fn find_group(
    cx: &CheckpointContext<'_>,
    group: &str,
    is_meant: impl Fn(&Checkpoint) -> bool,
) -> Result<Vec<FoundCheckpoint>, Error> {
    let mut found = Vec::new();
    for (root, checkpoint) in grouped_checkpoints(cx)? {
        if checkpoint.metadata.group.as_deref() == Some(group) && is_meant(&checkpoint) {
            let (_, checkpoints) = cx.root_checkpoints(root)?;
            found.push(FoundCheckpoint {
                root,
                checkpoints,
                checkpoint,
            });
        }
    }
    Ok(found)
}

/// Requires that every root of a group is open, so that a group is not restored
/// partially.
///
/// # Errors
/// `conflict` if one of the folders is not open.
fn require_open(
    cx: &CheckpointContext<'_>,
    checkpoint: &Checkpoint,
    found: &[FoundCheckpoint],
    instead: &str,
) -> Result<(), Error> {
    let all = &checkpoint.metadata.group_roots;
    if found.len() >= all.len() {
        return Ok(());
    }
    let roots = cx.roots().as_slice();
    let is_open = |uri: &str| roots.iter().any(|root| root.path.to_uri() == uri);
    let closed: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .filter(|uri| !is_open(uri))
        .collect();
    if closed.is_empty() {
        return Ok(());
    }
    let why = format!(
        "checkpoint {} belongs to a group with folders that are not open; nothing was changed. Open {}, or {instead}",
        checkpoint.id,
        closed.join(", ")
    );
    Err(Error::new(ErrorKind::Conflict, why))
}

/// `sightline/previewRestore`.
pub fn preview(
    context: &RequestContext<'_>,
    params: PreviewRestoreParams,
) -> Result<PreviewRestoreResult, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Comparing")?;
    let mut result = PreviewRestoreResult::default();
    let parts = if params.undo {
        if params.paths.is_some() {
            return Err(Error::invalid(
                "an undo reverts the whole restore; omit `paths`, or preview a restore of the undo point",
            ));
        }
        let id = Some(params.id.as_str()).filter(|id| *id != "last");
        let undone = UndoPlan::find(&cx, id)?;
        result.undo_id = Some(undone.named.to_string());
        result.task_id = undone.rewound.map(|(task, _)| task);
        undone.parts
    } else {
        parts(&cx, &params.id, params.paths.as_deref(), params.all_roots)?
    };
    let mut tokens = Vec::new();
    for part in &parts {
        let preview = part.preview(&cx)?;
        let root = part.found.root;
        for change in preview.changes {
            let (path, path_encoded, uri) = cx.name(root, &change.path);
            result.changes.push(RestoreChange {
                path,
                action: action(change.action),
                reason: change.reason,
                changed_since: change.changed_since,
                uri,
                path_encoded,
            });
        }
        let conflicts = preview.conflicts.into_iter();
        result
            .conflicts
            .extend(conflicts.map(|conflict| to_conflict(&cx, root, conflict)));
        tokens.push(preview.token);
    }
    result.token = tokens.join(TOKEN_SEPARATOR);
    Ok(result)
}

fn to_conflict(cx: &CheckpointContext<'_>, root: usize, conflict: Conflict) -> RestoreConflict {
    let (path, path_encoded, uri) = cx.name(root, &conflict.path);
    RestoreConflict {
        path,
        reason: conflict.reason,
        uri,
        path_encoded,
    }
}

/// Separates the tokens of several roots. Tokens do not contain it.
const TOKEN_SEPARATOR: &str = ".";

fn action(action: Action) -> RestoreAction {
    match action {
        Action::Write => RestoreAction::Write,
        Action::Delete => RestoreAction::Delete,
    }
}

/// `sightline/restoreCheckpoint`.
pub fn restore(
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

/// Previews every root before any is changed. Returns their tokens.
fn preview_all(
    cx: &CheckpointContext<'_>,
    parts: &[RootRestore],
    token: Option<&str>,
) -> Result<Vec<String>, Error> {
    let mut tokens = Vec::new();
    for part in parts {
        tokens.push(part.preview(cx)?.token);
    }
    if token.is_some_and(|token| token != tokens.join(TOKEN_SEPARATOR)) {
        return Err(Error::new(
            ErrorKind::Conflict,
            "the workspace changed since the preview; preview again",
        ));
    }
    Ok(tokens)
}

/// Restores the roots one after the other, or none.
fn restore_roots(
    cx: &CheckpointContext<'_>,
    parts: &[RootRestore],
    tokens: Vec<String>,
    options: &Options,
) -> Result<RestoreCheckpointResult, Error> {
    let group = (parts.len() > 1).then(|| uuid::Uuid::new_v4().to_string());
    let group_roots = group_root_uris(cx.roots(), parts.iter().map(|part| part.found.root));
    let mut tokens = tokens.into_iter();
    let mut done: Vec<(&RootRestore, Restored)> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let options = Options {
            token: tokens.next().or_else(|| options.token.clone()),
            group: group.clone(),
            group_roots: group_roots.clone(),
            // The conversation is rewound with the first root only.
            rewind: options.rewind.clone().filter(|_| place == 0),
            ..options.clone()
        };
        match part.restore(cx, &cx.request.cancel, &options) {
            Ok(restored) => done.push((part, restored)),
            Err(error) => return Err(roll_back(cx, done, error)),
        }
    }
    let mut result = RestoreCheckpointResult::default();
    let mut texts = Vec::new();
    let mut changed = Vec::new();
    for (part, restored) in done {
        let root = part.found.root;
        announce_undo_point(cx, part, &restored);
        let undo = restored.undo.map(|undo| undo.to_string());
        result.undo_id = result.undo_id.or(undo);
        let conflicts = restored.conflicts.into_iter();
        result
            .conflicts
            .extend(conflicts.map(|conflict| to_conflict(cx, root, conflict)));
        for outcome in restored.outcomes {
            let (path, path_encoded, uri) = cx.name(root, &outcome.path);
            if outcome.error.is_none() && part.clean.contains(&outcome.path) {
                changed.push(path.clone());
            }
            result.outcomes.push(RestoreOutcome {
                path,
                action: action(outcome.action),
                ok: outcome.error.is_none(),
                error: outcome.error,
                uri,
                path_encoded,
            });
        }
        texts.extend(restored.texts.into_iter().filter_map(|text| {
            let known = part.unsaved.iter().find(|(path, _)| *path == text.path);
            Some((known?.1.clone(), text))
        }));
    }
    replace_texts(cx.request, &texts);
    // Our plugins reload documents themselves.
    if !cx.request.snapshot.client_info.plugin {
        report_changed(cx.request.server, &changed);
    }
    Ok(result)
}

/// Registers the undo point of a restore and notifies the client.
fn announce_undo_point(cx: &CheckpointContext<'_>, part: &RootRestore, restored: &Restored) {
    let Some(undo) = restored.undo else {
        return;
    };
    let FoundCheckpoint {
        root, checkpoints, ..
    } = &part.found;
    if let Some(known) = cx.roots().get(*root) {
        let registry = cx.request.server.checkpoints();
        registry.remember(undo, known);
    }
    if let Ok(checkpoint) = checkpoints.store.get(undo) {
        notify_created(cx.request, &to_wire(&cx.view, *root, &checkpoint));
    }
}

/// Rolls back the roots restored before one failed. Adds to the error if that fails too.
fn roll_back(
    cx: &CheckpointContext<'_>,
    done: Vec<(&RootRestore, Restored)>,
    mut error: Error,
) -> Error {
    for (part, restored) in done.into_iter().rev() {
        let Some(undo) = restored.undo else {
            continue;
        };
        let back = RootRestore {
            wanted: RestoreTarget {
                id: undo,
                paths: Vec::new(),
            },
            unsaved: part.unsaved.clone(),
            clean: Vec::new(),
            found: FoundCheckpoint {
                root: part.found.root,
                checkpoints: part.found.checkpoints.clone(),
                checkpoint: part.found.checkpoint.clone(),
            },
        };
        // A rollback must not be cancelled.
        let options = Options {
            force: true,
            ..Options::default()
        };
        let undone = back.restore(cx, &Cancel::default(), &options);
        let failed = match &undone {
            Err(failed) => Some(failed.message.clone()),
            Ok(undone) => undone.outcomes.iter().find_map(|o| o.error.clone()),
        };
        if let Some(failed) = failed {
            error.message = format!(
                "{}; cannot roll back the folders restored before: {failed}; undo with {undo}",
                error.message
            );
        }
    }
    error
}

/// Creates the undo point of a restore that only rewinds the conversation.
fn undo_point(
    cx: &CheckpointContext<'_>,
    found: &FoundCheckpoint,
    options: &Options,
) -> Result<RestoreCheckpointResult, Error> {
    let request = Request {
        task: options.task.clone(),
        purpose: Purpose::Undo {
            restoring: None,
            paths: Vec::new(),
        },
        messages: options.messages,
        rewind: options.rewind.clone(),
        confirm_large: true,
        ..Request::default()
    };
    let checkpoint = cx.with_job(found.root, &cx.request.cancel, |job| {
        found
            .checkpoints
            .store
            .create(job, &request, Some(&found.checkpoints.changes))
    })?;
    found.checkpoints.scanned(cx.request.server);
    notify_created(cx.request, &to_wire(&cx.view, found.root, &checkpoint));
    Ok(RestoreCheckpointResult {
        undo_id: Some(checkpoint.id.to_string()),
        ..RestoreCheckpointResult::default()
    })
}

/// `sightline/undoRestore`.
pub fn undo(
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
    } = UndoPlan::find(&cx, params.undo_id.as_deref())?;
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
struct UndoPlan {
    /// The given or latest undo point.
    named: Oid,
    /// The files of all roots that were restored together.
    parts: Vec<RootRestore>,
    /// An undo point of a conversation only.
    conversation_only: Option<FoundCheckpoint>,
    task: Option<TaskId>,
    /// Task and rewind id of the conversation.
    rewound: Option<(String, String)>,
}

impl UndoPlan {
    /// Finds an undo point, by default the latest.
    fn find(cx: &CheckpointContext<'_>, id: Option<&str>) -> Result<Self, Error> {
        let named = match id {
            Some(id) => cx.find(id)?,
            None => last_undo(cx)?,
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
        let rewound = found.iter().find_map(|found| {
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
        for found in found {
            match &found.checkpoint.metadata.purpose {
                Purpose::Undo {
                    restoring: None, ..
                } => undone.conversation_only = Some(found),
                _ => undone.parts.push(RootRestore::new(cx, found, Vec::new())?),
            }
        }
        Ok(undone)
    }
}

fn is_undo(checkpoint: &Checkpoint) -> bool {
    matches!(checkpoint.metadata.purpose, Purpose::Undo { .. })
}

/// Returns the latest undo point of all roots.
fn last_undo(cx: &CheckpointContext<'_>) -> Result<FoundCheckpoint, Error> {
    let mut last: Option<FoundCheckpoint> = None;
    for root in 0..cx.roots().as_slice().len() {
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
    last.ok_or_else(|| Error::new(ErrorKind::NotFound, "no restore to undo"))
}

fn with_summary(result: RestoreCheckpointResult) -> Response<RestoreCheckpointResult> {
    let failed = result.outcomes.iter().filter(|outcome| !outcome.ok).count();
    let done = result.outcomes.len() - failed;
    let failed = match failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let kept = match result.conflicts.len() {
        0 => String::new(),
        kept => format!(", {kept} skipped"),
    };
    let task = result.task.as_ref().map_or_else(String::new, |task| {
        let messages = plural(task.messages, "message");
        format!(", task {} has {messages}", task.task_id)
    });
    let Some(undo) = &result.undo_id else {
        return Response::from(result).with_summary(format!("already up to date{kept}"));
    };
    let summary = format!(
        "{} restored{failed}{kept}{task}; undo with {undo}",
        plural(done as u64, "path")
    );
    Response::from(result).with_summary(summary)
}
