//! Features for clients without a plugin: code actions, commands without arguments,
//! confirmations.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Server, Workspace};

/// Params of `initialize` for a client with Helix's capabilities.
fn plain(workspace: &Workspace) -> Value {
    let mut params = workspace.initialize();
    params["capabilities"] = json!({
        "workspace": { "applyEdit": true, "workspaceEdit": { "documentChanges": true } },
        "textDocument": { "codeAction": { "codeActionLiteralSupport": {} } },
    });
    params
}

fn command(server: &mut Server, name: &str, arguments: Value) -> Value {
    let params = json!({ "command": format!("sightline.{name}"), "arguments": arguments });
    server.call("workspace/executeCommand", params)
}

fn actions(server: &mut Server, uri: &str) -> Vec<Value> {
    let start = json!({ "line": 0, "character": 0 });
    let params = json!({
        "textDocument": { "uri": uri },
        "range": { "start": start, "end": start },
        "context": { "diagnostics": [] },
    });
    let actions = server.call("textDocument/codeAction", params);
    actions.as_array().unwrap().clone()
}

fn titles(actions: &[Value]) -> String {
    let titles = actions
        .iter()
        .map(|action| action["title"].as_str().unwrap());
    titles.collect::<Vec<_>>().join("\n")
}

/// Runs the code action whose title contains `part`.
fn choose(server: &mut Server, uri: &str, part: &str) -> Value {
    let offered = actions(server, uri);
    let chosen = offered
        .iter()
        .find(|action| action["title"].as_str().unwrap().contains(part))
        .unwrap_or_else(|| panic!("no {part} in\n{}", titles(&offered)));
    let command = if chosen["command"].is_object() {
        &chosen["command"]
    } else {
        chosen
    };
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    server.call("workspace/executeCommand", params)
}

fn shown(server: &mut Server) -> String {
    let message = server.notified("window/showMessage").unwrap();
    message["message"].as_str().unwrap().to_owned()
}

/// Returns the server's request with this method.
fn expect_request(server: &mut Server, method: &str) -> Value {
    server
        .wait_for(|message| message["method"] == method)
        .unwrap()
}

fn answer(server: &mut Server, request: &Value, result: Value) {
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
    server.send(&answer).unwrap();
}

fn refuse(server: &mut Server, request: &Value) {
    let error = json!({ "code": -32601, "message": "unknown method" });
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
    server.send(&answer).unwrap();
}

fn document(result: &Value) -> String {
    let path = sightline_base::path::uri_to_path(result["uri"].as_str().unwrap());
    fs::read_to_string(path.unwrap().unwrap().as_path()).unwrap()
}

#[test]
fn actions_fit_the_document() {
    let workspace = Workspace::new(&[
        (".clineignore", "*.key\n"),
        ("a.txt", "1\n"),
        ("b.key", "x"),
    ]);
    let mut server = Server::initialized(plain(&workspace));
    let (a, key) = (workspace.uri("a.txt"), workspace.uri("b.key"));
    let first = actions(&mut server, &a);
    assert!(
        first
            .iter()
            .all(|action| action["kind"] == "source.sightline")
    );
    let first = titles(&first);
    assert!(
        first.contains("environment") && first.contains("create checkpoint"),
        "{first}"
    );
    assert!(
        !first.contains("restore") && first.contains("check whether agents see this file"),
        "{first}"
    );
    choose(&mut server, &a, "create checkpoint");
    assert!(shown(&mut server).contains("checkpoint "));
    let then = titles(&actions(&mut server, &a));
    assert!(
        then.contains("restore this file") && then.contains("show changes"),
        "{then}"
    );
    let hidden = titles(&actions(&mut server, &key));
    assert!(hidden.contains("explain why agents cannot see"), "{hidden}");
    assert!(!hidden.contains("restore this file"), "{hidden}");
    for odd in ["untitled:Untitled-1", "file://", "", "http://x/y"] {
        assert!(
            titles(&actions(&mut server, odd)).contains("environment"),
            "{odd}"
        );
    }
    let only = json!({ "textDocument": { "uri": a }, "context": { "only": ["quickfix"] } });
    assert_eq!(server.call("textDocument/codeAction", only), json!([]));
    assert_eq!(server.end(), 0);
}

#[test]
fn a_client_without_code_action_literals_gets_commands() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let mut server = Server::start(&workspace);
    let offered = actions(&mut server, &workspace.uri("a.txt"));
    assert_eq!(offered[0]["command"], "sightline.showEnvironment");
}

#[test]
fn commands_use_the_active_or_named_document() {
    let workspace = Workspace::new(&[
        (".clineignore", "*.key\n"),
        ("a.txt", "1\n"),
        ("b.key", "x"),
    ]);
    let mut server = Server::initialized(plain(&workspace));
    let nothing = json!({ "command": "sightline.explainAccess" });
    let error = server.refused("workspace/executeCommand", nothing);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("no document is open")
    );
    assert!(shown(&mut server).contains("no document is open"));
    server.open(&workspace.uri("a.txt"), "1\n");
    command(&mut server, "explainAccess", json!([]));
    assert_eq!(shown(&mut server), "sightline: agents may see a.txt");
    let why = "sightline: b.key is hidden from agents: line 1 of .clineignore: *.key";
    for named in [
        json!({ "path": "b.key" }),
        json!("b.key"),
        json!({ "uri": workspace.uri("b.key") }),
    ] {
        command(&mut server, "explainAccess", json!([named]));
        assert_eq!(shown(&mut server), why);
    }
}

#[test]
fn the_environment_is_shown_in_a_fresh_document() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let mut server = Server::initialized(plain(&workspace));
    server.open(&workspace.uri("a.txt"), "1\n");
    let first = command(&mut server, "showEnvironment", json!([]));
    let opened = expect_request(&mut server, "window/showDocument");
    assert_eq!(opened["params"]["uri"], first["uri"]);
    let text = document(&first);
    assert!(
        text.starts_with("<environment_details>") && text.contains("a.txt"),
        "{text}"
    );
    assert!(shown(&mut server).contains("in the opened document"));
    // The opened document does not become the active one.
    server.open(first["uri"].as_str().unwrap(), &text);
    command(&mut server, "explainAccess", json!([]));
    assert_eq!(shown(&mut server), "sightline: agents may see a.txt");
    // If the document cannot be opened, the message contains its path.
    server.answer_with(|_, _| None);
    let second = command(&mut server, "showEnvironment", json!([]));
    assert_ne!(first["uri"], second["uri"]);
    let request = expect_request(&mut server, "window/showDocument");
    refuse(&mut server, &request);
    assert!(shown(&mut server).contains("saved as /"));
    server.answer_with(|_, _| Some(Value::Null));
    command(&mut server, "showEnvironment", json!([]));
    expect_request(&mut server, "window/showDocument");
    assert!(shown(&mut server).contains("saved as /"));
}

#[test]
fn changes_since_the_last_checkpoint_are_shown() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let mut server = Server::initialized(plain(&workspace));
    server.open(&workspace.uri("a.txt"), "one\n");
    let none = json!({ "command": "sightline.showChanges" });
    let error = server.refused("workspace/executeCommand", none);
    assert_eq!(error["data"]["kind"], "notFound");
    shown(&mut server);
    command(&mut server, "checkpointNow", json!([{ "label": "start" }]));
    shown(&mut server);
    command(&mut server, "showChanges", json!([]));
    let message = shown(&mut server);
    assert!(
        message.contains("nothing changed since checkpoint") && message.contains("(start)"),
        "{message}"
    );
    workspace.write("a.txt", "two\n");
    workspace.write("b.txt", "c\n");
    let all = document(&command(&mut server, "showChanges", json!([])));
    assert!(
        all.contains("M        +1 -1  a.txt") && all.contains("+two\n"),
        "{all}"
    );
    assert!(all.contains("b.txt"), "{all}");
    let one = document(&command(&mut server, "showChanges", json!(["b.txt"])));
    assert!(one.contains("b.txt") && !one.contains("a.txt"), "{one}");
}

/// A workspace whose `a.txt` changed since its checkpoint.
fn changed(server: &mut Server, workspace: &Workspace) {
    command(server, "checkpointNow", json!([]));
    shown(server);
    workspace.write("a.txt", "two\n");
}

#[test]
fn a_closed_file_is_restored_on_disk_after_confirmation() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::initialized(plain(&workspace));
    changed(&mut server, &workspace);
    server.answer_with(|_, _| None);
    let argument = json!(["a.txt"]);
    for no in [json!({ "title": "Cancel" }), Value::Null] {
        command(&mut server, "restoreFile", argument.clone());
        let question = expect_request(&mut server, "window/showMessageRequest");
        let text = question["params"]["message"].as_str().unwrap();
        assert!(
            text.contains("Restore a.txt from checkpoint") && text.contains("+1 -1"),
            "{text}"
        );
        answer(&mut server, &question, no);
    }
    command(&mut server, "allow", json!([]));
    assert!(
        shown(&mut server).contains("nothing to "),
        "what was refused is over"
    );
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "two\n"
    );
    command(&mut server, "restoreFile", argument.clone());
    let question = expect_request(&mut server, "window/showMessageRequest");
    answer(&mut server, &question, json!({ "title": "Restore" }));
    assert!(shown(&mut server).contains("a.txt is restored"));
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "one\n"
    );
    server.call("sightline/undoRestore", json!({}));
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "two\n"
    );
    // Undo points are not used for comparison.
    let since = command(&mut server, "showChanges", json!([]));
    assert!(document(&since).contains("+two"));
    assert_eq!(server.end(), 0);
}

#[test]
fn the_last_restore_is_undone_after_confirmation() {
    let files = ["a.txt", "b.txt", "c.txt"].map(|name| (name, "one\n"));
    let workspace = Workspace::new(&files);
    let mut server = Server::initialized(plain(&workspace));
    let params = json!({ "command": "sightline.undoLastRestore" });
    let error = server.refused("workspace/executeCommand", params);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("no restore to undo; if the file was open, undo it in the editor")
    );
    assert!(shown(&mut server).contains("no restore to undo"));
    let taken = server.call("sightline/createCheckpoint", json!({}));
    workspace.write("a.txt", "two\n");
    workspace.write("c.txt", "two\n");
    let can_undo = |server: &mut Server| {
        titles(&actions(server, &workspace.uri("a.txt"))).contains("undo the last restore")
    };
    assert!(!can_undo(&mut server));
    server.call("sightline/restoreCheckpoint", json!({ "id": taken["id"] }));
    assert!(can_undo(&mut server));
    workspace.write("b.txt", "mine\n");
    workspace.write("c.txt", "mine\n");
    server.answer_with(|_, _| None);
    for (choice, expected) in [("Cancel", "one\n"), ("Undo", "two\n")] {
        command(&mut server, "undoLastRestore", json!([]));
        let question = expect_request(&mut server, "window/showMessageRequest");
        let text = question["params"]["message"].as_str().unwrap();
        assert!(text.contains("1 file: a.txt."), "{text}");
        let skipped = "Skipped: c.txt (changed after the restore).";
        assert!(text.contains(skipped), "{text}");
        assert_eq!(
            fs::read_to_string(workspace.path("a.txt")).unwrap(),
            "one\n"
        );
        answer(&mut server, &question, json!({ "title": choice }));
        if choice == "Undo" {
            assert!(shown(&mut server).contains("1 path restored"));
        }
        let text = fs::read_to_string(workspace.path("a.txt")).unwrap();
        assert_eq!(text, expected, "{choice}");
    }
    for name in ["b.txt", "c.txt"] {
        let text = fs::read_to_string(workspace.path(name)).unwrap();
        assert_eq!(text, "mine\n", "{name}");
    }
    // There is nothing to confirm once it is undone.
    workspace.write("c.txt", "two\n");
    let undo_id =
        server.call("sightline/listCheckpoints", json!({}))["checkpoints"][1]["id"].clone();
    command(&mut server, "undoLastRestore", json!([{ "id": undo_id }]));
    assert!(shown(&mut server).contains("already up to date"));
}

#[test]
fn a_response_to_an_older_question_does_nothing() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::initialized(plain(&workspace));
    changed(&mut server, &workspace);
    server.answer_with(|_, _| None);
    command(&mut server, "restoreFile", json!(["a.txt"]));
    let old = expect_request(&mut server, "window/showMessageRequest");
    command(&mut server, "restoreFile", json!(["a.txt"]));
    let new = expect_request(&mut server, "window/showMessageRequest");
    assert!(shown(&mut server).contains("another question was asked"));
    answer(&mut server, &old, json!({ "title": "Restore" }));
    answer(&mut server, &new, json!({ "title": "Cancel" }));
    // Waits for other requests that change the folder.
    server.call("sightline/createCheckpoint", json!({}));
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "two\n"
    );
}

#[test]
fn changes_after_the_question_are_not_overwritten() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::initialized(plain(&workspace));
    changed(&mut server, &workspace);
    server.answer_with(|_, _| None);
    command(&mut server, "restoreFile", json!(["a.txt"]));
    let question = expect_request(&mut server, "window/showMessageRequest");
    workspace.write("a.txt", "three, and longer\n");
    answer(&mut server, &question, json!({ "title": "Restore" }));
    let message = server.notified("window/showMessage").unwrap();
    assert_eq!(message["type"], 1, "{message}");
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "three, and longer\n"
    );
}

#[test]
fn an_editor_without_prompts_gets_commands_to_allow_and_deny() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::initialized(plain(&workspace));
    changed(&mut server, &workspace);
    server.answer_with(|_, _| None);
    let uri = workspace.uri("a.txt");
    command(&mut server, "restoreFile", json!(["a.txt"]));
    let question = expect_request(&mut server, "window/showMessageRequest");
    refuse(&mut server, &question);
    assert!(shown(&mut server).contains("sightline.allow"));
    choose(&mut server, &uri, "deny: restore a.txt");
    assert!(shown(&mut server).contains("denied: restore a.txt"));
    assert!(!titles(&actions(&mut server, &uri)).contains("allow"));
    // The server does not try to prompt again.
    command(&mut server, "restoreFile", json!(["a.txt"]));
    assert!(shown(&mut server).contains("sightline.allow"));
    let prompts = |message: &&Value| message["method"] == "window/showMessageRequest";
    assert_eq!(server.set_aside().iter().filter(prompts).count(), 0);
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "two\n"
    );
    choose(&mut server, &uri, "allow: restore a.txt");
    assert!(shown(&mut server).contains("a.txt is restored"));
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "one\n"
    );
}

#[test]
fn an_open_file_is_restored_in_the_editor() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::initialized(plain(&workspace));
    let uri = workspace.uri("a.txt");
    server.open(&uri, "one\n");
    changed(&mut server, &workspace);
    let change = json!({ "text": "two\n" });
    let document = json!({ "uri": uri, "version": 2 });
    let params = json!({ "textDocument": document, "contentChanges": [change] });
    server.send_notification("textDocument/didChange", params);
    server.answer_with(|method, _| match method {
        "window/showMessageRequest" => Some(json!({ "title": "Restore" })),
        "workspace/applyEdit" => Some(json!({ "applied": true })),
        _ => Some(Value::Null),
    });
    command(&mut server, "restoreFile", json!([]));
    let edit = expect_request(&mut server, "workspace/applyEdit");
    let change = &edit["params"]["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({ "uri": uri, "version": 2 }));
    assert_eq!(change["edits"][0]["newText"], "one\n");
    assert!(shown(&mut server).contains("restored in the editor"));
    assert_eq!(
        fs::read_to_string(workspace.path("a.txt")).unwrap(),
        "two\n"
    );
    // A rejected edit is reported.
    server.answer_with(|method, _| match method {
        "window/showMessageRequest" => Some(json!({ "title": "Restore" })),
        _ => Some(json!({ "applied": false })),
    });
    command(&mut server, "restoreFile", json!([]));
    assert!(shown(&mut server).contains("nothing was changed"));
}

#[test]
fn turns_are_listed_and_everything_is_restored_after_confirmation() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let mut server = Server::initialized(plain(&workspace));
    let a = workspace.uri("a.txt");
    let nothing = command(&mut server, "showTurns", json!([]));
    assert_eq!(nothing["message"], "no turns and no checkpoints yet");
    shown(&mut server);
    command(&mut server, "checkpointNow", json!([{ "label": "start" }]));
    shown(&mut server);
    for (number, name) in [(1, "a.txt"), (2, "b.txt")] {
        let turn = json!({ "agent": "claude", "session": "s", "turn": number.to_string() });
        server.call("sightline/createCheckpoint", json!({ "turn": turn }));
        workspace.write(name, "two\n");
        let end = json!({ "turn": turn, "turnEnd": true });
        server.call("sightline/createCheckpoint", end);
    }
    let list = choose(&mut server, &a, "show turns and checkpoints");
    let (text, uri) = (document(&list), list["uri"].as_str().unwrap());
    assert!(shown(&mut server).contains("2 turns are in the opened document"));
    let line_of = |part: &str| text.lines().position(|line| line.contains(part)).unwrap();
    assert!(line_of("claude-1.2    +1 −1  1 file") < line_of("claude-1.1    +1 −1  1 file"));
    assert!(line_of("claude-1.1") < line_of("start"), "{text}");

    // The actions are those of the line.
    server.open(uri, &text);
    let at = |server: &mut Server, line: usize| {
        let start = json!({ "line": line, "character": 0 });
        let params = json!({
            "textDocument": { "uri": uri },
            "range": { "start": start, "end": start },
            "context": { "diagnostics": [] },
        });
        let actions = server.call("textDocument/codeAction", params);
        titles(actions.as_array().unwrap())
    };
    let turn = at(&mut server, line_of("claude-1.2"));
    assert!(
        turn.contains("restore everything to before claude-1.2..."),
        "{turn}"
    );
    assert!(turn.contains("show the changes of claude-1.2"), "{turn}");
    assert!(at(&mut server, line_of("start")).contains("restore everything to "));
    assert!(!at(&mut server, 0).contains("restore everything to "));
    let changes = command(&mut server, "showChanges", json!([{ "id": "claude-1.1" }]));
    let changes = document(&changes);
    assert!(
        changes.starts_with("1 file changed in claude-1.1"),
        "{changes}"
    );
    assert!(
        !changes.contains("b.txt"),
        "what came later is not shown: {changes}"
    );
    shown(&mut server);

    server.answer_with(|_, _| None);
    for (choice, expected) in [("Cancel", "two\n"), ("Restore", "one\n")] {
        command(&mut server, "restoreAll", json!([{ "id": "claude-1.1" }]));
        let question = expect_request(&mut server, "window/showMessageRequest");
        let text = question["params"]["message"].as_str().unwrap();
        let expected_text =
            "Restore everything to the state before claude-1.1? It changes 2 files: a.txt, b.txt.";
        assert!(text.contains(expected_text), "{text}");
        answer(&mut server, &question, json!({ "title": choice }));
        if choice == "Restore" {
            assert!(shown(&mut server).contains("2 paths restored"));
        }
        let now = ["a.txt", "b.txt"].map(|name| fs::read_to_string(workspace.path(name)).unwrap());
        assert_eq!(now, [expected, expected], "{choice}");
    }
    command(&mut server, "restoreAll", json!([{ "id": "claude-1.1" }]));
    assert!(shown(&mut server).contains("already up to date with the state before claude-1.1"));
}
