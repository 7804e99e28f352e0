//! Settings from their three sources, and messages about invalid ones.

use serde_json::{Value, json};
use sightline_lsp::main_loop::Options;

use crate::harness::{Server, Workspace};

fn open_outside(server: &mut Server, workspace: &Workspace) -> String {
    let outside = workspace.root().with_file_name("outside.txt");
    std::fs::write(&outside, "x").unwrap();
    let uri = crate::harness::uri(&outside);
    server.open(&uri, "x");
    uri
}

#[test]
fn an_invalid_setting_is_reported_once_and_the_server_starts() {
    let workspace = Workspace::new(&[]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["environment"] = json!({ "ignoredFiles": "lok" });
    let mut server = Server::initialized(params);
    let message = server.notified("window/showMessage").unwrap();
    let text = message["message"].as_str().unwrap();
    assert!(
        text.contains("environment.ignoredFiles") && text.contains("lok"),
        "{text}"
    );
    assert!(
        !text.contains('\n'),
        "Neovim blocks on more than one line: {text}"
    );
    server.send_notification(
        "workspace/didChangeConfiguration",
        json!({ "settings": { "log": {} } }),
    );
    server.call("sightline/checkAccess", json!({}));
    let again = |message: &&Value| message["method"] == "window/showMessage";
    assert_eq!(server.set_aside().iter().filter(again).count(), 0);
    assert_eq!(server.end(), 0);
}

#[test]
fn settings_change_while_the_server_runs() {
    let workspace = Workspace::new(&[(".clineignore", "secret.txt\n"), ("secret.txt", "x")]);
    let mut server = Server::start(&workspace);
    open_outside(&mut server, &workspace);
    assert!(!server.block(json!({})).contains("outside.txt"));
    let show = json!({ "sightline": { "environment": { "outsideFiles": "show" } } });
    server.send_notification(
        "workspace/didChangeConfiguration",
        json!({ "settings": show }),
    );
    assert!(server.block(json!({})).contains("../outside.txt"));
    let path = workspace.root().with_file_name("outside.txt");
    let error = server.refused("sightline/readFile", json!({ "path": path }));
    assert_eq!(error["data"]["kind"], "accessDenied");
    let allow = json!({ "sightline": { "access": { "outsideWorkspace": "allow" } } });
    server.send_notification(
        "workspace/didChangeConfiguration",
        json!({ "settings": allow }),
    );
    assert_eq!(
        server.call("sightline/readFile", json!({ "path": path }))["text"],
        "x"
    );
    let command = json!({ "command": "grep -r x ." });
    let judge = |server: &mut Server| {
        server.call("sightline/checkAccess", command.clone())["command"].clone()
    };
    let refused = judge(&mut server);
    assert_eq!(refused["denied"][0]["path"], "secret.txt", "{refused}");
    let allow = json!({ "sightline": { "access": { "recursiveReaders": "allow" } } });
    server.send_notification(
        "workspace/didChangeConfiguration",
        json!({ "settings": allow }),
    );
    assert_eq!(judge(&mut server)["allowed"], true);
    assert_eq!(server.end(), 0);
}

#[test]
fn the_section_is_pulled_from_clients_that_answer() {
    let workspace = Workspace::new(&[]);
    let mut params = workspace.initialize();
    params["capabilities"] = json!({ "workspace": { "configuration": true } });
    let mut server = Server::bare(Options::default());
    server.answer_with(|method, params| {
        (method == "workspace/configuration").then(|| {
            assert_eq!(params, &json!({ "items": [{ "section": "sightline" }] }));
            json!([{ "environment": { "sections": { "currentTime": { "enabled": false } } } }])
        })
    });
    server.initialize(params);
    server
        .wait_for(|message| message["method"] == "workspace/configuration")
        .unwrap();
    // The response was sent before this request, so it is in effect.
    assert!(!server.block(json!({})).contains("Current Time"));
    assert_eq!(server.end(), 0);
}

#[test]
fn data_goes_where_the_setting_says_and_is_private() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut server = Server::start(&workspace);
    let tracked = json!({ "taskId": "t", "path": "a.txt", "operation": "read_tool" });
    server.call("sightline/trackFile", tracked);
    let file = workspace.data().join("tasks/t/task_metadata.json");
    assert!(file.exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(file.parent().unwrap()), 0o700);
        assert_eq!(mode(&workspace.data()), 0o700);
    }
    assert_eq!(server.end(), 0);
}

#[test]
fn helix_sees_results_of_commands() {
    let workspace = Workspace::new(&[("a.txt", "x"), (".clineignore", "secret\n")]);
    let mut params = workspace.initialize();
    params["clientInfo"]["name"] = json!("helix");
    let mut server = Server::initialized(params);
    let command = |name: &str, argument: Value| json!({ "command": name, "arguments": [argument] });
    let check = command("sightline.checkAccess", json!({ "paths": ["secret"] }));
    let result = server.call("workspace/executeCommand", check);
    assert_eq!(result["paths"][0]["access"], "denied");
    let shown = server.notified("window/showMessage").unwrap();
    assert!(
        shown["message"].as_str().unwrap().contains("denied"),
        "{shown}"
    );

    let block = command(
        "sightline.environmentDetails",
        json!({ "includeFiles": true }),
    );
    server.call("workspace/executeCommand", block);
    let shown = |message: &Value| message["method"] == "window/showDocument";
    let document = server.wait_for(shown).unwrap();
    let path = document["params"]["uri"]
        .as_str()
        .unwrap()
        .strip_prefix("file://")
        .unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains("# Helix Open Tabs"), "{text}");
    assert!(std::fs::metadata(path).unwrap().permissions().readonly());
    assert!(
        std::path::Path::new(path).starts_with(std::fs::canonicalize(workspace.data()).unwrap())
    );

    let bad = command("sightline.readFile", json!({ "path": "secret" }));
    let error = server.refused("workspace/executeCommand", bad);
    assert_eq!(error["data"]["kind"], "accessDenied");
    let error = server.refused(
        "workspace/executeCommand",
        json!({ "command": "sightline.no" }),
    );
    assert!(
        error["message"].as_str().unwrap().contains("sightline.no"),
        "{error}"
    );
    assert_eq!(server.end(), 0);
}
