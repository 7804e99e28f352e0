//! Restores: preview, restore, undo, and unsaved text.

mod several_roots;

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::{
    checkpoints::{create, each, id, list, second_root},
    harness::{Server, Workspace, holds_null, uri},
};

pub(crate) fn call(server: &mut Server, method: &str, params: Value) -> Value {
    let result = server.call(&format!("sightline/{method}"), params);
    assert!(!holds_null(&result), "{result}");
    result
}

pub(crate) fn outcomes(restored: &Value) -> Vec<(&str, &str, bool)> {
    let all = restored["outcomes"].as_array().unwrap().iter();
    all.map(|one| {
        let text = |field: &str| one[field].as_str().unwrap();
        (text("path"), text("action"), one["ok"].as_bool().unwrap())
    })
    .collect()
}

pub(crate) fn read(workspace: &Workspace, name: &str) -> Option<String> {
    fs::read_to_string(workspace.path(name)).ok()
}

#[test]
fn a_restore_does_what_its_preview_says_and_is_undone() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("src/b.rs", "b\n"), ("same", "s\n")]);
    let mut server = Server::start(&workspace);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    workspace.write("new.txt", "new\n");
    fs::remove_file(workspace.path("src/b.rs")).unwrap();
    let preview = call(&mut server, "previewRestore", json!({ "id": id(&taken) }));
    let changes = preview["changes"].as_array().unwrap();
    assert_eq!(each(changes, "path"), ["a.txt", "new.txt", "src/b.rs"]);
    assert_eq!(each(changes, "action"), ["write", "delete", "write"]);
    assert_eq!(changes[2]["uri"], workspace.uri("src/b.rs"));
    assert_eq!(preview["conflicts"], json!([]));
    assert_eq!(
        list(&mut server, json!({})).len(),
        1,
        "a preview stores nothing"
    );
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");

    let with_token = json!({ "id": id(&taken), "token": preview["token"] });
    let restored = call(&mut server, "restoreCheckpoint", with_token.clone());
    let done = [
        ("a.txt", "write", true),
        ("new.txt", "delete", true),
        ("src/b.rs", "write", true),
    ];
    assert_eq!(outcomes(&restored), done);
    assert!(restored.get("task").is_none());
    assert_eq!(read(&workspace, "a.txt").unwrap(), "one\n");
    assert_eq!(read(&workspace, "new.txt"), None);
    let listed = list(&mut server, json!({}));
    assert_eq!(listed[0]["id"], restored["undoId"]);
    assert_eq!(listed[0]["purpose"], "undo");

    // The workspace changed, so the preview is outdated.
    let error = server.refused("sightline/restoreCheckpoint", with_token);
    assert_eq!(error["data"]["kind"], "conflict", "{error}");

    let undone = call(&mut server, "undoRestore", json!({}));
    assert_eq!(outcomes(&undone).len(), 3);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    assert_eq!(read(&workspace, "new.txt").unwrap(), "new\n");
    assert_eq!(read(&workspace, "src/b.rs"), None);
    // An undo is a restore too.
    let undo = json!({ "undoId": undone["undoId"] });
    call(&mut server, "undoRestore", undo);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "one\n");
}

#[test]
fn a_restore_with_nothing_to_do_keeps_the_undo_before_it() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    let restored = call(
        &mut server,
        "restoreCheckpoint",
        json!({ "id": id(&taken) }),
    );
    let before = list(&mut server, json!({}));
    let preview = call(&mut server, "previewRestore", json!({ "id": id(&taken) }));
    for params in [
        json!({ "id": id(&taken) }),
        json!({ "id": id(&taken), "token": preview["token"] }),
        json!({ "id": id(&taken), "mode": "files", "force": true }),
    ] {
        let nothing = call(&mut server, "restoreCheckpoint", params);
        assert_eq!(nothing, json!({ "outcomes": [] }));
    }
    assert_eq!(list(&mut server, json!({})), before);
    call(&mut server, "undoRestore", json!({}));
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    let again = json!({ "undoId": restored["undoId"] });
    let nothing = call(&mut server, "undoRestore", again);
    assert_eq!(nothing, json!({ "outcomes": [] }));
}

#[test]
fn an_undo_lists_later_changes_and_matches_its_preview() {
    let files = ["a", "b", "c", "d", "e"].map(|name| (name, "one\n"));
    let workspace = Workspace::new(&files);
    let mut server = Server::start(&workspace);
    let none = server.refused(
        "sightline/previewRestore",
        json!({ "id": "last", "undo": true }),
    );
    assert_eq!(none["data"]["kind"], "notFound");
    let taken = create(&mut server, json!({}));
    for name in ["a", "b", "c", "new"] {
        workspace.write(name, "two\n");
    }
    let restored = call(
        &mut server,
        "restoreCheckpoint",
        json!({ "id": id(&taken) }),
    );
    let undo_id = &restored["undoId"];
    // Two are as the restore left them, two are not; the restore did not change the others.
    workspace.write("b", "mine\n");
    fs::remove_file(workspace.path("c")).unwrap();
    workspace.write("d", "mine\n");
    workspace.write("later", "mine\n");
    let last = json!({ "id": "last", "undo": true });
    let preview = call(&mut server, "previewRestore", last.clone());
    assert_eq!(preview["undoId"], *undo_id);
    let paths = |of: &Value| -> Vec<String> {
        let all = of.as_array().unwrap();
        each(all, "path").into_iter().map(str::to_owned).collect()
    };
    assert_eq!(paths(&preview["changes"]), ["a", "new"], "{preview}");
    let conflicts = preview["conflicts"].as_array().unwrap();
    for (conflict, (path, how)) in conflicts.iter().zip([("b", "changed"), ("c", "deleted")]) {
        assert_eq!(conflict["path"], path);
        assert_eq!(conflict["reason"], format!("{how} after the restore"));
        assert_eq!(conflict["changedSince"], true);
    }
    assert_eq!(conflicts.len(), 2, "{preview}");
    // The same by its id.
    for params in [
        json!({ "id": undo_id, "undo": true }),
        json!({ "id": undo_id }),
    ] {
        let same = call(&mut server, "previewRestore", params);
        assert_eq!(same, preview);
    }
    // A restore of that checkpoint is not an undo.
    let whole = json!({ "id": undo_id, "undo": false });
    let whole = call(&mut server, "previewRestore", whole);
    assert_eq!(
        paths(&whole["changes"]),
        ["a", "b", "c", "d", "later", "new"]
    );
    let refused = server.refused(
        "sightline/previewRestore",
        json!({ "id": id(&taken), "undo": true }),
    );
    assert_eq!(refused["data"]["kind"], "invalidParams");

    workspace.write("b", "mine again\n");
    let with_token = json!({ "undoId": undo_id, "token": preview["token"] });
    let error = server.refused("sightline/undoRestore", with_token);
    assert_eq!(error["data"]["kind"], "conflict", "{error}");
    assert_eq!(read(&workspace, "a").unwrap(), "one\n", "nothing was done");
    let preview = call(&mut server, "previewRestore", last.clone());
    // Other work does not outdate the preview.
    workspace.write("d", "mine again\n");
    let undone = call(
        &mut server,
        "undoRestore",
        json!({ "token": preview["token"] }),
    );
    let done = [("a", "write", true), ("new", "write", true)];
    assert_eq!(outcomes(&undone), done);
    assert_eq!(undone["conflicts"], preview["conflicts"]);
    for (path, content) in [
        ("b", "mine again\n"),
        ("d", "mine again\n"),
        ("later", "mine\n"),
    ] {
        assert_eq!(read(&workspace, path).unwrap(), content, "{path}");
    }
    // An undo has an undo point too.
    call(&mut server, "undoRestore", json!({}));
    assert_eq!(read(&workspace, "a").unwrap(), "one\n");

    // Selected paths, with those that changed since.
    let paths = json!({ "undoId": undo_id, "paths": ["b", "c", "d"], "force": true });
    let undone = call(&mut server, "undoRestore", paths);
    let done = [("b", "write", true), ("c", "write", true)];
    assert_eq!(outcomes(&undone), done);
    assert_eq!(read(&workspace, "b").unwrap(), "two\n");
    assert_eq!(read(&workspace, "d").unwrap(), "mine again\n");
}

#[test]
fn single_paths_are_restored_and_only_they_are_undone() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("src/b.rs", "b\n")]);
    let mut server = Server::start(&workspace);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    workspace.write("src/b.rs", "changed\n");
    let params = json!({ "id": id(&taken), "paths": ["src"] });
    let restored = call(&mut server, "restoreCheckpoint", params);
    assert_eq!(outcomes(&restored), [("src/b.rs", "write", true)]);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    workspace.write("a.txt", "three\n");
    call(
        &mut server,
        "undoRestore",
        json!({ "undoId": restored["undoId"] }),
    );
    assert_eq!(read(&workspace, "src/b.rs").unwrap(), "changed\n");
    assert_eq!(read(&workspace, "a.txt").unwrap(), "three\n");
}

/// A server whose client supports edits; returns the edits it received.
fn editing(workspace: &Workspace, applies: bool) -> (Server, Arc<Mutex<Vec<Value>>>) {
    let mut params = workspace.initialize();
    params["capabilities"] = json!({ "workspace": {
        "applyEdit": applies, "workspaceEdit": { "documentChanges": true },
    } });
    let mut server = Server::initialized(params);
    let applied: Arc<Mutex<Vec<Value>>> = Arc::default();
    let sink = applied.clone();
    server.answer_with(move |method, params| {
        if method == "workspace/applyEdit" {
            sink.lock().unwrap().push(params["edit"].clone());
            return Some(json!({ "applied": true }));
        }
        Some(Value::Null)
    });
    (server, applied)
}

/// Opens `a.txt` and changes it without saving.
fn edit_unsaved(server: &mut Server, workspace: &Workspace, saved: &str) {
    let uri = workspace.uri("a.txt");
    server.open(&uri, saved);
    let change = json!({
        "textDocument": { "uri": uri, "version": 7 },
        "contentChanges": [{ "text": "unsaved work\n" }],
    });
    server.send_notification("textDocument/didChange", change);
}

#[test]
fn unsaved_text_is_kept_unless_forced_and_then_replaced_in_the_editor() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let (mut server, applied) = editing(&workspace, true);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    workspace.write("b.txt", "two\n");
    edit_unsaved(&mut server, &workspace, "two\n");
    let preview = call(&mut server, "previewRestore", json!({ "id": id(&taken) }));
    let changes = preview["changes"].as_array().unwrap();
    assert_eq!(each(changes, "path"), ["b.txt"]);
    assert_eq!(
        each(preview["conflicts"].as_array().unwrap(), "path"),
        ["a.txt"]
    );
    let restored = call(
        &mut server,
        "restoreCheckpoint",
        json!({ "id": id(&taken) }),
    );
    assert_eq!(outcomes(&restored), [("b.txt", "write", true)]);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    assert!(applied.lock().unwrap().is_empty());

    let forced = json!({ "id": id(&taken), "force": true });
    let restored = call(&mut server, "restoreCheckpoint", forced);
    assert_eq!(outcomes(&restored), [("a.txt", "write", true)]);
    assert_eq!(restored["outcomes"][0]["replacedUnsaved"], true);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "one\n");
    call(&mut server, "listCheckpoints", json!({}));
    let applied = applied.lock().unwrap();
    let change = &applied[0]["documentChanges"][0];
    let document = json!({ "uri": workspace.uri("a.txt"), "version": 7 });
    assert_eq!(change["textDocument"], document);
    assert_eq!(change["edits"][0]["newText"], "one\n");
    let start = json!({ "line": 0, "character": 0 });
    assert_eq!(change["edits"][0]["range"]["start"], start);
    drop(applied);

    // The document is still unsaved, so the undo needs force as well.
    let undone = call(&mut server, "undoRestore", json!({}));
    assert_eq!(outcomes(&undone), []);
    assert_eq!(undone["conflicts"][0]["unsaved"], true);
    call(&mut server, "undoRestore", json!({ "force": true }));
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    assert_eq!(read(&workspace, "b.txt").unwrap(), "one\n");
}

#[test]
fn text_that_the_editor_has_yet_to_read_again_is_not_unsaved() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (mut server, applied) = editing(&workspace, true);
    let taken = create(&mut server, json!({}));
    let uri = workspace.uri("a.txt");
    server.open(&uri, "one\n");
    workspace.write("a.txt", "two\n");
    let change = json!({
        "textDocument": { "uri": uri, "version": 2 },
        "contentChanges": [{ "text": "two\n" }],
    });
    server.send_notification("textDocument/didChange", change);
    let restore = json!({ "id": id(&taken) });
    let restored = call(&mut server, "restoreCheckpoint", restore);
    assert_eq!(outcomes(&restored), [("a.txt", "write", true)]);
    // The editor has not read the file again.
    let undone = call(&mut server, "undoRestore", json!({}));
    assert_eq!(outcomes(&undone), [("a.txt", "write", true)]);
    assert_eq!(undone["conflicts"], Value::Null);
    assert_ne!(undone["outcomes"][0]["replacedUnsaved"], true);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
    assert!(applied.lock().unwrap().is_empty());
}

#[test]
fn a_client_without_apply_edit_gets_the_files_to_reload() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (mut server, applied) = editing(&workspace, false);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    edit_unsaved(&mut server, &workspace, "two\n");
    let forced = json!({ "id": id(&taken), "force": true });
    call(&mut server, "restoreCheckpoint", forced);
    let shown = server.notified("window/showMessage").unwrap();
    let text = shown["message"].as_str().unwrap();
    let path = workspace.path("a.txt");
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(applied.lock().unwrap().is_empty());
}

#[test]
fn skipped_files_are_in_the_result() {
    let workspace = Workspace::new(&[
        (".clineignore", ""),
        ("a.txt", "one\n"),
        ("b.txt", "one\n"),
        ("c.txt", "one\n"),
        ("d.txt", "one\n"),
    ]);
    let (mut server, _) = editing(&workspace, true);
    let taken = create(&mut server, json!({}));
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        workspace.write(name, "two\n");
    }
    workspace.write(".gitignore", "/b.txt\n");
    workspace.write(".clineignore", "c.txt\n");
    edit_unsaved(&mut server, &workspace, "two\n");
    let params = json!({ "id": id(&taken), "paths": ["a.txt", "b.txt", "c.txt", "d.txt"] });
    let preview = call(&mut server, "previewRestore", params.clone());
    let restored = call(&mut server, "restoreCheckpoint", params);
    assert_eq!(restored["conflicts"], preview["conflicts"]);
    let conflicts = restored["conflicts"].as_array().unwrap();
    assert_eq!(each(conflicts, "path")[..2], ["a.txt", "b.txt"]);
    assert_eq!(conflicts[0]["uri"], workspace.uri("a.txt"));
    assert_eq!(conflicts.len(), 3, "{restored}");
    assert!(!restored.to_string().contains("c.txt"), "{restored}");
    assert_eq!(outcomes(&restored), [("d.txt", "write", true)]);
    // Its undo reverts what it changed and skips nothing.
    workspace.write("d.txt", &"x".repeat(30 * 1024 * 1024));
    let undone = call(&mut server, "undoRestore", json!({}));
    assert_eq!(undone["outcomes"], json!([]));
    let conflicts = undone["conflicts"].as_array().unwrap();
    assert!(each(conflicts, "path").contains(&"d.txt"), "{undone}");
    fs::remove_file(workspace.path("d.txt")).unwrap();
    let params = json!({ "id": id(&taken), "paths": ["d.txt"] });
    let restored = call(&mut server, "restoreCheckpoint", params);
    assert!(restored.get("conflicts").is_none(), "{restored}");
}

#[test]
fn text_unsaved_since_the_preview_stops_the_restore() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let (mut server, applied) = editing(&workspace, true);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    workspace.write("b.txt", "two\n");
    let preview = call(&mut server, "previewRestore", json!({ "id": id(&taken) }));
    edit_unsaved(&mut server, &workspace, "two\n");
    let with_token = json!({ "id": id(&taken), "token": preview["token"] });
    let error = server.refused("sightline/restoreCheckpoint", with_token);
    assert_eq!(error["data"]["kind"], "conflict", "{error}");
    assert_eq!(read(&workspace, "b.txt").unwrap(), "two\n");
    let preview = call(&mut server, "previewRestore", json!({ "id": id(&taken) }));
    let forced = json!({ "id": id(&taken), "token": preview["token"], "force": true });
    let restored = call(&mut server, "restoreCheckpoint", forced);
    assert_eq!(outcomes(&restored).len(), 2);
    call(&mut server, "listCheckpoints", json!({}));
    assert_eq!(applied.lock().unwrap().len(), 1);
}

#[test]
fn forced_restore_discards_unsaved_text_of_unchanged_files() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (mut server, applied) = editing(&workspace, true);
    let taken = create(&mut server, json!({}));
    edit_unsaved(&mut server, &workspace, "one\n");
    let preview = call(&mut server, "previewRestore", json!({ "id": id(&taken) }));
    let conflicts = preview["conflicts"].as_array().unwrap();
    assert_eq!(each(conflicts, "path"), ["a.txt"]);
    let forced = json!({ "id": id(&taken), "token": preview["token"], "force": true });
    let restored = call(&mut server, "restoreCheckpoint", forced);
    assert_eq!(outcomes(&restored), [("a.txt", "write", true)]);
    call(&mut server, "listCheckpoints", json!({}));
    let applied = applied.lock().unwrap();
    let change = &applied[0]["documentChanges"][0];
    assert_eq!(change["edits"][0]["newText"], "one\n");
}

#[test]
fn open_files_that_a_restore_changed_are_named() {
    let names: Vec<String> = (0..7).map(|n| format!("f{n}.txt")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "one\n")).collect();
    files.extend([
        (".clineignore", ""),
        ("secret.txt", "one\n"),
        ("same.txt", "one\n"),
    ]);
    let workspace = Workspace::new(&files);
    let mut server = Server::start(&workspace);
    let taken = create(&mut server, json!({}));
    workspace.write(".clineignore", "secret.txt\n");
    workspace.write("f0.txt", "two\n");
    workspace.write("new.txt", "two\n");
    workspace.write("closed.txt", "two\n");
    workspace.write("secret.txt", "two\n");
    for name in ["f0.txt", "new.txt", "secret.txt"] {
        server.open(&workspace.uri(name), "two\n");
    }
    server.open(&workspace.uri("same.txt"), "one\n");
    let paths = json!(["f0.txt", "new.txt", "closed.txt", "secret.txt", "same.txt"]);
    let params = json!({ "id": id(&taken), "paths": paths });
    call(&mut server, "restoreCheckpoint", params);
    let shown = server.notified("window/showMessage").unwrap();
    assert_eq!(shown["type"], 3);
    let text = "sightline: f0.txt, new.txt changed on disk by the restore; reload them if the editor does not";
    assert_eq!(shown["message"], text);
    // Long lists are abbreviated.
    for name in &names {
        workspace.write(name, "three\n");
        server.open(&workspace.uri(name), "three\n");
    }
    let params = json!({ "id": id(&taken), "paths": names });
    call(&mut server, "restoreCheckpoint", params);
    let shown = server.notified("window/showMessage").unwrap();
    let text = shown["message"].as_str().unwrap();
    assert!(
        text.starts_with("sightline: f0.txt, f1.txt, f2.txt, f3.txt, f4.txt and 2 more changed"),
        "{text}"
    );
}

/// The state after a restore was killed after writing `a.txt`.
pub(crate) fn interrupt(workspace: &Workspace, restoring: &str, undo: &str) {
    workspace.write("a.txt", "one\n");
    let projects = fs::read_dir(workspace.data().join("projects")).unwrap();
    let project = projects.map(|entry| entry.unwrap().path()).next().unwrap();
    let journal = json!({
        "version": 1, "restoring": restoring, "undo": undo, "paths": [], "leftAlone": [],
    });
    fs::write(project.join("state/journal.json"), journal.to_string()).unwrap();
}

#[test]
fn an_interrupted_restore_is_completed_before_it_is_read() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    let taken = create(&mut server, json!({}));
    for method in [
        "previewRestore",
        "diffCheckpoints",
        "listCheckpoints",
        "checkpointStats",
        "verifyCheckpoints",
        "createCheckpoint",
        "restoreCheckpoint",
        "pruneCheckpoints",
        "deleteTask",
    ] {
        workspace.write("a.txt", "two\n");
        workspace.write("b.txt", "two\n");
        let before = create(&mut server, json!({ "taskId": "t" }));
        interrupt(&workspace, id(&taken), id(&before));
        let params = json!({ "id": id(&taken), "from": id(&taken), "keep": 100, "taskId": "u" });
        let params = match method {
            "listCheckpoints" => json!({ "taskId": "t" }),
            "deleteTask" => {
                create(&mut server, json!({ "taskId": "u" }));
                interrupt(&workspace, id(&taken), id(&before));
                json!({ "taskId": "u" })
            }
            _ => params,
        };
        let result = call(&mut server, method, params);
        if let Some(found) = result.get("changes").or(result.get("files")) {
            assert!(*found == json!([]) || found.is_u64(), "{method}: {result}");
        }
        assert_eq!(read(&workspace, "b.txt").unwrap(), "one\n", "{method}");
        let shown = server.notified("window/showMessage").unwrap();
        let text = shown["message"].as_str().unwrap();
        assert!(text.contains("was completed"), "{text}");
    }
}

#[test]
fn a_newly_ignored_file_is_not_reported_as_deleted() {
    let workspace = Workspace::new(&[(".clineignore", ""), ("a.txt", "one\n")]);
    let mut server = Server::start(&workspace);
    let taken = create(&mut server, json!({}));
    workspace.write(".gitignore", "/a.txt\n");
    for contents in [false, true] {
        let params = json!({ "from": id(&taken), "paths": ["a.txt"], "contents": contents });
        let files = call(&mut server, "diffCheckpoints", params)["files"].clone();
        assert_eq!(files[0]["status"], "modified", "{files}");
        let why = files[0]["omitted"].as_str().unwrap();
        assert!(why.contains("ignored"), "{why}");
        assert!(files[0].get("before").is_none(), "{files}");
    }
}

/// No restore weakens the rules: of a state before them, of other rules, by a person or by an agent.
#[test]
fn restores_leave_access_rules_alone() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("plan.txt", "p\n"), ("pkg/b", "b\n")]);
    let mut server = Server::start(&workspace);
    let before = create(&mut server, json!({}));
    let rules = [
        (".clineignore", "plan.txt\nmore.txt\n"),
        ("pkg/.clineignore", "b\n"),
        (".sightline.toml", "[access]\noutsideWorkspace = \"deny\"\n"),
    ];
    for (path, text) in rules {
        workspace.write(path, "a-rule\n");
        workspace.write(path, text);
    }
    workspace.write("a.txt", "two\n");
    let with_rules = create(&mut server, json!({}));
    for checkpoint in [&before, &with_rules] {
        workspace.write("a.txt", "three\n");
        let restored = call(
            &mut server,
            "restoreCheckpoint",
            json!({ "id": id(checkpoint), "force": true }),
        );
        assert_eq!(outcomes(&restored), [("a.txt", "write", true)]);
        for (path, text) in rules {
            assert_eq!(read(&workspace, path).as_deref(), Some(text), "{path}");
        }
    }
}
