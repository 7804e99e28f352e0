//! What an agent gets back after a compaction or a pause.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};

use super::{ask, claude, edit, stop};
use crate::{
    harness::{Workspace, program},
    hook::hook_with,
};

fn workspace() -> Workspace {
    Workspace::new(&[
        (".clineignore", "*.key\n"),
        ("read.txt", "0\n"),
        ("stale.txt", "0\n"),
        ("edited.txt", "0\n"),
        ("later-denied.txt", "0\n"),
    ])
}

fn read(workspace: &Workspace, session: &str, file: &str) {
    let fields = json!({ "tool_name": "Read", "tool_input": { "file_path": file } });
    claude(workspace, "PreToolUse", session, fields);
}

/// A turn that reads and edits, and what the user does after it.
fn work(workspace: &Workspace) {
    ask(workspace, "s1", "fix the parser test");
    for file in ["read.txt", "stale.txt", "later-denied.txt"] {
        read(workspace, "s1", file);
    }
    edit(workspace, "s1", "edited.txt");
    workspace.write("edited.txt", "1\n");
    let fields = json!({ "tool_name": "Edit", "tool_input": { "file_path": "edited.txt" } });
    claude(workspace, "PostToolUse", "s1", fields);
    stop(workspace, "s1");
    workspace.write("stale.txt", "changed by the user\n");
    workspace.write(".clineignore", "*.key\nlater-denied.txt\n");
    ask(workspace, "s1", "and the other one");
    stop(workspace, "s1");
}

fn started(workspace: &Workspace, source: &str) -> String {
    claude(workspace, "SessionStart", "s1", json!({ "source": source }))
}

#[test]
fn a_session_that_continues_gets_its_working_context() {
    let workspace = workspace();
    work(&workspace);
    for source in ["compact", "resume"] {
        let answer: Value = serde_json::from_str(&started(&workspace, source)).unwrap();
        let said = &answer["hookSpecificOutput"];
        assert_eq!(said["hookEventName"], "SessionStart");
        let text = said["additionalContext"].as_str().unwrap();
        for part in [
            "# First Prompt\nfix the parser test\n",
            "# Turns\nclaude-1.1 to claude-1.2. ",
            "# Files You Changed\nedited.txt\n",
            "stale.txt (changed by others since; read it again)\n",
            "\nread.txt\n",
        ] {
            assert!(text.contains(part), "{part:?}: {text}");
        }
        assert!(!text.contains("later-denied"), "{text}");
    }
    for source in ["startup", "clear"] {
        assert_eq!(started(&workspace, source), "", "{source}");
    }
}

#[test]
fn a_prompt_that_is_not_stored_is_not_repeated() {
    let workspace = workspace();
    work(&workspace);
    let config = workspace.data().join("config");
    std::fs::create_dir_all(config.join("sightline")).unwrap();
    let settings = "[checkpoints]\nturnNames = \"none\"\n";
    std::fs::write(config.join("sightline/config.toml"), settings).unwrap();
    let input = json!({ "session_id": "s1", "cwd": workspace.root(), "source": "compact" });
    let mut hook = program()
        .args([
            "hook",
            "SessionStart",
            "--agent",
            "claude",
            "--checkpoints",
            "--storage",
        ])
        .arg(workspace.data())
        .env("XDG_CONFIG_HOME", config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = hook.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = hook.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("claude-1.1"), "{text}");
    assert!(!text.contains("parser"), "{text}");
}

/// gemini-cli compresses a conversation without an event after it that can add a text.
#[test]
fn the_next_prompt_after_a_compression_has_the_working_context() {
    let workspace = workspace();
    let gemini = |event: &str, fields: Value| {
        let mut input = json!({ "session_id": "g1", "cwd": workspace.root() });
        for (name, value) in fields.as_object().unwrap() {
            input[name] = value.clone();
        }
        hook_with(
            &workspace,
            event,
            "gemini",
            &input.to_string(),
            &["--checkpoints"],
        )
    };
    gemini("BeforeAgent", json!({ "prompt": "fix the parser test" }));
    let fields = json!({ "tool_name": "read_file", "tool_input": { "file_path": "read.txt" } });
    gemini("BeforeTool", fields);
    assert_eq!(gemini("PreCompress", json!({ "trigger": "auto" })), "");
    let text = gemini("BeforeAgent", json!({ "prompt": "go on" }));
    assert!(text.contains("# Working Context"), "{text}");
    assert!(
        text.contains("fix the parser test") && text.contains("read.txt"),
        "{text}"
    );
    let text = gemini("BeforeAgent", json!({ "prompt": "go on" }));
    assert!(!text.contains("# Working Context"), "{text}");
}
