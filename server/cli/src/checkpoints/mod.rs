//! `sightline checkpoint`: checkpoints without an editor.

mod adopt;
mod arguments;
mod blame;
mod commit;
mod confirm;
mod difference;
mod format;
mod parts;
mod picker;
mod remove;
mod restore;
mod show;
mod stats;

use std::{io, path::Path};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use sightline_base::{escape::one_line, path::RelPath, plural::plural};
use sightline_engine::{
    error::Error,
    handlers::checkpoint::{
        checkpoint_context::{NO_RESTORE, unknown_path},
        diff_checkpoints::patch,
        reference::{NONE_YET, ONLY_UNDO_POINTS},
        transfer::{Direction, transfer},
    },
    render::{
        self, counts, difference, relative_time,
        timeline::{Clock, Row, Timeline},
    },
};
use sightline_local::process::signals;
use sightline_protocol::{
    checkpoint::{
        Checkpoint as Listed, CreateCheckpointParams, DiffCheckpointsParams, LabelCheckpointParams,
        ListCheckpointsParams, ListTurnsParams, VerifyCheckpointsParams, short_id,
    },
    error::ErrorKind,
    method::{
        CreateCheckpoint, DiffCheckpoints, LabelCheckpoint, ListCheckpoints, ListTurns,
        VerifyCheckpoints,
    },
};

use super::{
    DONE, FAILURE, NEGATIVE, Workspace, offline, print_as, print_json, print_message,
    print_styled as print, print_to, requests::Requests,
};

pub(super) use adopt::hint as moved_hint;
pub(super) use arguments::{Checkpoint, age};
pub(super) use confirm::{ConfirmArgs, Proceed, ask, below_agent, confirm_below_agent, is_wanted};
pub(super) use format::{colorize, size};

/// Number of turns to ask for at once.
const TURNS: u32 = 1000;

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
            place,
            label,
            task,
            confirm_large,
            automatic,
        } => {
            let requests = place.requests();
            let params = CreateCheckpointParams {
                label,
                task_id: task,
                confirm_large,
                automatic,
                // The one before an edit may be faster.
                first: automatic,
                root: requests.root_uri()?,
                ..CreateCheckpointParams::default()
            };
            let created =
                requests.with_maintenance(|requests| requests.call::<CreateCheckpoint>(params))?;
            if place.workspace.json {
                print_json(&created)?;
                return Ok(DONE);
            }
            print(&format!(
                "{} {}\n",
                render::id(&created.id),
                counts(&created)
            ))?;
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
            place,
            task,
            limit,
            ids,
            by_session,
        } => list(&place.requests(), task, limit, ids, by_session),
        Checkpoint::Label {
            place,
            id,
            text,
            remove: _,
        } => label(&place.requests(), &id, text),
        Checkpoint::Diff {
            place,
            from,
            to,
            patch,
            exit_code,
            paths,
        } => {
            let requests = place.requests();
            let differs = diff(&requests, &from, to.as_deref(), patch, &paths);
            let code = |differs| if exit_code && differs { NEGATIVE } else { DONE };
            or_elsewhere(&requests, differs.map(code))
        }
        Checkpoint::Show { place, id } => {
            let requests = place.requests();
            or_elsewhere(&requests, show::show(&requests, &id))
        }
        Checkpoint::Preview {
            place,
            id,
            length,
            part,
            paths,
        } => {
            let requests = place.requests();
            let shown = restore::preview(&requests, &id, (&paths, &part), length);
            or_elsewhere(&requests, shown)
        }
        Checkpoint::Blame { place, path } => blame::blame(&place.requests(), &path),
        Checkpoint::Commit {
            workspace,
            id,
            branch,
            message,
        } => commit::commit(&Requests::offline(&workspace), &id, &branch, message),
        Checkpoint::Restore(arguments) => match &arguments.id {
            Some(id) => {
                let restored = restore::restore(&arguments, id);
                or_elsewhere(&arguments.place.requests(), restored)
            }
            None => picker::restore(&arguments),
        },
        Checkpoint::Undo(arguments) => {
            or_elsewhere(&arguments.place.requests(), restore::undo(&arguments))
        }
        Checkpoint::Prune(arguments) => remove::prune(&arguments),
        Checkpoint::Delete(arguments) => remove::delete(&arguments),
        Checkpoint::Stats { workspace, all } => {
            let stats = if all { stats::all } else { stats::one };
            stats(&Requests::offline(&workspace))
        }
        Checkpoint::Verify { workspace } => {
            let params = VerifyCheckpointsParams::default();
            let verified = Requests::offline(&workspace).call::<VerifyCheckpoints>(params)?;
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

/// Says where checkpoints are, in place of an error about one that is not found in a folder without any.
fn or_elsewhere(requests: &Requests, done: Result<i32, Error>) -> Result<i32, Error> {
    let is_missing = |error: &Error| {
        let is_named = error.kind == ErrorKind::NotFound && error.path.is_none();
        is_named
            && !requests.workspace.json
            && list_all(requests).is_ok_and(|listed| listed.is_empty())
    };
    match done {
        Err(error) if is_missing(&error) => {
            let Some(place) = adopt::elsewhere(requests) else {
                return Err(error);
            };
            print_message(&place);
            Ok(if is_negative(&error) {
                NEGATIVE
            } else {
                FAILURE
            })
        }
        done => done,
    }
}

/// Lists all checkpoints.
fn list_all(requests: &Requests) -> Result<Vec<Listed>, Error> {
    let params = ListCheckpointsParams {
        root: requests.root_uri()?,
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
    let root = offline::root(&requests.workspace)?.path;
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
        root: requests.root_uri()?,
    })?;
    print_as(&requests.workspace, &labelled, |one| {
        render::checkpoint(one, &relative_time(one.created_at))
    })
}

/// Asks for the checkpoints, and unless only those of a task are wanted, for the turns.
fn load(requests: &Requests, task: Option<String>, limit: Option<u32>) -> Result<Timeline, Error> {
    let root = requests.root_uri()?;
    let turns = if task.is_none() && !requests.workspace.json {
        let params = ListTurnsParams {
            root: root.clone(),
            limit: Some(limit.unwrap_or(TURNS)),
            ..ListTurnsParams::default()
        };
        requests.call::<ListTurns>(params)?.turns
    } else {
        Vec::new()
    };
    let params = ListCheckpointsParams {
        task_id: task,
        // Turns need theirs, however old these are.
        limit: limit.filter(|_| requests.workspace.json),
        root,
        ..ListCheckpointsParams::default()
    };
    let checkpoints = requests.call::<ListCheckpoints>(params)?.checkpoints;
    Ok(Timeline { checkpoints, turns })
}

fn list(
    requests: &Requests,
    task: Option<String>,
    limit: Option<u32>,
    ids: bool,
    by_session: bool,
) -> Result<i32, Error> {
    // The title of a session counts its turns.
    let listed = load(requests, task.clone(), limit.filter(|_| !by_session))?;
    if ids {
        let rows = listed.rows();
        print(&rows.iter().map(id_line).collect::<String>())?;
        return Ok(DONE);
    }
    if listed.is_empty() && !requests.workspace.json {
        match task {
            Some(task) if !list_all(requests)?.is_empty() => {
                print_message(&format!("no checkpoints of task {}", one_line(&task)));
            }
            _ => print_message(&adopt::none_here(requests)),
        }
    }
    print_as(&requests.workspace, &listed, |listed| {
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        listed.text(&Clock::now(), limit, by_session)
    })
}

/// Formats a turn or a checkpoint for shell completions.
fn id_line(row: &Row) -> String {
    let about = row
        .labels
        .first()
        .or(row.prompt.as_ref())
        .cloned()
        .unwrap_or_else(|| relative_time(row.at));
    let id = if row.is_turn {
        &row.id
    } else {
        short_id(&row.id)
    };
    format!("{id}\t{about}\n")
}

/// Prints the differences. Returns whether there are any.
fn diff(
    requests: &Requests,
    from: &str,
    to: Option<&str>,
    patch_wanted: bool,
    paths: &[String],
) -> Result<bool, Error> {
    let workspace = &requests.workspace;
    let root = requests.root_uri()?;
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
    /// The new ones.
    checkpoints: usize,
    skipped: Vec<String>,
}

fn transfer_checkpoints(
    workspace: &Workspace,
    direction: Direction,
    remote: &str,
) -> Result<i32, Error> {
    let done = match direction {
        Direction::Push => "pushed",
        Direction::Fetch => "fetched",
    };
    let (checkpoints, skipped) = Requests::offline(workspace).with_maintenance(|requests| {
        let cancel = signals::cancel_on_termination()
            .map_err(|error| Error::storage(format!("cannot install signal handlers: {error}")))?;
        let context = requests.offline_server()?.context_with(cancel);
        transfer(&context, direction, remote)
    })?;
    let transferred = Transferred {
        checkpoints,
        skipped,
    };
    print_as(workspace, &transferred, |transferred| {
        let count = plural(transferred.checkpoints, "checkpoint");
        let skipped = transferred
            .skipped
            .iter()
            .map(|why| format!("{}\n", one_line(why)))
            .collect::<String>();
        format!("{count} {done}\n{skipped}")
    })
}
