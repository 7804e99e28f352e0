//! Updates the editor after a restore.

use serde_json::{Value, json};
use sightline_base::{
    escape::one_line,
    path::{AbsPath, Location, RelPath, uri_to_path},
    words::first_of,
};
use sightline_checkpoint::{
    Oid,
    restore::{EditorText, UnsavedTexts},
};
use sightline_context::editor::{EditorState, OpenDocument};

use super::super::checkpoint_context::CheckpointContext;
use crate::{
    request_context::RequestContext,
    services::{MessageKind, Services},
};

/// Maximum number of changed files listed in a message.
const MAX_NAMED: usize = 5;

/// The open documents that are files of a root.
pub(super) struct OpenFiles {
    /// Those with unsaved text, by path and URI.
    pub(super) unsaved: Vec<(RelPath, String)>,
    /// Those without.
    pub(super) clean: Vec<RelPath>,
}

impl OpenFiles {
    pub(super) fn of(cx: &CheckpointContext<'_>, root: usize) -> Self {
        let editor = &cx.request.snapshot.editor;
        let unsaved = documents_in_root(cx, root, editor.unsaved(&cx.view));
        let open = editor.documents().into_iter().map(|(uri, _)| uri);
        let mut clean = documents_in_root(cx, root, open);
        clean.retain(|(path, _)| unsaved.iter().all(|(unsaved, _)| unsaved != path));
        Self {
            clean: clean.into_iter().map(|(path, _)| path).collect(),
            unsaved,
        }
    }

    /// Returns the unsaved texts, by their ids as files.
    pub(super) fn unsaved_texts(&self, editor: &EditorState) -> UnsavedTexts {
        let id = |open: &OpenDocument| Oid::of_file(open.document.text().to_string().as_bytes());
        self.unsaved
            .iter()
            .map(|(path, uri)| (path.clone(), editor.document(uri).map(id)))
            .collect()
    }
}

/// Returns the documents that are files of a root.
fn documents_in_root<'a>(
    cx: &CheckpointContext<'_>,
    root: usize,
    uris: impl IntoIterator<Item = &'a str>,
) -> Vec<(RelPath, String)> {
    let mut found = Vec::new();
    for uri in uris {
        let Some(path) = uri_to_path(uri).ok().flatten() else {
            continue;
        };
        // A symlink may lead to the file from elsewhere.
        let real = sightline_base::path::canonicalize(path.as_path()).ok();
        let real = real.and_then(|real| AbsPath::new(&real));
        for path in [Some(path), real].into_iter().flatten() {
            if let Location::Inside { root: at, rel } = cx.roots().place(path)
                && at == root
                && found.iter().all(|(known, _)| *known != rel)
            {
                found.push((rel, uri.to_owned()));
            }
        }
    }
    found
}

/// Replaces the unsaved text of open documents with the restored text. Lists the others
/// in a message.
pub(super) fn replace_texts(context: &RequestContext<'_>, texts: &[(String, EditorText)]) {
    let info = &context.snapshot.client_info;
    let editor = &context.snapshot.editor;
    let mut edits = Vec::new();
    let mut unsupported = Vec::new();
    for (uri, text) in texts {
        let open = editor.document(uri);
        match (&text.content, open) {
            (Some(content), Some(open)) if info.applies_edits => {
                edits.push((uri.as_str(), open, content.as_str()));
            }
            _ => unsupported.push(uri.clone()),
        }
    }
    if !edits.is_empty() {
        let services = context.services.clone();
        let uris: Vec<String> = edits.iter().map(|(uri, ..)| (*uri).to_owned()).collect();
        let params = json!({
            "label": "sightline: restore",
            "edit": workspace_edit(&edits, info.versioned_edits),
        });
        let client = &context.services.client;
        client.request("workspace/applyEdit", &params, move |_, answer| {
            let applied = answer.is_ok_and(|answer| answer["applied"] == true);
            if !applied {
                warn_stale(&services, &uris);
            }
        });
    }
    if !unsupported.is_empty() {
        warn_stale(context.services, &unsupported);
    }
}

/// Warns about restored files whose text differs in the editor.
fn warn_stale(services: &Services, uris: &[String]) {
    let name = |uri: &String| {
        let path = uri_to_path(uri).ok().flatten();
        path.map_or_else(|| uri.clone(), |path| path.display())
    };
    let names: Vec<String> = uris.iter().map(name).collect();
    let message = format!(
        "sightline: restored on disk; reload these files without saving: {}",
        first_of(&names, 10)
    );
    services.show_message(MessageKind::Warning, &message);
}

/// Lists restored files with open, saved documents, because not every editor reloads
/// them.
pub(super) fn report_changed(services: &Services, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let paths = paths.iter().map(|path| one_line(path).into_owned());
    let message = format!(
        "sightline: {} changed on disk by the restore; reload them if the editor does not",
        first_of(&paths.collect::<Vec<_>>(), MAX_NAMED)
    );
    services.show_message(MessageKind::Info, &message);
}

/// Builds an edit that replaces whole documents.
pub fn workspace_edit(edits: &[(&str, &OpenDocument, &str)], versioned: bool) -> Value {
    let replacement = |open: &OpenDocument, content: &str| {
        // One line past the end; clients clamp it.
        let lines = open.document.text().len_lines();
        json!([{
            "range": {
                "start": { "line": 0, "character": 0 },
                "end": { "line": lines, "character": 0 },
            },
            "newText": content,
        }])
    };
    if versioned {
        let changes = edits.iter().map(|(uri, open, content)| {
            let version = open.document.version();
            json!({
                "textDocument": { "uri": uri, "version": version },
                "edits": replacement(open, content),
            })
        });
        return json!({ "documentChanges": changes.collect::<Vec<Value>>() });
    }
    let changes = edits
        .iter()
        .map(|(uri, open, content)| ((*uri).to_owned(), replacement(open, content)));
    json!({ "changes": changes.collect::<serde_json::Map<String, Value>>() })
}
