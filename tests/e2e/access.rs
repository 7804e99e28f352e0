//! Access as seen by a client: verdicts, refusals, changing rules, changing roots.

#[cfg(target_os = "linux")]
mod exec;
mod races;
mod rule_files;
mod secrets;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sightline_base::path::AbsPath;

use crate::{
    harness::{Server, Workspace, uri},
    ipc::run,
};

fn verdicts(server: &mut Server, paths: Value) -> Vec<String> {
    let result = server.call("sightline/checkAccess", json!({ "paths": paths }));
    let verdicts = result["paths"].as_array().unwrap().iter();
    verdicts
        .map(|verdict| verdict["access"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn verdicts_name_the_rule_and_keep_the_order() {
    let workspace = Workspace::new(&[
        (".clineignore", "# secrets\n.env*\n!include more.rules\n"),
        ("more.rules", "\n/private/\n"),
        ("private/x", "x"),
    ]);
    let mut server = Server::start(&workspace);
    let asked = json!([
        "src/a",
        ".env.local",
        "private/x",
        "../other",
        "untitled:Untitled-1",
        "a\u{0}b",
        ".clineignore"
    ]);
    let result = server.call("sightline/checkAccess", json!({ "paths": asked }));
    let got = result["paths"].as_array().unwrap();
    assert_eq!(got.len(), 7);
    for (verdict, path) in got.iter().zip(asked.as_array().unwrap()) {
        assert_eq!(&verdict["path"], path);
    }
    assert_eq!(got[0]["access"], "allowed");
    let rule = json!({ "source": ".clineignore", "line": 2, "pattern": ".env*" });
    assert_eq!(got[1]["rule"], rule);
    let rule = json!({ "source": "more.rules", "line": 2, "pattern": "/private/" });
    assert_eq!(got[2]["rule"], rule);
    assert_eq!(got[3]["access"], "outside");
    for senseless in &got[4..6] {
        assert_eq!(senseless["access"], "denied");
        assert!(senseless["reason"].is_string(), "{senseless}");
    }
    assert_eq!(got[6]["access"], "denied");
    assert_eq!(server.end(), 0);
}

/// One question has one answer, also for a file that the rules of a folder below the root deny.
#[test]
fn rules_of_a_folder_apply_to_requests_and_the_command_line() {
    let workspace = Workspace::new(&[
        ("pkg/.clineignore", "secret.txt\n"),
        ("pkg/secret.txt", "TOPSECRET\n"),
        ("pkg/open.txt", "fine\n"),
    ]);
    let mut server = Server::start(&workspace);
    for (path, text) in [
        ("pkg/secret.txt", "TOPSECRET\n"),
        ("pkg/open.txt", "fine\n"),
    ] {
        server.send_notification(
            "textDocument/didOpen",
            json!({ "textDocument": {
                "uri": workspace.uri(path), "languageId": "plaintext", "version": 1, "text": text,
            }}),
        );
        let range = json!({
            "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 3 },
        });
        let diagnostics = json!([{ "range": range, "message": "TOPSECRET" }]);
        let params = json!({ "uri": workspace.uri(path), "diagnostics": diagnostics });
        if path.contains("secret") {
            server.send_notification("sightline/didChangeDiagnostics", params);
        }
    }
    let tab = |path: &str| json!({ "uri": workspace.uri(path) });
    let tabs = json!({ "tabs": [tab("pkg/secret.txt"), tab("pkg/open.txt")] });
    server.send_notification("sightline/didChangeTabs", tabs);
    let editor = json!({ "uri": workspace.uri("pkg/secret.txt"), "isActive": true });
    let visible = json!({ "editors": [editor] });
    server.send_notification("sightline/didChangeVisibleEditors", visible);
    let first = server.call("sightline/createCheckpoint", json!({}));
    assert_eq!(
        verdicts(&mut server, json!(["pkg/secret.txt", "pkg/open.txt"])),
        ["denied", "allowed"]
    );
    let error = server.refused("sightline/readFile", json!({ "path": "pkg/secret.txt" }));
    assert_eq!(error["data"]["rule"]["source"], "pkg/.clineignore");
    for (method, params) in [
        ("sightline/listFiles", json!({})),
        (
            "sightline/environmentDetails",
            json!({ "includeFiles": true }),
        ),
        ("sightline/selection", json!({})),
        ("sightline/diagnostics", json!({})),
    ] {
        let result = server.call(method, params).to_string();
        let is_named = result.contains("secret.txt") || result.contains("TOPSECRET");
        assert!(!is_named, "{method}: {result}");
    }
    workspace.write("pkg/secret.txt", "TOPSECRET too\n");
    workspace.write("pkg/open.txt", "changed\n");
    let diff = json!({ "from": first["id"], "patch": true });
    let diff = server.call("sightline/diffCheckpoints", diff).to_string();
    assert!(
        diff.contains("open.txt") && !diff.contains("secret"),
        "{diff}"
    );
    let command = json!({ "command": "grep -r x ." });
    let result = server.call("sightline/checkAccess", command);
    assert_eq!(result["command"]["allowed"], false);
    assert_eq!(server.end(), 0);
    for arguments in [
        ["access", "pkg/secret.txt"].as_slice(),
        &["access", "--command", "cat pkg/secret.txt"],
        &["read", "pkg/secret.txt"],
    ] {
        let (code, text, _) = run(&workspace, arguments);
        assert!(
            code == 1 && !text.contains("TOPSECRET"),
            "{arguments:?}: {code} {text}"
        );
    }
}

#[test]
fn commands_are_checked_by_what_they_read() {
    let workspace = Workspace::new(&[(".clineignore", "secret.txt\n"), ("secret.txt", "x")]);
    let mut server = Server::start(&workspace);
    for (command, allowed) in [
        ("cat README.md", true),
        ("cat secret.txt", false),
        ("sudo /bin/cat 'secret.txt' | head", false),
        ("true && (cd . ; tac < secret.txt)", false),
        ("echo $(cat sec*.txt)", false),
        ("Get-Content -Path secret.txt", false),
        ("echo secret.txt", true),
    ] {
        let result = server.call("sightline/checkAccess", json!({ "command": command }));
        assert_eq!(result["command"]["allowed"], allowed, "{command}: {result}");
        let denied = result["command"]["denied"].as_array().unwrap();
        assert_eq!(denied.is_empty(), allowed, "{command}: {result}");
        for operand in denied {
            assert!(
                operand["reason"]
                    .as_str()
                    .is_some_and(|reason| !reason.is_empty())
            );
        }
    }
    assert_eq!(server.end(), 0);
}

#[test]
fn new_rules_hold_for_the_very_next_request() {
    let workspace = Workspace::new(&[(".clineignore", "aaa\n"), ("aaa", "1"), ("bbb", "2")]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["notifications"] = json!(true);
    let mut server = Server::initialized(params);
    for round in 0..4 {
        // The same length each time, often within one tick of the clock.
        let (denied, allowed) = if round % 2 == 0 {
            ("aaa", "bbb")
        } else {
            ("bbb", "aaa")
        };
        workspace.write(".clineignore", &format!("{denied}\n"));
        let error = server.refused("sightline/readFile", json!({ "path": denied }));
        assert_eq!(error["data"]["kind"], "accessDenied", "round {round}");
        assert_eq!(error["data"]["rule"]["pattern"], denied);
        // A removed rule stays in force a little longer.
        until_allowed(&mut server, allowed);
        server.call("sightline/readFile", json!({ "path": allowed }));
    }
    let changed = server.notified("sightline/didChangeAccessRules").unwrap();
    assert_eq!(changed["root"], uri(&workspace.root()));
    assert_eq!(server.end(), 0);
}

fn until_allowed(server: &mut Server, path: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    while verdicts(server, json!([path])) != ["allowed"] {
        assert!(Instant::now() < until, "{path} stays denied");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn changed_rules_are_notified_without_a_request() {
    let workspace = Workspace::new(&[(".clineignore", "a\n")]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["notifications"] = json!(true);
    let mut server = Server::initialized(params);
    server.call("sightline/checkAccess", json!({}));
    // Saved as editors do it: a new file renamed over the old one.
    workspace.write("rules.tmp", "a\nb\n");
    std::fs::rename(workspace.path("rules.tmp"), workspace.path(".clineignore")).unwrap();
    server.notified("sightline/didChangeAccessRules").unwrap();
    server.notified("sightline/didChangeContext").unwrap();
    assert_eq!(server.end(), 0);
}

#[test]
fn deleted_rules_end_with_a_notification() {
    let workspace = Workspace::new(&[(".clineignore", "a\n")]);
    let mut params = workspace.initialize();
    params["initializationOptions"]["notifications"] = json!(true);
    let mut server = Server::initialized(params);
    assert_eq!(verdicts(&mut server, json!(["a"])), ["denied"]);
    std::fs::remove_file(workspace.path(".clineignore")).unwrap();
    assert_eq!(verdicts(&mut server, json!(["a"])), ["denied"]);
    server.notified("sightline/didChangeAccessRules").unwrap();
    assert_eq!(verdicts(&mut server, json!(["a"])), ["allowed"]);
    assert_eq!(server.end(), 0);
}

#[cfg(unix)]
#[test]
fn links_are_checked_by_their_target() {
    let workspace = Workspace::new(&[
        (".clineignore", "secrets/\n"),
        ("secrets/key", "k"),
        ("a", "1"),
    ]);
    let outside = workspace.root().with_file_name("outside");
    std::fs::write(&outside, "o").unwrap();
    let link = |from: &str, to: &std::path::Path| {
        std::os::unix::fs::symlink(to, workspace.path(from)).unwrap();
    };
    link("innocent", &workspace.path("secrets"));
    link("out", &outside);
    link("loop", &workspace.path("loop"));
    let mut server = Server::start(&workspace);
    let asked = json!(["innocent/key", "out", "a", "secrets/../a", "innocent/new"]);
    let expected = ["denied", "outside", "allowed", "allowed", "denied"];
    assert_eq!(verdicts(&mut server, asked), expected);
    for path in ["innocent/key", "out", "loop"] {
        server.refused("sightline/readFile", json!({ "path": path }));
    }
    let listed = server.call("sightline/listFiles", json!({}));
    assert!(!listed.to_string().contains("secrets"), "{listed}");
    assert_eq!(server.end(), 0);
}

#[test]
fn each_root_has_its_own_rules_and_roots_come_and_go() {
    let workspace = Workspace::new(&[(".clineignore", "one\n"), ("one", "1"), ("two", "2")]);
    let other = workspace.root().with_file_name("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join(".clineignore"), "two\n").unwrap();
    std::fs::write(other.join("one"), "3").unwrap();
    std::fs::write(other.join("two"), "4").unwrap();
    let paths = json!([
        workspace.path("one"),
        workspace.path("two"),
        other.join("one"),
        other.join("two")
    ]);
    let mut server = Server::start(&workspace);
    let alone = ["denied", "allowed", "outside", "denied"];
    assert_eq!(verdicts(&mut server, paths.clone()), alone);

    let folder = json!({ "uri": uri(&other), "name": "other" });
    let change =
        |added: Value, removed: Value| json!({ "event": { "added": added, "removed": removed } });
    server.send_notification(
        "workspace/didChangeWorkspaceFolders",
        change(json!([folder]), json!([])),
    );
    let both = ["denied", "allowed", "allowed", "denied"];
    assert_eq!(verdicts(&mut server, paths.clone()), both);
    server.open(&uri(&other.join("one")), "3");
    let text = server.block(json!({}));
    assert!(text.contains("# Workspace Roots\n- shop: "), "{text}");
    assert!(text.contains("Primary workspace: shop"), "{text}");
    assert!(text.contains("\n../other/one\n"), "{text}");

    server.send_notification(
        "workspace/didChangeWorkspaceFolders",
        change(json!([]), json!([folder])),
    );
    assert_eq!(verdicts(&mut server, paths), alone);
    let text = server.block(json!({}));
    assert!(!text.contains("other"), "{text}");
    assert_eq!(server.end(), 0);
}

/// Opens a single file without a folder: the file is accessible, its neighbours are not.
#[test]
fn without_a_folder_only_open_files_are_accessible() {
    let workspace = Workspace::new(&[
        (".clineignore", "key\n"),
        ("a.txt", "a"),
        ("b.txt", "b"),
        ("key", "k"),
    ]);
    let mut params = workspace.initialize();
    params["rootUri"] = Value::Null;
    params["workspaceFolders"] = Value::Null;
    let mut server = Server::initialized(params);
    server.open("untitled:Untitled-1", "new");
    server.open("file://", "no name");
    assert!(
        server
            .block(json!({ "includeFiles": true }))
            .contains("(No open tabs)")
    );
    server.open(&workspace.uri("a.txt"), "a");
    server.open(&workspace.uri("key"), "k");
    let a = AbsPath::new(&workspace.path("a.txt")).unwrap().display();
    let text = server.block(json!({ "includeFiles": true }));
    assert!(text.contains(&a) && !text.contains("/key"), "{text}");
    assert_eq!(
        server.call("sightline/readFile", json!({ "path": a }))["text"],
        "a"
    );
    for path in [workspace.path("b.txt"), workspace.path("key")] {
        let error = server.refused("sightline/readFile", json!({ "path": path }));
        assert_eq!(error["data"]["kind"], "accessDenied");
    }
    let error = server.refused("sightline/readFile", json!({ "path": "a.txt" }));
    assert_eq!(error["data"]["kind"], "invalidParams");
    server.refused("sightline/listFiles", json!({}));
    assert_eq!(server.end(), 0);
}

/// Without a folder, tabs are checked like opened files.
#[test]
fn without_a_folder_tabs_are_checked_by_the_rules_beside_them() {
    let workspace = Workspace::new(&[(".clineignore", "key\n"), ("a.txt", "a"), ("key", "k")]);
    let mut params = workspace.initialize();
    params["rootUri"] = Value::Null;
    params["workspaceFolders"] = Value::Null;
    let mut server = Server::initialized(params);
    let tab = |name: &str| json!({ "uri": workspace.uri(name) });
    let tabs = json!({ "tabs": [tab("key"), tab("a.txt"), tab(".clineignore")] });
    server.send_notification("sightline/didChangeTabs", tabs);
    let text = server.block(json!({}));
    assert!(text.contains("/a.txt"), "{text}");
    assert!(
        !text.contains("/key") && !text.contains(".clineignore"),
        "{text}"
    );
    assert_eq!(server.end(), 0);
}

/// An editor keeps the text of a file that it opened through a link.
#[cfg(unix)]
#[test]
fn a_document_is_checked_by_the_origin_of_its_text() {
    let workspace = Workspace::new(&[
        (".clineignore", "private/\n/by-name\n"),
        ("private/key", "SECRET"),
        ("a.txt", "public"),
    ]);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x"), "SECRET").unwrap();
    let link = |to: &std::path::Path, from: &str| {
        let from = workspace.path(from);
        let _ = std::fs::remove_file(&from);
        std::os::unix::fs::symlink(to, from).unwrap();
    };
    // To a denied file, through a denied folder, through a denied link, and out of the
    // workspace.
    link("private/key".as_ref(), "to-key");
    link("private".as_ref(), "folder");
    link("a.txt".as_ref(), "by-name");
    link("by-name".as_ref(), "by-link");
    link(&outside.path().join("x"), "out");
    let names = ["to-key", "folder/key", "by-link", "out"];
    let mut server = Server::start(&workspace);
    let dirty = |server: &mut Server, name: &str| {
        let uri = workspace.uri(name);
        server.open(&uri, "SECRET\n");
        let change = json!({
            "textDocument": { "uri": uri, "version": 2 },
            "contentChanges": [{ "text": "SECRET, changed\n" }],
        });
        server.send_notification("textDocument/didChange", change);
    };
    names.iter().for_each(|name| dirty(&mut server, name));
    let open = |name: &&str| json!({ "uri": workspace.uri(name) });
    let open: Vec<Value> = names.iter().chain(&["a.txt"]).map(open).collect();
    server.send_notification("sightline/didChangeTabs", json!({ "tabs": open }));
    server.send_notification(
        "sightline/didChangeVisibleEditors",
        json!({ "editors": open }),
    );

    let refused = |server: &mut Server, when: &str| {
        for name in names {
            let error = server.refused("sightline/readFile", json!({ "path": name }));
            assert_eq!(
                error["data"]["kind"], "accessDenied",
                "{name} {when}: {error}"
            );
        }
        let sections = json!(["visibleFiles", "openTabs", "unsavedFiles"]);
        let text = server.block(json!({ "sections": sections }));
        assert!(text.contains("\na.txt\n"), "{text}");
        for name in names {
            assert!(!text.contains(name), "{name} {when}: {text}");
        }
    };
    refused(&mut server, "as opened");
    for name in ["to-key", "folder", "by-link", "out"] {
        std::fs::remove_file(workspace.path(name)).unwrap();
    }
    refused(&mut server, "without the link");
    workspace.write("folder/key", "public");
    for name in ["to-key", "by-link", "out"] {
        link("a.txt".as_ref(), name);
    }
    refused(&mut server, "with the link elsewhere");
    // Reopening a document reads its current content.
    for name in names {
        let closed = json!({ "textDocument": { "uri": workspace.uri(name) } });
        server.send_notification("textDocument/didClose", closed);
        server.open(&workspace.uri(name), "public");
        let read = server.call("sightline/readFile", json!({ "path": name }));
        assert_eq!(read["text"], "public", "{name}");
    }
    assert_eq!(server.end(), 0);
}

#[cfg(unix)]
#[test]
fn lists_check_links_by_their_target() {
    let workspace = Workspace::new(&[
        (".clineignore", "secrets/\n"),
        ("secrets/key", "k"),
        ("a", "1"),
    ]);
    let link = |to: &str, from: &str| {
        std::os::unix::fs::symlink(to, workspace.path(from)).unwrap();
    };
    link("secrets", "inner");
    link("secrets/key", "file");
    link("/etc", "out");
    link("a", "fine");
    let mut server = Server::start(&workspace);
    let listed = server.call("sightline/listFiles", json!({}));
    let entries = listed["entries"].as_array().unwrap().iter();
    let paths: Vec<&str> = entries
        .map(|entry| entry["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["a", "fine"]);
    assert_eq!(server.end(), 0);
}

/// A root inside another one, given through a link: the outer rules apply in lists.
#[cfg(unix)]
#[test]
fn a_root_behind_a_link_keeps_the_outer_rules() {
    let workspace = Workspace::new(&[
        (".clineignore", "*.env\n"),
        ("pub/k.env", "k"),
        ("pub/a", "1"),
    ]);
    let link = workspace.root().with_file_name("link");
    std::os::unix::fs::symlink(workspace.path("pub"), &link).unwrap();
    let mut params = workspace.initialize();
    params["workspaceFolders"] = json!([
        { "uri": uri(&link), "name": "link" },
        { "uri": uri(&workspace.root()), "name": "shop" },
    ]);
    let mut server = Server::initialized(params);
    let listed = server.call("sightline/listFiles", json!({ "path": link }));
    assert!(!listed.to_string().contains("k.env"), "{listed}");
    assert!(listed.to_string().contains("\"a\""), "{listed}");
    assert_eq!(server.end(), 0);
}
