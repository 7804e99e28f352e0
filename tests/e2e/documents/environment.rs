//! The environment block over the wire: editor state, deltas, consumption.

use serde_json::{Value, json};

use crate::harness::{Server, Workspace, holds_null};

/// Sends everything a full client sends, in a workspace with secrets.
fn full(workspace: &Workspace, server: &mut Server) {
    let tab = |name: &str| json!({ "uri": workspace.uri(name), "group": 1 });
    server.send_notification(
        "sightline/didChangeTabs",
        json!({ "tabs": [tab("src/main.rs"), tab(".env"), tab("README.md"), tab("src/main.rs"),
            { "uri": "untitled:Untitled-1" }, tab("gone.rs")] }),
    );
    server.send_notification(
        "sightline/didChangeVisibleEditors",
        json!({ "editors": [
            { "uri": workspace.uri(".env"), "isActive": true },
            { "uri": workspace.uri("README.md"), "visibleRanges": [
                { "start": { "line": 0, "character": 0 }, "end": { "line": 5, "character": 0 } }] },
        ] }),
    );
    server.send_notification(
        "sightline/didChangeTerminals",
        json!({ "terminals": [
            { "id": 1, "command": "cargo watch", "isBusy": true, "newOutput": "Compiling shop\n" },
            { "id": "two", "command": "cargo test", "isBusy": false, "newOutput": "ok. 3 passed\n" },
            { "id": "three", "command": "cat .env", "isBusy": false, "newOutput": "PAYMENT_KEY=1\n" },
        ] }),
    );
}

fn workspace() -> Workspace {
    Workspace::new(&[
        (".clineignore", ".env*\nsecrets/\n"),
        (".env", "PAYMENT_KEY=1\n"),
        ("secrets/suppliers.csv", ""),
        ("README.md", "# Shop\n"),
        ("src/main.rs", "fn main() {}\n"),
    ])
}

#[test]
fn a_full_client_gets_the_whole_block() {
    let workspace = workspace();
    let mut server = Server::start(&workspace);
    full(&workspace, &mut server);
    let text = server.block(json!({
        "includeFiles": true,
        "sections": ["visibleFiles", "openTabs", "runningTerminals", "inactiveTerminals",
            "currentTime", "files", "workspaceConfiguration", "contextWindow", "mode"],
        "model": { "id": "m", "contextWindow": 200_000 },
        "usage": { "tokensIn": 12_000, "tokensOut": 345 },
    }));
    let root = workspace.root().display().to_string();
    insta::assert_snapshot!("full_block", text.replace(&root, "[ROOT]"));
    for secret in [".env", "PAYMENT", "secrets", "suppliers"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(server.end(), 0);
}

#[test]
fn sections_say_what_was_left_out_and_what_was_derived() {
    let workspace = workspace();
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("README.md"), "# Shop\n");
    let result = server.call("sightline/environmentDetails", json!({}));
    assert!(!holds_null(&result), "{result}");
    let section = |result: &Value, id: &str| -> Value {
        let sections = result["sections"].as_array().unwrap();
        sections
            .iter()
            .find(|section| section["id"] == id)
            .cloned()
            .unwrap_or_default()
    };
    let tabs = section(&result, "openTabs");
    assert_eq!(
        (&tabs["text"], &tabs["derived"]),
        (&json!("README.md"), &json!(true))
    );
    assert_eq!(tabs["heading"], "test Open Tabs");
    full(&workspace, &mut server);
    let result = server.call("sightline/environmentDetails", json!({}));
    let tabs = section(&result, "openTabs");
    assert_eq!(tabs["text"], "src/main.rs\nREADME.md");
    assert!(tabs.get("derived").is_none(), "{tabs}");
    assert_eq!(tabs["omitted"], 3, "{tabs}");
    assert!(result["tokens"].as_u64() > Some(10));
    assert_eq!(server.end(), 0);
}

#[test]
fn terminal_output_is_delivered_once_unless_peeked() {
    let workspace = workspace();
    let mut server = Server::start(&workspace);
    full(&workspace, &mut server);
    let output = "### New Output\nok. 3 passed";
    assert!(server.block(json!({ "consume": false })).contains(output));
    assert!(server.block(json!({})).contains(output));
    let after = server.block(json!({}));
    assert!(!after.contains(output), "{after}");
    assert!(
        after.contains("## Original command: `cargo watch`"),
        "{after}"
    );
    assert_eq!(server.end(), 0);
}

#[test]
fn a_delta_has_what_changed_and_the_time() {
    let workspace = workspace();
    let mut server = Server::start(&workspace);
    full(&workspace, &mut server);
    let first = server.call("sightline/environmentDetails", json!({}));
    let revision = first["revision"].as_u64().unwrap();
    let ids = |result: &Value| -> Vec<String> {
        let sections = result["sections"].as_array().unwrap().iter();
        sections
            .map(|section| section["id"].as_str().unwrap().to_owned())
            .collect()
    };
    // Removing delivered output from the block is not a change.
    let same = server.call(
        "sightline/environmentDetails",
        json!({ "sinceRevision": revision }),
    );
    assert_eq!(ids(&same), ["currentTime"], "{same}");
    server.send_notification("sightline/didChangeTabs", json!({ "tabs": [] }));
    let delta = server.call(
        "sightline/environmentDetails",
        json!({ "sinceRevision": same["revision"] }),
    );
    assert_eq!(ids(&delta), ["openTabs", "currentTime"]);
    let all = server.call(
        "sightline/environmentDetails",
        json!({ "sinceRevision": 999_999 }),
    );
    assert!(ids(&all).len() > 3);
    assert_eq!(server.end(), 0);
}

#[test]
fn bad_values_are_named() {
    let workspace = workspace();
    let mut server = Server::start(&workspace);
    for (params, value) in [
        (json!({ "timeZone": "Mars/Olympus" }), "Mars/Olympus"),
        (json!({ "mode": "dream" }), "dream"),
        (
            json!({ "sections": ["visibleFiles", "nonsense"] }),
            "nonsense",
        ),
        (json!({ "maxFiles": -1 }), "-1"),
        (json!({ "taskId": "a/b" }), "a/b"),
        (json!({ "now": i64::MAX }), "9223372036854775807"),
    ] {
        let error = server.refused("sightline/environmentDetails", params.clone());
        assert_eq!(error["data"]["kind"], "invalidParams", "{params}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(value),
            "{params}: {error}"
        );
    }
    assert_eq!(server.end(), 0);
}

/// Terminals print the contents of files; those of denied files stay hidden.
#[test]
fn terminal_output_of_denied_files_is_omitted() {
    let workspace = workspace();
    let mut server = Server::start(&workspace);
    let output = "diff --git a/.env b/.env\n+++ b/.env\n+PAYMENT_KEY=2\n\
        diff --git a/README.md b/README.md\n+++ b/README.md\n+welcome\n\
        ==> secrets/suppliers.csv <==\nMill,confidential\n\nconfidential\n\n\
        ==> README.md <==\ndone\n";
    let terminal = json!({ "id": "1", "command": "make", "isBusy": true, "newOutput": output });
    server.send_notification(
        "sightline/didChangeTerminals",
        json!({ "terminals": [terminal] }),
    );
    let text = server.block(json!({}));
    assert!(text.contains("+welcome") && text.contains("done"), "{text}");
    for secret in [".env", "PAYMENT", "suppliers", "confidential"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(server.end(), 0);
}

/// A repository file that cannot be read omits its facts, not the block.
#[cfg(unix)]
#[test]
fn an_unresponsive_repository_does_not_block() {
    let workspace = workspace();
    std::fs::create_dir_all(workspace.path(".git/objects")).unwrap();
    std::fs::create_dir_all(workspace.path(".git/refs")).unwrap();
    workspace.write(".git/HEAD", "ref: refs/heads/main\n");
    let made = std::process::Command::new("mkfifo")
        .arg(workspace.path(".git/config"))
        .status();
    assert!(made.unwrap().success());
    let mut server = Server::start(&workspace);
    for _ in 0..2 {
        let text = server.block(json!({ "includeFiles": true, "taskId": "t" }));
        assert!(text.contains("\"hint\": \"shop\""), "{text}");
    }
    assert_eq!(server.end(), 0);
}
