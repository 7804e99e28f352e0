//! Claude Code and opencode: JSON-RPC over a WebSocket that they find by a lock file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    rpc::{self, Incoming},
    selection::{diagnostics_text, selection_params},
    view::EditorView,
};

/// Header with the token of the lock file.
pub const TOKEN_HEADER: &str = "x-claude-code-ide-authorization";

/// When to send the selection after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionAfter {
    /// Not because of this message.
    Nothing,
    /// At once.
    Now,
    /// At once and again after a second: Claude Code loses what arrives before it has the
    /// list of tools.
    NowAndLater,
}

/// Returns the content of `<port>.lock`.
pub fn lock_file(pid: u32, roots: &[PathBuf], ide_name: &str, token: &str) -> Value {
    json!({
        "pid": pid,
        "workspaceFolders": roots,
        "ideName": ide_name,
        "transport": "ws",
        "runningInWindows": cfg!(windows),
        "authToken": token,
    })
}

/// Returns `selection_changed`.
pub fn selection_changed(view: &EditorView) -> Value {
    rpc::notification("selection_changed", selection_params(view))
}

/// Returns `at_mentioned`, which adds lines of a file to the input line. Lines are from 0.
pub fn at_mentioned(path: &Path, lines: Option<(u32, u32)>) -> Value {
    let mut params = json!({ "filePath": path.to_string_lossy() });
    if let Some((first, last)) = lines {
        params["lineStart"] = first.into();
        params["lineEnd"] = last.into();
    }
    rpc::notification("at_mentioned", params)
}

/// Returns the response to a message, if it needs one, and when to send the selection.
pub fn answer(message: &Value, view: &EditorView) -> (Option<Value>, SelectionAfter) {
    match Incoming::of(message) {
        Incoming::Request { id, method, params } => {
            let result = match method {
                "initialize" => rpc::initialize_result(params),
                "ping" => json!({}),
                "tools/list" => {
                    let tools = rpc::result(id, json!({ "tools": tools() }));
                    return (Some(tools), SelectionAfter::NowAndLater);
                }
                "tools/call" => call_tool(params, view),
                _ => {
                    return (
                        Some(rpc::unknown_method(id, method)),
                        SelectionAfter::Nothing,
                    );
                }
            };
            (Some(rpc::result(id, result)), SelectionAfter::Nothing)
        }
        Incoming::Notification {
            method: "notifications/initialized",
            ..
        } => (None, SelectionAfter::Now),
        Incoming::Notification { .. } | Incoming::Response => (None, SelectionAfter::Nothing),
        Incoming::Invalid => (Some(rpc::invalid_request()), SelectionAfter::Nothing),
    }
}

fn tools() -> Vec<Value> {
    vec![
        rpc::tool(
            "getDiagnostics",
            "Errors and warnings of a file, or of all files, as the editor shows them.",
            &["uri"],
        ),
        rpc::tool("closeAllDiffTabs", "Closes all open diffs.", &[]),
        rpc::tool("close_tab", "Closes a tab.", &["tab_name"]),
        rpc::tool(
            "openDiff",
            "Shows proposed contents of a file.",
            &[
                "old_file_path",
                "new_file_path",
                "new_file_contents",
                "tab_name",
            ],
        ),
    ]
}

fn call_tool(params: &Value, view: &EditorView) -> Value {
    match params["name"].as_str().unwrap_or_default() {
        "getDiagnostics" => {
            let uri = params["arguments"]["uri"].as_str();
            rpc::tool_text(&[&diagnostics_text(view, uri)])
        }
        "closeAllDiffTabs" => rpc::tool_text(&["CLOSED_0_DIFF_TABS"]),
        "close_tab" => rpc::tool_text(&["TAB_CLOSED"]),
        // The agent then asks in its terminal.
        "openDiff" => rpc::tool_error("This editor shows no diffs of agents."),
        name => rpc::tool_error(&format!("unknown tool {name}")),
    }
}
