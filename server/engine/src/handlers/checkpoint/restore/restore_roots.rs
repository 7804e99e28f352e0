//! Restores of one or several roots, shared by previews, restores and undos.

use std::collections::HashSet;

use super::{
    super::{
        checkpoint_context::CheckpointContext,
        maintenance,
        shared::{notify_created, wire},
    },
    editor_sync::{OpenFiles, replace_texts, report_changed},
};
use crate::{error::Error, render::outcome, request_context::Response, restore_log};
use sightline_base::path::RelPath;
use sightline_checkpoint::{
    group::{Found, GroupRestore, RootRestore},
    restore::{
        Conflict, ConflictCause, Options, Outcome, Preview, RestoreTarget, Restored, Scope,
        UnsavedTexts,
    },
};
use sightline_protocol::checkpoint::{RestoreCheckpointResult, RestoreConflict, RestoreOutcome};

/// The restore, or the undo, of each root in which the paths of a request select something.
pub(super) struct Restores<'a> {
    pub(super) group: GroupRestore<'a>,
    /// The open documents of each root.
    open: Vec<OpenFiles>,
}

impl<'a> Restores<'a> {
    /// Returns the restore of the named checkpoint and, with `all_roots`, of the others of its group.
    pub(super) fn named(
        cx: &'a CheckpointContext<'_>,
        named: Found,
        paths: Option<&[String]>,
        all_roots: bool,
    ) -> Result<Self, Error> {
        let found = if all_roots {
            cx.open_roots()?.group_of(named)?
        } else {
            vec![named]
        };
        Self::of(cx, found, paths, &Scope::All)
    }

    pub(super) fn of(
        cx: &'a CheckpointContext<'_>,
        found: Vec<Found>,
        paths: Option<&[String]>,
        scope: &Scope,
    ) -> Result<Self, Error> {
        let only_this = found.len() == 1;
        cx.require_known_paths(paths, &found, only_this)?;
        let mut group = GroupRestore {
            roots: cx.roots(),
            parts: Vec::new(),
        };
        for found in found {
            if let Some(paths) = cx.paths(found.root, paths, only_this)?.wanted() {
                cx.require_allowed(&found, &paths)?;
                let target = RestoreTarget {
                    id: found.checkpoint.id,
                    paths,
                    scope: scope.clone(),
                };
                group.parts.push(RootRestore {
                    found,
                    target,
                    unsaved: UnsavedTexts::new(),
                });
            }
        }
        if group.parts.is_empty() {
            return Err(Error::invalid(
                "`paths` selects nothing in the checkpoint's folders",
            ));
        }
        if *scope != Scope::Undo {
            group.remove_nested()?;
        }
        let mut open = Vec::new();
        for part in &mut group.parts {
            let files = OpenFiles::of(cx, part.found.root);
            part.unsaved = files.unsaved_texts(&cx.request.snapshot.editor);
            open.push(files);
        }
        Ok(Self { group, open })
    }

    fn roots(&self) -> Vec<usize> {
        let root = |part: &RootRestore| part.found.root;
        self.group.parts.iter().map(root).collect()
    }

    /// Returns the previews with their roots, and their token.
    pub(super) fn preview(
        &self,
        cx: &CheckpointContext<'_>,
    ) -> Result<(Vec<(usize, Preview)>, String), Error> {
        let roots = self.roots();
        let (previews, token) =
            cx.with_job(&roots, &cx.request.cancel, |job| self.group.preview(job))?;
        Ok((roots.into_iter().zip(previews).collect(), token))
    }

    /// Checks several roots before the first change. Returns the options of each.
    pub(super) fn prepare(
        &self,
        cx: &CheckpointContext<'_>,
        options: &Options,
    ) -> Result<Vec<Options>, Error> {
        Ok(cx.with_job(&self.roots(), &cx.request.cancel, |job| {
            self.group.prepare(job, options)
        })?)
    }

    /// Restores the roots, or none.
    pub(super) fn run(
        self,
        cx: &CheckpointContext<'_>,
        prepared: Vec<Options>,
        rewind: Option<String>,
    ) -> Result<RestoreCheckpointResult, Error> {
        let roots = self.roots();
        let restored = cx.with_job(&roots, &cx.request.cancel, |job| {
            self.group.run(job, prepared, rewind)
        });
        for root in roots {
            let (_, checkpoints) = cx.root_checkpoints(root)?;
            maintenance::schedule(cx.request.services, &checkpoints);
        }
        let mut result = RestoreCheckpointResult::default();
        let mut texts = Vec::new();
        let mut changed = Vec::new();
        let parts = self.group.parts.iter().zip(&self.open);
        for ((part, open), restored) in parts.zip(restored?) {
            let Found {
                root,
                store,
                checkpoint,
            } = &part.found;
            announce_undo_point(cx, &part.found, &restored);
            let is_done = |outcome: &&Outcome| outcome.error.is_none();
            let done: Vec<String> = restored
                .outcomes
                .iter()
                .filter(is_done)
                .map(|one| cx.name(*root, &one.path).0)
                .collect();
            restore_log::add(store, checkpoint, &part.target.scope, &done);
            let undo = restored.undo.map(|undo| undo.to_string());
            result.undo_id = result.undo_id.or(undo);
            let conflicts = restored.conflicts.into_iter();
            result
                .conflicts
                .extend(conflicts.map(|conflict| to_conflict(cx, *root, conflict)));
            let replaced: HashSet<&RelPath> =
                restored.texts.iter().map(|text| &text.path).collect();
            for outcome in restored.outcomes {
                let (path, path_encoded, uri) = cx.name(*root, &outcome.path);
                if outcome.error.is_none() && open.clean.contains(&outcome.path) {
                    changed.push(path.clone());
                }
                result.outcomes.push(RestoreOutcome {
                    path,
                    action: outcome.action,
                    ok: outcome.error.is_none(),
                    error: outcome.error,
                    replaced_unsaved: replaced.contains(&outcome.path),
                    uri,
                    path_encoded,
                });
            }
            texts.extend(restored.texts.into_iter().filter_map(|text| {
                let known = open.unsaved.iter().find(|(path, _)| *path == text.path);
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

/// Registers the undo point of a restore and notifies the client.
fn announce_undo_point(cx: &CheckpointContext<'_>, found: &Found, restored: &Restored) {
    let Some(undo) = restored.undo else {
        return;
    };
    if let Some(known) = cx.roots().get(found.root) {
        cx.request.services.checkpoints.remember(undo, known);
    }
    let created = found.store.get(undo).map_err(Error::from);
    if let Ok(checkpoint) = created.and_then(|created| wire(cx, found.root, &created)) {
        notify_created(cx.request, &checkpoint);
    }
}

/// Creates the undo point of a restore that only rewinds the conversation.
pub(super) fn undo_point(
    cx: &CheckpointContext<'_>,
    found: &Found,
    options: &Options,
    rewind: Option<String>,
) -> Result<RestoreCheckpointResult, Error> {
    let mut request = options.undo.of_undo_point(None, Vec::new());
    request.metadata.rewind = rewind;
    let (_, checkpoints) = cx.root_checkpoints(found.root)?;
    let changes = Some(&checkpoints.changes as _);
    let checkpoint = cx.with_job(&[found.root], &cx.request.cancel, |job| {
        checkpoints.store.create(job, &request, changes)
    })?;
    cx.scanned(&checkpoints);
    notify_created(cx.request, &wire(cx, found.root, &checkpoint)?);
    Ok(RestoreCheckpointResult {
        undo_id: Some(checkpoint.id.to_string()),
        ..RestoreCheckpointResult::default()
    })
}

pub(super) fn with_summary(result: RestoreCheckpointResult) -> Response<RestoreCheckpointResult> {
    let summary = outcome(&result);
    Response::from(result).with_summary(summary)
}
