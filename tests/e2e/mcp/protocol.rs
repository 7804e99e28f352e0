//! Messages of unusual clients: each request has one answer, and the server goes on.

use std::{fs::File, io::Write, path::Path, process::Stdio};

use serde_json::{Value, json};

use super::{Client, FILES};
use crate::harness::{Workspace, program};

#[test]
fn unusual_clients_are_served() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::start(&workspace, &[]);
    // Claude Code and Copilot ask this first, and go on with `initialize` after an error.
    let answer = client.request("server/discover", &json!({}));
    assert!(answer["error"].is_object(), "{answer}");
    client.send("");
    let result = client.initialize("1999-01-01");
    assert!(result["protocolVersion"].is_string(), "{result}");
    assert!(
        result["instructions"]
            .as_str()
            .unwrap()
            .contains("unsaved text")
    );
    // opencode cancels requests that were answered.
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let answer = client.request("unknown/method", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let (text, is_error) = client.call("read_file", json!({ "pth": 1 }));
    assert!(is_error && text.contains("invalid arguments"), "{text}");
    let text = client.text("read_file", json!({ "path": "notes.txt" }));
    assert!(text.contains("saved text"), "{text}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn messages_before_initialize_do_not_end_the_server() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::start(&workspace, &[]);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{"a":1}}"#);
    client.send(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    client.send(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#);
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    let answer = client.request("unknown/method", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let answer = client.request("tools/list", &json!({}));
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    let answer = client.request("initialize", &json!({ "protocolVersion": 5 }));
    assert!(answer["result"]["protocolVersion"].is_string(), "{answer}");
    client.initialize("2025-11-25");
    assert!(!client.tools().is_empty());
    assert_eq!(client.end(), Some(0));
}

/// Unusual lines, with the id and the code of the answer. 0: no error.
fn unusual_lines() -> Vec<(Vec<u8>, Value, i64)> {
    let call = |id: u32, path: &[u8]| {
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read_file","arguments":{{"path":"#
        );
        [head.as_bytes(), path, b"}}}"].concat()
    };
    let nested = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    let line = |line: &str| line.as_bytes().to_vec();
    vec![
        (call(901, br#""\ud800""#), json!(901), -32602),
        (call(902, b"\"\xff\""), json!(902), -32700),
        (call(903, nested.as_bytes()), json!(903), -32602),
        (line(&nested), Value::Null, -32600),
        (
            line(r#"[{"jsonrpc":"2.0","id":904,"method":"ping"}]"#),
            json!(904),
            0,
        ),
        (line("[]"), Value::Null, -32600),
        (line("{ not JSON"), Value::Null, -32700),
        (b"\xff\xfe".to_vec(), Value::Null, -32700),
        (line("5"), Value::Null, -32600),
        (line("{}"), Value::Null, -32600),
        (line(r#"{"jsonrpc":"2.0","id":905}"#), json!(905), -32600),
        (
            line(r#"{"jsonrpc":"2.0","id":"a","method":5}"#),
            json!("a"),
            -32600,
        ),
        (
            line(r#"{"jsonrpc":"2.0","id":9.5,"method":"ping"}"#),
            json!(9.5),
            0,
        ),
        (
            line(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
            Value::Null,
            0,
        ),
        (
            line(r#"{"jsonrpc":"2.0","id":906,"method":"tools/call"}"#),
            json!(906),
            -32602,
        ),
        (vec![b'a'; 20 << 20], Value::Null, -32600),
    ]
}

#[test]
fn unusual_lines_are_answered_once() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::start(&workspace, &[]);
    for initialized in [false, true] {
        for (line, id, code) in unusual_lines() {
            let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            client.input.write_all(&line).unwrap();
            client.send("");
            let answer = client.receive();
            assert_eq!(answer["jsonrpc"], "2.0", "{shown}: {answer}");
            assert_eq!(answer.get("id"), Some(&id), "{shown}: {answer}");
            let found = answer["error"]["code"].as_i64().unwrap_or_default();
            assert_eq!(found, code, "{shown}: {answer}");
            // The next answer is not a second one to the line.
            assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
        }
        // Notifications and responses are never answered.
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#);
        client.send(r#"{"jsonrpc":"2.0","method":"a","params":"\ud800"}"#);
        client.send(r#"{"jsonrpc":"2.0","id":9.5,"result":{}}"#);
        if !initialized {
            client.initialize("2025-11-25");
        }
        assert!(!client.tools().is_empty());
    }
    assert_eq!(client.end(), Some(0));
}

/// Runs `sightline mcp` with a file as standard input.
fn run_with_input(workspace: &Workspace, input: &Path) -> (Option<i32>, String, String) {
    let output = program()
        .arg("mcp")
        .current_dir(workspace.root())
        .stdin(Stdio::from(File::open(input).unwrap()))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn an_end_of_input_is_no_failure() {
    let workspace = Workspace::new(&[("empty", ""), ("partial", "{ not JSON")]);
    let (code, output, message) = run_with_input(&workspace, &workspace.path("empty"));
    assert_eq!((code, output.as_str(), message.as_str()), (Some(0), "", ""));
    let (code, output, message) = run_with_input(&workspace, &workspace.path("partial"));
    assert_eq!((code, message.as_str()), (Some(0), ""));
    assert!(output.contains("-32700"), "{output}");
}

#[cfg(unix)]
#[test]
fn a_failure_has_an_exit_code_and_a_message() {
    let workspace = Workspace::new(FILES);
    // A directory cannot be read.
    let (code, _, message) = run_with_input(&workspace, &workspace.root());
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("standard input"), "{message}");
}
