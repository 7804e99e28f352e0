//! Diagnostics, the selection and showing files, as agents get them.

use serde_json::{Value, json};

use crate::harness::{Server, Workspace};

const FILES: &[(&str, &str)] = &[
    (".clineignore", "secret.txt\n"),
    ("secret.txt", "TOPSECRET\n"),
    ("notes.txt", "one\ntwo\n"),
];

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({
        "start": { "line": line, "character": from },
        "end": { "line": line, "character": to },
    })
}

/// A server whose editor has errors in both files.
fn diagnosed(workspace: &Workspace) -> Server {
    let mut initialize = workspace.initialize();
    initialize["capabilities"]["window"]["showDocument"] = json!({ "support": true });
    let mut server = Server::initialized(initialize);
    for file in ["notes.txt", "secret.txt"] {
        let params = json!({
            "uri": workspace.uri(file),
            "diagnostics": [
                { "range": range(1, 0, 3), "message": format!("wrong in {file}"), "tags": [1] },
            ],
        });
        server.send_notification("sightline/didChangeDiagnostics", params);
    }
    server
}

#[test]
fn diagnostics_of_denied_files_are_left_out() {
    let workspace = Workspace::new(FILES);
    let mut server = diagnosed(&workspace);
    let all = server.call("sightline/diagnostics", json!({}));
    assert_eq!(all["files"].as_array().unwrap().len(), 1);
    assert_eq!(all["files"][0]["path"], "notes.txt");
    assert_eq!(all["omitted"], 1);
    assert_eq!(all["text"], "notes.txt:2:1: error: wrong in notes.txt");
    let one = server.call("sightline/diagnostics", json!({ "paths": ["notes.txt"] }));
    assert_eq!(one["files"], all["files"]);
    let error = server.refused("sightline/diagnostics", json!({ "paths": ["secret.txt"] }));
    assert_eq!(error["data"]["kind"], "accessDenied");

    let params = json!({ "uri": workspace.uri("notes.txt"), "diagnostics": [] });
    server.send_notification("sightline/didChangeDiagnostics", params);
    let all = server.call("sightline/diagnostics", json!({}));
    assert_eq!(all["files"], json!([]));
    assert_eq!(server.end(), 0);
}

#[test]
fn the_selection_is_that_of_the_editor_with_unsaved_text() {
    let workspace = Workspace::new(FILES);
    let mut server = diagnosed(&workspace);
    assert_eq!(server.call("sightline/selection", json!({})), json!({}));
    server.open(&workspace.uri("notes.txt"), "first\nunsaved é text\n");
    let editors = json!({ "editors": [{
        "uri": workspace.uri("notes.txt"), "isActive": true,
        "selections": [range(1, 0, 9), range(0, 2, 2)],
    }] });
    server.send_notification("sightline/didChangeVisibleEditors", editors);
    let selected = server.call("sightline/selection", json!({}));
    assert_eq!(selected["path"], "notes.txt");
    assert_eq!(selected["selections"][0]["text"], "unsaved é");
    assert_eq!(selected["selections"][1]["text"], "");
    assert_eq!(selected["truncated"], Value::Null);
    let cut = server.call("sightline/selection", json!({ "maxBytes": 9 }));
    assert_eq!(cut["selections"][0]["text"], "unsaved ");
    assert_eq!(cut["truncated"], true);

    server.open(&workspace.uri("secret.txt"), "TOPSECRET\n");
    let focus = json!({ "textDocument": { "uri": workspace.uri("secret.txt") } });
    server.send_notification("textDocument/didFocus", focus);
    assert_eq!(server.call("sightline/selection", json!({})), json!({}));
    assert_eq!(server.end(), 0);
}

#[test]
fn a_file_is_shown_by_the_editor() {
    let workspace = Workspace::new(FILES);
    let mut server = diagnosed(&workspace);
    let params = json!({ "path": "notes.txt", "line": 2 });
    let shown = server.call("sightline/openFile", params);
    assert_eq!(shown, json!({ "path": "notes.txt" }));
    let request = server
        .wait_for(|message| message["method"] == "window/showDocument")
        .unwrap();
    assert_eq!(request["params"]["uri"], workspace.uri("notes.txt"));
    assert_eq!(request["params"]["selection"], range(1, 0, 0));
    // A user follows a rule to its line, which stays hidden from agents.
    let params = json!({ "path": ".clineignore", "line": 1 });
    server.call("sightline/openFile", params);
    let request = server
        .wait_for(|message| message["method"] == "window/showDocument")
        .unwrap();
    assert_eq!(request["params"]["uri"], workspace.uri(".clineignore"));
    for (path, kind) in [("secret.txt", "accessDenied"), ("gone.txt", "notFound")] {
        let error = server.refused("sightline/openFile", json!({ "path": path }));
        assert_eq!(error["data"]["kind"], kind, "{path}");
    }
    assert_eq!(server.end(), 0);

    let mut server = Server::start(&workspace);
    let error = server.refused("sightline/openFile", json!({ "path": "notes.txt" }));
    assert_eq!(error["data"]["kind"], "unsupported");
    assert_eq!(server.end(), 0);
}
