//! `sightline mcp`, as a client of the Model Context Protocol sees it.

#[cfg(unix)]
mod addresses;
#[cfg(unix)]
mod broken;
mod clients;
#[cfg(unix)]
mod definitions;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(unix)]
mod hub;
#[cfg(unix)]
mod management;
mod nested_rules;
mod pages;
mod protocol;
mod redaction;
#[cfg(unix)]
mod running_server;
#[cfg(unix)]
mod servers;
#[cfg(unix)]
mod traces;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    harness::{Server, Workspace, program},
    hook::hook_with,
    ipc::run,
};

const FILES: &[(&str, &str)] = &[
    (".clineignore", "secret.txt\n"),
    ("notes.txt", "saved text\n"),
    ("secret.txt", "SECRET\n"),
];

/// Time to answer.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    process: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
    id: u64,
}

impl Client {
    fn start(workspace: &Workspace, arguments: &[&str]) -> Self {
        Self::spawn(program().arg("mcp").args(arguments), workspace)
    }

    pub(crate) fn spawn(command: &mut Command, workspace: &Workspace) -> Self {
        let mut process = command
            .arg("--storage")
            .arg(workspace.data())
            .current_dir(workspace.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        Self {
            process,
            input,
            lines,
            id: 0,
        }
    }

    /// Starts and initializes.
    pub(crate) fn open(workspace: &Workspace, arguments: &[&str]) -> Self {
        let mut client = Self::start(workspace, arguments);
        client.initialize("2025-11-25");
        client
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(TIMEOUT).expect("no answer");
        serde_json::from_str(&line).unwrap()
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{method}: {answer}");
        answer
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let answer = self.request("initialize", &params);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer["result"].clone()
    }

    /// Calls a tool. Returns its text, and whether it is an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", &params);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text
            .unwrap_or_else(|| panic!("{tool}: {answer}"))
            .to_owned();
        (text, result["isError"] == true)
    }

    /// Calls a tool that must succeed.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }

    fn tools(&mut self) -> Vec<Value> {
        let answer = self.request("tools/list", &json!({}));
        answer["result"]["tools"].as_array().unwrap().clone()
    }

    /// Ends the input. Returns the exit code.
    fn end(self) -> Option<i32> {
        let Self {
            mut process, input, ..
        } = self;
        drop(input);
        process.wait().unwrap().code()
    }
}

/// Returns the text between quotes after `name=`.
fn quoted(text: &str, name: &str) -> String {
    let (_, rest) = text.split_once(&format!("{name}=\"")).unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[test]
fn files_come_from_disk_without_an_editor() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::open(&workspace, &[]);
    let text = client.text("read_file", json!({ "path": "notes.txt" }));
    assert!(
        text.contains("saved text") && text.contains("no editor is running"),
        "{text}"
    );
    let (text, is_error) = client.call("read_file", json!({ "path": "secret.txt" }));
    assert!(is_error && text.contains(".clineignore:1"), "{text}");
    let text = client.text("list_files", json!({}));
    assert!(
        text.contains("notes.txt") && !text.contains("secret.txt"),
        "{text}"
    );
    let text = client.text("list_files", json!({ "limit": 1 }));
    assert_eq!(text.matches("cut short").count(), 1, "{text}");
    assert!(!text.contains("not complete"), "{text}");
    let (text, is_error) = client.call("read_file", json!({ "path": "nosuch" }));
    assert!(
        is_error && text.contains("nosuch: no such file or directory"),
        "{text}"
    );
    let text = client.text(
        "check_access",
        json!({ "paths": ["secret.txt"], "command": "cat secret.txt" }),
    );
    assert!(
        text.contains("secret.txt: denied") && text.contains("The command is denied"),
        "{text}"
    );
    let text = client.text("count_tokens", json!({ "text": "one two" }));
    assert!(text.contains("tokens"), "{text}");
    assert_eq!(client.end(), Some(0));
}

#[cfg(unix)]
#[test]
fn unsaved_text_comes_from_the_running_server() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::open(&workspace, &[]);
    let text = client.text("read_file", json!({ "path": "notes.txt" }));
    assert!(text.contains("saved text"), "{text}");
    // No mode, and no sections of an editor.
    let text = client.text("environment_details", json!({}));
    assert!(
        text.starts_with("No editor is running for this folder."),
        "{text}"
    );
    for heading in ["Current Mode", "Visible Files", "Open Tabs"] {
        assert!(!text.contains(heading), "{text}");
    }
    let text = client.text("environment_details", json!({ "sections": ["openTabs"] }));
    assert_eq!(text, "No editor is running for this folder.");
    // The editor starts later than the agent.
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("notes.txt"), "unsaved text\n");
    // A request that uses a task runs after the sockets are open.
    server.call("sightline/environmentDetails", json!({ "taskId": "t" }));
    let text = client.text("read_file", json!({ "path": "notes.txt" }));
    assert!(
        text.contains("unsaved text") && text.contains("from the editor"),
        "{text}"
    );
    assert!(!text.contains("on disk has changed"), "{text}");
    // The mode of the agent is not known, and only numbers of the agent are named.
    let text = client.text("environment_details", json!({}));
    assert!(
        !text.contains("Mode") && text.contains("# Current Time"),
        "{text}"
    );
    let text = client.text("environment_details", json!({ "sections": ["openTabs"] }));
    assert!(!text.contains("No editor"), "{text}");
    let text = client.text("environment_details", json!({}));
    assert!(
        text.contains("notes.txt") && !text.contains("Current Mode"),
        "{text}"
    );
    // Another program changes the file too.
    workspace.write("notes.txt", "third text\n");
    let text = client.text("read_file", json!({ "path": "notes.txt" }));
    assert!(
        text.contains("unsaved text") && text.contains("the file on disk has changed too"),
        "{text}"
    );
    let (_, text, warning) = run(&workspace, &["read", "notes.txt"]);
    assert_eq!(text, "unsaved text\n");
    assert!(
        warning.contains("the file on disk has changed too"),
        "{warning}"
    );
    let read = server.call("sightline/readFile", json!({ "path": "notes.txt" }));
    assert_eq!(read["changedOnDisk"], true, "{read}");
}

#[test]
fn whole_numbers_may_be_written_as_fractions() {
    let workspace = Workspace::new(&[("a.txt", "one\ntwo\nthree\n")]);
    let mut client = Client::open(&workspace, &[]);
    let lines =
        json!({ "path": "a.txt", "startLine": 2.0, "endLine": 2.0, "maxCharacters": 500.0 });
    let text = client.text("read_file", lines);
    assert!(text.ends_with("\n\ntwo\n"), "{text}");
    for wrong in [json!(2.5), json!(-1), json!("2")] {
        let arguments = json!({ "path": "a.txt", "startLine": wrong });
        let (text, is_error) = client.call("read_file", arguments);
        let expected = format!(
            "invalid arguments: startLine must be a whole number of at least 1, not {wrong}"
        );
        assert!(is_error && text == expected, "{text}");
    }
}

#[test]
fn a_list_of_checkpoints_names_the_turn_of_each() {
    let workspace = Workspace::new(FILES);
    let input = json!({
        "session_id": "s-1", "cwd": workspace.root(), "prompt": "Q",
        "tool_name": "Edit", "tool_input": { "file_path": workspace.path("notes.txt") },
    });
    for event in ["UserPromptSubmit", "PreToolUse"] {
        hook_with(
            &workspace,
            event,
            "claude",
            &input.to_string(),
            &["--checkpoints"],
        );
    }
    let mut client = Client::open(&workspace, &[]);
    client.text("checkpoint_create", json!({ "label": "mine" }));
    let params = json!({ "name": "checkpoint_list", "arguments": {} });
    let answer = client.request("tools/call", &params);
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("before turn claude-1.1"), "{text}");
    let listed = result["structuredContent"]["checkpoints"]
        .as_array()
        .unwrap();
    let turns: Vec<Value> = listed
        .iter()
        .filter(|one| one.get("turn").is_some())
        .map(|one| json!([one["agent"], one["session"], one["turn"]]))
        .collect();
    assert_eq!(turns, [json!(["claude", "s-1", "claude-1.1"])], "{result}");
    assert_eq!(listed[0]["label"], "mine", "{result}");
}

#[test]
fn a_restore_takes_two_steps_and_can_be_undone() {
    let workspace = Workspace::new(FILES);
    let notes = workspace.root().join("notes.txt");
    let mut client = Client::open(&workspace, &[]);
    let text = client.text("checkpoint_list", json!({}));
    assert!(text.contains("No checkpoints yet"), "{text}");
    client.text("checkpoint_create", json!({ "label": "before" }));
    std::fs::write(&notes, "changed\n").unwrap();
    let text = client.text("checkpoint_list", json!({}));
    let id = text.split(' ').next().unwrap().to_owned();
    assert!(text.contains("before"), "{text}");
    let text = client.text("checkpoint_diff", json!({ "from": id }));
    assert!(text.contains("-saved text\n+changed"), "{text}");

    let preview = client.text("checkpoint_restore", json!({ "id": id }));
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "changed\n");
    let token = quoted(&preview, "token");
    let (_, is_error) = client.call("checkpoint_restore", json!({ "id": id, "token": "0000" }));
    assert!(is_error);
    client.text("checkpoint_restore", json!({ "id": id, "token": token }));
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "saved text\n");

    let preview = client.text("checkpoint_undo", json!({}));
    let (token, undo) = (quoted(&preview, "token"), quoted(&preview, "undoId"));
    client.text("checkpoint_undo", json!({ "undoId": undo, "token": token }));
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "changed\n");
}

/// What keeps the hooks in force is left alone, as by other tools.
#[test]
fn a_restore_leaves_configuration_of_agents_alone() {
    let workspace = Workspace::new(FILES);
    let settings = workspace.path(".claude/settings.json");
    let notes = workspace.path("notes.txt");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut client = Client::open(&workspace, &[]);
    client.text("checkpoint_create", json!({}));
    workspace.write(".claude/settings.json", "{\"hooks\": {}}\n");
    workspace.write("notes.txt", "changed\n");

    let preview = client.text("checkpoint_restore", json!({ "id": "last" }));
    let left_alone = "skip    .claude/settings.json  ";
    assert!(preview.contains(left_alone), "{preview}");
    assert!(!preview.contains("delete  .claude"), "{preview}");
    let arguments = json!({ "id": "last", "token": quoted(&preview, "token") });
    let restored = client.text("checkpoint_restore", arguments);
    assert!(restored.contains(left_alone), "{restored}");
    assert_eq!(read(&notes), "saved text\n");
    assert_eq!(read(&settings), "{\"hooks\": {}}\n");

    // Nothing else is left to restore.
    for arguments in [
        json!({ "id": "last" }),
        json!({ "id": "last", "token": "0000" }),
    ] {
        let (text, is_error) = client.call("checkpoint_restore", arguments);
        let text = text.to_string();
        assert!(
            is_error && text.contains("only the user may change it"),
            "{text}"
        );
    }

    // The user has restored them.
    let (code, ..) = run(&workspace, &["checkpoint", "restore", "last", "--yes"]);
    assert_eq!(code, 0);
    assert_eq!(read(&settings), "");
    let (text, is_error) = client.call("checkpoint_undo", json!({}));
    assert!(is_error, "{text:?}");
    assert_eq!(read(&settings), "");
}

#[test]
fn tools_can_be_selected() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::open(&workspace, &["--read-only"]);
    let tools = client.tools();
    assert!(tools.len() > 5);
    for tool in &tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
    let answer = client.request(
        "tools/call",
        &json!({ "name": "checkpoint_create", "arguments": {} }),
    );
    assert!(answer["error"].is_object(), "{answer}");
    let mut client = Client::open(&workspace, &["--tools", "read_file,check_access"]);
    let names: Vec<Value> = client
        .tools()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["read_file", "check_access"]);
}
