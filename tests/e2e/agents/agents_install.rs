//! What `sightline agents install`, `uninstall` and `status` say.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::{
    agents::{Home, SETTINGS},
    harness::program,
};

#[test]
fn messages_say_what_is_there_and_what_comes_next() {
    let home = Home::new();
    let next = "agents that are running use this from their next session";
    let text = home.run(&["install", "--agent", "claude"], 1);
    assert!(!text.contains(next), "{text}");
    let text = home.run(&["install", "--agent", "claude", "--yes"], 0);
    assert!(text.contains(next), "{text}");
    let text = home.run(&["install", "--agent", "claude", "--yes"], 0);
    assert!(!text.contains(next), "{text}");
    let text = home.run(&["uninstall", "--agent", "claude"], 1);
    assert!(
        text.starts_with(
            "Claude Code: 6 hooks, MCP server -> ~/.claude/settings.json, ~/.claude.json\n"
        ),
        "{text}"
    );
}

#[test]
fn an_agent_that_was_not_started_yet_is_named() {
    let mut home = Home::new();
    let text = home.run(&["install"], 1);
    assert!(text.contains("no agent was found"), "{text}");
    let program = home.write("bin/claude", "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    home.variables = vec![("PATH", path)];
    let text = home.run(&["install"], 1);
    assert!(
        text.contains("Claude Code was not started yet; name it with `--agent claude`"),
        "{text}"
    );
    let text = home.run(&["status"], 0);
    assert!(text.contains("Claude Code   not started yet"), "{text}");
}

#[test]
fn init_is_recommended_to_those_without_rules() {
    let home = Home::new();
    let install = ["install", "--agent", "claude"];
    let text = home.run(&install, 1);
    assert!(text.contains("`sightline init`"), "{text}");
    fs::write(home.workspace.root().join(".clineignore"), "").unwrap();
    let text = home.run(&install, 1);
    assert!(!text.contains("sightline init"), "{text}");
    assert!(text.contains("files that .clineignore names"), "{text}");
}

#[test]
#[allow(clippy::print_stderr)]
fn the_setting_that_hides_files_stays_while_an_agent_needs_it() {
    let home = Home::new();
    home.write(".claude/settings.json", SETTINGS);
    let before = home.snapshot();
    let change = |action: &str, agents: &[&str]| {
        let named = agents.iter().flat_map(|agent| ["--agent", agent]);
        let words: Vec<&str> = [action, "--only", "commands", "--yes"]
            .into_iter()
            .chain(named)
            .collect();
        home.run(&words, 0)
    };
    let setting = || {
        let text = fs::read_to_string(home.folder.join(".config/sightline/config.toml"));
        text.is_ok_and(|text| text.contains("hide"))
    };
    let tried = program().args(["exec", "--", "true"]).output().unwrap();
    if tried.status.code() == Some(125) {
        let reason = String::from_utf8_lossy(&tried.stderr);
        eprintln!("skipped: {reason}");
        return;
    }
    for agents in [["claude", "opencode"], ["opencode", "claude"]] {
        change("install", &agents);
        assert!(setting());
        let plugin = home.folder.join(".config/opencode/plugins/sightline.js");
        assert!(fs::read_to_string(plugin).unwrap().contains("config.shell"));
        change("uninstall", &agents[..1]);
        assert!(setting(), "{agents:?}");
        change("uninstall", &agents[1..]);
        assert_eq!(home.snapshot(), before, "{agents:?}");
        change("install", &agents);
        change("uninstall", &agents);
        assert_eq!(home.snapshot(), before, "{agents:?}");
    }
}

/// The default selection of agents includes some that have no setting for it.
#[test]
fn a_part_that_an_agent_does_not_offer_is_a_note_unless_it_is_named() {
    let home = Home::new();
    home.write(".claude/settings.json", SETTINGS);
    home.write(".codex/config.toml", "");
    let before = home.snapshot();
    let install = ["install", "--only", "commands"];
    let text = home.run(&install, 1);
    assert!(text.contains("sightline exec -- codex"), "{text}");
    assert!(text.contains("prefix of commands"), "{text}");
    let named = [&install[..], &["--agent", "codex"]].concat();
    let text = home.run(&named, 3);
    assert!(text.contains("sightline exec -- codex"), "{text}");
    assert_eq!(home.snapshot(), before);
}
