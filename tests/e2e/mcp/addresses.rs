//! Servers that run at an address of this machine.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    TIMEOUT,
    hub::{configure, names, open, run, text, wait_for_state},
    servers::{FILES, real},
};
use crate::harness::Workspace;

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Starts a server, and waits until it listens.
fn listening(command: &mut Command, port: u16) -> Child {
    let child = command
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(started.elapsed() < TIMEOUT, "the server does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn both_transports_are_connected() {
    let Some(everything) = real("mcp-server-everything") else {
        return;
    };
    for (transport, path) in [("streamableHttp", "mcp"), ("sse", "sse")] {
        let port = free_port();
        let mut server = listening(Command::new(&everything).arg(transport), port);
        let workspace = Workspace::new(FILES);
        let url = format!("http://127.0.0.1:{port}/{path}");
        configure(
            &workspace,
            &json!({ "all": { "url": url, "headers": { "X-Key": "${TOKEN_SOURCE}" } } }),
        );
        let mut hub = open(&workspace, json!({ "elicitation": { "form": {} } }));
        assert!(
            names(&mut hub).contains(&"all__echo".to_owned()),
            "{transport}"
        );
        let echo = hub.call("all__echo", &json!({ "message": "hi" }));
        assert_eq!(text(&echo), "Echo: hi", "{transport}");
        // Progress, and a question of the server, arrive during a call.
        let long = json!({ "name": "all__trigger-long-running-operation", "arguments": { "duration": 1, "steps": 4 }, "_meta": { "progressToken": "mine" } });
        let id = hub.begin("tools/call", &long);
        hub.response(id);
        assert!(
            hub.seen
                .iter()
                .any(|line| line.contains("notifications/progress")),
            "{transport}"
        );
        let id = hub.begin(
            "tools/call",
            &json!({ "name": "all__trigger-elicitation-request", "arguments": {} }),
        );
        let question = loop {
            let message = hub.next();
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        hub.send(
            &json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } }),
        );
        assert!(
            hub.response(id).to_string().contains("decline"),
            "{transport}"
        );
        for arguments in [&["list"][..], &["log", "all"]] {
            let (shown, _) = run(&workspace, arguments);
            assert!(!shown.contains("of-the-configuration"), "{shown}");
        }
        // Its end is an error, and no crash of the hub.
        server.kill().unwrap();
        server.wait().unwrap();
        let gone = hub.call("all__echo", &json!({ "message": "hi" }));
        assert!(
            text(&gone).starts_with("sightline: the server all"),
            "{gone}"
        );
        assert_eq!(hub.end(), Some(0));
    }
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let target = elsewhere.local_addr().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let head = format!(
                "HTTP/1.1 307 x\r\nLocation: http://{target}/mcp\r\nContent-Length: 0\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes());
        }
    });
    let workspace = Workspace::new(FILES);
    configure(
        &workspace,
        &json!({ "moved": { "url": url }, "named": { "url": "http://localhost:1/mcp" } }),
    );
    let mut hub = open(&workspace, json!({}));
    names(&mut hub);
    let moved = wait_for_state(&workspace, "moved", "failed");
    assert!(
        moved["reason"]
            .as_str()
            .unwrap()
            .contains("redirects are not followed"),
        "{moved}"
    );
    let named = wait_for_state(&workspace, "named", "failed");
    assert!(
        named["reason"].as_str().unwrap().contains("127.0.0.1"),
        "{named}"
    );
    assert!(elsewhere.accept().is_err());
    assert_eq!(hub.end(), Some(0));
}
