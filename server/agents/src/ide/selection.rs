//! The selection as Claude Code, opencode and Copilot CLI expect it, and diagnostics as tools
//! return them.

use serde_json::{Value, json};

use super::view::{EditorView, FileDiagnostics};

/// Returns the params of `selection_changed`. They are empty if agents may not see the focused
/// file.
pub(super) fn selection_params(view: &EditorView) -> Value {
    let Some(focus) = &view.focus else {
        let start = json!({ "line": 0, "character": 0 });
        return json!({
            "text": "", "filePath": "", "fileUrl": "",
            "selection": { "start": start, "end": start, "isEmpty": true },
        });
    };
    let selection = &focus.selection;
    let position =
        |at: super::view::Position| json!({ "line": at.line, "character": at.character });
    json!({
        "text": selection.text,
        "filePath": focus.path.to_string_lossy(),
        "fileUrl": focus.uri,
        "selection": {
            "start": position(selection.start),
            "end": position(selection.end),
            "isEmpty": selection.start == selection.end,
        },
    })
}

/// Returns the diagnostics of a file, or of all files, as JSON text.
pub(super) fn diagnostics_text(view: &EditorView, uri: Option<&str>) -> String {
    let files = view.diagnostics.iter();
    let files: Vec<Value> = files
        .filter(|file| uri.is_none_or(|uri| is_same_file(uri, file)))
        .map(|file| {
            let diagnostics: Vec<Value> = file.diagnostics.iter().map(diagnostic).collect();
            json!({ "uri": file.uri, "diagnostics": diagnostics })
        })
        .collect();
    Value::from(files).to_string()
}

/// Claude Code asks with a `file:` URI, or with a path.
fn is_same_file(asked: &str, file: &FileDiagnostics) -> bool {
    asked == file.uri
        || asked.strip_prefix("file://").unwrap_or(asked) == file.path.to_string_lossy()
}

/// Returns a diagnostic with the name of its severity.
fn diagnostic(found: &Value) -> Value {
    let severity = match found["severity"].as_u64() {
        Some(2) => "Warning",
        Some(3) => "Info",
        Some(4) => "Hint",
        _ => "Error",
    };
    let mut named = json!({
        "message": found["message"], "severity": severity, "range": found["range"],
    });
    for field in ["source", "code"] {
        if let Some(value) = found.get(field).filter(|value| !value.is_null()) {
            named[field] = value.clone();
        }
    }
    named
}
