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

/// A request of the agent about diffs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffCall {
    /// Shows a change. The response follows the user's decision.
    Open {
        /// Id of the request.
        id: Value,
        /// Absolute path of the file.
        path: String,
        /// Proposed text of the whole file.
        contents: String,
        /// Name of the diff, chosen by the agent.
        tab_name: String,
    },
    /// Closes a diff.
    Close {
        /// Id of the request.
        id: Value,
        /// Name of the diff.
        tab_name: String,
    },
    /// Closes all diffs.
    CloseAll {
        /// Id of the request.
        id: Value,
    },
}

impl DiffCall {
    /// Returns the call in a message. `None` for other messages and without the arguments.
    pub fn of(message: &Value) -> Option<Self> {
        let Incoming::Request {
            id,
            method: "tools/call",
            params,
        } = Incoming::of(message)
        else {
            return None;
        };
        let argument = |name: &str| Some(params["arguments"][name].as_str()?.to_owned());
        let id = id.clone();
        match params["name"].as_str()? {
            "openDiff" => Some(Self::Open {
                id,
                path: argument("new_file_path").or_else(|| argument("old_file_path"))?,
                contents: argument("new_file_contents")?,
                tab_name: argument("tab_name")?,
            }),
            "close_tab" => Some(Self::Close {
                id,
                tab_name: argument("tab_name")?,
            }),
            "closeAllDiffTabs" => Some(Self::CloseAll { id }),
            _ => None,
        }
    }
}

/// Returns the response to an accepted change: Claude Code writes these contents.
pub fn diff_accepted(id: &Value, contents: &str) -> Value {
    rpc::result(id, rpc::tool_text(&["FILE_SAVED", contents]))
}

/// Returns the response to a rejected change, which ends the turn.
pub fn diff_rejected(id: &Value, tab_name: &str) -> Value {
    rpc::result(id, rpc::tool_text(&["DIFF_REJECTED", tab_name]))
}

/// Returns the response to a change that the editor does not show. The agent asks in its
/// terminal.
pub fn diff_failed(id: &Value, why: &str) -> Value {
    rpc::result(id, rpc::tool_error(why))
}

/// Returns the response to a call that closed one diff.
pub fn tab_closed(id: &Value) -> Value {
    rpc::result(id, rpc::tool_text(&["TAB_CLOSED"]))
}

/// Returns the response to a call that closed `count` diffs.
pub fn diff_tabs_closed(id: &Value, count: usize) -> Value {
    let text = format!("CLOSED_{count}_DIFF_TABS");
    rpc::result(id, rpc::tool_text(&[&text]))
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

/// Returns the response to a message that is no [`DiffCall`], if it needs one, and when to send
/// the selection.
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
        // With the arguments they need, they are a `DiffCall`.
        "openDiff" | "close_tab" => rpc::tool_error("an argument is missing"),
        name => rpc::tool_error(&format!("unknown tool {name}")),
    }
}
