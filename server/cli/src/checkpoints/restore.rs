//! `sightline checkpoint preview`, `restore` and `undo`.

use sightline_base::{clock::now_millis, escape::one_line};
use sightline_engine::{error::Error, plural::plural};
use sightline_protocol::{
    checkpoint::{
        PreviewRestoreParams, PreviewRestoreResult, RestoreAction, RestoreCheckpointParams,
        RestoreCheckpointResult, RestoreConflict, RestoreOutcome, RestoreTarget, UndoRestoreParams,
        short_id,
    },
    method::{PreviewRestore, RestoreCheckpoint, UndoRestore},
};

use super::{
    arguments::{Length, ModeArgument, Restore, Undo},
    confirm::{Proceed, ask, require_terminal},
    format::{CHANGED, DIM, REMOVED, format_forced, format_skipped, more_line, print},
    print_as,
    timeline::Clock,
    with_paths,
};
use crate::{
    DONE, FAILURE, NEGATIVE, Workspace, print_json, print_message, print_to, requests::Requests,
};

const UP_TO_DATE: &str = "already up to date";

/// `sightline checkpoint preview`.
pub(super) fn preview(
    requests: &Requests,
    id: &str,
    paths: &[String],
    length: Length,
) -> Result<i32, Error> {
    let workspace = requests.workspace;
    let plan = Plan::new(preview_request(requests, id, paths)?, None, length, false);
    plan.show(workspace)?;
    let is_empty = plan.preview.changes.is_empty();
    if is_empty && !workspace.json {
        print_message("nothing to change");
    }
    Ok(DONE)
}

/// `sightline checkpoint restore ID`.
pub(super) fn restore(arguments: &Restore, id: &str) -> Result<i32, Error> {
    let proceed = arguments.confirm.proceed_or_ask();
    let requests = Requests::new(&arguments.workspace, arguments.attached);
    let paths = arguments.paths.iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once(id).chain(paths).collect();
    let command = format!("sightline checkpoint restore {}", words.join(" "));
    let see = || {
        let conversation = (arguments.mode != ModeArgument::Files)
            .then(|| "the conversation is rewound to the checkpoint".to_owned());
        let preview = match arguments.mode {
            ModeArgument::Task => PreviewRestoreResult::default(),
            _ => preview_request(&requests, id, &arguments.paths)?,
        };
        let mut plan = Plan::new(preview, conversation, arguments.length, arguments.force);
        plan.command.clone_from(&command);
        Ok::<_, Error>(plan)
    };
    if proceed == Proceed::DryRun {
        return see()?.dry_run(&arguments.workspace);
    }
    let restored = requests.with_maintenance(|requests| {
        let mut token = arguments.token.clone();
        if proceed == Proceed::Ask || token.is_none() {
            let plan = see()?;
            if proceed == Proceed::Ask && !plan.confirm(&arguments.workspace)? {
                return Ok(None);
            }
            let has_token = arguments.mode != ModeArgument::Task;
            token = token.or_else(|| has_token.then_some(plan.preview.token));
        }
        let root = requests.root()?;
        let restored = with_paths(requests, &arguments.paths, |paths| {
            requests.call::<RestoreCheckpoint>(RestoreCheckpointParams {
                id: id.to_owned(),
                paths,
                root: root.clone(),
                mode: arguments.mode.into(),
                task_id: arguments.task.clone(),
                token: token.clone(),
                force: arguments.force,
                ..RestoreCheckpointParams::default()
            })
        })?;
        Ok(Some(restored))
    })?;
    match restored {
        Some(restored) => print_outcomes(&arguments.workspace, &restored, &command),
        None => Ok(NEGATIVE),
    }
}

/// `sightline checkpoint undo`.
pub(super) fn undo(arguments: &Undo) -> Result<i32, Error> {
    let proceed = arguments.confirm.proceed_or_ask();
    let requests = Requests::new(&arguments.workspace, arguments.attached);
    let see = || {
        let params = PreviewRestoreParams {
            id: arguments.id.clone().unwrap_or_else(|| "last".to_owned()),
            undo: Some(true),
            root: requests.root()?,
            ..PreviewRestoreParams::default()
        };
        let preview = requests.call::<PreviewRestore>(params)?;
        let conversation = preview.task_id.as_ref().map(|task| {
            let task = one_line(task);
            format!("the conversation of task {task} is reset to its state before the restore")
        });
        // Without an id, the next undo is that of this undo.
        let id = preview.undo_id.as_deref().map_or("last", short_id);
        let command = format!("sightline checkpoint undo {id}");
        let mut plan = Plan::new(preview, conversation, arguments.length, arguments.force);
        plan.command = command;
        Ok::<_, Error>(plan)
    };
    if proceed == Proceed::DryRun {
        return see()?.dry_run(&arguments.workspace);
    }
    let undone = requests.with_maintenance(|requests| {
        let plan = see()?;
        if proceed == Proceed::Ask && !plan.confirm(&arguments.workspace)? {
            return Ok(None);
        }
        let params = UndoRestoreParams {
            undo_id: plan.preview.undo_id,
            token: Some(plan.preview.token),
            force: arguments.force,
            ..UndoRestoreParams::default()
        };
        let undone = requests.call::<UndoRestore>(params)?;
        Ok(Some((undone, plan.command)))
    })?;
    match undone {
        Some((undone, command)) => print_outcomes(&arguments.workspace, &undone, &command),
        None => Ok(NEGATIVE),
    }
}

fn preview_request(
    requests: &Requests,
    id: &str,
    paths: &[String],
) -> Result<PreviewRestoreResult, Error> {
    let root = requests.root()?;
    with_paths(requests, paths, |paths| {
        requests.call::<PreviewRestore>(PreviewRestoreParams {
            id: id.to_owned(),
            paths,
            root: root.clone(),
            undo: Some(false),
            ..PreviewRestoreParams::default()
        })
    })
}

fn is_nothing(preview: &PreviewRestoreResult) -> bool {
    preview.changes.is_empty() && preview.conflicts.is_empty()
}

/// Returns a line that says which state is restored.
pub(super) fn target_line(target: &RestoreTarget) -> String {
    let mut line = match &target.name {
        Some(name) => {
            let (turn, side) = match name.strip_suffix('+') {
                Some(turn) => (turn, "after"),
                None => (name.as_str(), "before"),
            };
            let (session, number) = turn.rsplit_once('.').unwrap_or((turn, ""));
            format!("Restore to {side} turn {number} of {session}")
        }
        None => format!("Restore to checkpoint {}", short_id(&target.id)),
    };
    if let Some(label) = &target.label {
        line.push_str(&format!(" \"{}\"", one_line(label)));
    }
    let (at, ago) = (target.created_at, age(target.created_at));
    line.push_str(&format!(", {}, {ago}", Clock::new().time(at)));
    if let Some(branch) = &target.branch {
        line.push_str(&format!(", on branch {}", one_line(branch)));
    }
    line + "\n"
}

/// Formats a time relative to now in words.
fn age(millis: i64) -> String {
    let seconds = now_millis().saturating_sub(millis).max(0).unsigned_abs() / 1000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} ago", plural(seconds / 60, "minute")),
        3600..86_400 => format!("{} ago", plural(seconds / 3600, "hour")),
        _ => format!("{} ago", plural(seconds / 86_400, "day")),
    }
}

/// Returns whether `--force` changes a path that is left unchanged without it.
fn needs_force(conflict: &RestoreConflict) -> bool {
    conflict.changed_since || conflict.unsaved
}

/// Returns a line with the number of changes. Empty if there are few.
pub(super) fn summary(preview: &PreviewRestoreResult, force: bool) -> String {
    let count = |action| {
        let changes = preview.changes.iter();
        changes.filter(|change| change.action == action).count() as u64
    };
    let (written, deleted) = (count(RestoreAction::Write), count(RestoreAction::Delete));
    let (forced, skipped): (Vec<_>, Vec<_>) = preview
        .conflicts
        .iter()
        .partition(|conflict| force && needs_force(conflict));
    let forced = forced.len() as u64;
    if written + deleted + forced < 2 {
        return String::new();
    }
    let counts = [
        (written, "to write"),
        (deleted, "to delete"),
        (forced, "to replace"),
        (skipped.len() as u64, "skipped"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    format!("{}\n", counts.join(", "))
}

/// A previewed restore.
struct Plan {
    preview: PreviewRestoreResult,
    /// The preview as text.
    lines: String,
    conversation: bool,
    /// Number of paths that are changed only because of `--force`.
    forced: usize,
    /// What does this, without options.
    command: String,
}

impl Plan {
    fn new(
        preview: PreviewRestoreResult,
        conversation: Option<String>,
        length: Length,
        force: bool,
    ) -> Self {
        let mut lines = String::new();
        if let Some(target) = preview.target.as_ref().filter(|_| !is_nothing(&preview)) {
            lines.push_str(&target_line(target));
        }
        for warning in &preview.warnings {
            lines.push_str(&format!(
                "{CHANGED}warning{CHANGED:#} {}\n",
                one_line(warning)
            ));
        }
        lines.push_str(&summary(&preview, force));
        let limit = length.limit();
        for change in preview.changes.iter().take(limit) {
            let (style, action) = match change.action {
                RestoreAction::Delete => (REMOVED, "delete"),
                RestoreAction::Write => (CHANGED, "write "),
            };
            let (path, reason) = (one_line(&change.path), one_line(&change.reason));
            lines.push_str(&format!(
                "{style}{action}{style:#}  {path}  {DIM}{reason}{DIM:#}\n"
            ));
        }
        lines.push_str(&more_line(preview.changes.len(), limit));
        let is_forced = |conflict: &RestoreConflict| force && needs_force(conflict);
        lines.extend(preview.conflicts.iter().take(limit).map(|conflict| {
            if is_forced(conflict) {
                format_forced(conflict)
            } else {
                format_skipped(conflict)
            }
        }));
        lines.push_str(&more_line(preview.conflicts.len(), limit));
        if let Some(conversation) = &conversation {
            lines.push_str(&format!("{conversation}\n"));
        }
        Self {
            forced: preview.conflicts.iter().filter(|c| is_forced(c)).count(),
            preview,
            lines,
            conversation: conversation.is_some(),
            command: String::new(),
        }
    }

    fn show(&self, workspace: &Workspace) -> Result<(), Error> {
        if workspace.json {
            print_json(&self.preview)
        } else {
            print(&self.lines)
        }
    }

    /// Returns whether neither files nor a conversation would change.
    fn is_empty(&self) -> bool {
        self.preview.changes.is_empty() && self.forced == 0 && !self.conversation
    }

    fn dry_run(&self, workspace: &Workspace) -> Result<i32, Error> {
        self.show(workspace)?;
        let has_conflicts = !self.preview.conflicts.is_empty();
        let message = match (self.is_empty(), has_conflicts) {
            (false, _) => return Ok(DONE),
            (true, false) => UP_TO_DATE,
            (true, true) => "nothing to change",
        };
        if !workspace.json {
            print_message(message);
        }
        Ok(if has_conflicts { NEGATIVE } else { DONE })
    }

    /// Shows the preview and asks, if there is anything to confirm.
    fn confirm(&self, workspace: &Workspace) -> Result<bool, Error> {
        if !self.is_empty() {
            require_terminal()?;
        }
        if workspace.json {
            // stdout is reserved for the result.
            print_to(anstream::stderr().lock(), self.lines.as_bytes())?;
        } else {
            self.show(workspace)?;
        }
        if self.is_empty() {
            return Ok(true);
        }
        let note = force_note(&self.preview.conflicts, self.forced > 0, &self.command);
        ask(&note)
    }
}

/// Returns a sentence about the skipped paths that `command --force` would change. Empty if there are
/// none, or with `--force`.
fn force_note(conflicts: &[RestoreConflict], force: bool, command: &str) -> String {
    let count = conflicts.iter().filter(|one| needs_force(one)).count();
    if force || count == 0 {
        return String::new();
    }
    let (paths, are) = (
        plural(count as u64, "path"),
        if count == 1 { "is" } else { "are" },
    );
    format!("{paths} that {are} skipped can be replaced with `{command} --force`. ")
}

/// Prints what was restored. `command`: what was run, for a hint. Returns the exit code.
pub(super) fn print_outcomes(
    workspace: &Workspace,
    restored: &RestoreCheckpointResult,
    command: &str,
) -> Result<i32, Error> {
    let outcomes = restored.outcomes.iter();
    let failed: Vec<&RestoreOutcome> = outcomes.filter(|outcome| !outcome.ok).collect();
    let skipped: &[RestoreConflict] = &restored.conflicts;
    print_as(workspace, restored, |restored| {
        if restored.undo_id.is_none() && skipped.is_empty() {
            return format!("{UP_TO_DATE}\n");
        }
        let restored_paths = (restored.outcomes.len() - failed.len()) as u64;
        let mut line = format!("{} restored", plural(restored_paths, "path"));
        if !skipped.is_empty() {
            line.push_str(&format!(", {} skipped", skipped.len()));
        }
        if let Some(task) = &restored.task {
            let messages = plural(task.messages, "message");
            line.push_str(&format!(", task {} has {messages}", task.task_id));
        }
        if let Some(command) = restored.undo_command() {
            line.push_str(&format!("; undo with `{command}`"));
        }
        line.push_str(if skipped.is_empty() { "\n" } else { ":\n" });
        line.extend(skipped.iter().map(format_skipped));
        line
    })?;
    let note = force_note(skipped, false, command);
    if !workspace.json && !note.is_empty() {
        print_message(note.trim_end());
    }
    for outcome in &failed {
        let error = outcome.error.as_deref().unwrap_or_default();
        print_message(&format!("{}: {}", one_line(&outcome.path), one_line(error)));
    }
    Ok(match (failed.is_empty(), &restored.undo_id) {
        (false, _) => FAILURE,
        // Every difference was left unchanged.
        (true, None) if !skipped.is_empty() => NEGATIVE,
        _ => DONE,
    })
}
