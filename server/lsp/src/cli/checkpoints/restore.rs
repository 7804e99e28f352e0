//! `sightline checkpoint preview`, `restore` and `undo`.

use serde_json::{Value, json};
use sightline_protocol::error::ErrorKind;
use sightline_workspace::{error::Error, escape::one_line};

use super::{
    absolute_paths,
    arguments::{ModeArgument, Restore, Undo},
    confirm::{Proceed, ask},
    format::{CHANGED, DIM, REMOVED, format_skipped, items, line, print, text},
    print_as, resolve_id, run_request, with_maintenance,
};
use crate::{
    cli::{
        DONE, FAILURE, NEGATIVE, Workspace,
        conversations::parse_result,
        offline::{self, OfflineServer},
        print_message, print_raw, print_to,
    },
    plural::plural,
};

const UP_TO_DATE: &str = "already up to date";

/// `sightline checkpoint preview`.
pub(super) fn preview(workspace: &Workspace, id: &str, paths: &[String]) -> Result<i32, Error> {
    let result = offline::with_server(workspace, |server| preview_request(server, id, paths))?;
    let plan = Plan::new(&result, None)?;
    plan.show(workspace, &result)?;
    let is_empty = plan.changes == 0;
    if is_empty && !workspace.json {
        print_message("nothing to change");
    }
    Ok(if is_empty { NEGATIVE } else { DONE })
}

/// `sightline checkpoint restore`.
pub(super) fn restore(arguments: &Restore) -> Result<i32, Error> {
    let proceed = arguments.confirm.proceed()?;
    let workspace = &arguments.workspace;
    let conversation = (arguments.mode != ModeArgument::Files)
        .then(|| "the conversation is rewound to the checkpoint".to_owned());
    let see = |server: &OfflineServer| match arguments.mode {
        ModeArgument::Task => {
            let nothing = json!({ "changes": [], "conflicts": [], "token": "" });
            Ok(nothing.to_string())
        }
        _ => preview_request(server, &arguments.id, &arguments.paths),
    };
    if proceed == Proceed::DryRun {
        let result = offline::with_server(workspace, see)?;
        return Plan::new(&result, conversation)?.dry_run(workspace, &result);
    }
    let restored = with_maintenance(workspace, |server| {
        let mut token = arguments.token.clone();
        if proceed == Proceed::Ask {
            let result = see(server)?;
            let plan = Plan::new(&result, conversation.clone())?;
            if !plan.confirm(workspace, &result, arguments.force)? {
                return Ok(None);
            }
            let has_token = arguments.mode != ModeArgument::Task;
            token = token.or_else(|| has_token.then(|| plan.token.clone()));
        }
        let params = json!({
            "id": resolve_id(server, &arguments.id)?,
            "paths": absolute_paths(&arguments.paths)?,
            "mode": arguments.mode.wire(),
            "taskId": arguments.task,
            "token": token,
            "force": arguments.force,
        });
        run_request(server, "sightline/restoreCheckpoint", params).map(Some)
    })?;
    match restored {
        Some(restored) => print_outcomes(workspace, &restored),
        None => Ok(NEGATIVE),
    }
}

/// `sightline checkpoint undo`.
pub(super) fn undo(arguments: &Undo) -> Result<i32, Error> {
    match run_undo(arguments) {
        // An unknown id is a failure.
        Err(error) if arguments.id.is_none() && error.kind == ErrorKind::NotFound => {
            print_message(&error.message);
            Ok(NEGATIVE)
        }
        done => done,
    }
}

fn run_undo(arguments: &Undo) -> Result<i32, Error> {
    let proceed = arguments.confirm.proceed()?;
    let workspace = &arguments.workspace;
    let named = |server: &OfflineServer| {
        let id = arguments.id.as_deref();
        id.map(|id| resolve_id(server, id)).transpose()
    };
    let see = |server: &OfflineServer| {
        let id = named(server)?.unwrap_or_else(|| "last".to_owned());
        let params = json!({ "id": id, "undo": true });
        run_request(server, "sightline/previewRestore", params)
    };
    let planned = |result: &str| {
        let seen = parse_result(result)?;
        let task = seen["taskId"].as_str();
        let conversation = task.map(|task| {
            let task = one_line(task);
            format!("the conversation of task {task} is reset to its state before the restore")
        });
        Plan::new(result, conversation)
    };
    if proceed == Proceed::DryRun {
        let result = offline::with_server(workspace, see)?;
        return planned(&result)?.dry_run(workspace, &result);
    }
    let run_undo = with_maintenance(workspace, |server| {
        let mut token = None;
        if proceed == Proceed::Ask {
            let result = see(server)?;
            let plan = planned(&result)?;
            if !plan.confirm(workspace, &result, false)? {
                return Ok(None);
            }
            token = Some(plan.token);
        }
        let params = json!({ "undoId": named(server)?, "token": token });
        run_request(server, "sightline/undoRestore", params).map(Some)
    })?;
    match run_undo {
        Some(run_undo) => print_outcomes(workspace, &run_undo),
        None => Ok(NEGATIVE),
    }
}

fn preview_request(server: &OfflineServer, id: &str, paths: &[String]) -> Result<String, Error> {
    let params = json!({ "id": resolve_id(server, id)?, "paths": absolute_paths(paths)? });
    run_request(server, "sightline/previewRestore", params)
}

/// A previewed restore.
struct Plan {
    /// The preview as text.
    lines: String,
    changes: usize,
    /// Number of changed files that were modified again after the restore to undo.
    changed_since: usize,
    conflicts: usize,
    conversation: bool,
    token: String,
}

impl Plan {
    fn new(result: &str, conversation: Option<String>) -> Result<Self, Error> {
        let seen = parse_result(result)?;
        let mut lines = String::new();
        for change in items(&seen, "changes") {
            let (style, action) = match text(change, "action") {
                "delete" => (REMOVED, "delete"),
                _ => (CHANGED, "write "),
            };
            let (path, reason) = (line(change, "path"), line(change, "reason"));
            lines.push_str(&format!(
                "{style}{action}{style:#}  {path}  {DIM}{reason}{DIM:#}\n"
            ));
        }
        lines.extend(items(&seen, "conflicts").map(format_skipped));
        if let Some(conversation) = &conversation {
            lines.push_str(&format!("{conversation}\n"));
        }
        let changes = || items(&seen, "changes");
        Ok(Self {
            lines,
            changes: changes().count(),
            changed_since: changes().filter(|c| c["changedSince"] == true).count(),
            conflicts: items(&seen, "conflicts").count(),
            conversation: conversation.is_some(),
            token: text(&seen, "token").to_owned(),
        })
    }

    fn show(&self, workspace: &Workspace, result: &str) -> Result<(), Error> {
        if workspace.json {
            print_raw(result)
        } else {
            print(&self.lines)
        }
    }

    fn dry_run(&self, workspace: &Workspace, result: &str) -> Result<i32, Error> {
        self.show(workspace, result)?;
        let is_empty = self.changes == 0 && !self.conversation;
        let message = match (is_empty, self.conflicts) {
            (false, _) => return Ok(DONE),
            (true, 0) => UP_TO_DATE,
            (true, _) => "nothing to change",
        };
        if !workspace.json {
            print_message(message);
        }
        Ok(match self.conflicts {
            0 => DONE,
            _ => NEGATIVE,
        })
    }

    /// Shows the preview and asks, if there is anything to confirm.
    fn confirm(&self, workspace: &Workspace, result: &str, force: bool) -> Result<bool, Error> {
        if workspace.json {
            // stdout is reserved for the result.
            print_to(anstream::stderr().lock(), self.lines.as_bytes())?;
        } else {
            self.show(workspace, result)?;
        }
        if self.changes == 0 && !self.conversation && !(force && self.conflicts > 0) {
            return Ok(true);
        }
        let note = match self.changed_since {
            0 => String::new(),
            1 => "1 file was changed after the restore; this change is undone too. ".to_owned(),
            changed_since => format!(
                "{changed_since} files were changed after the restore; these changes are undone too. "
            ),
        };
        ask(&note)
    }
}

fn print_outcomes(workspace: &Workspace, result: &str) -> Result<i32, Error> {
    let restored = parse_result(result)?;
    let count = items(&restored, "outcomes").count();
    let failed = items(&restored, "outcomes").filter(|outcome| outcome["ok"] != true);
    let failed: Vec<&Value> = failed.collect();
    let skipped: Vec<&Value> = items(&restored, "conflicts").collect();
    let undo = restored["undoId"].as_str();
    print_as(workspace, result, |restored| {
        if undo.is_none() && skipped.is_empty() {
            return format!("{UP_TO_DATE}\n");
        }
        let restored_paths = (count - failed.len()) as u64;
        let mut line = format!("{} restored", plural(restored_paths, "path"));
        if !skipped.is_empty() {
            line.push_str(&format!(", {} skipped", skipped.len()));
        }
        if let Some(task) = restored.get("task") {
            let id = text(task, "taskId");
            let messages = plural(task["messages"].as_u64().unwrap_or_default(), "message");
            line.push_str(&format!(", task {id} has {messages}"));
        }
        if let Some(undo) = undo {
            line.push_str(&format!("; undo with {undo}"));
        }
        line.push_str(if skipped.is_empty() { "\n" } else { ":\n" });
        line.extend(skipped.iter().map(|conflict| format_skipped(conflict)));
        line
    })?;
    for outcome in &failed {
        let error = line(outcome, "error");
        print_message(&format!("{}: {error}", line(outcome, "path")));
    }
    Ok(match (failed.is_empty(), undo) {
        (false, _) => FAILURE,
        // Every difference was left unchanged.
        (true, None) if !skipped.is_empty() => NEGATIVE,
        _ => DONE,
    })
}
