//! Editing a `.clineignore`, and diagnostics on changed files.

use serde_json::{Value, json};

use crate::harness::{Server, Workspace};

const RULES: &str = "*.key\n!include more\n[a\nnothing-like-it\n!include ../x\n!keep.key\n# end\n";

fn workspace() -> Workspace {
    let files = [
        (".clineignore", RULES),
        ("a.key", ""),
        ("src/b.key", ""),
        ("src/keep.key", ""),
    ];
    Workspace::new(&files)
}

/// Returns the diagnostics of a document, once there are `count`.
fn diagnostics(server: &mut Server, uri: &str, count: usize) -> Vec<Value> {
    let message = server
        .wait_for(|message| {
            let params = &message["params"];
            message["method"] == "textDocument/publishDiagnostics"
                && params["uri"] == uri
                && params["diagnostics"]
                    .as_array()
                    .is_some_and(|all| all.len() == count)
        })
        .unwrap();
    message["params"]["diagnostics"].as_array().unwrap().clone()
}

fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } })
}

fn hover(server: &mut Server, uri: &str, line: u32) -> String {
    let hover = server.call("textDocument/hover", at(uri, line, 0));
    hover["contents"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the completions at the end of a line, as labels and new texts.
fn offered(server: &mut Server, uri: &str, text: &str) -> Vec<(String, String, u64)> {
    server.open(uri, text);
    let end = u32::try_from(text.encode_utf16().count()).unwrap();
    let list = server.call("textDocument/completion", at(uri, 0, end));
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let range = &item["textEdit"]["range"];
            assert_eq!(range["end"]["character"], end);
            (
                item["label"].as_str().unwrap().to_owned(),
                item["textEdit"]["newText"].as_str().unwrap().to_owned(),
                range["start"]["character"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn problems_are_reported_while_typing() {
    let workspace = workspace();
    let uri = workspace.uri(".clineignore");
    let mut server = Server::start(&workspace);
    server.open(&uri, RULES);
    let found: Vec<(u64, u64, String)> = diagnostics(&mut server, &uri, 4)
        .iter()
        .map(|one| {
            let code = one["code"].as_str().unwrap().to_owned();
            assert_eq!(one["source"], "sightline");
            let line = one["range"]["start"]["line"].as_u64().unwrap();
            (line, one["severity"].as_u64().unwrap(), code)
        })
        .collect();
    let code = |line, severity, code: &str| (line, severity, code.to_owned());
    assert_eq!(
        found,
        [
            code(1, 2, "missing-include"),
            code(2, 2, "unmatchable"),
            code(3, 4, "idle-rule"),
            code(4, 1, "unusable-include"),
        ]
    );
    // The text in the editor counts, not the saved file.
    let change = json!([{ "text": "*.key\nb\u{e9}\u{1f600}b\n" }]);
    let document = json!({ "uri": uri, "version": 2 });
    let params = json!({ "textDocument": document, "contentChanges": change });
    server.send_notification("textDocument/didChange", params);
    let idle = diagnostics(&mut server, &uri, 1);
    assert_eq!(
        idle[0]["range"]["start"],
        json!({ "line": 1, "character": 0 })
    );
    assert_eq!(
        idle[0]["range"]["end"],
        json!({ "line": 1, "character": 5 })
    );
    server.send_notification(
        "textDocument/didClose",
        json!({ "textDocument": { "uri": uri } }),
    );
    diagnostics(&mut server, &uri, 0);
    assert_eq!(server.end(), 0);
}

#[test]
fn exceptions_that_allow_no_secret_are_marked() {
    let workspace = Workspace::new(&[
        (".clineignore", "*\n!/tools/\n!/tools/**\n!.envrc\n"),
        ("tools/.env", "K\n"),
        ("tools/a.rs", "a\n"),
    ]);
    let mut server = Server::start(&workspace);
    let uri = workspace.uri(".clineignore");
    let text = "*\n!/tools/\n!/tools/**\n!.envrc\n";
    server.open(&uri, text);
    let found = diagnostics(&mut server, &uri, 2);
    assert_eq!(found[0]["code"], "secret-stays-hidden", "{found:?}");
    assert_eq!(found[0]["range"]["start"]["line"], 2);
    let message = found[0]["message"].as_str().unwrap();
    assert!(message.contains("tools/.env stays hidden"), "{message}");
    assert_eq!(server.end(), 0);
}

#[test]
fn a_setting_disables_diagnostics() {
    let workspace = workspace();
    let uri = workspace.uri(".clineignore");
    let mut server = Server::start(&workspace);
    server.open(&uri, RULES);
    diagnostics(&mut server, &uri, 4);
    let off = json!({ "sightline": { "diagnostics": { "rules": false } } });
    server.send_notification(
        "workspace/didChangeConfiguration",
        json!({ "settings": off }),
    );
    diagnostics(&mut server, &uri, 0);
}

#[test]
fn hover_describes_a_line() {
    let workspace = workspace();
    let uri = workspace.uri(".clineignore");
    let mut params = workspace.initialize();
    params["capabilities"]["textDocument"]["hover"]["contentFormat"] = json!(["markdown"]);
    let mut server = Server::initialized(params);
    server.open(&uri, RULES);
    assert_eq!(
        hover(&mut server, &uri, 0),
        "Hides 2 paths from agents: `a.key`, `src/b.key`"
    );
    assert_eq!(
        hover(&mut server, &uri, 5),
        "Shows 1 path to agents: `src/keep.key`"
    );
    assert_eq!(
        hover(&mut server, &uri, 3),
        "Hides no existing path from agents"
    );
    assert!(hover(&mut server, &uri, 2).contains("never match"));
    assert_eq!(hover(&mut server, &uri, 6), "");
    assert_eq!(hover(&mut server, &uri, 600), "");
    let kind = server.call("textDocument/hover", at(&uri, 0, 0));
    assert_eq!(kind["contents"]["kind"], "markdown");
    // Other documents and rule files without effect get nothing.
    for other in ["a.key", "src/.clineignore"] {
        let uri = workspace.uri(other);
        server.open(&uri, "*.key\n");
        assert_eq!(
            server.call("textDocument/hover", at(&uri, 0, 0)),
            Value::Null
        );
        assert_eq!(
            server.call("textDocument/completion", at(&uri, 0, 1)),
            Value::Null
        );
    }
}

#[test]
fn hover_and_completion_are_registered_for_rule_files_only() {
    let workspace = workspace();
    for dynamic in [true, false] {
        let mut params = workspace.initialize();
        for feature in ["hover", "completion"] {
            params["capabilities"]["textDocument"][feature]["dynamicRegistration"] = json!(dynamic);
        }
        let mut server = Server::bare(Default::default());
        let result = server.initialize(params);
        assert_eq!(result["capabilities"]["hoverProvider"], Value::Null);
        assert_eq!(result["capabilities"]["completionProvider"], Value::Null);
        server.call("sightline/listTasks", json!({}));
        let sent = |message: &Value| message["method"] == "client/registerCapability";
        let registered: Vec<Value> = server
            .set_aside()
            .iter()
            .filter(|one| sent(one))
            .cloned()
            .collect();
        assert_eq!(registered.is_empty(), !dynamic, "{registered:?}");
        for one in registered {
            let registrations = one["params"]["registrations"].as_array().unwrap();
            assert_eq!(registrations.len(), 2);
            for registration in registrations {
                let selector = &registration["registerOptions"]["documentSelector"];
                assert_eq!(*selector, json!([{ "pattern": "**/.clineignore" }]));
            }
        }
        assert_eq!(server.end(), 0);
    }
}

#[test]
fn completion_offers_paths_of_the_workspace() {
    let workspace = workspace();
    workspace.write("src/x*[1].txt", "");
    workspace.write("src/#é.txt", "");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", workspace.path("out")).unwrap();
    let uri = workspace.uri(".clineignore");
    let mut server = Server::start(&workspace);
    let entry = |label: &str, new: &str, start| (label.to_owned(), new.to_owned(), start);
    let all = offered(&mut server, &uri, "");
    assert_eq!(
        all,
        [
            entry("!include", "!include ", 0),
            entry("a.key", "a.key", 0),
            entry("out", "out", 0),
            entry("src/", "src/", 0)
        ]
    );
    assert_eq!(
        offered(&mut server, &uri, "!src/K"),
        [entry("keep.key", "keep.key", 5)]
    );
    assert_eq!(
        offered(&mut server, &uri, "/src/x"),
        [entry("x*[1].txt", "x\\*\\[1].txt", 5)]
    );
    assert_eq!(
        offered(&mut server, &uri, "src/#"),
        [entry("#é.txt", "#é.txt", 4)]
    );
    assert_eq!(
        offered(&mut server, &uri, "!include src/#é"),
        [entry("#é.txt", "#é.txt", 13)]
    );
    for nothing in ["# a", "out/", "../", "src/../../", "*/", "nowhere/"] {
        assert_eq!(offered(&mut server, &uri, nothing), [], "{nothing}");
    }
}

#[test]
fn open_files_changed_since_the_last_checkpoint_are_marked_if_enabled() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let uri = workspace.uri("a.txt");
    let mut params = workspace.initialize();
    params["initializationOptions"]["diagnostics"] = json!({ "changedFiles": true });
    let mut server = Server::initialized(params);
    server.open(&uri, "one\n");
    server.call("sightline/createCheckpoint", json!({ "label": "start" }));
    // Changed by a program that does not notify the server.
    workspace.write("a.txt", "one\ntwo\n");
    workspace.write("b.txt", "c\n");
    let hint = diagnostics(&mut server, &uri, 1);
    let message = hint[0]["message"].as_str().unwrap();
    assert!(message.contains("changed (+1 -0) since checkpoint") && message.contains("(start)"));
    assert_eq!(hint[0]["severity"], 4);
    server.call("sightline/createCheckpoint", json!({}));
    diagnostics(&mut server, &uri, 0);
    let of_b = |message: &&Value| message["params"]["uri"] == workspace.uri("b.txt");
    assert_eq!(server.set_aside().iter().filter(of_b).count(), 0);
}
