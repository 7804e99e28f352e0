//! The main loop: order, cancellation, panics, malformed frames, stray responses.

use std::{
    path::Path,
    process::Command,
    sync::{
        Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use sightline_lsp::main_loop::Options;
use sightline_protocol::method::{Direction, METHODS};

use crate::{
    harness::{Server, Workspace, open_in, program, spawn_with, wait},
    ipc,
    lifecycle::faults::{has_strace, skipped},
};

/// T1. A request sees exactly what was sent before it.
#[test]
fn t1_requests_and_notifications_keep_their_order() {
    let workspace = Workspace::new(&[("a.txt", "")]);
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("a.txt"), "");
    let mut asked = Vec::new();
    for number in 0..2_000_u32 {
        server.send_notification(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": workspace.uri("a.txt"), "version": number + 2 },
                "contentChanges": [{
                    "range": { "start": { "line": number, "character": 0 },
                               "end": { "line": number, "character": 0 } },
                    "text": format!("line {number}\n"),
                }],
            }),
        );
        if number % 10 == 0 {
            let id = server
                .start("sightline/readFile", json!({ "path": "a.txt" }))
                .unwrap();
            asked.push((id, number + 1));
        }
    }
    for (id, lines) in asked {
        let read = server.wait(id).unwrap().unwrap();
        assert_eq!(read["totalLines"], json!(lines));
        assert_eq!(read["source"], "buffer");
    }
    assert_eq!(server.end(), 0);
}

/// Blocks handlers in the fault hook, so that requests take as long as a test needs.
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    passed: AtomicUsize,
}

impl Gate {
    const fn new() -> Self {
        Self {
            open: Mutex::new(false),
            opened: Condvar::new(),
            passed: AtomicUsize::new(0),
        }
    }

    fn pass(&self) {
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.opened.wait(open).unwrap();
        }
        self.passed.fetch_add(1, Ordering::SeqCst);
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// T2. A cancellation is answered while every thread is busy, and the work is not done.
#[test]
fn t2_cancel_is_answered_among_200_slow_requests() {
    static GATE: Gate = Gate::new();
    let workspace = Workspace::new(&[("a.txt", "")]);
    let mut server = Server::bare(Options {
        fault: Some(|method| {
            if method == "sightline/checkAccess" {
                GATE.pass();
            }
        }),
        ..Options::default()
    });
    server.initialize(workspace.initialize());
    let ids: Vec<i64> = (0..200)
        .map(|_| {
            server
                .start("sightline/checkAccess", json!({ "paths": ["a.txt"] }))
                .unwrap()
        })
        .collect();
    let last = *ids.last().unwrap();
    server.send_notification("$/cancelRequest", json!({ "id": last }));
    // Every other request is still blocked, so only the cancellation can answer.
    let error = server.wait(last).unwrap().unwrap_err();
    assert_eq!(error["code"], -32800);
    assert_eq!(error["data"]["kind"], "cancelled");
    GATE.open();
    for id in &ids[..199] {
        assert_eq!(
            server.wait(*id).unwrap().unwrap()["paths"][0]["access"],
            "allowed"
        );
    }
    assert_eq!(
        GATE.passed.load(Ordering::SeqCst),
        199,
        "the cancelled work was done"
    );
    assert_eq!(server.end(), 0);
}

/// T3. Handlers whose requests to the client stay unanswered, and a burst of requests.
#[test]
fn t3_unanswered_client_requests_block_nothing() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["commands"] = json!({ "showResults": true });
    let mut server = Server::initialized(params);
    server.answer_with(|_, _| None);
    let command = json!({ "command": "sightline.environmentDetails", "arguments": [{ "includeFiles": true }] });
    let mut ids: Vec<i64> = (0..50)
        .map(|_| {
            server
                .start("workspace/executeCommand", command.clone())
                .unwrap()
        })
        .collect();
    ids.extend((0..500).map(|_| {
        server
            .start("sightline/checkAccess", json!({ "paths": ["a.txt"] }))
            .unwrap()
    }));
    for id in ids {
        server.wait(id).unwrap().unwrap();
    }
    let shown = |message: &Value| message["method"] == "window/showDocument";
    let asked = server
        .set_aside()
        .iter()
        .filter(|message| shown(message))
        .count();
    assert!(asked > 0, "no document was shown");
    assert_eq!(server.end(), 0);
}

/// T4. Malformed frames and bodies cost one message each.
#[test]
fn t4_bad_frames_are_answered_and_survived() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let body = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let huge = format!("X-Filler: {}\r\n\r\n", "y".repeat(1_000_000));
    let cases: Vec<(Vec<u8>, i64)> = vec![
        (body("{\"jsonrpc\":").into(), -32700),
        (body("").into(), -32700),
        (body("[]").into(), -32600),
        (body("[\"exit\"]").into(), -32600),
        (body("[{\"jsonrpc\":\"2.0\"}]").into(), -32600),
        (body("17").into(), -32600),
        (body("{}").into(), -32600),
        (
            body(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#).into(),
            -32600,
        ),
        (
            body(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#).into(),
            -32600,
        ),
        (
            body(r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#).into(),
            -32600,
        ),
        (
            body(r#"{"jsonrpc":"2.0","id":7,"method":7}"#).into(),
            -32600,
        ),
        (body(&"[".repeat(100_000)).into(), -32700),
        (
            [b"Content-Length: 2\r\n\r\n".as_slice(), &[0xff, 0xfe]].concat(),
            -32700,
        ),
        (b"Content-Length: x\r\n\r\n".to_vec(), -32700),
        (b"Content-Length: -1\r\n\r\n".to_vec(), -32700),
        (b"no header at all\r\n\r\n".to_vec(), -32700),
        (huge.into_bytes(), -32700),
    ];
    for (bytes, code) in cases {
        let name = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        server.send_raw(&bytes).unwrap();
        let answer =
            server.wait_for(|message| message["id"].is_null() && message.get("error").is_some());
        let answer = answer.unwrap_or_else(|error| panic!("{name:?}: {error}"));
        assert_eq!(answer["error"]["code"], code, "{name:?}: {answer}");
        let allowed = server.call("sightline/checkAccess", json!({ "paths": ["a"] }));
        assert_eq!(allowed["paths"][0]["access"], "allowed", "{name:?}");
    }
    let odd = "content-type: application/json; charset=utf-8\r\nX-A: b\r\nX-C: d\r\n";
    let request = r#"{"jsonrpc":"2.0","id":"s","method":"sightline/checkAccess"}"#;
    let bytes = format!("{odd}Content-Length:{}\r\n\r\n{request}", request.len());
    server.send_raw(bytes.as_bytes()).unwrap();
    server
        .wait_for(|message| message["id"] == "s" && message.get("result").is_some())
        .unwrap();
    assert_eq!(server.end(), 0);
}

/// T5. A panic in any handler is an error response; the server keeps running.
#[test]
fn t5_panics_are_answered() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut server = Server::bare(Options {
        fault: Some(|method| {
            // `checkAccess` without paths checks that the server is running.
            if method != "initialize" {
                panic!("injected into {method}");
            }
        }),
        ..Options::default()
    });
    server.initialize(workspace.initialize());
    for row in METHODS {
        match row.direction {
            Direction::Request => {
                let error = server.refused(row.name, json!({ "taskId": "t", "path": "a.txt" }));
                assert_eq!(error["code"], -32603, "{}: {error}", row.name);
                let message = error["message"].as_str().unwrap();
                assert!(message.contains(row.name), "{message}");
                let command = row.name.replace('/', ".");
                let params = json!({ "command": command, "arguments": [] });
                let error = server.refused("workspace/executeCommand", params);
                assert_eq!(error["code"], -32603, "{command}: {error}");
            }
            Direction::ClientNotification => server.send_notification(row.name, json!({})),
            Direction::ServerRequest | Direction::ServerNotification => {}
        }
    }
    let error = server.refused("sightline/noSuchMethod", json!({}));
    assert_eq!(error["code"], -32601);
    assert_eq!(server.end(), 0);
}

/// T5 for a standard method served by tower-lsp.
#[test]
fn t5_a_panic_in_initialize_is_answered() {
    static ONCE: AtomicUsize = AtomicUsize::new(0);
    let workspace = Workspace::new(&[]);
    let mut server = Server::bare(Options {
        fault: Some(|method| {
            if method == "initialize" && ONCE.fetch_add(1, Ordering::SeqCst) == 0 {
                panic!("injected");
            }
        }),
        ..Options::default()
    });
    let error = server.refused("initialize", workspace.initialize());
    assert_eq!(error["code"], -32603, "{error}");
    let error = server.refused("sightline/checkAccess", json!({}));
    assert_eq!(error["data"]["kind"], "notInitialized");
}

/// T6. Unexpected responses: unknown ids, duplicates, odd shapes.
#[test]
fn t6_stray_answers_are_dropped() {
    let workspace = Workspace::new(&[]);
    let mut params = workspace.initialize();
    params["capabilities"] = json!({ "workspace": { "configuration": true } });
    let mut server = Server::bare(Options::default());
    server.answer_with(|_, _| None);
    server.initialize(params);
    let asked = server
        .wait_for(|message| message["method"] == "workspace/configuration")
        .unwrap();
    for _ in 0..2 {
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": [null] });
        server.send(&answer).unwrap();
    }
    for stray in [
        json!({ "jsonrpc": "2.0", "id": 4711, "result": 1 }),
        json!({ "jsonrpc": "2.0", "id": "x", "error": { "code": 1, "message": "no" } }),
        json!({ "jsonrpc": "2.0", "id": null, "result": null }),
        json!({ "jsonrpc": "2.0", "id": asked["id"], "error": 5 }),
    ] {
        server.send(&stray).unwrap();
    }
    server.call("sightline/checkAccess", json!({}));
    assert_eq!(server.end(), 0);
}

/// Two requests with one id: the first is answered normally.
#[test]
fn an_id_in_flight_is_rejected() {
    static GATE: Gate = Gate::new();
    let workspace = Workspace::new(&[]);
    let mut server = Server::bare(Options {
        fault: Some(|method| {
            if method == "sightline/listFiles" {
                GATE.pass();
            }
        }),
        ..Options::default()
    });
    server.initialize(workspace.initialize());
    let request = json!({ "jsonrpc": "2.0", "id": "same", "method": "sightline/listFiles" });
    server.send(&request).unwrap();
    server.send(&request).unwrap();
    let refused = server.wait_for(|message| message["id"] == "same").unwrap();
    assert_eq!(
        refused["error"]["data"]["kind"], "invalidParams",
        "{refused}"
    );
    GATE.open();
    let answered = server.wait_for(|message| message["id"] == "same").unwrap();
    assert!(answered.get("result").is_some(), "{answered}");
    assert_eq!(server.end(), 0);
}

/// T2 for running work: it notices the cancellation and stops.
#[test]
fn t2_a_cancel_reaches_running_work() {
    let workspace = Workspace::new(&[]);
    for folder in 0..200 {
        for file in 0..50 {
            workspace.write(&format!("d{folder}/f{file}"), "");
        }
    }
    let mut server = Server::start(&workspace);
    let paths: Vec<String> = (0..900_000)
        .map(|n| format!("d{}/f{}", n % 200, n % 50))
        .collect();
    let id = server
        .start("sightline/checkAccess", json!({ "paths": paths }))
        .unwrap();
    server.send_notification("$/cancelRequest", json!({ "id": id }));
    let error = server.wait(id).unwrap().unwrap_err();
    assert_eq!(error["data"]["kind"], "cancelled");
    // `end` waits briefly for running work, the harness for all of it.
    assert_eq!(server.end(), 0);
}

/// A cancelled request delivers nothing, so its output comes again.
#[test]
fn cancelled_requests_consume_nothing() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    for round in 0..40 {
        let terminal = json!({ "id": "1", "command": "make", "isBusy": true,
            "newOutput": format!("round {round}\n") });
        server.send_notification(
            "sightline/didChangeTerminals",
            json!({ "terminals": [terminal] }),
        );
        let id = server
            .start("sightline/environmentDetails", json!({}))
            .unwrap();
        if round % 3 == 0 {
            std::thread::yield_now();
        }
        server.send_notification("$/cancelRequest", json!({ "id": id }));
        let shown = match server.wait(id).unwrap() {
            Ok(result) => result["text"].as_str().unwrap().to_owned(),
            Err(_) => server.block(json!({})),
        };
        assert!(
            shown.contains(&format!("round {round}")),
            "round {round}: {shown}"
        );
    }
    assert_eq!(server.end(), 0);
}

/// Large params stay in order with small ones of the same task.
#[test]
fn large_params_keep_the_order_of_a_task() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut server = Server::start(&workspace);
    let filler = "x".repeat(400_000);
    for round in 0..10 {
        let task = format!("t{round}");
        let large =
            json!({ "taskId": task, "path": "a.txt", "operation": "read_tool", "filler": filler });
        server.start("sightline/trackFile", large).unwrap();
        let context = server.call("sightline/taskContext", json!({ "taskId": task }));
        assert_eq!(
            context["files"].as_array().unwrap().len(),
            1,
            "round {round}"
        );
    }
    assert_eq!(server.end(), 0);
}

#[test]
fn full_listings_report_progress_when_asked() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut server = Server::start(&workspace);
    server.call("sightline/listFiles", json!({ "workDoneToken": "list" }));
    let kinds: Vec<Value> = (0..2)
        .map(|_| {
            let progress = server.notified("$/progress").unwrap();
            assert_eq!(progress["token"], "list");
            progress["value"]["kind"].clone()
        })
        .collect();
    assert_eq!(kinds, ["begin", "end"]);
    assert_eq!(server.end(), 0);
}

/// Some clients let users write only the command, and put the token next to its arguments.
#[test]
fn progress_of_a_command_uses_the_token_beside_its_arguments() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut server = Server::start(&workspace);
    let with_own = json!([{ "workDoneToken": 8 }]);
    for (arguments, token) in [
        (json!([{}]), json!("beside")),
        (json!([]), json!("beside")),
        (json!([{ "workDoneToken": null }]), json!("beside")),
        (with_own, json!(8)),
    ] {
        for command in ["sightline.listFiles", "sightline.createCheckpoint"] {
            let params =
                json!({ "command": command, "arguments": arguments, "workDoneToken": "beside" });
            server.call("workspace/executeCommand", params);
            for kind in ["begin", "end"] {
                let mut message = server.notified("$/progress").unwrap();
                while message["value"]["kind"] == "report" {
                    message = server.notified("$/progress").unwrap();
                }
                assert_eq!(
                    (&message["token"], &message["value"]["kind"]),
                    (&token, &json!(kind))
                );
            }
        }
    }
    // An invalid token is ignored.
    let odd = json!({ "command": "sightline.listFiles", "workDoneToken": {} });
    server.call("workspace/executeCommand", odd);
    assert_eq!(server.end(), 0);
}

#[test]
fn a_request_is_cancelled_by_the_token_of_its_progress() {
    static GATE: Gate = Gate::new();
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut server = Server::bare(Options {
        fault: Some(|method| {
            if method == "sightline/listFiles" {
                GATE.pass();
            }
        }),
        ..Options::default()
    });
    server.initialize(workspace.initialize());
    let list = |server: &mut Server, token: Value| {
        let params = json!({ "workDoneToken": token });
        server.start("sightline/listFiles", params).unwrap()
    };
    let own = list(&mut server, json!("7"));
    let number = list(&mut server, json!(7));
    let other = list(&mut server, json!("other"));
    let params = json!({ "command": "sightline.listFiles", "workDoneToken": "beside" });
    let command = server.start("workspace/executeCommand", params).unwrap();
    for odd in [
        json!(null),
        json!({}),
        json!({ "token": [] }),
        json!({ "token": "no" }),
    ] {
        server.send_notification("window/workDoneProgress/cancel", odd);
    }
    for (id, token) in [(own, json!("7")), (command, json!("beside"))] {
        let cancel = json!({ "token": token });
        server.send_notification("window/workDoneProgress/cancel", cancel.clone());
        server.send_notification("window/workDoneProgress/cancel", cancel);
        // It is still blocked, so only the cancellation can answer.
        let error = server.wait(id).unwrap().unwrap_err();
        assert_eq!(
            (&error["code"], &error["data"]["kind"]),
            (&json!(-32800), &json!("cancelled"))
        );
    }
    GATE.open();
    for id in [number, other] {
        server.wait(id).unwrap().unwrap();
    }
    assert_eq!(
        server.call("sightline/checkAccess", json!({ "paths": [] }))["paths"],
        json!([])
    );
    let is_answer = |id: i64| server.set_aside().iter().any(|message| message["id"] == id);
    assert!(!is_answer(own) && !is_answer(command), "answered twice");
    assert_eq!(server.end(), 0);
}

/// The files of rules and settings are read by other threads, also when they have changed.
#[cfg(target_os = "linux")]
#[test]
fn the_main_loop_opens_no_file() {
    const FILES: [&str; 3] = [".clineignore", "sub/.clineignore", ".sightline.toml"];
    if !has_strace() {
        return skipped("strace is not installed, or may not trace");
    }
    let workspace = Workspace::new(&[("sub/a.txt", ""), ("b.txt", "")]);
    let log = workspace.data().with_file_name("strace.log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=open,openat,openat2", "-o"]);
    strace.arg(&log);
    strace.arg(program().get_program());
    let (mut child, mut editor) = spawn_with(&mut strace);
    open_in(&mut editor, &workspace);
    // `initialize` reads the files, because what follows depends on them.
    let opened_before = opened(&log, &FILES);
    for round in 0..3 {
        for file in &FILES[..2] {
            workspace.write(file, &format!("denied{round}\n"));
        }
        workspace.write(
            FILES[2],
            &format!("checkpoints.maxFiles = {}\n", 10 - round),
        );
        let paths = json!({ "paths": [workspace.path("sub/a.txt"), workspace.path("b.txt")] });
        for _ in 0..2 {
            let checked = editor.request("sightline/checkAccess", paths.clone());
            checked.unwrap().unwrap();
        }
        let (code, text, complaint) = ipc::run(&workspace, &["access", "b.txt"]);
        assert_eq!((code, complaint.as_str()), (0, ""), "{text}");
        let saved = json!({ "textDocument": { "uri": workspace.uri(FILES[2]) } });
        editor.notify("textDocument/didSave", saved).unwrap();
        editor
            .request("sightline/checkAccess", paths)
            .unwrap()
            .unwrap();
    }
    editor.request("shutdown", Value::Null).unwrap().unwrap();
    editor.notify("exit", Value::Null).unwrap();
    wait(&mut child, "exit");
    let all = opened(&log, &FILES);
    assert!(all.1 > 0, "no thread reads the files");
    assert_eq!(all.0, opened_before.0, "opened by the main loop");
}

/// Returns how often the first thread opened one of the files, and how often the others did.
#[cfg(target_os = "linux")]
fn opened(log: &Path, files: &[&str]) -> (usize, usize) {
    let log = std::fs::read_to_string(log).unwrap();
    let first = log.split_whitespace().next().unwrap_or_default();
    let (by_first, by_others): (Vec<&str>, Vec<&str>) = log
        .lines()
        .filter(|line| {
            let mut names = files.iter().filter_map(|file| file.rsplit('/').next());
            names.any(|name| line.contains(name))
        })
        .partition(|line| line.split_whitespace().next() == Some(first));
    (by_first.len(), by_others.len())
}
