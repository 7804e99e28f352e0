//! Checkpoint commands use the running server of their workspace.

use std::{fs, process::Child, time::Duration};

use serde_json::{Value, json};
use sightline_testing::lsp_client::LspClient;

use crate::{
    checkpoints::{id, second_root},
    harness::{Workspace, spawn, wait},
    ipc::run,
};

/// A server process and its client, in `folders`, with a socket for each.
fn start(workspace: &Workspace, folders: Option<Value>) -> (Child, LspClient) {
    let (child, mut client) = spawn();
    let mut params = workspace.initialize();
    params["initializationOptions"]["notifications"] = json!(true);
    if let Some(folders) = folders {
        params["workspaceFolders"] = folders;
    }
    client.request("initialize", params).unwrap().unwrap();
    client.notify("initialized", json!({})).unwrap();
    client
        .request("sightline/listTasks", json!({}))
        .unwrap()
        .unwrap();
    (child, client)
}

fn stop((mut child, mut client): (Child, LspClient)) {
    client.close();
    wait(&mut child, "closed");
}

/// Returns the result of a command that must succeed, as JSON.
fn json_of(workspace: &Workspace, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    let (code, text, error) = run(workspace, &arguments);
    assert_eq!(code, 0, "{arguments:?}: {error}");
    serde_json::from_str(&text).unwrap()
}

fn read(workspace: &Workspace, name: &str) -> String {
    fs::read_to_string(workspace.path(name)).unwrap()
}

#[test]
fn the_running_server_creates_and_restores_checkpoints() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let (child, mut client) = start(&workspace, None);
    let created = json_of(&workspace, &["checkpoint", "create", "--label", "first"]);
    // The client hears only of checkpoints that its server creates.
    let shown = client.notified("sightline/didCreateCheckpoint").unwrap();
    assert_eq!(shown, json!({ "checkpoint": created }));
    json_of(
        &workspace,
        &["checkpoint", "create", "--label", "offline", "--offline"],
    );

    for name in ["a.txt", "b.txt"] {
        workspace.write(name, "two\n");
    }
    let document = json!({ "uri": workspace.uri("a.txt"), "languageId": "text", "version": 1, "text": "unsaved\n" });
    client
        .notify("textDocument/didOpen", json!({ "textDocument": document }))
        .unwrap();
    let change = json!({
        "textDocument": { "uri": workspace.uri("a.txt"), "version": 2 },
        "contentChanges": [{ "text": "unsaved work\n" }],
    });
    client.notify("textDocument/didChange", change).unwrap();
    client
        .request("sightline/checkAccess", json!({}))
        .unwrap()
        .unwrap();

    // The server knows the unsaved text, a process on its own does not.
    let (code, text, _) = run(&workspace, &["checkpoint", "preview", id(&created)]);
    assert_eq!(code, 0);
    assert!(
        text.contains("skip    a.txt") && text.contains("write   b.txt"),
        "{text}"
    );
    let (_, text, _) = run(
        &workspace,
        &["checkpoint", "preview", id(&created), "--offline"],
    );
    assert!(text.contains("write   a.txt"), "{text}");

    let (code, text, error) = run(
        &workspace,
        &["checkpoint", "restore", "--yes", id(&created)],
    );
    assert_eq!(code, 0, "{error}");
    assert!(text.contains("1 path restored, 1 skipped"), "{text}");
    assert_eq!(read(&workspace, "a.txt"), "two\n");
    assert_eq!(read(&workspace, "b.txt"), "one\n");
    let shown = client.notified("sightline/didCreateCheckpoint").unwrap();
    assert_eq!(shown["checkpoint"]["purpose"], "undo", "{shown}");

    stop((child, client));
}

#[test]
fn a_command_works_on_its_own_folder_of_a_server_with_several() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (other, params) = second_root(&workspace, "c.txt");
    let server = start(&workspace, Some(params["workspaceFolders"].clone()));
    let created = json_of(&workspace, &["checkpoint", "create"]);
    assert_eq!(created.get("group"), None);
    let file = fs::read_to_string(other.join("c.txt")).unwrap();
    let there = other.to_str().unwrap();
    let in_other = |arguments: &[&str]| {
        let mut command = crate::harness::program();
        let output = command
            .args(["checkpoint", arguments[0], "--root", there, "--storage"])
            .arg(workspace.data())
            .args(&arguments[1..])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    workspace.write("a.txt", "two\n");
    let (code, _, error) = run(&workspace, &["checkpoint", "restore", "--yes", "last"]);
    assert_eq!(code, 0, "{error}");
    // The last restore of the server is one of another folder.
    let (code, error) = in_other(&["undo", "--yes"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("no restore to undo"), "{error}");
    let (code, error) = in_other(&["list"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(read(&workspace, "a.txt"), "one\n");
    assert_eq!(fs::read_to_string(other.join("c.txt")).unwrap(), file);
    stop(server);
}

/// A server that receives a request and ends may have run it.
#[cfg(unix)]
#[test]
fn changes_are_not_repeated_when_a_server_does_not_answer() {
    use sightline_base::{
        path::{AbsPath, Root},
        storage::Storage,
    };
    use sightline_local::frame::FrameReader;
    use std::os::unix::net::UnixListener;

    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let storage = Storage::open(&workspace.data()).unwrap();
    let root = Root::new(AbsPath::new(&workspace.root()).unwrap(), None);
    let dir = sightline_ipc::socket_dir(&storage);
    fs::create_dir_all(&dir).unwrap();
    let socket = dir.join(format!("{}-1.sock", storage.run_key(&root)));
    let listener = UnixListener::bind(&socket).unwrap();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            FrameReader::new(&stream)
                .next_frame()
                .unwrap()
                .unwrap()
                .unwrap();
        }
    });
    let (code, _, error) = run(&workspace, &["checkpoint", "create"]);
    assert_eq!(code, 3, "{error}");
    assert!(
        error.contains("no answer from the running server"),
        "{error}"
    );
    // A request that only reads falls back to the disk.
    let (code, _, error) = run(&workspace, &["checkpoint", "list"]);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("no checkpoints yet"), "{error}");
    server.join().unwrap();
}

#[test]
fn the_client_learns_which_files_of_its_documents_a_restore_changed() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    json_of(&workspace, &["checkpoint", "create"]);
    for name in ["a.txt", "b.txt"] {
        workspace.write(name, "changed\n");
    }
    let (child, mut client) = start(&workspace, None);
    let uri = workspace.uri("a.txt");
    let document = json!({ "uri": uri, "languageId": "text", "version": 1, "text": "changed\n" });
    client
        .notify("textDocument/didOpen", json!({ "textDocument": document }))
        .unwrap();
    // Until the server watches the file, which it has just learned of.
    client.set_deadline(Duration::from_millis(500));
    let mut text = "changed\n".to_owned();
    while client.notified("sightline/didChangeFiles").is_err() {
        text.push_str("changed\n");
        workspace.write("a.txt", &text);
    }
    client.set_deadline(Duration::from_secs(30));
    for (arguments, text) in [
        (&["restore", "last", "--yes", "--offline"] as &[_], "one\n"),
        (&["undo", "--yes"], &text),
    ] {
        json_of(&workspace, &[&["checkpoint"], arguments].concat());
        let told = client.notified("sightline/didChangeFiles").unwrap();
        assert_eq!(told, json!({ "uris": [uri] }));
        assert_eq!(read(&workspace, "a.txt"), text);
    }
    stop((child, client));
}

/// Otherwise each checkpoint would take longer than the one before until the server is idle.
#[test]
fn packs_are_combined_while_the_server_is_busy() {
    let workspace = Workspace::new(&[("a.txt", "0\n")]);
    let (child, mut client) = start(&workspace, None);
    let mut most = 0;
    for round in 0..120 {
        workspace.write("a.txt", &format!("{round}\n"));
        let created = client.request("sightline/createCheckpoint", json!({}));
        created.unwrap().unwrap();
        let project = fs::read_dir(workspace.data().join("projects")).unwrap();
        let project = project.flatten().next().unwrap().path();
        let packs = fs::read_dir(project.join("checkpoints.git/objects/pack")).unwrap();
        let is_pack = |name: &str| name.ends_with(".pack");
        let names = packs.flatten().map(|entry| entry.file_name());
        most = most.max(
            names
                .filter(|name| is_pack(&name.to_string_lossy()))
                .count(),
        );
    }
    assert!(most <= 60, "{most} packs");
    let verified = client.request("sightline/verifyCheckpoints", json!({}));
    let whole = json!({ "ok": true, "problems": [] });
    assert_eq!(verified.unwrap().unwrap(), whole);
    stop((child, client));
}
