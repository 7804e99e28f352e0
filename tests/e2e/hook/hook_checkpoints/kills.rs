//! The end of a turn is killed at its calls of the kernel.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::json;

use super::{ask, edit, stop};
use crate::{
    harness::{Workspace, program},
    ipc::run,
    lifecycle::faults::{has_strace, skipped},
};

const CALLS: &[&str] = &[
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "linkat",
    "unlink",
    "mkdir",
    "openat",
];

/// Copies a folder with everything in it, in place of what is there.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

/// Runs the hook at the end of a turn, and kills it at the `nth` call. Returns whether it was.
fn killed_stop(workspace: &Workspace, call: &str, nth: usize) -> bool {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut hook = Command::new("strace")
        .args(["-f", "-qq", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:signal=SIGKILL:when={nth}"))
        .arg("-o")
        .arg(log.path())
        .arg(program().get_program())
        .args([
            "hook",
            "Stop",
            "--agent",
            "claude",
            "--checkpoints",
            "--storage",
        ])
        .arg(workspace.data())
        .current_dir(workspace.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let input = json!({ "session_id": "s1", "cwd": workspace.root() }).to_string();
    let _ = hook.stdin.take().unwrap().write_all(input.as_bytes());
    hook.wait().unwrap();
    fs::read_to_string(log.path()).unwrap().contains("SIGKILL")
}

#[test]
fn a_killed_end_of_a_turn_leaves_a_usable_list() {
    if !has_strace() {
        return skipped("strace is not installed, or may not trace");
    }
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "zero\n")]);
    for text in ["one\n", "two\n"] {
        ask(&workspace, "s1", "change it");
        edit(&workspace, "s1", "a.txt");
        workspace.write("a.txt", text);
        if text == "one\n" {
            stop(&workspace, "s1");
        }
    }
    let before = workspace.data().with_extension("before");
    copy(&workspace.data(), &before);
    let mut kills = 0;
    for call in CALLS {
        for nth in 1..=24 {
            copy(&before, &workspace.data());
            workspace.write("a.txt", "two\n");
            if !killed_stop(&workspace, call, nth) {
                break;
            }
            kills += 1;
            let what = format!("{call}, the {nth}th");
            let (code, listed, error) = run(&workspace, &["checkpoint", "list"]);
            assert_eq!(code, 0, "{what}: {error}");
            for name in ["claude-1.1", "claude-1.2"] {
                assert!(listed.contains(name), "{what}: {listed}");
            }
            let restore = ["checkpoint", "restore", "claude-1.2", "--yes"];
            let (code, _, error) = run(&workspace, &restore);
            assert_eq!(code, 0, "{what}: {error}");
            let text = fs::read_to_string(workspace.path("a.txt")).unwrap();
            assert_eq!(text, "one\n", "{what}");
            // The session goes on.
            ask(&workspace, "s1", "again");
            let (_, listed, error) = run(&workspace, &["checkpoint", "list"]);
            assert!(listed.contains("claude-1.3"), "{what}: {listed}{error}");
        }
    }
    assert!(kills > 20, "{kills}");
}
