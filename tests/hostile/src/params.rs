//! The params of every method: each request gets one response, and one rejected as
//! `invalidParams` changes nothing.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Map, Value, json};
use sightline_base::{limits::MAX_ERROR_MESSAGE_BYTES, path::AbsPath};
use sightline_lsp::main_loop::{self, Options};
use sightline_protocol::method::{Direction, METHODS, Method};
use sightline_testing::lsp_client::LspClient;
use tempfile::TempDir;

use crate::draw::Draw;

/// Unusual values.
fn odd(draw: &mut Draw<'_>) -> Value {
    match draw.below(22) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(i64::MIN),
        6 => json!(1e308),
        7 => json!(0.5),
        8 => json!(""),
        9 => json!([]),
        10 => json!({}),
        11 => json!("../../etc/passwd"),
        12 => json!("file:///%00%ff"),
        13 => json!("a\u{0}b\n\u{202e}"),
        14 => json!("x".repeat(20_000)),
        15 => json!(HUGE),
        16 => json!(LONE),
        17 => json!(vec![json!("a"); 2_000]),
        18 => (0..100).fold(json!(1), |inner, _| json!([inner])),
        19 => json!("."),
        20 => json!("secret.txt"),
        _ => json!(draw.text(12)),
    }
}

/// Placeholder for a number out of range.
const HUGE: &str = "@huge@";
/// Placeholder for a lone surrogate, as JavaScript produces.
const LONE: &str = "@lone@";

/// Changes something somewhere in a value.
fn mutate(value: &mut Value, draw: &mut Draw<'_>) {
    match value {
        Value::Object(fields) if !fields.is_empty() && !draw.once_in(6) => in_object(fields, draw),
        Value::Array(items) if !items.is_empty() && !draw.once_in(6) => {
            let at = draw.below(items.len());
            match draw.below(6) {
                0 => drop(items.remove(at)),
                1 => {
                    let item = items[at].clone();
                    items.extend(vec![item; draw.below(1000)]);
                }
                2 => items.insert(at, odd(draw)),
                _ => mutate(&mut items[at], draw),
            }
        }
        Value::String(text) if draw.once_in(3) => text.push_str(&draw.text(6)),
        other => *other = odd(draw),
    }
}

fn in_object(fields: &mut Map<String, Value>, draw: &mut Draw<'_>) {
    let names: Vec<String> = fields.keys().cloned().collect();
    let name = names[draw.below(names.len())].clone();
    match draw.below(8) {
        0 => drop(fields.remove(&name)),
        1 => drop(fields.insert(draw.text(5), odd(draw))),
        2 => {
            let other = fields[&names[draw.below(names.len())]].clone();
            fields.insert(name, other);
        }
        _ => mutate(&mut fields[&name], draw),
    }
}

/// A server with a workspace, a task and a checkpoint.
struct Ground {
    folder: TempDir,
    client: LspClient,
    server: Option<std::thread::JoinHandle<i32>>,
    checkpoint: String,
    state: State,
}

/// Everything a client can see, and the workspace's files.
#[derive(Clone, Debug, PartialEq)]
struct State {
    told: Vec<Value>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        fs::create_dir_all(root.join("src")).unwrap();
        for (name, text) in [
            (".clineignore", "secret.txt\n"),
            ("secret.txt", "s"),
            ("src/main.rs", "fn main() {}\n"),
            ("README.md", "# r\n"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let (server_input, client_output) = std::io::pipe().unwrap();
        let (client_input, server_output) = std::io::pipe().unwrap();
        let server = std::thread::spawn(move || {
            main_loop::serve(server_input, server_output, Options::default())
        });
        let uri = AbsPath::new(&sightline_base::path::canonicalize(&root).unwrap())
            .unwrap()
            .to_uri();
        let mut ground = Self {
            client: LspClient::new(client_input, client_output),
            server: Some(server),
            checkpoint: String::new(),
            state: State {
                told: Vec::new(),
                files: BTreeMap::new(),
            },
            folder,
        };
        ground.must(
            "initialize",
            json!({
                "processId": null, "rootUri": uri, "capabilities": {},
                "initializationOptions": { "storage": { "path": ground.folder.path().join("data") } },
            }),
        );
        ground.client.notify("initialized", json!({})).unwrap();
        let messages = json!([
            { "role": "user", "content": "fix it" },
            { "role": "assistant", "content": [{ "type": "text", "text": "done" }] },
        ]);
        ground.must(
            "sightline/appendMessages",
            json!({ "taskId": "t-1", "messages": messages }),
        );
        let made = ground.must("sightline/createCheckpoint", json!({ "taskId": "t-1" }));
        ground.checkpoint = made["id"].as_str().unwrap().to_owned();
        fs::write(
            ground.folder.path().join("ws/src/main.rs"),
            "fn main() { new() }\n",
        )
        .unwrap();
        ground.state = ground.look();
        ground
    }

    fn must(&mut self, method: &str, params: Value) -> Value {
        let answer = self.client.request(method, params).unwrap();
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn look(&mut self) -> State {
        let block = json!({ "consume": false, "now": 1, "timeZone": "UTC", "includeFiles": true });
        let told = [
            ("sightline/listTasks", json!({})),
            ("sightline/loadTask", json!({ "taskId": "t-1" })),
            ("sightline/taskContext", json!({ "taskId": "t-1" })),
            ("sightline/listCheckpoints", json!({})),
            ("sightline/environmentDetails", block),
        ]
        .map(|(method, params)| self.client.request(method, params).unwrap())
        // The error for a deleted task is a response too.
        .map(|answer| answer.unwrap_or_else(|error| error))
        .map(without_revision);
        let mut files = BTreeMap::new();
        collect(&self.folder.path().join("ws"), &mut files);
        State {
            told: told.into(),
            files,
        }
    }

    /// Returns the params of a sample, adapted to this session.
    fn sample(&self, method: &Method) -> Value {
        let name = method.name.rsplit('/').next().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../transcripts/samples")
            .join(format!("{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let sample: Value = serde_json::from_str(&text).unwrap();
        let mut params = sample["params"].clone();
        if let Some(params) = params.as_object_mut() {
            // Conversation restores and tokens refer to other sessions.
            params.remove("token");
            for (key, value) in [("taskId", "t-1"), ("root", ""), ("timeZone", "UTC")] {
                if params.contains_key(key) && value.is_empty() {
                    params.remove(key);
                } else if let Some(field) = params.get_mut(key) {
                    *field = json!(value);
                }
            }
            for key in ["id", "from"] {
                if params.contains_key(key) {
                    params.insert(key.to_owned(), json!(self.checkpoint));
                }
            }
        }
        params
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.client.close();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

fn without_revision(mut told: Value) -> Value {
    if let Some(fields) = told.as_object_mut() {
        fields.remove("revision");
    }
    told
}

fn collect(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files)
        } else {
            drop(files.insert(path.display().to_string(), fs::read(&path).unwrap()))
        }
    }
}

thread_local! {
    static GROUND: std::cell::RefCell<Option<Ground>> = const { std::cell::RefCell::new(None) };
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    // A changed session is not reused.
    let mut ground = GROUND.take().unwrap_or_else(Ground::new);
    let mut draw = Draw::new(bytes);
    let from_client = METHODS
        .iter()
        .filter(|method| method.direction.is_from_client());
    let from_client: Vec<&Method> = from_client.collect();
    let method = draw.pick(&from_client);
    let by_command = draw.once_in(4) && method.direction == Direction::Request;
    let mut params = ground.sample(method);
    for _ in 0..draw.below(5) {
        mutate(&mut params, &mut draw);
    }
    if by_command {
        let command = method.name.replacen('/', ".", 1);
        params = json!({ "command": command, "arguments": [params] });
    }
    let name = if by_command {
        "workspace/executeCommand"
    } else {
        method.name
    };
    // The text contains numbers and strings that `Value` cannot represent.
    let params = params
        .to_string()
        .replace(&format!("\"{HUGE}\""), "1e999")
        .replace(LONE, "\\ud83d");
    let id = match method.direction {
        Direction::Request => r#""id":"odd","#,
        _ => "",
    };
    let body = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{name}","params":{params}}}"#);
    let mut frame = Vec::new();
    sightline_local::frame::write_frame(&mut frame, body.as_bytes()).unwrap();
    ground.client.send_raw(&frame).unwrap();
    let mut is_refused = false;
    if method.direction == Direction::Request {
        let answer = ground
            .client
            .wait_for(|message| message["id"] == "odd")
            .unwrap();
        is_refused = check_answer(&answer, &body);
    }
    let state = ground.look();
    let twice = ground
        .client
        .set_aside()
        .iter()
        .any(|message| message["id"] == "odd");
    assert!(!twice, "answered twice: {body:.500}");
    if is_refused {
        assert!(
            state == ground.state,
            "refused, but something changed: {body:.500}"
        );
    }
    if state == ground.state {
        GROUND.set(Some(ground));
    }
}

/// Checks the response. Returns true if it rejects the params.
fn check_answer(answer: &Value, body: &str) -> bool {
    let error = &answer["error"];
    if error.is_null() {
        assert!(
            answer.get("result").is_some(),
            "neither: {answer:.500} to {body:.500}"
        );
        return false;
    }
    let kind = error["data"]["kind"].as_str().unwrap_or_default();
    let known = [
        "invalidParams",
        "notFound",
        "accessDenied",
        "conflict",
        "busy",
        "cancelled",
        "unsupported",
        "storage",
        "tooLarge",
    ];
    assert!(known.contains(&kind), "{error:.500} to {body:.500}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        !message.is_empty() && message.len() <= MAX_ERROR_MESSAGE_BYTES + 3,
        "{} bytes of message to {body:.500}",
        message.len()
    );
    kind == "invalidParams"
}
