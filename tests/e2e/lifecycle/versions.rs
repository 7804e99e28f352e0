//! Data of other versions: that of earlier ones is used, that of later ones is refused and kept.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use sightline_testing::files;

use crate::{
    agents::Home,
    harness::{Server, finished, program},
};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");

/// The data directory of the commands of a home.
fn data(home: &Home) -> PathBuf {
    home.workspace.data().join("sightline")
}

fn run(home: &Home, arguments: &[&str]) -> (i32, String, String) {
    finished(home.command(arguments))
}

fn done(home: &Home, arguments: &[&str]) -> String {
    let (code, output, error) = run(home, arguments);
    assert_eq!(code, 0, "{arguments:?}: {output}{error}");
    output
}

/// A home with a checkpoint, a task, usage of the gateway and an agent.
fn used() -> Home {
    let mut home = Home::new();
    // A folder that contains the home has no checkpoints.
    home.folder = home.workspace.data().with_file_name("home");
    home.workspace.write("a.txt", "one\n");
    home.workspace.write(".clineignore", "secret.txt\n");
    home.workspace.write("secret.txt", "hidden\n");
    home.write(".claude/settings.json", "{}\n");
    done(&home, &["checkpoint", "create", "--label", "kept"]);
    done(&home, &["agents", "install", "--agent", "claude", "--yes"]);
    let log = Path::new(FIXTURES).join("task-logs-0.1.0/undone.jsonl");
    let task = data(&home).join("tasks/t");
    fs::create_dir_all(&task).unwrap();
    fs::copy(log, task.join("conversation.jsonl")).unwrap();
    let usage = json!({ "at": 1_790_000_000_000_i64, "task": "t", "upstream": "u", "usage": {} });
    files::write(
        &data(&home).join("gateway/usage.jsonl"),
        format!("{usage}\n").as_bytes(),
    );
    home
}

/// Everything that a command must not change.
fn everything(home: &Home) -> (files::Files, Vec<String>) {
    let folder = home.workspace.root();
    (files::read(folder.parent().unwrap()), home.snapshot())
}

fn make_newer(home: &Home) {
    fs::write(data(home).join("version"), "2\n").unwrap();
}

/// Asserts that an error names both versions, and what to do.
fn assert_refused(error: &str, what: &str) {
    for part in ["has version 2", "supports 1", "update"] {
        assert!(error.contains(part), "{what}: {error}");
    }
}

#[test]
fn commands_refuse_the_data_of_a_later_version() {
    let home = used();
    for arguments in [&["checkpoint", "list"][..], &["task", "list"], &["usage"]] {
        assert!(!done(&home, arguments).is_empty());
    }
    make_newer(&home);
    let before = everything(&home);
    for command in [
        "checkpoint create",
        "checkpoint list",
        "checkpoint diff last",
        "checkpoint preview last",
        "checkpoint restore last --yes",
        "checkpoint undo --yes",
        "checkpoint prune --keep 1",
        "checkpoint verify",
        "checkpoint stats",
        "task list",
        "task show t",
        "task delete t --yes",
        "task export t",
        "log",
        "usage",
        "mcp list",
        "mcp add fetch",
        "agents status",
        "agents check --agent claude",
        "agents install --agent claude --agent codex --yes",
        "agents uninstall --yes",
        "uninstall --data --yes",
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let (code, output, error) = run(&home, &arguments);
        assert!(code != 0 && output.is_empty(), "{command}: {code} {output}");
        assert_refused(&error, command);
        assert_eq!(everything(&home), before, "{command}");
    }
    let (code, report, _) = run(&home, &["doctor"]);
    assert_eq!(code, 1);
    assert_refused(&report, "doctor");
    assert!(!report.contains("chown"), "{report}");
    assert_eq!(everything(&home), before);
}

/// Access rules are files of the workspace, so they hold without the data directory.
#[test]
fn rules_hold_without_the_data_of_a_later_version() {
    let home = used();
    make_newer(&home);
    let before = everything(&home);
    assert_eq!(run(&home, &["access", "secret.txt"]).0, 1);
    assert_eq!(run(&home, &["read", "secret.txt"]).0, 1);
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": home.workspace.root(),
        "tool_name": "Read", "tool_input": { "file_path": home.workspace.path("secret.txt") },
    });
    let mut hook = program()
        .args(["hook", "PreToolUse", "--agent", "claude"])
        .current_dir(home.workspace.root())
        .env("HOME", &home.folder)
        .env("XDG_DATA_HOME", home.workspace.data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = hook.stdin.take().unwrap();
    input.write_all(event.to_string().as_bytes()).unwrap();
    drop(input);
    let answer = String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap();
    assert!(answer.contains("\"deny\""), "{answer}");
    assert_eq!(everything(&home), before);
}

/// A server of an earlier version that runs while a later version converts its data.
#[test]
fn a_running_server_refuses_data_that_a_later_version_has_converted() {
    let home = used();
    let mut params = home.workspace.initialize();
    params["initializationOptions"]["storage"]["path"] = json!(data(&home));
    let mut server = Server::initialized(params);
    let tracked = json!({ "taskId": "t", "path": "a.txt", "operation": "read_tool" });
    let message = json!({ "role": "user", "content": "more" });
    let requests = [
        ("sightline/createCheckpoint", json!({})),
        ("sightline/trackFile", tracked),
        (
            "sightline/appendMessages",
            json!({ "taskId": "t", "messages": [message] }),
        ),
    ];
    for (method, params) in &requests {
        server.call(method, params.clone());
    }
    make_newer(&home);
    home.workspace.write("a.txt", "two\n");
    let before = everything(&home);
    for (method, params) in requests {
        let error = server.refused(method, params);
        assert_refused(&error.to_string(), method);
        assert_eq!(everything(&home), before, "{method}");
    }
}

/// `tests/fixtures` has a store and logs that version 0.1.0 wrote.
#[test]
fn data_of_an_earlier_version_is_used() {
    let home = used();
    let mut projects = fs::read_dir(data(&home).join("projects")).unwrap();
    let project = projects.next().unwrap().unwrap().path();
    fs::remove_dir_all(&project).unwrap();
    fs::create_dir(&project).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xf")
        .arg(Path::new(FIXTURES).join("store-0.1.0.tar"));
    assert!(tar.arg("-C").arg(&project).status().unwrap().success());

    let listed = done(&home, &["checkpoint", "list"]);
    for label in ["first", "second", "third"] {
        assert!(listed.contains(label), "{listed}");
    }
    done(&home, &["checkpoint", "verify"]);
    done(&home, &["checkpoint", "restore", "a1d50b39", "--yes"]);
    let main = home.workspace.path("src/main.rs");
    assert_eq!(fs::read_to_string(&main).unwrap(), "fn main() {}\n");
    done(&home, &["checkpoint", "undo", "--yes"]);
    assert!(!main.exists());

    let expected = fs::read(Path::new(FIXTURES).join("task-logs-0.1.0/expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    for (name, expected) in expected.as_object().unwrap() {
        let task = data(&home).join("tasks").join(name);
        fs::create_dir_all(&task).unwrap();
        let log = format!("task-logs-0.1.0/{name}.jsonl");
        let log = fs::read(Path::new(FIXTURES).join(log)).unwrap();
        fs::write(task.join("conversation.jsonl"), &log).unwrap();
        let shown = done(&home, &["task", "show", name]);
        let last = expected["loaded"]["messages"].as_array().unwrap().last();
        let last = last.unwrap().as_str().unwrap();
        assert!(shown.contains(last), "{name}: {last} is not in {shown}");
        let kept = fs::read(task.join("conversation.jsonl")).unwrap();
        assert!(kept == log, "{name}: showing changes nothing");
    }
}
