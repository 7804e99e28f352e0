//! Checkpoints before the first edit of an agent's turn.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    harness::{Server, Workspace},
    hook::hook_with,
    ipc::run,
};

/// Runs a hook of Claude Code with checkpoints. Returns what it prints.
fn claude(workspace: &Workspace, event: &str, session: &str, fields: Value) -> String {
    let mut input = json!({ "session_id": session, "cwd": workspace.root() });
    for (name, value) in fields.as_object().unwrap() {
        input[name] = value.clone();
    }
    let input = input.to_string();
    hook_with(workspace, event, "claude", &input, &["--checkpoints"])
}

fn prompt(workspace: &Workspace, session: &str) {
    let fields = json!({ "prompt": "a secret wish" });
    claude(workspace, "UserPromptSubmit", session, fields);
}

fn edit(workspace: &Workspace, session: &str, file: &str) -> String {
    let fields = json!({ "tool_name": "Edit", "tool_input": { "file_path": file } });
    claude(workspace, "PreToolUse", session, fields)
}

fn bash(workspace: &Workspace, session: &str, command: &str) {
    let fields = json!({ "tool_name": "Bash", "tool_input": { "command": command } });
    claude(workspace, "PreToolUse", session, fields);
}

/// Returns the session and turn of each checkpoint of a turn, oldest first.
fn turns(workspace: &Workspace) -> Vec<(String, String)> {
    let (_, text, error) = run(workspace, &["checkpoint", "list", "--json", "--offline"]);
    assert!(!text.contains("secret wish"), "{text}");
    let listed: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{error}"));
    let listed = listed["checkpoints"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let turns = listed.iter().rev().map(|one| &one["turn"]);
    turns
        .filter(|turn| turn.is_object())
        .map(|turn| (text(&turn["session"]), text(&turn["turn"])))
        .collect()
}

#[test]
fn the_first_edit_of_a_turn_creates_one() {
    let workspace = Workspace::new(&[(".clineignore", "*.key\n"), ("a.txt", "one\n")]);
    let count = || turns(&workspace).len();
    prompt(&workspace, "s1");
    bash(&workspace, "s1", "cat a.txt | wc -l");
    let read = json!({ "tool_name": "Read", "tool_input": { "file_path": "a.txt" } });
    claude(&workspace, "PreToolUse", "s1", read);
    let refused = edit(&workspace, "s1", "b.key");
    assert!(refused.contains("deny"), "{refused}");
    assert_eq!(count(), 0, "nothing was edited");

    assert_eq!(edit(&workspace, "s1", "a.txt"), "");
    workspace.write("a.txt", "two\n");
    edit(&workspace, "s1", "a.txt");
    bash(&workspace, "s1", "rm a.txt");
    assert_eq!(count(), 1, "one a turn");
    prompt(&workspace, "s1");
    bash(&workspace, "s1", "touch c.txt");
    prompt(&workspace, "s2");
    edit(&workspace, "s2", "a.txt");
    let named = |id: &str| {
        let tool = json!({ "file_path": "a.txt" });
        let fields = json!({ "prompt_id": id, "tool_name": "Write", "tool_input": tool });
        claude(&workspace, "PreToolUse", "s3", fields);
    };
    for id in ["p1", "p1", "p2"] {
        named(id);
    }
    let expected = [
        ("s1", "1"),
        ("s1", "2"),
        ("s2", "1"),
        ("s3", "p1"),
        ("s3", "p2"),
    ];
    let expected = expected.map(|(session, turn)| (session.to_owned(), turn.to_owned()));
    assert_eq!(turns(&workspace), expected);

    // Without the option there is none.
    let input = json!({
        "session_id": "s4", "cwd": workspace.root(),
        "tool_name": "Edit", "tool_input": { "file_path": "a.txt" },
    });
    hook_with(&workspace, "PreToolUse", "claude", &input.to_string(), &[]);
    assert_eq!(count(), 5);
}

/// The first checkpoint of a large folder takes longer than an edit can wait.
#[test]
fn the_first_prompt_in_a_folder_starts_the_first_checkpoint() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let created = || {
        let (_, text, _) = run(&workspace, &["checkpoint", "list", "--json", "--offline"]);
        text.matches("\"createdAt\"").count()
    };
    let input = json!({ "session_id": "s0", "cwd": workspace.root(), "prompt": "p" }).to_string();
    hook_with(&workspace, "UserPromptSubmit", "claude", &input, &[]);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(created(), 0, "not asked for");
    prompt(&workspace, "s1");
    let end = Instant::now() + Duration::from_secs(20);
    while created() == 0 {
        assert!(Instant::now() < end, "no checkpoint");
        thread::sleep(Duration::from_millis(50));
    }
    prompt(&workspace, "s1");
    thread::sleep(Duration::from_millis(500));
    assert_eq!(created(), 1, "only the first");
    assert_eq!(turns(&workspace), []);
}

#[test]
fn steps_are_grouped_by_session_and_numbered() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    run(&workspace, &["checkpoint", "create", "--label", "old"]);
    for (session, turn) in [("s1", 1), ("s2", 2), ("s1", 3), ("s2", 4), ("s2", 5)] {
        prompt(&workspace, session);
        edit(&workspace, session, "a.txt");
        workspace.write("a.txt", &format!("{turn}\n"));
        if turn == 3 {
            run(&workspace, &["checkpoint", "create", "--label", "mine"]);
        }
    }
    let (code, text, error) = run(&workspace, &["checkpoint", "list"]);
    assert_eq!(code, 0, "{error}");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let firsts: Vec<&str> = lines.iter().map(|words| words[0]).collect();
    let (mine, old) = (lines[4][0], lines[8][0]);
    assert_eq!(
        firsts,
        ["claude", "#3", "#2", "#1", mine, "claude", "#2", "#1", old],
        "{text}"
    );
    assert_eq!((lines[0][1], lines[5][1]), ("s2", "s1"), "{text}");
    let (_, text, _) = run(&workspace, &["checkpoint", "list", "--limit", "1"]);
    assert!(text.lines().count() == 2 && text.contains("#3"), "{text}");

    // `#2` is the state before the second turn of the newest session.
    let (code, _, error) = run(&workspace, &["checkpoint", "restore", "--yes", "#2"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "3\n");
    for wrong in ["#0", "#4", "#", "#x"] {
        let (code, _, error) = run(&workspace, &["checkpoint", "preview", wrong]);
        assert!(
            code == 3 && error.contains("no checkpoint matches \"#"),
            "{wrong} {error}"
        );
    }
}

#[test]
fn a_running_server_creates_them_and_keeps_the_newest() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["notifications"] = json!(true);
    params["initializationOptions"]["checkpoints"] = json!({ "keepAutomatic": 2 });
    let mut server = Server::initialized(params);
    server.call("sightline/listTasks", json!({}));
    let labelled = json!({ "label": "mine" });
    server.call("sightline/createCheckpoint", labelled);
    for _ in 0..4 {
        prompt(&workspace, "s1");
        edit(&workspace, "s1", "a.txt");
    }
    let shown = server.notified("sightline/didCreateCheckpoint").unwrap();
    assert_eq!(shown["checkpoint"]["label"], "mine");
    let shown = server.notified("sightline/didCreateCheckpoint").unwrap();
    let turn = json!({ "agent": "claude", "session": "s1", "turn": "1" });
    assert_eq!(shown["checkpoint"]["turn"], turn);
    let listed = server.call("sightline/listCheckpoints", json!({}));
    let kept: Vec<&Value> = listed["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["turn"]["turn"])
        .collect();
    assert_eq!(kept, [&json!("4"), &json!("3"), &Value::Null]);
}

/// A label keeps an automatic checkpoint, also if it is set later, by the running server.
#[test]
fn labelled_ones_are_not_counted() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["checkpoints"] = json!({ "keepAutomatic": 2 });
    let mut server = Server::initialized(params);
    server.call("sightline/listTasks", json!({}));
    let turn = || {
        prompt(&workspace, "s1");
        edit(&workspace, "s1", "a.txt");
    };
    turn();
    let (code, _, error) = run(&workspace, &["checkpoint", "label", "last", "keep"]);
    assert_eq!(code, 0, "{error}");
    for _ in 0..5 {
        turn();
    }
    let kept = turns(&workspace).into_iter().map(|(_, turn)| turn);
    assert_eq!(kept.collect::<Vec<_>>(), ["1", "5", "6"]);
    // Without its label, it is counted again.
    let (code, ..) = run(&workspace, &["checkpoint", "label", "#1", "--remove"]);
    assert_eq!(code, 0);
    turn();
    let kept = turns(&workspace).into_iter().map(|(_, turn)| turn);
    assert_eq!(kept.collect::<Vec<_>>(), ["6", "7"]);
}

/// A folder that cannot have checkpoints does not stop the agent.
#[cfg(unix)]
#[test]
fn a_failure_does_not_stop_the_edit() {
    let workspace = Workspace::new(&[(".clineignore", "*.key\n"), ("a.txt", "one\n")]);
    run(&workspace, &["checkpoint", "create"]);
    workspace.break_store("shop");
    prompt(&workspace, "s1");
    assert_eq!(edit(&workspace, "s1", "a.txt"), "");
}
