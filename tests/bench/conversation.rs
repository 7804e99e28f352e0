//! What conversations cost, against the same work in node, in one run:
//!
//! ```text
//! (cd tests/node && npm ci)
//! cargo bench -p sightline --bench conversation [-- ROUNDS]
//! ```
//!
//! Rounds are interleaved, figures are medians in milliseconds. Ours are round
//! trips over stdio with the built server, as a client sees them; node's are
//! timed inside its process, on text it has in memory already.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on says so and ends"
)]

mod report;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use report::{Numbers, Series, row, text};
use serde_json::{Value, json};
use sightline::frame::{FrameReader, write_frame};

/// Messages of the conversation, and about how many bytes of JSON they make.
const MESSAGES: usize = 2000;
const BYTES: usize = 23_000_000;

/// A conversation with tool calls, and results that are file reads, changes,
/// mentions and commands; files come again, so that there is something to save.
fn conversation() -> Vec<Value> {
    let mut numbers = Numbers(0x5eed);
    let each = BYTES / MESSAGES;
    let mut messages = Vec::with_capacity(MESSAGES);
    for index in 0..MESSAGES {
        let size = each / 2 + numbers.below(each);
        let path = format!("src/module_{}/file.rs", numbers.below(60));
        let content = if index == 0 {
            json!([{ "type": "text", "text": format!("<task>\n{}\n</task>", text(&mut numbers, 400)) }])
        } else if index % 2 == 1 {
            json!([
                { "type": "text", "text": text(&mut numbers, size / 2) },
                { "type": "tool_use", "id": format!("call_{index}"), "name": "read_file",
                  "input": { "path": path, "note": text(&mut numbers, size / 2) } },
            ])
        } else {
            let body = text(&mut numbers, size);
            let result = match numbers.below(20) {
                0..9 => format!("[read_file for '{path}'] Result:\n{body}"),
                9..14 => format!(
                    "[replace_in_file for '{path}'] Result:\n<final_file_content path=\"{path}\">\n{body}\n</final_file_content>\n"
                ),
                14..16 => format!("see <file_content path=\"{path}\">{body}</file_content>"),
                _ => format!("[execute_command for 'make'] Result:\n{body}"),
            };
            json!([{ "type": "tool_result", "tool_use_id": format!("call_{}", index - 1),
                     "content": [{ "type": "text", "text": result }] }])
        };
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        messages.push(json!({ "role": role, "content": content }));
    }
    messages
}

/// The built server, spoken to in prepared bytes.
struct Server {
    child: Child,
    input: ChildStdin,
    output: FrameReader<ChildStdout>,
    id: u64,
}

impl Server {
    fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sightline"))
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = FrameReader::new(child.stdout.take().unwrap());
        let mut server = Self {
            child,
            input,
            output,
            id: 0,
        };
        let options = json!({ "storage": { "path": data } });
        let params = json!({ "capabilities": {}, "initializationOptions": options });
        server.ask("initialize", &params.to_string());
        server
    }

    /// The answer to a request, and the milliseconds until its last byte.
    fn ask(&mut self, method: &str, params: &str) -> (Vec<u8>, f64) {
        self.id += 1;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
            self.id
        );
        let start = Instant::now();
        write_frame(&mut self.input, body.as_bytes()).unwrap();
        self.input.flush().unwrap();
        let answer = self.output.next_frame().unwrap().unwrap().unwrap();
        let elapsed = start.elapsed().as_secs_f64() * 1000.0;
        let head = String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
        assert!(!head.contains(r#""error":{"code""#), "{method}: {head}");
        (answer, elapsed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Node, doing the same.
struct Node {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Node {
    fn start() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/node");
        assert!(
            folder.join("node_modules").exists(),
            "run `npm ci` in tests/node first"
        );
        let mut child = Command::new("node")
            .arg("bench/conversation.mjs")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    fn ask(&mut self, command: &Value) -> Value {
        writeln!(self.input, "{command}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ms(&mut self, command: &Value) -> f64 {
        self.ask(command)["ms"].as_f64().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let rounds: usize = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(7);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let conversation = conversation();
    let messages: Vec<String> = conversation.iter().map(Value::to_string).collect();
    let whole = format!("[{}]", messages.join(","));
    let whole_file = file("conversation.json", &whole);
    let code = text(&mut Numbers(7), 1_000_000);
    let code_file = file("code.txt", &code);

    let mut node = Node::start();
    let versions = node.ask(&json!({ "op": "versions" }));
    let mut server = Server::start(&folder.path().join("data"));
    println!(
        "{MESSAGES} messages, {} bytes; {rounds} rounds; sightline {}; {versions}",
        whole.len(),
        env!("CARGO_PKG_VERSION"),
    );

    // The stored twin of the conversation, loaded once.
    for chunk in messages.chunks(200) {
        let params = format!(r#"{{"taskId":"bench","messages":[{}]}}"#, chunk.join(","));
        server.ask("sightline/appendMessages", &params);
    }
    let full = r#""previousRequest":{"ts":1,"tokensIn":190000}"#;
    let stored = |more: &str| {
        format!(r#"{{"taskId":"bench","model":"claude-sonnet-4","reply":"edits"{more}}}"#)
    };
    server.ask("sightline/truncateHistory", &stored(""));

    let mut parse_and_write = Series::default();
    let mut fits = Series::default();
    let mut deduplicated = Series::default();
    let mut on_stored = Series::default();
    let mut tokens_cold = Series::default();
    let mut tokens_again = Series::default();
    let mut code_ours = Series::default();
    let mut code_gpt = Series::default();
    let mut code_js = Series::default();
    for round in 0..rounds {
        parse_and_write
            .0
            .push(node.ms(&json!({ "op": "json", "file": whole_file })));
        let params = format!(r#"{{"messages":{whole},"model":"claude-sonnet-4"}}"#);
        fits.0
            .push(server.ask("sightline/truncateHistory", &params).1);
        let params = format!(r#"{{"messages":{whole},"model":"claude-sonnet-4",{full}}}"#);
        deduplicated
            .0
            .push(server.ask("sightline/truncateHistory", &params).1);

        let role = ["user", "assistant"][round % 2];
        let one = json!({ "role": role, "content": format!("turn {round}") });
        let params = format!(r#"{{"taskId":"bench","messages":[{one}]}}"#);
        server.ask("sightline/appendMessages", &params);
        on_stored
            .0
            .push(server.ask("sightline/truncateHistory", &stored("")).1);

        // Other text each round, so that nothing of it was counted before.
        let fresh = format!("{round} {code}");
        let params = json!({ "texts": [fresh], "model": "gpt-4o" }).to_string();
        code_ours
            .0
            .push(server.ask("sightline/countTokens", &params).1);
        let count = |with: &str| json!({ "op": "tokens", "file": code_file, "with": with });
        code_gpt.0.push(node.ms(&count("gpt-tokenizer")));
        code_js.0.push(node.ms(&count("js-tiktoken")));

        // The stored conversation, counted by a server that never did before.
        let mut other = Server::start(&folder.path().join("data"));
        let count = r#"{"taskId":"bench","model":"gpt-4o"}"#;
        tokens_cold
            .0
            .push(other.ask("sightline/countTokens", count).1);
        let one = json!({ "role": "user", "content": format!("more {round}") });
        let params = format!(r#"{{"taskId":"bench","messages":[{one}]}}"#);
        other.ask("sightline/appendMessages", &params);
        tokens_again
            .0
            .push(other.ask("sightline/countTokens", count).1);
    }
    let json = "node JSON parse + write";
    row(
        "truncate, stateless, fits",
        &fits,
        json,
        &parse_and_write,
        Some((0.5, 0.35)),
    );
    row(
        "truncate, stateless, deduplicated",
        &deduplicated,
        json,
        &parse_and_write,
        Some((0.5, 0.35)),
    );
    row(
        "truncate, stored, one message more",
        &on_stored,
        json,
        &parse_and_write,
        Some((0.05, 0.05)),
    );
    row(
        "recount, stored, one message more",
        &tokens_again,
        "cold count",
        &tokens_cold,
        Some((0.01, 0.005)),
    );
    row(
        "count 1 MB of code",
        &code_ours,
        "gpt-tokenizer",
        &code_gpt,
        None,
    );
    row(
        "count 1 MB of code",
        &code_ours,
        "js-tiktoken",
        &code_js,
        None,
    );
}
