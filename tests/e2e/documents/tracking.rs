//! Files a task has seen, and changes since then, across restarts.

use serde_json::{Value, json};

use crate::harness::{Server, Workspace};

#[test]
fn an_external_edit_is_reported_once_and_stays_changed_until_read() {
    let workspace = Workspace::new(&[("a.txt", "one")]);
    let mut server = Server::start(&workspace);
    server.call(
        "sightline/readFile",
        json!({ "path": "a.txt", "taskId": "t" }),
    );
    workspace.write("a.txt", "two");
    let peek = json!({ "taskId": "t", "consume": false });
    for _ in 0..2 {
        assert!(
            server
                .block(peek.clone())
                .contains("# Recently Modified Files")
        );
    }
    let text = server.block(json!({ "taskId": "t" }));
    assert!(text.contains("\na.txt\n\n# Current Time"), "{text}");
    assert!(
        !server
            .block(json!({ "taskId": "t" }))
            .contains("# Recently Modified")
    );
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert_eq!(context["changed"], json!(["a.txt"]));
    let sources: Vec<_> = context["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| &f["record_source"])
        .collect();
    assert_eq!(sources, ["read_tool", "user_edited"]);
    server.call(
        "sightline/readFile",
        json!({ "path": "./a.txt", "taskId": "t" }),
    );
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert_eq!(context["changed"], json!([]));
    assert_eq!(server.end(), 0);
}

#[test]
fn the_usage_of_the_window_is_that_of_the_last_model() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let usage = |server: &mut Server| {
        let params = json!({ "taskId": "t", "usage": true });
        server.call("sightline/taskContext", params)["usage"].clone()
    };
    assert_eq!(usage(&mut server), Value::Null);
    let messages = json!([{ "role": "user", "content": "one two three ".repeat(100) }]);
    let params = json!({ "taskId": "t", "messages": messages });
    server.call("sightline/appendMessages", params);
    let params = json!({ "taskId": "t", "modelId": "claude-sonnet-4-5", "providerId": "anthropic", "mode": "act" });
    server.call("sightline/recordModel", params);
    let used = usage(&mut server);
    assert_eq!(
        (&used["modelId"], &used["contextWindow"]),
        (&json!("claude-sonnet-4-5"), &json!(200_000))
    );
    assert!(
        (300..1000).contains(&used["tokens"].as_u64().unwrap()),
        "{used}"
    );
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert_eq!(context.get("usage"), None);
    assert_eq!(server.end(), 0);
}

#[test]
fn the_agents_own_writes_are_not_the_users() {
    let workspace = Workspace::new(&[("a.txt", "one"), ("b.txt", "one")]);
    let mut server = Server::start(&workspace);
    let changed = |server: &mut Server| {
        server.call("sightline/taskContext", json!({ "taskId": "t" }))["changed"].clone()
    };
    for file in ["a.txt", "b.txt"] {
        server.call("sightline/readFile", json!({ "path": file, "taskId": "t" }));
    }
    let edited = |file: &str| json!({ "taskId": "t", "path": file, "operation": "cline_edited" });
    // Reported before the write and after it.
    server.call("sightline/trackFile", edited("a.txt"));
    workspace.write("a.txt", "the agent's");
    workspace.write("b.txt", "the agent's");
    server.call("sightline/trackFile", edited("b.txt"));
    assert_eq!(changed(&mut server), json!([]));
    workspace.write("b.txt", "the user's");
    assert_eq!(changed(&mut server), json!(["b.txt"]));
    assert_eq!(server.end(), 0);
}

#[test]
fn changes_while_no_server_ran_are_found() {
    let workspace = Workspace::new(&[("a.txt", "one"), ("b.txt", "one")]);
    let mut server = Server::start(&workspace);
    for file in ["a.txt", "b.txt"] {
        server.call("sightline/readFile", json!({ "path": file, "taskId": "t" }));
    }
    assert_eq!(server.end(), 0);
    workspace.write("a.txt", "two");
    std::fs::remove_file(workspace.path("b.txt")).unwrap();
    let mut server = Server::start(&workspace);
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert_eq!(
        (&context["changed"], &context["deleted"]),
        (&json!(["a.txt"]), &json!(["b.txt"]))
    );
    let text = server.block(json!({ "taskId": "t" }));
    assert!(text.contains("\na.txt\nb.txt (deleted)\n"), "{text}");
    assert_eq!(server.end(), 0);
}

/// The agent saw the unsaved text; saving it with other line endings is not a change.
#[test]
fn saving_what_the_agent_saw_is_no_change() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("a.txt"), "one\n");
    let document = json!({ "uri": workspace.uri("a.txt"), "version": 2 });
    let change = json!({ "textDocument": document, "contentChanges": [{ "text": "two\n" }] });
    server.send_notification("textDocument/didChange", change);
    let read = server.call(
        "sightline/readFile",
        json!({ "path": "a.txt", "taskId": "t" }),
    );
    assert_eq!(read["source"], "buffer");
    workspace.write("a.txt", "two\r\n");
    server.send_notification("textDocument/didSave", json!({ "textDocument": document }));
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert_eq!(context["changed"], json!([]));
    assert_eq!(server.end(), 0);
}

#[test]
fn models_and_environments_are_recorded_when_changed() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let model =
        json!({ "taskId": "t", "modelId": "m", "providerId": "p", "mode": "plan", "now": 5 });
    assert_eq!(
        server.call("sightline/recordModel", model.clone())["recorded"],
        true
    );
    assert_eq!(
        server.call("sightline/recordModel", model)["recorded"],
        false
    );
    let environment = json!({ "taskId": "t", "now": 6 });
    assert_eq!(
        server.call("sightline/recordEnvironment", environment.clone())["recorded"],
        true
    );
    assert_eq!(
        server.call("sightline/recordEnvironment", environment)["recorded"],
        false
    );
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert_eq!(context["models"][0]["model_provider_id"], "p");
    assert_eq!(context["environments"][0]["host_name"], "test");
    assert_eq!(server.end(), 0);
}

#[test]
fn denied_files_are_neither_tracked_nor_listed() {
    let workspace = Workspace::new(&[("key", "1"), ("a.txt", "1")]);
    let mut server = Server::start(&workspace);
    for file in ["key", "a.txt"] {
        server.call("sightline/readFile", json!({ "path": file, "taskId": "t" }));
    }
    workspace.write(".clineignore", "key\n");
    workspace.write("key", "2");
    workspace.write("a.txt", "2");
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert!(!context.to_string().contains("key"), "{context}");
    assert_eq!(context["changed"], json!(["a.txt"]));
    let text = server.block(json!({ "taskId": "t" }));
    assert!(
        text.contains("\na.txt\n") && !text.contains("key"),
        "{text}"
    );
    let tracked = json!({ "taskId": "t", "path": "key", "operation": "read_tool" });
    let error = server.refused("sightline/trackFile", tracked);
    assert_eq!(error["data"]["kind"], "accessDenied");
    for id in ["", "..", ".x", "a/b", &"x".repeat(129), "a b", "é"] {
        let params = json!({ "taskId": id, "path": "a.txt", "operation": "read_tool" });
        let error = server.refused("sightline/trackFile", params);
        assert_eq!(error["data"]["kind"], "invalidParams", "{id:?}");
    }
    assert_eq!(server.end(), 0);
}
