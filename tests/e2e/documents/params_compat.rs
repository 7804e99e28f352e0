//! Messages that deviate from LSP.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sightline_protocol::method::{Direction, METHODS};

use crate::harness::{Server, Workspace, holds_null};

/// T8. Absent, `null`, `[]` and `{}` mean the same; no result contains `null`.
#[test]
fn t8_every_spelling_of_nothing_is_accepted() {
    let workspace = Workspace::new(&[("a.txt", "x"), (".clineignore", "secret\n")]);
    let mut server = Server::start(&workspace);
    let mut without_required = BTreeSet::new();
    for row in METHODS
        .iter()
        .filter(|row| row.direction == Direction::Request)
    {
        let mut outcomes = Vec::new();
        for params in [None, Some(Value::Null), Some(json!([])), Some(json!({}))] {
            let mut message = json!({ "jsonrpc": "2.0", "id": "n", "method": row.name });
            if let Some(params) = params {
                message["params"] = params;
            }
            server.send(&message).unwrap();
            let answer = server.wait_for(|message| message["id"] == "n").unwrap();
            if let Some(result) = answer.get("result") {
                assert!(!holds_null(result), "{}: {result}", row.name);
                without_required.insert(row.name);
            }
            outcomes.push(answer["error"]["code"].clone());
        }
        outcomes.dedup();
        assert_eq!(outcomes.len(), 1, "{}: {outcomes:?}", row.name);
        // There is no task to resume, and no restore to undo.
        let may_fail = ["sightline/resumeTask", "sightline/undoRestore"].contains(&row.name);
        let is_not_found = may_fail && outcomes[0] == -32803;
        assert!(
            outcomes[0] == Value::Null || outcomes[0] == -32602 || is_not_found,
            "{}: {outcomes:?}",
            row.name
        );
    }
    assert_eq!(
        Vec::from_iter(without_required),
        [
            "sightline/checkAccess",
            "sightline/checkpointStats",
            "sightline/classifyError",
            "sightline/connectedAgents",
            "sightline/countTokens",
            "sightline/createCheckpoint",
            "sightline/diagnostics",
            "sightline/environmentDetails",
            "sightline/hiddenPaths",
            "sightline/listCheckpoints",
            "sightline/listDecisions",
            "sightline/listFiles",
            "sightline/listMcpServers",
            "sightline/listRules",
            "sightline/listTasks",
            "sightline/listTurns",
            "sightline/pruneCheckpoints",
            "sightline/redact",
            "sightline/selection",
            "sightline/unsavedFiles",
            "sightline/verifyCheckpoints",
        ]
    );
    for row in METHODS
        .iter()
        .filter(|row| row.direction == Direction::ClientNotification)
    {
        for params in [
            Value::Null,
            json!([]),
            json!({}),
            json!(5),
            json!({ "tabs": 5 }),
        ] {
            server.send_notification(row.name, params);
        }
    }
    let fields = json!({ "path": null, "recursive": null, "unknown": 1 });
    server.call("sightline/listFiles", fields);
    assert_eq!(server.end(), 0);
}

/// Accepts what JavaScript and Lua clients send instead of what LSP defines.
#[test]
fn odd_spellings_of_standard_messages_are_understood() {
    let workspace = Workspace::new(&[("a.txt", "")]);
    let uri = workspace.uri("a.txt");
    let mut server = Server::start(&workspace);
    let mut send = |body: String| {
        server
            .send_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .unwrap();
    };
    send(format!(
        r#"{{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{{"textDocument":{{"uri":"{uri}","text":"half \ud83d"}}}}}}"#
    ));
    send(format!(
        r#"{{"jsonrpc":"2.0","method":"textDocument/didChange","params":{{"textDocument":{{"uri":"{uri}","version":null}},"contentChanges":[{{"range":{{"start":{{"line":0,"character":0}},"end":{{"line":0,"character":4}}}},"text":"whole"}}]}}}}"#
    ));
    let read = server.call("sightline/readFile", json!({ "path": "a.txt" }));
    assert_eq!(
        (&read["text"], &read["source"]),
        (&json!("whole \u{fffd}"), &json!("buffer"))
    );

    let other = workspace.root().with_file_name("other");
    std::fs::create_dir(&other).unwrap();
    let folder = json!({ "uri": crate::harness::uri(&other), "name": null });
    let event = json!({ "added": [{ "uri": "nonsense" }, folder], "removed": null });
    server.send_notification(
        "workspace/didChangeWorkspaceFolders",
        json!({ "event": event }),
    );
    assert!(server.block(json!({})).contains("- other: "));
    for odd in [
        Value::Null,
        json!([]),
        json!({}),
        json!({ "settings": [] }),
        json!({ "settings": null }),
    ] {
        server.send_notification("workspace/didChangeConfiguration", odd);
    }
    let quiet = |message: &Value| message["method"] == "window/showMessage";
    server.call("sightline/checkAccess", json!({}));
    assert!(
        !server.set_aside().iter().any(quiet),
        "{:?}",
        server.set_aside()
    );

    server.send_notification(
        "textDocument/didFocus",
        json!({ "textDocument": { "uri": uri } }),
    );
    assert!(server.block(json!({})).contains("Visible Files\na.txt"));
    server.send_notification("textDocument/didFocus", json!({ "textDocument": [] }));
    assert!(server.block(json!({})).contains("(No visible files)"));
    assert_eq!(server.end(), 0);
}
