//! Configuration files of the user and of projects, as the command line, hooks, MCP and editors
//! see them.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};
use sightline_testing::lsp_client::LspClient;

use crate::{
    harness::{Workspace, finished, open_in, program, spawn_with, wait},
    mcp,
};

const PROJECT: &str = ".sightline.toml";

fn user_file(workspace: &Workspace) -> PathBuf {
    workspace
        .data()
        .with_file_name("home/sightline/config.toml")
}

fn configure(workspace: &Workspace, text: &str) {
    let file = user_file(workspace);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// The program, with the configuration file of the test.
fn command(workspace: &Workspace) -> Command {
    let mut command = program();
    command
        .env("XDG_CONFIG_HOME", workspace.data().with_file_name("home"))
        .env("XDG_DATA_HOME", workspace.data().with_file_name("unused"))
        .current_dir(workspace.root())
        .stdin(Stdio::null());
    command
}

fn run(workspace: &Workspace, arguments: &[&str]) -> (i32, String, String) {
    let mut command = command(workspace);
    command
        .args(arguments)
        .arg("--storage")
        .arg(workspace.data());
    finished(command.output().unwrap())
}

fn run_hook(workspace: &Workspace, event: &str, input: &Value) -> Value {
    let mut child = command(workspace)
        .args(["hook", event, "--agent", "claude", "--storage"])
        .arg(workspace.data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let input = input.to_string();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{event}");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Returns whether a hook lets a tool read a file.
fn may_read(workspace: &Workspace, path: &str) -> bool {
    let input = json!({
        "session_id": "s", "cwd": workspace.root(), "tool_name": "Read",
        "tool_input": { "file_path": workspace.path(path) },
    });
    let answer = run_hook(workspace, "PreToolUse", &input);
    answer.pointer("/hookSpecificOutput/permissionDecision") != Some(&json!("deny"))
}

fn block_for_prompt(workspace: &Workspace) -> String {
    // A known session gets only what changed.
    static SESSIONS: AtomicU32 = AtomicU32::new(0);
    let session = format!("s{}", SESSIONS.fetch_add(1, Ordering::Relaxed));
    // Without an editor, the mode is what there is to tell.
    let input = json!({
        "session_id": session, "cwd": workspace.root(), "prompt": "Q", "permission_mode": "plan",
    });
    let answer = run_hook(workspace, "UserPromptSubmit", &input);
    let block = answer.pointer("/hookSpecificOutput/additionalContext");
    block.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn mcp_client(workspace: &Workspace) -> mcp::Client {
    let mut command = command(workspace);
    let mut client = mcp::Client::spawn(command.arg("mcp"), workspace);
    client.initialize("2025-11-25");
    client
}

fn sample() -> Workspace {
    let workspace = Workspace::new(&[
        ("a.txt", "a\n"),
        (".env", "KEY=1\n"),
        ("big.txt", "0123456789\n"),
    ]);
    fs::create_dir(workspace.path(".git")).unwrap();
    workspace
}

#[test]
fn the_command_line_hooks_and_mcp_know_the_files() {
    let workspace = sample();
    assert_eq!(run(&workspace, &["read", ".env"]).0, 1);
    assert!(block_for_prompt(&workspace).contains("Current Time"));
    configure(
        &workspace,
        "[access]\nsecrets = \"allow\"\n[checkpoints]\nmaxFileSize = 10\n\
         [environment.sections]\ncurrentTime.enabled = false\n\
         [conversation.models.\"my.model\"]\ncontextWindow = 4096\n",
    );
    assert_eq!(run(&workspace, &["read", ".env"]).1, "KEY=1\n");
    let (_, block, _) = run(&workspace, &["environment"]);
    assert!(!block.contains("Current Time"), "{block}");
    let (_, created, _) = run(&workspace, &["checkpoint", "create", "--json"]);
    assert!(
        created.contains("big.txt") && !created.contains("\"a.txt\""),
        "{created}"
    );
    assert!(may_read(&workspace, ".env"));
    let block = block_for_prompt(&workspace);
    assert!(
        block.contains("# ") && !block.contains("Current Time"),
        "{block}"
    );
    let mut client = mcp_client(&workspace);
    let (text, is_error) = client.call("read_file", json!({ "path": ".env" }));
    assert!(!is_error && text.contains("KEY=1"), "{text}");
    let (text, _) = client.call("environment_details", json!({}));
    assert!(!text.contains("Current Time"), "{text}");
}

#[test]
fn a_project_only_denies_more() {
    let workspace = sample();
    workspace.write(
        PROJECT,
        "access = { secrets = \"allow\", mentions = \"allow\" }\n",
    );
    let (code, _, complaint) = run(&workspace, &["read", ".env"]);
    assert_eq!(code, 1);
    assert!(
        complaint.contains(".sightline.toml:1: `access.secrets`"),
        "{complaint}"
    );
    assert!(!may_read(&workspace, ".env"));
    let (_, is_error) = mcp_client(&workspace).call("read_file", json!({ "path": ".env" }));
    assert!(is_error);

    configure(&workspace, "access.secrets = \"allow\"\n");
    assert!(may_read(&workspace, ".env"));
    for denying in ["access.secrets = \"deny\"\n", "access.secrets = \"de"] {
        workspace.write(PROJECT, denying);
        assert_eq!(run(&workspace, &["read", ".env"]).0, 1, "{denying}");
        assert!(!may_read(&workspace, ".env"), "{denying}");
        let (_, is_error) = mcp_client(&workspace).call("read_file", json!({ "path": ".env" }));
        assert!(is_error, "{denying}");
        assert!(
            block_for_prompt(&workspace).contains("Current Time"),
            "{denying}"
        );
    }
}

#[test]
fn config_shows_values_and_origins() {
    let workspace = sample();
    configure(
        &workspace,
        "[access]\nsecrets = \"allow\"\nmentions = \"allow\"\n",
    );
    workspace.write(PROJECT, "\naccess.mentions = \"deny\"\n");
    let (code, text, complaint) = run(&workspace, &["config"]);
    assert_eq!((code, complaint.as_str()), (0, ""));
    let user = user_file(&workspace);
    let user = user.to_str().unwrap();
    let project = workspace.path(PROJECT);
    let project = project.to_str().unwrap();
    let has = |wanted: &str| text.lines().any(|line| line == wanted);
    assert!(
        has(&format!("user: {user}")) && has(&format!("project: {project}")),
        "{text}"
    );
    let line = |key: &str| {
        let mut lines = text.lines();
        lines
            .find(|line| line.starts_with(&format!("{key} ")))
            .unwrap()
    };
    let secrets = line("access.secrets");
    assert!(
        secrets.starts_with("access.secrets = \"allow\" "),
        "{secrets}"
    );
    assert!(secrets.ends_with(&format!(" user {user}:2")), "{secrets}");
    assert!(line("access.mentions").ends_with(&format!(" project {project}:2")));
    assert!(line("checkpoints.maxFiles").ends_with(" default"));
    assert!(line("tasks.maxCount").contains("(not set)"));
    assert!(line("storage.path").ends_with(" command line"));

    let (code, json, _) = run(&workspace, &["config", "--json"]);
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        report["files"][0],
        json!({ "exists": true, "path": user, "scope": "user" })
    );
    let settings = report["settings"].as_array().unwrap();
    let mentions = settings
        .iter()
        .find(|setting| setting["key"] == "access.mentions");
    assert_eq!(
        mentions.unwrap(),
        &json!({ "key": "access.mentions", "value": "deny", "origin": "project", "file": project, "line": 2 })
    );

    configure(&workspace, "[acces]\n\nx = \n");
    let (code, _, complaint) = run(&workspace, &["config"]);
    assert_eq!(code, 1);
    assert!(
        complaint.contains("config.toml:3: is not TOML"),
        "{complaint}"
    );
    configure(&workspace, "\n[acces]\n");
    let (code, json, _) = run(&workspace, &["config", "--json"]);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["problems"][0]["line"], 2);
    assert_eq!(report["problems"][0]["key"], "acces");
    let (_, findings, _) = run(&workspace, &["doctor"]);
    assert!(
        findings.contains("FIX configuration files: ")
            && findings.contains("config.toml:2: `acces`"),
        "{findings}"
    );
    let (code, block, complaint) = run(&workspace, &["environment"]);
    assert_eq!(code, 0);
    assert!(block.contains("Current Time"), "{block}");
    assert!(complaint.contains("did you mean `access`?"), "{complaint}");
}

#[test]
fn the_data_directory_of_the_file_is_used() {
    let workspace = sample();
    let data = workspace.data().with_file_name("elsewhere");
    configure(
        &workspace,
        &format!("storage.path = {:?}\n", data.to_str().unwrap()),
    );
    let output = command(&workspace).args(["checkpoint", "create"]).output();
    assert!(output.unwrap().status.success());
    assert!(data.join("projects").is_dir());
    assert!(
        !workspace
            .data()
            .with_file_name("unused/sightline/projects")
            .exists()
    );
}

#[test]
fn a_running_server_uses_the_files_and_notices_changes() {
    let workspace = sample();
    configure(&workspace, "access.secrets = \"allow\"\n");
    let mut with_files = command(&workspace);
    let (mut server, mut editor) = spawn_with(&mut with_files);
    open_in(&mut editor, &workspace);
    let access = |editor: &mut LspClient| {
        let params = json!({ "paths": [workspace.path(".env")] });
        let result = editor.request("sightline/checkAccess", params);
        result.unwrap().unwrap()["paths"][0]["access"].clone()
    };
    assert_eq!(access(&mut editor), "allowed");
    assert!(may_read(&workspace, ".env"), "asks the server");
    // The file of the project is saved in the editor.
    workspace.write(PROJECT, "access.secrets = \"deny\"\nnotifications = true\n");
    let document = json!({ "uri": workspace.uri(PROJECT) });
    let saved = json!({ "textDocument": document });
    editor
        .notify("textDocument/didSave", saved.clone())
        .unwrap();
    assert_eq!(access(&mut editor), "denied");
    assert!(!may_read(&workspace, ".env"));
    let shown = editor.notified("window/showMessage").unwrap();
    let shown = shown["message"].as_str().unwrap();
    assert!(
        shown.contains(".sightline.toml:2: `notifications` cannot be set"),
        "{shown}"
    );

    // The settings of the editor come first, and a server with notifications watches.
    let settings = json!({ "sightline": { "notifications": true } });
    let changed = json!({ "settings": settings });
    editor
        .notify("workspace/didChangeConfiguration", changed)
        .unwrap();
    workspace.write(PROJECT, "");
    for attempt in 0.. {
        if access(&mut editor) == "allowed" {
            break;
        }
        assert!(attempt < 100, "the change was not noticed");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    workspace.write(PROJECT, "access.secrets = \"deny\"\n");
    editor.notify("textDocument/didSave", saved).unwrap();
    let settings = json!({ "sightline": { "access": { "secrets": "allow" } } });
    let changed = json!({ "settings": settings });
    editor
        .notify("workspace/didChangeConfiguration", changed)
        .unwrap();
    assert_eq!(access(&mut editor), "allowed");
    drop(editor);
    wait(&mut server, "ended");
}

#[test]
fn agents_cannot_change_the_file_of_the_user() {
    let workspace = sample();
    configure(&workspace, "access.secrets = \"deny\"\n");
    let outside = user_file(&workspace);
    // A repository with the configuration of the user.
    workspace.write("dot/sightline/config.toml", "");
    let inside = workspace.path("dot/sightline/config.toml");
    for file in [&outside, &inside] {
        let tool = json!({ "file_path": file, "old_string": "deny", "new_string": "allow" });
        let event = json!({
            "session_id": "s", "cwd": workspace.root(), "tool_name": "Edit", "tool_input": tool,
        });
        let answer = run_hook(&workspace, "PreToolUse", &event);
        let answer = &answer["hookSpecificOutput"];
        assert_eq!(answer["permissionDecision"], "deny", "{file:?}: {answer}");
    }
    assert!(!may_read(&workspace, "dot/sightline/config.toml"));
}

/// The editor of such a server reports no changes of the files.
#[test]
fn a_server_without_notifications_and_mcp_read_the_files_for_each_request() {
    let workspace = sample();
    configure(&workspace, "access.secrets = \"allow\"\n");
    let mut client = mcp_client(&workspace);
    let read = |client: &mut mcp::Client| client.call("read_file", json!({ "path": ".env" })).0;
    assert!(read(&mut client).contains("KEY=1"));
    let (mut server, mut editor) = spawn_with(&mut command(&workspace));
    open_in(&mut editor, &workspace);
    assert!(may_read(&workspace, ".env"));

    workspace.write(PROJECT, "access.secrets = \"deny\"\n");
    assert!(!may_read(&workspace, ".env"));
    assert_eq!(run(&workspace, &["read", ".env"]).0, 1);
    drop(editor);
    wait(&mut server, "ended");
    assert!(!read(&mut client).contains("KEY=1"));
    std::fs::remove_file(workspace.path(PROJECT)).unwrap();
    assert!(read(&mut client).contains("KEY=1"));
    configure(&workspace, "access.secrets = \"deny\"\n");
    assert!(!read(&mut client).contains("KEY=1"));
}

/// A restore would revert what the file denies.
#[test]
fn a_restore_keeps_the_file_of_a_project() {
    let workspace = sample();
    configure(&workspace, "access.secrets = \"allow\"\n");
    let (_, created, _) = run(&workspace, &["checkpoint", "create", "--json"]);
    let created: Value = serde_json::from_str(&created).unwrap();
    let id = created["id"].as_str().unwrap();
    // Where the secrets are denied, the file is, and is not in checkpoints.
    for (settings, is_listed) in [
        ("access.secrets = \"deny\"\n", false),
        ("checkpoints.maxFiles = 50\n", true),
    ] {
        workspace.write(PROJECT, settings);
        workspace.write("a.txt", "changed\n");
        let (code, text, complaint) = run(&workspace, &["checkpoint", "restore", id, "--yes"]);
        assert_eq!(code, 0, "{complaint}");
        assert_eq!(text.contains(PROJECT), is_listed, "{text}");
        assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "a\n");
        let kept = fs::read_to_string(workspace.path(PROJECT)).unwrap();
        assert_eq!(kept, settings);
    }
}
