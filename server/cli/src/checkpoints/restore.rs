//! `sightline checkpoint preview`, `restore` and `undo`.

use sightline_base::{escape::one_line, plural::plural};
use sightline_engine::{
    error::Error,
    render::{self, BOLD, needs_force, outcome, time_and_age},
};
use sightline_protocol::{
    checkpoint::{
        FileHunks, ListCheckpointsParams, PreviewRestoreParams, PreviewRestoreResult,
        RestoreCheckpointParams, RestoreCheckpointResult, RestoreConflict, RestoreOnly,
        RestoreOutcome, RestoreTarget, UndoRestoreParams, short_id,
    },
    error::ErrorKind,
    method::{ListCheckpoints, PreviewRestore, RestoreCheckpoint, UndoRestore},
};

use super::{
    arguments::{Length, ModeArgument, PartArgs, Restore, Undo},
    confirm::{ConfirmArgs, Proceed, answer, require_terminal},
    difference::{Difference, TO_REVERT},
    parts,
    picker::choice::{Choice, Compared},
    print_as, with_paths,
};
use crate::{
    DONE, FAILURE, NEGATIVE, Workspace, print_json, print_message, print_styled as print, print_to,
    requests::Requests,
};

const UP_TO_DATE: &str = "already up to date";
/// Repetitions if the workspace, or a text in the editor, changes between a preview and its restore with `--yes`.
const RETRIES: usize = 3;

/// `sightline checkpoint preview`.
pub(super) fn preview(
    requests: &Requests,
    id: &str,
    (paths, part): (&[String], &PartArgs),
    length: Length,
) -> Result<i32, Error> {
    let workspace = &requests.workspace;
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
    let requests = arguments.place.requests();
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
        let is_part = arguments.part.is_some() || plan.preview.target.is_none();
        let target = plan.preview.target.as_ref().filter(|_| !is_part);
        // From the name of a turn, its own changes are shown.
        let from = target.map_or(id, |target| &target.id);
        plan.compared = Some(plan.compared_from(from));
        if arguments.mode == ModeArgument::Files && !force && arguments.token.is_none() {
            plan.choice = arguments.choice(id, &plan.preview);
        }
        Ok(plan)
    };
    let root = requests.root_uri()?;
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
    let requests = arguments.place.requests();
    let see = || {
        let params = PreviewRestoreParams {
            id: arguments.id.clone().unwrap_or_else(|| "last".to_owned()),
            undo: Some(true),
            root: requests.root_uri()?,
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
        if let Some(id) = plan.preview.undo_id.clone().filter(|_| !plan.is_empty()) {
            plan.heading.insert_str(0, &undo_line(&requests, &id)?);
            plan.compared = Some(plan.compared_from(&id));
        }
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
    let workspace = &requests.workspace;
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
        let command = plan.command.clone();
        if proceed == Proceed::Yes {
            plan.announce(workspace)?;
        } else {
            match plan.confirm(requests)? {
                Answer::Yes => {}
                Answer::No => return Ok(None),
                Answer::Parts(choice) => {
                    let restored = parts::restore(requests, choice, plan.preview)?;
                    return Ok(restored.map(|restored| (restored, command)));
                }
            }
        }
        // Of a conversation alone there is no preview.
        let seen = |plan: &Plan| Some(plan.preview.token.clone()).filter(|it| !it.is_empty());
        let token = token.clone().map(|(token, _)| token).or(seen(&plan));
        let mut changed = change(plan.preview, token);
        for _ in 0..RETRIES {
            let is_conflict = changed
                .as_ref()
                .is_err_and(|error| error.kind == ErrorKind::Conflict);
            if proceed != Proceed::Yes || !is_conflict {
                break;
            }
            let plan = see()?;
            let token = seen(&plan);
            changed = change(plan.preview, token);
        }
        Ok(Some((changed?, command)))
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
    let files = part.hunks.iter().map(|file| &file.path);
    let written: Vec<String> = files.chain(paths).cloned().collect();
    with_paths(requests, &written, |paths| {
        let mut files = paths.unwrap_or_default();
        let paths = files.split_off(part.hunks.len());
        let hunks = files
            .into_iter()
            .zip(&part.hunks)
            .map(|(path, file)| FileHunks {
                path,
                hunks: file.hunks.clone(),
            });
        send(
            Some(paths).filter(|paths| !paths.is_empty()),
            Some(hunks.collect()),
        )
    })
}

fn preview_request(
    requests: &Requests,
    id: &str,
    paths: &[String],
    part: &PartArgs,
) -> Result<PreviewRestoreResult, Error> {
    let root = requests.root_uri()?;
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

/// Returns a line that says which restore is undone.
fn undo_line(requests: &Requests, id: &str) -> Result<String, Error> {
    let listed = requests.call::<ListCheckpoints>(ListCheckpointsParams {
        id: Some(id.to_owned()),
        root: requests.root_uri()?,
        ..ListCheckpointsParams::default()
    })?;
    let line = listed
        .checkpoints
        .first()
        .map(|one| format!("Undo the restore of {}\n", time_and_age(one.created_at)));
    Ok(line.unwrap_or_default())
}

/// Returns a line that says what is restored.
fn heading(target: &RestoreTarget, part: &PartArgs) -> String {
    let line = render::target(target);
    if !part.hunks.is_empty() {
        return line.replacen("Restore to", "Restore hunks to", 1);
    }
    match part.only() {
        Some(RestoreOnly::Turn) => line.replacen("Restore to before", "Revert", 1),
        None => line,
    }
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
    /// The difference that is shown if the user asks for it.
    compared: Option<Compared>,
    /// What is restored, if the user can choose parts of it.
    choice: Option<Choice>,
}

/// The answer to the question whether to restore.
enum Answer {
    Yes,
    No,
    /// Only some of the changes.
    Parts(Choice),
}

impl Plan {
    fn new(
        preview: PreviewRestoreResult,
        part: &PartArgs,
        conversation: Option<String>,
        length: Length,
        force: bool,
    ) -> Self {
        let target = preview.target.as_ref();
        let mut headings = target.map_or_else(String::new, |target| heading(target, part));
        headings.push_str(&render::warnings(&preview));
        let mut lines = render::preview(&preview, length.limit(), force);
        if let Some(conversation) = &conversation {
            lines.push_str(&format!("{conversation}\n"));
        }
        Self {
            forced: if force {
                preview
                    .conflicts
                    .iter()
                    .filter(|one| needs_force(one))
                    .count()
            } else {
                0
            },
            preview,
            heading: headings,
            lines,
            conversation: conversation.is_some(),
            command: String::new(),
            compared: None,
            choice: None,
        }
    }

    /// Returns the difference of the changed files from a state.
    fn compared_from(&self, from: &str) -> Compared {
        let changes = self.preview.changes.iter();
        Compared {
            from: from.to_owned(),
            files: changes.map(|change| change.uri.clone()).collect(),
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
        if workspace.json {
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
    fn confirm(&self, requests: &Requests) -> Result<Answer, Error> {
        let workspace = &requests.workspace;
        if !self.is_empty() {
            require_terminal()?;
        }
        // stdout is reserved for the result.
        let show = |text: &str| match workspace.json {
            true => print_to(anstream::stderr().lock(), text.as_bytes()),
            false => print(text),
        };
        show(&self.text())?;
        if self.is_empty() {
            return Ok(Answer::Yes);
        }
        let mut note = force_note(&self.preview.conflicts, self.forced > 0, &self.command);
        let changes = !self.preview.changes.is_empty();
        let compared = self.compared.as_ref().filter(|_| changes);
        let choice = self.choice.as_ref().filter(|_| changes && !workspace.json);
        note.push_str(match (compared, choice) {
            (None, _) => "",
            (Some(_), None) => "d shows the changes. ",
            (Some(_), Some(_)) => "d shows the changes, h chooses some of them. ",
        });
        loop {
            match (
                answer(&format!("{note}Proceed? [y/N] "))?.as_deref(),
                compared,
                choice,
            ) {
                (Some("y" | "Y" | "yes"), ..) => return Ok(Answer::Yes),
                (Some("d"), Some(compared), _) => {
                    let difference = Difference::new(compared.difference(requests));
                    show(&format!("{BOLD}{TO_REVERT}{BOLD:#}\n{}", difference.text()))?;
                }
                (Some("h"), _, Some(choice)) => return Ok(Answer::Parts(choice.clone())),
                _ => return Ok(Answer::No),
            }
        }
    }
}

/// Returns a sentence about the skipped paths that `command --force` would change. Empty if there are
/// none, or with `--force`.
fn force_note(conflicts: &[RestoreConflict], force: bool, command: &str) -> String {
    let count = conflicts.iter().filter(|one| needs_force(one)).count();
    if force || count == 0 {
        return String::new();
    }
    let (paths, are) = (plural(count, "path"), if count == 1 { "is" } else { "are" });
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
        let mut line = outcome(restored);
        line.push_str(if skipped.is_empty() { "\n" } else { ":\n" });
        line.extend(skipped.iter().map(render::skipped));
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
