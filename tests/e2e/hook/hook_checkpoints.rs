//! Turns of agents: their names, and the checkpoints before their first edit and at their end.

#[cfg(target_os = "linux")]
mod kills;
#[cfg(unix)]
mod picker;
mod timeline;
mod ways;
mod working_context;

use std::{
    fs,
    io::Write,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    harness::{Server, Workspace, program},
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
    ask(workspace, session, "a wish");
}

fn ask(workspace: &Workspace, session: &str, prompt: &str) {
    let fields = json!({ "prompt": prompt });
    claude(workspace, "UserPromptSubmit", session, fields);
}

fn stop(workspace: &Workspace, session: &str) {
    claude(workspace, "Stop", session, json!({}));
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
    let listed: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{error}"));
    let listed = listed["checkpoints"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let turns = listed.iter().rev().filter(|one| one["kind"] == "turnStart");
    turns
        .map(|one| &one["turn"])
        .map(|turn| (text(&turn["session"]), text(&turn["turn"])))
        .collect()
}

/// The user may allow the edit, which no other hook sees.
#[test]
fn an_edit_that_the_user_is_asked_about_creates_one() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::initialized(workspace.initialize());
    server.open(&workspace.uri("a.txt"), "unsaved\n");
    server.call("sightline/listTasks", json!({}));
    prompt(&workspace, "s1");
    for (mode, expected, count) in [("bypassPermissions", "deny", 0), ("default", "ask", 1)] {
        let session = if count == 0 { "s0" } else { "s1" };
        let asked = json!({
            "permission_mode": mode, "tool_name": "Edit",
            "tool_input": { "file_path": workspace.path("a.txt") },
        });
        let said = claude(&workspace, "PreToolUse", session, asked);
        assert!(said.contains(&format!("\"{expected}\"")), "{said}");
        assert_eq!(turns(&workspace).len(), count, "{mode}");
    }
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
        ("s1", "claude-1.1"),
        ("s1", "claude-1.2"),
        ("s2", "claude-2.1"),
        ("s3", "claude-3.1"),
        ("s3", "claude-3.2"),
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
    // An edit may create one before the process does.
    run(&workspace, &["checkpoint", "create", "--automatic"]);
    assert_eq!(created(), 1, "only the first");
    assert_eq!(turns(&workspace), []);
}

fn command(workspace: &Workspace, arguments: &[&str]) -> String {
    let (code, text, error) = run(workspace, arguments);
    assert_eq!(code, 0, "{arguments:?}: {error}");
    text
}

fn content(workspace: &Workspace, file: &str) -> String {
    fs::read_to_string(workspace.path(file)).unwrap_or_default()
}

#[test]
fn names_of_turns_are_accepted_wherever_an_id_is() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    run(&workspace, &["checkpoint", "create", "--label", "old"]);
    let turn = |session: &str, text: &str| {
        prompt(&workspace, session);
        edit(&workspace, session, "a.txt");
        workspace.write("a.txt", text);
        stop(&workspace, session);
    };
    turn("s1", "1\n");
    prompt(&workspace, "s1");
    turn("s2", "2\n");
    workspace.write("a.txt", "mine\n");
    turn("s1", "3\n");
    // A prompt without edits counts.
    for (name, text) in [
        ("claude-1.1", "0\n"),
        ("claude-1.1+", "1\n"),
        ("claude-1.2", "1\n"),
        ("claude-1.2+", "1\n"),
        ("claude-2.1", "1\n"),
        ("claude-2.1+", "2\n"),
        ("claude-1.3", "mine\n"),
        ("claude-1.3+", "3\n"),
    ] {
        command(&workspace, &["checkpoint", "restore", "--yes", name]);
        assert_eq!(content(&workspace, "a.txt"), text, "{name}");
    }
    let patch = |arguments: &[&str]| {
        let arguments = [&["checkpoint", "diff", "--patch"], arguments].concat();
        command(&workspace, &arguments)
    };
    assert!(
        patch(&["claude-1.3"]).contains("-mine\n+3"),
        "its own changes"
    );
    assert_eq!(patch(&["claude-1.2"]), "");
    assert!(patch(&["claude-1.1+", "claude-1.3+"]).contains("-1\n+3"));
    assert!(patch(&["claude-1.3", "claude-1.1"]).contains("-mine\n+0"));
    let shown = command(&workspace, &["checkpoint", "show", "claude-1.3"]);
    let (by_turn, before) = shown
        .split_once("changed since the checkpoint before")
        .unwrap();
    assert!(by_turn.contains("changed by the turn\nM"), "{shown}");
    assert!(by_turn.contains("prompt   a wish\n"), "{shown}");
    assert!(before.contains("a.txt"), "{shown}");
    assert!(
        !shown.contains("changes  "),
        "not those of the turn: {shown}"
    );
    let shown = command(&workspace, &["checkpoint", "show", "claude-2.1"]);
    assert!(shown.contains("claude-2.1"), "{shown}");
    command(&workspace, &["checkpoint", "label", "claude-2.1+", "good"]);
    command(&workspace, &["checkpoint", "delete", "--yes", "claude-1.1"]);
    // Other names stay as they are.
    command(
        &workspace,
        &["checkpoint", "restore", "--yes", "claude-1.3"],
    );
    assert_eq!(content(&workspace, "a.txt"), "mine\n");
    let (code, _, error) = run(&workspace, &["checkpoint", "preview", "claude-1.1"]);
    assert!(
        code == 3 && error.contains("the checkpoint before claude-1.1 was removed"),
        "{error}"
    );
    for wrong in ["#1", "claude-1.9", "claude-3.1", "claude-1", "codex-1.1+"] {
        let (code, _, error) = run(&workspace, &["checkpoint", "preview", wrong]);
        assert!(
            code == 3 && error.contains("no checkpoint matches \""),
            "{wrong} {error}"
        );
    }
}

#[test]
fn the_end_of_a_running_turn_is_the_workspace() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    prompt(&workspace, "s1");
    edit(&workspace, "s1", "a.txt");
    workspace.write("a.txt", "1\n");
    let text = command(&workspace, &["checkpoint", "diff", "claude-1.1", "--patch"]);
    assert!(text.contains("-0\n+1"), "{text}");
    let text = command(
        &workspace,
        &["checkpoint", "diff", "claude-1.1", "claude-1.1+", "--patch"],
    );
    assert!(text.contains("-0\n+1"), "{text}");
    let (code, _, error) = run(
        &workspace,
        &["checkpoint", "restore", "--yes", "claude-1.1+"],
    );
    assert!(
        code != 0 && error.contains("claude-1.1 is still running"),
        "{error}"
    );
}

/// Agents do not report the end of a turn that the user interrupts.
#[test]
fn an_interrupted_turn_ends_at_the_next_prompt_or_session_end() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    let turn = |session: &str, text: &str| {
        prompt(&workspace, session);
        edit(&workspace, session, "a.txt");
        workspace.write("a.txt", text);
    };
    turn("s1", "1\n");
    turn("s1", "2\n");
    claude(&workspace, "SessionEnd", "s1", json!({ "reason": "exit" }));
    workspace.write("a.txt", "3\n");
    claude(&workspace, "SessionEnd", "s1", json!({ "reason": "exit" }));
    for (name, text) in [("claude-1.1+", "1\n"), ("claude-1.2+", "2\n")] {
        command(&workspace, &["checkpoint", "restore", "--yes", name]);
        assert_eq!(content(&workspace, "a.txt"), text, "{name}");
    }
    // An agent may go on after the end of a turn, when another hook asks it to.
    turn("s2", "4\n");
    stop(&workspace, "s2");
    edit(&workspace, "s2", "a.txt");
    workspace.write("a.txt", "5\n");
    stop(&workspace, "s2");
    command(
        &workspace,
        &["checkpoint", "restore", "--yes", "claude-2.1+"],
    );
    assert_eq!(content(&workspace, "a.txt"), "5\n");
    assert_eq!(turns(&workspace).len(), 3);
}

#[test]
fn a_subagent_belongs_to_the_turn_that_started_it() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    let child = |event: &str, fields: Value| {
        let mut input = json!({
            "session_id": "child", "parent_session_id": "s1", "cwd": workspace.root(),
            "prompt": "find it", "tool_name": "edit", "tool_input": { "filePath": "a.txt" },
        });
        for (name, value) in fields.as_object().unwrap() {
            input[name] = value.clone();
        }
        hook_with(
            &workspace,
            event,
            "opencode",
            &input.to_string(),
            &["--checkpoints"],
        );
    };
    let parent = |event: &str| {
        child(
            event,
            json!({ "session_id": "s1", "parent_session_id": null }),
        )
    };
    parent("UserPromptSubmit");
    for event in ["UserPromptSubmit", "PreToolUse", "Stop"] {
        child(event, json!({}));
    }
    workspace.write("a.txt", "1\n");
    parent("PreToolUse");
    parent("Stop");
    assert_eq!(
        turns(&workspace),
        [("s1".to_owned(), "opencode-1.1".to_owned())]
    );
    let text = command(
        &workspace,
        &["checkpoint", "diff", "opencode-1.1", "--patch"],
    );
    assert!(text.contains("-0\n+1"), "{text}");
}

#[test]
fn prompts_are_stored_unless_the_setting_says_no() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    let config = tempfile::tempdir().unwrap();
    let stored = |session: &str| {
        let input = json!({
            "session_id": session, "cwd": workspace.root(), "prompt": "fix the parser",
        });
        let mut hook = program()
            .args([
                "hook",
                "UserPromptSubmit",
                "--agent",
                "claude",
                "--checkpoints",
                "--storage",
            ])
            .arg(workspace.data())
            .env("XDG_CONFIG_HOME", config.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = hook.stdin.take().unwrap();
        stdin.write_all(input.to_string().as_bytes()).unwrap();
        drop(stdin);
        hook.wait().unwrap();
        edit(&workspace, session, "a.txt");
        stop(&workspace, session);
        let text = command(&workspace, &["checkpoint", "list", "--json"]);
        let listed: Value = serde_json::from_str(&text).unwrap();
        let listed = listed["checkpoints"].as_array().unwrap();
        let turns = listed.iter().map(|one| &one["turn"]);
        let mut of_session = turns.filter(|turn| turn["session"] == session);
        let turn = of_session.next().unwrap();
        assert!(turn["endedAt"].is_i64(), "{turn}");
        turn["prompt"].clone()
    };
    assert_eq!(stored("s1"), "fix the parser");
    fs::create_dir(config.path().join("sightline")).unwrap();
    let settings = "[checkpoints]\nturnNames = \"none\"\n";
    fs::write(config.path().join("sightline/config.toml"), settings).unwrap();
    assert_eq!(stored("s2"), Value::Null);
    fs::remove_file(config.path().join("sightline/config.toml")).unwrap();
    workspace.write(".sightline.toml", settings);
    assert_eq!(stored("s3"), Value::Null, "the file of a project");
}

/// The record of turns stays on this machine, and names of other machines are not used.
#[test]
fn turns_are_not_pushed() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    ask(&workspace, "s1", "a secret wish");
    edit(&workspace, "s1", "a.txt");
    let remote = workspace.path("../remote.git");
    let git = std::process::Command::new("git")
        .args(["init", "-q", "--bare"])
        .arg(&remote)
        .status();
    assert!(git.unwrap().success());
    let remote = remote.to_str().unwrap();
    command(&workspace, &["checkpoint", "push", remote]);
    let found = std::process::Command::new("grep")
        .args(["-r", "secret wish", remote])
        .output()
        .unwrap();
    assert!(found.stdout.is_empty());
    let log = std::process::Command::new("git")
        .args(["--git-dir", remote, "log", "--all", "--format=%B"])
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&log.stdout);
    assert!(
        log.contains("claude-1.1") && !log.contains("secret"),
        "{log}"
    );
    let other = Workspace::new(&[("a.txt", "1\n")]);
    command(&other, &["checkpoint", "fetch", remote]);
    let (code, _, error) = run(&other, &["checkpoint", "preview", "claude-1.1"]);
    assert_eq!(code, 3, "{error}");
    prompt(&other, "s1");
    edit(&other, "s1", "a.txt");
    let mut kept = turns(&other).into_iter().map(|(_, turn)| turn);
    assert_eq!(kept.next_back().unwrap(), "claude-1.1");
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
    let turn = &shown["checkpoint"]["turn"];
    assert_eq!(
        (&turn["session"], &turn["name"]),
        (&json!("s1"), &json!("claude-1.1"))
    );
    let listed = server.call("sightline/listCheckpoints", json!({}));
    let kept: Vec<&Value> = listed["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["turn"]["name"])
        .collect();
    let [fourth, third] = [json!("claude-1.4"), json!("claude-1.3")];
    assert_eq!(kept, [&fourth, &third, &Value::Null]);
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
    assert_eq!(
        kept.collect::<Vec<_>>(),
        ["claude-1.1", "claude-1.5", "claude-1.6"]
    );
    // Without its label, it is counted again.
    let (code, ..) = run(
        &workspace,
        &["checkpoint", "label", "claude-1.1", "--remove"],
    );
    assert_eq!(code, 0);
    turn();
    let kept = turns(&workspace).into_iter().map(|(_, turn)| turn);
    assert_eq!(kept.collect::<Vec<_>>(), ["claude-1.6", "claude-1.7"]);
    // Turns whose states were removed stay in the list, which says so, however short it is.
    for options in [&["--limit", "8"][..], &[]] {
        let words = [&["checkpoint", "list"][..], options].concat();
        let (_, list, _) = run(&workspace, &words);
        let removed = list.lines().filter(|line| line.contains("no longer saved"));
        assert_eq!(removed.count(), 5, "{list}");
    }
    let (code, _, error) = run(&workspace, &["checkpoint", "restore", "claude-1.2", "-y"]);
    assert!(
        code == 3 && error.contains("list the checkpoints"),
        "{error}"
    );
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
