//! `sightline checkpoint`: checkpoints without an editor.

mod arguments;
mod confirm;
mod format;
mod restore;

use std::{
    io,
    path::{Path, PathBuf},
};

use anstream::{AutoStream, ColorChoice};
use serde_json::{Value, json};
use sightline_protocol::{checkpoint::DiffCheckpointsParams, error::ErrorKind};
use sightline_workspace::{clock::now_millis, error::Error, escape::one_line};

use super::{
    DONE, NEGATIVE, Workspace,
    conversations::{parse_result, without_nulls},
    offline::{self, OfflineServer},
    print_message, print_raw, print_to,
};
use crate::{
    handlers::checkpoint::{
        diff_checkpoints::patch,
        transfer::{Direction, import, transfer},
    },
    plural::plural,
    process::signals,
    request_context::RequestContext,
};

pub(super) use arguments::Checkpoint;
use arguments::Prune;
use confirm::{Proceed, ask};
use format::{
    DIM, colorize, counts, difference, items, line, print, relative_time, short_id, size, text,
};

pub(super) fn run(command: Checkpoint) -> Result<i32, Error> {
    match command {
        Checkpoint::Create {
            workspace,
            label,
            task,
            confirm_large,
        } => {
            let params = json!({ "label": label, "taskId": task, "confirmLarge": confirm_large });
            let method = "sightline/createCheckpoint";
            let result =
                with_maintenance(&workspace, |server| run_request(server, method, params))?;
            if workspace.json {
                print_raw(&result)?;
                return Ok(DONE);
            }
            let taken = parse_result(&result)?;
            print(&format!("{} {}\n", short_id(&taken), counts(&taken)))?;
            for skipped in items(&taken, "skipped") {
                let reason = line(skipped, "reason");
                print_message(&format!("skipped {}: {reason}", line(skipped, "path")));
            }
            Ok(DONE)
        }
        Checkpoint::List {
            workspace,
            task,
            limit,
        } => list(&workspace, task.as_deref(), limit),
        Checkpoint::Diff {
            workspace,
            from,
            to,
            patch,
            paths,
        } => diff(&workspace, &from, to.as_deref(), patch, &paths),
        Checkpoint::Preview {
            workspace,
            id,
            paths,
        } => restore::preview(&workspace, &id, &paths),
        Checkpoint::Restore(arguments) => restore::restore(&arguments),
        Checkpoint::Undo(arguments) => restore::undo(&arguments),
        Checkpoint::Prune(arguments) => prune(&arguments),
        Checkpoint::Stats { workspace } => {
            let result = offline::call_text(&workspace, "sightline/checkpointStats", "{}")?;
            print_as(&workspace, &result, |stats| {
                let count = stats["count"].as_u64().unwrap_or_default();
                let mut line =
                    format!("{}, {}", plural(count, "checkpoint"), size(&stats["bytes"]));
                if let Some(oldest) = stats["oldest"].as_i64() {
                    line.push_str(&format!(", oldest {}", relative_time(oldest)));
                }
                if let Some(newest) = stats["newest"].as_i64().filter(|_| count > 1) {
                    line.push_str(&format!(", newest {}", relative_time(newest)));
                }
                format!("{line}\n")
            })?;
            Ok(DONE)
        }
        Checkpoint::Verify { workspace } => {
            let result = offline::call_text(&workspace, "sightline/verifyCheckpoints", "{}")?;
            let verified = parse_result(&result)?;
            print_as(&workspace, &result, |verified| {
                let problems = items(verified, "problems").filter_map(Value::as_str);
                let problems: String = problems.map(|problem| format!("{problem}\n")).collect();
                if problems.is_empty() {
                    "all checkpoints are intact\n".to_owned()
                } else {
                    problems
                }
            })?;
            Ok(if verified["ok"] == true {
                DONE
            } else {
                NEGATIVE
            })
        }
        Checkpoint::Import { workspace, path } => import_checkpoints(&workspace, path.as_deref()),
        Checkpoint::Push { workspace, remote } => {
            transfer_checkpoints(&workspace, Direction::Push, &remote)
        }
        Checkpoint::Fetch { workspace, remote } => {
            transfer_checkpoints(&workspace, Direction::Fetch, &remote)
        }
    }
}

/// Runs work that may change checkpoints, then saves the caches for the next command.
fn with_maintenance<T>(
    workspace: &Workspace,
    work: impl FnOnce(&OfflineServer) -> Result<T, Error>,
) -> Result<T, Error> {
    offline::with_server(workspace, |server| {
        let outcome = work(server);
        server.services.checkpoints.maintain();
        outcome
    })
}

fn run_request(server: &OfflineServer, method: &str, params: Value) -> Result<String, Error> {
    offline::answer(server, method, &without_nulls(params))
}

/// Completes an abbreviated id; `last` is the newest checkpoint that is not an undo
/// point.
fn resolve_id(server: &OfflineServer, written: &str) -> Result<String, Error> {
    let digits = written.strip_prefix("HEAD ").unwrap_or(written);
    let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    let is_last = digits == "last";
    if !is_last && (digits.len() >= 40 || digits.len() < 4 || !is_hex) {
        return Ok(written.to_owned());
    }
    let listed = parse_result(&run_request(
        server,
        "sightline/listCheckpoints",
        json!({}),
    )?)?;
    let begins = digits.to_ascii_lowercase();
    let found: Vec<&str> = items(&listed, "checkpoints")
        .filter(|one| {
            if is_last {
                one.get("purpose").is_none_or(|purpose| purpose != "undo")
            } else {
                ["id", "imported"]
                    .map(|id| text(one, id))
                    .iter()
                    .any(|id| id.starts_with(&begins))
            }
        })
        .map(|one| text(one, "id"))
        .take(if is_last { 1 } else { 2 })
        .collect();
    match found[..] {
        [id] => Ok(id.to_owned()),
        [] => Err(Error::new(
            ErrorKind::NotFound,
            format!("no checkpoint matches {written:?}; `sightline checkpoint list` shows all"),
        )),
        _ => Err(Error::invalid(format!(
            "{written:?} matches several checkpoints; use more digits"
        ))),
    }
}

/// Makes paths absolute. Returns `None`, meaning all, for an empty list.
fn absolute_paths(paths: &[String]) -> Result<Option<Vec<String>>, Error> {
    if paths.is_empty() {
        return Ok(None);
    }
    let absolute = paths.iter().map(|path| offline::absolute(path));
    absolute.collect::<Result<Vec<_>, _>>().map(Some)
}

fn list(workspace: &Workspace, task: Option<&str>, limit: Option<u32>) -> Result<i32, Error> {
    let params = without_nulls(json!({ "taskId": task, "limit": limit }));
    let result = offline::call_text(workspace, "sightline/listCheckpoints", &params)?;
    let listed = parse_result(&result)?;
    let is_empty = items(&listed, "checkpoints").next().is_none();
    let others = || {
        let any = offline::call_text(workspace, "sightline/listCheckpoints", r#"{"limit":1}"#)?;
        let any = parse_result(&any)?;
        Ok::<bool, Error>(items(&any, "checkpoints").next().is_some())
    };
    if let Some(task) = task
        && is_empty
        && !workspace.json
        && others()?
    {
        print_message(&format!("no checkpoints of task {}", one_line(task)));
    } else if is_empty && !workspace.json {
        print_message("no checkpoints yet; create one with `sightline checkpoint create`");
    }
    print_as(workspace, &result, |listed| {
        items(listed, "checkpoints").map(listed_line).collect()
    })?;
    Ok(if is_empty { NEGATIVE } else { DONE })
}

/// Formats a checkpoint for a list.
fn listed_line(one: &Value) -> String {
    let created = one["createdAt"].as_i64().unwrap_or_default();
    let mut line = format!(
        "{}  {:>11}  {}",
        short_id(one),
        relative_time(created),
        counts(one)
    );
    match text(one, "purpose") {
        "undo" => line.push_str(&format!("  {DIM}before a restore{DIM:#}")),
        "imported" => line.push_str(&format!("  {DIM}imported{DIM:#}")),
        _ => {}
    }
    for field in ["taskId", "label"] {
        if let Some(value) = one[field].as_str() {
            line.push_str(&format!("  {}", one_line(value)));
        }
    }
    line + "\n"
}

fn diff(
    workspace: &Workspace,
    from: &str,
    to: Option<&str>,
    patch_wanted: bool,
    paths: &[String],
) -> Result<i32, Error> {
    offline::with_server(workspace, |server| {
        let params = DiffCheckpointsParams {
            from: resolve_id(server, from)?,
            to: to.map(|to| resolve_id(server, to)).transpose()?,
            paths: absolute_paths(paths)?,
            patch: patch_wanted,
            ..DiffCheckpointsParams::default()
        };
        if patch_wanted && !workspace.json {
            let text = patch(&server.context(), &params)?;
            let plain = AutoStream::choice(&io::stdout()) == ColorChoice::Never;
            // Stripping colors could strip bytes of the files as well.
            if plain {
                print_to(io::stdout().lock(), &text)?;
            } else {
                print_to(io::stdout().lock(), &colorize(&text))?;
            }
            return Ok(if text.is_empty() { NEGATIVE } else { DONE });
        }
        let params = serde_json::to_value(&params).map_err(super::internal)?;
        let result = run_request(server, "sightline/diffCheckpoints", params)?;
        let compared = parse_result(&result)?;
        print_as(workspace, &result, |compared| {
            items(compared, "files").map(difference).collect()
        })?;
        let is_empty = items(&compared, "files").next().is_none();
        Ok(if is_empty { NEGATIVE } else { DONE })
    })
}

/// `sightline checkpoint prune`.
fn prune(arguments: &Prune) -> Result<i32, Error> {
    let older_than = arguments
        .older_than
        .map(|age| now_millis().saturating_sub(age));
    if arguments.keep.is_none() && older_than.is_none() && arguments.max_bytes.is_none() {
        return Err(Error::invalid(
            "no limit given; use --keep, --older-than or --max-bytes",
        ));
    }
    let proceed = arguments.confirm.proceed()?;
    let workspace = &arguments.workspace;
    let params = |dry_run: bool| {
        json!({
            "keep": arguments.keep,
            "olderThan": older_than,
            "maxBytes": arguments.max_bytes,
            "dryRun": dry_run,
        })
    };
    let method = "sightline/pruneCheckpoints";
    let see = |server: &OfflineServer| {
        let result = run_request(server, method, params(true))?;
        let listed = parse_result(&run_request(
            server,
            "sightline/listCheckpoints",
            json!({}),
        )?)?;
        Ok::<_, Error>((removal_lines(&parse_result(&result)?, &listed), result))
    };
    if proceed == Proceed::DryRun {
        let (lines, result) = offline::with_server(workspace, see)?;
        print_as(workspace, &result, |_| lines)?;
        return Ok(DONE);
    }
    let pruned = with_maintenance(workspace, |server| {
        if proceed == Proceed::Ask {
            let (lines, seen) = see(server)?;
            if workspace.json {
                print_to(anstream::stderr().lock(), lines.as_bytes())?;
            } else {
                print(&lines)?;
            }
            if parse_result(&seen)?["removed"] != 0 && !ask("This cannot be undone. ")? {
                return Ok(None);
            }
        }
        run_request(server, method, params(false)).map(Some)
    })?;
    let Some(result) = pruned else {
        return Ok(NEGATIVE);
    };
    print_as(workspace, &result, |pruned| {
        let freed = size(&pruned["freedBytes"]);
        let removed = pruned["removed"].as_u64().unwrap_or_default();
        format!("{} removed, {freed} freed\n", plural(removed, "checkpoint"))
    })?;
    Ok(DONE)
}

/// Lists the checkpoints that would be removed.
fn removal_lines(pruned: &Value, listed: &Value) -> String {
    let removed_ids: Vec<&str> = items(pruned, "checkpoints")
        .filter_map(Value::as_str)
        .collect();
    let checkpoints = items(listed, "checkpoints");
    let goes = checkpoints.filter(|one| removed_ids.contains(&text(one, "id")));
    let mut lines: String = goes.map(listed_line).collect();
    let freed = size(&pruned["freedBytes"]);
    lines.push_str(&match removed_ids.len() {
        0 => "nothing to remove\n".to_owned(),
        count => {
            let count = plural(count as u64, "checkpoint");
            format!("{count} would be removed, about {freed} freed\n")
        }
    });
    lines
}

fn import_checkpoints(workspace: &Workspace, path: Option<&Path>) -> Result<i32, Error> {
    let places = match path {
        Some(path) => vec![offline::absolute_path(path)?.as_path().to_owned()],
        None => cline_data_dirs(),
    };
    let imported = with_maintenance(workspace, |server| import(&server.context(), &places))?;
    let pairs = imported.checkpoints.iter();
    let pairs: Vec<Value> = pairs
        .map(|(theirs, ours)| json!({ "from": theirs.to_string(), "id": ours.to_string() }))
        .collect();
    let count = pairs.len();
    let result = json!({
        "checkpoints": pairs,
        "known": imported.known,
        "denied": imported.denied,
        "problems": imported.problems,
    });
    if workspace.json {
        print(&format!("{result}\n"))?;
        return Ok(DONE);
    }
    let denied = match imported.denied {
        0 => String::new(),
        denied => format!(", {} skipped", plural(denied, "denied path")),
    };
    print(&format!(
        "{} imported, {} already known{denied}\n",
        plural(count as u64, "checkpoint"),
        imported.known
    ))?;
    for problem in &imported.problems {
        print_message(problem);
    }
    Ok(if count == 0 && imported.known == 0 {
        NEGATIVE
    } else {
        DONE
    })
}

/// Returns the data directories of Cline 3: in the settings of each editor, and its own.
fn cline_data_dirs() -> Vec<PathBuf> {
    const EDITORS: [&str; 6] = [
        "Code",
        "Code - Insiders",
        "VSCodium",
        "Cursor",
        "Windsurf",
        "Code - OSS",
    ];
    let mut places = Vec::new();
    if let Some(base) = directories::BaseDirs::new() {
        for editor in EDITORS {
            let user = base.config_dir().join(editor).join("User");
            places.push(user.join("globalStorage").join("saoudrizwan.claude-dev"));
        }
        let servers = [".vscode-server", ".cursor-server"];
        for server in servers {
            let user = base.home_dir().join(server).join("data").join("User");
            places.push(user.join("globalStorage").join("saoudrizwan.claude-dev"));
        }
        places.push(base.home_dir().join(".cline").join("data"));
    }
    let there: Vec<PathBuf> = places.iter().filter(|p| p.exists()).cloned().collect();
    if there.is_empty() { places } else { there }
}

fn transfer_checkpoints(
    workspace: &Workspace,
    direction: Direction,
    remote: &str,
) -> Result<i32, Error> {
    let output = with_maintenance(workspace, |server| {
        let cancel = signals::cancel_on_termination()
            .map_err(|error| Error::storage(format!("cannot install signal handlers: {error}")))?;
        let context = RequestContext {
            cancel,
            ..server.context()
        };
        transfer(&context, direction, remote)
    })?;
    if workspace.json {
        print(&format!("{}\n", json!({ "text": output })))?;
    } else {
        print(&format!("{}\n", output.trim_end()))?;
    }
    Ok(DONE)
}

fn print_as(
    workspace: &Workspace,
    result: &str,
    text: impl FnOnce(&Value) -> String,
) -> Result<(), Error> {
    if workspace.json {
        print_raw(result)
    } else {
        print(&text(&parse_result(result)?))
    }
}
