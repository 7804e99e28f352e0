//! The list of turns, and what changed in and between them.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{ask, command, edit, prompt, stop};
use crate::harness::{Server, Workspace};

pub(super) fn git(workspace: &Workspace, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=U", "-c", "user.email=u@example.org"])
        .args(arguments)
        .current_dir(workspace.root())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(done.unwrap().success(), "{arguments:?}");
}

fn listed_turns(workspace: &Workspace) -> Vec<Value> {
    let mut server = Server::initialized(workspace.initialize());
    let listed = server.call("sightline/listTurns", json!({}));
    listed["turns"].as_array().unwrap().clone()
}

fn paths(files: &Value) -> Vec<String> {
    let files = files.as_array().into_iter().flatten();
    files
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect()
}

/// Two agents at once, and the user between their turns.
#[test]
fn a_turn_lists_what_it_changed_and_what_others_changed_before() {
    let workspace = Workspace::new(&[
        (".clineignore", "*.key\n"),
        ("a.txt", "0\n"),
        ("b.txt", "0\n"),
        ("mine.txt", "0\n"),
    ]);
    git(&workspace, &["init", "-q", "-b", "main"]);
    git(&workspace, &["add", "."]);
    git(&workspace, &["commit", "-qm", "one"]);
    ask(&workspace, "s1", "fix the parser test");
    edit(&workspace, "s1", "a.txt");
    workspace.write("a.txt", "1\n2\n");
    workspace.write("new.key", "secret\n");
    stop(&workspace, "s1");
    // The user edits and switches to a branch.
    workspace.write("mine.txt", "1\n");
    git(&workspace, &["checkout", "-qb", "feature"]);
    ask(&workspace, "s1", "a question");
    stop(&workspace, "s1");
    ask(&workspace, "s1", "the second");
    edit(&workspace, "s1", "a.txt");
    workspace.write("a.txt", "3\n");
    ask(&workspace, "s2", "at the same time");
    edit(&workspace, "s2", "b.txt");
    workspace.write("b.txt", "1\n");
    stop(&workspace, "s2");
    stop(&workspace, "s1");
    let turns = listed_turns(&workspace);
    let names: Vec<&str> = turns
        .iter()
        .map(|turn| turn["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["claude-2.1", "claude-1.3", "claude-1.2", "claude-1.1"]
    );
    let files: Vec<Vec<String>> = turns.iter().map(|turn| paths(&turn["files"])).collect();
    assert_eq!(files[0], ["b.txt"]);
    assert_eq!(files[1], ["a.txt", "b.txt"]);
    assert_eq!(files[2], [""; 0]);
    assert_eq!(files[3], ["a.txt"], "no denied file");
    let lines = &turns[3]["files"][0];
    assert_eq!(
        (&lines["additions"], &lines["deletions"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(turns[0]["files"][0]["sharedWith"], json!(["claude-1.3"]));
    assert_eq!(turns[1]["files"][1]["sharedWith"], json!(["claude-2.1"]));
    assert_eq!(turns[1]["files"][0]["sharedWith"], Value::Null);
    let mut server = Server::initialized(workspace.initialize());
    for (id, only, others) in [
        ("claude-1.3", json!("turn"), Some("claude-2.1")),
        ("claude-1.3", Value::Null, Some("claude-2.1")),
        ("claude-2.1", json!("turn"), Some("claude-1.3")),
        ("claude-1.1", json!("turn"), None),
        ("claude-1.3+", Value::Null, None),
    ] {
        let params = json!({ "id": id, "only": only });
        let preview = server.call("sightline/previewRestore", params);
        let warnings = preview["warnings"].as_array().into_iter().flatten();
        let mut shared = warnings.filter_map(|warning| {
            warning.as_str().unwrap().split_once(
                " ran at the same time and changed the same files. Those changes are reverted too: ",
            )
        });
        assert_eq!(shared.next(), others.map(|name| (name, "b.txt")), "{id}");
    }
    drop(server);
    let outside = &turns[1]["outside"];
    assert_eq!(paths(&outside["files"]), ["mine.txt"]);
    assert_eq!(outside["from"]["branch"], "main");
    assert_eq!(outside["to"]["branch"], "feature");

    command(&workspace, &["checkpoint", "create", "--label", "mine"]);
    let text = command(&workspace, &["checkpoint", "list"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("mine"), "{text}");
    assert!(
        lines[1].contains("  claude-2.1    \"at the same time\"  +1 \u{2212}1  1 file  1 file shared with claude-1.3"),
        "{text}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.trim() == "switched from main to feature: 1 file"),
        "{text}"
    );
    assert!(
        text.contains("claude-1.2    \"a question\"  no changes"),
        "{text}"
    );
    let clock = lines[1].split(' ').next().unwrap();
    assert!(clock.len() == 5 && clock.as_bytes()[2] == b':', "{text}");
    // Shells complete the names of turns, with their prompts, and the ids of checkpoints without one.
    let text = command(&workspace, &["checkpoint", "list", "--ids"]);
    let ids: Vec<&str> = text.lines().collect();
    assert!(ids[0].ends_with("\tmine"), "{text}");
    assert_eq!(ids[1], "claude-2.1\tat the same time");
    let text = command(&workspace, &["checkpoint", "list", "--by-session"]);
    let heads: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("claude-"))
        .collect();
    assert!(heads[0].starts_with("claude-2  1 turn since "), "{text}");
    assert!(heads[1].starts_with("claude-1  3 turns since "), "{text}");
    let text = command(&workspace, &["checkpoint", "show", "claude-1.1+"]);
    assert!(
        text.contains("claude-1.1, 1 of 3 in its session, ")
            && text.contains("; the state after it"),
        "{text}"
    );
    let text = command(&workspace, &["checkpoint", "show", "claude-1.2"]);
    assert!(
        text.contains("; without changes, so") && text.contains("prompt   a question\n"),
        "{text}"
    );

    // A restore says its target, and that another branch is checked out.
    let text = command(
        &workspace,
        &["checkpoint", "restore", "--dry-run", "claude-1.1"],
    );
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("Restore to before turn 1 of claude-1, ")
            && first.ends_with(", on branch main"),
        "{text}"
    );
    assert!(text.contains("warning the checkpoint was created on branch main, and branch feature is checked out now"), "{text}");
}

#[test]
fn turns_are_listed_in_pages() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    for session in ["s1", "s2", "s1", "s1"] {
        prompt(&workspace, session);
        edit(&workspace, session, "a.txt");
        workspace.write("a.txt", &format!("{session}\n"));
        stop(&workspace, session);
    }
    let mut server = Server::initialized(workspace.initialize());
    let mut page = |params: Value| {
        let listed = server.call("sightline/listTurns", params);
        let turns = listed["turns"].as_array().unwrap().iter();
        let names = turns.map(|turn| turn["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(page(json!({ "limit": 2 })), ["claude-1.3", "claude-1.2"]);
    let next = json!({ "limit": 2, "before": "claude-1.2" });
    assert_eq!(page(next), ["claude-2.1", "claude-1.1"]);
    assert!(page(json!({ "before": "claude-1.1" })).is_empty());
    for session in ["s1", "claude-1"] {
        let one = json!({ "session": session, "limit": 2, "before": "claude-1.3" });
        assert_eq!(page(one), ["claude-1.2", "claude-1.1"]);
    }
}
