//! gemini-cli, Qwen Code and Copilot CLI: the Model Context Protocol over HTTP.
//!
//! An agent sends messages by `POST`, and reads notifications from the event stream of a `GET`.

use std::{
    env,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    rpc::{self, Incoming},
    selection::{diagnostics_text, selection_params},
    view::{EditorView, OpenFile},
};

/// Maximum number of open files that gemini-cli and Qwen Code use.
const MAX_OPEN_FILES: usize = 10;
/// Maximum size of a selection that gemini-cli and Qwen Code use, in bytes.
const MAX_SELECTED: usize = 16 * 1024;

/// The dialects of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// gemini-cli and Qwen Code: `ide/contextUpdate`.
    Gemini,
    /// Copilot CLI: `selection_changed`, and tools for the selection and diagnostics.
    Copilot,
}

/// Returns the discovery file of gemini-cli and Qwen Code. `workspacePath` has several roots with
/// the separator of search paths.
pub fn gemini_file(port: u16, roots: &[PathBuf], ide_name: &str, token: &str, pid: u32) -> Value {
    let paths = env::join_paths(roots).unwrap_or_default();
    json!({
        "port": port,
        "workspacePath": paths.to_string_lossy(),
        "authToken": token,
        "ideInfo": { "name": "sightline", "displayName": ide_name },
        "ideName": ide_name,
        "ppid": pid,
    })
}

/// Returns the lock file of Copilot CLI. `timestamp` is in milliseconds since the Unix epoch.
pub fn copilot_file(
    socket: &Path,
    roots: &[PathBuf],
    ide_name: &str,
    token: &str,
    pid: u32,
    timestamp: i64,
) -> Value {
    json!({
        "socketPath": socket.to_string_lossy(),
        "scheme": "unix",
        "headers": { "Authorization": format!("Nonce {token}") },
        "pid": pid,
        "ideName": ide_name,
        "timestamp": timestamp,
        "workspaceFolders": roots,
        "isTrusted": true,
    })
}

/// Returns the notification of the editor's state.
pub fn update(dialect: Dialect, view: &EditorView) -> Value {
    match dialect {
        Dialect::Copilot => rpc::notification("selection_changed", selection_params(view)),
        Dialect::Gemini => {
            let files = view.open_files.iter().take(MAX_OPEN_FILES);
            let files: Vec<Value> = files.map(|file| open_file(file, view)).collect();
            let state = json!({ "workspaceState": { "openFiles": files } });
            rpc::notification("ide/contextUpdate", state)
        }
    }
}

fn open_file(file: &OpenFile, view: &EditorView) -> Value {
    let mut fields = json!({
        "path": file.path.to_string_lossy(),
        "timestamp": file.focused_at,
        "isActive": false,
    });
    if let Some(focus) = view.focus.as_ref().filter(|focus| focus.path == file.path) {
        let selection = &focus.selection;
        fields["isActive"] = true.into();
        fields["cursor"] = json!({
            "line": selection.end.line + 1, "character": selection.end.character + 1,
        });
        let end = selection.text.floor_char_boundary(MAX_SELECTED);
        if let Some(text) = selection.text.get(..end).filter(|text| !text.is_empty()) {
            fields["selectedText"] = text.into();
        }
    }
    fields
}

/// Returns the response to a message. `None` if it needs none.
pub fn answer(dialect: Dialect, message: &Value, view: &EditorView) -> Option<Value> {
    match Incoming::of(message) {
        Incoming::Request { id, method, params } => {
            let result = match method {
                "initialize" => rpc::initialize_result(params),
                "ping" => json!({}),
                "tools/list" => json!({ "tools": tools(dialect) }),
                "tools/call" => call_tool(dialect, params, view),
                _ => return Some(rpc::unknown_method(id, method)),
            };
            Some(rpc::result(id, result))
        }
        Incoming::Notification { .. } | Incoming::Response => None,
        Incoming::Invalid => Some(rpc::invalid_request()),
    }
}

fn tools(dialect: Dialect) -> Vec<Value> {
    match dialect {
        // Without tools for diffs, gemini-cli asks in the terminal.
        Dialect::Gemini => Vec::new(),
        Dialect::Copilot => vec![
            rpc::tool(
                "get_selection",
                "The file and the text that the user selects.",
                &[],
            ),
            rpc::tool(
                "get_diagnostics",
                "Errors and warnings of a file, or of all files, as the editor shows them.",
                &["uri"],
            ),
        ],
    }
}

fn call_tool(dialect: Dialect, params: &Value, view: &EditorView) -> Value {
    match (dialect, params["name"].as_str().unwrap_or_default()) {
        (Dialect::Copilot, "get_selection") => {
            rpc::tool_text(&[&selection_params(view).to_string()])
        }
        (Dialect::Copilot, "get_diagnostics") => {
            let uri = params["arguments"]["uri"].as_str();
            rpc::tool_text(&[&diagnostics_text(view, uri)])
        }
        // A name for the session is of no use here.
        (Dialect::Copilot, "update_session_name") => rpc::tool_text(&[""]),
        (_, name) => rpc::tool_error(&format!("unknown tool {name}")),
    }
}
