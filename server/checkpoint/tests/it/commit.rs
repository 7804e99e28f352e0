//! Commits of checkpoints in the user's repository.

use std::fs;

use crate::restore_support::{Ground, git};
use sightline_checkpoint::{Oid, error::Error};
use sightline_protocol::error::ErrorKind;

fn try_commit(ground: &Ground, id: Oid, branch: &str) -> Result<String, Error> {
    ground.job(|job| {
        ground
            .checkpoints
            .commit(job, id, branch, "Say more\n\nBody")
    })
}

/// Commits, and checks that nothing but the branch changes.
fn commit(ground: &Ground, id: Oid, branch: &str) -> String {
    let state = || {
        let git = ground.path(".git");
        let read = |name: &str| fs::read(git.join(name)).ok();
        (
            read("index"),
            read("HEAD"),
            ground
                .tree()
                .into_iter()
                .filter(|(path, _)| !path.starts_with(".git"))
                .collect::<Vec<_>>(),
        )
    };
    let before = state();
    let commit = try_commit(ground, id, branch).unwrap();
    assert!(
        state() == before,
        "the index, HEAD or the work tree changed"
    );
    assert_eq!(
        ground
            .git(&["rev-parse", &format!("refs/heads/{branch}")])
            .trim(),
        commit
    );
    ground.git(&["fsck", "--strict", "--no-dangling"]);
    commit
}

fn files(ground: &Ground, commit: &str) -> Vec<String> {
    let listed = ground.git(&["ls-tree", "-r", "--name-only", commit]);
    listed.lines().map(str::to_owned).collect()
}

fn repository(files: &[(&str, &str)]) -> Ground {
    let ground = Ground::new(files);
    ground.git(&["init", "-q", "-b", "main"]);
    ground
}

#[test]
fn a_commit_has_the_state_of_the_checkpoint() {
    let ground = repository(&[
        ("a", "1\n"),
        ("gone", "1\n"),
        ("tool", "#!\n"),
        (".gitignore", "out\n"),
    ]);
    ground.git(&["add", "."]);
    ground.git(&["commit", "-qm", "first"]);
    let head = ground.git(&["rev-parse", "HEAD"]);
    ground.write(&[("a", "2\n"), ("new/b", "2\n"), ("out", "built\n")]);
    ground.remove("gone");
    ground.chmod("tool", 0o755);
    ground.link("a", "link");
    fs::create_dir(ground.path("empty")).unwrap();
    let id = ground.create();
    ground.write(&[("a", "3\n"), ("staged", "3\n")]);
    ground.git(&["add", "staged"]);
    ground.git(&["commit", "-qm", "later"]);
    let made = commit(&ground, id, "turn/one");
    assert_eq!(
        files(&ground, &made),
        [".gitignore", "a", "link", "new/b", "tool"]
    );
    assert_eq!(ground.git(&["rev-parse", &format!("{made}^")]), head);
    assert_eq!(ground.git(&["show", &format!("{made}:a")]), "2\n");
    let modes = ground.git(&["ls-tree", &made, "tool", "link"]);
    assert!(
        modes.contains("100755 blob") && modes.contains("120000 blob"),
        "{modes}"
    );
    assert_eq!(
        ground.git(&["log", "-1", "--format=%B", &made]).trim(),
        "Say more\n\nBody"
    );
    for (branch, kind) in [
        ("turn/one", ErrorKind::Conflict),
        ("turn", ErrorKind::Conflict),
        ("turn/one/more", ErrorKind::Conflict),
        ("main", ErrorKind::Conflict),
        ("a..b", ErrorKind::InvalidParams),
        ("-d", ErrorKind::InvalidParams),
        ("", ErrorKind::InvalidParams),
    ] {
        let error = try_commit(&ground, id, branch).unwrap_err();
        assert_eq!(error.kind(), kind, "{branch}: {error}");
    }
}

#[test]
fn ignored_and_denied_files_are_as_in_the_parent() {
    let ground = repository(&[("tracked-secret", "old\n"), ("kept", "1\n")]);
    ground.git(&["add", "."]);
    ground.git(&["commit", "-qm", "first"]);
    ground.write(&[
        ("secret", "s\n"),
        ("built", "b\n"),
        ("tracked-secret", "new\n"),
        ("seen", "1\n"),
    ]);
    let captured = ground.create();
    // The rules are newer than the checkpoint.
    ground.write(&[(".clineignore", "*secret\n"), (".gitignore", "built\n")]);
    let made = commit(&ground, captured, "one");
    assert_eq!(files(&ground, &made), ["kept", "seen", "tracked-secret"]);
    assert_eq!(
        ground.git(&["show", &format!("{made}:tracked-secret")]),
        "old\n"
    );
    // They were in force when this one was created. The access rules themselves are denied.
    let made = commit(&ground, ground.create(), "two");
    assert_eq!(
        files(&ground, &made),
        [".gitignore", "kept", "seen", "tracked-secret"]
    );
}

#[test]
fn repositories_of_all_kinds() {
    // Without a commit, and without an author.
    let ground = repository(&[("a", "1\n")]);
    let made = commit(&ground, ground.create(), "first");
    assert_eq!(files(&ground, &made), ["a"]);
    assert_eq!(ground.git(&["rev-list", "--count", &made]).trim(), "1");

    // SHA-256, with line ends that git converts.
    let ground = Ground::new(&[
        ("unix", "1\n2\n"),
        ("dos", "1\r\n2\r\n"),
        (".gitattributes", "dos text\n"),
    ]);
    ground.git(&["init", "-q", "--object-format=sha256"]);
    ground.git(&["add", "."]);
    ground.git(&["commit", "-qm", "first"]);
    ground.write(&[("new", "new\n")]);
    let made = commit(&ground, ground.create(), "sha256");
    assert_eq!(made.len(), 64);
    assert_eq!(ground.git(&["diff", "--name-only", "HEAD", &made]), "new\n");

    // A submodule, another repository below, and a sparse checkout.
    let ground = repository(&[
        ("a", "1\n"),
        ("sparse/b", "1\n"),
        ("sub/c", "1\n"),
        ("nested/d", "1\n"),
    ]);
    for folder in ["sub", "nested"] {
        git(&ground.path(folder), &["init", "-q"]);
        git(&ground.path(folder), &["add", "."]);
        git(&ground.path(folder), &["commit", "-qm", "inner"]);
    }
    ground.git(&["add", "a", "sparse", "sub"]);
    ground.git(&["commit", "-qm", "first"]);
    ground.git(&["update-index", "--skip-worktree", "sparse/b"]);
    ground.remove("sparse");
    ground.write(&[("a", "2\n"), ("sub/c", "2\n")]);
    let made = commit(&ground, ground.create(), "inner");
    assert_eq!(ground.git(&["diff", "--name-only", "HEAD", &made]), "a\n");

    let ground = Ground::new(&[("a", "1\n")]);
    let error = try_commit(&ground, ground.create(), "none").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let begin = "cannot commit the checkpoint: ";
    assert!(error.to_string().starts_with(begin), "{error}");
}

#[test]
fn a_folder_of_a_repository_changes_only_itself() {
    let ground = Ground::new(&[("a", "1\n")]);
    let outer = ground.root.parent().unwrap().to_path_buf();
    fs::write(outer.join("outside"), "1\n").unwrap();
    git(&outer, &["init", "-q"]);
    git(&outer, &["add", "outside", "ws"]);
    git(&outer, &["commit", "-qm", "first"]);
    let worktree = outer.with_file_name(format!("{}-linked", outer.file_name().unwrap().display()));
    git(
        &outer,
        &[
            "worktree",
            "add",
            "-q",
            worktree.to_str().unwrap(),
            "-b",
            "linked",
        ],
    );
    fs::write(outer.join("outside"), "2\n").unwrap();
    ground.write(&[("a", "2\n"), ("b", "2\n")]);
    try_commit(&ground, ground.create(), "sub").unwrap();
    let changed = git(&outer, &["diff", "--name-only", "HEAD", "sub"]);
    assert_eq!(changed, "ws/a\nws/b\n");
    let error = try_commit(&ground, ground.create(), "linked").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    fs::remove_dir_all(worktree).unwrap();
}
