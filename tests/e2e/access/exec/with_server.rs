//! `sightline exec` while a server runs in the folder, which keeps the list of what is denied.

use std::{fs, process::Command};

use serde_json::json;
use sightline_testing::git;

use super::{SECRET, can_hide, exec, text, workspace};
use crate::harness::Server;

#[test]
fn a_running_server_knows_what_is_denied() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let data = workspace.path("home/xdg");
    fs::create_dir(&data).unwrap();
    std::os::unix::fs::symlink(workspace.data(), data.join("sightline")).unwrap();
    let mut server = Server::start(&workspace);
    let line = |line: &str| {
        let mut command = exec(&workspace);
        command.env("XDG_DATA_HOME", &data).args(["--shell", line]);
        text(&command.output().unwrap())
    };
    for round in 0..3 {
        let file = format!("src/new{round}.pem");
        fs::write(workspace.path(&file), "-----BEGIN PRIVATE KEY-----\n").unwrap();
        let shown = line(&format!("cat .env private/notes.md {file}; cat src/a.ts"));
        assert_eq!(shown.matches("denied").count(), 2, "{shown}");
        assert!(
            !shown.contains(SECRET) && !shown.contains("PRIVATE"),
            "{shown}"
        );
        assert!(shown.starts_with("a\n"), "{shown}");
    }
    // The list is the server's: it leaves out what only its settings allow.
    let allowed = json!({ "settings": { "access": { "secrets": "allow" } } });
    server
        .notify("workspace/didChangeConfiguration", allowed)
        .unwrap();
    let shown = line("cat .env private/notes.md");
    assert!(
        shown.contains(SECRET) && shown.contains("notes.md"),
        "{shown}"
    );
}

/// The repository of a submodule is elsewhere, so its files say nothing about changes.
#[test]
fn a_running_server_asks_git_again_about_a_repository_elsewhere() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let data = workspace.path("home/xdg");
    fs::create_dir(&data).unwrap();
    std::os::unix::fs::symlink(workspace.data(), data.join("sightline")).unwrap();
    let root = workspace.root();
    git::run(&root, &["init", "-q", "--separate-git-dir", "home/git"]);
    let _server = Server::start(&workspace);
    let shown = || {
        let mut command = exec(&workspace);
        command.env("XDG_DATA_HOME", &data);
        text(&command.args(["cat", "mixed/tracked.txt"]).output().unwrap())
    };
    assert_eq!(shown(), "tracked\n");
    git::run(&root, &["rm", "-q", "--cached", "mixed/tracked.txt"]);
    git::run(&root, &["commit", "-qm", "untracked"]);
    assert!(shown().contains("No such file"), "{}", shown());
}

#[test]
fn a_server_that_sees_other_file_systems_is_not_asked() {
    let workspace = workspace();
    if !can_hide(&workspace) {
        return;
    }
    let data = workspace.path("home/xdg");
    fs::create_dir(&data).unwrap();
    std::os::unix::fs::symlink(workspace.data(), data.join("sightline")).unwrap();
    let _server = Server::start(&workspace);
    let run = || {
        let mut command = exec(&workspace);
        command.env("XDG_DATA_HOME", &data);
        command.args(["--shell", "cat src/.env; cat src/a.ts"]);
        command
    };
    assert!(text(&run().output().unwrap()).starts_with("a\n"));
    // In a namespace where another folder is mounted at `src`.
    let other = workspace.path("home/other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join(".env"), SECRET).unwrap();
    let inner = run();
    let words = inner.get_args().map(|word| word.to_str().unwrap());
    let words: Vec<String> = words.map(|word| format!("'{word}'")).collect();
    let line = format!(
        "mount --bind home/other src && exec {} {}",
        inner.get_program().to_str().unwrap(),
        words.join(" ")
    );
    let mut outer = Command::new("unshare");
    outer
        .args(["-r", "-m", "sh", "-c", &line])
        .current_dir(workspace.root())
        .envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let shown = text(&outer.output().unwrap());
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(shown.contains("denied"), "{shown}");
}
