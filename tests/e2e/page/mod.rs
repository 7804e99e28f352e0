//! The page of `sightline ui`, with the built program and real HTTP requests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{Workspace, program};

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
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
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
    let unknown = ui.rpc("sightline/readFile", json!({ "path": "a.txt" }));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

#[test]
fn what_the_page_does_not_send_is_refused() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let ui = Ui::start(&workspace, &[]);
    let body = r#"{"method":"page/state"}"#;
    let with = |name: &'static str, value: &str| {
        let mut headers = ui.headers();
        headers.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            headers.push((name, value.to_owned()));
        }
        headers
    };
    let host = format!("127.0.0.1:{}", ui.port);
    let own = format!("http://{host}");
    for (name, value, status) in [
        ("Host", host.as_str(), 200),
        ("Host", "evil.example", 403),
        ("Host", "localhost", 403),
        ("Host", &format!("localhost:{}", ui.port), 403),
        ("Host", &format!("127.0.0.1.evil.example:{}", ui.port), 403),
        ("Host", "", 403),
        ("Origin", &own, 200),
        ("Origin", "null", 403),
        ("Origin", "https://evil.example", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "none", 403),
        ("Content-Type", "application/json; charset=utf-8", 200),
        ("Content-Type", "text/plain", 403),
        ("Content-Type", "application/x-www-form-urlencoded", 403),
        ("Content-Type", "", 403),
        ("Authorization", "", 401),
        ("Authorization", "Bearer", 401),
        ("Authorization", "Bearer wrong", 401),
        ("Authorization", &ui.token, 401),
        ("Authorization", &format!("Basic {}", ui.token), 401),
        ("Authorization", &format!("Bearer {}x", ui.token), 401),
    ] {
        let answer = ui.request("POST /rpc", &with(name, value), body);
        assert_eq!(answer.status, status, "{name}: {value}\n{}", answer.body);
        assert_eq!(
            answer.body.contains("shop"),
            status == 200,
            "{name}: {value}"
        );
    }
    let twice = [ui.headers(), vec![("Origin", own.clone()), ("Origin", own)]].concat();
    assert_eq!(ui.request("POST /rpc", &twice, body).status, 403);
    for (line, status) in [
        ("GET /rpc", 403),
        ("PUT /rpc", 403),
        ("OPTIONS /rpc", 403),
        ("POST /events", 403),
        ("POST /", 403),
        ("HEAD /", 403),
        ("GET /nowhere", 404),
        ("GET /../Cargo.toml", 404),
        ("POST http://evil.example/rpc", 403),
    ] {
        let answer = ui.request(line, &ui.headers(), body);
        assert_eq!(answer.status, status, "{line}");
        assert!(!answer.head.contains("access-control-"), "{line}");
        assert!(!answer.body.contains("shop"), "{line}");
    }
}
