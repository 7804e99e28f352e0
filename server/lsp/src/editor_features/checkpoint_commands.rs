//! `sightline.checkpointNow`, `showChanges`, `restoreFile` and `undoLastRestore`.
//!
//! An open file is restored in the editor, whose undo reverts it. Any other file is
//! restored on disk, after an undo point is created.

use std::sync::Arc;

use serde_json::json;
use sightline_protocol::{
    checkpoint::{
        Checkpoint, CheckpointPurpose, CreateCheckpointParams, DiffCheckpointsParams,
        DifferenceStatus, FileDifference, ListCheckpointsParams, PreviewRestoreParams,
        PreviewRestoreResult, RestoreChange, RestoreCheckpointParams, UndoRestoreParams,
    },
    error::ErrorKind,
};
use sightline_workspace::{
    error::Error,
    escape::one_line,
    path::{Location, Root},
};
use tower_lsp::lsp_types::MessageType;

use super::{
    command_result::{self, CommandResult},
    confirm,
    document_arg::DocumentArg,
};
use crate::{
    handlers::{self, checkpoint::restore},
    request_context::RequestContext,
    scheduler::{all_task_keys, keys_of_roots},
    services::Services,
    session::{Snapshot, normalize_uri},
};

/// Creates a checkpoint of every folder.
///
/// # Errors
/// The errors of the requests it uses.
pub fn create(context: &RequestContext<'_>, target: DocumentArg) -> Result<CommandResult, Error> {
    let params = CreateCheckpointParams {
        label: target.label,
        ..CreateCheckpointParams::default()
    };
    let created = handlers::checkpoint::create_checkpoint::run(context, params)?;
    command_result::message(context, created.summary.unwrap_or_default())
}

/// Shows the changes since a checkpoint, by default the latest.
///
/// # Errors
/// The errors of the requests it uses.
pub fn show_changes(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let view = context.view();
    let from = match &target.id {
        Some(id) => BaseCheckpoint::named(id),
        None => latest(context, target.root(context, &view)?)?,
    };
    let params = DiffCheckpointsParams {
        from: from.id.clone(),
        paths: target.named().map(|path| vec![path.to_owned()]),
        patch: true,
        ..DiffCheckpointsParams::default()
    };
    let difference = handlers::checkpoint::diff_checkpoints::run(context, params)?;
    if difference.files.is_empty() {
        return command_result::message(context, format!("nothing changed since {from}"));
    }
    let count = match difference.files.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let message = format!("{count} changed since {from}");
    let mut text = format!("{message} (unsaved text is not included)\n\n");
    for file in &difference.files {
        text.push_str(&format!("{}\n", line(file)));
    }
    text.push('\n');
    text.push_str(&difference.text.unwrap_or_default());
    command_result::document(context, message, ("changes", ".diff"), &text)
}

fn line(file: &FileDifference) -> String {
    let status = match file.status {
        DifferenceStatus::Added => "added",
        DifferenceStatus::Modified => "modified",
        DifferenceStatus::Deleted => "deleted",
        DifferenceStatus::Renamed => "renamed",
        DifferenceStatus::TypeChanged => "type changed",
    };
    let from = match &file.old_path {
        Some(old) => format!(" (was {})", one_line(old)),
        None => String::new(),
    };
    format!(
        "{status}: {}{from}{}",
        one_line(&file.path),
        line_counts(file)
    )
}

fn line_counts(file: &FileDifference) -> String {
    if file.binary {
        ", binary".to_owned()
    } else {
        format!(", +{} -{}", file.additions, file.deletions)
    }
}

/// Restores one file, after confirmation.
///
/// # Errors
/// The errors of the requests it uses.
pub fn restore_file(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let document = target.document(context)?;
    let view = context.view();
    let location = view.roots().locate(&document)?;
    let Location::Inside { root, .. } = &location else {
        let why = format!("{document} is not in an open folder; checkpoints need an open folder");
        return Err(Error::invalid(why));
    };
    let root = view.roots().get(*root).cloned();
    let root = root.ok_or_else(|| Error::invalid("the folder is no longer open"))?;
    let name = one_line(&view.roots().result_path(&location).0).into_owned();
    let uri = normalize_uri(&view.roots().absolute(&location).to_uri());
    let from = match target.id {
        Some(id) => BaseCheckpoint::named(&id),
        None => latest(context, &root)?,
    };
    let params = DiffCheckpointsParams {
        from: from.id.clone(),
        paths: Some(vec![uri.clone()]),
        contents: true,
        ..DiffCheckpointsParams::default()
    };
    let mut files = handlers::checkpoint::diff_checkpoints::run(context, params)?.files;
    files.retain(|file| normalize_uri(&file.uri) == uri);
    let Some(file) = files.pop() else {
        return command_result::message(
            context,
            format!("{name} on disk is the same as in {from}"),
        );
    };
    let params = PreviewRestoreParams {
        id: from.id.clone(),
        paths: Some(vec![uri.clone()]),
        ..PreviewRestoreParams::default()
    };
    let preview = restore::preview_restore::run(context, params)?;
    let what = format!("restore {name}");
    let mut question = match file.status {
        DifferenceStatus::Added => format!("Delete {name}? It does not exist in {from}."),
        _ => format!(
            "Restore {name} from {from}? Changes since then: {}.",
            &line_counts(&file)[2..]
        ),
    };
    if let Some(conflict) = preview.conflicts.first() {
        question.push_str(&format!(" Warning: {}.", one_line(&conflict.reason)));
    }
    let yes = match file.status {
        DifferenceStatus::Added => "Delete",
        _ => "Restore",
    };
    let plan = FileRestore {
        name,
        uri,
        id: from.id,
        text: file.before,
        token: preview.token,
        root,
    };
    let services = context.services.clone();
    confirm::ask(context.services, what, &question, yes, move |snapshot| {
        plan.start(&services, &snapshot);
    });
    command_result::without_message(question)
}

/// A confirmed restore of one file.
struct FileRestore {
    /// Display name of the file.
    name: String,
    uri: String,
    root: Root,
    /// The checkpoint.
    id: String,
    /// The file's content in the checkpoint, if it is text.
    text: Option<String>,
    /// Token of the preview.
    token: String,
}

impl FileRestore {
    fn start(self, services: &Arc<Services>, snapshot: &Snapshot) {
        let open = snapshot.editor.document(&self.uri);
        let (text, can_edit) = (self.text.as_deref(), snapshot.client_info.applies_edits);
        if let (Some(open), Some(text), true) = (open, text, can_edit)
            && open.document.text() != text
        {
            let edits = [(self.uri.as_str(), open, text)];
            let edit = restore::workspace_edit(&edits, snapshot.client_info.versioned_edits);
            return self.restore_in_editor(services, &edit);
        }
        let (worker, keys) = (services.clone(), keys_of_roots([&self.root]));
        services.jobs.run(keys, "restore a file", move |snapshot| {
            let context = RequestContext::new(&worker, snapshot);
            match self.restore_on_disk(&context) {
                Ok(done) => worker.show_message(MessageType::INFO, &format!("sightline: {done}")),
                Err(error) => command_result::show_error(&context, &error),
            }
        });
    }

    fn restore_in_editor(self, services: &Arc<Services>, edit: &serde_json::Value) {
        let params = json!({ "label": "sightline: restore", "edit": edit });
        let worker = services.clone();
        let client = &services.client;
        client.request("workspace/applyEdit", &params, move |_, answer| {
            let Self { name, .. } = self;
            if answer.is_ok_and(|answer| answer["applied"] == true) {
                let message =
                    format!("sightline: {name} is restored in the editor; save it to keep it");
                worker.show_message(MessageType::INFO, &message);
            } else {
                let message = format!(
                    "sightline: the editor rejected the edit of {name}; nothing was changed"
                );
                worker.show_message(MessageType::ERROR, &message);
            }
        });
    }

    fn restore_on_disk(self, context: &RequestContext<'_>) -> Result<String, Error> {
        let params = RestoreCheckpointParams {
            id: self.id,
            paths: Some(vec![self.uri]),
            token: Some(self.token),
            // The user has seen the conflicts.
            force: true,
            ..RestoreCheckpointParams::default()
        };
        let restored = restore::restore_checkpoint::run(context, params)?.result;
        let show_error = restored.outcomes.iter().find_map(|o| o.error.as_deref());
        match show_error {
            Some(why) => Err(Error::storage(format!(
                "cannot restore {}: {why}",
                self.name
            ))),
            None => Ok(format!(
                "{} is restored; undo with sightline.undoLastRestore",
                self.name
            )),
        }
    }
}

/// Undoes the latest restore, after confirmation.
///
/// # Errors
/// The errors of the requests it uses.
pub fn undo_last_restore(
    context: &RequestContext<'_>,
    target: DocumentArg,
) -> Result<CommandResult, Error> {
    let params = PreviewRestoreParams {
        id: target.id.unwrap_or_else(|| "last".to_owned()),
        undo: true,
        ..PreviewRestoreParams::default()
    };
    let preview = restore::preview_restore::run(context, params)?;
    let kept = preview.conflicts.iter();
    let kept: Vec<String> = kept
        .map(|one| format!("{} ({})", one_line(&one.path), one_line(&one.reason)))
        .collect();
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
    let question = undo_question(&preview, &kept);
    let what = "undo the last restore".to_owned();
    let params = UndoRestoreParams {
        undo_id: preview.undo_id,
        token: Some(preview.token),
        ..UndoRestoreParams::default()
    };
    let services = context.services.clone();
    confirm::ask(context.services, what, &question, "Undo", move |snapshot| {
        undo(&services, snapshot, params);
    });
    command_result::without_message(question)
}

fn undo_question(preview: &PreviewRestoreResult, kept: &[String]) -> String {
    let paths = |of: &mut dyn Iterator<Item = &RestoreChange>| -> Vec<String> {
        of.map(|change| one_line(&change.path).into_owned())
            .collect()
    };
    let all = paths(&mut preview.changes.iter());
    let later = paths(&mut preview.changes.iter().filter(|c| c.changed_since));
    let mut question = "Undo the last restore?".to_owned();
    if !all.is_empty() {
        let count = match all.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        question.push_str(&format!(" It changes {count}: {}.", named(&all)));
    }
    if !later.is_empty() {
        let later = named(&later);
        question.push_str(&format!(
            " Also undoes changes made after the restore: {later}."
        ));
    }
    if let Some(task) = &preview.task_id {
        let task = one_line(task);
        question.push_str(&format!(" Also resets the conversation of task {task}."));
    }
    if !kept.is_empty() {
        question.push_str(&format!(" Skipped: {}.", named(kept)));
    }
    question
}

/// Maximum number of files named in a question.
const MAX_NAMED: usize = 5;

fn named(all: &[String]) -> String {
    let more = match all.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", all[..all.len().min(MAX_NAMED)].join(", "))
}

fn undo(services: &Arc<Services>, snapshot: Snapshot, params: UndoRestoreParams) {
    let mut keys = keys_of_roots(snapshot.roots());
    keys.extend(all_task_keys());
    let worker = services.clone();
    // The snapshot whose roots are the keys.
    services.jobs.run(keys, "undo a restore", move |_| {
        let context = RequestContext::new(&worker, snapshot);
        match restore::undo_restore::run(&context, params) {
            Ok(undone) => {
                let done = undone.summary.unwrap_or_default();
                worker.show_message(MessageType::INFO, &format!("sightline: {done}"));
            }
            Err(error) => command_result::show_error(&context, &error),
        }
    });
}

/// The checkpoint to compare with.
pub(super) struct BaseCheckpoint {
    pub(super) id: String,
    label: Option<String>,
}

impl BaseCheckpoint {
    fn named(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            label: None,
        }
    }
}

impl std::fmt::Display for BaseCheckpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = self.id.get(..8).unwrap_or(&self.id);
        match &self.label {
            Some(label) => write!(f, "checkpoint {short} ({})", one_line(label)),
            None => write!(f, "checkpoint {short}"),
        }
    }
}

/// Returns the latest checkpoint of a folder, except undo points.
pub(super) fn latest(context: &RequestContext<'_>, root: &Root) -> Result<BaseCheckpoint, Error> {
    let params = ListCheckpointsParams {
        root: Some(root.path.to_uri()),
        ..ListCheckpointsParams::default()
    };
    let listed = handlers::checkpoint::list_checkpoints::run(context, params)?.checkpoints;
    let is_asked = |one: &Checkpoint| one.purpose != Some(CheckpointPurpose::Undo);
    let latest = listed.into_iter().find(is_asked).ok_or_else(|| {
        let why = format!("no checkpoint of {} yet; create one first", root.name);
        Error::new(ErrorKind::NotFound, why)
    })?;
    Ok(BaseCheckpoint {
        id: latest.id,
        label: latest.label,
    })
}
