//! Listing and reading over the wire.

use serde_json::{Value, json};

use crate::harness::{Server, Workspace};

fn paths(listed: &Value) -> Vec<&str> {
    let entries = listed["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["path"].as_str().unwrap())
        .collect()
}

/// Asserts where a text was read from, and whether the editor has unsaved changes.
fn assert_source(read: &Value, source: &str, dirty: bool) {
    assert_eq!(
        (&read["source"], &read["isDirty"]),
        (&json!(source), &json!(dirty))
    );
}

#[test]
fn lists_omit_and_count_denied_entries() {
    let workspace = Workspace::new(&[
        (".clineignore", "secret*\n"),
        (".gitignore", "*.log\n!keep.log\n"),
        ("secret.txt", ""),
        ("src/secret/x", ""),
        ("src/a10.rs", ""),
        ("src/a2.rs", ""),
        ("x.log", ""),
        ("keep.log", ""),
        ("node_modules/m/i.js", ""),
    ]);
    let mut server = Server::start(&workspace);
    let listed = server.call("sightline/listFiles", json!({}));
    assert_eq!(
        paths(&listed),
        [".gitignore", "keep.log", "src", "src/a10.rs", "src/a2.rs"]
    );
    assert_eq!(listed["truncated"], false);
    let text = listed["text"].as_str().unwrap();
    let head = ".gitignore\nkeep.log\nsrc/\nsrc/a2.rs\nsrc/a10.rs\n\n(";
    assert!(text.starts_with(head), "{text}");
    assert!(!listed.to_string().contains("secret"), "{listed}");

    let listed = server.call("sightline/listFiles", json!({ "path": "src", "limit": 1 }));
    assert_eq!(paths(&listed), ["src/a10.rs"]);
    assert_eq!(listed["truncated"], true);
    for (path, kind) in [
        ("nowhere", "notFound"),
        ("keep.log", "invalidParams"),
        ("src/secret", "accessDenied"),
        ("..", "accessDenied"),
    ] {
        let error = server.refused("sightline/listFiles", json!({ "path": path }));
        assert_eq!(error["data"]["kind"], kind, "{path}: {error}");
        assert!(error["message"].as_str().unwrap().contains(path), "{error}");
    }
    let lock = json!({ "settings": { "environment": { "ignoredFiles": "lock" } } });
    server.send_notification("workspace/didChangeConfiguration", lock);
    let listed = server.call("sightline/listFiles", json!({ "path": "src" }));
    assert!(
        listed["text"]
            .as_str()
            .unwrap()
            .contains("\u{1f512} secret/"),
        "{listed}"
    );
    assert_eq!(server.end(), 0);
}

#[test]
fn unsaved_text_wins_over_the_disk() {
    let workspace = Workspace::new(&[("a.txt", "one\ntwo\nthree\n")]);
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("a.txt"), "one\ntwo\nthree\n");
    let read = server.call(
        "sightline/readFile",
        json!({ "path": "a.txt", "startLine": 2, "endLine": 2 }),
    );
    assert_eq!(read["text"], "two\n");
    assert_eq!(
        (&read["source"], &read["totalLines"]),
        (&json!("disk"), &json!(3))
    );
    server.send_notification(
        "textDocument/didChange",
        json!({
            "textDocument": { "uri": workspace.uri("a.txt"), "version": 2 },
            "contentChanges": [{ "text": "changed" }],
        }),
    );
    let read = server.call("sightline/readFile", json!({ "path": "a.txt" }));
    assert_eq!(read["text"], "changed");
    assert_source(&read, "buffer", true);
    let unsaved = server.block(json!({ "sections": ["unsavedFiles"] }));
    assert!(unsaved.contains("\na.txt\n"), "{unsaved}");

    let saved = json!({ "textDocument": { "uri": workspace.uri("a.txt") } });
    workspace.write("a.txt", "changed");
    server.send_notification("textDocument/didSave", saved);
    let read = server.call("sightline/readFile", json!({ "path": "a.txt" }));
    assert_source(&read, "disk", false);
    assert_eq!(server.end(), 0);
}

#[test]
fn a_reloaded_document_is_not_unsaved() {
    let workspace = Workspace::new(&[("a.txt", "old\n")]);
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("a.txt"), "old\n");
    workspace.write("a.txt", "written by the agent\n");
    let change = |version: i32, text: &str| {
        json!({
            "textDocument": { "uri": workspace.uri("a.txt"), "version": version },
            "contentChanges": [{ "text": text }],
        })
    };
    // As VS Code and Helix do it: a change without a save.
    server.send_notification(
        "textDocument/didChange",
        change(2, "written by the agent\n"),
    );
    let read = server.call("sightline/readFile", json!({ "path": "a.txt" }));
    assert_source(&read, "disk", false);
    let unsaved = server.block(json!({ "sections": ["unsavedFiles"] }));
    assert!(!unsaved.contains("a.txt"), "{unsaved}");

    server.send_notification("textDocument/didChange", change(3, "typed\n"));
    let read = server.call("sightline/readFile", json!({ "path": "a.txt" }));
    assert_source(&read, "buffer", true);
    assert_eq!(server.end(), 0);
}

#[test]
fn an_open_document_whose_file_was_deleted_is_not_unsaved_and_comes_back() {
    let workspace = Workspace::new(&[("docs/a.txt", "one\n"), ("b.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("docs/a.txt"), "one\n");
    let taken = server.call("sightline/createCheckpoint", json!({}));
    std::fs::remove_dir_all(workspace.path("docs")).unwrap();

    let unsaved = server.block(json!({ "sections": ["unsavedFiles"] }));
    assert!(!unsaved.contains("a.txt"), "{unsaved}");
    let id = json!({ "id": taken["id"] });
    let preview = server.call("sightline/previewRestore", id.clone());
    assert_eq!(preview["conflicts"], json!([]), "{preview}");
    server.call("sightline/restoreCheckpoint", id);
    let restored = std::fs::read_to_string(workspace.path("docs/a.txt")).unwrap();
    assert_eq!(restored, "one\n");
    assert_eq!(server.end(), 0);
}

#[test]
fn unreadable_files_have_distinct_errors() {
    let workspace = Workspace::new(&[("a.txt", "abc"), ("dir/x", "")]);
    std::fs::write(workspace.path("binary"), b"\0\x01\x02").unwrap();
    std::fs::write(workspace.path("utf16"), b"\xff\xfeh\0i\0").unwrap();
    let mut server = Server::start(&workspace);
    for (params, kind) in [
        (json!({ "path": "binary" }), "unsupported"),
        (json!({ "path": "dir" }), "unsupported"),
        (json!({ "path": "nowhere" }), "notFound"),
        (json!({ "path": "a.txt", "startLine": 0 }), "invalidParams"),
        (
            json!({ "path": "a.txt", "startLine": 3, "endLine": 2 }),
            "invalidParams",
        ),
        (
            json!({ "path": "a.txt", "startLine": "x" }),
            "invalidParams",
        ),
        (json!({ "path": 5 }), "invalidParams"),
        (
            json!({ "path": "a.txt", "taskId": "../x" }),
            "invalidParams",
        ),
        (json!({}), "invalidParams"),
    ] {
        let error = server.refused("sightline/readFile", params.clone());
        assert_eq!(error["data"]["kind"], kind, "{params}: {error}");
    }
    let cut = server.call(
        "sightline/readFile",
        json!({ "path": "a.txt", "maxBytes": 2 }),
    );
    assert_eq!(
        (&cut["text"], &cut["truncated"]),
        (&json!("ab"), &json!(true))
    );
    let read = server.call("sightline/readFile", json!({ "path": "utf16" }));
    assert_eq!(
        (&read["text"], &read["encoding"]),
        (&json!("hi"), &json!("UTF-16LE"))
    );
    assert_eq!(server.end(), 0);
}

/// An editor may open a document with unsaved changes from an earlier session.
#[test]
fn unsaved_text_at_open_wins_too() {
    let workspace = Workspace::new(&[("a.txt", "disk\n"), ("crlf.txt", "\u{feff}same\r\n")]);
    let mut server = Server::start(&workspace);
    server.open(&workspace.uri("a.txt"), "kept\n");
    server.open(&workspace.uri("crlf.txt"), "same");
    server.open(&workspace.uri("new.txt"), "not on the disk");
    let read = server.call("sightline/readFile", json!({ "path": "a.txt" }));
    assert_eq!(read["text"], "kept\n");
    assert_source(&read, "buffer", true);
    let unsaved = server.block(json!({ "sections": ["unsavedFiles"] }));
    assert!(unsaved.contains("\na.txt\nnew.txt\n"), "{unsaved}");
    let read = server.call("sightline/readFile", json!({ "path": "crlf.txt" }));
    assert_eq!(read["source"], "disk");
    let saved = json!({ "textDocument": { "uri": workspace.uri("a.txt") } });
    workspace.write("a.txt", "kept\n");
    server.send_notification("textDocument/didSave", saved);
    let read = server.call("sightline/readFile", json!({ "path": "a.txt" }));
    assert_source(&read, "disk", false);
    assert_eq!(server.end(), 0);
}
