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

/// Returns the discovery file of gemini-cli and Qwen Code. `workspacePath` has the roots with the
/// separator of search paths between them, without roots that contain it. `None` if no root is
/// left: an empty path would match any folder.
pub fn gemini_file(
    port: u16,
    roots: &[PathBuf],
    ide_name: &str,
    token: &str,
    pid: u32,
) -> Option<Value> {
    let roots = roots.iter().filter(|root| env::join_paths([root]).is_ok());
    let paths = env::join_paths(roots).ok()?;
    let content = json!({
        "port": port,
        "workspacePath": paths.to_string_lossy(),
        "authToken": token,
        "ideInfo": { "name": "sightline", "displayName": ide_name },
        "ideName": ide_name,
        "ppid": pid,
    });
    (!paths.is_empty()).then_some(content)
}

/// Returns the lock file of Copilot CLI. `timestamp` is in milliseconds since the Unix epoch. Without
/// `isTrusted`, Copilot CLI asks its user whether to trust the folder.
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
        let end = selection.range.end;
        fields["isActive"] = true.into();
        fields["cursor"] = json!({
            "line": end.line + 1, "character": end.character + 1,
        });
        let cut = selection.text.floor_char_boundary(MAX_SELECTED);
        if let Some(text) = selection.text.get(..cut).filter(|text| !text.is_empty()) {
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

#[cfg(test)]
mod tests {
    use sightline_protocol::editor::{Position, Range};

    use super::*;
    use crate::ide::view::{Focus, Selection};

    fn view(count: i64, text: &str) -> EditorView {
        let open_files = (0..count)
            .map(|number| OpenFile {
                path: format!("/w/{number}").into(),
                focused_at: 100 - number,
            })
            .collect();
        let selection = Selection {
            range: Range {
                start: Position {
                    line: 1,
                    character: 0,
                },
                end: Position {
                    line: 2,
                    character: 5,
                },
            },
            text: text.to_owned(),
        };
        EditorView {
            focus: Some(Focus {
                path: "/w/0".into(),
                uri: "file:///w/0".to_owned(),
                selection,
            }),
            open_files,
            ..EditorView::default()
        }
    }

    #[test]
    fn the_context_has_at_most_ten_files_and_16_kib_of_text() {
        // Three bytes each, so the limit is inside a character.
        let text = "\u{20ac}".repeat(10_000);
        let update = update(Dialect::Gemini, &view(12, &text));
        assert_eq!(update["method"], "ide/contextUpdate");
        let state = &update["params"]["workspaceState"];
        assert_eq!(state.get("isTrusted"), None);
        let files = state["openFiles"].as_array().unwrap();
        assert_eq!(files.len(), 10);
        let selected = files[0]["selectedText"].as_str().unwrap();
        assert_eq!(selected.len(), MAX_SELECTED - 1);
        assert_eq!(files[0]["cursor"], json!({ "line": 3, "character": 6 }));
        let other = json!({ "path": "/w/1", "timestamp": 99, "isActive": false });
        assert_eq!(files[1], other);
    }

    #[test]
    fn copilot_asks_whether_to_trust_the_folder() {
        let roots = [PathBuf::from("/w")];
        let file = copilot_file(Path::new("/s"), &roots, "Sightline (w)", "t", 1, 2);
        assert_eq!(file.get("isTrusted"), None);
        assert_eq!(file["headers"]["Authorization"], "Nonce t");
        assert_eq!(file["workspaceFolders"], json!(["/w"]));
    }

    #[test]
    fn without_a_focus_the_selection_is_empty() {
        let mut view = view(1, "text");
        view.focus = None;
        let cleared = update(Dialect::Copilot, &view);
        assert_eq!(cleared["params"]["filePath"], "");
        assert_eq!(cleared["params"]["text"], "");
        let files = update(Dialect::Gemini, &view);
        assert_eq!(
            files["params"]["workspaceState"]["openFiles"][0]["isActive"],
            false
        );
    }

    #[test]
    fn messages_are_answered() {
        let view = view(1, "text");
        let ask = |dialect, method: &str, params: Value| {
            let message =
                json!({ "jsonrpc": "2.0", "id": "1", "method": method, "params": params });
            answer(dialect, &message, &view).unwrap()
        };
        for dialect in [Dialect::Gemini, Dialect::Copilot] {
            let reply = ask(dialect, "initialize", json!({ "protocolVersion": "x" }));
            assert_eq!(
                (&reply["id"], &reply["result"]["protocolVersion"]),
                (&json!("1"), &json!("x"))
            );
            assert_eq!(
                ask(dialect, "server/discover", Value::Null)["error"]["code"],
                -32601
            );
            assert_eq!(ask(dialect, "ping", Value::Null)["result"], json!({}));
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            assert_eq!(answer(dialect, &notification, &view), None);
        }
        let call = |name: &str| {
            ask(Dialect::Copilot, "tools/call", json!({ "name": name }))["result"].take()
        };
        let text = call("get_selection")["content"][0]["text"].take();
        assert_eq!(
            serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()["text"],
            "text"
        );
        assert_eq!(call("get_diagnostics")["content"][0]["text"], "[]");
        assert_eq!(call("other")["isError"], true);
    }

    #[test]
    fn roots_with_the_separator_are_left_out() {
        let file = |roots: &[&str]| {
            let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
            gemini_file(1, &roots, "Sightline (a)", "t", 2)
                .map(|mut file| file["workspacePath"].take())
        };
        assert_eq!(file(&["/a"]), Some(json!("/a")));
        #[cfg(unix)]
        for (roots, path) in [
            (&["/a", "/b"][..], Some(json!("/a:/b"))),
            (&["/a:b", "/c"], Some(json!("/c"))),
            (&["/a:b"], None),
            (&[], None),
        ] {
            assert_eq!(file(roots), path);
        }
    }
}
