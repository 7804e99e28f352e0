//! Built-in access rules for secrets, at every door.

use serde_json::{Value, json};

use crate::{
    harness::{Server, Workspace, finished, program},
    hook::hook_with,
    ipc::run,
};

/// A workspace without rules of the user.
fn plain() -> Workspace {
    Workspace::new(&[
        (".env", "KEY=SECRET-1\n"),
        (".env.example", "KEY=\n"),
        ("a.txt", "1\n"),
    ])
}

fn set_secrets(server: &mut Server, value: &str) {
    let settings = json!({ "sightline": { "access": { "secrets": value } } });
    server.send_notification(
        "workspace/didChangeConfiguration",
        json!({ "settings": settings }),
    );
}

fn verdict(server: &mut Server, path: &str) -> Value {
    let result = server.call("sightline/checkAccess", json!({ "paths": [path] }));
    result["paths"][0].clone()
}

#[test]
fn secrets_are_denied_in_a_folder_without_rules() {
    let workspace = plain();
    let mut server = Server::start(&workspace);
    let denied = verdict(&mut server, ".env");
    assert_eq!(denied["access"], "denied");
    let rule = json!({ "source": "built-in secrets", "line": 26, "pattern": ".env" });
    assert_eq!(denied["rule"], rule);
    assert_eq!(verdict(&mut server, ".env.example")["access"], "allowed");
    let error = server.refused("sightline/readFile", json!({ "path": ".env" }));
    assert_eq!(error["data"]["kind"], "accessDenied");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("built-in secrets") && !message.contains("SECRET-1"),
        "{message}"
    );
    let list = server.call("sightline/listFiles", json!({}));
    let text = list["text"].as_str().unwrap();
    assert!(text.contains("(1 entry hidden by access rules)"), "{text}");
    let command = json!({ "command": "cat .env" });
    let result = server.call("sightline/checkAccess", command);
    assert_eq!(result["command"]["allowed"], false);
    assert_eq!(server.end(), 0);
}

#[test]
fn a_line_in_the_rule_file_allows_a_secret() {
    let workspace = plain();
    workspace.write(".clineignore", "!.env\n");
    let mut server = Server::start(&workspace);
    assert_eq!(verdict(&mut server, ".env")["access"], "allowed");
    assert_eq!(verdict(&mut server, "id_rsa")["access"], "denied");
    let read = server.call("sightline/readFile", json!({ "path": ".env" }));
    assert_eq!(read["text"], "KEY=SECRET-1\n");
    assert_eq!(server.end(), 0);
}

#[test]
fn the_setting_applies_at_once_and_to_the_command_line() {
    let workspace = plain();
    let mut server = Server::start(&workspace);
    let id =
        |server: &mut Server| server.call("sightline/createCheckpoint", json!({}))["id"].clone();
    let first = id(&mut server);
    set_secrets(&mut server, "allow");
    assert_eq!(verdict(&mut server, ".env")["access"], "allowed");
    assert_eq!(run(&workspace, &["access", ".env"]).0, 0);
    let second = id(&mut server);
    let changes = json!({ "from": first, "to": second });
    let diff = server.call("sightline/diffCheckpoints", changes.clone());
    assert_eq!(diff["files"][0]["path"], ".env", "{diff}");
    set_secrets(&mut server, "deny");
    assert_eq!(verdict(&mut server, ".env")["access"], "denied");
    assert_eq!(run(&workspace, &["access", ".env"]).0, 1);
    let diff = server.call("sightline/diffCheckpoints", changes);
    assert_eq!(diff["files"], json!([]));
    // A checkpoint with the file does not restore it now.
    workspace.write(".env", "KEY=SECRET-2\n");
    workspace.write("a.txt", "2\n");
    server.call("sightline/restoreCheckpoint", json!({ "id": second }));
    let read = |name: &str| std::fs::read_to_string(workspace.path(name)).unwrap();
    assert_eq!(
        (read(".env"), read("a.txt")),
        ("KEY=SECRET-2\n".to_owned(), "1\n".to_owned())
    );
    assert_eq!(server.end(), 0);
}

#[test]
fn the_command_line_names_the_rule() {
    let workspace = plain();
    let (code, text, _) = run(&workspace, &["access", ".env", "a.txt"]);
    assert_eq!(
        (code, text.as_str()),
        (
            1,
            "denied\t.env\tbuilt-in secrets:26: .env\nallowed\ta.txt\n"
        )
    );
    let (code, text, _) = run(&workspace, &["doctor"]);
    assert!(text.contains("built-in secrets"), "{code} {text}");
}

#[test]
fn the_command_line_names_lines_that_lift_rules() {
    let workspace = plain();
    workspace.write(".clineignore", "# rules\n!*\n!.env\n");
    workspace.write("id_rsa", "KEY\n");
    let (code, text, _) = run(&workspace, &["access", ".env", "id_rsa", "a.txt"]);
    let (lifted, denied) = (
        ".clineignore:3: !.env allows this secret",
        "built-in secrets",
    );
    assert!(
        code == 1
            && text.starts_with(&format!(
                "allowed\t.env\t{lifted}\ndenied\tid_rsa\t{denied}"
            )),
        "{text}"
    );
    assert!(text.ends_with("\nallowed\ta.txt\n"), "{text}");
    let (_, text, _) = run(&workspace, &["doctor"]);
    assert!(
        text.contains("are denied, except by .clineignore:3: !.env"),
        "{text}"
    );
}

#[test]
fn init_writes_rules_that_deny_nothing_more() {
    let workspace = plain();
    let (code, text, _) = run_init(&workspace, &["--dry-run"]);
    assert_eq!(code, 0);
    assert!(
        text.starts_with("would write /") && text.contains("# !.env\n"),
        "{text}"
    );
    assert!(!workspace.path(".clineignore").exists());
    let (code, text, _) = run_init(&workspace, &[]);
    assert!(code == 0 && text.contains("Built-in secrets"), "{text}");
    let written = std::fs::read_to_string(workspace.path(".clineignore")).unwrap();
    assert!(
        written.lines().all(|line| line.starts_with('#')),
        "{written}"
    );
    let (_, text, _) = run(&workspace, &["access", "a.txt", ".env"]);
    assert!(text.starts_with("allowed\ta.txt\ndenied\t.env\t"), "{text}");
    // Its examples do what they say.
    let rules = written
        .replace("# !.env", "!.env")
        .replace("# .envrc", ".envrc");
    workspace.write(".clineignore", &rules);
    assert_eq!(run(&workspace, &["access", ".env"]).0, 0);
    assert_eq!(run(&workspace, &["access", ".envrc"]).0, 1);
}

#[test]
fn init_never_overwrites() {
    let workspace = plain();
    workspace.write(".clineignore", "x\n");
    for option in ["--yes", "--dry-run"] {
        let (code, text, error) = run_init(&workspace, &[option]);
        assert_eq!((code, text.as_str()), (1, ""));
        assert!(error.contains("exists; nothing was changed"), "{error}");
    }
    let read = || std::fs::read_to_string(workspace.path(".clineignore"));
    assert_eq!(read().unwrap(), "x\n");
    #[cfg(unix)]
    {
        std::fs::remove_file(workspace.path(".clineignore")).unwrap();
        let target = workspace.path("missing");
        std::os::unix::fs::symlink(&target, workspace.path(".clineignore")).unwrap();
        assert_eq!(run_init(&workspace, &["--yes"]).0, 1);
        assert!(!target.exists());
    }
}

#[test]
fn init_offers_the_rules_of_other_agents() {
    let workspace = plain();
    workspace.write(
        ".cursorignore",
        "# comment\n\nprivate/\r\n!include a.txt\n[\n",
    );
    workspace.write(".aiexclude", "*.sqlite\n!keep.sqlite");
    std::fs::create_dir(workspace.path(".rooignore")).unwrap();
    // Standard input is not a terminal.
    let (code, text, error) = run_init(&workspace, &[]);
    assert_eq!(code, 2, "{error}");
    let offered = "# From .cursorignore\nprivate/\n\n# From .aiexclude\n*.sqlite\n!keep.sqlite\n";
    assert_eq!(text, offered);
    assert!(!workspace.path(".clineignore").exists());
    let (code, text, error) = run_init(&workspace, &["--yes"]);
    assert!(code == 0 && text.starts_with(offered), "{text}");
    assert!(error.contains(".cursorignore: 2 lines left out"), "{error}");
    let asked = ["private/x", "a.sqlite", "keep.sqlite", ".env", "a.txt"];
    let (_, text, _) = run(&workspace, &[&["access"][..], &asked].concat());
    let verdicts: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(
        verdicts,
        ["denied", "denied", "allowed", "denied", "allowed"]
    );
}

fn run_init(workspace: &Workspace, options: &[&str]) -> (i32, String, String) {
    let output = program()
        .arg("init")
        .args(options)
        .arg("--root")
        .arg(workspace.root())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    finished(output)
}

#[test]
fn hooks_refuse_secrets_inside_and_outside_the_workspace() {
    let workspace = plain();
    let outside = workspace.root().with_file_name("home");
    std::fs::create_dir_all(outside.join(".ssh")).unwrap();
    std::fs::write(outside.join(".ssh/id_rsa"), "x").unwrap();
    std::fs::write(outside.join("notes"), "x").unwrap();
    let read = |path: &std::path::Path| {
        let input = json!({
            "session_id": "s",
            "cwd": workspace.root(),
            "hook_event_name": "PreToolUse",
            "tool_name": "Read",
            "tool_input": { "file_path": path },
        });
        hook_with(&workspace, "PreToolUse", "claude", &input.to_string(), &[])
    };
    let refused = read(&workspace.path(".env"));
    assert!(refused.contains("built-in secrets:26"), "{refused}");
    let refused = read(&outside.join(".ssh/id_rsa"));
    assert!(refused.contains("built-in secrets"), "{refused}");
    for path in [workspace.path("a.txt"), outside.join("notes")] {
        let answer = read(&path);
        assert!(!answer.contains("deny"), "{answer}");
    }
}

/// Some names say little. Every door decides by the content of the version that it would show.
#[test]
fn every_door_decides_by_content() {
    const PLAIN: &str = "save-exact=true\n";
    const TOKEN: &str = "//host/:_authToken=TOKEN-1\n";
    let workspace = Workspace::new(&[(".npmrc", PLAIN), ("a.txt", "1\n")]);
    let mut server = Server::start(&workspace);
    let uri = workspace.uri(".npmrc");
    // The disk, the editor, and whether a door shows the file.
    let versions = [
        (PLAIN, None, true, true),
        (TOKEN, None, false, false),
        (PLAIN, Some(TOKEN), true, false),
        (TOKEN, Some(PLAIN), false, true),
    ];
    for (disk, editor, on_disk, in_editor) in versions {
        let case = format!("{disk:?} {editor:?}");
        workspace.write(".npmrc", disk);
        if let Some(text) = editor {
            server.open(&uri, disk);
            let change = json!({
                "textDocument": { "uri": uri, "version": 2 },
                "contentChanges": [{ "text": text }],
            });
            server.send_notification("textDocument/didChange", change);
        }
        let access = |is_allowed| if is_allowed { "allowed" } else { "denied" };
        assert_eq!(
            verdict(&mut server, ".npmrc")["access"],
            access(on_disk),
            "{case}"
        );
        let command = json!({ "command": "cat .npmrc" });
        let result = server.call("sightline/checkAccess", command);
        assert_eq!(result["command"]["allowed"], on_disk, "{case}");
        let list = server.call("sightline/listFiles", json!({}));
        let text = list["text"].as_str().unwrap();
        assert_eq!(text.contains(".npmrc"), on_disk, "{case}: {text}");
        let path = json!({ "path": ".npmrc" });
        let params = json!({ "taskId": "t", "path": ".npmrc", "operation": "read_tool" });
        if in_editor {
            let read = server.call("sightline/readFile", path);
            assert_eq!(read["text"], editor.unwrap_or(disk), "{case}");
            server.call("sightline/trackFile", params);
        } else {
            for (method, params) in [("readFile", path), ("trackFile", params)] {
                let error = server.refused(&format!("sightline/{method}"), params);
                assert_eq!(error["data"]["kind"], "accessDenied", "{case}");
                assert!(!error.to_string().contains("TOKEN"), "{error}");
            }
        }
        if editor.is_some() {
            let block = server.call("sightline/environmentDetails", json!({}));
            let text = block["text"].as_str().unwrap();
            let tabs = text.split("# Current Time").next().unwrap();
            assert_eq!(tabs.contains(".npmrc"), in_editor, "{case}: {text}");
            let closed = json!({ "textDocument": { "uri": uri } });
            server.send_notification("textDocument/didClose", closed);
        }
        let (code, text, _) = run(&workspace, &["access", ".npmrc"]);
        let (expected, start) = if on_disk {
            (0, "allowed\t.npmrc\n")
        } else {
            let why = "denied\t.npmrc\tit contains a credential\tbuilt-in secrets:";
            (1, why)
        };
        assert!(
            code == expected && text.starts_with(start),
            "{case}: {text}"
        );
        let input = json!({
            "session_id": "s",
            "cwd": workspace.root(),
            "hook_event_name": "PreToolUse",
            "tool_name": "Read",
            "tool_input": { "file_path": workspace.path(".npmrc") },
        });
        let answer = hook_with(&workspace, "PreToolUse", "claude", &input.to_string(), &[]);
        assert_eq!(answer.contains("deny"), !on_disk, "{case}: {answer}");
    }
    assert_eq!(server.end(), 0);
}

/// Variables of agents move the folders with their tokens.
#[test]
fn tokens_of_agents_are_denied_where_variables_move_them() {
    let workspace = plain();
    let moved = workspace.path("../moved");
    for file in [
        "auth.json",
        "oauth_creds.json",
        "settings/providers.json",
        "a.json",
    ] {
        let file = moved.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "SECRET-1").unwrap();
    }
    let moved = moved.canonicalize().unwrap();
    for (variable, file) in [
        ("CODEX_HOME", "auth.json"),
        ("QWEN_HOME", "oauth_creds.json"),
        ("CLINE_DATA_DIR", "settings/providers.json"),
    ] {
        let check = |command: &str| {
            let mut access = program();
            access
                .args(["access", "--offline", "--command", command])
                .current_dir(workspace.root())
                .env(variable, &moved);
            access.output().unwrap().status.code()
        };
        let path = moved.join(file).display().to_string();
        for command in [
            format!("cat ${variable}/{file}"),
            format!("cat \"${{{variable}}}/{file}\""),
            format!("cat {path}"),
            format!("cp {path}.bak x"),
            format!("cd ${variable} && cat {file}"),
        ] {
            assert_eq!(check(&command), Some(1), "{command}");
        }
        assert_eq!(
            check(&format!("cat ${variable}/a.json")),
            Some(0),
            "{variable}"
        );
    }
}
