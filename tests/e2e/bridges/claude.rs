//! Claude Code and opencode: a WebSocket client.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sightline_testing::lsp_client::LspClient;
use tokio_tungstenite::tungstenite::{
    self, Message, WebSocket, client::IntoClientRequest, http::HeaderValue,
};

use super::{Editor, NOTHING, SOON};
use crate::harness::Workspace;

const FOLDER: &str = ".claude/ide";

impl Editor {
    /// Returns port and content of the lock file.
    pub(super) fn lock(&self) -> (u16, Value) {
        let file = self.wait_for_files(FOLDER, 1).remove(0);
        let port = file.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        (
            port,
            serde_json::from_slice(&fs::read(file).unwrap()).unwrap(),
        )
    }

    pub(super) fn agent(&self) -> Agent {
        let (port, lock) = self.lock();
        Agent::connect(port, lock["authToken"].as_str().unwrap())
    }
}

pub(super) struct Agent(WebSocket<TcpStream>);

impl Agent {
    pub(super) fn connect(port: u16, token: &str) -> Self {
        let mut agent = Self(connect(port, &[(TOKEN, token)]).unwrap());
        agent.send(json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "clientInfo": { "name": "claude-code" } },
        }));
        assert_eq!(
            agent.receive().unwrap()["result"]["protocolVersion"],
            "2025-11-25"
        );
        agent
    }

    pub(super) fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).unwrap();
    }

    /// Returns the next message. `None` if none comes for a while.
    pub(super) fn receive(&mut self) -> Option<Value> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) => {
                    assert!(
                        matches!(
                            error.kind(),
                            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                        ),
                        "{error}"
                    );
                    return None;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Receives selections until one is of this file. Returns its text.
    pub(super) fn selection_in(&mut self, path: &str) -> String {
        loop {
            let message = self.receive().expect("a selection");
            if message["method"] == "selection_changed" && message["params"]["filePath"] == path {
                return message["params"]["text"].as_str().unwrap().to_owned();
            }
        }
    }

    pub(super) fn initialized(&mut self) {
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.0.get_mut().set_read_timeout(Some(timeout)).unwrap();
    }

    /// Returns what arrives within a while.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        self.set_timeout(NOTHING);
        let rest = std::iter::from_fn(|| self.receive()).collect();
        self.set_timeout(SOON);
        rest
    }
}

pub(super) const TOKEN: &str = "x-claude-code-ide-authorization";

/// Connects as an agent does. The error is the HTTP status.
pub(super) fn connect(
    port: u16,
    headers: &[(&'static str, &str)],
) -> Result<WebSocket<TcpStream>, u16> {
    let mut request = format!("ws://127.0.0.1:{port}/")
        .into_client_request()
        .unwrap();
    for (name, value) in headers {
        request
            .headers_mut()
            .insert(*name, HeaderValue::from_str(value).unwrap());
    }
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn claude() -> Value {
    json!({ "claudeIde": true, "selection": true, "pause": false })
}

#[test]
fn an_agent_gets_the_selection_as_it_changes() {
    let mut editor = Editor::start(claude());
    editor.open("a.txt", "one \u{1f600} two\n");
    editor.select("a.txt", 0, 3);
    let path = editor.workspace.path("a.txt");
    let path = path.to_str().unwrap();
    let mut agent = editor.agent();
    assert_eq!(
        agent.rest(),
        [] as [Value; 0],
        "nothing before the agent is ready"
    );
    agent.initialized();
    let first = agent.receive().unwrap();
    assert_eq!(
        first["params"],
        json!({
            "text": "one", "filePath": path, "fileUrl": editor.workspace.uri("a.txt"),
            "selection": {
                "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 3 },
                "isEmpty": false,
            },
        })
    );
    // Claude Code loses what arrives before it has the tools.
    agent.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    let tools = agent.receive().unwrap()["result"]["tools"].clone();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "getDiagnostics",
            "closeAllDiffTabs",
            "close_tab",
            "openDiff"
        ]
    );
    for _ in 0..2 {
        assert_eq!(agent.selection_in(path), "one");
    }
    editor.select("a.txt", 7, 10);
    assert_eq!(agent.selection_in(path), "two");
    // An unsaved change is the newest text.
    let uri = editor.workspace.uri("a.txt");
    editor.notify("textDocument/didChange", json!({
        "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": "ONE TWO and more\n" }],
    }));
    assert_eq!(agent.selection_in(path), " an");
}

#[test]
fn a_denied_focus_clears_the_selection() {
    let mut editor = Editor::start(claude());
    editor.open("a.txt", "one\n");
    editor.open("secret.txt", "DENIED\n");
    editor.select("a.txt", 0, 3);
    let mut agent = editor.agent();
    agent.initialized();
    let path = editor.workspace.path("a.txt");
    assert_eq!(agent.selection_in(path.to_str().unwrap()), "one");
    editor.select("secret.txt", 0, 6);
    assert_eq!(agent.selection_in(""), "");
    editor.select("a.txt", 0, 2);
    assert_eq!(agent.selection_in(path.to_str().unwrap()), "on");
    // New rules deny the focused file, also those of a folder below the root.
    editor.workspace.write("sub/b.txt", "two\n");
    editor.open("sub/b.txt", "two\n");
    editor.select("sub/b.txt", 0, 3);
    let below = editor.workspace.path("sub/b.txt");
    assert_eq!(agent.selection_in(below.to_str().unwrap()), "two");
    editor.workspace.write("sub/.clineignore", "b.txt\n");
    assert_eq!(agent.selection_in(""), "");
    editor.select("a.txt", 0, 3);
    assert_eq!(agent.selection_in(path.to_str().unwrap()), "one");
    editor.workspace.write(".clineignore", "*.txt\n");
    assert_eq!(agent.selection_in(""), "");
    // Diagnostics of denied files are not listed.
    let uri = editor.workspace.uri("a.txt");
    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
    editor.notify(
        "sightline/didChangeDiagnostics",
        json!({
            "uri": uri, "diagnostics": [{ "range": range, "message": "DENIED", "severity": 2 }],
        }),
    );
    let mut diagnostics = |arguments: Value| {
        agent.rest();
        agent.send(json!({
            "jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": { "name": "getDiagnostics", "arguments": arguments },
        }));
        let answer = agent.receive().unwrap();
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(diagnostics(json!({ "uri": uri })), "[]");
    assert_eq!(diagnostics(json!({})), "[]");
    editor.workspace.write(".clineignore", "secret.txt\n");
    let end = Instant::now() + SOON;
    while diagnostics(json!({ "uri": uri })) == "[]" {
        assert!(Instant::now() < end);
    }
    let found: Value = serde_json::from_str(&diagnostics(json!({}))).unwrap();
    let expected = json!([{ "message": "DENIED", "severity": "Warning", "range": range }]);
    assert_eq!(found, json!([{ "uri": uri, "diagnostics": expected }]));
}

#[test]
fn settings_pause_and_leave_out_text() {
    let mut editor = Editor::start(json!({ "claudeIde": true, "selection": false }));
    editor.open("a.txt", "one\n");
    editor.select("a.txt", 0, 3);
    let mut agent = editor.agent();
    agent.initialized();
    let path = editor.workspace.path("a.txt");
    let path = path.to_str().unwrap();
    assert_eq!(agent.selection_in(path), "");
    editor.set(&claude());
    assert_eq!(agent.selection_in(path), "one");
    editor.set(&json!({ "claudeIde": true, "pause": true }));
    assert_eq!(agent.selection_in(""), "");
    editor.set(&claude());
    assert_eq!(agent.selection_in(path), "one");
    editor.set(&json!({ "claudeIde": false }));
    editor.wait_for_files(FOLDER, 0);
    let closed = agent.0.read();
    assert!(!matches!(closed, Ok(Message::Text(_))), "{closed:?}");
}

#[test]
fn rules_that_changed_while_no_agent_was_connected_apply_at_once() {
    let mut editor = Editor::start(claude());
    editor.open("a.txt", "one\n");
    editor.select("a.txt", 0, 3);
    let path = editor.workspace.path("a.txt");
    let mut agent = editor.agent();
    agent.initialized();
    assert_eq!(agent.selection_in(path.to_str().unwrap()), "one");
    drop(agent);
    std::thread::sleep(NOTHING);
    editor.workspace.write(".clineignore", "*.txt\n");
    let mut agent = editor.agent();
    agent.initialized();
    let first = agent.receive().unwrap();
    assert_eq!(first["params"]["filePath"], "", "{first}");
}

#[test]
fn strangers_are_refused() {
    let editor = Editor::start(claude());
    let (port, lock) = editor.lock();
    let token = lock["authToken"].as_str().unwrap();
    assert_eq!(token.len(), 43);
    let wrong = format!("{}A", &token[1..]);
    for (headers, status) in [
        (vec![], 401),
        (vec![(TOKEN, wrong.as_str())], 401),
        (vec![(TOKEN, "")], 401),
        (vec![(TOKEN, token), ("origin", "http://127.0.0.1")], 403),
        (vec![(TOKEN, token), ("host", "evil.example:1")], 403),
    ] {
        assert_eq!(connect(port, &headers).err(), Some(status), "{headers:?}");
    }
    assert!(connect(port, &[(TOKEN, token)]).is_ok());
}

#[cfg(unix)]
#[test]
fn the_lock_file_is_private_and_removed() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for way in 0..4 {
        let mut editor = Editor::start(claude());
        let (_, lock) = editor.lock();
        let root = editor.workspace.root();
        assert_eq!(lock["workspaceFolders"], json!([root]));
        assert_eq!(lock["ideName"], "Sightline (shop)");
        assert_eq!(lock["transport"], "ws");
        assert_eq!(lock["pid"], editor.child.id());
        let file = editor.files(FOLDER).remove(0);
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        editor.end(way);
        assert_eq!(editor.files(FOLDER), [] as [PathBuf; 0], "{way}");
    }
}

#[cfg(unix)]
#[test]
fn the_lock_file_is_removed_when_the_parent_dies() {
    // The test keeps both ends of the server's input open: only the parent ends.
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let home = tempfile::tempdir().unwrap();
    let mut parent = std::process::Command::new("sh")
        .args(["-c", r#"exec 3<&0; "$0" --stdio <&3 & wait"#])
        .arg(env!("CARGO_BIN_EXE_sightline"))
        .env("HOME", home.path())
        .env_remove("CLAUDE_CONFIG_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut client = LspClient::new(parent.stdout.take().unwrap(), parent.stdin.take().unwrap());
    let mut params = workspace.initialize();
    params["initializationOptions"]["bridges"] = claude();
    client.request("initialize", params).unwrap().unwrap();
    let folder = home.path().join(FOLDER);
    let files = || fs::read_dir(&folder).map_or(0, Iterator::count);
    let wait_for = |count| {
        let end = Instant::now() + SOON;
        while files() != count {
            assert!(Instant::now() < end, "{} files", files());
            thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for(1);
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_for(0);
}

#[test]
fn two_servers_have_a_lock_file_each() {
    let first = Editor::start(claude());
    let (port, lock) = first.lock();
    let second = Editor::start_with_home(&first, claude());
    first.wait_for_files(FOLDER, 2);
    let other = first
        .files(FOLDER)
        .into_iter()
        .find(|file| *file.file_stem().unwrap() != *port.to_string())
        .unwrap();
    let text = fs::read(other).unwrap();
    let other: Value = serde_json::from_slice(&text).unwrap();
    assert_ne!(lock["authToken"], other["authToken"]);
    assert_ne!(lock["pid"], other["pid"]);
    drop(second);
    // The token of one server is not the other's.
    let wrong = other["authToken"].as_str().unwrap();
    assert_eq!(connect(port, &[(TOKEN, wrong)]).err(), Some(401));
}

#[test]
fn the_last_setting_wins() {
    let mut editor = Editor::start(json!({}));
    for _ in 0..20 {
        for is_on in [true, false] {
            editor.set(&json!({ "claudeIde": is_on }));
        }
    }
    let block = editor
        .client
        .request("sightline/environmentDetails", json!({}));
    block.unwrap().unwrap();
    thread::sleep(NOTHING);
    assert_eq!(editor.files(FOLDER), [] as [PathBuf; 0]);
}

#[test]
fn the_active_editor_of_a_file_has_the_selection() {
    let mut editor = Editor::start(claude());
    editor.open("a.txt", "one two\n");
    let mut agent = editor.agent();
    agent.initialized();
    let uri = editor.workspace.uri("a.txt");
    let shown = |from: u32, to: u32, is_active: bool| {
        let at = |character| json!({ "line": 0, "character": character });
        let selections = json!([{ "start": at(from), "end": at(to) }]);
        json!({ "uri": uri, "isActive": is_active, "selections": selections })
    };
    // The selection was made backwards.
    let editors = json!({ "editors": [shown(0, 3, false), shown(7, 4, true)] });
    editor.notify("sightline/didChangeVisibleEditors", editors);
    let path = editor.workspace.path("a.txt");
    let end = Instant::now() + SOON;
    while agent.selection_in(path.to_str().unwrap()) != "two" {
        assert!(Instant::now() < end);
    }
}

#[cfg(unix)]
#[test]
fn files_of_killed_servers_are_removed_and_others_kept() {
    let editor = Editor::start(json!({}));
    assert_eq!(editor.files(FOLDER), [] as [PathBuf; 0], "off by default");
    let folder = editor.home.path().join(FOLDER);
    fs::create_dir_all(&folder).unwrap();
    let content = |pid: u32, name: &str| json!({ "pid": pid, "ideName": name }).to_string();
    let (dead, alive) = (0x3fff_ffff, std::process::id());
    for (file, text) in [
        ("1.lock", content(dead, "Sightline (a)")),
        ("2.lock", content(alive, "Sightline (a)")),
        ("3.lock", content(dead, "Visual Studio Code")),
        ("4.lock", "{".to_owned()),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    let mut editor = editor;
    editor.set(&claude());
    let is_kept = |name: &str| folder.join(name).exists();
    let end = Instant::now() + SOON;
    while is_kept("1.lock") {
        assert!(Instant::now() < end, "a stale file is kept");
        thread::sleep(Duration::from_millis(20));
    }
    editor.wait_for_files(FOLDER, 4);
    assert!(["2.lock", "3.lock", "4.lock"].into_iter().all(is_kept));
}

#[test]
fn an_agent_that_reads_nothing_does_not_delay_the_editor() {
    let mut editor = Editor::start(claude());
    let text = format!("{}\n", "x".repeat(15_000));
    editor.open("a.txt", &text);
    let mut silent = editor.agent();
    silent.initialized();
    let mut other = editor.agent();
    other.initialized();
    let path = editor.workspace.path("a.txt");
    for to in 1..2_000 {
        editor.select("a.txt", 0, 13_000 + to);
    }
    let block = editor
        .client
        .request("sightline/environmentDetails", json!({}))
        .unwrap()
        .unwrap();
    assert!(block["text"].as_str().unwrap().contains("a.txt"));
    let path = path.to_str().unwrap();
    while other.selection_in(path).len() != 14_999 {}
}

#[test]
fn a_message_that_is_too_large_closes_the_connection() {
    let editor = Editor::start(claude());
    let mut agent = editor.agent();
    let large = Message::text("x".repeat(17 * 1024 * 1024));
    let sent = agent.0.send(large);
    let read = agent.0.read();
    assert!(
        sent.is_err() || !matches!(read, Ok(Message::Text(_))),
        "{read:?}"
    );
    // Others are served.
    editor.agent();
}
