//! The command line asks the running server of its workspace.

mod checkpoints;

use std::{
    fs,
    path::PathBuf,
    process::{Output, Stdio},
};
#[cfg(unix)]
use std::{
    io::Write,
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
};

use serde_json::{Value, json};
use sightline_base::{
    path::{AbsPath, Root},
    storage::Storage,
};
use sightline_ipc::socket_dir;
#[cfg(unix)]
use sightline_local::frame::FrameReader;

use crate::harness::{Server, Workspace, finished, program, spawn_in, wait};

pub(crate) fn run(workspace: &Workspace, arguments: &[&str]) -> (i32, String, String) {
    let output: Output = program()
        .args(arguments)
        .arg("--root")
        .arg(workspace.root())
        .arg("--storage")
        .arg(workspace.data())
        .current_dir(workspace.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    finished(output)
}

/// Returns the sockets of a workspace.
pub(crate) fn sockets(workspace: &Workspace) -> Vec<PathBuf> {
    let storage = Storage::open(&workspace.data()).unwrap();
    let root = Root::new(AbsPath::new(&workspace.root()).unwrap(), None);
    let key = storage.run_key(&root);
    let entries = fs::read_dir(socket_dir(&storage));
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(&key)
        })
        .collect();
    found.sort();
    found
}

/// Returns a server that is listening: task requests are answered after that.
pub(crate) fn listening(workspace: &Workspace) -> Server {
    let mut server = Server::start(workspace);
    server.call("sightline/listTasks", json!({}));
    server
}

const FROM_DISK: &str = "no server is running for this workspace";

#[test]
fn the_block_comes_from_a_running_server() {
    let workspace = Workspace::new(&[("a.txt", "1\n"), ("b.txt", "b\n")]);
    let mut server = listening(&workspace);
    server.open(&workspace.uri("a.txt"), "unsaved\n");
    server.call("sightline/checkAccess", json!({}));
    let (code, text, complaint) = run(&workspace, &["environment"]);
    assert_eq!((code, complaint.as_str()), (0, ""), "{text}");
    assert!(
        text.contains("Open Tabs") && text.contains("a.txt"),
        "{text}"
    );
    assert!(!text.contains("b.txt"), "{text}");
    let (_, text, _) = run(&workspace, &["read", "a.txt"]);
    assert_eq!(text, "unsaved\n");
    let (code, text, complaint) = run(&workspace, &["environment", "--offline"]);
    assert_eq!((code, complaint.as_str()), (0, ""));
    assert!(!text.contains("a.txt"), "{text}");
    let (_, text, _) = run(&workspace, &["read", "a.txt", "--offline"]);
    assert_eq!(text, "1\n");
    assert_eq!(server.end(), 0);
    assert_eq!(sockets(&workspace), Vec::<PathBuf>::new());
    let (code, _, complaint) = run(&workspace, &["environment"]);
    assert_eq!(code, 0);
    assert!(complaint.contains(FROM_DISK), "{complaint}");
}

#[test]
fn the_same_rules_and_exit_codes_hold() {
    let workspace = Workspace::new(&[(".clineignore", "*.key\n"), ("b.key", "secret\n")]);
    let mut server = listening(&workspace);
    server.open(&workspace.uri("b.key"), "secret\n");
    server.call("sightline/checkAccess", json!({}));
    let (code, text, complaint) = run(&workspace, &["read", "b.key"]);
    assert_eq!((code, text.as_str()), (1, ""), "{complaint}");
    let (code, text, _) = run(&workspace, &["access", "b.key"]);
    assert_eq!(
        (code, text.as_str()),
        (1, "denied\tb.key\t.clineignore:1: *.key\n")
    );
    let (_, text, _) = run(&workspace, &["environment", "--files"]);
    assert!(!text.contains("b.key"), "{text}");
    let (code, _, _) = run(&workspace, &["read", "nowhere"]);
    assert_eq!(code, 3);
}

#[cfg(unix)]
#[test]
fn only_the_user_can_enter() {
    let workspace = Workspace::new(&[]);
    let _server = listening(&workspace);
    let socket = sockets(&workspace).pop().unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(socket.as_path()), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
}

/// Sends messages to the socket and returns the responses.
#[cfg(unix)]
pub(crate) fn talk(socket: &PathBuf, messages: &[Value]) -> Vec<Value> {
    let stream = UnixStream::connect(socket).unwrap();
    for message in messages {
        let mut frame = Vec::new();
        sightline_local::frame::write_frame(&mut frame, message.to_string().as_bytes()).unwrap();
        (&stream).write_all(&frame).unwrap();
    }
    let mut frames = FrameReader::new(&stream);
    let with_id = messages.iter().filter(|message| message["id"].is_number());
    with_id
        .map(|_| serde_json::from_slice(&frames.next_frame().unwrap().unwrap().unwrap()).unwrap())
        .collect()
}

#[cfg(unix)]
#[test]
fn only_reads_and_previewed_restores_are_accepted() {
    let workspace = Workspace::new(&[("a.txt", "1\n")]);
    let mut server = listening(&workspace);
    let socket = sockets(&workspace).pop().unwrap();
    let request = |id: u32, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let execute = json!({ "command": "sightline.createCheckpoint" });
    let answers = talk(
        &socket,
        &[
            request(1, "sightline/pruneCheckpoints", json!({ "keep": 0 })),
            request(2, "workspace/executeCommand", execute),
            request(
                3,
                "sightline/environmentDetails",
                json!({ "consume": true }),
            ),
            json!({ "jsonrpc": "2.0", "method": "exit" }),
            request(4, "shutdown", Value::Null),
            json!(["no message"]),
            request(
                5,
                "sightline/restoreCheckpoint",
                json!({ "id": "0".repeat(40) }),
            ),
            request(6, "sightline/undoRestore", json!({})),
            request(7, "sightline/checkAccess", Value::Null),
        ],
    );
    let kinds: Vec<&str> = answers
        .iter()
        .map(|answer| answer["error"]["data"]["kind"].as_str().unwrap_or("fine"))
        .collect();
    assert_eq!(
        kinds,
        [
            "unsupported",
            "unsupported",
            "invalidParams",
            "unsupported",
            "invalidParams",
            "invalidParams",
            "fine"
        ]
    );
    let listed = server.call("sightline/listCheckpoints", json!({}));
    assert_eq!(listed["checkpoints"], json!([]));
    // A peer that sends garbage is disconnected, without affecting others.
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"Content-Length: x\r\n\r\n{}").unwrap();
    assert!(
        FrameReader::new(&stream)
            .next_frame()
            .is_ok_and(|frame| frame.is_none())
    );
    let (code, _, complaint) = run(&workspace, &["environment"]);
    assert_eq!((code, complaint.as_str()), (0, ""));
}

#[test]
fn the_newest_server_of_a_workspace_is_asked() {
    let workspace = Workspace::new(&[("a.txt", ""), ("b.txt", "")]);
    let mut first = listening(&workspace);
    first.open(&workspace.uri("a.txt"), "");
    first.call("sightline/checkAccess", json!({}));
    let mut second = listening(&workspace);
    second.open(&workspace.uri("b.txt"), "");
    second.call("sightline/checkAccess", json!({}));
    let (_, text, _) = run(&workspace, &["environment"]);
    assert!(text.contains("b.txt") && !text.contains("a.txt"), "{text}");
    assert_eq!(second.end(), 0);
    let (_, text, _) = run(&workspace, &["environment"]);
    assert!(
        text.contains("a.txt"),
        "the older one is there still: {text}"
    );
}

#[test]
fn the_socket_of_a_killed_server_is_removed() {
    let workspace = Workspace::new(&[]);
    let (mut child, _client) = spawn_in(&workspace);
    let socket = sockets(&workspace);
    assert_eq!(socket.len(), 1);
    child.kill().unwrap();
    wait(&mut child, "killed");
    assert_eq!(sockets(&workspace), socket);
    let (code, _, complaint) = run(&workspace, &["environment"]);
    assert_eq!(code, 0);
    assert!(complaint.contains(FROM_DISK), "{complaint}");
    assert_eq!(sockets(&workspace), Vec::<PathBuf>::new());
    // A starting server finds it too.
    #[cfg(unix)]
    drop(UnixListener::bind(&socket[0]).unwrap());
    #[cfg(windows)]
    fs::write(&socket[0], "secret").unwrap();
    let _server = listening(&workspace);
    assert_eq!(sockets(&workspace).len(), 1);
    assert_ne!(sockets(&workspace), socket);
}

/// As if another user had taken the name of the pipe.
#[cfg(windows)]
#[test]
fn a_server_without_the_secret_is_rejected() {
    let workspace = Workspace::new(&[("a.txt", "")]);
    let server = listening(&workspace);
    let file = sockets(&workspace).pop().unwrap();
    let secret = fs::read(&file).unwrap();
    fs::write(&file, "x".repeat(secret.len())).unwrap();
    let (code, _, complaint) = run(&workspace, &["environment"]);
    assert_eq!(code, 0);
    assert!(complaint.contains(FROM_DISK), "{complaint}");
    fs::write(&file, secret).unwrap();
    let (code, _, complaint) = run(&workspace, &["environment"]);
    assert_eq!((code, complaint.as_str()), (0, ""));
    assert_eq!(server.end(), 0);
}

#[test]
fn sockets_follow_the_workspace_folders() {
    let workspace = Workspace::new(&[]);
    let mut params = workspace.initialize();
    params["rootUri"] = Value::Null;
    params["workspaceFolders"] = json!([]);
    let mut server = Server::initialized(params);
    server.call("sightline/listTasks", json!({}));
    assert_eq!(sockets(&workspace).len(), 0);
    let folder = json!({ "uri": workspace.uri(""), "name": "shop" });
    for (added, removed, count) in [
        (json!([folder]), json!([]), 1),
        (json!([]), json!([folder]), 0),
    ] {
        let event = json!({ "event": { "added": added, "removed": removed } });
        server.send_notification("workspace/didChangeWorkspaceFolders", event);
        server.call("sightline/listTasks", json!({}));
        assert_eq!(sockets(&workspace).len(), count);
    }
}
