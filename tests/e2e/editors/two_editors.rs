//! Two editors on one project: the command line, hooks and MCP ask the one that had the focus
//! last, and know the unsaved text of both.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    harness::{Server, Workspace, program},
    hook::hook_with,
    ipc::run,
    mcp,
};

/// A server whose sockets are open, with its name as the open tab.
fn editor(workspace: &Workspace, file: &str) -> Server {
    let mut server = Server::start(workspace);
    server.call("sightline/listTasks", json!({}));
    let tab = json!({ "uri": workspace.uri(file), "isActive": true });
    server.send_notification("sightline/didChangeTabs", json!({ "tabs": [tab] }));
    server
}

/// Reports the focus. The times of files have a resolution of some milliseconds.
fn focus(workspace: &Workspace, server: &mut Server, file: &str) {
    thread::sleep(Duration::from_millis(30));
    let document = json!({ "textDocument": { "uri": workspace.uri(file) } });
    server.send_notification("textDocument/didFocus", document);
    server.call("sightline/checkAccess", json!({}));
}

fn open_unsaved(workspace: &Workspace, server: &mut Server, file: &str, text: &str) {
    server.open(&workspace.uri(file), "saved\n");
    let document = json!({ "uri": workspace.uri(file), "version": 2 });
    let change = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
    server.send_notification("textDocument/didChange", change);
    server.call("sightline/checkAccess", json!({}));
}

fn sample() -> Workspace {
    let workspace = Workspace::new(&[
        (".clineignore", "secret.txt\n"),
        ("one.txt", "saved\n"),
        ("two.txt", "saved\n"),
        ("both.txt", "saved\n"),
        ("secret.txt", "saved\n"),
    ]);
    std::fs::create_dir(workspace.path(".git")).unwrap();
    workspace
}

fn block_of_hook(workspace: &Workspace, session: &str) -> String {
    let input = json!({ "session_id": session, "cwd": workspace.root(), "prompt": "Q" });
    let event = "UserPromptSubmit";
    let answer = hook_with(workspace, event, "claude", &input.to_string(), &[]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let block = answer.pointer("/hookSpecificOutput/additionalContext");
    block.unwrap().as_str().unwrap().to_owned()
}

/// Returns the lines of a section of the block.
fn section<'a>(block: &'a str, heading: &str) -> Vec<&'a str> {
    let mut lines = block.lines().skip_while(|line| !line.ends_with(heading));
    lines.next();
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn the_editor_focused_last_is_asked() {
    let workspace = sample();
    let mut one = editor(&workspace, "one.txt");
    let mut two = editor(&workspace, "two.txt");
    for file in ["one.txt", "two.txt", "one.txt"] {
        let server = if file == "one.txt" {
            &mut one
        } else {
            &mut two
        };
        focus(&workspace, server, file);
        let (_, block, _) = run(&workspace, &["environment"]);
        assert_eq!(section(&block, "Open Tabs"), [file], "{block}");
        let mut client = mcp::Client::spawn(program().arg("mcp"), &workspace);
        client.initialize("2025-11-25");
        let (block, _) = client.call("environment_details", json!({}));
        assert_eq!(section(&block, "Open Tabs"), [file], "{block}");
    }
    let block = block_of_hook(&workspace, "s1");
    assert_eq!(section(&block, "Open Tabs"), ["one.txt"], "{block}");
    // The other one answers when this one has ended.
    assert_eq!(one.end(), 0);
    let (_, block, _) = run(&workspace, &["environment"]);
    assert_eq!(section(&block, "Open Tabs"), ["two.txt"], "{block}");
}

#[test]
fn unsaved_text_of_both_is_known() {
    let workspace = sample();
    let mut one = editor(&workspace, "one.txt");
    let mut two = editor(&workspace, "two.txt");
    focus(&workspace, &mut one, "one.txt");
    focus(&workspace, &mut two, "two.txt");
    for (server, own, text) in [
        (&mut one, "one.txt", "of one\n"),
        (&mut two, "two.txt", "of two\n"),
    ] {
        for file in [own, "both.txt", "secret.txt"] {
            open_unsaved(&workspace, server, file, text);
        }
    }
    let new = workspace.uri("new.txt");
    one.open(&new, "only in one\n");
    one.call("sightline/checkAccess", json!({}));

    let mut client = mcp::Client::spawn(program().arg("mcp"), &workspace);
    client.initialize("2025-11-25");
    let mut check = |both: &str, session: &str| {
        for (file, text) in [
            ("one.txt", "of one\n"),
            ("two.txt", "of two\n"),
            ("both.txt", both),
            ("new.txt", "only in one\n"),
        ] {
            assert_eq!(run(&workspace, &["read", file]).1, text, "{file}");
            let (read, is_error) = client.call("read_file", json!({ "path": file }));
            assert!(!is_error && read.contains(text.trim()), "{file}: {read}");
            assert!(!read.contains("saved\n"), "{file}: {read}");
        }
        assert_eq!(run(&workspace, &["read", "secret.txt"]).0, 1);
        let (_, from_cli, _) = run(&workspace, &["environment"]);
        let (from_mcp, _) = client.call("environment_details", json!({}));
        for block in [from_cli, from_mcp, block_of_hook(&workspace, session)] {
            let mut unsaved = section(&block, "Unsaved Files");
            unsaved.retain(|line| line.ends_with(".txt"));
            unsaved.sort_unstable();
            assert_eq!(
                unsaved,
                ["both.txt", "new.txt", "one.txt", "two.txt"],
                "{block}"
            );
        }
    };
    check("of two\n", "s1");
    focus(&workspace, &mut one, "one.txt");
    check("of one\n", "s2");
    let offline = run(&workspace, &["read", "one.txt", "--offline"]).1;
    assert_eq!(offline, "saved\n");
}

/// A client that reports no focus is used where a document is edited.
#[test]
fn an_edit_counts_as_focus_for_other_clients() {
    let workspace = sample();
    let mut one = editor(&workspace, "one.txt");
    let _two = editor(&workspace, "two.txt");
    let (_, block, _) = run(&workspace, &["environment"]);
    assert_eq!(section(&block, "Open Tabs"), ["two.txt"], "{block}");
    thread::sleep(Duration::from_millis(30));
    open_unsaved(&workspace, &mut one, "both.txt", "edited\n");
    let (_, block, _) = run(&workspace, &["environment"]);
    assert_eq!(section(&block, "Open Tabs"), ["one.txt"], "{block}");
}
