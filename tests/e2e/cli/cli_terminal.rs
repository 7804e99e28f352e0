//! The command line at a terminal.

use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
};

use crate::{harness::Workspace, ipc};

/// Runs a command at a terminal and answers its question. Returns the exit code, 124 after
/// a minute, and the output. `None`: there is no terminal.
pub(crate) fn at_a_terminal(
    workspace: &Workspace,
    arguments: &str,
    answer: &str,
) -> Option<(i32, String)> {
    at_a_terminal_with(workspace, &[], arguments, answer)
}

/// The same with variables.
pub(crate) fn at_a_terminal_with(
    workspace: &Workspace,
    variables: &[(&str, &str)],
    arguments: &str,
    answer: &str,
) -> Option<(i32, String)> {
    let program = env!("CARGO_BIN_EXE_sightline");
    let line = format!("timeout --foreground 60 '{program}' {arguments}");
    let child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(workspace.root())
        .env("HOME", workspace.data())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        let why = "there is no `script` to make a terminal";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("skipped: {why}");
        return None;
    };
    // Answers after the question appears: earlier input to a terminal may be lost.
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    let mut is_answered = false;
    loop {
        let count = output.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..count]);
        if !is_answered && String::from_utf8_lossy(&text).contains("[y/N]") {
            input.write_all(answer.as_bytes()).unwrap();
            is_answered = true;
        }
    }
    let text = String::from_utf8(text).unwrap();
    Some((child.wait().unwrap().code().unwrap(), text))
}

#[test]
fn without_arguments_the_help_is_printed() {
    let workspace = Workspace::new(&[]);
    if let Some((code, text)) = at_a_terminal(&workspace, "", "") {
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("Commands:"), "{text}");
    }
}

#[test]
fn the_demo_is_colored() {
    let workspace = Workspace::new(&[]);
    if let Some((code, text)) = at_a_terminal(&workspace, "demo", "") {
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("\u{1b}[36m1. The agent learns"), "{text}");
    }
}

#[test]
fn an_installation_prints_a_summary_and_on_demand_the_changes() {
    let workspace = Workspace::new(&[]);
    let install = "agents install --agent claude";
    let Some((code, text)) = at_a_terminal(&workspace, install, "") else {
        return;
    };
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("Claude Code: MCP server"), "{text}");
    assert!(
        text.contains("add --diff to see or --yes to write"),
        "{text}"
    );
    assert!(!text.contains("+++"), "{text}");
    let (_, text) = at_a_terminal(&workspace, "agents install --agent claude --diff", "").unwrap();
    assert!(text.contains("+++"), "{text}");
}

#[test]
fn the_first_installation_asks_whether_commands_hide_files() {
    let settings = |workspace: &Workspace| {
        fs::read_to_string(workspace.data().join(".claude/settings.json")).unwrap()
    };
    let install = "agents install --agent claude --yes";
    for (answer, hides) in [("n\n", false), ("y\n", true)] {
        let workspace = Workspace::new(&[]);
        let Some((_, text)) = at_a_terminal(&workspace, install, answer) else {
            return;
        };
        if text.contains("cannot hide files") || !text.contains("[y/N]") {
            let why = "files cannot be hidden from commands here";
            assert!(std::env::var_os("CI").is_none(), "{why}: {text}");
            eprintln!("skipped: {why}");
            return;
        }
        assert!(
            text.contains("Also hide denied files from the commands of Claude Code"),
            "{text}"
        );
        assert_eq!(
            settings(&workspace).contains("CLAUDE_CODE_SHELL_PREFIX"),
            hides
        );
        // Only once.
        let (_, text) = at_a_terminal(&workspace, install, "y\n").unwrap();
        assert!(!text.contains("[y/N]"), "{text}");
        assert_eq!(
            settings(&workspace).contains("CLAUDE_CODE_SHELL_PREFIX"),
            hides
        );
    }
}

#[test]
fn uninstall_asks_before_it_deletes_the_data() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (code, _, error) = ipc::run(&workspace, &["checkpoint", "create"]);
    assert_eq!(code, 0, "{error}");
    let command = format!(
        "uninstall --data --storage '{}'",
        workspace.data().display()
    );
    for (answer, expected, is_kept) in [("n\n", 1, true), ("y\n", 0, false)] {
        let Some((code, text)) = at_a_terminal(&workspace, &command, answer) else {
            return;
        };
        assert_eq!(code, expected, "{text}");
        assert!(text.contains("cannot be undone. Proceed? [y/N]"), "{text}");
        assert_eq!(workspace.data().join("projects").is_dir(), is_kept);
    }
}
