//! Too little memory for the threads of a pool: an error or a slower result, no panic. An allocation
//! that fails ends the process, so such runs show nothing.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{Workspace, program};

/// Address space above the least with which the program starts, in KiB. A thread needs 2 MiB for its
/// stack, and up to 64 MiB for its heap.
const STEPS: std::ops::Range<u64> = 0..24;
const STEP: u64 = 2 * 1024;

/// Runs the program with a limited address space.
fn run(workspace: &Workspace, limit: u64, arguments: &[&str], input: &str) -> Output {
    // Ends a program that waits for a thread that never starts.
    let script = format!("ulimit -v {limit}; exec timeout 60 \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(program().get_program())
        .args(arguments)
        .current_dir(workspace.root())
        .env("XDG_DATA_HOME", workspace.data())
        .env("HOME", workspace.data())
        // A backtrace needs memory, and can wait for itself when an allocation fails at that time.
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Fails if the program has ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Returns whether the answer of a hook refuses the tool.
fn refuses(output: &Output) -> bool {
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    answer["hookSpecificOutput"]["permissionDecision"] == "deny"
}

#[test]
fn nothing_panics_or_hangs() {
    let workspace = Workspace::new(&[(".clineignore", "secret\n"), ("secret", "DENIED\n")]);
    for file in 0..200 {
        workspace.write(&format!("folder{}/{file}.txt", file % 20), "text\n");
    }
    let unlimited = |arguments: &[&str]| {
        let output = run(&workspace, u64::MAX >> 10, arguments, "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    unlimited(&["checkpoint", "create"]);
    let call = json!({
        "session_id": "s", "cwd": workspace.root(), "hook_event_name": "PreToolUse",
        "tool_name": "Read", "tool_input": { "file_path": workspace.path("secret") },
    })
    .to_string();
    let commands: [(&[&str], &str); 9] = [
        (&["checkpoint", "create"], ""),
        (&["checkpoint", "list"], ""),
        (&["checkpoint", "diff", "last"], ""),
        (&["checkpoint", "restore", "last", "--yes"], ""),
        (&["checkpoint", "verify"], ""),
        (&["checkpoint", "prune", "--keep", "1", "--yes"], ""),
        (&["environment", "--files"], ""),
        (&["tokens"], "some text"),
        (&["hook", "PreToolUse", "--agent", "claude"], &call),
    ];
    let starts = |limit| run(&workspace, limit, &["--version"], "").status.success();
    let least = (1..).map(|step| step * STEP).find(|limit| starts(*limit));
    for step in STEPS {
        let limit = least.unwrap() + step * STEP;
        for (number, (arguments, input)) in commands.iter().enumerate() {
            workspace.write(&format!("changed{number}"), &step.to_string());
            let output = run(&workspace, limit, arguments, input);
            let text = String::from_utf8_lossy(&output.stderr);
            let what = format!("{arguments:?} in {limit} KiB: {}: {text}", output.status);
            // The line of a hook answers a refusal if its program fails.
            assert!(
                arguments[0] != "hook" || !output.status.success() || refuses(&output),
                "{what}"
            );
            // An allocation failed, of the program or of the standard library for a thread.
            let failures = [
                "out of memory",
                "memory allocation of",
                "failed to allocate",
            ];
            if failures.iter().any(|failed| text.contains(failed)) {
                continue;
            }
            assert!(!text.contains("panicked"), "{what}");
            assert_ne!(output.status.code(), Some(124), "{what}");
        }
    }
    // The checkpoints are whole.
    unlimited(&["checkpoint", "verify"]);
    assert!(refuses(&run(
        &workspace,
        u64::MAX >> 10,
        commands[8].0,
        &call
    )));
}
