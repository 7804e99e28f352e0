//! The selection as Claude Code, opencode and Copilot CLI expect it, and diagnostics as tools
//! return them.

use serde_json::{Value, json};
use sightline_protocol::editor::Range;

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
    let Range { start, end } = focus.selection.range;
    json!({
        "text": focus.selection.text,
        "filePath": focus.path.to_string_lossy(),
        "fileUrl": focus.uri,
        "selection": { "start": start, "end": end, "isEmpty": start == end },
    })
}

/// Returns the diagnostics of a file, or of all files, as JSON text.
pub(super) fn diagnostics_text(view: &EditorView, uri: Option<&str>) -> String {
    let files = view.diagnostics.iter();
    let files: Vec<Value> = files
        .filter(|file| uri.is_none_or(|uri| is_same_file(uri, file)))
        .map(|file| {
            let diagnostics: Vec<Value> = file.diagnostics.iter().map(diagnostic).collect();
            // Claude Code compares the URI with the one it asked for.
            json!({ "uri": uri.unwrap_or(&file.uri), "diagnostics": diagnostics })
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
    if let Some(source) = found.get("source").filter(|source| !source.is_null()) {
        named["source"] = source.clone();
    }
    // A number in LSP, but agents expect text.
    match found.get("code") {
        None | Some(Value::Null) => {}
        Some(Value::String(code)) => named["code"] = json!(code),
        Some(code) => named["code"] = json!(code.to_string()),
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_have_the_asked_uri_and_codes_as_text() {
        let view = EditorView {
            diagnostics: vec![FileDiagnostics {
                path: "/ws/a b.txt".into(),
                uri: "file:///ws/a%20b.txt".to_owned(),
                diagnostics: vec![json!({
                    "range": {}, "message": "m", "severity": 2, "source": "s", "code": 7,
                })],
            }],
            ..EditorView::default()
        };
        let found = |uri: Option<&str>| -> Value {
            serde_json::from_str(&diagnostics_text(&view, uri)).unwrap()
        };
        let diagnostic = json!({
            "message": "m", "severity": "Warning", "range": {}, "source": "s", "code": "7",
        });
        for uri in ["file:///ws/a%20b.txt", "file:///ws/a b.txt", "/ws/a b.txt"] {
            let expected = json!([{ "uri": uri, "diagnostics": [diagnostic] }]);
            assert_eq!(found(Some(uri)), expected);
        }
        assert_eq!(found(None)[0]["uri"], "file:///ws/a%20b.txt");
        assert_eq!(found(Some("file:///ws/other")), json!([]));
    }
}
