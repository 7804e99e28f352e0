//! Who may remove or replace the entries in the configuration of agents, and where they are written.

use std::{fs, os::unix::fs::symlink};

use crate::{
    agents::Home,
    cli::cli_terminal::at_a_terminal_with,
    harness::{AGENT_VARIABLES, Workspace},
};

#[test]
fn below_an_agent_entries_are_not_removed_without_a_person() {
    let mut home = Home::new();
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    let before = home.snapshot();
    for variable in AGENT_VARIABLES {
        home.variables = vec![(variable, "1".to_owned())];
        let text = home.run(&["uninstall", "--agent", "claude", "--yes"], 2);
        let command = "sightline agents uninstall --agent claude --yes";
        assert!(text.contains(variable) && text.contains(command), "{text}");
        home.run(&["uninstall", "--only", "access", "--yes"], 2);
        // Showing the changes is allowed, and so is what removes nothing.
        home.run(&["uninstall", "--agent", "claude"], 1);
        home.run(&["install", "--agent", "claude", "--yes"], 0);
    }
    assert_eq!(home.snapshot(), before);
    // An installation that replaces entries.
    home.put_on_path("bin");
    home.variables.push(("CLAUDECODE", "1".to_owned()));
    let settings = home.folder.join(".claude/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(
        &settings,
        text.replace("--agent claude ", "--agent claude --checkpoints "),
    )
    .unwrap();
    let outdated = fs::read_to_string(&settings).unwrap().replace("60", "1");
    fs::write(&settings, outdated).unwrap();
    home.run(&["install", "--agent", "claude", "--yes"], 2);
    // The first installation of another agent removes nothing.
    home.run(&["install", "--agent", "codex", "--yes"], 0);
}

#[test]
fn below_an_agent_a_person_at_a_terminal_is_asked() {
    let workspace = Workspace::new(&[]);
    let variables = [("CLAUDECODE", "1"), ("GEMINI_CLI", "")];
    let run =
        |arguments: &str, answer| at_a_terminal_with(&workspace, &variables, arguments, answer);
    let settings = workspace.data().join(".claude/settings.json");
    let Some((0, _)) = run("agents install --agent claude --yes", "") else {
        return;
    };
    let before = fs::read_to_string(&settings).unwrap();
    let (code, text) = run("agents uninstall --agent claude --yes", "n\n").unwrap();
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("CLAUDECODE is set"), "{text}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
    let (code, text) = run("agents uninstall --agent claude --yes", "y\n").unwrap();
    assert_eq!(code, 0, "{text}");
    assert!(!settings.exists());
}

#[test]
fn below_an_agent_the_data_is_not_deleted_without_a_person() {
    let mut home = Home::new();
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    home.command(&["doctor"]);
    assert!(home.workspace.data().join("sightline/version").exists());
    home.variables = vec![("GEMINI_CLI", "1".to_owned())];
    let output = home.command(&["uninstall", "--data", "--yes"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(home.workspace.data().join("sightline/version").exists());
}

#[test]
fn servers_that_could_not_return_are_named_before_the_data_is_deleted() {
    let home = Home::new();
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"notes": {"command": "notes"}}}"#,
    );
    let said = || {
        let output = home.command(&["uninstall", "--data", "--dry-run"]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    home.command(&["doctor"]);
    assert_eq!(said(), "");
    assert_eq!(
        home.command(&["mcp", "adopt", "notes"]).status.code(),
        Some(0)
    );
    assert!(
        said().contains("agents: notes; run `sightline mcp release NAME` first"),
        "{}",
        said()
    );
    home.command(&["mcp", "release", "notes"]);
    assert_eq!(said(), "");
}

/// All commands that are not for agents, also those that ask nothing.
#[test]
fn below_an_agent_commands_for_the_user_need_a_person() {
    let mut home = Home::new();
    let root = home.workspace.root().join("project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "one").unwrap();
    let mut run = |variable: Option<&'static str>, words: &str| {
        home.variables = variable
            .map(|name| (name, "1".to_owned()))
            .into_iter()
            .collect();
        let words: Vec<&str> = words.split(' ').chain(["--root", "project"]).collect();
        let output = home.command(&words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), error)
    };
    run(None, "checkpoint create");
    fs::write(root.join("a.txt"), "two").unwrap();
    for words in [
        "checkpoint restore last --yes",
        "checkpoint undo --yes",
        "checkpoint prune --keep 0 --yes",
        "checkpoint delete last --yes",
        "init",
    ] {
        let (code, error) = run(Some("CLAUDECODE"), words);
        assert_eq!(code, 2, "{words}: {error}");
        assert!(
            error.contains(&format!("run there: sightline {words}")),
            "{error}"
        );
    }
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "two");
    assert!(!root.join(".clineignore").exists());
    for words in [
        "checkpoint list",
        "checkpoint stats",
        "checkpoint restore last --dry-run",
        "doctor --json",
    ] {
        let (code, error) = run(Some("CLAUDECODE"), words);
        assert!(!error.contains("needs a person"), "{words}: {code} {error}");
    }
    assert_eq!(run(None, "checkpoint restore last --yes").0, 0);
}

#[test]
fn links_of_a_project_do_not_lead_to_files_elsewhere() {
    let home = Home::new();
    let root = home.workspace.root();
    let elsewhere = home.folder.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let victim = elsewhere.join("victim.json");
    fs::write(&victim, "{}\n").unwrap();
    // The home is in the workspace folder, so the project is next to it.
    let project = root.join("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    symlink(&victim, project.join(".mcp.json")).unwrap();
    symlink(&elsewhere, project.join(".claude")).unwrap();
    fs::create_dir(project.join("config")).unwrap();
    symlink("config", project.join(".gemini")).unwrap();
    let before = home.snapshot();
    let project = project.to_str().unwrap();
    let run = |action: &str, agent: &str, code| {
        home.run(
            &[
                action,
                "--agent",
                agent,
                "--project",
                "--root",
                project,
                "--yes",
            ],
            code,
        )
    };
    let text = run("install", "claude", 3);
    assert!(
        text.contains("a symbolic link of the project leads to"),
        "{text}"
    );
    assert!(text.contains("victim.json"), "{text}");
    assert_eq!(home.snapshot(), before);
    // A link within the project is followed.
    run("install", "gemini", 0);
    let settings = root.join("project/config/settings.json");
    assert!(settings.exists());
    run("uninstall", "gemini", 0);
    assert!(!settings.exists());
}

/// Entries that the user has written as `install` would write them are as before after `uninstall`.
#[test]
fn entries_of_the_user_stay() {
    for agent in [
        "claude", "codex", "gemini", "qwen", "copilot", "opencode", "cline",
    ] {
        let home = Home::new();
        let record = home.workspace.data().join("sightline/agents.json");
        let run = |action: &str| home.run(&[action, "--agent", agent, "--yes"], 0);
        run("install");
        fs::remove_file(&record).unwrap();
        let before = home.snapshot();
        assert!(run("install").contains("Nothing to do"), "{agent}");
        let text = run("uninstall");
        assert!(text.contains("was there before"), "{agent}: {text}");
        assert_eq!(home.snapshot(), before, "{agent}");
        // It says how they are removed.
        home.run(&["uninstall", "--agent", agent, "--yes"], 0);
        let status = home.run(&["status", "--agent", agent], 0);
        assert!(status.contains("not connected"), "{status}");
    }
}

#[test]
fn servers_of_the_user_stay_in_any_form() {
    let program = env!("CARGO_BIN_EXE_sightline");
    for (agent, path, text) in [
        (
            "codex",
            ".codex/config.toml",
            "# mine\nmcp_servers.sightline = { args = [\"mcp\"], command = \"PROGRAM\" } # first\n",
        ),
        (
            "codex",
            ".codex/config.toml",
            "mcp_servers = { sightline = { args = [\"mcp\"], command = \"PROGRAM\" }, b = { command = \"c\" } }\n",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.'sightline']\ncommand = 'PROGRAM'\nargs = [ 'mcp', ]\n",
        ),
        (
            "claude",
            ".claude.json",
            r#"{"mcpServers":{"sightline":{"args":["mcp"],"command":"PROGRAM","type":"stdio"}}}"#,
        ),
        (
            "claude",
            ".claude.json",
            r#"{"mcpServers":{"sightline":{"command":"sightline","args":["mcp"]}},"x":"y"}"#,
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            r#"{"mcp": {"sightline": {"type":"local","command":["PROGRAM","mcp"]}}, /* c */ }"#,
        ),
    ] {
        for edited in [false, true] {
            let home = Home::new();
            let text = text.replace("PROGRAM", program);
            let file = home.write(path, &text);
            let run = |action: &str| home.run(&[action, "--agent", agent, "--yes"], 0);
            run("install");
            run("install");
            if edited {
                // The earlier text is not known any more.
                let text = fs::read_to_string(&file).unwrap();
                fs::write(&file, format!("{text}\n")).unwrap();
            }
            run("uninstall");
            let after = fs::read_to_string(&file).unwrap();
            if edited {
                assert!(
                    after.contains("\"mcp\"") || after.contains("'mcp'"),
                    "{after}"
                );
            } else {
                assert_eq!(after, text);
            }
            let folder = home.folder.join(path);
            let files = fs::read_dir(folder.parent().unwrap()).unwrap();
            let hooks =
                files.filter(|it| it.as_ref().is_ok_and(|it| it.file_name() == "hooks.json"));
            assert_eq!(hooks.count(), 0);
            run("uninstall");
            assert!(
                !fs::read_to_string(&file).unwrap().contains("mcp\""),
                "{agent}"
            );
        }
    }
}
