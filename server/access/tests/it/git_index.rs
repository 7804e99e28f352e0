//! Commands that read tracked files are checked with every kind of git index.

use std::{fs, path::Path};

use sightline_testing::git;

use crate::scratch::{view, workspace};

/// Returns the denied paths and reasons.
fn denied(root: &Path, command: &str) -> Vec<(String, String)> {
    let answer = view(root).check_command(&format!("cd {} && {command}", root.display()));
    let denied = answer.denied.into_iter();
    denied.map(|one| (one.path, one.reason)).collect()
}

fn assert_denied_by_rule(root: &Path, command: &str, what: &str) {
    let denied = denied(root, command);
    let [(_, reason)] = &denied[..] else {
        panic!("{what}, {command}: {denied:?}");
    };
    assert!(!reason.contains("git index"), "{what}, {command}: {reason}");
}

#[test]
fn tracked_files_are_found_in_every_index() {
    let sparse = ["sparse-checkout", "set", "--cone", "--sparse-index", "app"];
    let formats: [(&str, &str, &[&str]); 4] = [
        ("SHA-256", "sha256", &["status"]),
        (
            "version 4",
            "sha1",
            &["update-index", "--index-version", "4"],
        ),
        ("split", "sha1", &["update-index", "--split-index"]),
        ("sparse", "sha1", &sparse),
    ];
    for (what, object_format, command) in formats {
        let files = [
            (".clineignore", "*.key\n"),
            ("app/a.txt", "x"),
            ("lib/b.txt", "x"),
        ];
        let (_parent, root) = workspace(&files);
        git::run(&root, &["init", "-q", "--object-format", object_format]);
        git::run(&root, &["add", "app", "lib"]);
        git::run(&root, &["commit", "-qm", "c"]);
        git::run(&root, command);
        for allowed in [
            "git grep x",
            "git grep --cached x",
            "git diff",
            "git log -p",
        ] {
            assert_eq!(denied(&root, allowed), [], "{what}: {allowed}");
        }
        fs::write(root.join("app/app.key"), "x").unwrap();
        git::run(&root, &["add", "app"]);
        for refused in ["git grep x", "git diff --cached"] {
            assert_denied_by_rule(&root, refused, what);
        }
        // It is not committed.
        assert_eq!(denied(&root, "git log -p"), [], "{what}");
    }
}

/// git reads files in folders that a sparse index does not list, unless it reads the work tree.
#[test]
fn files_in_a_sparse_folder_are_found() {
    let files = [
        (".clineignore", "*.key\n"),
        ("app/a.txt", "x"),
        ("lib/deep/b.key", "x"),
    ];
    let (_parent, root) = workspace(&files);
    git::run(&root, &["init", "-q"]);
    git::run(&root, &["add", "app", "lib"]);
    git::run(&root, &["commit", "-qm", "c"]);
    git::run(
        &root,
        &["sparse-checkout", "set", "--cone", "--sparse-index", "app"],
    );
    assert_eq!(denied(&root, "git grep x"), []);
    for refused in ["git grep --cached x", "git log -p", "git archive HEAD"] {
        assert_denied_by_rule(&root, refused, "sparse");
    }
    assert_eq!(denied(&root, "git log -p -- app"), []);
}

#[test]
fn a_command_is_denied_if_the_index_cannot_be_read() {
    let (_parent, root) = workspace(&[(".clineignore", "*.key\n"), ("a.txt", "x")]);
    git::run(&root, &["init", "-q"]);
    git::run(&root, &["add", "a.txt"]);
    fs::write(root.join(".git/index"), "DIRC").unwrap();
    let refused = denied(&root, "git grep x");
    let [(path, reason)] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert_eq!(path, "");
    assert!(reason.contains("could not be determined"), "{reason}");
    assert_eq!(denied(&root, "grep -r x ."), []);
}
