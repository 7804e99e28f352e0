//! Folders and links that are swapped during requests: nothing denied and nothing outside
//! the workspace is returned. The mechanism is tested in
//! `server/access/tests/it/races.rs`; this module tests all requests that return files
//! or their names.

#![cfg(target_os = "linux")]

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::harness::{Server, Workspace};

/// Rounds of all requests, for each swapped pair.
const ROUNDS: usize = 60;

/// Run more manually: `ROUNDS=100000 cargo test -p sightline --test e2e races`.
fn rounds() -> usize {
    let given = std::env::var("ROUNDS").ok();
    given.map_or(ROUNDS, |given| given.parse().unwrap())
}

/// A conversation in which this file was read.
fn messages(path: &str) -> Vec<Value> {
    let text = |role: &str, text: &str| json!({ "role": role, "content": [{ "type": "text", "text": text }] });
    let read = format!("[read_file for '{path}'] Result:\nnothing");
    let turn = |index: usize| text(["user", "assistant"][index % 2], &format!("turn {index}"));
    let mut messages: Vec<Value> = (0..30).map(turn).collect();
    messages[2] = text("user", &read);
    messages
}

/// Sends every request about files, for `folder` and the `f` in it.
fn ask_everything(server: &mut Server, folder: &str) -> Vec<(&'static str, Value)> {
    let path = format!("{folder}/f");
    let messages = messages(&path);
    let block = json!({ "includeFiles": true, "sections": ["files", "openTabs", "visibleFiles"] });
    let compacted = json!({ "messages": messages, "summary": "Well.", "retainFrom": 20 });
    let requests = [
        ("sightline/readFile", json!({ "path": path })),
        (
            "sightline/readFile",
            json!({ "path": path, "startLine": 1, "endLine": 1 }),
        ),
        ("sightline/listFiles", json!({ "path": folder })),
        ("sightline/listFiles", json!({})),
        ("sightline/environmentDetails", block),
        (
            "sightline/planCompaction",
            json!({ "messages": messages, "model": "gpt-4o" }),
        ),
        ("sightline/applyCompaction", compacted),
    ];
    requests
        .into_iter()
        .map(|(method, params)| (method, server.answer(method, params)))
        .collect()
}

#[test]
fn swapped_folders_and_links_reveal_nothing() {
    let workspace = Workspace::new(&[
        (".clineignore", "denied/\n"),
        ("denied/f", "SECRET"),
        ("denied/secret-name", ""),
        ("d/f", "public"),
        ("o/f", "public"),
    ]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "SECRET").unwrap();
    fs::write(outside.path().join("secret-name"), "").unwrap();
    let link = |to: &std::path::Path, from: &str| {
        std::os::unix::fs::symlink(to, workspace.path(from)).unwrap();
    };
    link("denied".as_ref(), "to-denied");
    link(outside.path(), "to-outside");
    let mut server = Server::start(&workspace);
    let tabs: Vec<Value> = ["d/f", "o/f"]
        .iter()
        .map(|name| json!({ "uri": workspace.uri(name) }))
        .collect();
    server.send_notification("sightline/didChangeTabs", json!({ "tabs": tabs }));

    let mut shown = 0;
    for (folder, to) in [("d", "to-denied"), ("o", "to-outside")] {
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            struct Done<'a>(&'a AtomicBool);
            impl Drop for Done<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Relaxed);
                }
            }
            // Also if an assertion fails.
            let _done = Done(&done);
            let (one, other) = (workspace.path(folder), workspace.path(to));
            let done = &done;
            threads.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for round in 0..rounds() {
                for (method, answer) in ask_everything(&mut server, folder) {
                    let answer = answer.to_string();
                    let is_shown = answer.contains("SECRET") || answer.contains("secret-name");
                    assert!(!is_shown, "{method}, round {round}: {answer}");
                    shown += usize::from(answer.contains("public"));
                }
            }
        });
    }
    assert!(shown > 0, "nothing was ever answered");
    assert_eq!(server.end(), 0);
}
