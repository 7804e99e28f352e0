//! gemini-cli, Qwen Code and Copilot CLI: an HTTP client.

use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Editor, SOON};

pub(super) trait Stream: Read + Write {
    fn set_timeout(&self, timeout: Duration);
}

impl Stream for TcpStream {
    fn set_timeout(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
}

impl Stream for UnixStream {
    fn set_timeout(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
}

/// Where an agent connects, and its headers.
pub(super) struct Address {
    pub(super) port: Option<u16>,
    pub(super) socket: PathBuf,
    pub(super) host: String,
    pub(super) authorization: String,
}

impl Address {
    /// Reads the files of gemini-cli and of Qwen Code.
    pub(super) fn gemini(editor: &Editor) -> Self {
        let file = editor.wait_for_files("gemini/ide", 1).remove(0);
        let found: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let qwen = editor.wait_for_files(".qwen/ide", 1).remove(0);
        let same: Value = serde_json::from_slice(&fs::read(qwen).unwrap()).unwrap();
        assert_eq!(found, same);
        let root = editor.workspace.root();
        assert_eq!(found["workspacePath"], json!(root));
        assert_eq!(found["ideInfo"]["displayName"], "Sightline (shop)");
        let port = u16::try_from(found["port"].as_u64().unwrap()).unwrap();
        Self {
            port: Some(port),
            socket: PathBuf::new(),
            host: format!("127.0.0.1:{port}"),
            authorization: format!("Bearer {}", found["authToken"].as_str().unwrap()),
        }
    }

    /// Reads the lock file of Copilot CLI.
    pub(super) fn copilot(editor: &Editor) -> Self {
        let file = editor.wait_for_files(".copilot/ide", 2).remove(0);
        assert_eq!(file.extension().unwrap(), "lock");
        let found: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(found["workspaceFolders"], json!([editor.workspace.root()]));
        assert_eq!(found["scheme"], "unix");
        Self {
            port: None,
            socket: PathBuf::from(found["socketPath"].as_str().unwrap()),
            host: "localhost".to_owned(),
            authorization: found["headers"]["Authorization"]
                .as_str()
                .unwrap()
                .to_owned(),
        }
    }

    pub(super) fn connect(&self) -> Box<dyn Stream> {
        let stream: Box<dyn Stream> = match self.port {
            Some(port) => Box::new(TcpStream::connect(("127.0.0.1", port)).unwrap()),
            None => Box::new(UnixStream::connect(&self.socket).unwrap()),
        };
        stream.set_timeout(SOON);
        stream
    }

    /// Sends a request with a chunked body, as Copilot CLI does. Returns status, headers and the
    /// rest of the response.
    fn request(
        &self,
        method: &str,
        more: &str,
        body: &str,
    ) -> (u16, String, BufReader<Box<dyn Stream>>) {
        let mut stream = self.connect();
        let mut head = format!("{method} /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n");
        if !more.contains("Host:") {
            head.push_str(&format!("Host: {}\r\n", self.host));
        }
        if !more.contains("Authorization:") {
            head.push_str(&format!("Authorization: {}\r\n", self.authorization));
        }
        let chunk = match body {
            "" => String::new(),
            body => format!("{:x}\r\n{body}\r\n", body.len()),
        };
        let text = format!("{head}{more}\r\n{chunk}0\r\n\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        (status, headers, reader)
    }

    /// Posts a message and returns the response, if there is one.
    pub(super) fn post(&self, message: Value) -> Option<Value> {
        let (status, headers, mut reader) = self.request("POST", "", &message.to_string());
        let answer = read_body(&mut reader, &headers);
        assert_eq!(status, if answer.is_some() { 200 } else { 202 });
        answer
    }

    /// Opens the stream of events.
    pub(super) fn events(&self) -> Events {
        let (status, headers, reader) = self.request("GET", "Accept: text/event-stream\r\n", "");
        assert_eq!(status, 200);
        assert!(
            headers.contains("content-type: text/event-stream"),
            "{headers}"
        );
        Events::new(reader)
    }
}

/// Reads status and headers of a response. The headers are in lower case.
pub(super) fn read_head(reader: &mut impl BufRead) -> (u16, String) {
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut headers).unwrap() > 0, "{headers}");
    }
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    (status, headers.to_ascii_lowercase())
}

/// Reads the body of a response. `None` if it is empty.
pub(super) fn read_body(reader: &mut impl BufRead, headers: &str) -> Option<Value> {
    let length = headers.split("content-length: ").nth(1).unwrap();
    let mut body = vec![0; length.split("\r\n").next().unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (!body.is_empty()).then(|| serde_json::from_slice(&body).unwrap())
}

/// A stream of events.
pub(super) struct Events {
    reader: BufReader<Box<dyn Stream>>,
    /// The part of a line that was received.
    line: Vec<u8>,
}

impl Events {
    pub(super) fn new(reader: BufReader<Box<dyn Stream>>) -> Self {
        let line = Vec::new();
        Self { reader, line }
    }

    pub(super) fn set_timeout(&self, timeout: Duration) {
        self.reader.get_ref().set_timeout(timeout);
    }

    /// Returns the next update. `None` if none comes in time.
    pub(super) fn receive(&mut self) -> Option<Value> {
        loop {
            match self.reader.read_until(b'\n', &mut self.line) {
                Ok(0) => panic!("the stream ended"),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => panic!("{error}"),
            }
            let line = std::mem::take(&mut self.line);
            if let Some(update) = line.strip_prefix(b"data: ") {
                return Some(serde_json::from_slice(update).unwrap());
            }
        }
    }

    fn next(&mut self) -> Value {
        self.receive().expect("an update")
    }

    /// Receives updates until one satisfies a condition.
    fn until(&mut self, is_expected: impl Fn(&Value) -> bool) -> Value {
        loop {
            let update = self.next();
            if is_expected(&update) {
                return update;
            }
        }
    }
}

fn gemini() -> Value {
    json!({ "geminiIde": true })
}

fn copilot() -> Value {
    json!({ "copilotIde": true })
}

pub(super) fn handshake(address: &Address) {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "clientInfo": { "name": "agent" } },
    });
    let answer = address.post(initialize).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "sightline");
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(address.post(ready), None);
    // Copilot CLI asks this first.
    let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "server/discover" });
    assert_eq!(address.post(unknown).unwrap()["error"]["code"], -32601);
    assert_eq!(
        address.post(json!("nonsense")).unwrap()["error"]["code"],
        -32600
    );
}

#[test]
fn gemini_gets_open_files_and_the_selection() {
    let mut editor = Editor::start(gemini());
    editor.open("a.txt", "one two\n");
    editor.open("b.txt", "b\n");
    editor.open("secret.txt", "DENIED\n");
    editor.select("a.txt", 0, 3);
    let address = Address::gemini(&editor);
    handshake(&address);
    let tools = address.post(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }));
    assert_eq!(tools.unwrap()["result"]["tools"], json!([]));
    let mut events = address.events();
    let files = |update: &Value| update["params"]["workspaceState"]["openFiles"].clone();
    let update = events.until(|update| files(update)[0]["selectedText"] == "one");
    assert_eq!(update["method"], "ide/contextUpdate");
    let mut open = files(&update);
    for file in open.as_array_mut().unwrap() {
        assert!(
            file["timestamp"].as_i64().unwrap() > 1_700_000_000_000,
            "{file}"
        );
        file["timestamp"].take();
    }
    let path = |name: &str| editor.workspace.path(name);
    assert_eq!(
        open,
        json!([
            {
                "path": path("a.txt"), "timestamp": null, "isActive": true,
                "cursor": { "line": 1, "character": 4 }, "selectedText": "one",
            },
            { "path": path("b.txt"), "timestamp": null, "isActive": false },
        ])
    );
    assert!(!update.to_string().contains("secret"), "{update}");
    // A denied file has the focus.
    let (b, secret) = (json!(path("b.txt")), "secret.txt");
    editor.select(secret, 0, 3);
    let update = events.until(|update| files(update)[0]["isActive"] == false);
    assert!(!update.to_string().contains("secret"), "{update}");
    editor.select("b.txt", 0, 0);
    let update = events.until(|update| files(update)[0]["path"] == b);
    assert_eq!(files(&update)[0]["selectedText"], Value::Null);
    // New rules deny what was allowed.
    editor.workspace.write(".clineignore", "*.txt\n");
    assert_eq!(
        files(&events.until(|update| files(update) == json!([]))),
        json!([])
    );
}

#[test]
fn copilot_gets_the_selection_over_a_socket() {
    let mut editor = Editor::start(copilot());
    editor.open("a.txt", "one two\n");
    editor.open("secret.txt", "DENIED\n");
    editor.select("a.txt", 4, 7);
    let address = Address::copilot(&editor);
    handshake(&address);
    let mut events = address.events();
    let text = |text: &'static str| move |update: &Value| update["params"]["text"] == text;
    let update = events.until(text("two"));
    assert_eq!(update["method"], "selection_changed");
    assert_eq!(
        update["params"]["filePath"],
        json!(editor.workspace.path("a.txt"))
    );
    let tool = |name: &str| {
        let call = json!({
            "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": name, "arguments": {} },
        });
        let answer = address.post(call).unwrap();
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(tool("get_selection").contains("two"));
    assert_eq!(tool("get_diagnostics"), "[]");
    editor.select("secret.txt", 0, 3);
    let update = events.until(|update| update["params"]["filePath"] == "");
    assert_eq!(update["params"]["selection"]["isEmpty"], true);
    assert!(!tool("get_selection").contains("secret"));
}

#[test]
fn rules_that_changed_while_no_agent_was_connected_apply_at_once() {
    let mut editor = Editor::start(copilot());
    editor.open("a.txt", "one two\n");
    editor.select("a.txt", 4, 7);
    let address = Address::copilot(&editor);
    address
        .events()
        .until(|update| update["params"]["text"] == "two");
    editor.workspace.write(".clineignore", "*.txt\n");
    let update = address.events().next();
    assert_eq!(update["params"]["filePath"], "");
    editor.workspace.write(".clineignore", "*.txt\n*.md\n");
    let call = json!({
        "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "get_selection" },
    });
    let answer = address.post(call).unwrap();
    assert!(!answer.to_string().contains("a.txt"), "{answer}");
}

#[test]
fn strangers_are_refused() {
    let editor = Editor::start(json!({ "geminiIde": true, "copilotIde": true }));
    let gemini = Address::gemini(&editor);
    let copilot = Address::copilot(&editor);
    let port = gemini.port.unwrap();
    for (address, headers, status) in [
        (&gemini, "Authorization: Bearer wrong\r\n".to_owned(), 401),
        (
            &gemini,
            format!("Authorization: {}x\r\n", gemini.authorization),
            401,
        ),
        (
            &gemini,
            format!("Authorization: {}\r\n", &gemini.authorization[7..]),
            401,
        ),
        (&gemini, format!("Origin: http://127.0.0.1:{port}\r\n"), 403),
        (&gemini, "Origin: null\r\n".to_owned(), 403),
        (&gemini, "Host: evil.example\r\n".to_owned(), 403),
        (&gemini, "Host: 127.0.0.1:1\r\n".to_owned(), 403),
        (
            &gemini,
            format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n"),
            403,
        ),
        (&gemini, format!("Host: localhost:{port}\r\n"), 202),
        (
            &gemini,
            format!("Host: host.docker.internal:{port}\r\n"),
            202,
        ),
        (&copilot, "Authorization: Nonce wrong\r\n".to_owned(), 401),
        (&copilot, "Authorization: Bearer x\r\n".to_owned(), 401),
        (&copilot, "Origin: http://localhost\r\n".to_owned(), 403),
        (&copilot, String::new(), 202),
    ] {
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let (given, ..) = address.request("POST", &headers, &ready.to_string());
        assert_eq!(given, status, "{headers}");
    }
    assert_eq!(gemini.request("PUT", "", "").0, 405);
    assert_eq!(gemini.request("DELETE", "", "").0, 200);
}

#[test]
fn files_are_private_and_removed() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folders = ["gemini/ide", ".qwen/ide", ".copilot/ide"];
    for way in 0..5 {
        let mut editor = Editor::start(json!({ "geminiIde": true, "copilotIde": true }));
        Address::gemini(&editor);
        Address::copilot(&editor);
        for folder in folders {
            assert_eq!(mode(&editor.home.path().join(folder)), 0o700);
            for file in editor.files(folder) {
                assert_eq!(mode(&file), 0o600, "{}", file.display());
            }
        }
        match way {
            4 => editor.set(&json!({ "geminiIde": false, "copilotIde": false })),
            way => editor.end(way),
        }
        for folder in folders {
            editor.wait_for_files(folder, 0);
        }
    }
}

#[test]
fn an_agent_that_reads_nothing_does_not_delay_the_editor() {
    let mut editor = Editor::start(gemini());
    let address = Address::gemini(&editor);
    let _silent = address.events();
    let mut other = address.events();
    editor.open("a.txt", &"x".repeat(15_000));
    for to in 1..2_000 {
        editor.select("a.txt", 0, 13_000 + to);
    }
    editor
        .client
        .request("sightline/environmentDetails", json!({}))
        .unwrap()
        .unwrap();
    other.until(|update| {
        let text = &update["params"]["workspaceState"]["openFiles"][0]["selectedText"];
        text.as_str().is_some_and(|text| text.len() == 14_999)
    });
}

#[test]
fn a_folder_of_another_kind_is_not_used() {
    let mut editor = Editor::start(json!({}));
    let folder = editor.home.path().join("gemini");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    editor.set(&gemini());
    editor
        .client
        .request("sightline/environmentDetails", json!({}))
        .unwrap()
        .unwrap();
    std::thread::sleep(super::NOTHING);
    assert_eq!(editor.files("gemini/ide"), [] as [PathBuf; 0]);
    // Qwen Code uses another folder.
    editor.wait_for_files(".qwen/ide", 1);
}

#[test]
fn discovery_files_follow_the_variables_of_the_agents() {
    for (bridge, variable) in [("geminiIde", "QWEN_HOME"), ("copilotIde", "COPILOT_HOME")] {
        let editor = Editor::start_with_moved(json!({ bridge: true }), variable, "moved to");
        editor.wait_for_files("moved to/ide", if bridge == "copilotIde" { 2 } else { 1 });
        assert!(!editor.home.path().join(".qwen").exists(), "{variable}");
    }
}

#[test]
fn files_of_killed_servers_are_removed_and_others_kept() {
    let bridges = json!({ "geminiIde": true, "copilotIde": true });
    let mut killed = Editor::start(bridges.clone());
    Address::gemini(&killed);
    Address::copilot(&killed);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let dead = 0x3fff_ffff;
    let others = [
        (
            "gemini/ide/gemini-ide-server-1-1.json",
            "ppid",
            dead,
            "VS Code",
        ),
        (
            ".qwen/ide/1.lock",
            "ppid",
            std::process::id(),
            "Sightline (a)",
        ),
        (".copilot/ide/x.lock", "pid", dead, "VS Code"),
    ];
    for (name, field, pid, ide) in others {
        let content = json!({ "ideName": ide, field: pid }).to_string();
        fs::write(killed.home.path().join(name), content).unwrap();
    }
    let next = Editor::start_with_home(&killed, bridges);
    next.wait_for_files("gemini/ide", 2);
    next.wait_for_files(".qwen/ide", 2);
    // A lock file of another program, ours, and our socket.
    next.wait_for_files(".copilot/ide", 3);
    for (name, ..) in others {
        assert!(killed.home.path().join(name).exists(), "{name}");
    }
}

#[test]
fn requests_are_bounded() {
    let editor = Editor::start(gemini());
    let address = Address::gemini(&editor);
    let large = "x".repeat(1024 * 1024 + 1);
    assert_eq!(address.request("POST", "", &large).0, 413);
    let mut stream = address.connect();
    let filler = format!("x: {}\r\n", "y".repeat(1000));
    let mut sent = stream.write_all(b"GET /mcp HTTP/1.1\r\n");
    for _ in 0..1000 {
        sent = sent.and_then(|()| stream.write_all(filler.as_bytes()));
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        sent.is_err() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    // Connections leave room for others once they are closed.
    for _ in 0..3 {
        let streams: Vec<_> = (0..16).map(|_| address.connect()).collect();
        drop(streams);
    }
    let end = std::time::Instant::now() + SOON;
    loop {
        let mut stream = address.connect();
        let text = "GET /mcp HTTP/1.1\r\n\r\n";
        let _ = stream.write_all(text.as_bytes());
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        if line.starts_with("HTTP/1.1 403") {
            break;
        }
        assert!(std::time::Instant::now() < end, "{line}");
    }
}
