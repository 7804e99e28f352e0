//! The input stream: invalid bytes are skipped, each valid frame in between is answered
//! once, and memory stays bounded.

use std::io::Read;

use serde_json::{Value, json};
use sightline_local::frame::{Frame, FrameReader, write_frame};
use sightline_lsp::main_loop::{self, Options};
use sightline_testing::lsp_client::LspClient;

use crate::draw::Draw;

/// Parts of headers, valid and broken.
const PIECES: &[&[u8]] = &[
    b"Content-Length: 2\r\n\r\n{}",
    b"Content-Length: 2\r\n\r\n",
    b"Content-Length: ",
    b"content-length:7\n\n",
    b"Content-Length: -1\r\n\r\n",
    b"Content-Length: 18446744073709551615\r\n\r\n",
    b"Content-Length: 99999999999999999999\r\n\r\n",
    b"Content-Length: 536870912\r\n\r\n",
    b"Content-Length: 536870913\r\n\r\n",
    b"Content-Length: 0\r\n\r\n",
    b"Content-Type: x\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":",
    b"\xff\xfe\x00",
    b"[[[[[[[[",
    b"\"\\ud800\"",
];

const METHODS: &[&str] = &[
    "sightline/checkAccess",
    "sightline/listTasks",
    "textDocument/hover",
    "workspace/executeCommand",
    "no/such",
    "$/setTrace",
    "shutdown",
];

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let data = tempfile::tempdir().unwrap();
    let mut stream = Vec::new();
    let mut next_id = 0;
    if draw.once_in(2) {
        let options = json!({ "storage": { "path": data.path().join("data") } });
        let params =
            json!({ "processId": null, "capabilities": {}, "initializationOptions": options });
        let message =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        write_frame(&mut stream, message.to_string().as_bytes()).unwrap();
    }
    while !draw.is_empty() {
        match draw.below(8) {
            0 => stream.extend_from_slice(draw.bytes(16)),
            1 => {
                // Longer than the stored part of a header.
                let times = draw.below(40);
                stream.extend(std::iter::repeat_n(draw.byte(), times * 1024));
            }
            2 | 3 => {
                next_id += 1;
                let params = [json!({}), json!(null), json!([]), json!(7)][draw.below(4)].clone();
                let message = json!({
                    "jsonrpc": "2.0", "id": next_id, "method": draw.pick(METHODS), "params": params,
                });
                write_frame(&mut stream, message.to_string().as_bytes()).unwrap();
            }
            4 => {
                let body = draw.text(24);
                write_frame(&mut stream, body.as_bytes()).unwrap();
            }
            _ => stream.extend_from_slice(draw.pick(PIECES)),
        }
    }
    let frames = read(&stream[..]);
    let kept: usize = frames.iter().flatten().map(Vec::len).sum();
    assert!(kept <= stream.len(), "more was read than was written");
    let pieces = Pieces {
        rest: &stream,
        size: 1 + usize::from(bytes.first().copied().unwrap_or_default() % 7),
    };
    assert_eq!(read(pieces), frames, "it matters how the stream is cut");
    serve(stream);
}

/// A stream that delivers a few bytes at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.size.min(self.rest.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

fn read(stream: impl Read) -> Vec<Frame> {
    let mut reader = FrameReader::new(stream);
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame);
    }
    frames
}

/// Lets a server read the stream, then one more request.
fn serve(mut stream: Vec<u8>) {
    const LAST: &str = "last";
    stream.extend_from_slice(b"\r\n\r\n");
    let last = json!({ "jsonrpc": "2.0", "id": LAST, "method": "sightline/listTasks" });
    write_frame(&mut stream, last.to_string().as_bytes()).unwrap();
    // Requests in the stream, by its frames: a wrong length swallows what follows.
    let mut asked: Vec<Value> = Vec::new();
    let mut bodies = Vec::new();
    for body in read(&stream[..]).into_iter().flatten() {
        let Ok(message) = serde_json::from_slice::<Value>(&body) else {
            continue;
        };
        let is_request = message["method"].is_string();
        let id = message.get("id").filter(|id| id.is_i64() || id.is_string());
        if let Some(id) = id.filter(|_| is_request) {
            asked.push(id.clone());
        }
        bodies.push(message);
    }
    let ends = bodies.iter().any(|message| message["method"] == "exit");
    let is_read = bodies.last().is_some_and(|message| message["id"] == LAST);

    let (server_input, mut client_output) = std::io::pipe().unwrap();
    let (client_input, server_output) = std::io::pipe().unwrap();
    let server = std::thread::spawn(move || {
        main_loop::serve(server_input, server_output, Options::default())
    });
    let mut client = LspClient::new(client_input, std::io::sink());
    let writer = std::thread::spawn(move || {
        // The server closes the pipe when it ends.
        let _ = std::io::Write::write_all(&mut client_output, &stream);
        client_output
    });
    if !ends && is_read {
        // An id that was used twice is answered twice.
        for id in &asked {
            let answered = client.wait_for(|message| {
                message.get("method").is_none() && message.get("id") == Some(id)
            });
            let answer = answered.unwrap_or_else(|error| panic!("request {id}: {error}"));
            let has_result = answer.get("result").is_some();
            assert!(has_result != answer.get("error").is_some(), "{answer}");
            assert_ne!(answer["error"]["data"]["kind"], "internal", "{answer}");
        }
    }
    drop(writer.join().unwrap());
    server.join().unwrap();
}
