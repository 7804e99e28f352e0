//! What the user does: sends lines to an agent, pauses the agents; and what the editor learns.

use serde_json::{Value, json};

use super::{
    Editor,
    claude::{Agent, claude},
};

#[test]
fn the_user_sends_lines_to_the_agent() {
    let mut editor = Editor::start(claude());
    editor.open("a.txt", "one\ntwo\nthree\n");
    let uri = editor.workspace.uri("a.txt");
    let send = |editor: &mut Editor, arguments: Value| {
        let command = json!({ "command": "sightline.sendToAgent", "arguments": arguments });
        editor
            .client
            .request("workspace/executeCommand", command)
            .unwrap()
    };
    let range = json!({
        "start": { "line": 1, "character": 0 }, "end": { "line": 3, "character": 0 },
    });
    let titles = |editor: &mut Editor, name: &str| -> Vec<String> {
        let params = json!({
            "textDocument": { "uri": editor.workspace.uri(name) },
            "range": range, "context": { "diagnostics": [] },
        });
        let actions = editor.client.request("textDocument/codeAction", params);
        let actions = actions.unwrap().unwrap();
        let actions = actions.as_array().unwrap().iter();
        actions
            .map(|action| action["title"].as_str().unwrap().to_owned())
            .collect()
    };
    let offer = "Sightline: send to agent".to_owned();
    let error = send(&mut editor, json!([{ "uri": uri }])).unwrap_err();
    assert_eq!(
        error["data"]["kind"], "unsupported",
        "no agent is connected"
    );
    assert!(!titles(&mut editor, "a.txt").contains(&offer));
    let mut agent = editor.agent();
    agent.initialized();
    agent.rest();
    assert!(titles(&mut editor, "a.txt").contains(&offer));
    assert!(!titles(&mut editor, "secret.txt").contains(&offer));
    let path = editor.workspace.path("a.txt");
    let path = path.to_str().unwrap();
    agent.rest();
    send(&mut editor, json!([{ "uri": uri, "range": range }])).unwrap();
    let mentioned = |agent: &mut Agent| loop {
        let message = agent.receive().unwrap();
        if message["method"] == "at_mentioned" {
            return message["params"].clone();
        }
    };
    let lines = json!({ "filePath": path, "lineStart": 1, "lineEnd": 2 });
    assert_eq!(mentioned(&mut agent), lines);
    send(&mut editor, json!(["a.txt"])).unwrap();
    assert_eq!(mentioned(&mut agent), json!({ "filePath": path }));
    let error = send(&mut editor, json!(["secret.txt"])).unwrap_err();
    assert_eq!(error["data"]["kind"], "accessDenied");
    let error = send(&mut editor, json!(["/etc/passwd"])).unwrap_err();
    assert_eq!(error["data"]["kind"], "accessDenied");
    assert_eq!(agent.rest(), [] as [Value; 0]);
}

#[test]
fn the_user_pauses_all_agents() {
    let mut editor = Editor::start(claude());
    editor.open("a.txt", "one\n");
    editor.select("a.txt", 0, 3);
    let mut agent = editor.agent();
    agent.initialized();
    let path = editor.workspace.path("a.txt");
    let path = path.to_str().unwrap();
    assert_eq!(agent.selection_in(path), "one");
    let pause = |editor: &mut Editor| {
        let command = json!({ "command": "sightline.pauseBridges" });
        let paused = editor.client.request("workspace/executeCommand", command);
        paused.unwrap().unwrap();
    };
    pause(&mut editor);
    assert_eq!(agent.selection_in(""), "");
    editor.select("a.txt", 0, 2);
    let command = json!({ "command": "sightline.sendToAgent", "arguments": ["a.txt"] });
    let refused = editor.client.request("workspace/executeCommand", command);
    assert_eq!(refused.unwrap().unwrap_err()["data"]["kind"], "unsupported");
    assert_eq!(agent.rest(), [] as [Value; 0]);
    pause(&mut editor);
    assert_eq!(agent.selection_in(path), "on");
}

#[test]
fn the_editor_learns_of_connected_agents() {
    let mut editor = Editor::start(claude());
    let settings = json!({ "settings": { "notifications": true, "bridges": claude() } });
    editor.notify("workspace/didChangeConfiguration", settings);
    let block = editor
        .client
        .request("sightline/environmentDetails", json!({}));
    block.unwrap().unwrap();
    let port = editor.lock().0.to_string();
    let wait_for = |editor: &mut Editor, agents: &[&str], is_paused: bool| {
        let environment = json!({ "CLAUDE_CODE_SSE_PORT": port });
        let expected =
            json!({ "agents": agents, "isPaused": is_paused, "environment": environment });
        while editor
            .client
            .notified("sightline/didChangeBridges")
            .unwrap()
            != expected
        {}
    };
    let agent = editor.agent();
    wait_for(&mut editor, &["claude-code"], false);
    let pause = json!({ "command": "sightline.pauseBridges", "arguments": [{ "isPaused": true }] });
    let paused = editor.client.request("workspace/executeCommand", pause);
    paused.unwrap().unwrap();
    wait_for(&mut editor, &["claude-code"], true);
    drop(agent);
    wait_for(&mut editor, &[], true);
}

#[test]
fn a_code_action_tells_the_selection_of_other_clients() {
    let mut editor = Editor::start(claude());
    editor.open("a.txt", "one two\n");
    editor.open("b.txt", "three\n");
    let mut agent = editor.agent();
    agent.initialized();
    let path = editor.workspace.path("b.txt");
    assert_eq!(agent.selection_in(path.to_str().unwrap()), "");
    let uri = editor.workspace.uri("a.txt");
    let params = json!({
        "textDocument": { "uri": uri }, "context": { "diagnostics": [] },
        "range": { "start": { "line": 0, "character": 4 }, "end": { "line": 0, "character": 7 } },
    });
    let actions = editor
        .client
        .request("textDocument/codeAction", params.clone());
    actions.unwrap().unwrap();
    let path = editor.workspace.path("a.txt");
    let path = path.to_str().unwrap();
    assert_eq!(agent.selection_in(path), "two");
    // The range may not fit a changed text.
    let changes = json!([{ "text": "SECOND VERSION\n" }]);
    let document = json!({ "uri": uri, "version": 2 });
    editor.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": changes }),
    );
    assert_eq!(agent.selection_in(path), "");
    // The selection that the client sends itself counts.
    editor.select("a.txt", 0, 6);
    assert_eq!(agent.selection_in(path), "SECOND");
    let actions = editor.client.request("textDocument/codeAction", params);
    actions.unwrap().unwrap();
    assert_eq!(agent.rest(), [] as [Value; 0]);
}
