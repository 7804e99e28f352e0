//! `sightline agents status` and `doctor`: what keeps a connected agent from running our entries.

use std::fs;

use serde_json::Value;

use crate::agents::Home;

impl Home {
    /// Connects an agent. Returns what `status` says then.
    fn connect(&self, agent: &str) -> String {
        self.run(&["install", "--agent", agent, "--yes"], 0);
        self.run(&["status", "--agent", agent], 0)
    }

    fn doctor(&self) -> (bool, String) {
        let output = self.command(&["doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        let agents = findings.clone().find(|finding| finding["what"] == "agents");
        let agents = agents.unwrap();
        let found = agents["found"].as_str().unwrap().to_owned();
        (agents["ok"].as_bool().unwrap(), found)
    }
}

/// Adds a member to a JSON file, or a file with it.
fn set(file: &std::path::Path, member: &str) {
    let text = fs::read_to_string(file).unwrap_or_else(|_| "{}".to_owned());
    let rest = text.trim_start().strip_prefix('{').unwrap();
    let comma = if rest.trim() == "}" { "" } else { "," };
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("{{{member}{comma}{rest}")).unwrap();
}

#[test]
fn settings_that_switch_hooks_off_are_found() {
    // Agent, file (of the project if it begins with `./`), what is in it, and the setting.
    let cases = [
        (
            "claude",
            ".claude/settings.json",
            r#""disableAllHooks": true"#,
            "disableAllHooks",
        ),
        (
            "claude",
            "./.claude/settings.json",
            r#""disableAllHooks": true"#,
            "disableAllHooks",
        ),
        (
            "claude",
            "./.claude/settings.local.json",
            r#""disableAllHooks": true"#,
            "disableAllHooks",
        ),
        (
            "claude",
            ".claude/settings.json",
            r#""env": {"CLAUDE_CODE_SIMPLE": "1"}"#,
            "env.CLAUDE_CODE_SIMPLE",
        ),
        (
            "claude",
            ".claude.json",
            r#""env": {"CLAUDE_CODE_SAFE_MODE": "on"}"#,
            "env.CLAUDE_CODE_SAFE_MODE",
        ),
        (
            "claude",
            "./.claude/settings.local.json",
            r#""env": {"CLAUDE_CODE_RESTRICTED": 1}"#,
            "env.CLAUDE_CODE_RESTRICTED",
        ),
        (
            "qwen",
            "./.qwen/settings.json",
            r#""env": {"QWEN_CODE_SAFE_MODE": "true"}"#,
            "env.QWEN_CODE_SAFE_MODE",
        ),
        (
            "qwen",
            ".qwen/settings.json",
            r#""disableAllHooks": true"#,
            "disableAllHooks",
        ),
        (
            "qwen",
            ".qwen/settings.json",
            r#""mcp": {"excluded": ["sightline"]}"#,
            "mcp.excluded",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            r#""hooksConfig": {"enabled": false}"#,
            "hooksConfig.enabled",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            r#""hooksConfig": {"disabled": ["sightline"]}"#,
            "hooksConfig.disabled",
        ),
        (
            "gemini",
            "./.gemini/settings.json",
            r#""mcp": {"excluded": ["sightline"]}"#,
            "mcp.excluded",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            r#""mcp": {"allowed": ["other"]}"#,
            "mcp.allowed",
        ),
        (
            "cline",
            ".cline/data/settings/global-settings.json",
            r#""disabledPlugins": ["HOME/.cline/plugins/sightline.js"]"#,
            "disabledPlugins",
        ),
    ];
    for (agent, file, member, setting) in cases {
        let home = Home::new();
        let text = home.connect(agent);
        assert!(!text.contains("switched off"), "{text}");
        let path = match file.strip_prefix("./") {
            Some(file) => home.workspace.root().join(file),
            None => home.folder.join(file),
        };
        set(
            &path,
            &member.replace("HOME", home.folder.to_str().unwrap()),
        );
        let text = home.run(&["status", "--agent", agent], 1);
        let expected = format!("switched off by `{setting}` in {}", path.display());
        assert!(text.contains(&expected), "{text}");
        let (is_ok, found) = home.doctor();
        assert!(!is_ok && found.contains(&expected), "{found}");
        // Installing tells it too.
        let text = home.run(&["install", "--agent", agent, "--yes"], 0);
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn the_strongest_file_decides() {
    let home = Home::new();
    home.connect("claude");
    let root = home.workspace.root();
    set(
        &home.folder.join(".claude/settings.json"),
        r#""disableAllHooks": true"#,
    );
    set(
        &root.join(".claude/settings.local.json"),
        r#""disableAllHooks": false"#,
    );
    home.run(&["status", "--agent", "claude"], 0);
    assert!(home.doctor().0);
}

#[test]
fn codex_hooks_that_are_off_or_not_approved_are_a_problem_for_doctor() {
    let home = Home::new();
    let text = home.connect("codex");
    assert!(text.contains("not approved"), "{text}");
    let (is_ok, found) = home.doctor();
    assert!(
        !is_ok && found.contains("Codex: hooks not approved"),
        "{found}"
    );
    let config = home.folder.join(".codex/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("[features]\nhooks = false\n\n{text}")).unwrap();
    let text = home.run(&["status", "--agent", "codex"], 1);
    assert!(
        text.contains("switched off by `features.hooks` in"),
        "{text}"
    );
}

#[test]
fn variables_that_switch_hooks_off_are_found() {
    for (agent, variable) in [
        ("claude", "CLAUDE_CODE_RESTRICTED"),
        ("claude", "CLAUDE_CODE_SAFE_MODE"),
        ("claude", "CLAUDE_CODE_SIMPLE"),
        ("cline", "CLINE_PLUGIN_IMPORT_TIMEOUT_MS"),
        ("opencode", "OPENCODE_PURE"),
        ("qwen", "QWEN_CODE_SAFE_MODE"),
        ("qwen", "QWEN_CODE_SIMPLE"),
    ] {
        let mut home = Home::new();
        home.connect(agent);
        let (off, on) = match agent {
            "cline" => (["4000", "60000"], "1"),
            _ => (["0", "off"], "on"),
        };
        for value in off {
            home.variables = vec![(variable, value.to_owned())];
            home.run(&["status", "--agent", agent], 0);
        }
        home.variables = vec![(variable, on.to_owned())];
        let expected = format!("hooks switched off by `{variable}` in the environment");
        let text = home.run(&["status", "--agent", agent], 1);
        assert!(text.contains(&expected), "{text}");
        let (is_ok, found) = home.doctor();
        assert!(!is_ok && found.contains(&expected), "{found}");
        let text = home.run(&["install", "--agent", agent, "--yes"], 0);
        assert!(text.contains(&expected), "{text}");
        // `agents check` does not run plugins.
        if !matches!(agent, "opencode" | "cline") {
            let text = home.run(&["check", "--agent", agent], 1);
            assert!(text.contains(&expected), "{text}");
        }
    }
}

#[test]
fn files_with_variables_that_switch_hooks_off_are_found() {
    for file in ["HOME/.env", "HOME/.qwen/.env", ".qwen/.env", ".env"] {
        let home = Home::new();
        home.connect("qwen");
        let path = match file.strip_prefix("HOME/") {
            Some(file) => home.folder.join(file),
            None => home.workspace.root().join(file),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "A=1\nexport QWEN_CODE_SAFE_MODE=\"0\"\n").unwrap();
        home.run(&["status", "--agent", "qwen"], 0);
        fs::write(&path, "A=1\nexport QWEN_CODE_SAFE_MODE=\"1\"\n").unwrap();
        let text = home.run(&["status", "--agent", "qwen"], 1);
        let expected = format!(
            "switched off by `QWEN_CODE_SAFE_MODE` in {}",
            path.display()
        );
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn a_log_is_found() {
    let home = Home::new();
    home.connect("cline");
    let log = home.folder.join(".cline/data/logs/cline.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    let failed = |time: &str| {
        let msg = "plugin loading failed; continuing without plugins (x)";
        fs::write(
            &log,
            format!("{}\n", serde_json::json!({ "time": time, "msg": msg })),
        )
        .unwrap();
    };
    failed("2026-01-01T10:00:00.000Z");
    home.run(&["status", "--agent", "cline"], 0);
    failed("2999-01-01T10:00:00.000Z");
    let text = home.run(&["status", "--agent", "cline"], 1);
    assert!(text.contains("went on without plugins"), "{text}");
    assert!(!home.doctor().0);
}

#[test]
fn a_broken_file_is_not_a_missing_connection() {
    let home = Home::new();
    home.connect("claude");
    for (file, text, line) in [
        (".claude/settings.json", "{\n  \"a\": 1,\n  \"b\": [\n", 3),
        (".codex/config.toml", "a = 1\nb = \n", 2),
    ] {
        let path = home.folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let agent = if file.starts_with(".claude") {
            "claude"
        } else {
            "codex"
        };
        let text = home.run(&["status", "--agent", agent], 1);
        let format = if agent == "claude" { "JSON" } else { "TOML" };
        let expected = format!("{}: invalid {format}, line {line}", path.display());
        assert!(
            text.contains(&expected) && !text.contains("not connected"),
            "{text}"
        );
        let (is_ok, found) = home.doctor();
        assert!(!is_ok && found.contains(&expected), "{found}");
    }
}

#[test]
fn a_file_that_the_agent_ignores_is_reported() {
    // Agent, its title, scope, and a file that only JSON without comments is read from.
    let cases = [
        ("claude", "Claude Code", "--user", ".claude/settings.json"),
        ("claude", "Claude Code", "--user", ".claude.json"),
        (
            "claude",
            "Claude Code",
            "--project",
            ".claude/settings.json",
        ),
        ("claude", "Claude Code", "--project", ".mcp.json"),
        ("codex", "Codex", "--user", ".codex/hooks.json"),
        (
            "cline",
            "Cline",
            "--user",
            ".cline/data/settings/cline_mcp_settings.json",
        ),
    ];
    for (agent, title, scope, file) in cases {
        for invalid in ["// mine\n", "/* mine */\n", ","] {
            let home = Home::new();
            let install = ["install", "--agent", agent, scope, "--yes"];
            home.run(&install, 0);
            let folder = match scope {
                "--user" => home.folder.clone(),
                _ => home.workspace.root(),
            };
            let path = folder.join(file);
            let text = fs::read_to_string(&path).unwrap();
            // In the last line.
            let end = text.rfind('}').unwrap();
            let text = format!("{}{invalid}{}", &text[..end], &text[end..]);
            fs::write(&path, &text).unwrap();
            let line = text[..end].lines().count() + 1;
            let why = format!(
                "{}: invalid JSON, line {line}: {title} ignores the file (comments are not allowed",
                path.display()
            );
            let status = home.run(&["status", "--agent", agent], 1);
            assert!(status.contains(&why), "{status}");
            let (is_ok, found) = home.doctor();
            assert!(!is_ok && found.contains(&why), "{found}");
            if ["/settings.json", "/hooks.json"]
                .iter()
                .any(|name| file.ends_with(name))
            {
                let check = home.run(&["check", "--agent", agent], 1);
                assert!(check.contains(&why), "{check}");
            }
            let install = home.run(&install, 3);
            assert!(install.contains(&format!("cannot edit {why}")), "{install}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            home.run(&["uninstall", "--agent", agent, scope, "--yes"], 0);
            let rest = fs::read_to_string(&path).unwrap_or_default();
            assert!(!rest.contains("sightline"), "{rest}");
            assert_eq!(rest.contains("mine"), invalid.contains("mine"), "{rest}");
        }
    }
}

#[test]
fn comments_marks_and_empty_files_that_the_agent_reads_are_no_problem() {
    for (agent, file, text) in [
        ("claude", ".claude/settings.json", "\u{feff}{}\n"),
        ("claude", ".claude/settings.json", ""),
        ("gemini", ".gemini/settings.json", "{} // mine\n"),
        ("qwen", ".qwen/settings.json", "{} // mine\n"),
        ("copilot", ".copilot/mcp-config.json", "{} // mine\n"),
        ("opencode", ".config/opencode/opencode.json", "{} // mine\n"),
    ] {
        let home = Home::new();
        let path = home.folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        home.run(&["status", "--agent", agent], 0);
        home.connect(agent);
        home.run(&["uninstall", "--agent", agent, "--yes"], 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{agent}");
    }
}

#[test]
fn a_switch_in_a_file_that_the_agent_ignores_has_no_effect() {
    let home = Home::new();
    home.connect("claude");
    let settings = home.folder.join(".claude/settings.json");
    let local = home.workspace.root().join(".claude/settings.local.json");
    set(&settings, r#""disableAllHooks": true"#);
    set(&local, "\"disableAllHooks\": false // mine\n");
    let text = home.run(&["status", "--agent", "claude"], 1);
    assert!(text.contains("disableAllHooks"), "{text}");
}

#[test]
fn configuration_that_a_variable_moved_is_found() {
    // Agent, variable, its value below the home, and a file that is written.
    let cases = [
        ("claude", "CLAUDE_CONFIG_DIR", "a b", "a b/settings.json"),
        ("codex", "CODEX_HOME", "a/", "a/hooks.json"),
        (
            "gemini",
            "GEMINI_CLI_HOME",
            "a b",
            "a b/.gemini/settings.json",
        ),
        ("qwen", "QWEN_HOME", "a b", "a b/settings.json"),
        ("copilot", "COPILOT_HOME", "a", "a/hooks/sightline.json"),
        (
            "opencode",
            "XDG_CONFIG_HOME",
            "a",
            "a/opencode/plugins/sightline.js",
        ),
        ("cline", "CLINE_DIR", "a", "a/plugins/sightline.js"),
        (
            "cline",
            "CLINE_DIR",
            "a",
            "a/data/settings/cline_mcp_settings.json",
        ),
        (
            "cline",
            "CLINE_DATA_DIR",
            "a",
            "a/settings/cline_mcp_settings.json",
        ),
        ("cline", "CLINE_MCP_SETTINGS_PATH", "a.json", "a.json"),
    ];
    for (agent, variable, value, file) in cases {
        let mut home = Home::new();
        let value = format!("{}/{value}", home.folder.display());
        home.variables.push((variable, value));
        home.run(&["install", "--agent", agent, "--yes"], 0);
        assert!(home.folder.join(file).exists(), "{variable}");
        home.run(&["uninstall", "--agent", agent, "--yes"], 0);
        assert_eq!(fs::read_dir(&home.folder).unwrap().count(), 0, "{variable}");
        for unset in ["", " ", "relative"] {
            home.variables.last_mut().unwrap().1 = unset.to_owned();
            home.run(&["install", "--agent", agent, "--yes"], 0);
            assert!(
                !home.workspace.root().join("relative").exists(),
                "{variable}"
            );
            assert!(!home.folder.join(file).exists(), "{variable}");
        }
    }
}

#[test]
fn a_file_that_two_agents_share_is_up_to_date_for_both() {
    let home = Home::new();
    for (first, second) in [("claude", "copilot"), ("copilot", "claude")] {
        home.run(&["install", "--agent", first, "--project", "--yes"], 0);
        let status = home.run(&["status"], 0);
        assert!(!status.contains("out of date"), "{status}");
        home.run(&["install", "--agent", second, "--project", "--yes"], 0);
        let status = home.run(&["status"], 0);
        assert!(!status.contains("out of date"), "{status}");
        for agent in [first, second] {
            home.run(&["uninstall", "--agent", agent, "--project", "--yes"], 0);
        }
        assert!(!home.workspace.root().join(".mcp.json").exists());
    }
}
