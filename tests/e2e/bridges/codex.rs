//! Codex: a client of `/ide`.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{Editor, NOTHING, SOON};

const FOLDER: &str = "codex-ipc";

fn codex() -> Value {
    json!({ "codexIde": true })
}

pub(super) fn socket(editor: &Editor) -> PathBuf {
    editor.wait_for_files(FOLDER, 1).remove(0)
}

pub(super) fn connect_to(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

fn connect(editor: &Editor) -> UnixStream {
    connect_to(&socket(editor))
}

pub(super) fn ask(stream: &mut UnixStream, folder: &str) -> Value {
    let answer = send(
        stream,
        &json!({
            "type": "request", "requestId": "r1", "sourceClientId": "codex-tui", "version": 0,
            "method": "ide-context", "params": { "workspaceRoot": folder },
        }),
    );
    assert_eq!(answer["requestId"], "r1");
    answer
}

/// Sends a request and returns the response.
pub(super) fn send(stream: &mut UnixStream, request: &Value) -> Value {
    let body = request.to_string();
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    // A frame may come in parts.
    stream.write_all(&length[..2]).unwrap();
    stream.write_all(&length[2..]).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut body = vec![0; usize::try_from(u32::from_le_bytes(length)).unwrap()];
    stream.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn codex_gets_the_context_of_its_folder() {
    let mut editor = Editor::start(codex());
    editor.open("a.txt", "one two\n");
    editor.open("secret.txt", "DENIED\n");
    editor.select("a.txt", 0, 3);
    let mut stream = connect(&editor);
    let root = editor.workspace.root();
    let root = root.to_str().unwrap();
    let mut context = |editor: &Editor, expected: &dyn Fn(&Value) -> bool| {
        let end = std::time::Instant::now() + SOON;
        loop {
            let answer = ask(&mut stream, editor.workspace.root().to_str().unwrap());
            assert_eq!(answer["resultType"], "success", "{answer}");
            let context = answer["result"]["ideContext"].clone();
            if expected(&context) {
                return context;
            }
            assert!(std::time::Instant::now() < end, "{context}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let found = context(&editor, &|found| {
        found["activeFile"]["activeSelectionContent"] == "one"
    });
    let full = editor.workspace.path("a.txt");
    assert_eq!(found["activeFile"]["fsPath"], json!(full));
    assert_eq!(found["activeFile"]["path"], "a.txt");
    assert_eq!(
        found["openTabs"],
        json!([{ "label": "a.txt", "path": "a.txt", "fsPath": full }])
    );
    editor.select("secret.txt", 0, 3);
    let found = context(&editor, &|found| found.get("activeFile").is_none());
    assert!(!found.to_string().contains("secret"), "{found}");
    // A Codex elsewhere learns nothing.
    let mut other = connect(&editor);
    let link = format!("{root}-link");
    std::os::unix::fs::symlink("/usr", &link).unwrap();
    let sibling = format!("{root}-2");
    fs::create_dir(&sibling).unwrap();
    for folder in [
        "/",
        "/usr",
        "",
        "relative",
        &link,
        &sibling,
        &format!("{root}/.."),
        &format!("{root}/../shop-2"),
        &format!("{root}/absent"),
    ] {
        let answer = ask(&mut other, folder);
        assert_eq!(answer["resultType"], "error", "{folder}: {answer}");
        assert!(!answer.to_string().contains("a.txt"));
    }
}

#[test]
fn the_socket_is_private_and_removed() {
    for way in 0..5 {
        let mut editor = Editor::start(codex());
        let socket = editor.wait_for_files(FOLDER, 1).remove(0);
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&socket), mode(socket.parent().unwrap())),
            (0o600, 0o700)
        );
        match way {
            4 => editor.set(&json!({ "codexIde": false })),
            way => editor.end(way),
        }
        editor.wait_for_files(FOLDER, 0);
    }
}

#[test]
fn a_socket_that_answers_is_left_alone_and_a_dead_one_replaced() {
    let mut editor = Editor::start(json!({}));
    let folder = editor.home.path().join(FOLDER);
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let uid = String::from_utf8(
        std::process::Command::new("id")
            .arg("-u")
            .output()
            .unwrap()
            .stdout,
    );
    let socket = folder.join(format!("ipc-{}.sock", uid.unwrap().trim()));
    let other = UnixListener::bind(&socket).unwrap();
    editor.set(&codex());
    std::thread::sleep(NOTHING);
    assert_eq!(editor.files(FOLDER), std::slice::from_ref(&socket));
    other.accept().unwrap();
    editor.set(&json!({ "codexIde": false }));
    editor
        .client
        .request("sightline/environmentDetails", json!({}))
        .unwrap()
        .unwrap();
    std::thread::sleep(NOTHING);
    assert_eq!(
        editor.files(FOLDER),
        std::slice::from_ref(&socket),
        "it is not ours"
    );
    drop(other);
    editor.set(&codex());
    let end = std::time::Instant::now() + SOON;
    while UnixStream::connect(&socket).is_err() {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    editor.end(0);
    assert_eq!(editor.files(FOLDER), [] as [PathBuf; 0]);
}

#[test]
fn a_frame_that_is_too_large_ends_the_connection() {
    let editor = Editor::start(codex());
    let mut stream = connect(&editor);
    stream.write_all(&u32::MAX.to_le_bytes()).unwrap();
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).unwrap(), 0);
}

#[test]
fn malformed_messages_do_no_harm() {
    let editor = Editor::start(codex());
    let root = editor.workspace.root();
    let root = root.to_str().unwrap();
    let mut other = connect(&editor);
    for bytes in [
        vec![],
        vec![0, 0],
        vec![0, 0, 0, 0],
        vec![2, 0, 0, 0, b'{', b'{'],
        (1024 * 1024 + 1_u32).to_le_bytes().to_vec(),
    ] {
        let mut stream = connect(&editor);
        stream.write_all(&bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, [] as [u8; 0], "{bytes:?}");
    }
    assert_eq!(ask(&mut other, root)["resultType"], "success");
}

#[test]
fn of_two_servers_the_second_waits_for_the_socket() {
    let mut first = Editor::start(codex());
    let mut stream = connect(&first);
    let second = Editor::start_with_home(&first, codex());
    std::thread::sleep(NOTHING);
    let folder = |editor: &Editor| editor.workspace.root().to_str().unwrap().to_owned();
    let (ours, other) = (folder(&first), folder(&second));
    assert_eq!(ask(&mut stream, &ours)["resultType"], "success");
    let mut stream = connect(&first);
    assert_eq!(ask(&mut stream, &ours)["resultType"], "success");
    assert_eq!(ask(&mut stream, &other)["resultType"], "error");
    first.end(2);
    let mut stream = connect(&second);
    assert_eq!(ask(&mut stream, &other)["resultType"], "success");
    assert_eq!(ask(&mut stream, &ours)["resultType"], "error");
}

#[test]
fn a_file_or_a_busy_socket_is_not_replaced() {
    let mut editor = Editor::start(codex());
    let socket = editor.wait_for_files(FOLDER, 1).remove(0);
    editor.set(&json!({ "codexIde": false }));
    editor.wait_for_files(FOLDER, 0);
    fs::write(&socket, "a file").unwrap();
    editor.set(&codex());
    std::thread::sleep(NOTHING);
    assert_eq!(fs::read_to_string(&socket).unwrap(), "a file");
    editor.set(&json!({ "codexIde": false }));
    fs::remove_file(&socket).unwrap();
    // A stopped program accepts nothing, and its queue is full.
    let busy = UnixListener::bind(&socket).unwrap();
    let waiting = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let end = std::time::Instant::now() + 2 * NOTHING;
            let mut streams = Vec::new();
            while std::time::Instant::now() < end {
                let stream = rustix::net::socket(
                    rustix::net::AddressFamily::UNIX,
                    rustix::net::SocketType::STREAM,
                    None,
                )
                .unwrap();
                rustix::io::ioctl_fionbio(&stream, true).unwrap();
                let address = rustix::net::SocketAddrUnix::new(&socket).unwrap();
                if rustix::net::connect(&stream, &address).is_ok() {
                    streams.push(stream);
                } else {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            }
        }
    });
    std::thread::sleep(NOTHING / 2);
    editor.set(&codex());
    waiting.join().unwrap();
    busy.set_nonblocking(true).unwrap();
    while busy.accept().is_ok() {}
    busy.set_nonblocking(false).unwrap();
    let _late = UnixStream::connect(&socket).unwrap();
    busy.accept().unwrap();
}

#[test]
fn rules_that_changed_while_no_agent_was_connected_apply_at_once() {
    let mut editor = Editor::start(codex());
    editor.open("a.txt", "one\n");
    editor.select("a.txt", 0, 3);
    let root = editor.workspace.root();
    let root = root.to_str().unwrap();
    let end = std::time::Instant::now() + SOON;
    while !ask(&mut connect(&editor), root).to_string().contains("one") {
        assert!(std::time::Instant::now() < end);
    }
    for round in 0..10 {
        std::thread::sleep(std::time::Duration::from_millis(100 * round));
        // The rule is new in each round; the file was allowed before.
        let name = format!("{round}.txt");
        editor.workspace.write(&name, "");
        editor.open(&name, "one\n");
        editor.select(&name, 0, 3);
        let end = std::time::Instant::now() + SOON;
        while !ask(&mut connect(&editor), root).to_string().contains(&name) {
            assert!(std::time::Instant::now() < end);
        }
        let rules: String = (0..=round).map(|round| format!("{round}.txt\n")).collect();
        editor.workspace.write(".clineignore", &rules);
        let answer = ask(&mut connect(&editor), root).to_string();
        assert!(!answer.contains(&name), "{answer}");
    }
}
