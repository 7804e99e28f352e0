//! `sightline/previewRestore`.

use std::collections::{BTreeSet, HashMap};

use super::{
    super::{
        checkpoint_context::CheckpointContext,
        reference::{Reference, TurnSide},
        shared::wire,
    },
    part::Selection,
    restore_roots::to_conflict,
    undo_restore::UndoPlan,
};
use crate::{error::Error, request_context::RequestContext};
use sightline_base::{escape::one_line, path::RelPath, words::first_of};
use sightline_checkpoint::{Head, TurnName, group::Found, head_of};
use sightline_protocol::checkpoint::{
    CheckpointKind, PreviewRestoreParams, PreviewRestoreResult, RestoreChange, RestoreTarget,
    short_id,
};

/// Warning for the undo of an undo.
const REDO: &str = "this undoes an undo: its restore is done again";
/// Maximum number of files that a warning names.
const NAMED_FILES: usize = 3;

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
    let mut shared = Shared::default();
    let is_undo = |found: &Found| {
        params.undo.is_none() && paths.is_none() && !selection.is_part() && found.is_undo_of_files()
    };
    if let Some(named) = named.as_ref().filter(|named| !is_undo(named)) {
        let (target, warnings) = describe(&cx, &params.id, named)?;
        shared = Shared::of(&cx, &target, named)?;
        result.target = Some(target);
        result.warnings = warnings;
    }
    let restores = if let Some(named) = named.filter(|named| !is_undo(named)) {
        Some(selection.restores(&cx, named)?)
    } else {
        let undone = UndoPlan::find(&cx, Some(&params.id), root, paths)?;
        result.undo_id = Some(undone.named.to_string());
        if undone.is_redo {
            let earlier = undone.earlier.map(|id| {
                let id = id.to_string();
                format!(". To undo an earlier restore, undo {}", short_id(&id))
            });
            let warning = format!("{REDO}{}", earlier.unwrap_or_default());
            result.warnings.push(warning);
        }
        result.task_id = undone.rewound.map(|(task, _)| task);
        undone.files
    };
    let Some(restores) = restores else {
        return Ok(result);
    };
    let (previews, token) = restores.preview(&cx)?;
    let mut reverted = Vec::new();
    for (root, preview) in previews {
        for change in preview.changes {
            let (path, path_encoded, uri) = cx.name(root, &change.path);
            if shared.has(root, &change.path) {
                reverted.push((change.path.clone(), path.clone()));
            }
            result.changes.push(RestoreChange {
                path,
                action: change.action,
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
    result.warnings.extend(shared.warning(&reverted));
    result.token = token;
    Ok(result)
}

/// Files that other turns changed while the turn ran that is reverted, or that the restore begins at.
#[derive(Default)]
struct Shared {
    root: usize,
    files: HashMap<RelPath, Vec<TurnName>>,
}

impl Shared {
    fn of(
        cx: &CheckpointContext<'_>,
        target: &RestoreTarget,
        found: &Found,
    ) -> Result<Self, Error> {
        // A name with a `+` at its end is that of the state after the turn.
        let name: Option<TurnName> = target.name.as_ref().and_then(|name| name.parse().ok());
        let turn = name.map(|name| found.store.turn(&name)).transpose()?;
        let Some(turn) = turn.flatten() else {
            return Ok(Self::default());
        };
        let listed = cx.with_job(&[found.root], &cx.request.cancel, |job| {
            found.store.listed_turn(job, &turn)
        })?;
        Ok(Self {
            root: found.root,
            files: listed
                .own
                .files
                .into_iter()
                .filter(|file| !file.shared_with.is_empty())
                .filter_map(|file| Some((file.path()?, file.shared_with)))
                .collect(),
        })
    }

    fn has(&self, root: usize, path: &RelPath) -> bool {
        root == self.root && self.files.contains_key(path)
    }

    /// Names the turns and the files. `None` if there are none.
    fn warning(&self, reverted: &[(RelPath, String)]) -> Option<String> {
        let turns: BTreeSet<&TurnName> = reverted
            .iter()
            .flat_map(|(path, _)| &self.files[path])
            .collect();
        let turns: Vec<String> = turns.into_iter().map(ToString::to_string).collect();
        let files = reverted.iter().map(|(_, path)| one_line(path).into_owned());
        let files: Vec<String> = files.collect();
        (!turns.is_empty()).then(|| {
            format!(
                "{} ran at the same time and changed the same files. Those changes are reverted too: {}",
                turns.join(", "),
                first_of(&files, NAMED_FILES)
            )
        })
    }
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
    let now = head_of(&cx.view, root.canonical.as_path());
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
