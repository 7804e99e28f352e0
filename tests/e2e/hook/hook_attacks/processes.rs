//! Other processes, and files of the session.

use std::{fs, os::unix::fs::symlink};

use super::*;
use crate::harness::spawn_in;

#[test]
fn a_stopped_server_does_not_disable_the_check() {
    let workspace = Workspace::new(FILES);
    let (mut child, _client) = spawn_in(&workspace);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    assert!(refuses_prompt(&workspace, "@secret.txt"));
    assert!(!refuses_prompt(&workspace, "@notes.txt"));
    assert!(refuses(&workspace, "x", &json!({ "path": "secret.txt" })));
    assert!(!refuses(&workspace, "x", &json!({ "path": "notes.txt" })));
    // The server is not asked again for each command.
    let many = json!({ "commands": ["ls", "pwd", "cat notes.txt", "date"] });
    assert!(!refuses(&workspace, "x", &many));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// An agent that was started in a folder which a `git checkout` removed.
#[test]
fn a_hook_that_starts_in_a_removed_folder_uses_the_folder_of_its_input() {
    use std::io::Write;

    let workspace = Workspace::new(&[(".env", "K=1\n"), ("a.txt", "a\n")]);
    for (path, refused) in [(".env", true), ("a.txt", false)] {
        fs::create_dir(workspace.path("gone")).unwrap();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "rmdir ../gone && exec \"$@\"", "sh"])
            .arg(crate::harness::program().get_program())
            .args(["hook", "PreToolUse", "--agent", "claude", "--storage"])
            .arg(workspace.data())
            .current_dir(workspace.path("gone"))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let input = json!({
            "cwd": workspace.root(), "tool_name": "Read", "tool_input": { "file_path": path },
        });
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.contains("\"deny\""), refused, "{path}: {said}");
        assert!(!said.contains("could not check"), "{said}");
    }
}

/// Runs the event of a prompt with checkpoints.
fn prompt_is_refused(workspace: &Workspace) -> bool {
    let input = json!({ "session_id": "s", "cwd": workspace.root(), "prompt": "@secret.txt" });
    let input = input.to_string();
    let said = hook_with(
        workspace,
        "UserPromptSubmit",
        "claude",
        &input,
        &["--checkpoints"],
    );
    said.contains("\"block\"")
}

#[test]
fn the_file_of_the_turns_does_not_disable_the_check() {
    let workspace = Workspace::new(FILES);
    let folder = workspace.data().join("agent-sessions");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("claude-s.turn");
    let locked = fs::File::create(&file).unwrap();
    locked.lock().unwrap();
    assert!(prompt_is_refused(&workspace));
    drop(locked);
    fs::remove_file(&file).unwrap();

    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    assert!(prompt_is_refused(&workspace));
    fs::remove_file(&file).unwrap();
}

#[test]
fn a_link_in_place_of_a_file_of_the_session_is_not_followed() {
    let workspace = Workspace::new(FILES);
    let folder = workspace.data().join("agent-sessions");
    fs::create_dir_all(&folder).unwrap();
    for file in ["claude-s.turn", "claude-s.files"] {
        symlink(workspace.path("notes.txt"), folder.join(file)).unwrap();
    }
    let input = json!({
        "session_id": "s", "cwd": workspace.root(), "prompt": "hello", "permission_mode": "plan",
    });
    let input = input.to_string();
    let said = hook_with(
        &workspace,
        "UserPromptSubmit",
        "claude",
        &input,
        &["--checkpoints"],
    );
    assert!(said.contains("additionalContext"), "{said}");
    let text = fs::read_to_string(workspace.path("notes.txt")).unwrap();
    assert_eq!(text, "notes\n");
}
