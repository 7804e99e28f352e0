//! T7: start and end of a session, with the built program.

#[cfg(target_os = "linux")]
mod backpressure;
pub(crate) mod faults;
mod limits;
#[cfg(target_os = "linux")]
mod low_memory;
mod main_loop;
mod settings;
mod soak;
#[cfg(unix)]
mod versions;

use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[cfg(unix)]
use crate::harness::is_alive;
use crate::harness::{Server, Workspace, program, spawn, wait};

#[test]
fn t7_exit_with_input_still_open() {
    let workspace = Workspace::new(&[]);
    let (mut child, mut client) = spawn();
    client
        .request("initialize", workspace.initialize())
        .unwrap()
        .unwrap();
    assert_eq!(
        client.request("shutdown", Value::Null).unwrap(),
        Ok(Value::Null)
    );
    client.notify("exit", Value::Null).unwrap();
    assert_eq!(wait(&mut child, "exit"), 0);
    drop(client);
}

#[test]
fn t7_exit_without_shutdown_is_code_1() {
    let (mut child, mut client) = spawn();
    client.notify("exit", json!({})).unwrap();
    assert_eq!(wait(&mut child, "exit alone"), 1);
}

#[test]
fn t7_end_of_input_while_a_request_runs() {
    let workspace = Workspace::new(&[]);
    let (mut child, mut client) = spawn();
    client
        .request("initialize", workspace.initialize())
        .unwrap()
        .unwrap();
    client
        .start(
            "sightline/environmentDetails",
            json!({ "includeFiles": true }),
        )
        .unwrap();
    client.close();
    assert_eq!(wait(&mut child, "end of input"), 1);
}

#[test]
fn t7_shutdown_and_exit_back_to_back() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let (mut child, mut client) = spawn();
    client
        .request("initialize", workspace.initialize())
        .unwrap()
        .unwrap();
    let tracked = client.start(
        "sightline/trackFile",
        json!({ "taskId": "t", "path": "a.txt", "operation": "read_tool" }),
    );
    let shutdown = client.start("shutdown", Value::Null).unwrap();
    client.notify("exit", Value::Null).unwrap();
    assert_eq!(wait(&mut child, "back to back"), 0);
    client.wait(shutdown).unwrap().unwrap();
    client.wait(tracked.unwrap()).unwrap().unwrap();
    assert!(workspace.data().join("tasks/t/task_metadata.json").exists());
}

#[test]
fn requests_after_shutdown_are_refused() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    server.call("shutdown", Value::Null);
    let error = server.refused("sightline/checkAccess", json!({}));
    assert_eq!(error["code"], -32600, "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("shut down"),
        "{error}"
    );
    server.send_notification("exit", Value::Null);
    assert_eq!(server.join(), 0);
}

#[test]
fn initialize_twice_is_refused() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::start(&workspace);
    let error = server.refused("initialize", workspace.initialize());
    assert_eq!(error["code"], -32600);
    assert_eq!(server.end(), 0);
}

#[test]
fn the_handshake_has_the_agreed_capabilities() {
    let workspace = Workspace::new(&[]);
    let mut server = Server::bare(sightline_lsp::main_loop::Options::default());
    let error = server.refused("sightline/checkAccess", json!({}));
    assert_eq!(error["code"], -32002);
    let mut params = workspace.initialize();
    params["capabilities"] = json!({ "general": { "positionEncodings": ["utf-16", "utf-8"] } });
    let result = server.initialize(params);
    let capabilities = &result["capabilities"];
    assert_eq!(result["serverInfo"]["name"], "sightline");
    assert_eq!(capabilities["positionEncoding"], "utf-8");
    assert_eq!(capabilities["textDocumentSync"]["change"], 2);
    assert_eq!(
        capabilities["experimental"]["sightline"]["protocolVersion"],
        1
    );
    let methods = capabilities["experimental"]["sightline"]["methods"]
        .as_array()
        .unwrap();
    assert!(methods.contains(&json!("sightline/environmentDetails")));
    let commands = capabilities["executeCommandProvider"]["commands"]
        .as_array()
        .unwrap();
    assert!(commands.contains(&json!("sightline.showEnvironment")));
    assert!(!commands.contains(&json!("sightline.checkAccess")));
    let reports = &capabilities["executeCommandProvider"]["workDoneProgress"];
    assert_eq!(*reports, true);
    assert_eq!(server.call("experimental/runnables", json!({})), json!([]));
    assert_eq!(server.refused("no/such", json!({}))["code"], -32601);
    assert_eq!(server.end(), 0);
}

/// Editors list the announced commands by name.
#[test]
fn commands_that_need_params_are_announced_to_plugins_only() {
    let announced = |experimental: serde_json::Value| {
        let workspace = Workspace::new(&[("a.txt", "a")]);
        let mut server = Server::bare(sightline_lsp::main_loop::Options::default());
        let mut params = workspace.initialize();
        params["capabilities"]["experimental"] = experimental;
        let result = server.initialize(params);
        // Announced or not, each is accepted.
        let check = json!({
            "command": "sightline.checkAccess",
            "arguments": [{ "paths": ["a.txt"] }],
        });
        let checked = server.call("workspace/executeCommand", check);
        assert_eq!(checked["paths"][0]["access"], "allowed");
        assert_eq!(server.end(), 0);
        let commands = &result["capabilities"]["executeCommandProvider"]["commands"];
        serde_json::from_value::<Vec<String>>(commands.clone()).unwrap()
    };
    let for_users = announced(json!({}));
    let for_plugins = announced(json!({ "sightline": true }));
    assert!(for_users.contains(&"sightline.checkpointNow".to_owned()));
    assert!(!for_users.contains(&"sightline.checkAccess".to_owned()));
    assert!(for_plugins.starts_with(&for_users));
    assert!(for_plugins.contains(&"sightline.checkAccess".to_owned()));
}

/// The parent is killed while another process holds the server's input open.
#[cfg(unix)]
#[test]
fn t7_a_killed_parent_takes_the_server_with_it() {
    if !std::path::Path::new("/proc/self/stat").exists() {
        eprintln!("skipped: this system has no /proc to see the server end in");
        return;
    }
    // The shell's child inherits its input, which this test keeps open.
    let workspace = Workspace::new(&[]);
    let pid_file = workspace.path("pid");
    let script =
        r#"exec 3<&0; sh -c 'echo $$ >"$1"; exec "$0" --stdio' "$0" "$1" <&3 2>/dev/null & wait"#;
    let mut shell = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_sightline")])
        .arg(&pid_file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (output, input) = (shell.stdout.take().unwrap(), shell.stdin.take().unwrap());
    let mut client = sightline_testing::lsp_client::LspClient::new(output, input);
    client
        .request("initialize", workspace.initialize())
        .unwrap()
        .unwrap();
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let alive = || is_alive(pid.trim());
    assert!(alive());
    shell.kill().unwrap();
    shell.wait().unwrap();
    for _ in 0..500 {
        if !alive() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the server still runs 5 seconds after its parent was killed");
}

#[test]
fn a_closed_output_ends_the_server() {
    let workspace = Workspace::new(&[]);
    let mut child = program()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let silent = std::io::empty();
    let mut client =
        sightline_testing::lsp_client::LspClient::new(silent, child.stdin.take().unwrap());
    // Responses are not read; sending may fail once the server is gone.
    let _ = client.start("initialize", workspace.initialize());
    let _ = client.start("sightline/listFiles", json!({}));
    assert_eq!(wait(&mut child, "closed output"), 1);
}

/// A request named `exit` or `$/…` is answered.
#[test]
fn requests_that_are_notifications_are_refused() {
    let workspace = Workspace::new(&[("a.txt", "x")]);
    let mut server = Server::start(&workspace);
    assert_eq!(server.refused("exit", json!({}))["code"], -32600);
    assert_eq!(server.refused("$/anything", json!({}))["code"], -32601);
    let error = server.refused("no/such", json!({}));
    assert_eq!(error["data"]["kind"], "unsupported", "{error}");
    server.open(&workspace.uri("a.txt"), "x");
    assert!(server.block(json!({})).contains("a.txt"));
    assert_eq!(server.end(), 0);
}

#[test]
fn t7_the_last_save_is_recorded_before_the_end() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("a.txt"), "one\n");
    let document = json!({ "uri": workspace.uri("a.txt"), "version": 2 });
    let change = json!({ "textDocument": document, "contentChanges": [{ "text": "two\n" }] });
    server.send_notification("textDocument/didChange", change);
    // Sent without waiting, as with `:wq`.
    let read = json!({ "path": "a.txt", "taskId": "t" });
    server.start("sightline/readFile", read).unwrap();
    workspace.write("a.txt", "two\r\n");
    server.send_notification("textDocument/didSave", json!({ "textDocument": document }));
    assert_eq!(server.end(), 0);
    let mut server = Server::start(&workspace);
    let context = server.call("sightline/taskContext", json!({ "taskId": "t" }));
    assert_eq!(context["changed"], json!([]));
    assert_eq!(server.end(), 0);
}

#[test]
fn stdio_takes_precedence_over_other_arguments() {
    let workspace = Workspace::new(&[]);
    for arguments in [
        &["--stdio", "--stdio"][..],
        &["--clientProcessId=1", "--stdio"],
    ] {
        let mut child = program()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let mut client = sightline_testing::lsp_client::LspClient::new(output, input);
        client
            .request("initialize", workspace.initialize())
            .unwrap()
            .unwrap();
        client.close();
        wait(&mut child, "end of input");
    }
}
