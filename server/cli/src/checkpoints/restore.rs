//! `sightline checkpoint preview`, `restore` and `undo`.

use sightline_base::{clock::now_millis, escape::one_line};
use sightline_engine::{error::Error, plural::plural};
use sightline_protocol::{
    checkpoint::{
        FileHunks, PreviewRestoreParams, PreviewRestoreResult, RestoreAction,
        RestoreCheckpointParams, RestoreCheckpointResult, RestoreConflict, RestoreOnly,
        RestoreOutcome, RestoreTarget, UndoRestoreParams, short_id,
    },
    method::{PreviewRestore, RestoreCheckpoint, UndoRestore},
};

use super::{
    arguments::{Length, ModeArgument, PartArgs, Restore, Undo},
    confirm::{ConfirmArgs, Proceed, ask, require_terminal},
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
    (paths, part): (&[String], &PartArgs),
    length: Length,
) -> Result<i32, Error> {
    let workspace = requests.workspace;
    let preview = preview_request(requests, id, paths, part)?;
    let plan = Plan::new(preview, part, None, length, false);
    plan.show(workspace)?;
    let is_empty = plan.preview.changes.is_empty();
    if is_empty && !workspace.json {
        print_message("nothing to change");
    }
    Ok(DONE)
}

/// `sightline checkpoint restore ID`.
pub(super) fn restore(arguments: &Restore, id: &str) -> Result<i32, Error> {
    let requests = Requests::new(&arguments.workspace, arguments.attached);
    let paths = arguments.paths.iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once(id).chain(paths).collect();
    let command = format!("sightline checkpoint restore {}", words.join(" "));
    let see = || {
        let conversation = (arguments.mode != ModeArgument::Files)
            .then(|| "the conversation is rewound to the checkpoint".to_owned());
        let preview = match arguments.mode {
            ModeArgument::Task => PreviewRestoreResult::default(),
            _ => preview_request(&requests, id, &arguments.paths, &arguments.part)?,
        };
        let (length, force) = (arguments.length, arguments.force);
        let mut plan = Plan::new(preview, &arguments.part, conversation, length, force);
        plan.command.clone_from(&command);
        Ok(plan)
    };
    let root = requests.root()?;
    let change = |_: PreviewRestoreResult, token: Option<String>| {
        with_part(
            &requests,
            &arguments.paths,
            &arguments.part,
            |paths, hunks| {
                requests.call::<RestoreCheckpoint>(RestoreCheckpointParams {
                    id: id.to_owned(),
                    paths,
                    root: root.clone(),
                    mode: arguments.mode.into(),
                    task_id: arguments.task.clone(),
                    token: token.clone(),
                    force: arguments.force,
                    only: arguments.part.only(),
                    hunks,
                    ..RestoreCheckpointParams::default()
                })
            },
        )
    };
    confirmed(
        &requests,
        &arguments.confirm,
        arguments.token.clone().map(|token| (token, &*command)),
        see,
        change,
    )
}

/// `sightline checkpoint undo`.
pub(super) fn undo(arguments: &Undo) -> Result<i32, Error> {
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
        let (length, force) = (arguments.length, arguments.force);
        let mut plan = Plan::new(preview, &PartArgs::default(), conversation, length, force);
        plan.command = command;
        Ok(plan)
    };
    let change = |preview: PreviewRestoreResult, token: Option<String>| {
        requests.call::<UndoRestore>(UndoRestoreParams {
            undo_id: preview.undo_id,
            token,
            force: arguments.force,
            ..UndoRestoreParams::default()
        })
    };
    confirmed(&requests, &arguments.confirm, None, see, change)
}

/// Shows the plan that `see` returns, asks, and lets `change` carry it out. Without a question and with the
/// token of an earlier preview, and the command for a hint, there is no new one.
fn confirmed(
    requests: &Requests,
    confirm: &ConfirmArgs,
    token: Option<(String, &str)>,
    see: impl Fn() -> Result<Plan, Error>,
    change: impl Fn(PreviewRestoreResult, Option<String>) -> Result<RestoreCheckpointResult, Error>,
) -> Result<i32, Error> {
    let workspace = requests.workspace;
    let proceed = confirm.proceed_or_ask();
    if proceed == Proceed::DryRun {
        return see()?.dry_run(workspace);
    }
    let changed = requests.with_maintenance(|_| {
        if let (Proceed::Yes, Some((token, command))) = (proceed, token.clone()) {
            let changed = change(PreviewRestoreResult::default(), Some(token))?;
            return Ok(Some((changed, command.to_owned())));
        }
        let plan = see()?;
        if proceed == Proceed::Yes {
            plan.announce(workspace)?;
        } else if !plan.confirm(workspace)? {
            return Ok(None);
        }
        let command = plan.command.clone();
        // Of a conversation alone there is no preview.
        let seen = Some(plan.preview.token.clone()).filter(|token| !token.is_empty());
        let token = token.clone().map(|(token, _)| token).or(seen);
        Ok(Some((change(plan.preview, token)?, command)))
    })?;
    match changed {
        Some((changed, command)) => print_outcomes(workspace, &changed, &command),
        None => Ok(NEGATIVE),
    }
}

/// Sends a request with the paths, or the hunks, of a command.
fn with_part<R>(
    requests: &Requests,
    paths: &[String],
    part: &PartArgs,
    send: impl Fn(Option<Vec<String>>, Option<Vec<FileHunks>>) -> Result<R, Error>,
) -> Result<R, Error> {
    if part.hunks.is_empty() {
        return with_paths(requests, paths, |paths| send(paths, None));
    }
    let files: Vec<String> = part.hunks.iter().map(|file| file.path.clone()).collect();
    with_paths(requests, &files, |paths| {
        let hunks = paths
            .unwrap_or_default()
            .into_iter()
            .zip(&part.hunks)
            .map(|(path, file)| FileHunks {
                path,
                hunks: file.hunks.clone(),
            });
        send(None, Some(hunks.collect()))
    })
}

fn preview_request(
    requests: &Requests,
    id: &str,
    paths: &[String],
    part: &PartArgs,
) -> Result<PreviewRestoreResult, Error> {
    let root = requests.root()?;
    with_part(requests, paths, part, |paths, hunks| {
        requests.call::<PreviewRestore>(PreviewRestoreParams {
            id: id.to_owned(),
            paths,
            root: root.clone(),
            undo: Some(false),
            only: part.only(),
            hunks,
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

/// Returns a line that says what is restored.
fn heading(target: &RestoreTarget, part: &PartArgs) -> String {
    let line = target_line(target);
    if !part.hunks.is_empty() {
        return line.replacen("Restore to", "Restore hunks to", 1);
    }
    match part.only() {
        Some(RestoreOnly::Turn) => line.replacen("Restore to before", "Take back", 1),
        None => line,
    }
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
    /// What is restored, and warnings.
    heading: String,
    /// The other lines of the preview.
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
        part: &PartArgs,
        conversation: Option<String>,
        length: Length,
        force: bool,
    ) -> Self {
        let target = preview.target.as_ref().filter(|_| !is_nothing(&preview));
        let mut headings = target.map_or_else(String::new, |target| heading(target, part));
        for warning in &preview.warnings {
            let warning = one_line(warning);
            headings.push_str(&format!("{CHANGED}warning{CHANGED:#} {warning}\n"));
        }
        let mut lines = summary(&preview, force);
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
            heading: headings,
            lines,
            conversation: conversation.is_some(),
            command: String::new(),
        }
    }

    fn show(&self, workspace: &Workspace) -> Result<(), Error> {
        if workspace.json {
            print_json(&self.preview)
        } else {
            print(&self.text())
        }
    }

    fn text(&self) -> String {
        format!("{}{}", self.heading, self.lines)
    }

    /// Says what is about to be restored.
    fn announce(&self, workspace: &Workspace) -> Result<(), Error> {
        if workspace.json || self.is_empty() {
            return Ok(());
        }
        print(&self.heading)
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
            print_to(anstream::stderr().lock(), self.text().as_bytes())?;
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
