//! Rules of folders below the workspace folder.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::json;

use super::{Client, Workspace};

const FILES: &[(&str, &str)] = &[
    ("sub/.clineignore", "hid.txt\n"),
    ("sub/hid.txt", "SECRET\n"),
    ("sub/ok.txt", "fine\n"),
];

#[test]
fn they_apply_to_all_tools() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::open(&workspace, &[]);
    client.text("checkpoint_create", json!({}));
    workspace.write("sub/hid.txt", "SECRET too\n");
    workspace.write("sub/ok.txt", "changed\n");
    for (tool, arguments) in [
        ("read_file", json!({ "path": "sub/hid.txt" })),
        ("count_tokens", json!({ "path": "sub/hid.txt" })),
        (
            "check_access",
            json!({ "paths": ["sub/ok.txt", "sub/hid.txt"] }),
        ),
        ("checkpoint_diff", json!({ "from": "last" })),
        (
            "checkpoint_diff",
            json!({ "from": "last", "paths": ["sub/hid.txt"] }),
        ),
    ] {
        let (text, _) = client.call(tool, arguments);
        assert!(!text.contains("SECRET"), "{tool}: {text}");
        match tool {
            "checkpoint_diff" => assert!(!text.contains("hid.txt"), "{text}"),
            _ => assert!(text.contains(".clineignore"), "{tool}: {text}"),
        }
    }
    let diff = client.text("checkpoint_diff", json!({ "from": "last" }));
    assert!(diff.contains("+changed"), "{diff}");
    let read = client.text("read_file", json!({ "path": "sub/ok.txt" }));
    assert!(read.contains("changed"), "{read}");
}

#[test]
fn a_denied_command_comes_with_one_to_run() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::open(&workspace, &[]);
    let text = client.text("check_access", json!({ "command": "grep -rn x sub" }));
    let (_, instead) = text.split_once("Run instead: ").expect(&text);
    assert_eq!(instead, "grep --exclude=hid.txt -rn x sub");
    let text = client.text("check_access", json!({ "command": instead }));
    assert_eq!(text, "The command is allowed.");
}

/// Editors truncate a file when they save it, or delete it.
#[test]
fn they_stay_in_force_while_their_file_is_saved() {
    let workspace = Workspace::new(FILES);
    let mut client = Client::open(&workspace, &[]);
    let mut read = || client.call("read_file", json!({ "path": "sub/hid.txt" })).0;
    assert!(!read().contains("SECRET"));
    let rules = workspace.path("sub/.clineignore");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                fs::write(&rules, "").unwrap();
                fs::write(&rules, "hid.txt\n").unwrap();
                fs::remove_file(&rules).unwrap();
                fs::write(&rules, "hid.txt\n").unwrap();
            }
        });
        let leaks = (0..500).filter(|_| read().contains("SECRET")).count();
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(leaks, 0);
    });
}

#[cfg(unix)]
#[test]
fn what_is_read_was_opened_by_them() {
    use std::os::unix::fs::symlink;
    let workspace = Workspace::new(FILES);
    let mut client = Client::open(&workspace, &[]);
    let (link, new) = (workspace.path("sub/link"), workspace.path("sub/new"));
    symlink("ok.txt", &link).unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for target in ["hid.txt", "ok.txt"] {
                    symlink(target, &new).unwrap();
                    fs::rename(&new, &link).unwrap();
                }
            }
        });
        let mut read = || client.call("read_file", json!({ "path": "sub/link" })).0;
        let leaks = (0..500).filter(|_| read().contains("SECRET")).count();
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(leaks, 0);
    });
}
