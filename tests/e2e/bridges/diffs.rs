//! Changes that Claude Code proposes, shown in an editor.

use serde_json::{Value, json};

use super::{
    Editor,
    claude::{Agent, claude},
};
use crate::documents::example;

const OPEN: &str = "sightline/openDiff";
const CLOSE: &str = "sightline/closeDiff";

/// Starts a server for an editor that shows diffs.
fn start() -> (Editor, Agent) {
    let mut editor = Editor::start_with(claude(), json!({ "openDiff": true }));
    // The tests answer requests for diffs.
    let client = &mut editor.client;
    client.answer_with(|method, _| (method != OPEN).then_some(Value::Null));
    editor.open("a.txt", "one\n");
    let agent = editor.agent();
    (editor, agent)
}

fn propose(agent: &mut Agent, id: u64, path: &str, contents: &str) {
    let arguments = json!({
        "old_file_path": path, "new_file_path": path, "new_file_contents": contents,
        "tab_name": format!("tab {id}"),
    });
    call(agent, id, "openDiff", arguments);
}

fn call(agent: &mut Agent, id: u64, name: &str, arguments: Value) {
    agent.send(json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": name, "arguments": arguments },
    }));
}

/// Returns the texts of the response to request `id`, and whether it is an error.
fn response(agent: &mut Agent, id: u64) -> (Vec<String>, bool) {
    loop {
        let message = agent.receive().expect("a response");
        if message["id"] == id {
            let parts = message["result"]["content"].as_array().unwrap();
            let texts = parts.iter().map(|part| part["text"].as_str().unwrap());
            let is_error = message["result"]["isError"] == true;
            return (texts.map(str::to_owned).collect(), is_error);
        }
    }
}

impl Editor {
    fn path_of(&self, name: &str) -> String {
        self.workspace.path(name).to_str().unwrap().to_owned()
    }

    /// Returns the request for a diff.
    fn asked(&mut self) -> Value {
        self.client
            .wait_for(|message| message["method"] == OPEN)
            .unwrap()
    }

    fn answer(&mut self, asked: &Value, result: Value) {
        let response = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        self.client.send(&response).unwrap();
    }

    fn closed(&mut self) -> String {
        let params = self.client.notified(CLOSE).unwrap();
        params["diffId"].as_str().unwrap().to_owned()
    }

    fn checkpoints(&mut self) -> Vec<Value> {
        let listed = self.client.request("sightline/listCheckpoints", json!({}));
        listed.unwrap().unwrap()["checkpoints"]
            .as_array()
            .unwrap()
            .clone()
    }
}

#[test]
fn an_accepted_change_is_preceded_by_a_checkpoint() {
    let (mut editor, mut agent) = start();
    let path = editor.path_of("a.txt");
    propose(&mut agent, 5, &path, "two\n");
    let asked = editor.asked();
    let params = &asked["params"];
    let expected = json!({
        "diffId": params["diffId"], "uri": editor.workspace.uri("a.txt"), "path": "a.txt",
        "contents": "two\n", "title": "claude-code: a.txt",
    });
    assert_eq!(*params, expected);
    let documented = example("openDiff");
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(params), keys(&documented["params"]));
    assert_eq!(editor.checkpoints(), [] as [Value; 0]);
    editor.answer(&asked, documented["result"].clone());
    let edited = documented["result"]["contents"].as_str().unwrap();
    assert_eq!(
        response(&mut agent, 5),
        (vec!["FILE_SAVED".to_owned(), edited.to_owned()], false)
    );
    let taken = editor.checkpoints();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0]["turn"]["agent"], "claude-code");
    assert_eq!(taken[0]["turn"]["turn"], params["diffId"]);
    // The agent writes the file.
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");

    // Without edits of the user, the proposed text.
    propose(&mut agent, 6, &editor.path_of("new.txt"), "new\n");
    let asked = editor.asked();
    editor.answer(&asked, json!({ "accepted": true }));
    assert_eq!(
        response(&mut agent, 6),
        (vec!["FILE_SAVED".to_owned(), "new\n".to_owned()], false)
    );
    assert_eq!(editor.checkpoints().len(), 2);
}

#[test]
fn a_rejected_change_ends_without_a_checkpoint() {
    let (mut editor, mut agent) = start();
    propose(&mut agent, 5, &editor.path_of("a.txt"), "two\n");
    let asked = editor.asked();
    // Other requests are answered in the meantime.
    call(&mut agent, 6, "getDiagnostics", json!({}));
    assert_eq!(response(&mut agent, 6), (vec!["[]".to_owned()], false));
    editor.answer(&asked, json!({ "accepted": false }));
    assert_eq!(
        response(&mut agent, 5),
        (vec!["DIFF_REJECTED".to_owned(), "tab 5".to_owned()], false)
    );
    assert_eq!(editor.checkpoints(), [] as [Value; 0]);
    propose(&mut agent, 7, &editor.path_of("a.txt"), "two\n");
    let asked = editor.asked();
    editor.answer(&asked, json!({ "accepted": "perhaps" }));
    let (texts, is_error) = response(&mut agent, 7);
    assert!(is_error && texts[0].contains("answer"), "{texts:?}");
}

#[test]
fn files_that_agents_may_not_see_are_not_shown() {
    let (mut editor, mut agent) = start();
    let outside = editor.home.path().join("x.txt");
    for (id, path) in [
        (5, editor.path_of("secret.txt")),
        (6, outside.to_str().unwrap().to_owned()),
        (7, editor.path_of("../x.txt")),
    ] {
        propose(&mut agent, id, &path, "two\n");
        let (texts, is_error) = response(&mut agent, id);
        assert!(is_error && !texts[0].contains("shows no"), "{texts:?}");
    }
    call(
        &mut agent,
        8,
        "openDiff",
        json!({ "new_file_path": "a.txt" }),
    );
    assert!(response(&mut agent, 8).1);
    let logged = editor.client.request("sightline/listDecisions", json!({}));
    let logged = logged.unwrap().unwrap()["decisions"].take();
    let logged = logged.as_array().unwrap();
    assert!(logged.iter().all(|line| line["door"] == "bridge"));
    assert!(logged.iter().any(|line| line["subject"] == "secret.txt"));
    // The rules change while the user decides.
    propose(&mut agent, 9, &editor.path_of("a.txt"), "two\n");
    let asked = editor.asked();
    editor.workspace.write(".clineignore", "*.txt\n");
    editor.answer(&asked, json!({ "accepted": true }));
    let (texts, is_error) = response(&mut agent, 9);
    assert!(is_error && texts[0].contains(".clineignore"), "{texts:?}");
    assert_eq!(editor.checkpoints(), [] as [Value; 0]);
}

#[test]
fn an_editor_that_cannot_show_changes_is_not_asked() {
    let mut editor = Editor::start(claude());
    let mut agent = editor.agent();
    propose(&mut agent, 5, &editor.path_of("a.txt"), "two\n");
    let (texts, is_error) = response(&mut agent, 5);
    assert!(
        is_error && texts[0].contains("shows no changes"),
        "{texts:?}"
    );
    call(&mut agent, 6, "closeAllDiffTabs", json!({}));
    assert_eq!(
        response(&mut agent, 6),
        (vec!["CLOSED_0_DIFF_TABS".to_owned()], false)
    );
    editor.checkpoints();
    let messages = editor.client.set_aside();
    assert!(messages.iter().all(|message| message["method"] != CLOSE));
}

#[test]
fn diffs_are_closed_by_the_agent_the_user_and_a_lost_connection() {
    let (mut editor, mut agent) = start();
    let path = editor.path_of("a.txt");
    let open = |editor: &mut Editor, agent: &mut Agent, id| {
        propose(agent, id, &path, "two\n");
        editor.asked()
    };
    let id_of = |asked: &Value| asked["params"]["diffId"].as_str().unwrap().to_owned();

    let first = open(&mut editor, &mut agent, 5);
    call(&mut agent, 6, "close_tab", json!({ "tab_name": "tab 5" }));
    assert!(response(&mut agent, 5).1);
    assert_eq!(
        response(&mut agent, 6),
        (vec!["TAB_CLOSED".to_owned()], false)
    );
    assert_eq!(editor.closed(), id_of(&first));
    // Too late.
    editor.answer(&first, json!({ "accepted": true }));

    let asked: Vec<Value> = (10..12)
        .map(|id| open(&mut editor, &mut agent, id))
        .collect();
    call(&mut agent, 12, "closeAllDiffTabs", json!({}));
    assert_eq!(
        response(&mut agent, 12),
        (vec!["CLOSED_2_DIFF_TABS".to_owned()], false)
    );
    let mut closed = [editor.closed(), editor.closed()];
    let mut expected = [id_of(&asked[0]), id_of(&asked[1])];
    closed.sort();
    expected.sort();
    assert_eq!(closed, expected);

    let asked = open(&mut editor, &mut agent, 20);
    let paused =
        json!({ "command": "sightline.pauseBridges", "arguments": [{ "isPaused": true }] });
    editor
        .client
        .request("workspace/executeCommand", paused)
        .unwrap()
        .unwrap();
    assert_eq!(editor.closed(), id_of(&asked));
    assert!(response(&mut agent, 20).1);
    propose(&mut agent, 21, &path, "two\n");
    assert!(response(&mut agent, 21).1);
    let resumed =
        json!({ "command": "sightline.pauseBridges", "arguments": [{ "isPaused": false }] });
    editor
        .client
        .request("workspace/executeCommand", resumed)
        .unwrap()
        .unwrap();

    let asked = open(&mut editor, &mut agent, 30);
    drop(agent);
    assert_eq!(editor.closed(), id_of(&asked));
    assert_eq!(editor.checkpoints(), [] as [Value; 0]);
}

#[test]
fn a_change_of_a_file_that_has_changed_is_shown_again_with_the_edits() {
    let (mut editor, mut agent) = start();
    propose(&mut agent, 5, &editor.path_of("a.txt"), "two\n");
    let asked = editor.asked();
    editor
        .workspace
        .write("a.txt", "saved by another program\n");
    editor.answer(&asked, json!({ "accepted": true, "contents": "mine\n" }));
    let again = editor.asked();
    assert_eq!(again["params"]["contents"], "mine\n");
    assert_eq!(again["params"]["diffId"], asked["params"]["diffId"]);
    let said = editor.client.notified("window/showMessage").unwrap();
    let said = said["message"].as_str().unwrap();
    assert!(said.contains("the file has changed"), "{said}");
    editor.answer(&again, json!({ "accepted": true }));
    assert_eq!(
        response(&mut agent, 5),
        (vec!["FILE_SAVED".to_owned(), "mine\n".to_owned()], false)
    );
    assert_eq!(editor.checkpoints().len(), 1);
}

#[test]
fn folders_and_large_texts_are_not_shown() {
    let (mut editor, mut agent) = start();
    std::fs::create_dir(editor.workspace.path("folder")).unwrap();
    propose(&mut agent, 5, &editor.path_of("folder"), "two\n");
    let (texts, is_error) = response(&mut agent, 5);
    assert!(
        is_error && texts[0].contains("not a regular file"),
        "{texts:?}"
    );
    let large = "a".repeat((2 << 20) + 1);
    propose(&mut agent, 6, &editor.path_of("a.txt"), &large);
    let (texts, is_error) = response(&mut agent, 6);
    assert!(is_error && texts[0].contains("too large"), "{texts:?}");
    propose(&mut agent, 7, &editor.path_of("a.txt"), "two\n");
    assert_eq!(editor.asked()["params"]["contents"], "two\n");
}
