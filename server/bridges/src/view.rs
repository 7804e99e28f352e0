//! Builds the state that agents may see.

use std::{collections::HashMap, path::PathBuf};

use sightline_access::AccessView;
use sightline_agents::ide::view::{EditorView, FileDiagnostics, Focus, OpenFile, Selection};
use sightline_base::{clock::now_millis, limits};
use sightline_engine::session::Snapshot;
use sightline_protocol::editor::{self as wire, Diagnostic};

/// Maximum number of open files that agents learn of.
const MAX_OPEN_FILES: usize = 100;

/// Returns the paths of the open roots.
pub(super) fn root_paths(snapshot: &Snapshot) -> Vec<PathBuf> {
    let roots = snapshot.roots().iter();
    roots.map(|root| root.path.as_path().to_owned()).collect()
}

/// Builds states. Remembers when each file had the focus.
#[derive(Default)]
pub(super) struct ViewBuilder {
    /// By URI: milliseconds since the Unix epoch.
    focused_at: HashMap<String, i64>,
}

impl ViewBuilder {
    /// Returns the state that agents may see by the current rules. `focused` is a document and
    /// `range` the selection in it.
    pub(super) fn build(
        &mut self,
        access: &AccessView,
        snapshot: &Snapshot,
        focused: Option<&str>,
        range: Option<wire::Range>,
    ) -> EditorView {
        let editor = &snapshot.editor;
        let open_files = self.open_files(access, snapshot, focused);
        let focus = focused.and_then(|uri| {
            Some(Focus {
                path: allowed_path(access, snapshot, uri)?,
                uri: uri.to_owned(),
                selection: selection(snapshot, uri, range),
            })
        });
        let mut diagnosed: Vec<&str> = editor.diagnosed().collect();
        diagnosed.sort_unstable();
        let diagnostics = diagnosed.into_iter().filter_map(|uri| {
            Some(FileDiagnostics {
                path: allowed_path(access, snapshot, uri)?,
                uri: uri.to_owned(),
                diagnostics: editor
                    .diagnostics(uri)
                    .iter()
                    .filter_map(|found| serde_json::to_value(in_utf16(snapshot, uri, found)).ok())
                    .collect(),
            })
        });
        EditorView {
            focus,
            open_files,
            diagnostics: diagnostics.collect(),
        }
    }

    /// Returns the open files that agents may see, most recently focused first.
    fn open_files(
        &mut self,
        access: &AccessView,
        snapshot: &Snapshot,
        focused: Option<&str>,
    ) -> Vec<OpenFile> {
        let now = now_millis();
        let mut uris = snapshot.editor.tabs().value;
        uris.extend(focused.filter(|focused| !uris.contains(focused)));
        let known = std::mem::take(&mut self.focused_at);
        let mut files = Vec::new();
        for uri in uris {
            let is_newest = || known.get(uri) == known.values().max();
            let at = match known.get(uri) {
                Some(at) if focused != Some(uri) || is_newest() => *at,
                _ => now,
            };
            self.focused_at.insert(uri.to_owned(), at);
            if let Some(path) = allowed_path(access, snapshot, uri) {
                files.push((
                    focused == Some(uri),
                    OpenFile {
                        path,
                        focused_at: at,
                    },
                ));
            }
        }
        files.sort_by_key(|(is_focused, file)| (!is_focused, -file.focused_at));
        files.truncate(MAX_OPEN_FILES);
        files.into_iter().map(|(_, file)| file).collect()
    }
}

/// Returns the path of a file, unless the rules deny it or it is outside the roots.
fn allowed_path(access: &AccessView, snapshot: &Snapshot, uri: &str) -> Option<PathBuf> {
    let location = snapshot.allowed_location(access, uri, false)?;
    Some(access.roots().absolute(&location).as_path().to_owned())
}

/// Returns the text and the UTF-16 range of a selection.
fn selection(snapshot: &Snapshot, uri: &str, range: Option<wire::Range>) -> Selection {
    let Some(mut range) = range else {
        return Selection::default();
    };
    if !snapshot.settings.bridges.selection {
        range.end = range.start;
    }
    let text = snapshot.editor.document(uri).map(|open| {
        let encoding = snapshot.client_info.encoding;
        open.document
            .slice(range, encoding, limits::MAX_SELECTED_BYTES)
    });
    let range = range_in_utf16(snapshot, uri, range);
    Selection {
        range,
        text: text.unwrap_or_default(),
    }
}

fn in_utf16(snapshot: &Snapshot, uri: &str, found: &Diagnostic) -> Diagnostic {
    let mut found = found.clone();
    found.range = range_in_utf16(snapshot, uri, found.range);
    found
}

/// Converts a range of the client. The text of files that are not open is not known: their
/// ranges are unchanged.
fn range_in_utf16(snapshot: &Snapshot, uri: &str, range: wire::Range) -> wire::Range {
    let Some(open) = snapshot.editor.document(uri) else {
        return range;
    };
    let encoding = snapshot.client_info.encoding;
    wire::Range {
        start: open.document.utf16_position(range.start, encoding),
        end: open.document.utf16_position(range.end, encoding),
    }
}
