//! `sightline/listTurns`.

use sightline_checkpoint::{ChangedFile, ChangedFiles, ListedTurn as Listed, TurnFilter, to_i64};
use sightline_protocol::checkpoint::{
    CheckpointHead, ListTurnsParams, ListTurnsResult, ListedTurn, OutsideChanges, TurnFile,
};

use super::super::{
    checkpoint_context::{CheckpointContext, selected_roots},
    reference::unknown_checkpoint,
};
use crate::{error::Error, request_context::RequestContext};

/// Number of turns without a limit, and at most.
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;

/// `sightline/listTurns`.
///
/// # Errors
/// `notFound`, `invalidParams`, `storage`.
pub fn list_turns(
    context: &RequestContext<'_>,
    params: ListTurnsParams,
) -> Result<ListTurnsResult, Error> {
    let cx = CheckpointContext::begin(context, None, "Listing turns")?;
    let root = params.root.as_deref();
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT) as usize;
    let cursor = match &params.before {
        Some(written) => {
            let name = written.parse().map_err(|_| unknown_checkpoint(written))?;
            Some(cx.turn(&name, root)?)
        }
        None => None,
    };
    let mut turns = Vec::new();
    for root in selected_roots(cx.roots(), root)? {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        let mut filter = TurnFilter {
            session: params.session.clone(),
            before: None,
            limit,
        };
        if let Some(cursor) = cursor.as_ref().filter(|cursor| cursor.root == root) {
            filter.before = Some(cursor.turn.name.clone());
        }
        let listed = cx.with_job(&[root], &context.cancel, |job| {
            checkpoints.store.list_turns(job, &filter)
        })?;
        let started = cursor
            .as_ref()
            .map_or(u64::MAX, |cursor| cursor.turn.started);
        let listed = listed.iter().filter(|one| one.turn.started <= started);
        turns.extend(listed.map(|one| to_wire(&cx, root, one)));
    }
    turns.sort_by_key(|turn| std::cmp::Reverse(turn.started_at));
    turns.truncate(limit);
    Ok(ListTurnsResult { turns })
}

fn to_wire(cx: &CheckpointContext<'_>, root: usize, listed: &Listed) -> ListedTurn {
    let turn = &listed.turn;
    ListedTurn {
        name: turn.name.to_string(),
        root: cx
            .roots()
            .get(root)
            .map_or_else(String::new, |root| root.path.to_uri()),
        agent: turn.agent.clone(),
        session: turn.session.clone(),
        number: turn.name.number,
        prompt: turn.prompt.clone(),
        started_at: to_i64(turn.started),
        ended_at: turn.ended.map(to_i64),
        running: turn.is_running(),
        head: turn.head.clone(),
        before: turn.before.map(|id| id.to_string()),
        after: turn.after.map(|id| id.to_string()),
        files: files(cx, root, &listed.own),
        more_files: listed.own.more,
        outside: listed.outside.as_ref().map(|outside| {
            let is_switched = outside.from != outside.to;
            let head = |head: &Option<CheckpointHead>| head.clone().filter(|_| is_switched);
            OutsideChanges {
                files: files(cx, root, &outside.files),
                more_files: outside.files.more,
                turns: outside.turns.iter().map(ToString::to_string).collect(),
                from: head(&outside.from),
                to: head(&outside.to),
            }
        }),
    }
}

fn files(cx: &CheckpointContext<'_>, root: usize, changed: &ChangedFiles) -> Vec<TurnFile> {
    let file = |file: &ChangedFile| {
        let (path, path_encoded, _) = cx.name(root, &file.path()?);
        Some(TurnFile {
            path,
            path_encoded,
            status: file.status,
            additions: file.additions,
            deletions: file.deletions,
            shared_with: file.shared_with.iter().map(ToString::to_string).collect(),
        })
    };
    changed.files.iter().filter_map(file).collect()
}
