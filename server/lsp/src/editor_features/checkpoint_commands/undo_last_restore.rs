//! `sightline.undoLastRestore`.

use sightline_base::{escape::one_line, plural::plural, words::first_of};
use sightline_engine::{
    error::Error, handlers::checkpoint::restore, request_context::RequestContext,
};
use sightline_protocol::{
    checkpoint::{PreviewRestoreParams, PreviewRestoreResult, UndoRestoreParams},
    error::ErrorKind,
};

use crate::editor_features::{
    command_result::{self, CommandResult},
    confirm,
    document_arg::DocumentArg,
};

/// Undoes the latest restore, after confirmation.
///
/// # Errors
/// The errors of the requests it uses.
pub(crate) fn run(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let params = PreviewRestoreParams {
        id: target.id.unwrap_or_else(|| "last".to_owned()),
        undo: Some(true),
        ..PreviewRestoreParams::default()
    };
    let preview = restore::preview_restore::run(context, params).map_err(|error| {
        if error.kind != ErrorKind::NotFound {
            return error;
        }
        // A restore of an open file changes its text in the editor, which can undo it.
        let key = match &*context.snapshot.client_info.host {
            "Helix" => "press u",
            _ => "undo it in the editor",
        };
        Error::new(error.kind, format!("{error}; if the file was open, {key}"))
    })?;
    let kept = kept_paths(&preview);
    if preview.changes.is_empty() && preview.task_id.is_none() {
        return command_result::message(
            context,
            if kept.is_empty() {
                "already up to date".to_owned()
            } else {
                format!("cannot undo: {}", named(&kept))
            },
        );
    }
    let question = with_changes("Undo the last restore?", &preview);
    let what = "undo the last restore".to_owned();
    let params = UndoRestoreParams {
        undo_id: preview.undo_id,
        token: Some(preview.token),
        ..UndoRestoreParams::default()
    };
    confirm::ask_to_restore(context, what, question, "Undo", |context| {
        restore::undo_restore::run(context, params)
    })
}

/// Returns the paths that a restore or undo does not change, with the reasons.
pub(super) fn kept_paths(preview: &PreviewRestoreResult) -> Vec<String> {
    let kept = preview.conflicts.iter();
    kept.map(|one| format!("{} ({})", one_line(&one.path), one_line(&one.reason)))
        .collect()
}

/// Appends what a restore or undo changes to a question.
pub(super) fn with_changes(question: &str, preview: &PreviewRestoreResult) -> String {
    let all: Vec<String> = preview
        .changes
        .iter()
        .map(|change| one_line(&change.path).into_owned())
        .collect();
    let mut question = question.to_owned();
    if !all.is_empty() {
        let count = plural(all.len(), "file");
        question.push_str(&format!(" It changes {count}: {}.", named(&all)));
    }
    if let Some(task) = &preview.task_id {
        let task = one_line(task);
        question.push_str(&format!(" Also resets the conversation of task {task}."));
    }
    let kept = kept_paths(preview);
    if !kept.is_empty() {
        question.push_str(&format!(" Skipped: {}.", named(&kept)));
    }
    for warning in &preview.warnings {
        question.push_str(&format!(" Warning: {warning}."));
    }
    question
}

/// Maximum number of files named in a question.
const MAX_NAMED: usize = 5;

/// Names the first files of many.
pub(super) fn named(all: &[String]) -> String {
    first_of(all, MAX_NAMED)
}
