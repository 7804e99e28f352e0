//! `sightline/previewRestore`.

use super::{
    super::{
        checkpoint_context::CheckpointContext,
        reference::{Reference, TurnSide},
        shared::wire,
    },
    part::Selection,
    restore_roots::{action, to_conflict},
    undo_restore::UndoPlan,
};
use crate::{error::Error, request_context::RequestContext};
use sightline_base::escape::one_line;
use sightline_checkpoint::{Head, group::Found};
use sightline_protocol::checkpoint::{
    CheckpointKind, PreviewRestoreParams, PreviewRestoreResult, RestoreChange, RestoreTarget,
    short_id,
};

/// `sightline/previewRestore`.
pub fn run(
    context: &RequestContext<'_>,
    params: PreviewRestoreParams,
) -> Result<PreviewRestoreResult, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Comparing")?;
    let mut result = PreviewRestoreResult::default();
    let paths = params.paths.as_deref();
    let root = params.root.as_deref();
    let selection = Selection {
        id: &params.id,
        root,
        paths,
        all_roots: params.all_roots,
        only: params.only,
        hunks: params.hunks.as_deref(),
    };
    let named = match params.undo {
        Some(true) if selection.is_part() => {
            let why = "`undo` cannot be combined with `only` and `hunks`";
            return Err(Error::invalid(why));
        }
        Some(true) => None,
        _ => Some(selection.find(&cx)?),
    };
    let is_undo = |found: &Found| {
        params.undo.is_none() && paths.is_none() && !selection.is_part() && found.is_undo_of_files()
    };
    if let Some(named) = named.as_ref().filter(|named| !is_undo(named)) {
        let (target, warnings) = describe(&cx, &params.id, named)?;
        result.target = Some(target);
        result.warnings = warnings;
    }
    let restores = if let Some(named) = named.filter(|named| !is_undo(named)) {
        Some(selection.restores(&cx, named)?)
    } else {
        let undone = UndoPlan::find(&cx, Some(&params.id), root, paths)?;
        result.undo_id = Some(undone.named.to_string());
        result.task_id = undone.rewound.map(|(task, _)| task);
        undone.files
    };
    let Some(restores) = restores else {
        return Ok(result);
    };
    let (previews, token) = restores.preview(&cx)?;
    for (root, preview) in previews {
        for change in preview.changes {
            let (path, path_encoded, uri) = cx.name(root, &change.path);
            result.changes.push(RestoreChange {
                path,
                action: action(change.action),
                reason: change.reason,
                uri,
                path_encoded,
            });
        }
        let conflicts = preview.conflicts.into_iter();
        result
            .conflicts
            .extend(conflicts.map(|conflict| to_conflict(&cx, root, conflict)));
    }
    result.token = token;
    Ok(result)
}

/// Returns the state that a restore leads to, and what the user may not expect of it.
fn describe(
    cx: &CheckpointContext<'_>,
    written: &str,
    found: &Found,
) -> Result<(RestoreTarget, Vec<String>), Error> {
    let checkpoint = wire(cx, found.root, &found.checkpoint)?;
    let named = checkpoint.turn.and_then(|turn| turn.name);
    let name = match Reference::parse(written)? {
        Reference::Turn(name, TurnSide::Before) => Some(name.to_string()),
        Reference::Turn(name, TurnSide::After) => Some(format!("{name}+")),
        _ if checkpoint.kind == CheckpointKind::TurnEnd => named.map(|name| format!("{name}+")),
        _ => named,
    };
    let mut warnings = Vec::new();
    let then = &found.checkpoint.metadata.head;
    let (root, _) = cx.root_checkpoints(found.root)?;
    let now = Head::of(&cx.view, root.canonical.as_path());
    if let (Some(then), Some(now)) = (then, &now)
        && then.branch != now.branch
    {
        warnings.push(format!(
            "the checkpoint was created on {}, and {} is checked out now",
            place(then),
            place(now)
        ));
    }
    if found.checkpoint.metadata.fetched {
        warnings.push("the checkpoint was fetched from another folder or machine".to_owned());
    }
    let target = RestoreTarget {
        id: checkpoint.id,
        name,
        label: checkpoint.label,
        created_at: checkpoint.created_at,
        branch: checkpoint.head.and_then(|head| head.branch),
    };
    Ok((target, warnings))
}

fn place(head: &Head) -> String {
    match &head.branch {
        Some(branch) => format!("branch {}", one_line(branch)),
        None => format!("commit {}", short_id(&head.commit)),
    }
}
