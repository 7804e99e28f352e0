//! Calls are answered by the server that runs in an editor.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::json;
use sightline_testing::lsp_client::LspClient;

use super::{Client, FILES};
use crate::harness::{Server, Workspace, open_in, program, spawn_in, wait};

#[test]
fn a_server_that_does_not_answer_is_an_error() {
    let workspace = Workspace::new(FILES);
    let (mut server, _editor) = spawn_in(&workspace);
    let mut client = Client::open(&workspace, &[]);
    let read = json!({ "path": "notes.txt" });
    let text = client.text("read_file", read.clone());
    assert!(!text.contains("no editor"), "{text}");

    let signal = |name: &str| {
        let id = server.id().to_string();
        let mut kill = Command::new("kill");
        assert!(kill.args([name, &id]).status().unwrap().success());
    };
    signal("-STOP");
    for (tool, arguments) in [
        ("read_file", read.clone()),
        ("checkpoint_create", json!({})),
    ] {
        let started = Instant::now();
        let (text, is_error) = client.call(tool, arguments);
        assert!(
            is_error && text.contains("does not answer"),
            "{tool}: {text}"
        );
        assert!(!text.contains("\nsaved text"), "{tool}: {text}");
        assert!(
            started.elapsed().as_secs() < 10,
            "{tool}: {:?}",
            started.elapsed()
        );
    }
    signal("-CONT");
    client.text("read_file", read.clone());
    // The server did not get the request that failed.
    let text = client.text("checkpoint_list", json!({}));
    assert!(text.contains("No checkpoints yet"), "{text}");

    server.kill().unwrap();
    wait(&mut server, "killed");
    let text = client.text("read_file", read);
    assert!(text.contains("no editor is running"), "{text}");
}

/// Codex starts its tools without `XDG_RUNTIME_DIR`.
#[test]
fn a_server_is_found_without_the_environment() {
    let workspace = Workspace::new(FILES);
    let uid = fs::metadata(workspace.root()).unwrap().uid();
    let runtime = format!("/run/user/{uid}");
    let metadata = fs::metadata(&runtime);
    if !metadata.is_ok_and(|found| found.uid() == uid && found.mode() & 0o077 == 0) {
        eprintln!("skipped: this system has no {runtime}");
        return;
    }
    for (of_server, of_client) in [(Some(&runtime), None), (None, Some(&runtime)), (None, None)] {
        let with = |command: &mut Command, variable: Option<&String>| match variable {
            Some(dir) => drop(command.env("XDG_RUNTIME_DIR", dir)),
            None => drop(command.env_remove("XDG_RUNTIME_DIR")),
        };
        let mut server = program();
        with(&mut server, of_server);
        let server = server.arg("--stdio").stderr(Stdio::null());
        let server = server.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let (output, input) = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let mut editor = LspClient::new(output, input);
        open_in(&mut editor, &workspace);
        let mut command = program();
        with(command.arg("mcp"), of_client);
        let mut client = Client::spawn(&mut command, &workspace);
        client.initialize("2025-11-25");
        let text = client.text("read_file", json!({ "path": "notes.txt" }));
        assert!(
            !text.contains("no editor"),
            "{of_server:?} {of_client:?}: {text}"
        );
        // Ends the input of the server, which removes its socket.
        drop(editor);
        wait(&mut server, "ended");
    }
}

#[test]
fn the_editor_tells_selection_and_diagnostics_and_shows_files() {
    let workspace = Workspace::new(&[
        (".clineignore", "secret.txt\n"),
        ("secret.txt", "S\n"),
        ("notes.txt", "one\ntwo\n"),
        ("part/.clineignore", "key.txt\n"),
        ("part/key.txt", "K\n"),
    ]);
    let mut offline = Client::open(&workspace, &[]);
    for tool in ["selection", "diagnostics"] {
        let text = offline.text(tool, json!({}));
        assert_eq!(text, "No editor is running for this folder.", "{tool}");
    }
    let (text, is_error) = offline.call("open_file", json!({ "path": "notes.txt" }));
    assert!(is_error && text.contains("no editor"), "{text}");
    let encoded = workspace.uri("part/key.txt").replace("key", "%6bey");
    for (tool, argument) in [
        ("read_file", json!({ "path": encoded })),
        ("read_file", json!({ "path": "part/key.txt" })),
        ("open_file", json!({ "path": "part/key.txt" })),
        ("count_tokens", json!({ "path": "part/key.txt" })),
        ("diagnostics", json!({ "paths": ["part/key.txt"] })),
    ] {
        let (text, is_error) = offline.call(tool, argument);
        assert!(
            is_error && text.contains("hidden from agents"),
            "{tool}: {text}"
        );
    }
    drop(offline);

    let mut initialize = workspace.initialize();
    initialize["capabilities"]["window"]["showDocument"] = json!({ "support": true });
    let mut server = Server::initialized(initialize);
    server.open(&workspace.uri("notes.txt"), "unsaved\n");
    let position = |line, character| json!({ "line": line, "character": character });
    let range = json!({ "start": position(0, 0), "end": position(0, 7) });
    let editor =
        json!({ "uri": workspace.uri("notes.txt"), "isActive": true, "selections": [range] });
    server.send_notification(
        "sightline/didChangeVisibleEditors",
        json!({ "editors": [editor] }),
    );
    let diagnostics = json!({
        "uri": workspace.uri("notes.txt"),
        "diagnostics": [{ "range": range, "severity": 2, "message": "odd" }],
    });
    server.send_notification("sightline/didChangeDiagnostics", diagnostics);
    server.call("sightline/listTasks", json!({}));

    let mut client = Client::open(&workspace, &[]);
    let selected = client.text("selection", json!({}));
    assert_eq!(
        selected,
        "notes.txt has the focus.\nSelected from line 1, column 1 to line 1, column 8:\nunsaved"
    );
    let found = client.text("diagnostics", json!({}));
    assert_eq!(found, "notes.txt:1:1: warning: odd");
    let shown = client.text("open_file", json!({ "path": "notes.txt", "line": 1 }));
    assert_eq!(shown, "The editor was asked to show notes.txt.");
    server
        .wait_for(|message| message["method"] == "window/showDocument")
        .unwrap();
    let (text, is_error) = client.call("open_file", json!({ "path": "secret.txt" }));
    assert!(is_error && text.contains(".clineignore"), "{text}");
    assert_eq!(server.end(), 0);
}
