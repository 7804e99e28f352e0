//! The page of `sightline ui`, with the built program and real HTTP requests.

mod security;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    harness::{Workspace, finished, program},
    ipc::listening,
};

/// Time to wait for what happens soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// `sightline ui` in a workspace.
struct Ui {
    process: Child,
    port: u16,
    token: String,
    _output: BufReader<ChildStdout>,
}

/// An answer: status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }
}

impl Ui {
    fn start(workspace: &Workspace, arguments: &[&str]) -> Self {
        let mut command: Command = program();
        command
            .args(["ui", "--no-open"])
            .args(arguments)
            .arg("--root")
            .arg(workspace.root())
            .arg("--storage")
            .arg(workspace.data())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let (address, token) = line.trim_end().split_once("/#").unwrap();
        let port = address.strip_prefix("http://127.0.0.1:").unwrap();
        Self {
            process,
            port: port.parse().unwrap(),
            token: token.to_owned(),
            _output: output,
        }
    }

    /// Sends bytes, and returns the answer.
    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        // The other end may reset a connection whose request it did not read.
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Answer {
            status: status.unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// The headers of the page for a request.
    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Host", format!("127.0.0.1:{}", self.port)),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Content-Type", "application/json".to_owned()),
        ]
    }

    /// Sends a request with these headers.
    fn request(&self, line: &str, headers: &[(&str, String)], body: &str) -> Answer {
        let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        self.send(&request)
    }

    fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "method": method, "params": params }).to_string();
        let answer = self.request("POST /rpc", &self.headers(), &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }
}

/// The events of a page.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(ui: &Ui) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", ui.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = format!("127.0.0.1:{}", ui.port);
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\r\n",
            ui.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut events = Self(BufReader::new(stream));
        let hello = events.next();
        assert_eq!(hello["event"], "hello", "{hello}");
        assert_eq!(hello["params"]["roots"][0]["name"], "shop", "{hello}");
        // What changes after the first look at the files is an event.
        std::thread::sleep(Duration::from_millis(600));
        events
    }

    /// Returns the next event. Lines of the chunked encoding are skipped.
    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ended");
            if let Ok(event @ Value::Object(_)) = serde_json::from_str(&line) {
                return event;
            }
        }
    }

    /// Waits for an event.
    fn wait(&mut self, name: &str) {
        while self.next()["event"] != name {}
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_request_is_answered_by_its_result_or_its_error() {
    let workspace = Workspace::new(&[("a.txt", "1\n"), (".env", "KEY=1\n")]);
    let ui = Ui::start(&workspace, &[]);
    let checked = ui.rpc(
        "sightline/checkAccess",
        json!({ "paths": ["a.txt", ".env"] }),
    );
    assert_eq!(checked["result"]["paths"][0]["access"], "allowed");
    assert_eq!(checked["result"]["paths"][1]["access"], "denied");
    let state = ui.rpc("page/state", json!({}));
    assert_eq!(state["result"]["roots"][0]["name"], "shop");
    assert_eq!(state["result"]["readOnly"], false);
    let refused = ui.rpc("sightline/diffCheckpoints", json!({ "from": "nowhere" }));
    assert_eq!(refused["error"]["data"]["kind"], "notFound", "{refused}");
    let unknown = ui.rpc("sightline/deleteTask", json!({ "taskId": "t" }));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

#[test]
fn a_restore_needs_its_preview_and_can_be_undone() {
    let workspace = Workspace::new(&[("a.txt", "1\n"), ("b.txt", "1\n")]);
    let ui = Ui::start(&workspace, &[]);
    let created = ui.rpc("sightline/createCheckpoint", json!({ "label": "start" }));
    let id = &created["result"]["id"];
    workspace.write("a.txt", "2\n");
    let refused = ui.rpc("sightline/restoreCheckpoint", json!({ "id": id }));
    assert_eq!(refused["error"]["data"]["kind"], "invalidParams");
    assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "2\n");
    let preview = || ui.rpc("sightline/previewRestore", json!({ "id": id }))["result"].clone();
    let old = preview()["token"].clone();
    workspace.write("b.txt", "2\n");
    let params = json!({ "id": id, "token": old });
    let late = ui.rpc("sightline/restoreCheckpoint", params);
    assert_eq!(late["error"]["data"]["kind"], "conflict", "{late}");
    assert_eq!(fs::read_to_string(workspace.path("b.txt")).unwrap(), "2\n");
    let params = json!({ "id": id, "token": preview()["token"] });
    let restored = ui.rpc("sightline/restoreCheckpoint", params);
    assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "1\n");
    let undo = &restored["result"]["undoId"];
    assert!(undo.is_string(), "{restored}");
    let refused = ui.rpc("sightline/undoRestore", json!({ "undoId": undo }));
    assert_eq!(refused["error"]["data"]["kind"], "invalidParams");
    let params = json!({ "id": undo, "undo": true });
    let preview = ui.rpc("sightline/previewRestore", params);
    let params = json!({ "undoId": undo, "token": preview["result"]["token"] });
    ui.rpc("sightline/undoRestore", params);
    assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "2\n");
}

#[test]
fn a_page_that_only_reads_changes_nothing() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let ui = Ui::start(&workspace, &["--read-only"]);
    assert_eq!(ui.rpc("page/state", json!({}))["result"]["readOnly"], true);
    for method in [
        "sightline/createCheckpoint",
        "sightline/labelCheckpoint",
        "sightline/openFile",
        "sightline/restoreCheckpoint",
        "sightline/undoRestore",
    ] {
        let params = json!({ "id": "last", "token": "t", "path": "a.txt" });
        let refused = ui.rpc(method, params);
        assert_eq!(refused["error"]["data"]["kind"], "accessDenied", "{method}");
    }
    let listed = ui.rpc("sightline/listCheckpoints", json!({}));
    assert_eq!(listed["result"]["checkpoints"], json!([]));
}

#[test]
fn changes_are_events() {
    let workspace = Workspace::new(&[("a.txt", "1\n"), (".clineignore", "*.key\n")]);
    let ui = Ui::start(&workspace, &[]);
    let mut events = Events::open(&ui);
    hook(
        &workspace,
        "UserPromptSubmit",
        "s",
        json!({ "prompt": "go" }),
    );
    events.wait("didChangeTurns");
    ui.rpc("sightline/createCheckpoint", json!({}));
    events.wait("didCreateCheckpoint");
    workspace.write(".clineignore", "*.key\n*.pem\n");
    events.wait("didChangeRules");
    let read =
        json!({ "tool_name": "Read", "tool_input": { "file_path": workspace.path("x.key") } });
    hook(&workspace, "PreToolUse", "s", read);
    events.wait("decision");
    let mut server = listening(&workspace);
    events.wait("didChangeServer");
    assert_eq!(ui.rpc("page/state", json!({}))["result"]["server"], true);
    server.open(&workspace.uri("a.txt"), "unsaved\n");
    events.wait("didChangeContext");
    // What the page does and another program undoes at once is announced twice.
    let set_paused = |is_paused: bool| json!({ "isPaused": is_paused });
    ui.rpc("sightline/connectedAgents", set_paused(true));
    server.call("sightline/connectedAgents", set_paused(false));
    events.wait("didChangeBridges");
    events.wait("didChangeBridges");
    assert_eq!(server.end(), 0);
    events.wait("didChangeServer");
}

#[test]
fn a_page_survives_the_end_of_the_server_of_the_editor() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let mut server = listening(&workspace);
    server.open(&workspace.uri("a.txt"), "unsaved\n");
    server.call("sightline/checkAccess", json!({}));
    let ui = Ui::start(&workspace, &[]);
    let text = || {
        let read = ui.rpc("sightline/readFile", json!({ "path": "a.txt" }));
        read["result"]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(), "unsaved\n");
    assert_eq!(server.end(), 0);
    assert_eq!(text(), "1\n");
    let created = ui.rpc("sightline/createCheckpoint", json!({}));
    let mut server = listening(&workspace);
    server.open(&workspace.uri("a.txt"), "again\n");
    server.call("sightline/checkAccess", json!({}));
    assert_eq!(text(), "again\n");
    let listed = ui.rpc("sightline/listCheckpoints", json!({}));
    assert_eq!(
        listed["result"]["checkpoints"][0]["id"],
        created["result"]["id"]
    );
    assert_eq!(server.end(), 0);
}

/// Runs a hook of Claude Code, and returns its answer.
fn hook(workspace: &Workspace, event: &str, session: &str, mut input: Value) -> String {
    input["session_id"] = json!(session);
    input["hook_event_name"] = json!(event);
    input["cwd"] = json!(workspace.root());
    let mut child = program()
        .args([
            "hook",
            event,
            "--agent",
            "claude",
            "--checkpoints",
            "--storage",
        ])
        .arg(workspace.data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let (code, text, _) = finished(child.wait_with_output().unwrap());
    assert_eq!(code, 0);
    text
}

#[test]
fn the_next_block_is_what_the_hook_adds() {
    let workspace = Workspace::new(&[("a.txt", "1\n"), ("b.txt", "1\n")]);
    let mut server = listening(&workspace);
    server.open(&workspace.uri("a.txt"), "unsaved\n");
    server.call("sightline/checkAccess", json!({}));
    let ui = Ui::start(&workspace, &[]);
    let next = || ui.rpc("page/nextBlock", json!({ "agent": "claude" }))["result"].clone();
    let without_time = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.contains("202"));
        lines.map(str::to_owned).collect()
    };
    let added = |number: u32| {
        let prompt = json!({ "prompt": number.to_string() });
        let answer = hook(&workspace, "UserPromptSubmit", "s", prompt);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let added = &answer["hookSpecificOutput"]["additionalContext"];
        added.as_str().unwrap_or_default().to_owned()
    };
    let first = next();
    assert_eq!(first["sessions"], json!([]));
    let shown = without_time(first["text"].as_str().unwrap());
    assert_eq!(shown, without_time(&added(1)));
    assert!(shown.iter().any(|line| line.contains("a.txt")), "{shown:?}");
    let second = next();
    assert_eq!(
        (&second["text"], &second["session"]),
        (&json!(""), &json!("s"))
    );
    assert_eq!(added(2), "");
    server.open(&workspace.uri("b.txt"), "1\n");
    server.call("sightline/checkAccess", json!({}));
    let third = next();
    assert!(third["tokens"].as_u64().unwrap() > 0, "{third}");
    // The question changes nothing.
    assert_eq!(next()["text"], third["text"]);
    let shown = without_time(third["text"].as_str().unwrap());
    assert_eq!(shown, without_time(&added(3)));
    assert_eq!(server.end(), 0);
}

#[test]
fn rules_in_force_and_denied_entries_are_listed() {
    let workspace = Workspace::new(&[
        (".clineignore", "# keys\n*.key\nprivate/\n"),
        ("a.key", "planted-1\n"),
        ("private/b.txt", "planted-2\n"),
        (".gitignore", ".env\nbuilt/\n"),
        ("built/b.key", "planted-5\n"),
        ("sub/.clineignore", "*.txt\n"),
        ("sub/c.txt", "planted-3\n"),
        (".env", "KEY=planted-4\n"),
    ]);
    let outside = tempfile::tempdir().unwrap();
    for (name, target) in [
        ("to-env", ".env".as_ref()),
        ("away", outside.path()),
        ("loop", "loop".as_ref()),
    ] {
        std::os::unix::fs::symlink(target, workspace.path(name)).unwrap();
    }
    let ui = Ui::start(&workspace, &[]);
    let listed = ui.rpc("sightline/listRules", json!({}))["result"].clone();
    for entry in listed["entries"].as_array().unwrap() {
        assert!(
            entry["rule"].is_object() || entry["reason"].is_string(),
            "{entry}"
        );
    }
    let entry = |path: &str| {
        let mut entries = listed["entries"].as_array().unwrap().iter();
        let found = entries.find(|entry| entry["path"] == path);
        found.unwrap_or_else(|| panic!("{path}: {listed}")).clone()
    };
    assert_eq!(entry("a.key")["rule"]["line"], 2);
    assert_eq!(entry("private")["kind"], "directory");
    assert_eq!(entry("sub/c.txt")["rule"]["pattern"], "*.txt");
    // Git ignores it, too.
    assert_eq!(entry(".env")["rule"]["source"], "built-in secrets");
    assert_eq!(entry("to-env")["rule"]["source"], "built-in secrets");
    let sources: Vec<(&Value, &Value)> = listed["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (&file["source"], &file["rules"]))
        .collect();
    assert_eq!(sources[0], (&json!(".clineignore"), &json!(2)), "{listed}");
    assert_eq!(listed["files"].as_array().unwrap().len(), 2, "{listed}");
    assert!(!listed.to_string().contains("planted"), "{listed}");
    fs::remove_file(workspace.path(".clineignore")).unwrap();
    let held = ui.rpc("sightline/listRules", json!({}))["result"].clone();
    assert_eq!(held["files"][0]["state"], "held", "{held}");
}

#[test]
fn a_request_is_run_by_its_name() {
    let workspace = Workspace::new(&[("a.txt", "1\n"), (".env", "KEY=1\n")]);
    let run = |arguments: &[&str]| crate::ipc::run(&workspace, arguments);
    let params = r#"{"paths":["a.txt",".env"]}"#;
    for method in ["checkAccess", "sightline/checkAccess"] {
        let (code, text, _) = run(&["request", method, params]);
        let checked: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (code, &checked["paths"][1]["access"]),
            (0, &json!("denied"))
        );
    }
    let (code, _, complaint) = run(&["request", "readFile", r#"{"path":".env"}"#]);
    assert_eq!(code, 1, "{complaint}");
    let (code, _, complaint) = run(&["request", "nowhere"]);
    assert_eq!(code, 2);
    assert!(complaint.contains("there is no request"), "{complaint}");
    let (code, _, complaint) = run(&["request", "readFile", "[1"]);
    assert_eq!(code, 2, "{complaint}");
    let mut server = listening(&workspace);
    server.open(&workspace.uri("a.txt"), "unsaved\n");
    server.call("sightline/checkAccess", json!({}));
    let (_, text, _) = run(&["request", "readFile", r#"{"path":"a.txt"}"#]);
    assert!(text.contains("unsaved"), "{text}");
    assert_eq!(server.end(), 0);
}

#[test]
fn an_editor_opens_the_page() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let mut params = workspace.initialize();
    params["capabilities"]["window"]["showDocument"] = json!({ "support": true });
    // The built program: the command starts itself.
    let (mut child, mut client) = crate::harness::spawn();
    client.request("initialize", params).unwrap().unwrap();
    client.notify("initialized", json!({})).unwrap();
    let (sender, shown) = std::sync::mpsc::channel();
    client.answer_with(move |method, params| {
        if method == "window/showDocument" {
            sender.send(params.clone()).unwrap();
        }
        Some(json!({ "success": true }))
    });
    let command = json!({ "command": "sightline.openPage", "arguments": [] });
    client
        .request("workspace/executeCommand", command)
        .unwrap()
        .unwrap();
    client
        .request("sightline/checkAccess", json!({}))
        .unwrap()
        .unwrap();
    let shown = shown.recv_timeout(PATIENCE).unwrap();
    assert_eq!(shown["external"], true);
    let (address, token) = shown["uri"].as_str().unwrap().split_once("/#").unwrap();
    let port: u16 = address
        .strip_prefix("http://127.0.0.1:")
        .unwrap()
        .parse()
        .unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let body = r#"{"method":"page/state"}"#;
    let request = format!(
        "POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"name\":\"shop\""), "{answer}");
    client.request("shutdown", Value::Null).unwrap().unwrap();
    client.notify("exit", Value::Null).unwrap();
    child.wait().unwrap();
}
