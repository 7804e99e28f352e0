//! `sightline checkpoint`: checkpoints without an editor.

mod adopt;
mod arguments;
mod blame;
mod commit;
mod confirm;
mod format;
mod picker;
mod remove;
mod restore;
mod show;
mod timeline;

use std::{io, path::Path};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use sightline_base::{escape::one_line, path::RelPath};
use sightline_engine::{
    error::Error,
    handlers::checkpoint::{
        checkpoint_context::{NO_RESTORE, unknown_path},
        diff_checkpoints::patch,
        reference::{NONE_YET, ONLY_UNDO_POINTS},
        transfer::{Direction, transfer},
    },
    plural::plural,
};
use sightline_local::process::signals;
use sightline_protocol::{
    checkpoint::{
        Checkpoint as Listed, CheckpointPurpose, CheckpointStatsParams, CreateCheckpointParams,
        DiffCheckpointsParams, LabelCheckpointParams, ListCheckpointsParams,
        VerifyCheckpointsParams, short_id as abbreviated,
    },
    error::ErrorKind,
    method::{
        CheckpointStats, CreateCheckpoint, DiffCheckpoints, LabelCheckpoint, ListCheckpoints,
        VerifyCheckpoints,
    },
};

use super::{
    DONE, NEGATIVE, Workspace, offline, print_json, print_message, print_to,
    requests::{Attached, Requests},
};

use timeline::Timeline;

pub(super) use adopt::hint as moved_hint;
pub(super) use arguments::{Checkpoint, age};
pub(super) use confirm::{ConfirmArgs, Proceed, ask, below_agent, confirm_below_agent, is_wanted};
pub(super) use format::difference as colored_difference;
pub(super) use format::size;
use format::{DIM, colorize, counts, difference, print, relative_time, short_id};

/// Requests that always run in this process.
const OFFLINE: Attached = Attached { offline: true };

/// Returns whether an error is a negative result: a path matches nothing, or there is nothing that
/// `last` means. An unknown id is a failure.
pub(super) fn is_negative(error: &Error) -> bool {
    error.kind == ErrorKind::NotFound
        && (error.path.is_some()
            || [NONE_YET, ONLY_UNDO_POINTS, NO_RESTORE].contains(&&*error.message))
}

pub(super) fn run(command: Checkpoint) -> Result<i32, Error> {
    match command {
        Checkpoint::Create {
            workspace,
            attached,
            label,
            task,
            confirm_large,
            automatic,
        } => {
            let requests = Requests::new(&workspace, attached);
            let params = CreateCheckpointParams {
                label,
                task_id: task,
                confirm_large,
                automatic,
                root: requests.root()?,
                ..CreateCheckpointParams::default()
            };
            let created =
                requests.with_maintenance(|requests| requests.call::<CreateCheckpoint>(params))?;
            if workspace.json {
                print_json(&created)?;
                return Ok(DONE);
            }
            print(&format!("{} {}\n", short_id(&created), counts(&created)))?;
            for skipped in &created.skipped {
                let (path, reason) = (one_line(&skipped.path), one_line(&skipped.reason));
                // Denied paths are only counted.
                print_message(&if path.is_empty() {
                    reason.into_owned()
                } else {
                    format!("skipped {path}: {reason}")
                });
            }
            let is_first = created.added == created.files;
            if let Some(hint) = is_first.then(|| adopt::hint(&requests)).flatten() {
                print_message(&hint);
            }
            Ok(DONE)
        }
        Checkpoint::List {
            workspace,
            attached,
            task,
            limit,
            ids,
            by_session,
        } => list(
            &Requests::new(&workspace, attached),
            task,
            limit,
            ids,
            by_session,
        ),
        Checkpoint::Label {
            workspace,
            attached,
            id,
            text,
            remove: _,
        } => label(&Requests::new(&workspace, attached), &id, text),
        Checkpoint::Diff {
            workspace,
            attached,
            from,
            to,
            patch,
            exit_code,
            paths,
        } => {
            let requests = Requests::new(&workspace, attached);
            let differs = diff(&requests, &from, to.as_deref(), patch, &paths);
            differs.map(|differs| if exit_code && differs { NEGATIVE } else { DONE })
        }
        Checkpoint::Show {
            workspace,
            attached,
            id,
        } => show::show(&Requests::new(&workspace, attached), &id),
        Checkpoint::Preview {
            workspace,
            attached,
            id,
            length,
            part,
            paths,
        } => {
            let requests = Requests::new(&workspace, attached);
            restore::preview(&requests, &id, (&paths, &part), length)
        }
        Checkpoint::Blame {
            workspace,
            attached,
            path,
        } => blame::blame(&Requests::new(&workspace, attached), &path),
        Checkpoint::Commit {
            workspace,
            id,
            branch,
            message,
        } => commit::commit(&Requests::new(&workspace, OFFLINE), &id, &branch, message),
        Checkpoint::Restore(arguments) => match &arguments.id {
            Some(id) => restore::restore(&arguments, id),
            None => picker::restore(&arguments),
        },
        Checkpoint::Undo(arguments) => restore::undo(&arguments),
        Checkpoint::Prune(arguments) => remove::prune(&arguments),
        Checkpoint::Delete(arguments) => remove::delete(&arguments),
        Checkpoint::Stats { workspace } => {
            let params = CheckpointStatsParams::default();
            let stats = offline::call::<CheckpointStats>(&workspace, params)?;
            print_as(&workspace, &stats, |stats| {
                let count = plural(stats.count, "checkpoint");
                let mut line = format!("{count}, {}", size(stats.bytes));
                if let Some(oldest) = stats.oldest {
                    line.push_str(&format!(", oldest {}", relative_time(oldest)));
                }
                if let Some(newest) = stats.newest.filter(|_| stats.count > 1) {
                    line.push_str(&format!(", newest {}", relative_time(newest)));
                }
                format!("{line}\n")
            })?;
            Ok(DONE)
        }
        Checkpoint::Verify { workspace } => {
            let params = VerifyCheckpointsParams::default();
            let verified = offline::call::<VerifyCheckpoints>(&workspace, params)?;
            print_as(&workspace, &verified, |verified| {
                if verified.problems.is_empty() {
                    "all checkpoints are intact\n".to_owned()
                } else {
                    let problems = verified.problems.iter();
                    problems.map(|problem| format!("{problem}\n")).collect()
                }
            })?;
            Ok(if verified.ok { DONE } else { NEGATIVE })
        }
        Checkpoint::Adopt(arguments) => adopt::adopt(&arguments),
        Checkpoint::Push { workspace, remote } => {
            transfer_checkpoints(&workspace, Direction::Push, &remote)
        }
        Checkpoint::Fetch { workspace, remote } => {
            transfer_checkpoints(&workspace, Direction::Fetch, &remote)
        }
    }
}

/// Lists all checkpoints.
fn list_all(requests: &Requests) -> Result<Vec<Listed>, Error> {
    let params = ListCheckpointsParams {
        root: requests.root()?,
        ..ListCheckpointsParams::default()
    };
    Ok(requests.call::<ListCheckpoints>(params)?.checkpoints)
}

/// Sends a request with path arguments, or with `None`, meaning all, without any. A path
/// is relative to the current folder or, if that matches nothing, to the workspace folder,
/// as lists print it. The request must check the paths before it changes anything.
fn with_paths<R>(
    requests: &Requests,
    written: &[String],
    send: impl Fn(Option<Vec<String>>) -> Result<R, Error>,
) -> Result<R, Error> {
    if written.is_empty() {
        return send(None);
    }
    let root = offline::root(requests.workspace)?.path;
    let absolute = written.iter().map(|path| offline::absolute(path));
    let mut paths = absolute.collect::<Result<Vec<_>, _>>()?;
    let mut failed: Vec<Option<Error>> = vec![None; paths.len()];
    loop {
        let error = match send(Some(paths.clone())) {
            Err(error) if error.path.is_some() => error,
            done => return done,
        };
        let Some(at) = paths
            .iter()
            .position(|path| Some(path) == error.path.as_ref())
        else {
            return Err(error);
        };
        let from_root = RelPath::new(Path::new(&written[at]))
            .map(|path| offline::text_of(&root.join(&path), &written[at]));
        match (from_root, &failed[at]) {
            (Some(path), None) if path != paths[at] => {
                paths[at] = path;
                failed[at] = Some(error);
            }
            (_, before) => {
                let error = before.clone().unwrap_or(error);
                return Err(match error.kind {
                    ErrorKind::NotFound => unknown_path(&written[at]),
                    _ => error,
                });
            }
        }
    }
}

/// `sightline checkpoint label`.
fn label(requests: &Requests, written: &str, label: Option<String>) -> Result<i32, Error> {
    let labelled = requests.call::<LabelCheckpoint>(LabelCheckpointParams {
        id: written.to_owned(),
        label,
        root: requests.root()?,
    })?;
    print_as(requests.workspace, &labelled, listed_line)?;
    Ok(DONE)
}

fn list(
    requests: &Requests,
    task: Option<String>,
    limit: Option<u32>,
    ids: bool,
    by_session: bool,
) -> Result<i32, Error> {
    let listed = Timeline::load(requests, task.clone(), limit)?;
    if ids {
        let lines = listed.checkpoints.iter().map(id_line);
        print(&lines.collect::<String>())?;
        return Ok(DONE);
    }
    if listed.is_empty() && !requests.workspace.json {
        match task {
            Some(task) if !list_all(requests)?.is_empty() => {
                print_message(&format!("no checkpoints of task {}", one_line(&task)));
            }
            _ => print_message(&adopt::hint(requests).unwrap_or_else(|| NONE_YET.to_owned())),
        }
    }
    listed.print(requests, limit, by_session)
}

/// Formats a checkpoint for shell completions.
fn id_line(one: &Listed) -> String {
    let about = match &one.label {
        Some(label) => one_line(label).into_owned(),
        None => relative_time(one.created_at),
    };
    format!("{}\t{about}\n", abbreviated(&one.id))
}

/// Formats a checkpoint for a list.
fn listed_line(one: &Listed) -> String {
    let mut line = format!(
        "{}  {:>11}  {}",
        short_id(one),
        relative_time(one.created_at),
        counts(one)
    );
    match one.purpose {
        Some(CheckpointPurpose::Undo) => {
            line.push_str(&format!("  {DIM}before a restore{DIM:#}"));
        }
        Some(CheckpointPurpose::Imported) => line.push_str(&format!("  {DIM}imported{DIM:#}")),
        None => {}
    }
    for text in [&one.task_id, &one.label].into_iter().flatten() {
        line.push_str(&format!("  {}", one_line(text)));
    }
    line + "\n"
}

/// Prints the differences. Returns whether there are any.
fn diff(
    requests: &Requests,
    from: &str,
    to: Option<&str>,
    patch_wanted: bool,
    paths: &[String],
) -> Result<bool, Error> {
    let workspace = requests.workspace;
    let root = requests.root()?;
    let params = |paths| DiffCheckpointsParams {
        from: from.to_owned(),
        to: to.map(str::to_owned),
        root: root.clone(),
        paths,
        patch: patch_wanted,
        ..DiffCheckpointsParams::default()
    };
    if patch_wanted && !workspace.json {
        // The bytes of the files, which need not be UTF-8.
        let server = requests.offline_server()?;
        let text = with_paths(requests, paths, |paths| {
            patch(&server.context(), &params(paths))
        })?;
        let plain = AutoStream::choice(&io::stdout()) == ColorChoice::Never;
        // Stripping colors could strip bytes of the files as well.
        if plain {
            print_to(io::stdout().lock(), &text)?;
        } else {
            print_to(io::stdout().lock(), &colorize(&text))?;
        }
        return Ok(!text.is_empty());
    }
    let compared = with_paths(requests, paths, |paths| {
        requests.call::<DiffCheckpoints>(params(paths))
    })?;
    print_as(workspace, &compared, |compared| {
        compared.files.iter().map(difference).collect()
    })?;
    Ok(!compared.files.is_empty())
}

/// The output of `sightline checkpoint push --json` and `fetch --json`.
#[derive(Serialize)]
struct Transferred {
    text: String,
}

fn transfer_checkpoints(
    workspace: &Workspace,
    direction: Direction,
    remote: &str,
) -> Result<i32, Error> {
    let text = Requests::new(workspace, OFFLINE).with_maintenance(|requests| {
        let cancel = signals::cancel_on_termination()
            .map_err(|error| Error::storage(format!("cannot install signal handlers: {error}")))?;
        let mut context = requests.offline_server()?.context();
        context.cancel = cancel;
        transfer(&context, direction, remote)
    })?;
    print_as(workspace, &Transferred { text }, |transferred| {
        format!("{}\n", transferred.text.trim_end())
    })?;
    Ok(DONE)
}

/// Prints a result as JSON or as text.
fn print_as<R: Serialize>(
    workspace: &Workspace,
    result: &R,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Error> {
    if workspace.json {
        print_json(result)
    } else {
        print(&text(result))
    }
}
