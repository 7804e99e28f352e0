//! `sightline agents`, in a temporary home. `tests/agents` runs the agents themselves.

#[cfg(unix)]
mod agent_status;
mod agents_check;
mod agents_install;
#[cfg(target_os = "linux")]
mod agents_removal;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};

use crate::harness::{Workspace, program};

pub(crate) struct Home {
    pub(crate) workspace: Workspace,
    pub(crate) folder: PathBuf,
    /// Variables of the commands.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let workspace = Workspace::new(&[]);
        let folder = workspace.root().join("home");
        fs::create_dir(&folder).unwrap();
        Self {
            workspace,
            folder,
            variables: Vec::new(),
        }
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        program()
            .args(arguments)
            .env("HOME", &self.folder)
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_DATA_HOME", self.workspace.data())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .env_remove("COPILOT_HOME")
            .envs(self.variables.iter().cloned())
            .current_dir(self.workspace.root())
            .output()
            .unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str], code: i32) -> String {
        let output = self.command(&[&["agents"], arguments].concat());
        let text =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    /// Puts a link to the program in a folder of the home, which is the first one of the `PATH`.
    pub(crate) fn put_on_path(&mut self, folder: &str) -> PathBuf {
        let folder = self.folder.join(folder);
        fs::create_dir_all(&folder).unwrap();
        let link = folder.join("sightline");
        symlink(env!("CARGO_BIN_EXE_sightline"), &link).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.display());
        self.variables.retain(|(name, _)| *name != "PATH");
        self.variables.push(("PATH", path));
        link
    }

    /// Path, mode, and content or link target of everything in the home.
    pub(crate) fn snapshot(&self) -> Vec<String> {
        fn read(folder: &Path, entries: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                let mode = metadata.permissions().mode();
                let content = if metadata.is_symlink() {
                    format!("{:?}", fs::read_link(&path).unwrap())
                } else if metadata.is_dir() {
                    read(&path, entries);
                    String::new()
                } else {
                    fs::read_to_string(&path).unwrap()
                };
                entries.push(format!("{} {mode:o} {content}", path.display()));
            }
        }
        let mut entries = Vec::new();
        read(&self.folder, &mut entries);
        entries.sort();
        entries
    }
}

const SETTINGS: &str = "{\n    \"hooks\": { \"Stop\": [] },\n    \"theme\": \"dark\"\n}\n";
/// The same for an agent that reads comments.
const COMMENTED: &str =
    "{\n    // mine\n    \"hooks\": { \"Stop\": [] },\n    \"theme\": \"dark\" // last\n}\n";

#[test]
fn nothing_is_written_without_yes() {
    let home = Home::new();
    home.write(".claude/settings.json", SETTINGS);
    let before = home.snapshot();
    let diff = home.run(&["install", "--agent", "claude"], 1);
    assert!(diff.contains("+++ "), "{diff}");
    assert!(
        diff.contains("+      {\n") || diff.contains("hook"),
        "{diff}"
    );
    assert_eq!(home.snapshot(), before);
}

#[test]
fn changes_begin_with_a_summary_and_are_printed_as_json() {
    let home = Home::new();
    home.write(".claude/settings.json", SETTINGS);
    home.write(".gemini/settings.json", "{");
    let both = ["install", "--agent", "claude", "--agent", "gemini"];
    let text = home.run(&both, 3);
    assert!(
        text.starts_with(
            "Claude Code: MCP server, 6 hooks -> ~/.claude.json, ~/.claude/settings.json\n"
        ),
        "{text}"
    );
    let json = |arguments: &[&str], code| {
        let output = home.command(&[&["agents"], arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let report = json(&both, 3);
    let [claude, gemini] = report["agents"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!(report["written"], false);
    assert_eq!(claude["agent"], "claude");
    assert_eq!(claude["scope"], "user");
    assert_eq!(
        claude["parts"],
        json!(["mcp", "context", "access", "checkpoints"])
    );
    let settings = &claude["files"][1];
    assert_eq!(
        settings["path"],
        json!(home.folder.join(".claude/settings.json"))
    );
    assert!(
        settings["diff"].as_str().unwrap().contains("\n+"),
        "{settings}"
    );
    assert_eq!(settings["content"], json!(["6 hooks"]));
    assert!(claude.get("problem").is_none(), "{claude}");
    assert_eq!(gemini["files"], json!([]));
    let problem = gemini["problem"].as_str().unwrap();
    assert!(problem.contains(".gemini/settings.json"), "{problem}");
    let only = ["--agent", "claude"];
    let report = json(&[&["install", "--yes"], only.as_slice()].concat(), 0);
    assert_eq!(report["written"], true);
    let report = json(&[&["install"], only.as_slice()].concat(), 0);
    assert_eq!(report["agents"][0]["files"], json!([]));
    let report = json(&[&["uninstall"], only.as_slice()].concat(), 1);
    assert_eq!(
        report["agents"][0]["parts"],
        json!(["mcp", "context", "access", "checkpoints"])
    );
}

#[test]
fn install_and_uninstall_are_inverse_for_all_agents() {
    let home = Home::new();
    let settings = home.write(".claude/settings.json", SETTINGS);
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o600)).unwrap();
    home.write(
        ".codex/config.toml",
        "model = \"x\" # mine\r\n\r\n[tui]\r\na = 1",
    );
    home.write("dotfiles/gemini.json", COMMENTED);
    fs::create_dir(home.folder.join(".gemini")).unwrap();
    symlink(
        "../dotfiles/gemini.json",
        home.folder.join(".gemini/settings.json"),
    )
    .unwrap();
    home.write(
        ".cline/data/settings/cline_mcp_settings.json",
        "{\"mcpServers\":{\"a\":{}}}",
    );
    let before = home.snapshot();
    let all: Vec<&str> = [
        "claude", "codex", "gemini", "qwen", "copilot", "opencode", "cline",
    ]
    .iter()
    .flat_map(|agent| ["--agent", agent])
    .collect();
    let command = |name: &'static str| [&[name, "--yes"], all.as_slice()].concat();
    home.run(&command("install"), 0);
    let installed = home.snapshot();
    assert_ne!(installed, before);
    assert!(
        fs::symlink_metadata(home.folder.join(".gemini/settings.json"))
            .unwrap()
            .is_symlink()
    );
    let status = home.run(&["status", "--json"], 0);
    let status: Value = serde_json::from_str(&status).unwrap();
    for agent in status.as_array().unwrap() {
        assert_eq!(agent["user"].as_array().unwrap().len(), 4, "{agent}");
    }
    // A second installation changes nothing.
    assert!(home.run(&command("install"), 0).contains("Nothing to do"));
    assert_eq!(home.snapshot(), installed);
    home.run(&command("uninstall"), 0);
    assert_eq!(home.snapshot(), before);
}

#[test]
fn parts_are_added_one_after_the_other() {
    let home = Home::new();
    home.write(".claude/settings.json", SETTINGS);
    let before = home.snapshot();
    for part in ["mcp", "context", "access", "checkpoints"] {
        home.run(
            &["install", "--agent", "claude", "--only", part, "--yes"],
            0,
        );
    }
    let text = fs::read_to_string(home.folder.join(".claude/settings.json")).unwrap();
    assert!(text.contains("--checkpoints"), "{text}");
    home.run(&["uninstall", "--agent", "claude", "--yes"], 0);
    assert_eq!(home.snapshot(), before);
}

#[test]
fn parts_are_removed_one_after_the_other_for_all_agents() {
    let home = Home::new();
    let before = home.snapshot();
    for agent in [
        "claude", "codex", "gemini", "qwen", "copilot", "opencode", "cline",
    ] {
        let status = |expected: &[&str]| {
            let status = home.run(&["status", "--json", "--agent", agent], 0);
            let status: Value = serde_json::from_str(&status).unwrap();
            assert_eq!(status[0]["user"], json!(expected), "{status}");
            assert_eq!(status[0]["outdated"], false, "{status}");
        };
        let run = |action: &str, part: &str| {
            home.run(&[action, "--agent", agent, "--only", part, "--yes"], 0);
        };
        home.run(&["install", "--agent", agent, "--yes"], 0);
        status(&["mcp", "context", "access", "checkpoints"]);
        // Installing a part again keeps the others.
        run("install", "context");
        home.run(&["install", "--agent", agent, "--yes"], 0);
        status(&["mcp", "context", "access", "checkpoints"]);
        run("uninstall", "checkpoints");
        status(&["mcp", "context", "access"]);
        run("uninstall", "context");
        status(&["mcp", "access"]);
        run("uninstall", "mcp");
        status(&["access"]);
        home.run(&["uninstall", "--agent", agent, "--yes"], 0);
        status(&[]);
        assert_eq!(home.snapshot(), before, "{agent}");
    }
}

/// The agents whose hooks are lines of a shell: file, path of an event, and name of the field.
const SHELL_HOOKS: [(&str, &str, &str, &str); 5] = [
    (
        "claude",
        ".claude/settings.json",
        "PreToolUse",
        "UserPromptSubmit",
    ),
    (
        "codex",
        ".codex/hooks.json",
        "PreToolUse",
        "UserPromptSubmit",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "BeforeTool",
        "BeforeAgent",
    ),
    (
        "qwen",
        ".qwen/settings.json",
        "PreToolUse",
        "UserPromptSubmit",
    ),
    (
        "copilot",
        ".copilot/hooks/sightline.json",
        "preToolUse",
        "userPromptSubmitted",
    ),
];

/// Returns the command line of an event in a file that `agents install` wrote.
fn hook_line(file: &Path, event: &str) -> String {
    let file: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let hook = &file["hooks"][event][0];
    let line = hook["hooks"][0]["command"].as_str();
    line.or(hook["bash"].as_str()).unwrap().to_owned()
}

#[test]
fn entries_of_a_user_have_the_path_and_those_of_a_project_the_name() {
    let mut home = Home::new();
    let program = home.put_on_path("my tools/it's");
    for (agent, file, tool, _) in SHELL_HOOKS {
        home.run(&["install", "--agent", agent, "--yes"], 0);
        let line = hook_line(&home.folder.join(file), tool);
        let path = program.to_str().unwrap().replace('\'', r"'\''");
        assert!(
            line.starts_with(&format!("'{path}' hook {tool} ")),
            "{line}"
        );
    }
    let text = home.run(&["install", "--agent", "claude", "--project", "--yes"], 0);
    assert!(!text.contains("not on your PATH"), "{text}");
    home.run(&["uninstall", "--agent", "claude", "--project", "--yes"], 0);
    home.variables.clear();
    let text = home.run(&["install", "--agent", "claude", "--project", "--yes"], 0);
    assert!(text.contains("not on your PATH"), "{text}");
    let file = home.workspace.root().join(".claude/settings.json");
    assert!(hook_line(&file, "PreToolUse").starts_with("sightline hook "));
}

#[test]
fn a_hook_whose_program_is_missing_or_fails_refuses_tools_only() {
    let mut home = Home::new();
    let program = home.put_on_path("my tools/it's");
    for (agent, ..) in SHELL_HOOKS {
        home.run(&["install", "--agent", agent, "--yes"], 0);
    }
    let broken = || fs::write(&program, "#!/bin/sh\nkill -9 $$\n").unwrap();
    let runs: [(&str, &dyn Fn()); 3] = [
        ("missing", &|| fs::remove_file(&program).unwrap()),
        ("not executable", &broken),
        ("killed", &|| {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }),
    ];
    for (why, change) in runs {
        change();
        for (agent, file, tool, prompt) in SHELL_HOOKS {
            let run = |event| {
                let line = hook_line(&home.folder.join(file), event);
                let output = std::process::Command::new("sh")
                    .args(["-c", &line])
                    .env("PATH", "/usr/bin:/bin")
                    .output()
                    .unwrap();
                assert_eq!(output.status.code(), Some(0), "{agent}, {why}");
                String::from_utf8(output.stdout).unwrap()
            };
            assert_eq!(run(prompt), "", "{agent}, {why}");
            let answer: Value = serde_json::from_str(&run(tool)).unwrap();
            let decision = match agent {
                "claude" | "codex" | "qwen" => &answer["hookSpecificOutput"]["permissionDecision"],
                "copilot" => &answer["permissionDecision"],
                _ => &answer["decision"],
            };
            assert_eq!(decision, "deny", "{agent}, {why}: {answer}");
        }
    }
}

#[test]
fn entries_of_earlier_versions_are_out_of_date_and_updated() {
    let home = Home::new();
    let old_hook = |event: &str, matcher: &str| {
        format!(
            r#""{event}": [{{ {matcher}"hooks": [{{ "type": "command", "command": "sightline",
               "args": ["hook", "{event}", "--agent", "claude"], "timeout": 10 }}] }}]"#
        )
    };
    home.write(
        ".claude/settings.json",
        &format!(
            "{{ \"hooks\": {{ {}, {}, {} }} }}",
            old_hook("SessionStart", ""),
            old_hook("UserPromptSubmit", ""),
            old_hook("PreToolUse", "\"matcher\": \"*\", ")
        ),
    );
    home.write(
        ".gemini/settings.json",
        r#"{ "hooks": { "BeforeTool": [{ "matcher": ".*", "hooks": [{ "type": "command", "name": "sightline",
           "command": "command -v sightline >/dev/null || exit 0; exec sightline hook BeforeTool --agent gemini", "timeout": 10000 }] }] } }"#,
    );
    for agent in ["claude", "gemini"] {
        let status = home.run(&["status", "--agent", agent], 0);
        assert!(status.contains("out of date (user): run"), "{status}");
        home.run(&["install", "--agent", agent, "--yes"], 0);
        let status = home.run(&["status", "--agent", agent], 0);
        assert!(!status.contains("out of date"), "{status}");
        home.run(&["uninstall", "--agent", agent, "--yes"], 0);
        let status = home.run(&["status", "--agent", agent], 0);
        assert!(status.contains("not connected"), "{status}");
    }
}

#[test]
fn another_path_of_the_same_program_is_up_to_date() {
    let mut home = Home::new();
    home.put_on_path("one");
    let all = [
        "claude", "codex", "gemini", "qwen", "copilot", "opencode", "cline",
    ];
    for agent in all {
        home.run(&["install", "--agent", agent, "--yes"], 0);
    }
    let before = home.snapshot();
    home.put_on_path("two");
    for agent in all {
        let status = home.run(&["status", "--json", "--agent", agent], 0);
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status[0]["outdated"], false, "{status}");
        let text = home.run(&["install", "--agent", agent, "--yes"], 0);
        assert!(text.contains("Nothing to do"), "{text}");
        home.run(
            &["uninstall", "--agent", agent, "--only", "context", "--yes"],
            0,
        );
    }
    assert!(home.snapshot().len() >= before.len());
    for agent in all {
        home.run(&["uninstall", "--agent", agent, "--yes"], 0);
    }
    assert!(!home.folder.join(".codex").exists());
}

#[test]
fn a_damaged_record_is_reported() {
    let home = Home::new();
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    let record = home.workspace.data().join("sightline/agents.json");
    fs::write(&record, "{").unwrap();
    let text = home.run(&["uninstall", "--agent", "claude", "--yes"], 3);
    assert!(text.contains("agents.json"), "{text}");
    assert_eq!(fs::read_to_string(&record).unwrap(), "{");
}

#[test]
fn without_the_record_only_our_entries_are_removed() {
    let home = Home::new();
    let settings = home.write(".gemini/settings.json", COMMENTED);
    home.run(&["install", "--agent", "gemini", "--yes"], 0);
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replace("\"dark\"", "\"light\"")).unwrap();
    home.run(&["uninstall", "--agent", "gemini", "--yes"], 0);
    let text = fs::read_to_string(&settings).unwrap();
    assert!(
        text.contains("\"light\" // last") && text.contains("// mine"),
        "{text}"
    );
    assert!(!text.contains("sightline"), "{text}");
}

#[test]
fn a_file_that_cannot_be_edited_is_reported_and_kept() {
    let home = Home::new();
    let settings = home.write(".claude/settings.json", "{ \"hooks\": [] }");
    let text = home.run(&["install", "--agent", "claude", "--yes"], 3);
    assert!(text.contains("`hooks` is not an object"), "{text}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{ \"hooks\": [] }");
    fs::write(&settings, "{").unwrap();
    let text = home.run(&["install", "--agent", "claude", "--yes"], 3);
    assert!(text.contains("not valid"), "{text}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{");
}

#[test]
fn a_project_is_connected_for_a_team() {
    let home = Home::new();
    home.run(&["install", "--agent", "claude", "--project", "--yes"], 0);
    let root = home.workspace.root();
    assert!(root.join(".mcp.json").exists() && root.join(".claude/settings.json").exists());
    home.run(&["uninstall", "--agent", "claude", "--project", "--yes"], 0);
    assert!(!root.join(".mcp.json").exists() && !root.join(".claude").exists());
}

#[test]
fn installations_at_the_same_time_keep_the_record() {
    let home = Home::new();
    home.write(".claude/settings.json", "{ \"a\": 1 }\n");
    home.write(".codex/config.toml", "model = \"x\"\n");
    let before = home.snapshot();
    for _ in 0..5 {
        std::thread::scope(|scope| {
            for agent in ["claude", "codex", "claude", "gemini"] {
                let install = || home.run(&["install", "--agent", agent, "--yes"], 0);
                scope.spawn(install);
            }
        });
        home.run(&["uninstall", "--yes"], 0);
        assert_eq!(home.snapshot(), before);
    }
}

#[test]
fn a_file_that_an_agent_rewrote_loses_all_our_entries() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", "{ \"theme\": \"dark\" }\n");
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    let rewrite = || {
        let text = fs::read_to_string(&file).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        fs::write(&file, value.to_string()).unwrap();
    };
    rewrite();
    let install = [
        "install",
        "--agent",
        "claude",
        "--only",
        "checkpoints",
        "--yes",
    ];
    home.run(&install, 0);
    rewrite();
    home.run(&install, 0);
    home.run(&["uninstall", "--agent", "claude", "--yes"], 0);
    let text = fs::read_to_string(&file).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value, json!({ "theme": "dark" }));
}

#[test]
fn what_others_wrote_is_kept_and_reported() {
    let home = Home::new();
    home.write(
        ".codex/config.toml",
        "[mcp_servers.sightline.env]\nK = \"V\"\n",
    );
    home.write(".config/opencode/plugins/sightline.js", "// mine\n");
    let before = home.snapshot();
    for agent in ["codex", "opencode"] {
        assert_eq!(
            home.run(&["uninstall", "--agent", agent, "--yes"], 0),
            "Nothing to do.\n"
        );
    }
    assert_eq!(home.snapshot(), before);
    let text = home.run(&["install", "--agent", "codex", "--yes"], 3);
    assert!(text.contains("does not start `sightline mcp`"), "{text}");
    let text = home.run(&["install", "--agent", "opencode", "--yes"], 3);
    assert!(text.contains("did not write it"), "{text}");
    home.run(&["uninstall", "--yes"], 0);
    assert_eq!(home.snapshot(), before);
}

#[test]
fn a_file_with_two_names_is_not_separated() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", "{}\n");
    fs::hard_link(&file, home.folder.join("other.json")).unwrap();
    let both = ["install", "--agent", "claude", "--agent", "codex", "--yes"];
    let text = home.run(&both, 3);
    assert!(text.contains("hard links"), "{text}");
    assert!(text.contains("hooks.json: written"), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}\n");
}
