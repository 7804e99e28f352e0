//! The command line: the same results without an editor, and its exit codes.

#[cfg(target_os = "linux")]
pub(crate) mod cli_terminal;
mod config_files;
mod documented_commands;
#[cfg(unix)]
mod doors;
mod examples;

use std::{
    fs,
    process::{Output, Stdio},
};

use serde_json::{Value, json};
use sightline_testing::files;

use crate::{
    editors::neovim::sample,
    harness::{Workspace, finished, program},
};

fn run(workspace: &Workspace, arguments: &[&str]) -> (i32, String, String) {
    let output: Output = program()
        .args(arguments)
        .current_dir(workspace.root())
        .env("XDG_DATA_HOME", workspace.data())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    finished(output)
}

#[test]
fn the_block_from_the_disk() {
    let workspace = sample();
    let (code, text, _) = run(&workspace, &["environment", "--files"]);
    assert_eq!(code, 0);
    assert!(
        text.starts_with("<environment_details>\n# Editor Visible Files\n"),
        "{text}"
    );
    assert!(
        text.contains("src/cart.py") && !text.contains(".env"),
        "{text}"
    );
    let (code, json, _) = run(&workspace, &["environment", "--json"]);
    assert_eq!(code, 0);
    let result: Value = serde_json::from_str(&json).unwrap();
    assert!(result["revision"].is_u64() && result["sections"].is_array());
}

/// The list of an agent names a tool of it. People get an option.
#[test]
fn a_list_that_is_cut_short_names_the_option() {
    let workspace = sample();
    let (code, text, _) = run(&workspace, &["list", "--limit", "2"]);
    assert_eq!(code, 0);
    assert!(
        text.contains("\n\n(Cut short. List a directory above, or raise --limit.)\n"),
        "{text}"
    );
    assert!(!text.contains("list_files"), "{text}");
    let (_, json, _) = run(&workspace, &["list", "--limit", "2", "--json"]);
    let result: Value = serde_json::from_str(&json).unwrap();
    assert!(result["text"].as_str().unwrap().contains("list_files"));
}

/// Commands that read the params of a request say so.
#[test]
fn empty_input_is_an_error_that_says_what_to_write() {
    let workspace = sample();
    for (command, method) in [
        (["compact", "plan"], "planCompaction"),
        (["compact", "apply"], "applyCompaction"),
        (["history", "truncate"], "truncateHistory"),
        (["history", "rollback"], "rollbackHistory"),
    ] {
        let (code, _, error) = run(&workspace, &command);
        let wanted = format!("`sightline schema {method}` describes");
        assert!(
            code == 2 && error.contains("standard input is empty") && error.contains(&wanted),
            "{command:?}: {code} {error}"
        );
        assert_eq!(run(&workspace, &["schema", method]).0, 0);
    }
}

#[test]
fn a_trailing_slash_names_a_folder_that_may_not_exist() {
    let workspace = sample();
    workspace.write(".clineignore", "later/\n");
    assert_eq!(run(&workspace, &["access", "later/"]).0, 1);
    assert_eq!(run(&workspace, &["access", "later"]).0, 0);
}

#[test]
fn access_answers_by_exit_code() {
    let workspace = sample();
    for (arguments, code) in [
        (vec!["access", "src/cart.py"], 0),
        (vec!["access", "src/cart.py", ".env"], 1),
        (vec!["access", "../elsewhere"], 1),
        (vec!["access", "--command", "cat README.md"], 0),
        (vec!["access", "--command", "sudo cat '.env'"], 1),
        (vec!["access"], 2),
        (vec!["access", "--no-such-flag"], 2),
        (vec!["read", ".env"], 1),
        (vec!["read", "README.md"], 0),
        (vec!["read", "nowhere"], 3),
        (vec!["list"], 0),
        (vec!["list", "--root", "nowhere"], 2),
        (vec!["schema", "no-such-name"], 2),
        (vec!["schema"], 0),
        (vec!["schema", "truncateHistory"], 0),
        (vec!["--version"], 0),
        (vec!["--help"], 0),
        (vec!["no-such-command"], 2),
    ] {
        let (got, output, complaint) = run(&workspace, &arguments);
        assert_eq!(got, code, "{arguments:?}: {output}{complaint}");
    }
    let (_, json, _) = run(&workspace, &["access", "--json", ".env"]);
    let result: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        result["paths"][0]["rule"],
        json!({ "source": ".clineignore", "line": 2, "pattern": ".env*" })
    );
}

#[test]
fn paths_are_relative_to_the_current_directory() {
    let workspace = sample();
    let read = program()
        .args(["read", "prices.py"])
        .current_dir(workspace.path("src"))
        .output()
        .unwrap();
    assert!(
        String::from_utf8(read.stdout)
            .unwrap()
            .starts_with("PRICES")
    );
    let denied = program()
        .args(["access", "../secrets/suppliers.csv"])
        .current_dir(workspace.path("src"))
        .output()
        .unwrap();
    assert_eq!(
        denied.status.code(),
        Some(1),
        "the rules of the folder above hold"
    );
}

#[test]
fn schemas_match_the_committed_ones() {
    let workspace = sample();
    let (_, printed, _) = run(&workspace, &["schema", "settings"]);
    let committed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../schemas/settings.schema.json"
    );
    assert_eq!(printed, std::fs::read_to_string(committed).unwrap());
}

#[test]
fn doctor_prints_its_findings() {
    let workspace = sample();
    let (_, json, complaint) = run(&workspace, &["doctor", "--json"]);
    let result: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json}{complaint}"));
    for finding in result["findings"].as_array().unwrap() {
        assert!(!finding["found"].as_str().unwrap().is_empty(), "{finding}");
        let remedy = finding["remedy"].as_str().unwrap();
        assert_eq!(
            finding["ok"].as_bool().unwrap(),
            remedy.is_empty(),
            "{finding}"
        );
    }
    let found = |what: &str| {
        let findings = result["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["what"] == what);
        finding.unwrap()["found"].as_str().unwrap().to_owned()
    };
    assert!(found("program").starts_with(env!("CARGO_PKG_VERSION")));
    assert!(found("program").contains("sightline"));
    assert!(found("running servers").starts_with("0 servers"), "{json}");
    assert!(!found("agents").is_empty());
    std::fs::remove_file(workspace.path(".clineignore")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", workspace.path(".clineignore")).unwrap();
    let (code, text, _) = run(&workspace, &["doctor"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("FIX access rules"), "{text}");
}

#[test]
fn doctor_does_not_require_an_editor() {
    let workspace = sample();
    let output = program()
        .args(["doctor", "--json"])
        .current_dir(workspace.root())
        .env("XDG_DATA_HOME", workspace.data())
        .env("PATH", workspace.data())
        .output()
        .unwrap();
    let (_, json, complaint) = finished(output);
    let result: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json}{complaint}"));
    let findings = result["findings"].as_array().unwrap();
    let editors = findings
        .iter()
        .find(|one| one["what"] == "editors")
        .unwrap();
    assert_eq!(editors["ok"], true, "{editors}");
    assert!(
        editors["found"].as_str().unwrap().starts_with("none of"),
        "{editors}"
    );
}

#[cfg(unix)]
#[test]
fn doctor_names_connected_agents_and_counts_the_servers_of_the_workspace() {
    let home = crate::agents::Home::new();
    home.run(&["install", "--agent", "claude", "--yes"], 0);
    let root = home.workspace.root().to_string_lossy().into_owned();
    let inner = home.folder.to_string_lossy().into_owned();
    let storage = home.workspace.data().to_string_lossy().into_owned();
    let doctor = |root: &str| {
        let output = home.command(&["doctor", "--root", root, "--storage", &storage]);
        String::from_utf8(output.stdout).unwrap()
    };
    let text = doctor(&root);
    assert!(text.contains("agents: Claude Code\n"), "{text}");
    let none = format!("running servers: 0 servers for {root}\n");
    assert!(text.contains(&none), "{text}");

    let server = crate::ipc::listening(&home.workspace);
    let one = format!("running servers: 1 server for {root}\n");
    let text = doctor(&root);
    assert!(text.contains(&one), "{text}");
    let text = doctor(&inner);
    assert!(text.contains("running servers: 0 servers for "), "{text}");
    server.end();
    let text = doctor(&root);
    assert!(text.contains(&none), "{text}");
}

#[test]
fn uninstall_shows_the_data_and_deletes_it_if_confirmed() {
    let workspace = sample();
    let (code, _, complaint) = run(&workspace, &["checkpoint", "create"]);
    assert_eq!(code, 0, "{complaint}");
    let (_, json, _) = run(&workspace, &["doctor", "--json"]);
    assert!(json.contains("projects"), "{json}");
    let data = workspace.data().join("sightline");

    assert_eq!(run(&workspace, &["uninstall"]).0, 2);
    let (code, _, complaint) = run(&workspace, &["uninstall", "--data"]);
    assert_eq!(code, 2, "{complaint}");
    assert!(complaint.contains("--yes"), "{complaint}");
    let (code, text, _) = run(&workspace, &["uninstall", "--data", "--dry-run"]);
    assert_eq!(code, 0);
    assert!(text.contains("projects"), "{text}");
    assert!(data.join("projects").is_dir());

    // Another folder is never deleted.
    let root = workspace.root().to_string_lossy().into_owned();
    let (code, _, complaint) = run(
        &workspace,
        &["uninstall", "--data", "--yes", "--storage", &root],
    );
    assert_eq!(code, 2, "{complaint}");
    assert!(workspace.root().is_dir());

    // The files of others are kept.
    fs::write(data.join("notes.md"), "mine").unwrap();
    let (code, text, _) = run(&workspace, &["uninstall", "--data", "--yes"]);
    assert!(code == 0 && text.contains("is kept"), "{code} {text}");
    assert_eq!(
        files::read(&data),
        [("notes.md".into(), b"mine".to_vec())].into()
    );
    fs::remove_file(data.join("notes.md")).unwrap();

    assert_eq!(run(&workspace, &["checkpoint", "create"]).0, 0);
    let (code, text, _) = run(&workspace, &["uninstall", "--data", "--yes"]);
    assert_eq!(code, 0, "{text}");
    assert!(!data.exists());
    assert_eq!(run(&workspace, &["uninstall", "--data", "--yes"]).0, 0);
}

#[test]
fn completions_know_the_commands() {
    let workspace = sample();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, script, _) = run(&workspace, &["completions", shell]);
        assert_eq!(code, 0);
        assert!(script.contains("environment"), "{shell}");
        let has_ids = ["bash", "zsh", "fish"].contains(&shell);
        assert_eq!(
            script.contains("sightline checkpoint list --ids"),
            has_ids,
            "{shell}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn completions_of_bash_know_the_ids() {
    let workspace = sample();
    let (_, created, _) = run(&workspace, &["checkpoint", "create"]);
    let id = created.split(' ').next().unwrap();
    let (_, script, _) = run(&workspace, &["completions", "bash"]);
    workspace.write("completions", &script);
    let complete = |words: &str| {
        let line = format!(
            "source ./completions; COMP_WORDS=(sightline {words} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _sightline_with_ids sightline '' {}; printf '%s\n' \"${{COMPREPLY[@]}}\"",
            words.rsplit(' ').next().unwrap()
        );
        let programs = std::path::Path::new(env!("CARGO_BIN_EXE_sightline"));
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", programs.parent().unwrap().display());
        let output = std::process::Command::new("bash")
            .args(["-c", &line])
            .current_dir(workspace.root())
            .env("XDG_DATA_HOME", workspace.data())
            .env("PATH", path)
            .output();
        let (code, text, error) = finished(output.unwrap());
        assert_eq!(code, 0, "{error}");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for words in ["checkpoint diff", "checkpoint restore", "checkpoint label"] {
        let offered = complete(words);
        assert!(
            offered.iter().any(|word| word == id),
            "{words}: {offered:?}"
        );
        assert!(offered.iter().any(|word| word == "last"), "{words}");
    }
    let offered = complete("checkpoint list");
    assert!(!offered.iter().any(|word| word == id), "{offered:?}");
    assert!(complete("checkpoint").iter().any(|word| word == "restore"));
}

#[test]
fn every_command_has_a_manual_page() {
    let workspace = sample();
    let folder = workspace.data().join("man1");
    let (code, _, complaint) = run(&workspace, &["man", "--to", folder.to_str().unwrap()]);
    assert_eq!(code, 0, "{complaint}");
    let (_, help, _) = run(&workspace, &["--help"]);
    let commands = help.split_once("Commands:").unwrap().1;
    let commands = commands.split_once("Options:").unwrap().0;
    // A command name is indented by two spaces and followed by its description.
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = commands.lines().filter(is_name);
    let names: Vec<&str> = names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 10, "{help}");
    for name in names {
        let page = folder.join(format!("sightline-{name}.1"));
        assert!(page.exists(), "{}", page.display());
        let (code, printed, _) = run(&workspace, &["man", name]);
        assert_eq!(code, 0);
        assert_eq!(printed, std::fs::read_to_string(page).unwrap());
    }
    let nested = folder.join("sightline-checkpoint-create.1");
    let (_, printed, _) = run(&workspace, &["man", "checkpoint", "create"]);
    assert!(
        printed.contains(r"\fBsightline checkpoint create\fR"),
        "{printed}"
    );
    assert_eq!(printed, std::fs::read_to_string(nested).unwrap());
    assert!(!folder.join("sightline-help.1").exists());
    let (code, _, complaint) = run(&workspace, &["man", "checkpoint", "nonsense"]);
    assert_eq!(code, 2);
    assert!(complaint.contains("`sightline checkpoint`"), "{complaint}");
}

#[path = "../../server/local/build.rs"]
#[allow(dead_code, reason = "its `main` is Cargo's to call")]
mod build_script;

fn git(folder: &std::path::Path, arguments: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(folder).args(arguments);
    git.args(["--quiet"]).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "Test");
        git.env(format!("GIT_{who}_EMAIL"), "test@example.org");
        git.env(format!("GIT_{who}_DATE"), "2026-01-31T12:00:00Z");
    }
    assert!(git.status().unwrap().success(), "git {arguments:?}");
}

#[test]
fn a_build_knows_its_commit() {
    let scratch = Workspace::new(&[("inner/file", "")]);
    let root = scratch.root();
    assert!(build_script::commit(&root).is_none(), "an unpacked archive");
    git(&root, &["init"]);
    assert!(build_script::commit(&root).is_none(), "no commit yet");
    git(&root, &["commit", "--allow-empty", "--message", "First"]);
    let commit = build_script::commit(&root).unwrap();
    let id = &commit.id;
    let expected = (format!("1.2.0+{id}"), format!("1.2.0 ({id} 2026-01-31)"));
    assert_eq!(build_script::versions("1.2.0", Some(&commit)), expected);
    assert!(commit.id.len() >= 10 && commit.id.chars().all(|digit| digit.is_ascii_hexdigit()));
    for is_packed in [false, true] {
        if is_packed {
            let mut pack = std::process::Command::new("git");
            pack.arg("-C").arg(&root).args(["pack-refs", "--all"]);
            assert!(pack.status().unwrap().success());
        }
        let watched = build_script::commit(&root).unwrap().moved_by;
        let content = || -> Vec<_> { watched.iter().map(std::fs::read).map(Result::ok).collect() };
        let before = content();
        git(&root, &["commit", "--allow-empty", "--message", "Next"]);
        assert_ne!(content(), before, "{watched:?}");
    }
    let inner = root.join("inner");
    assert!(
        build_script::commit(&inner).is_none(),
        "an archive inside a repository"
    );
}

#[test]
fn the_program_prints_its_version() {
    let workspace = sample();
    let release = env!("CARGO_PKG_VERSION");
    let (_, short, _) = run(&workspace, &["-V"]);
    assert_eq!(short, format!("sightline {release}\n"));
    let (_, long, _) = run(&workspace, &["--version"]);
    let commit = build_script::commit(&crate::editors::nvim_plugin::repository());
    let (answered, version) = build_script::versions(release, commit.as_ref());
    assert_eq!(long, format!("sightline {version}\n"));
    let mut server = crate::harness::Server::bare(Default::default());
    let started = server.initialize(workspace.initialize());
    assert_eq!(started["serverInfo"]["version"], answered.as_str());
}

#[test]
fn the_demo_shows_every_step() {
    let workspace = sample();
    let temporary = tempfile::tempdir().unwrap();
    let output = program()
        .arg("demo")
        .current_dir(workspace.root())
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}{complaint}");
    let mut rest = text.as_str();
    for part in [
        "1. The agent learns",
        "# demo editor Open Tabs\nsrc/cart.py\nREADME.md\n\n",
        "# Unsaved Files\nsrc/cart.py",
        "</environment_details>",
        "2. It wants a denied file",
        "is hidden from agents: .clineignore:2: ",
        "`sudo cat .env | head -1`: ",
        "3. A checkpoint",
        "4. The agent edits",
        "deleted docs/ideas.md",
        "5. What changed",
        "D        +0 -2  docs/ideas.md",
        "A        +1 -0  src/discounts.py",
        "M        +1 -1  src/prices.py",
        "6. What a restore would do",
        "write   docs/ideas.md",
        "delete  src/discounts.py",
        "write   src/prices.py",
        "7. The restore",
        "3 paths changed; src/prices.py has `\"bread\": 250,`",
        "8. The restore is undone",
        "3 paths changed; src/prices.py has `\"bread\": 270,`",
        "9. A conversation",
        "are left out",
        "Next",
        "sightline agents install",
    ] {
        let at = rest.find(part);
        rest = &rest[at.unwrap_or_else(|| panic!("{part} is missing in\n{text}"))..];
    }
    assert!(
        !text.contains('\u{1b}') && !text.contains(".env\n"),
        "{text}"
    );
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
}

/// A folder with its own `.git`, even an empty one, ends the workspace but not the rules
/// above it.
#[test]
fn rules_above_the_workspace_count() {
    let workspace = Workspace::new(&[(".clineignore", "secret\n"), ("sub/secret", "s3cr3t")]);
    std::fs::create_dir(workspace.path("sub/.git")).unwrap();
    let sub = |arguments: &[&str]| {
        let output = program()
            .args(arguments)
            .current_dir(workspace.path("sub"))
            .env("XDG_DATA_HOME", workspace.data())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text)
    };
    let (code, text) = sub(&["access", "secret"]);
    let rules = workspace.path(".clineignore");
    let expected = format!("denied\tsecret\t{}:1: secret\n", rules.display());
    assert_eq!((code, text), (1, expected));
    let (_, text) = sub(&["environment", "--files"]);
    assert!(!text.contains("secret"), "{text}");
    let (code, text) = sub(&["doctor"]);
    assert!(text.contains(&rules.display().to_string()), "{code} {text}");
    // A dangling rule file counts.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", workspace.path("sub/.clineignore")).unwrap();
        let (code, text) = sub(&["access", "other"]);
        assert_eq!(code, 1);
        assert!(text.contains("cannot be followed"), "{text}");
    }
}

#[test]
fn times_are_dates_or_ages() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n")]);
    for command in ["usage", "log"] {
        for since in ["2026-11-30", "7d", "30m"] {
            let (code, _, error) = run(&workspace, &[command, "--since", since]);
            assert_eq!(code, 0, "{command} {since}: {error}");
        }
        let (code, _, error) = run(&workspace, &[command, "--since", "yesterday"]);
        assert!(
            code == 2 && error.contains("such as 2026-11-30"),
            "{command}: {error}"
        );
    }
    let (code, _, error) = run(&workspace, &["usage", "--file", "none"]);
    assert!(code == 3 && error.contains("no such file"), "{error}");
}

#[test]
fn a_folder_without_checkpoints_names_the_one_above() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n"), ("sub/b.txt", "beta\n")]);
    let root = workspace.root().to_str().unwrap().to_owned();
    let sub = workspace.path("sub").to_str().unwrap().to_owned();
    let (_, _, error) = run(&workspace, &["checkpoint", "list", "--root", &sub]);
    assert!(error.contains("no checkpoints yet"), "{error}");
    let (code, ..) = run(&workspace, &["checkpoint", "create", "--root", &root]);
    assert_eq!(code, 0);
    let (_, _, error) = run(&workspace, &["checkpoint", "list", "--root", &sub]);
    assert!(
        error.contains(&format!("`sightline checkpoint list --root {root}`")),
        "{error}"
    );
}
