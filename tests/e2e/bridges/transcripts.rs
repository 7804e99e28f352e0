//! What the agents really send, replayed without them. `SIGHTLINE_RECORD=1 npm --prefix
//! tests/agents test` records `tests/transcripts/bridges` again.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::{BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, protocol::Role};

use super::{
    Editor, codex,
    http::{self, Address, Events, Stream},
};

/// Text that is selected during the replay.
const PICKED: &str = "PICKED";

/// What one agent sent.
#[derive(Deserialize)]
struct Transcript {
    /// The bridge that it connects to.
    setting: String,
    steps: Vec<Step>,
}

/// What an agent sent on a connection, and what the server answered: a request of HTTP, or a
/// message on a WebSocket or in a frame.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    connection: usize,
    /// First line and headers of a request.
    #[serde(default)]
    head: Vec<String>,
    body: Option<Value>,
    status: Option<u16>,
    message: Option<Value>,
    answer: Option<Answer>,
}

/// What a response contains.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Result,
    Success,
    Error(i64),
}

impl Answer {
    fn of(message: &Value) -> Self {
        match &message["error"]["code"] {
            Value::Null if message["resultType"] == "success" => Self::Success,
            Value::Null => Self::Result,
            code => Self::Error(code.as_i64().unwrap()),
        }
    }
}

enum Connection {
    Http(BufReader<Box<dyn Stream>>),
    Events(Events),
    WebSocket(WebSocket<Box<dyn Stream>>),
    Frames(UnixStream),
}

/// An agent that sends what was recorded.
struct Agent {
    address: Address,
    /// Values of the placeholders.
    placeholders: [(&'static str, String); 3],
    connections: BTreeMap<usize, Connection>,
    /// Notifications, and responses of Codex.
    received: VecDeque<Value>,
}

impl Agent {
    fn new(editor: &Editor, setting: &str) -> Self {
        let address = match setting {
            "claudeIde" => {
                let (port, lock) = editor.lock();
                Address {
                    port: Some(port),
                    socket: PathBuf::new(),
                    host: String::new(),
                    authorization: lock["authToken"].as_str().unwrap().to_owned(),
                }
            }
            "geminiIde" => Address::gemini(editor),
            "copilotIde" => Address::copilot(editor),
            _ => Address {
                port: None,
                socket: codex::socket(editor),
                host: String::new(),
                authorization: String::new(),
            },
        };
        let token = address.authorization.split(' ').next_back().unwrap();
        let root = editor.workspace.root();
        let placeholders = [
            ("{root}", root.to_str().unwrap().to_owned()),
            ("{token}", token.to_owned()),
            ("{port}", address.port.unwrap_or_default().to_string()),
        ];
        Self {
            address,
            placeholders,
            connections: BTreeMap::new(),
            received: VecDeque::new(),
        }
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (placeholder, value) in &self.placeholders {
            text = text.replace(placeholder, value);
        }
        assert!(
            !text.contains("{home}") && !text.contains("{folder}"),
            "{text}"
        );
        text
    }

    /// Sends what was recorded, and checks the response.
    fn step(&mut self, step: &Step) {
        match &step.message {
            Some(message) => {
                let message = serde_json::from_str(&self.fill(&message.to_string()));
                self.message(step, message.unwrap());
            }
            None => self.request(step),
        }
    }

    fn request(&mut self, step: &Step) {
        let body = step.body.as_ref().map(|body| self.fill(&body.to_string()));
        let mut stream = match self.connections.remove(&step.connection) {
            Some(Connection::Http(stream)) => stream,
            Some(_) => panic!("a request after another protocol"),
            None => BufReader::new(self.address.connect()),
        };
        let mut text = String::new();
        for line in &step.head {
            if line.to_ascii_lowercase().starts_with("content-length:") {
                text += &format!(
                    "Content-Length: {}\r\n",
                    body.as_ref().map_or(0, String::len)
                );
            } else {
                text += &format!("{}\r\n", self.fill(line));
            }
        }
        let is_chunked = text
            .to_ascii_lowercase()
            .contains("\r\ntransfer-encoding: chunked");
        text += "\r\n";
        match body {
            Some(body) if is_chunked => {
                text += &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
            }
            Some(body) => text += &body,
            None => {}
        }
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        let (status, headers) = http::read_head(&mut stream);
        assert_eq!(Some(status), step.status, "{text}\n{headers}");
        let connection = if status == 101 {
            let asks = text
                .to_ascii_lowercase()
                .contains("sec-websocket-protocol: mcp");
            assert_eq!(
                headers.contains("sec-websocket-protocol: mcp"),
                asks,
                "{headers}"
            );
            assert!(
                stream.buffer().is_empty(),
                "nothing before the agent is ready"
            );
            let stream = stream.into_inner();
            Connection::WebSocket(WebSocket::from_raw_socket(stream, Role::Client, None))
        } else if headers.contains("text/event-stream") {
            Connection::Events(Events::new(stream))
        } else {
            let answer = http::read_body(&mut stream, &headers);
            check(step, step.body.as_ref().unwrap_or(&Value::Null), answer);
            Connection::Http(stream)
        };
        self.connections.insert(step.connection, connection);
    }

    fn message(&mut self, step: &Step, message: Value) {
        let connection = self.connections.entry(step.connection);
        let connection = connection
            .or_insert_with(|| Connection::Frames(codex::connect_to(&self.address.socket)));
        let answer = match connection {
            Connection::WebSocket(socket) => {
                socket.send(Message::text(message.to_string())).unwrap();
                let mut answer = None;
                while step.answer.is_some() && answer.is_none() {
                    let received = read(socket);
                    match received.get("id") {
                        Some(_) => answer = Some(received),
                        None => self.received.push_back(received),
                    }
                }
                answer
            }
            Connection::Frames(stream) => {
                let answer = codex::send(stream, &message);
                assert_eq!(answer["requestId"], message["requestId"]);
                self.received.push_back(answer.clone());
                Some(answer)
            }
            _ => panic!("a message after requests"),
        };
        check(step, &message, answer);
    }

    /// Receives until a message satisfies a condition. Codex asks again.
    fn receive_until(&mut self, last: &Step, is_expected: impl Fn(&str) -> bool) {
        loop {
            let received = self.received.pop_front().or_else(|| {
                self.connections.values_mut().find_map(|one| match one {
                    Connection::WebSocket(socket) => Some(read(socket)),
                    Connection::Events(events) => Some(events.receive().expect("an update")),
                    _ => None,
                })
            });
            let Some(received) = received else {
                self.step(last);
                continue;
            };
            let received = received.to_string();
            assert!(!received.contains("DENIED"), "{received}");
            if is_expected(&received) {
                return;
            }
        }
    }
}

/// Reads the next message.
fn read(socket: &mut WebSocket<Box<dyn Stream>>) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// Checks the response to a message.
fn check(step: &Step, message: &Value, answer: Option<Value>) {
    assert_eq!(answer.as_ref().map(Answer::of), step.answer, "{message}");
    let Some(answer) = answer else { return };
    assert_eq!(answer["id"], message["id"], "{message}");
    let result = &answer["result"];
    match message["method"].as_str() {
        Some("initialize") => {
            assert_eq!(
                result["protocolVersion"],
                message["params"]["protocolVersion"]
            );
            assert_eq!(result["serverInfo"]["name"], "sightline");
        }
        Some("tools/list") => assert!(result["tools"].is_array(), "{answer}"),
        Some("tools/call") => assert_ne!(result["isError"], true, "{message} {answer}"),
        _ => {}
    }
}

fn replay(agent: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts/bridges");
    let text = fs::read(folder.join(agent).with_extension("json")).unwrap();
    let transcript: Transcript = serde_json::from_slice(&text).unwrap();
    let mut editor = Editor::start(json!({ &transcript.setting: true }));
    editor.open("notes.txt", &format!("{PICKED}\n"));
    editor.open("secret.txt", "DENIED\n");
    editor.select("notes.txt", 0, 6);
    let mut agent = Agent::new(&editor, &transcript.setting);
    for step in &transcript.steps {
        agent.step(step);
    }
    let last = transcript.steps.last().unwrap();
    agent.receive_until(last, |received| received.contains(PICKED));
    editor.select("secret.txt", 0, 6);
    agent.receive_until(last, |received| !received.contains(PICKED));
    editor.select("notes.txt", 1, 6);
    agent.receive_until(last, |received| received.contains("\"ICKED\""));
}

#[test]
fn claude_code_gets_the_selection() {
    replay("claude");
}

#[test]
fn opencode_gets_the_selection() {
    replay("opencode");
}

#[test]
fn gemini_cli_gets_the_selection() {
    replay("gemini");
}

#[test]
fn qwen_code_gets_the_selection() {
    replay("qwen");
}

#[test]
fn copilot_cli_gets_the_selection() {
    replay("copilot");
}

#[test]
fn codex_gets_the_selection() {
    replay("codex");
}
