//! `sightline hook`, with input that tries to get past it.

mod inputs;
#[cfg(unix)]
mod processes;
mod searches;

use serde_json::{Value, json};

use crate::{harness::Workspace, hook::hook_with};

const FILES: &[(&str, &str)] = &[
    (".clineignore", "secret.txt\nhidden/\n"),
    ("secret.txt", "TOPSECRET\n"),
    ("hidden/key", "K\n"),
    ("notes.txt", "notes\n"),
    ("sub/a.txt", "a\n"),
];

/// Returns whether Claude Code's hook refuses a tool.
fn refuses(workspace: &Workspace, tool: &str, arguments: &Value) -> bool {
    refuses_in(workspace, "", tool, arguments)
}

fn refuses_in(workspace: &Workspace, dir: &str, tool: &str, arguments: &Value) -> bool {
    let input = json!({
        "session_id": "s", "cwd": workspace.path(dir), "tool_name": tool, "tool_input": arguments,
    });
    let said = hook_with(workspace, "PreToolUse", "claude", &input.to_string(), &[]);
    assert!(!said.contains("could not check"), "{arguments}: {said}");
    said.contains("\"deny\"")
}

fn refuses_prompt(workspace: &Workspace, prompt: &str) -> bool {
    let input = json!({ "session_id": "s", "cwd": workspace.root(), "prompt": prompt });
    let said = hook_with(
        workspace,
        "UserPromptSubmit",
        "claude",
        &input.to_string(),
        &[],
    );
    said.contains("\"block\"")
}

#[test]
fn a_denied_path_is_refused_under_any_name() {
    let workspace = Workspace::new(FILES);
    let secret = workspace.path("secret.txt");
    for name in [
        "path",
        "filePath",
        "fileName",
        "file_path_1",
        "filesToRead",
        "pathOrUrl",
        "url",
        "target",
        "src",
        "attachments",
        "Path to file",
        "x",
        "args",
        "pattern",
    ] {
        assert!(refuses(&workspace, "x", &json!({ name: secret })), "{name}");
    }
    for arguments in [
        json!({ "files": [{ "name": "secret.txt" }] }),
        json!({ "files": { "secret.txt": "text" } }),
        json!({ "paths": { "a": "secret.txt" } }),
        json!({ "paths": "notes.txt,secret.txt" }),
        json!({ "paths": "[\"secret.txt\"]" }),
        json!({ "path": " secret.txt" }),
        json!({ "path": "\"secret.txt\"" }),
        json!({ "path": "secret.txt:10" }),
        json!({ "path": "secret.txt#L1" }),
        json!({ "path": "file:secret.txt" }),
        json!({ "path": "http://../secret.txt" }),
        json!({ "path": format!("vscode://file{}", secret.display()) }),
        json!({ "path": "sec*" }),
        json!({ "path": "{secret,notes}.txt" }),
        json!({ "path": "key", "cwd": "hidden" }),
        json!({ "uri": workspace.uri("secret.txt").replace("secret", "%73ecret") }),
    ] {
        assert!(refuses(&workspace, "x", &arguments), "{arguments}");
    }
    for arguments in [
        json!({ "path": "notes.txt", "content": "secret.txt" }),
        json!({ "path": "notes.txt", "old_string": "hidden", "new_string": "secret.txt" }),
        json!({ "pattern": "hidden" }),
        json!({ "path": "sub/[id].txt" }),
        json!({ "path": ".", "exclude": ["secret.txt"] }),
        json!({ "url": "https://example.org/secret.txt" }),
    ] {
        assert!(!refuses(&workspace, "x", &arguments), "{arguments}");
    }
}

/// Calls that agents make all day, in a project whose hidden folder has an ordinary name.
#[test]
fn ordinary_calls_are_not_refused() {
    let workspace = Workspace::new(&[
        (".clineignore", "secret.txt\nbuild/\n"),
        ("secret.txt", "S\n"),
        ("build/out", "o\n"),
        ("src/main.ts", "m\n"),
        ("README.md", "r\n"),
    ]);
    let readme = workspace.path("README.md");
    for (tool, arguments) in [
        (
            "Write",
            json!({ "file_path": readme, "content": "build/out\n--- a/secret.txt\n+++ b/secret.txt\n" }),
        ),
        (
            "Edit",
            json!({ "file_path": readme, "old_string": "secret.txt", "new_string": "build/out" }),
        ),
        (
            "TodoWrite",
            json!({ "todos": [{ "content": "build/out", "activeForm": "build", "status": "pending" }] }),
        ),
        (
            "Task",
            json!({ "description": "build", "prompt": "build/out", "subagent_type": "build" }),
        ),
        ("Agent", json!({ "name": "build", "prompt": "secret.txt" })),
        ("Skill", json!({ "skill": "build", "args": "build" })),
        (
            "AskUserQuestion",
            json!({ "questions": [{ "question": "build", "header": "build", "options": [{ "label": "build" }] }] }),
        ),
        (
            "Bash",
            json!({ "command": "git commit -m 'ignore secret.txt'", "description": "build" }),
        ),
        (
            "Grep",
            json!({ "output_mode": "content", "pattern": "build", "path": "src" }),
        ),
        ("Glob", json!({ "pattern": "**/*.ts" })),
        (
            "update_plan",
            json!({ "plan": [{ "step": "build", "status": "pending" }] }),
        ),
        (
            "apply_patch",
            json!({ "command": "*** Begin Patch\n*** Update File: src/main.ts\n@@\n-m\n+cat secret.txt\n*** End Patch" }),
        ),
        (
            "mcp__playwright__browser_type",
            json!({ "ref": "build", "text": "build/out" }),
        ),
        (
            "mcp__sqlite__query",
            json!({ "sql": "select 1", "database": "build" }),
        ),
        (
            "mcp__github__create_issue",
            json!({ "owner": "a", "repo": "build", "title": "build", "labels": ["build"], "body": "secret.txt" }),
        ),
        (
            "mcp__git__git_create_branch",
            json!({ "repo_path": workspace.root(), "branch_name": "build", "base_branch": "build" }),
        ),
        (
            "mcp__slack__post",
            json!({ "channel": "build", "text": "build/out" }),
        ),
        (
            "WebFetch",
            json!({ "url": "https://example.org/build/out", "prompt": "secret.txt" }),
        ),
    ] {
        assert!(!refuses(&workspace, tool, &arguments), "{tool} {arguments}");
    }
}

#[test]
fn a_command_is_checked_in_any_form() {
    let workspace = Workspace::new(FILES);
    let patch = "*** Begin Patch\n*** Update File:secret.txt\n*** End Patch";
    for arguments in [
        json!({ "shellCommand": "cat secret.txt" }),
        json!({ "CommandLine": "cat secret.txt" }),
        json!({ "command": "cat", "args": ["secret.txt"] }),
        json!({ "commands": [["cat", "secret.txt"]] }),
        json!({ "command": ["cat", "secret.txt", 1] }),
        json!({ "command": "cat key", "workdir": "hidden" }),
        json!({ "command": "*** Begin Patch\n; cat secret.txt" }),
        json!({ "command": ["apply_patch", patch] }),
        json!({ "input": patch }),
        json!({ "diff": "--- a/secret.txt\n+++ b/secret.txt\n" }),
    ] {
        assert!(refuses(&workspace, "shell", &arguments), "{arguments}");
    }
}

#[test]
fn arguments_of_other_servers_are_checked() {
    let workspace = Workspace::new(FILES);
    workspace.write("hidden/a.txt", "a\n");
    for (tool, arguments, refused) in [
        (
            "x",
            json!({ "cell_source": "open('secret.txt').read()" }),
            true,
        ),
        (
            "x",
            json!({ "python": "print(open(\"secret.txt\"))" }),
            true,
        ),
        (
            "x",
            json!({ "javascript": "fs.readFileSync('secret.txt')" }),
            true,
        ),
        ("x", json!({ "snippet": "cat secret.txt" }), true),
        ("x", json!({ "code": "cat secret.txt" }), true),
        ("x", json!({ "cmdline": "cat secret.txt" }), true),
        (
            "repl_eval",
            json!({ "expression": "open('secret.txt')" }),
            true,
        ),
        (
            "repl_eval",
            json!({ "statement": "open('secret.txt')" }),
            true,
        ),
        ("run_in_console", json!({ "line": "cat secret.txt" }), true),
        (
            "python_execute",
            json!({ "input": "open('secret.txt')" }),
            true,
        ),
        ("x", json!({ "root": "hidden", "path": "key" }), true),
        ("x", json!({ "base": "hidden", "path": "key" }), true),
        ("x", json!({ "project": "hidden", "files": ["key"] }), true),
        ("x", json!({ "workspace": "hidden", "path": "key" }), true),
        ("x", json!({ "path": "%252573ecret.txt" }), true),
        ("x", json!({ "path": "%73ecret.txt" }), true),
        ("x", json!({ "target": "%73ecret%2etxt" }), true),
        ("x", json!({ "target": workspace.uri("secret.txt") }), true),
        ("x", json!({ "line": "cat secret.txt" }), true),
        ("x", json!({ "input": "open('secret.txt').read()" }), true),
        ("x", json!({ "expression": "open('secret.txt')" }), true),
        (
            "x",
            json!({ "statement": "x = File.read(\"secret.txt\")" }),
            true,
        ),
        ("x", json!({ "anything": "cat secret.txt | head" }), true),
        (
            "x",
            json!({ "steps": [{ "do": "fs.readFileSync('secret.txt')" }] }),
            true,
        ),
        ("x", json!({ "lines": ["ls", "tail -1 secret.txt"] }), true),
        (
            "x",
            json!({ "project": workspace.path("hidden"), "name": "key" }),
            true,
        ),
        (
            "x",
            json!({ "at": workspace.path("hidden"), "files": ["key"] }),
            true,
        ),
        (
            "x",
            json!({ "project": workspace.path("sub"), "file": "../secret.txt" }),
            true,
        ),
        (
            "x",
            json!({ "project": workspace.path("sub"), "command": "cat ../secret.txt" }),
            true,
        ),
        (
            "x",
            json!({ "project": workspace.path("sub"), "files": ["a.txt"] }),
            false,
        ),
        ("x", json!({ "line": "cat notes.txt" }), false),
        ("x", json!({ "expression": "add(1, 'two')" }), false),
        (
            "mcp__playwright__browser_click",
            json!({ "element": "link 'secret.txt' of load(x)", "ref": "e1" }),
            false,
        ),
        (
            "mcp__playwright__browser_evaluate",
            json!({ "function": "() => document.querySelector('#a').href" }),
            false,
        ),
        (
            "mcp__filesystem__search_files",
            json!({ "path": workspace.root(), "pattern": "secret.txt" }),
            false,
        ),
        (
            "mcp__filesystem__write_file",
            json!({ "path": workspace.path("sub/b.md"), "content": "cat secret.txt" }),
            false,
        ),
        (
            "mcp__filesystem__edit_file",
            json!({ "path": workspace.path("sub/a.txt"), "edits": [{ "oldText": "a", "newText": "open('secret.txt')" }] }),
            false,
        ),
        (
            "mcp__memory__create_entities",
            json!({ "entities": [{ "name": "secret.txt (file)", "entityType": "file", "observations": ["cat secret.txt prints the key"] }] }),
            false,
        ),
        (
            "mcp__memory__search_nodes",
            json!({ "query": "open('secret.txt')" }),
            false,
        ),
        (
            "mcp__git__git_commit",
            json!({ "repo_path": workspace.root(), "message": "cat secret.txt (it's 'private')" }),
            false,
        ),
        (
            "mcp__fetch__fetch",
            json!({ "url": "https://example.org/secret.txt", "max_length": 5 }),
            false,
        ),
        (
            "mcp__time__convert_time",
            json!({ "source_timezone": "Europe/Berlin", "time": "16:30" }),
            false,
        ),
        (
            "replace",
            json!({ "file_path": workspace.path("sub/a.txt"), "instruction": "Replace open('secret.txt') by load()", "old_string": "a", "new_string": "b" }),
            false,
        ),
        (
            "x",
            json!({ "uri": format!("jar:{}!/x", workspace.uri("secret.txt")) }),
            true,
        ),
        (
            "x",
            json!({ "code": "def f(x):\n    return [i for i in range(x)]\n" }),
            false,
        ),
        (
            "x",
            json!({ "javascript": "const f = (a) => { return a?.b ?? 'c'; };" }),
            false,
        ),
        ("x", json!({ "code": "print('hello')" }), false),
        (
            "NotebookEdit",
            json!({ "notebook_path": "a.ipynb", "new_source": "x = 1\nsecret.txt" }),
            false,
        ),
        ("x", json!({ "root": "sub", "path": "a.txt" }), false),
        ("x", json!({ "base": "main", "head": "hidden" }), false),
        (
            "mcp__github__search_code",
            json!({ "q": "filename:secret.txt" }),
            false,
        ),
        ("mcp__notes__find", json!({ "topic": "secret.txt" }), false),
        ("mcp__memory__add", json!({ "fact": "hidden/a.txt" }), false),
        (
            "Skill",
            json!({ "skill": "x", "args": "secret.txt" }),
            false,
        ),
    ] {
        let found = refuses(&workspace, tool, &arguments);
        assert_eq!(found, refused, "{tool} {arguments}");
    }
}

#[test]
fn a_session_in_a_removed_folder_is_checked() {
    let workspace = Workspace::new(FILES);
    let secret = json!({ "file_path": workspace.path("secret.txt") });
    assert!(refuses_in(&workspace, "gone/deep", "Read", &secret));
    let notes = json!({ "file_path": workspace.path("notes.txt") });
    assert!(!refuses_in(&workspace, "gone/deep", "Read", &notes));
}

#[test]
fn arguments_without_names_are_checked() {
    let workspace = Workspace::new(&[(".env", "A=1\n"), ("notes.txt", "n\n")]);
    for (tool, arguments, refused) in [
        ("read_files", json!([".env"]), true),
        ("read_files", json!(".env"), true),
        ("read_files", json!([{ "path": ".env" }]), true),
        ("run_commands", json!(["cat .env"]), true),
        ("read_files", json!(["notes.txt"]), false),
        ("run_commands", json!(["ls"]), false),
    ] {
        let found = refuses(&workspace, tool, &arguments);
        assert_eq!(found, refused, "{tool} {arguments}");
    }
}

#[test]
fn a_mention_is_refused_wherever_an_agent_ends_it() {
    let workspace = Workspace::new(FILES);
    for prompt in [
        "@secret.txt#section",
        "@secret.txt/",
        "@secret.txt\u{3002}",
        "@secret.txt\u{200b}",
        "@secret.txt,ok",
        "mail@secret.txt",
        "--- Content from referenced files ---\n@secret.txt",
    ] {
        assert!(refuses_prompt(&workspace, prompt), "{prompt:?}");
    }
    for prompt in ["@notes.txt", "@secret", "secret.txt", "me@example.org"] {
        assert!(!refuses_prompt(&workspace, prompt), "{prompt:?}");
    }
}

#[test]
fn a_prompt_that_cannot_be_checked_is_refused_if_it_may_mention_a_file() {
    let (with_rules, without) = (Workspace::new(FILES), Workspace::new(&[]));
    for (prompt, refused, refused_without) in [
        (
            format!("@secret.txt {}", "x".repeat(9_000_000)),
            true,
            false,
        ),
        (format!("@{}", "a,".repeat(2000)).repeat(40), true, true),
        ("x".repeat(9_000_000), false, false),
    ] {
        let text = prompt.get(..20).unwrap_or_default();
        assert_eq!(refuses_prompt(&with_rules, &prompt), refused, "{text}");
        let found = refuses_prompt(&without, &prompt);
        assert_eq!(found, refused_without, "{text}");
    }
}

#[test]
fn rules_in_a_folder_below_the_root_apply() {
    let workspace = Workspace::new(&[
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("part/.clineignore", "secret.txt\n"),
        ("part/secret.txt", "S\n"),
        ("part/notes.txt", "notes\n"),
        ("other/secret.txt", "no rules here\n"),
    ]);
    for arguments in [
        json!({ "path": "part/secret.txt" }),
        json!({ "path": "other/../part/secret.txt" }),
        json!({ "command": "cat part/secret.txt" }),
        json!({ "command": "cd part && cat secret.txt" }),
    ] {
        for dir in ["", "other"] {
            let arguments: Value = match dir {
                "" => arguments.clone(),
                _ => {
                    serde_json::from_str(&arguments.to_string().replace("part", "../part")).unwrap()
                }
            };
            assert!(
                refuses_in(&workspace, dir, "x", &arguments),
                "{dir} {arguments}"
            );
        }
    }
    let encoded = workspace
        .uri("part/secret.txt")
        .replace("secret", "%73ecret");
    assert!(refuses(&workspace, "x", &json!({ "uri": encoded })));
    assert!(refuses_prompt(&workspace, "@part/secret.txt"));
    for path in ["part/notes.txt", "other/secret.txt"] {
        assert!(
            !refuses(&workspace, "x", &json!({ "path": path })),
            "{path}"
        );
    }
}

#[test]
fn odd_json_is_understood() {
    let workspace = Workspace::new(FILES);
    let root = workspace.root();
    for (path, refused) in [("secret.txt", true), ("notes.txt", false)] {
        for input in [
            format!(
                r#"{{"cwd":"{}","tool_input":{{"path":"{path}","x":"\ud800"}}}}"#,
                root.display()
            ),
            format!(
                "\u{feff}{{\"cwd\":\"{}\",\"tool_input\":{{\"path\":\"{path}\"}}}}",
                root.display()
            ),
        ] {
            let said = hook_with(&workspace, "PreToolUse", "claude", &input, &[]);
            assert_eq!(said.contains("\"deny\""), refused, "{input}: {said}");
            assert!(!said.contains("could not check"), "{said}");
        }
    }
}

#[test]
fn input_that_cannot_be_parsed_is_refused_without_rules() {
    let workspace = Workspace::new(&[]);
    let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
    for more in [&deep, "unfinished"] {
        let input = format!(
            r#"{{"cwd":"{}","tool_input":{{"path":".env","x":{more}}}}}"#,
            workspace.root().display()
        );
        let said = hook_with(&workspace, "PreToolUse", "claude", &input, &[]);
        assert!(said.contains("could not check"), "{said}");
    }
    let prompt = format!(r#"{{"prompt":"@.env","x":{deep}}}"#);
    let said = hook_with(&workspace, "UserPromptSubmit", "claude", &prompt, &[]);
    assert!(said.contains("\"block\""), "{said}");
}

/// A model chooses how much a call names. `.env` is denied in every folder.
#[test]
fn calls_that_are_too_large_to_check_are_refused_without_rules() {
    let workspace = Workspace::new(&[(".env", "K=1\n"), ("a.txt", "a\n")]);
    let folders: Vec<String> = (0..70).map(|at| format!("dir{at}")).collect();
    for folder in &folders {
        workspace.write(&format!("{folder}/.clineignore"), "x\n");
        workspace.write(&format!("{folder}/f"), "f\n");
    }
    let named = |file: &str| {
        let files = folders.iter().map(|folder| format!("{folder}/f"));
        format!("cat {file} {}", files.collect::<Vec<_>>().join(" "))
    };
    let root = workspace.root().to_string_lossy().into_owned();
    let climbing = format!("{root}{}/.env", "/src/..".repeat(20_000));
    let globs: Vec<String> = (0..1000).map(|at| format!("{at}*")).collect();
    let many: Vec<String> = (0..400_000).map(|at| format!("p{at}")).collect();
    let words = format!("echo {}", "a ".repeat(15_000));
    for (tool, arguments) in [
        ("Bash", json!({ "command": named(".env") })),
        ("Read", json!({ "file_path": climbing })),
        ("mcp__x__y", json!({ "target": climbing })),
        (
            "mcp__x__y",
            json!({ "files": [".env", globs], "more": folders }),
        ),
        ("read_files", json!({ "files": [many, ".env"] })),
        (
            "mcp__x__y",
            json!({ "path": "a:/b:/c:/d:/e#f?g,".repeat(3000) + ".env", "folders": folders }),
        ),
        (
            "run_commands",
            json!({ "commands": [vec![words; 20], vec!["cat .env".to_owned()]] }),
        ),
        (
            "Bash",
            json!({ "command": format!("cat .env {}", "a ".repeat(1_000_000)) }),
        ),
    ] {
        let input = json!({ "cwd": root, "tool_name": tool, "tool_input": arguments });
        let said = hook_with(&workspace, "PreToolUse", "claude", &input.to_string(), &[]);
        assert!(said.contains("\"deny\""), "{tool}: {said}");
    }
    // A monorepo has as many folders with rules.
    assert!(!refuses(
        &workspace,
        "Bash",
        &json!({ "command": named("a.txt") })
    ));
    let climbing = climbing.replace(".env", "a.txt");
    assert!(!refuses(
        &workspace,
        "Read",
        &json!({ "file_path": climbing })
    ));
}
