//! What `sightline hook` tells an agent, and what it leaves out.

use std::fs;

use serde_json::{Value, json};

use crate::{
    harness::{Server, Workspace},
    hook::{AGENTS, CLAUDE, Names, hook},
    ipc::run,
};

const FILES: &[(&str, &str)] = &[
    ("a.txt", "one\n"),
    ("b.txt", "one\n"),
    ("sub/c.txt", "one\n"),
];

/// Starts a server, as an editor does, with an open file.
fn editor(workspace: &Workspace) -> Server {
    let mut server = Server::start(workspace);
    server.open(&workspace.uri("b.txt"), "one\n");
    server.call("sightline/listTasks", json!({}));
    server
}

impl Names {
    /// Sends a prompt in a permission mode. Returns the added text.
    fn told(&self, workspace: &Workspace, mode: Option<&str>) -> String {
        let mut input = json!({ self.session: "s", "cwd": workspace.root(), "prompt": "Q" });
        if let Some(mode) = mode {
            input["permission_mode"] = json!(mode);
        }
        let said = hook(workspace, self.prompt, self.agent, &input.to_string());
        if said.is_empty() {
            return said;
        }
        let answer: Value = serde_json::from_str(&said).unwrap();
        let text = answer.pointer(self.context).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Begins a tool. Returns what the hook prints.
    fn begin(&self, workspace: &Workspace, tool: &str, arguments: &Value) -> String {
        self.run_tool(workspace, self.tool, tool, arguments)
    }

    fn run_tool(
        &self,
        workspace: &Workspace,
        event: &str,
        tool: &str,
        arguments: &Value,
    ) -> String {
        let input = json!({
            self.session: "s", "cwd": workspace.root(),
            self.tool_name: tool, self.tool_input: arguments,
        });
        hook(workspace, event, self.agent, &input.to_string())
    }

    /// Ends a tool, if the agent reports that.
    fn end(&self, workspace: &Workspace, tool: &str, arguments: &Value) {
        let event = match self.agent {
            "gemini" => "AfterTool",
            "copilot" => "postToolUse",
            "cline" => return,
            _ => "PostToolUse",
        };
        let said = self.run_tool(workspace, event, tool, arguments);
        assert_eq!(said, "", "{}", self.agent);
    }
}

/// Returns the section of modified files without its sentence.
fn modified(text: &str) -> Vec<&str> {
    let section = text.split("# Recently Modified Files\n").nth(1);
    let lines = section.unwrap_or_default().lines();
    lines
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("These changed"))
        .collect()
}

#[test]
fn nothing_is_told_without_an_editor() {
    let workspace = Workspace::new(FILES);
    for names in &AGENTS {
        for mode in [None, Some("default"), Some("acceptEdits")] {
            assert_eq!(names.told(&workspace, mode), "", "{}", names.agent);
        }
    }
    let text = CLAUDE.told(&workspace, Some("plan"));
    assert!(text.contains("# Current Mode\nPLAN MODE\n"), "{text}");
    assert!(!text.contains("No visible files"), "{text}");
    assert_eq!(CLAUDE.told(&workspace, Some("plan")), "");
    let text = CLAUDE.told(&workspace, Some("default"));
    assert!(text.contains("# Current Mode\nACT MODE\n"), "{text}");
}

#[test]
fn the_mode_is_told_only_if_it_is_known() {
    let workspace = Workspace::new(FILES);
    let mut server = editor(&workspace);
    for names in &AGENTS {
        let text = names.told(&workspace, None);
        assert!(text.contains("b.txt") && !text.contains("Mode"), "{text}");
        let text = names.told(&workspace, Some("plan"));
        assert!(
            text.contains("PLAN MODE") && !text.contains("ACT"),
            "{text}"
        );
        assert_eq!(names.told(&workspace, Some("plan")), "");
    }
    // A closed tab is a change.
    let closed = json!({ "textDocument": { "uri": workspace.uri("b.txt") } });
    server.send_notification("textDocument/didClose", closed);
    server.call("sightline/listTasks", json!({}));
    let text = CLAUDE.told(&workspace, Some("plan"));
    assert!(text.contains("(No open tabs)"), "{text}");
    // The request keeps its default mode.
    let block = server.block(json!({}));
    assert!(block.contains("# Current Mode\nACT MODE"), "{block}");
}

#[test]
fn a_change_from_outside_is_told_once() {
    let workspace = Workspace::new(FILES);
    for names in &AGENTS {
        let agent = names.agent;
        workspace.write("a.txt", "one\n");
        workspace.write("sub/c.txt", "one\n");
        names.begin(&workspace, "read_file", &json!({ "path": "a.txt" }));
        names.begin(
            &workspace,
            "shell",
            &json!({ "command": "sed -n 1,5p 'sub/c.txt' | wc" }),
        );
        assert_eq!(names.told(&workspace, None), "", "{agent}");
        workspace.write("a.txt", "two\n");
        workspace.write("sub/c.txt", "two\n");
        workspace.write("b.txt", "not read\n");
        let text = names.told(&workspace, None);
        assert_eq!(modified(&text), ["a.txt", "sub/c.txt"], "{agent}: {text}");
        assert_eq!(names.told(&workspace, None), "", "{agent}");
        // Only the content counts.
        workspace.write("a.txt", "two\n");
        assert_eq!(names.told(&workspace, None), "", "{agent}");
        workspace.write("a.txt", "three\n");
        assert_eq!(
            modified(&names.told(&workspace, None)),
            ["a.txt"],
            "{agent}"
        );
        workspace.write("a.txt", "four\n");
        assert_eq!(
            modified(&names.told(&workspace, None)),
            ["a.txt"],
            "{agent}"
        );
        fs::remove_file(workspace.path("a.txt")).unwrap();
        assert_eq!(
            modified(&names.told(&workspace, None)),
            ["a.txt (deleted)"],
            "{agent}"
        );
    }
}

#[test]
fn a_file_that_is_read_again_is_known() {
    let workspace = Workspace::new(FILES);
    let read = json!({ "path": "a.txt" });
    for tool in ["Read", "mcp__sightline__read_file"] {
        CLAUDE.begin(&workspace, "Read", &read);
        workspace.write("a.txt", tool);
        CLAUDE.begin(&workspace, tool, &read);
        assert_eq!(CLAUDE.told(&workspace, None), "", "{tool}");
    }
    // A file that is denied now is not named.
    workspace.write("a.txt", "three\n");
    workspace.write(".clineignore", "a.txt\n");
    assert_eq!(CLAUDE.told(&workspace, None), "");
}

#[test]
fn ends_of_tools_suffice() {
    let workspace = Workspace::new(FILES);
    CLAUDE.end(&workspace, "Read", &json!({ "file_path": "a.txt" }));
    CLAUDE.end(&workspace, "Edit", &json!({ "file_path": "b.txt" }));
    assert_eq!(CLAUDE.told(&workspace, None), "");
    workspace.write("a.txt", "two\n");
    workspace.write("b.txt", "two\n");
    assert_eq!(modified(&CLAUDE.told(&workspace, None)), ["a.txt", "b.txt"]);
}

#[test]
fn files_whose_lines_a_search_prints_are_read() {
    let workspace = Workspace::new(FILES);
    workspace.write("sub/c.txt", "one\n");
    let input = json!({
        "session_id": "s", "cwd": workspace.root(), "tool_name": "Grep",
        "tool_input": { "pattern": "one", "output_mode": "content" },
        "tool_response": { "mode": "content", "content": "a.txt:1:one\nsub/c.txt:one\nno: file" },
    });
    hook(&workspace, "PostToolUse", "claude", &input.to_string());
    for file in ["a.txt", "b.txt", "sub/c.txt"] {
        workspace.write(file, "by the user\n");
    }
    let text = CLAUDE.told(&workspace, None);
    assert_eq!(modified(&text), ["a.txt", "sub/c.txt"], "{text}");
}

#[test]
fn what_the_agent_writes_is_not_told() {
    let workspace = Workspace::new(FILES);
    for names in &AGENTS {
        let agent = names.agent;
        workspace.write("a.txt", "one\n");
        workspace.write("b.txt", "one\n");
        names.told(&workspace, None);
        for (tool, arguments) in [
            (
                "edit",
                json!({ "path": "a.txt", "old": "one", "new": "two" }),
            ),
            (
                "write_file",
                json!({ "file_path": workspace.path("new.txt"), "content": "x" }),
            ),
            ("shell", json!({ "command": "sed -i s/o/u/ a.txt" })),
            ("shell", json!({ "command": "make format" })),
        ] {
            names.begin(&workspace, tool, &arguments);
            workspace.write("a.txt", &format!("{tool} {arguments}\n"));
            workspace.write("new.txt", &format!("{tool} {arguments}\n"));
            names.end(&workspace, tool, &arguments);
            assert_eq!(names.told(&workspace, None), "", "{agent} {tool}");
        }
        workspace.write("a.txt", "by the user\n");
        assert_eq!(
            modified(&names.told(&workspace, None)),
            ["a.txt"],
            "{agent}"
        );
        // The user changes a file while the agent changes another one.
        names.begin(&workspace, "read", &json!({ "path": "b.txt" }));
        workspace.write("b.txt", "by the user\n");
        let edit = json!({ "path": "a.txt" });
        names.begin(&workspace, "edit", &edit);
        workspace.write("a.txt", "by the agent\n");
        names.end(&workspace, "edit", &edit);
        assert_eq!(
            modified(&names.told(&workspace, None)),
            ["b.txt"],
            "{agent}"
        );
    }
}

#[test]
fn an_edit_that_was_refused_hides_no_change() {
    let workspace = Workspace::new(FILES);
    let edit = json!({ "file_path": "a.txt" });
    CLAUDE.begin(&workspace, "Edit", &edit);
    workspace.write("a.txt", "by the agent\n");
    CLAUDE.end(&workspace, "Edit", &edit);
    CLAUDE.begin(&workspace, "Edit", &edit);
    // The user refuses the edit and makes another one.
    workspace.write("a.txt", "by the user\n");
    assert_eq!(modified(&CLAUDE.told(&workspace, None)), ["a.txt"]);
}

#[test]
fn a_restore_is_told_to_each_session_that_did_not_make_it() {
    let workspace = Workspace::new(FILES);
    let create = ["checkpoint", "create", "--label", "it works", "--json"];
    let (_, created, error) = run(&workspace, &create);
    let created: Value = serde_json::from_str(&created).unwrap_or_else(|_| panic!("{error}"));
    let id = created["id"].as_str().unwrap();
    let edit = json!({ "file_path": "a.txt" });
    CLAUDE.begin(&workspace, "Edit", &edit);
    workspace.write("a.txt", "by the agent\n");
    CLAUDE.end(&workspace, "Edit", &edit);
    assert_eq!(CLAUDE.told(&workspace, None), "");
    let restore = || {
        let (code, _, error) = run(&workspace, &["checkpoint", "restore", id, "--yes"]);
        assert_eq!(code, 0, "{error}");
    };
    restore();
    let text = CLAUDE.told(&workspace, None);
    let lines = modified(&text);
    let sentence = "1 file was restored to the state of checkpoint ";
    assert!(
        lines[0].starts_with(sentence) && lines[0].contains("\"it works\"): a.txt. Earlier "),
        "{text}"
    );
    assert_eq!(lines[1..], ["a.txt"], "{text}");
    assert_eq!(CLAUDE.told(&workspace, None), "");
    // A new session does not know the state before.
    let text = AGENTS[1].told(&workspace, None);
    assert_eq!(text, "");

    let (code, _, error) = run(&workspace, &["checkpoint", "undo", "--yes"]);
    assert_eq!(code, 0, "{error}");
    let text = CLAUDE.told(&workspace, None);
    let lines = modified(&text);
    let sentence = "A restore was undone, which changed 1 file: a.txt. ";
    assert!(lines[0].starts_with(sentence), "{text}");
    assert_eq!(lines[1..], ["a.txt"], "{text}");

    let tool = "mcp__sightline__checkpoint_restore";
    let arguments = json!({ "id": "last" });
    CLAUDE.begin(&workspace, tool, &arguments);
    restore();
    CLAUDE.end(&workspace, tool, &arguments);
    assert_eq!(CLAUDE.told(&workspace, None), "");
}

#[test]
fn an_edit_of_a_file_with_unsaved_text_is_refused_once() {
    let workspace = Workspace::new(FILES);
    let mut params = workspace.initialize();
    params["clientInfo"] = json!({ "name": "Neovim", "version": "0.12" });
    let mut server = Server::initialized(params);
    server.open(&workspace.uri("a.txt"), "one\n");
    let edit = json!({
        "textDocument": { "uri": workspace.uri("a.txt"), "version": 2 },
        "contentChanges": [{ "text": "unsaved\n" }],
    });
    server.send_notification("textDocument/didChange", edit.clone());
    server.call("sightline/listTasks", json!({}));
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch";
    for names in &AGENTS {
        let agent = names.agent;
        for (tool, arguments) in [
            ("read_file", json!({ "path": "a.txt" })),
            ("edit", json!({ "path": "b.txt" })),
            ("shell", json!({ "command": "cat a.txt" })),
        ] {
            assert_eq!(
                names.begin(&workspace, tool, &arguments),
                "",
                "{agent} {tool}"
            );
        }
        let (tool, arguments) = match agent {
            "codex" => (
                "Bash",
                json!({ "command": format!("apply_patch <<'EOF'\n{patch}\nEOF") }),
            ),
            _ => ("edit", json!({ "file_path": workspace.path("a.txt") })),
        };
        let said = names.begin(&workspace, tool, &arguments);
        let answer: Value = serde_json::from_str(&said).unwrap();
        let reason = answer.pointer(names.reason).unwrap().as_str().unwrap();
        assert!(
            reason.starts_with("a.txt has unsaved changes in Neovim. "),
            "{agent}: {said}"
        );
        assert!(reason.contains("call the tool again"), "{agent}: {said}");
        assert_eq!(names.begin(&workspace, tool, &arguments), "", "{agent}");
    }
    // A user can answer.
    let ask = |session: &str, mode: &str| {
        let input = json!({
            "session_id": session, "cwd": workspace.root(), "permission_mode": mode,
            "tool_name": "Edit", "tool_input": { "file_path": workspace.path("a.txt") },
        });
        let said = hook(&workspace, "PreToolUse", "claude", &input.to_string());
        let answer: Value = serde_json::from_str(&said).unwrap_or_default();
        answer["hookSpecificOutput"]["permissionDecision"].clone()
    };
    assert_eq!(ask("attended", "default"), "ask");
    assert_eq!(ask("attended", "default"), Value::Null);
    assert_eq!(ask("alone", "bypassPermissions"), "deny");
    // Saved and changed again.
    let saved = json!({ "textDocument": { "uri": workspace.uri("a.txt") } });
    workspace.write("a.txt", "unsaved\n");
    server.send_notification("textDocument/didSave", saved);
    server.call("sightline/listTasks", json!({}));
    assert_eq!(ask("attended", "default"), Value::Null);
    let mut again = edit;
    again["contentChanges"][0]["text"] = json!("again\n");
    server.send_notification("textDocument/didChange", again);
    server.call("sightline/listTasks", json!({}));
    assert_eq!(ask("attended", "default"), "ask");
}

/// The same as for an edit: one rule for all tools.
#[test]
fn a_command_that_changes_a_file_with_unsaved_text_is_refused_once() {
    let workspace = Workspace::new(FILES);
    let mut params = workspace.initialize();
    params["clientInfo"] = json!({ "name": "Neovim", "version": "0.12" });
    let mut server = Server::initialized(params);
    server.open(&workspace.uri("a.txt"), "one\n");
    let edit = json!({
        "textDocument": { "uri": workspace.uri("a.txt"), "version": 2 },
        "contentChanges": [{ "text": "unsaved\n" }],
    });
    server.send_notification("textDocument/didChange", edit);
    server.call("sightline/listTasks", json!({}));
    let sed = json!({ "command": "sed -i s/one/two/ a.txt" });
    for names in &AGENTS {
        let agent = names.agent;
        let said = names.begin(&workspace, "Bash", &sed);
        let answer: Value = serde_json::from_str(&said).unwrap();
        let reason = answer.pointer(names.reason).unwrap().as_str().unwrap();
        assert!(
            reason.starts_with("a.txt has unsaved changes in Neovim. "),
            "{agent}: {said}"
        );
        assert_eq!(names.begin(&workspace, "Bash", &sed), "", "{agent}");
    }
    let decision = |session: &str, mode: &str, command: &str| {
        let input = json!({
            "session_id": session, "cwd": workspace.root(), "permission_mode": mode,
            "tool_name": "Bash", "tool_input": { "command": command },
        });
        let said = hook(&workspace, "PreToolUse", "claude", &input.to_string());
        let answer: Value = serde_json::from_str(&said).unwrap_or_default();
        answer["hookSpecificOutput"]["permissionDecision"].clone()
    };
    for (at, (command, expected)) in [
        ("echo x > a.txt", json!("deny")),
        ("cat b.txt | tee a.txt", json!("deny")),
        ("git checkout -- a.txt", json!("deny")),
        ("git restore .", json!("deny")),
        ("mv b.txt a.txt", json!("deny")),
        ("npx prettier --write a.txt", json!("deny")),
        ("python3 -c \"open('a.txt', 'w').write('')\"", json!("deny")),
        ("sed -i s/one/two/ b.txt", Value::Null),
        ("cp a.txt c.txt", Value::Null),
        ("sed s/one/two/ a.txt > c.txt", Value::Null),
        ("node a.txt", Value::Null),
        // The command names no file.
        ("git stash", Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        let said = decision(&format!("s{at}"), "bypassPermissions", command);
        assert_eq!(said, expected, "{command}");
    }
    assert_eq!(decision("asked", "default", "echo x >> a.txt"), "ask");
    assert_eq!(decision("asked", "default", "echo x >> a.txt"), Value::Null);
}

#[cfg(unix)]
#[test]
fn the_terminal_of_an_agent_is_not_told() {
    let workspace = Workspace::new(FILES);
    let mut server = editor(&workspace);
    let terminal = |id: &str, command: &str, fields: Value| {
        let mut terminal = json!({
            "id": id, "command": command, "isBusy": true, "newOutput": format!("OUTPUT-{id}\n"),
        });
        for (name, value) in fields.as_object().unwrap() {
            terminal[name] = value.clone();
        }
        terminal
    };
    let terminals = json!({ "terminals": [
        terminal("own", "bash", json!({ "pid": std::process::id() })),
        terminal("other", "npm run dev", json!({ "pid": 1 })),
        terminal("agent", "cd x && npx @google/gemini-cli@latest -m y", json!({})),
        terminal("node", "node /usr/bin/codex.js", json!({})),
        terminal("quoted", "FOO=1 '/opt/bin/claude' --ide", json!({})),
        terminal("full", "htop", json!({})),
        terminal("screen", "x", json!({ "alternateScreen": true })),
        terminal("raw", "y", json!({
            "newOutput": "before\u{1b}[?1049hOUTPUT-raw\u{1b}[?1049l\n\n\n\nafter\n",
        })),
        terminal("file", "cat claude", json!({})),
    ] });
    server.send_notification("sightline/didChangeTerminals", terminals);
    server.call("sightline/listTasks", json!({}));
    let text = CLAUDE.told(&workspace, None);
    for id in ["own", "agent", "node", "quoted", "full", "screen", "raw"] {
        assert!(!text.contains(&format!("OUTPUT-{id}")), "{id}: {text}");
    }
    for shown in ["OUTPUT-other", "OUTPUT-file", "before\n\nafter", "`htop`"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for command in ["`bash`", "codex", "gemini", "--ide"] {
        assert!(!text.contains(command), "{command}: {text}");
    }
    // The output of a program that entered the alternate screen before.
    let more = |output: &str| json!({ "terminals": [terminal("raw", "y", json!({ "newOutput": output }))] });
    server.send_notification("sightline/didChangeTerminals", more("\u{1b}[?1049h"));
    server.block(json!({}));
    server.send_notification(
        "sightline/didChangeTerminals",
        more("STILL\u{1b}[?1049lLEFT"),
    );
    let block = server.block(json!({ "consume": false }));
    assert!(
        block.contains("LEFT") && !block.contains("STILL"),
        "{block}"
    );
}
