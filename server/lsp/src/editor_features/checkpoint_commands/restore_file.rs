//! `sightline.restoreFile`.
//!
//! An open file is restored in the editor, whose undo reverts it. Any other file is
//! restored on disk, after an undo point is created.

use std::sync::Arc;

use serde_json::json;
use sightline_base::{
    escape::one_line,
    path::{Location, Root},
};
use sightline_engine::{
    error::Error,
    handlers::checkpoint::{diff_checkpoints, restore},
    jobs::keys_of_roots,
    render::line_counts,
    request_context::RequestContext,
    services::{MessageKind, Services},
    session::{Snapshot, normalize_uri},
};
use sightline_protocol::checkpoint::{
    DiffCheckpointsParams, DifferenceStatus, PreviewRestoreParams, RestoreCheckpointParams,
};

use super::base_checkpoint::BaseCheckpoint;
use crate::editor_features::{
    command_result::{self, CommandResult},
    confirm,
    document_arg::DocumentArg,
};

/// Restores one file, after confirmation.
///
/// # Errors
/// The errors of the requests it uses.
pub(crate) fn run(
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
    let from = BaseCheckpoint::of(context, &target)?;
    let params = DiffCheckpointsParams {
        from: from.id.clone(),
        paths: Some(vec![uri.clone()]),
        contents: true,
        ..DiffCheckpointsParams::default()
    };
    let mut files = diff_checkpoints::run(context, params)?.files;
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
            line_counts(&file)
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
                Ok(done) => worker.show_message(MessageKind::Info, &format!("sightline: {done}")),
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
                worker.show_message(MessageKind::Info, &message);
            } else {
                let message = format!(
                    "sightline: the editor rejected the edit of {name}; nothing was changed"
                );
                worker.show_message(MessageKind::Error, &message);
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
