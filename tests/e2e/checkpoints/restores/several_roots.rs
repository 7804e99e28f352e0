//! Restores of several roots.

use super::*;

#[test]
fn several_roots_are_restored_atomically() {
    let workspace = Workspace::new(&[("a.txt", "one\n"), ("src/x", "shop\n")]);
    let (other, params) = second_root(&workspace, "src/x");
    let mut server = Server::initialized(params);
    let taken = create(&mut server, json!({}));
    workspace.write("src/x", "changed\n");
    fs::write(other.join("src/x"), "changed\n").unwrap();
    // One root alone.
    let preview = call(&mut server, "previewRestore", json!({ "id": id(&taken) }));
    assert_eq!(preview["changes"].as_array().unwrap().len(), 1);

    let all = json!({ "id": id(&taken), "allRoots": true });
    let preview = call(&mut server, "previewRestore", all.clone());
    let changes = preview["changes"].as_array().unwrap();
    assert_eq!(each(changes, "path"), ["src/x", "../api/src/x"]);
    let mut with_token = all.clone();
    with_token["token"] = preview["token"].clone();
    fs::write(other.join("src/x"), "changed again\n").unwrap();
    fs::write(other.join("more"), "more\n").unwrap();
    let error = server.refused("sightline/restoreCheckpoint", with_token);
    assert_eq!(error["data"]["kind"], "conflict", "{error}");
    assert_eq!(
        read(&workspace, "src/x").unwrap(),
        "changed\n",
        "nothing was done"
    );

    let restored = call(&mut server, "restoreCheckpoint", all);
    assert_eq!(outcomes(&restored).len(), 3, "{restored}");
    assert_eq!(read(&workspace, "src/x").unwrap(), "shop\n");
    assert_eq!(fs::read_to_string(other.join("src/x")).unwrap(), "api\n");
    // Undone together, by any of its undo points.
    let listed = list(&mut server, json!({ "root": "api", "limit": 1 }));
    let seen = json!({ "id": id(&listed[0]), "undo": true });
    let preview = call(&mut server, "previewRestore", seen);
    assert_eq!(preview["changes"].as_array().unwrap().len(), 3, "{preview}");
    let stale = json!({ "undoId": id(&listed[0]), "token": "stale" });
    let error = server.refused("sightline/undoRestore", stale);
    assert_eq!(error["data"]["kind"], "conflict", "{error}");
    let undo = json!({ "undoId": id(&listed[0]), "token": preview["token"] });
    call(&mut server, "undoRestore", undo);
    assert_eq!(read(&workspace, "src/x").unwrap(), "changed\n");
    let text = fs::read_to_string(other.join("src/x")).unwrap();
    assert_eq!(text, "changed again\n");
    assert!(other.join("more").exists());
}

#[test]
fn roots_that_belong_together_are_not_restored_in_part() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (other, params) = second_root(&workspace, "src/x");
    let mut server = Server::initialized(params);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    let all = json!({ "id": id(&taken), "allRoots": true });
    let restored = call(&mut server, "restoreCheckpoint", all.clone());
    workspace.write("a.txt", "three\n");
    let folder = json!([{ "uri": uri(&other), "name": "api" }]);
    let closed = json!({ "event": { "added": [], "removed": folder } });
    server.send_notification("workspace/didChangeWorkspaceFolders", closed);
    let undo = json!({ "undoId": restored["undoId"] });
    for (method, params) in [
        ("previewRestore", &all),
        ("restoreCheckpoint", &all),
        ("undoRestore", &undo),
    ] {
        let error = server.refused(&format!("sightline/{method}"), params.clone());
        assert_eq!(error["data"]["kind"], "conflict", "{method}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&uri(&other)), "{message}");
    }
    assert_eq!(read(&workspace, "a.txt").unwrap(), "three\n");
    call(
        &mut server,
        "restoreCheckpoint",
        json!({ "id": id(&taken) }),
    );
    assert_eq!(read(&workspace, "a.txt").unwrap(), "one\n");
    // Once it is open again, they are restored together.
    let opened = json!({ "event": { "added": folder, "removed": [] } });
    server.send_notification("workspace/didChangeWorkspaceFolders", opened);
    call(&mut server, "undoRestore", undo);
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
}

#[cfg(unix)]
#[test]
fn if_one_root_fails_none_is_restored() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let (other, params) = second_root(&workspace, "src/x");
    let mut server = Server::initialized(params);
    let taken = create(&mut server, json!({}));
    workspace.write("a.txt", "two\n");
    fs::write(other.join("src/x"), "two\n").unwrap();
    // Without an undo point, there is no restore.
    workspace.break_store("api");
    let all = json!({ "id": id(&taken), "allRoots": true });
    let error = server.refused("sightline/restoreCheckpoint", all);
    assert!(
        error["message"].as_str().unwrap().contains("api"),
        "{error}"
    );
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n", "{error}");
}

#[test]
fn a_root_inside_another_is_restored_once() {
    let workspace = Workspace::new(&[
        (".gitignore", "/apart\n"),
        ("a.txt", "one\n"),
        ("inner/x.txt", "one\n"),
        ("apart/y.txt", "one\n"),
    ]);
    let mut params = workspace.initialize();
    params["workspaceFolders"] = json!([
        { "uri": workspace.uri("inner"), "name": "inner" },
        { "uri": workspace.uri(""), "name": "shop" },
        { "uri": workspace.uri("apart"), "name": "apart" },
    ]);
    let mut server = Server::initialized(params);
    let taken = create(&mut server, json!({}));
    for name in ["a.txt", "inner/x.txt", "apart/y.txt"] {
        workspace.write(name, "two\n");
    }
    let all = json!({ "id": id(&taken), "allRoots": true });
    let preview = call(&mut server, "previewRestore", all.clone());
    let mut uris = each(preview["changes"].as_array().unwrap(), "uri");
    uris.sort_unstable();
    let expected = ["a.txt", "apart/y.txt", "inner/x.txt"].map(|name| workspace.uri(name));
    assert_eq!(uris, expected);
    let mut with_token = all;
    with_token["token"] = preview["token"].clone();
    let restored = call(&mut server, "restoreCheckpoint", with_token);
    assert_eq!(outcomes(&restored).len(), 3);
    for name in ["a.txt", "inner/x.txt", "apart/y.txt"] {
        assert_eq!(read(&workspace, name).unwrap(), "one\n", "{name}");
    }
    call(&mut server, "undoRestore", json!({}));
    for name in ["a.txt", "inner/x.txt", "apart/y.txt"] {
        assert_eq!(read(&workspace, name).unwrap(), "two\n", "{name}");
    }
    // Paths in the inner root are restored from its own checkpoint.
    let paths =
        json!({ "id": id(&taken), "allRoots": true, "paths": [workspace.uri("inner/x.txt")] });
    let restored = call(&mut server, "restoreCheckpoint", paths);
    assert_eq!(outcomes(&restored).len(), 1);
    assert_eq!(read(&workspace, "inner/x.txt").unwrap(), "one\n");
    assert_eq!(read(&workspace, "a.txt").unwrap(), "two\n");
}

#[test]
fn a_stored_group_is_restored_and_undone() {
    let workspace = Workspace::new(&[("src/main.rs", "mine\n")]);
    let (other, params) = second_root(&workspace, "notes.md");
    let mut server = Server::initialized(params.clone());
    create(&mut server, json!({}));
    server.end();
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/store-groups.tar");
    for project in fs::read_dir(workspace.data().join("projects")).unwrap() {
        let project = project.unwrap().path();
        let is_other = project
            .file_name()
            .unwrap()
            .as_encoded_bytes()
            .starts_with(b"api-");
        fs::remove_dir_all(&project).unwrap();
        fs::create_dir(&project).unwrap();
        let mut tar = std::process::Command::new("tar");
        tar.args(["--strip-components=1", "-xf"]).arg(&fixture);
        tar.arg("-C")
            .arg(&project)
            .arg(if is_other { "lib" } else { "shop" });
        assert!(tar.status().unwrap().success());
    }
    let mut server = Server::initialized(params);
    let listed = list(&mut server, json!({}));
    let together: Vec<&Value> = listed
        .iter()
        .filter(|one| one["label"] == "together")
        .collect();
    assert_eq!(together.len(), 2);
    assert_eq!(together[0]["group"].as_array().unwrap().len(), 2);
    let params = json!({ "id": id(together[1]), "allRoots": true });
    let preview = call(&mut server, "previewRestore", params.clone());
    assert_eq!(preview["token"].as_str().unwrap().split('.').count(), 2);
    let restored = call(&mut server, "restoreCheckpoint", params);
    let restored_main = "fn main() { println!(\"2\"); }\n";
    assert_eq!(read(&workspace, "src/main.rs").unwrap(), restored_main);
    let lib = |name: &str| fs::read_to_string(other.join(name)).unwrap();
    assert_eq!(
        (lib("lib.rs"), lib("notes.md")),
        ("pub fn lib() {}\n".into(), "one\n".into())
    );
    call(
        &mut server,
        "undoRestore",
        json!({ "undoId": restored["undoId"] }),
    );
    assert_eq!(read(&workspace, "src/main.rs").unwrap(), "mine\n");
    assert_eq!(lib("notes.md"), "api\n");
    let verified = server.call("sightline/verifyCheckpoints", json!({}));
    assert_eq!(verified["ok"], true, "{verified}");
}
