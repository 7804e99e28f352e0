//! `sightline/createCheckpoint`, `listCheckpoints`, `diffCheckpoints`,
//! `checkpointStats`, `pruneCheckpoints` and `verifyCheckpoints`.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use sightline_checkpoint::{
    Checkpoint as StoredCheckpoint, ConversationMark, Filter, Keep, Oid, Purpose, Request, Side,
    Skipped,
    cline_import::Imported,
    diff::{self, DiffOptions, FileDiff, Status},
};
use sightline_protocol::{
    checkpoint::{
        Checkpoint, CheckpointPurpose, CheckpointStatsParams, CheckpointStatsResult,
        CreateCheckpointParams, DidCreateCheckpointParams, DiffCheckpointsParams,
        DiffCheckpointsResult, DifferenceStatus, FileDifference, GroupMember,
        ListCheckpointsParams, ListCheckpointsResult, PruneCheckpointsParams,
        PruneCheckpointsResult, SkippedPath, VerifyCheckpointsParams, VerifyCheckpointsResult,
    },
    error::ErrorKind,
    method::{DidCreateCheckpoint, Notification},
};
use sightline_workspace::{
    access::AccessView,
    cancel::Cancel,
    error::Error,
    limits,
    path::{Root, Roots},
    storage::TaskId,
};

use super::{RequestContext, Response, checkpoint_context::CheckpointContext};
use crate::{
    checkpoint_registry::{all_roots, keys_of_roots, named_root, try_recover},
    plural::plural,
    shared_state::Server,
};

/// Returns the named root, or all.
fn selected_roots(roots: &Roots, name: Option<&str>) -> Result<Vec<usize>, Error> {
    match name {
        Some(name) => Ok(vec![named_root(roots, name)?]),
        None => Ok((0..roots.as_slice().len()).collect()),
    }
}

/// `sightline/createCheckpoint`.
pub fn create(
    context: &RequestContext<'_>,
    params: CreateCheckpointParams,
) -> Result<Response<Checkpoint>, Error> {
    let task = params.task_id.as_deref().map(TaskId::new).transpose()?;
    let label = params.label.as_ref().map_or(0, String::len);
    if label > limits::MAX_LABEL_BYTES {
        let limit = limits::MAX_LABEL_BYTES;
        let why = format!("a label of {label} bytes exceeds the limit of {limit}; shorten it");
        return Err(Error::new(ErrorKind::TooLarge, why));
    }
    let cx = CheckpointContext::begin(context, params.work_done_token, "Creating a checkpoint")?;
    let roots = selected_roots(cx.roots(), params.root.as_deref())?;
    let messages = match &task {
        Some(task) => conversation_mark(context, task),
        None => None,
    };
    let request = Request {
        task,
        label: params.label,
        purpose: Purpose::Asked,
        messages,
        confirm_large: params.confirm_large,
        group: (roots.len() > 1).then(|| uuid::Uuid::new_v4().to_string()),
        group_roots: group_root_uris(cx.roots(), roots.iter().copied()),
        ..Request::default()
    };
    let mut taken = Vec::new();
    for root in roots {
        match create_in_root(&cx, root, &request) {
            Ok(stored) => taken.push((root, stored)),
            Err(error) => {
                remove_created(&cx, &taken);
                return Err(error);
            }
        }
    }
    let members = members(cx.roots(), &taken);
    let mut checkpoints = taken.iter().map(|(root, stored)| {
        let mut checkpoint = to_wire(&cx.view, *root, stored);
        checkpoint.group = (members.len() > 1).then(|| members.clone());
        checkpoint
    });
    let checkpoints: Vec<Checkpoint> = checkpoints.by_ref().collect();
    for checkpoint in &checkpoints {
        notify_created(context, checkpoint);
    }
    let first = checkpoints.into_iter().next();
    let first = first
        .ok_or_else(|| Error::invalid("no folder is open; checkpoints need an open folder"))?;
    let summary = format!(
        "checkpoint {}: {} added, {} modified, {} deleted{}",
        first.id.get(..8).unwrap_or(&first.id),
        first.added,
        first.modified,
        first.deleted,
        match first.skipped.len() {
            0 => String::new(),
            count => format!(", {count} skipped"),
        }
    );
    Ok(Response::from(first).with_summary(summary))
}

/// Creates the checkpoint of one root.
fn create_in_root(
    cx: &CheckpointContext<'_>,
    root: usize,
    request: &Request,
) -> Result<Arc<StoredCheckpoint>, Error> {
    let context = cx.request;
    let (known, checkpoints) = cx.root_checkpoints(root)?;
    let taken = cx.with_job(root, &context.cancel, |job| {
        checkpoints
            .store
            .create(job, request, Some(&checkpoints.changes))
    });
    let stored = taken.map_err(|error| with_root_name(cx.roots(), known, error))?;
    context.server.checkpoints().remember(stored.id, known);
    checkpoints.scanned(context.server);
    checkpoints.schedule_maintenance(context.server);
    Ok(stored)
}

/// Removes the created members of a group that failed. Restoring one would look like
/// restoring the whole group.
fn remove_created(cx: &CheckpointContext<'_>, taken: &[(usize, Arc<StoredCheckpoint>)]) {
    for (root, stored) in taken {
        let keep = Keep {
            without: Some(stored.id),
            ..Keep::default()
        };
        let pruned = cx
            .root_checkpoints(*root)
            .and_then(|(_, checkpoints)| checkpoints.store.prune(&keep, &Cancel::default()));
        if let Err(error) = pruned {
            tracing::warn!(%error, "cannot remove a checkpoint of a failed group");
        }
    }
}

/// Returns the root URIs of a group, or nothing for a single root.
pub(super) fn group_root_uris(
    roots: &Roots,
    together: impl ExactSizeIterator<Item = usize>,
) -> Vec<String> {
    if together.len() < 2 {
        return Vec::new();
    }
    let together = together.filter_map(|root| roots.get(root));
    together.map(|root| root.path.to_uri()).collect()
}

/// Adds the root's name to an error, if there are several roots.
pub(super) fn with_root_name(roots: &Roots, root: &Root, mut error: Error) -> Error {
    if roots.as_slice().len() > 1 {
        error.message = format!("{}: {}", root.name, error.message);
    }
    error
}

/// Notifies the client of a new checkpoint.
pub(super) fn notify_created(context: &RequestContext<'_>, checkpoint: &Checkpoint) {
    if context.snapshot.settings.notifications {
        let params = DidCreateCheckpointParams {
            checkpoint: checkpoint.clone(),
        };
        let client = context.server.client();
        client.notify(DidCreateCheckpoint::NAME, &params);
    }
}

/// Returns the position in a task's conversation. If it cannot be read, a warning is
/// logged and the checkpoint is created without it.
pub(super) fn conversation_mark(
    context: &RequestContext<'_>,
    task: &TaskId,
) -> Option<ConversationMark> {
    let store = context.server.task_store(&context.snapshot).ok()?;
    match store.load(task, &context.cancel) {
        Ok(conversation) => Some(ConversationMark {
            messages: conversation.messages.len() as u64,
            compactions: conversation.info.compactions,
            entry: conversation.entry,
        }),
        Err(error) if error.kind == ErrorKind::NotFound => Some(ConversationMark::default()),
        Err(error) => {
            tracing::warn!(%error, "cannot read the conversation; the checkpoint is created without it");
            None
        }
    }
}

fn members(roots: &Roots, taken: &[(usize, Arc<StoredCheckpoint>)]) -> Vec<GroupMember> {
    let taken = taken.iter();
    taken
        .filter_map(|(root, stored)| {
            Some(GroupMember {
                root: roots.get(*root)?.path.to_uri(),
                id: stored.id.to_string(),
            })
        })
        .collect()
}

/// Converts a checkpoint to its wire form, without its group. Skipped paths that the
/// rules deny are only counted.
pub(super) fn to_wire(view: &AccessView, root: usize, stored: &StoredCheckpoint) -> Checkpoint {
    let roots = view.roots();
    let metadata = &stored.metadata;
    let (shown, hidden): (Vec<&Skipped>, Vec<&Skipped>) = metadata
        .skipped
        .iter()
        .partition(|skipped| skipped.may_be_shown(view, root));
    let shown = shown.into_iter().map(|skipped| SkippedPath {
        path: skipped.path.clone(),
        reason: skipped.reason.clone(),
        path_encoded: skipped.encoded,
    });
    let counted = (!hidden.is_empty()).then(|| SkippedPath {
        path: String::new(),
        reason: format!(
            "{} hidden by access rules",
            plural(hidden.len() as u64, "skipped path")
        ),
        path_encoded: false,
    });
    let messages = metadata.messages.filter(|_| metadata.task.is_some());
    Checkpoint {
        id: stored.id.to_string(),
        root: roots
            .get(root)
            .map_or_else(String::new, |root| root.path.to_uri()),
        task_id: metadata.task.clone(),
        label: metadata.label.clone(),
        created_at: to_i64(metadata.created),
        added: metadata.counts.added,
        modified: metadata.counts.modified,
        deleted: metadata.counts.deleted,
        skipped: shown.chain(counted).collect(),
        duration_ms: metadata.duration_ms,
        files: metadata.files,
        bytes: metadata.bytes,
        purpose: match metadata.purpose {
            Purpose::Asked => None,
            Purpose::Undo { .. } => Some(CheckpointPurpose::Undo),
            Purpose::Imported => Some(CheckpointPurpose::Imported),
        },
        messages: messages.map(|conversation_mark| conversation_mark.messages),
        group: None,
        imported: metadata.imported.clone(),
    }
}

fn to_i64(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

/// `sightline/listCheckpoints`.
pub fn list(
    context: &RequestContext<'_>,
    params: ListCheckpointsParams,
) -> Result<ListCheckpointsResult, Error> {
    let task = params.task_id.as_deref().map(TaskId::new).transpose()?;
    let cx = CheckpointContext::begin(context, None, "Listing checkpoints")?;
    let limit = params.limit.map(|limit| limit as usize);
    let filter = Filter { task, limit };
    let mut listed = Vec::new();
    for root in selected_roots(cx.roots(), params.root.as_deref())? {
        let (known, checkpoints) = cx.root_checkpoints(root)?;
        for stored in checkpoints.store.list(&filter)? {
            context.server.checkpoints().remember(stored.id, known);
            listed.push((root, stored));
        }
    }
    listed.sort_by_key(|(_, stored)| {
        std::cmp::Reverse((stored.metadata.created, stored.metadata.sequence))
    });
    listed.truncate(limit.unwrap_or(usize::MAX));
    let is_grouped = |(_, stored): &(usize, Arc<StoredCheckpoint>)| stored.metadata.group.is_some();
    let groups = if listed.iter().any(is_grouped) {
        groups(&cx)?
    } else {
        BTreeMap::new()
    };
    let checkpoints = listed.iter().map(|(root, stored)| {
        let mut checkpoint = to_wire(&cx.view, *root, stored);
        let group = stored.metadata.group.as_ref();
        let members = group.and_then(|group| groups.get(group));
        checkpoint.group = members.filter(|members| members.len() > 1).cloned();
        checkpoint
    });
    let checkpoints: Vec<Checkpoint> = checkpoints.collect();
    Ok(ListCheckpointsResult { checkpoints })
}

/// Returns the members of every group.
fn groups(cx: &CheckpointContext<'_>) -> Result<BTreeMap<String, Vec<GroupMember>>, Error> {
    let mut groups: BTreeMap<String, Vec<GroupMember>> = BTreeMap::new();
    for (root, stored) in grouped_checkpoints(cx)? {
        let Some(group) = stored.metadata.group.clone() else {
            continue;
        };
        let member = members(cx.roots(), &[(root, stored)]);
        groups.entry(group).or_default().extend(member);
    }
    Ok(groups)
}

/// Returns the checkpoints that belong to groups, with their roots.
pub(super) fn grouped_checkpoints(
    cx: &CheckpointContext<'_>,
) -> Result<Vec<(usize, Arc<StoredCheckpoint>)>, Error> {
    let mut all = Vec::new();
    for root in 0..cx.roots().as_slice().len() {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        let records = checkpoints.store.list(&Filter::default())?;
        let grouped_checkpoints = records.into_iter().filter(|r| r.metadata.group.is_some());
        all.extend(grouped_checkpoints.map(|stored| (root, stored)));
    }
    Ok(all)
}

/// `sightline/diffCheckpoints`.
pub fn diff(
    context: &RequestContext<'_>,
    params: DiffCheckpointsParams,
) -> Result<DiffCheckpointsResult, Error> {
    let (contents, patch) = (params.contents, params.patch);
    let cx = CheckpointContext::begin(context, params.work_done_token.clone(), "Comparing")?;
    let (root, files) = differences(&cx, &params, contents || patch)?;
    let text = patch.then(|| String::from_utf8_lossy(&diff::patch(&files)).into_owned());
    let files = files
        .into_iter()
        .map(|file| difference(&cx, root, file, contents));
    Ok(DiffCheckpointsResult {
        files: files.collect(),
        text,
    })
}

/// Returns the differences as a unified diff, which may contain bytes that are not UTF-8.
///
/// # Errors
/// As [`diff()`].
pub fn patch(
    context: &RequestContext<'_>,
    params: &DiffCheckpointsParams,
) -> Result<Vec<u8>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token.clone(), "Comparing")?;
    let (_, files) = differences(&cx, params, true)?;
    Ok(diff::patch(&files))
}

fn differences(
    cx: &CheckpointContext<'_>,
    params: &DiffCheckpointsParams,
    contents: bool,
) -> Result<(usize, Vec<FileDiff>), Error> {
    let from = cx.find(&params.from)?;
    let to = match &params.to {
        None => Side::WorkTree,
        Some(id) => {
            let to = cx.find(id)?;
            if to.root != from.root {
                return Err(Error::invalid(format!(
                    "{} and {id} belong to different workspace folders",
                    params.from
                )));
            }
            Side::Checkpoint(to.checkpoint.id)
        }
    };
    let paths = cx.paths(from.root, params.paths.as_deref(), true)?;
    let options = DiffOptions {
        paths: paths.wanted().unwrap_or_default(),
        contents,
        max_file_bytes: limits::MAX_FILE_CONTENTS_BYTES,
        max_total_bytes: limits::MAX_DIFF_CONTENTS_BYTES,
    };
    let side = Side::Checkpoint(from.checkpoint.id);
    let files = cx.with_job(from.root, &cx.request.cancel, |job| {
        from.checkpoints.store.diff(job, &side, &to, &options)
    })?;
    Ok((from.root, files))
}

fn difference(
    cx: &CheckpointContext<'_>,
    root: usize,
    file: FileDiff,
    contents: bool,
) -> FileDifference {
    let (path, encoded, uri) = cx.name(root, &file.path);
    let old = file.old_path.as_ref().map(|old| cx.name(root, old));
    let mut omitted = file.omitted.clone().filter(|_| contents || file.uncaptured);
    let mut text = |bytes: Option<Vec<u8>>| {
        let text = String::from_utf8(bytes.filter(|_| contents && !file.binary)?);
        let text = text.map_err(|_| "not UTF-8".to_owned());
        text.map_err(|why| omitted.get_or_insert(why).clone()).ok()
    };
    let (before, after) = (text(file.before), text(file.after));
    if contents && file.binary {
        omitted.get_or_insert_with(|| "not text".to_owned());
    }
    FileDifference {
        path,
        path_encoded: encoded || old.as_ref().is_some_and(|(_, encoded, _)| *encoded),
        old_path: old.map(|(path, ..)| path),
        status: match file.status {
            Status::Added => DifferenceStatus::Added,
            Status::Modified => DifferenceStatus::Modified,
            Status::Deleted => DifferenceStatus::Deleted,
            Status::Renamed => DifferenceStatus::Renamed,
            Status::TypeChanged => DifferenceStatus::TypeChanged,
        },
        binary: file.binary,
        additions: file.additions,
        deletions: file.deletions,
        before,
        after,
        omitted,
        old_mode: file.modes.0.map(str::to_owned),
        new_mode: file.modes.1.map(str::to_owned),
        uri,
    }
}

/// `sightline/checkpointStats`.
pub fn stats(
    context: &RequestContext<'_>,
    params: CheckpointStatsParams,
) -> Result<CheckpointStatsResult, Error> {
    let cx = CheckpointContext::begin(context, None, "Reading checkpoints")?;
    let mut total = CheckpointStatsResult::default();
    for root in selected_roots(cx.roots(), params.root.as_deref())? {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        let stats = checkpoints.store.stats()?;
        total.count += stats.count;
        total.bytes += stats.bytes;
        let (oldest, newest) = (stats.oldest.map(to_i64), stats.newest.map(to_i64));
        total.oldest = [total.oldest, oldest].into_iter().flatten().min();
        total.newest = total.newest.max(newest);
    }
    Ok(total)
}

/// `sightline/pruneCheckpoints`.
pub fn prune(
    context: &RequestContext<'_>,
    params: PruneCheckpointsParams,
) -> Result<Response<PruneCheckpointsResult>, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Removing checkpoints")?;
    let keep = Keep {
        newest: params.keep.map(|keep| keep as usize),
        since: params
            .older_than
            .map(|time| u64::try_from(time).unwrap_or(0)),
        max_bytes: params.max_bytes,
        ..Keep::default()
    };
    let mut total = PruneCheckpointsResult::default();
    let roots = selected_roots(cx.roots(), params.root.as_deref())?;
    if keep == Keep::default() {
        return Ok(total.into());
    }
    for root in roots {
        let (known, checkpoints) = cx.root_checkpoints(root)?;
        let pruned = if params.dry_run {
            checkpoints.store.would_prune(&keep, &context.cancel)
        } else {
            checkpoints.store.prune(&keep, &context.cancel)
        };
        let pruned = pruned.map_err(|error| with_root_name(cx.roots(), known, error))?;
        total.removed += pruned.removed.len() as u64;
        total.freed_bytes += pruned.freed_bytes;
        if params.dry_run {
            let removed = pruned.removed.iter();
            total.checkpoints.extend(removed.map(Oid::to_string));
        } else {
            checkpoints.schedule_maintenance(context.server);
        }
    }
    let count = plural(total.removed, "checkpoint");
    let bytes = plural(total.freed_bytes, "byte");
    let summary = if params.dry_run {
        format!("{count} would be removed, about {bytes} freed")
    } else {
        format!("{count} removed, {bytes} freed")
    };
    Ok(Response::from(total).with_summary(summary))
}

/// `sightline/verifyCheckpoints`.
pub fn verify(
    context: &RequestContext<'_>,
    params: VerifyCheckpointsParams,
) -> Result<VerifyCheckpointsResult, Error> {
    let cx = CheckpointContext::begin(context, params.work_done_token, "Verifying checkpoints")?;
    let mut problems = Vec::new();
    for root in selected_roots(cx.roots(), params.root.as_deref())? {
        let (_, checkpoints) = cx.root_checkpoints(root)?;
        problems.extend(cx.with_job(root, &context.cancel, |job| checkpoints.store.verify(job))?);
    }
    Ok(VerifyCheckpointsResult {
        ok: problems.is_empty(),
        problems,
    })
}

/// Removes a task's checkpoints in all open roots.
pub(super) fn remove_task_checkpoints(
    context: &RequestContext<'_>,
    task: &TaskId,
) -> Result<PruneCheckpointsResult, Error> {
    let mut total = PruneCheckpointsResult::default();
    for root in all_roots(&context.snapshot) {
        let server = context.server;
        let checkpoints = server
            .checkpoints()
            .open(server, &context.snapshot, &root)?;
        if !checkpoints.store.git_dir().exists() {
            continue;
        }
        try_recover(server, &context.snapshot, &root);
        let pruned = checkpoints
            .store
            .prune(&all_but_task(task), &context.cancel)?;
        total.removed += pruned.removed.len() as u64;
        total.freed_bytes += pruned.freed_bytes;
    }
    Ok(total)
}

fn all_but_task(task: &TaskId) -> Keep {
    Keep {
        without_task: Some(task.clone()),
        ..Keep::default()
    }
}

/// Imports the checkpoints of another tool into the first root, from a shadow repository
/// or from the tool's data directory.
///
/// # Errors
/// `notFound` if there are none, and core's errors.
pub fn import(context: &RequestContext<'_>, places: &[PathBuf]) -> Result<Imported, Error> {
    let cx = CheckpointContext::begin(context, None, "Importing checkpoints")?;
    let (root, checkpoints) = cx.root_checkpoints(0)?;
    let shadow = places.iter().find_map(|place| {
        let is_repository = place.join(".git").exists() || place.join("HEAD").exists();
        let within = || checkpoints.store.shadow_repository(place);
        is_repository.then(|| place.clone()).or_else(within)
    });
    let shadow = shadow.ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        let why = format!(
            "no checkpoints of {} found in {}; name the directory that contains them",
            root.path.display(),
            places.join(", ")
        );
        Error::new(ErrorKind::NotFound, why)
    })?;
    cx.with_job(0, &context.cancel, |job| {
        checkpoints.store.import(job, &shadow)
    })
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the remote.
    Push,
    /// From the remote.
    Fetch,
}

/// Transfers the checkpoints of the first root to or from a git remote. Returns git's
/// output.
///
/// # Errors
/// Core's errors.
pub fn transfer(
    context: &RequestContext<'_>,
    direction: Direction,
    remote: &str,
) -> Result<String, Error> {
    let title = match direction {
        Direction::Push => "Pushing checkpoints",
        Direction::Fetch => "Fetching checkpoints",
    };
    let cx = CheckpointContext::begin(context, None, title)?;
    let (_, checkpoints) = cx.root_checkpoints(0)?;
    match direction {
        Direction::Push => checkpoints.store.push(remote, &context.cancel),
        Direction::Fetch => cx.with_job(0, &context.cancel, |job| {
            checkpoints.store.fetch(remote, job)
        }),
    }
}

/// Schedules removal of the checkpoints of deleted tasks.
pub fn forget_tasks(server: &Arc<Server>, tasks: Vec<TaskId>) {
    if tasks.is_empty() {
        return;
    }
    let snapshot = server.snapshot();
    let roots = all_roots(&snapshot);
    let worker = server.clone();
    let keys = keys_of_roots(&roots);
    server.jobs().run(keys, "prune checkpoints", move || {
        let context = RequestContext::new(&worker, snapshot, Cancel::default());
        for task in tasks {
            if let Err(error) = remove_task_checkpoints(&context, &task) {
                tracing::warn!(%error, "cannot remove the checkpoints of a deleted task");
            }
        }
    });
}
