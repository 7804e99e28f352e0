//! Restores the roots of a group, shared by previews, restores and undos.
//!
//! A restore of several roots is atomic: all roots are previewed before any is changed, and
//! if one fails, those before it are rolled back to their undo points.

use super::{
    super::{
        checkpoint_context::{CheckpointContext, FoundCheckpoint},
        shared::{group_root_uris, grouped_checkpoints, notify_created, to_wire},
    },
    editor_sync::{replace_texts, report_changed},
    root_restore::{RootRestore, without_nested},
};
use crate::{error::Error, plural::plural, request_context::Response, restore_log};
use sightline_checkpoint::{
    Checkpoint, Purpose, Request,
    restore::{Action, Conflict, ConflictCause, Options, RestoreTarget, Restored},
};
use sightline_protocol::{
    checkpoint::{
        RestoreAction, RestoreCheckpointResult, RestoreConflict, RestoreOutcome, short_id,
    },
    error::ErrorKind,
};
use sightline_workspace::{cancel::Cancel, path::RelPath};
use std::collections::HashSet;

/// Returns the named checkpoint and, with `all_roots`, the others of its group.
pub(super) fn parts(
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
    without_nested(cx, root_restores(cx, found, paths, false)?)
}

/// Returns the restore, or the undo, of each root in which `paths` selects something.
pub(super) fn root_restores(
    cx: &CheckpointContext<'_>,
    found: Vec<FoundCheckpoint>,
    paths: Option<&[String]>,
    is_undo: bool,
) -> Result<Vec<RootRestore>, Error> {
    let only_this = found.len() == 1;
    cx.require_known_paths(paths, &found, only_this)?;
    let mut parts = Vec::new();
    for found in found {
        if let Some(paths) = cx.paths(found.root, paths, only_this)?.wanted() {
            cx.require_allowed(&found, &paths)?;
            let wanted = RestoreTarget {
                id: found.checkpoint.id,
                paths,
                is_undo,
            };
            parts.push(RootRestore::new(cx, found, wanted)?);
        }
    }
    if parts.is_empty() {
        return Err(Error::invalid(
            "`paths` selects nothing in the checkpoint's folders",
        ));
    }
    Ok(parts)
}

/// Returns the checkpoints of a group, in root order.
pub(super) fn find_group(
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
pub(super) fn require_open(
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

pub(super) fn to_conflict(
    cx: &CheckpointContext<'_>,
    root: usize,
    conflict: Conflict,
) -> RestoreConflict {
    let (path, path_encoded, uri) = cx.name(root, &conflict.path);
    RestoreConflict {
        path,
        reason: conflict.reason,
        changed_since: conflict.cause == ConflictCause::ChangedSince,
        unsaved: conflict.cause == ConflictCause::Unsaved,
        uri,
        path_encoded,
    }
}

/// Separates the tokens of several roots. Tokens do not contain it.
pub(super) const TOKEN_SEPARATOR: &str = ".";

pub(super) fn action(action: Action) -> RestoreAction {
    match action {
        Action::Write => RestoreAction::Write,
        Action::Delete => RestoreAction::Delete,
    }
}

/// Previews every root before any is changed. Returns their tokens.
pub(super) fn preview_all(
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
pub(super) fn restore_roots(
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
        let done = restored.outcomes.iter();
        let done = done.filter(|outcome| outcome.error.is_none()).count();
        restore_log::add(&part.found.checkpoints.store, &part.found.checkpoint, done);
        let undo = restored.undo.map(|undo| undo.to_string());
        result.undo_id = result.undo_id.or(undo);
        let conflicts = restored.conflicts.into_iter();
        result
            .conflicts
            .extend(conflicts.map(|conflict| to_conflict(cx, root, conflict)));
        let replaced: HashSet<&RelPath> = restored.texts.iter().map(|text| &text.path).collect();
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
                replaced_unsaved: replaced.contains(&outcome.path),
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
        report_changed(cx.request.services, &changed);
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
        let registry = &cx.request.services.checkpoints;
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
                is_undo: true,
            },
            // The text in the editor is still the one before the restore.
            unsaved: Vec::new(),
            clean: Vec::new(),
            found: FoundCheckpoint {
                root: part.found.root,
                checkpoints: part.found.checkpoints.clone(),
                checkpoint: part.found.checkpoint.clone(),
            },
        };
        // A rollback must not be cancelled.
        let undone = back.restore(cx, &Cancel::default(), &Options::default());
        let failed = match &undone {
            Err(failed) => Some(failed.message.clone()),
            Ok(undone) => {
                let errors = undone.outcomes.iter().filter_map(|one| one.error.clone());
                let kept = undone.conflicts.iter();
                let kept = kept.map(|one| format!("{}: {}", one.path, one.reason));
                errors.chain(kept).next()
            }
        };
        if let Some(failed) = failed {
            error.message = format!(
                "{}; cannot roll back the folders restored before: {failed}; undo with `sightline checkpoint undo {}`",
                error.message,
                short_id(&undo.to_string())
            );
        }
    }
    error
}

/// Creates the undo point of a restore that only rewinds the conversation.
pub(super) fn undo_point(
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
    cx.scanned(&found.checkpoints);
    notify_created(cx.request, &to_wire(&cx.view, found.root, &checkpoint));
    Ok(RestoreCheckpointResult {
        undo_id: Some(checkpoint.id.to_string()),
        ..RestoreCheckpointResult::default()
    })
}

pub(super) fn with_summary(result: RestoreCheckpointResult) -> Response<RestoreCheckpointResult> {
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
    let Some(undo) = result.undo_command() else {
        return Response::from(result).with_summary(format!("already up to date{kept}"));
    };
    let summary = format!(
        "{} restored{failed}{kept}{task}; undo with `{undo}`",
        plural(done as u64, "path")
    );
    Response::from(result).with_summary(summary)
}
