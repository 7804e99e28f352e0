//! Servers that answer with something else than a valid message: each call has one answer, before its timeout.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::{Value, json};

use super::{
    hub::{configure, open, run, text},
    servers::{FILES, Session, wrap},
};
use crate::harness::Workspace;

/// Answers calls with what their tool is called.
const SCRIPT: &str = r#"
import json, sys
def out(text): sys.stdout.buffer.write(text.encode("latin-1") + b"\n"); sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request["method"] == "tools/list":
        names = ["cut", "cut_id_last", "latin", "twice", "no_result", "unread", "as_text", "logs", "pretty", "whole"]
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    id = request["id"]
    whole = {"jsonrpc": "2.0", "id": id, "result": result}
    if request["method"] == "tools/call":
        whole["result"] = {"content": [{"type": "text", "text": "done"}]}
        name = request["params"]["name"]
        if name == "cut": out('{"jsonrpc":"2.0","id":%s,"result":{"cont' % id); continue
        if name == "cut_id_last": out('{"result":{"content":[{"type":"text","te'); continue
        if name == "latin": out('{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"\xe9"}]}}' % id); continue
        if name == "twice": out('{"jsonrpc":"2.0","id":%s,"result":{"content":[]},"result":{}}' % id); continue
        if name == "no_result": out('{"jsonrpc":"2.0","id":%s}' % id); continue
        if name == "unread": out('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'); continue
        if name == "as_text": whole["id"] = str(id)
        if name == "pretty": out(json.dumps(whole, indent=2)); continue
        if name == "logs":
            for line in ["started", "{'a': 1}", '{"level":30,"msg":"started"}', '{"jsonrpc":"2.0","method":"x", y']: out(line)
    out(json.dumps(whole))
"#;

#[test]
fn a_line_that_is_no_message_answers_its_call() {
    let workspace = Workspace::new(FILES);
    let command = ["python3", "-c", SCRIPT];
    configure(
        &workspace,
        &json!({ "s": { "command": command[0], "args": command[1..] } }),
    );
    let hub = open(&workspace, json!({}));
    let mut wrapped = Session::start(wrap(&workspace).args(command));
    wrapped.initialize();
    for (mut session, prefix) in [(hub, "s__"), (wrapped, "")] {
        let mut call = |name: &str| {
            let params = json!({ "name": format!("{prefix}{name}"), "arguments": {} });
            session.request("tools/call", &params)
        };
        for name in [
            "cut",
            "cut_id_last",
            "latin",
            "twice",
            "no_result",
            "pretty",
        ] {
            let answer = call(name)["result"].clone();
            assert_eq!(answer["isError"], true, "{name}: {answer}");
            let why = "sightline: the answer is left out, because it is not a message: ";
            assert!(text(&answer).starts_with(why), "{name}: {answer}");
            let names_log = text(&answer).contains("`sightline mcp log s`");
            assert_eq!(names_log, !prefix.is_empty(), "{answer}");
        }
        let unread = call("unread");
        assert_eq!(unread["error"]["message"], "Parse error", "{unread}");
        for name in ["logs", "as_text", "whole"] {
            assert_eq!(text(&call(name)["result"]), "done", "{name}");
        }
        answered_once(&session);
        assert_eq!(session.end(), Some(0));
    }
}

/// Fails if a request has two responses.
fn answered_once(session: &Session) {
    let messages = session
        .seen
        .iter()
        .map(|line| serde_json::from_str(line).unwrap());
    let mut ids: Vec<u64> = messages
        .filter_map(|message: Value| message["id"].as_u64())
        .collect();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "{:?}", session.seen);
}

/// Answers a request at an address.
fn respond(mut stream: TcpStream) {
    let mut input = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    while input.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let whole = |result: Value| {
        json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
            .to_string()
            .into_bytes()
    };
    let done = whole(json!({ "content": [{ "type": "text", "text": "done" }] }));
    let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
    let (mut status, mut kind, mut more) = (200, "application/json", 0);
    let body = match request["method"].as_str() {
        Some("initialize") => whole(json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "x", "version": "1" },
        })),
        Some("tools/list") => whole(json!({ "tools": BODIES.map(|(name, _)| tool(name)) })),
        Some("tools/call") => match request["params"]["name"].as_str().unwrap() {
            "html" => b"<html>".to_vec(),
            "empty" => Vec::new(),
            "latin" => b"{\"jsonrpc\":\"\xe9\"}".to_vec(),
            "other" => json!({ "jsonrpc": "2.0", "method": "x" })
                .to_string()
                .into_bytes(),
            "short" => {
                more = 9;
                done
            }
            "stream" => {
                kind = "text/event-stream";
                b"data: {\"jsonrpc\":\"2.0\",\n\n".to_vec()
            }
            "refused" => {
                status = 401;
                b"no".to_vec()
            }
            _ => done,
        },
        _ => {
            status = 405;
            Vec::new()
        }
    };
    let length = body.len() + more;
    let head =
        format!("HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
}

/// Tools, and what the error of a call says.
const BODIES: [(&str, &str); 8] = [
    ("html", "HTTP status 200 without a valid answer"),
    ("empty", "HTTP status 200 without a valid answer"),
    ("latin", "cannot be read"),
    ("other", "HTTP status 200 without a valid answer"),
    ("short", "cannot be read"),
    ("stream", "without an answer"),
    (
        "refused",
        "HTTP status 401 without a valid answer: the user can check its `headers`",
    ),
    ("whole", ""),
];

#[test]
fn a_response_without_an_answer_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            respond(stream.unwrap());
        }
    });
    let workspace = Workspace::new(FILES);
    configure(&workspace, &json!({ "s": { "url": url } }));
    let mut hub = open(&workspace, json!({}));
    for (name, why) in BODIES {
        let params = json!({ "name": format!("s__{name}"), "arguments": {} });
        let answer = hub.request("tools/call", &params);
        if why.is_empty() {
            assert_eq!(text(&answer["result"]), "done");
        } else {
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(why), "{name}: {answer}");
        }
    }
    answered_once(&hub);
    assert_eq!(hub.end(), Some(0));
    let (log, _) = run(&workspace, &["log", "s"]);
    assert!(log.contains("HTTP status 200: <html>"), "{log}");
}
