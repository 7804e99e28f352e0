//! `sightline agents check`: installed hooks, run as the agents run them.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

use crate::agents::Home;

const ALL: [&str; 7] = [
    "claude", "codex", "gemini", "qwen", "copilot", "opencode", "cline",
];

impl Home {
    /// Returns the exit code and the results.
    fn check(&self, arguments: &[&str]) -> (i32, Vec<Value>) {
        let output = self.command(&[&["agents", "check", "--json"], arguments].concat());
        let results = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), results)
    }

    fn detail(&self, agent: &str, code: i32) -> String {
        let (found, results) = self.check(&["--agent", agent]);
        assert_eq!(found, code, "{results:?}");
        assert_eq!(results[0]["refused"], code == 0, "{results:?}");
        results[0]["detail"].as_str().unwrap().to_owned()
    }
}

/// Returns the folder of Node.js on the `PATH` of this process.
fn node() -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let folder = std::env::split_paths(&path).find(|folder| folder.join("node").is_file())?;
    Some(folder.to_str()?.to_owned())
}

#[test]
fn installed_hooks_refuse_a_denied_file() {
    let mut home = Home::new();
    home.put_on_path("my bin");
    for agent in ALL {
        home.run(&["install", "--agent", agent, "--yes"], 0);
        let is_plugin = matches!(agent, "opencode" | "cline");
        if agent == "codex" {
            assert!(home.detail(agent, 1).contains("not approved"));
        } else if !is_plugin {
            assert_eq!(home.detail(agent, 0), "refused denied.txt", "{agent}");
        } else if let Some(node) = node() {
            home.variables = vec![("PATH", format!("/usr/bin:/bin:{node}"))];
            assert_eq!(home.detail(agent, 0), "refused denied.txt", "{agent}");
        }
    }
    // One that does not refuse decides.
    let (code, results) = home.check(&[]);
    assert_eq!((code, results.len()), (1, 7));
    // No agent was refused anything.
    let log = home.command(&["log", "--json"]);
    let log: Value = serde_json::from_slice(&log.stdout).unwrap();
    assert_eq!(log["decisions"], Value::Array(Vec::new()));
}

#[test]
fn a_plugin_without_a_runtime_is_not_checked() {
    let mut home = Home::new();
    home.variables = vec![("PATH", "/nowhere".to_owned())];
    home.run(&["install", "--agent", "cline", "--yes"], 0);
    assert!(home.detail("cline", 1).contains("cannot be checked"));
}

#[test]
fn hooks_that_do_not_refuse_are_named() {
    let home = Home::new();
    assert_eq!(home.check(&[]).0, 1);
    assert!(home.detail("claude", 1).contains("no hook runs"));
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    let file = home.folder.join(".claude/settings.json");
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, detail) in [
        // The entry of an earlier version, started without the user's PATH.
        (
            "\"command\": \"",
            "\"args\": [\"hook\", \"PreToolUse\", \"--agent\", \"claude\"], \"command\": \"sightline\", \"x\": \"",
            "cannot start its hook",
        ),
        ("\"*\"", "\"Bash\"", "some tools only"),
        ("{", "{ \"disableAllHooks\": true,", "disableAllHooks"),
    ] {
        let count = if from == "{" { 1 } else { usize::MAX };
        fs::write(&file, text.replacen(from, to, count)).unwrap();
        let found = home.detail("claude", 1);
        assert!(found.contains(detail), "{found}");
    }
}

/// A hook without its program refuses every file, so that nothing can be read.
#[test]
fn a_program_that_does_not_run_is_named() {
    let home = Home::new();
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    let file = home.folder.join(".claude/settings.json");
    let text = fs::read_to_string(&file).unwrap();
    let plain = home.folder.join("sightline");
    fs::write(&plain, "").unwrap();
    fs::create_dir(home.folder.join("fails")).unwrap();
    let fails = home.folder.join("fails/sightline");
    fs::write(&fails, "#!/bin/sh\necho it crashed >&2; exit 134\n").unwrap();
    fs::set_permissions(&fails, fs::Permissions::from_mode(0o755)).unwrap();
    for (program, why) in [
        ("/gone/sightline", "not found"),
        (plain.to_str().unwrap(), "denied"),
        (fails.to_str().unwrap(), "it crashed"),
    ] {
        let broken = text.replace(env!("CARGO_BIN_EXE_sightline"), program);
        fs::write(&file, broken).unwrap();
        let found = home.detail("claude", 1);
        for part in [why, "refuses every file", "agents install --yes"] {
            assert!(found.contains(part), "{found}");
        }
        let output = home.command(&["agents", "check"]);
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("FIX "));
    }
    // The entry of a project names the program, which only the search path of a terminal leads to.
    fs::write(&file, "{}").unwrap();
    let mut home = home;
    home.put_on_path("my bin");
    home.run(&["install", "--project", "--agent", "claude", "--yes"], 0);
    let found = home.detail("claude", 0);
    assert!(found.contains("without a terminal"), "{found}");
}
