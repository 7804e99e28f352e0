//! Secret values in what agents get, and the log of what they did not get.

use std::{process::Stdio, thread, time::Duration};

use serde_json::{Value, json};

use super::{
    Client,
    servers::{FILES, Session, wrap},
};
use crate::{
    harness::{Server, Workspace, program},
    hook::hook,
    ipc::run,
};

const SECRET: &str = "a8Kd9Lq2Zx7Wm3Rt";

fn workspace() -> Workspace {
    Workspace::new(&[
        (".clineignore", "secret.txt\n"),
        (".env", "TOKEN=a8Kd9Lq2Zx7Wm3Rt\n"),
        ("secret.txt", "SECRET\n"),
        ("copy.txt", "copied: a8Kd9Lq2Zx7Wm3Rt\n"),
    ])
}

fn decisions(workspace: &Workspace, arguments: &[&str]) -> Vec<Value> {
    let (code, output, errors) = run(workspace, &[&["log", "--json"], arguments].concat());
    assert_eq!(code, 0, "{errors}");
    let listed: Value = serde_json::from_str(&output).unwrap();
    listed["decisions"].as_array().unwrap().clone()
}

#[test]
fn tools_redact_values_and_refusals_are_logged() {
    let workspace = workspace();
    let mut client = Client::open(&workspace, &[]);
    let text = client.text("read_file", json!({ "path": "copy.txt" }));
    assert!(text.contains("copied: [hidden: .env]"), "{text}");
    client.text("checkpoint_create", json!({}));
    workspace.write("copy.txt", "now: a8Kd9Lq2Zx7Wm3Rt\n");
    let diff = client.text("checkpoint_diff", json!({ "from": "last" }));
    assert!(
        diff.contains("+now: [hidden: .env]") && !diff.contains(SECRET),
        "{diff}"
    );
    assert!(client.call("read_file", json!({ "path": "secret.txt" })).1);

    let input = |tool: &str, more: Value| {
        let mut input = json!({
            "session_id": "s", "cwd": workspace.root(), "tool_name": tool,
            "tool_input": { "command": "cat secret.txt # private" },
        });
        input
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        input.to_string()
    };
    let refused = hook(
        &workspace,
        "PreToolUse",
        "claude",
        &input("Bash", json!({})),
    );
    assert!(refused.contains("deny"), "{refused}");
    let response = json!({ "tool_response": { "stdout": format!("x {SECRET}"), "code": 0 } });
    let answer = hook(
        &workspace,
        "PostToolUse",
        "claude",
        &input("Bash", response),
    );
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let output = &answer["hookSpecificOutput"]["updatedToolOutput"];
    assert_eq!(*output, json!({ "stdout": "x [hidden: .env]", "code": 0 }));
    let same = json!({ "tool_response": { "stdout": "x" } });
    assert_eq!(
        hook(&workspace, "PostToolUse", "claude", &input("Bash", same)),
        ""
    );

    let logged = decisions(&workspace, &[]);
    let seen: Vec<[&str; 4]> = logged
        .iter()
        .map(|decision| {
            ["door", "tool", "verdict", "agent"].map(|name| decision[name].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        seen,
        [
            ["hook", "Bash", "redacted", "claude"],
            ["hook", "Bash", "denied", "claude"],
            ["mcp", "read_file", "denied", "test"],
            ["mcp", "checkpoint_diff", "redacted", "test"],
            ["mcp", "read_file", "redacted", "test"],
        ]
    );
    let subject = logged[1]["subject"].as_str().unwrap();
    assert!(
        subject.starts_with("cat #") && !subject.contains("private"),
        "{subject}"
    );
    assert_eq!(logged[1]["rule"]["source"], ".clineignore");
    assert_eq!(decisions(&workspace, &["--agent", "claude"]).len(), 2);
    assert_eq!(decisions(&workspace, &["--since", "2h"]).len(), 5);
    let (_, text, _) = run(&workspace, &["log"]);
    assert_eq!(text.lines().count(), 5);
    assert!(!text.contains(SECRET), "{text}");
    let (_, doctor, _) = run(&workspace, &["doctor"]);
    assert!(
        doctor.contains("2 reads refused and 3 redacted today"),
        "{doctor}"
    );
}

#[test]
fn a_server_redacts_texts_and_logs_refused_requests() {
    let workspace = workspace();
    let mut server = Server::start(&workspace);
    let redact = |server: &mut Server| {
        let texts = json!({ "texts": [format!("a {SECRET}"), "b"] });
        server.call("sightline/redact", texts)
    };
    let redacted = redact(&mut server);
    assert_eq!(redacted["texts"], json!(["a [hidden: .env]", "b"]));
    assert_eq!(redacted["hidden"][0]["count"], 1);
    server.refused("sightline/readFile", json!({ "path": "secret.txt" }));
    let listed = server.call("sightline/listDecisions", json!({}));
    let decision = &listed["decisions"][0];
    assert_eq!(decision["door"], "lsp");
    assert_eq!(decision["tool"], "sightline/readFile");
    assert_eq!(decision["subject"], "secret.txt");
    // The file is read again when it changes.
    workspace.write(".env", "TOKEN=another-Qx7Wm3RtYb1\n");
    let redacted = redact(&mut server);
    assert_eq!(redacted["texts"][0], format!("a {SECRET}"));
    // In terminals too.
    let terminal = json!({
        "id": "1", "command": "make", "isBusy": true, "newOutput": "got another-Qx7Wm3RtYb1\n",
    });
    server.send_notification(
        "sightline/didChangeTerminals",
        json!({ "terminals": [terminal] }),
    );
    let block = server.block(json!({}));
    assert!(block.contains("got [hidden: .env]"), "{block}");
    let listed = server.call("sightline/listDecisions", json!({ "limit": 1 }));
    let decision = &listed["decisions"][0];
    assert_eq!(decision["door"], "block");
    assert_eq!(decision["verdict"], "redacted");
    assert_eq!(decision["subject"], ".env");
    assert_eq!(server.end(), 0);
}

#[test]
fn processes_that_log_at_the_same_time_lose_no_line() {
    let workspace = workspace();
    let start = || {
        program()
            .args(["read", "secret.txt", "--root"])
            .arg(workspace.root())
            .arg("--storage")
            .arg(workspace.data())
            .current_dir(workspace.root())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut finished = 0;
    for round in 0..6 {
        let mut readers: Vec<_> = (0..8).map(|_| start()).collect();
        // Some are killed at any point of their work.
        thread::sleep(Duration::from_millis(round * 5));
        for reader in readers.iter_mut().step_by(3) {
            let _ = reader.kill();
        }
        for mut reader in readers {
            finished += usize::from(reader.wait().unwrap().code() == Some(1));
        }
    }
    let logged = decisions(&workspace, &[]);
    assert!(finished >= 30 && logged.len() >= finished, "{finished}");
    assert!(
        logged
            .iter()
            .all(|line| line["door"] == "cli" && line["tool"] == "read")
    );
}

/// Servers map paths to contents, and describe what they send.
#[test]
fn names_of_members_and_details_of_items_are_judged() {
    let workspace = Workspace::new(FILES);
    let key = "sk-live-51H8x9JkLmNoP";
    let files = json!({ ".env": "short", "a.txt": "alpha", "private/key.txt": ["short"], key: 1 });
    let result = json!({
        "content": [
            { "type": "text", "text": files.to_string(), "annotations": { "x": key }, "_meta": { "x/y": key } },
            { "type": "text", "text": { "x": key } },
            { "type": "resource", "resource": { "uri": "x://a", "title": key }, "_meta": { "x": key } },
            { "type": "resource_link", "uri": "x://a", "name": "a", "title": key },
            { "type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": { "x": key } },
        ],
        "structuredContent": { "files": files },
    });
    let reply = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let script = format!("read -r line; echo '{reply}'; cat");
    let mut session = Session::start(wrap(&workspace).args(["sh", "-c", &script]));
    session.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }),
    );
    let result = session.response(1)["result"].clone();
    let shown = "[hidden: .env]";
    let files = json!({ "a.txt": "alpha", shown: 1 });
    assert_eq!(
        result,
        json!({
            "content": [
                { "type": "text", "text": files.to_string(), "annotations": { "x": shown }, "_meta": { "x/y": shown } },
                { "type": "text", "text": { "x": shown } },
                { "type": "resource", "resource": { "uri": "x://a", "title": shown }, "_meta": { "x": shown } },
                { "type": "resource_link", "uri": "x://a", "name": "a", "title": shown },
                { "type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": { "x": shown } },
                { "type": "text", "text": "[Sightline: 2 names hidden.]" },
            ],
            "structuredContent": { "files": files },
        })
    );
}
