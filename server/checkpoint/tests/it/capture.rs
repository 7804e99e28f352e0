//! Files that a checkpoint captures, and files that it excludes.

mod rules;

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    process::Command,
};

use crate::capture_support::{Bench, fingerprint, git, git_in, name, run};
use sightline_checkpoint::{Checkpoint, Checkpoints, Job, Progress, Request};
use sightline_protocol::error::ErrorKind;
use sightline_testing::process::test_name;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn reasons(checkpoint: &Checkpoint) -> Vec<(&str, &str)> {
    let skipped = checkpoint.metadata.skipped.iter();
    skipped
        .map(|skipped| (skipped.path.as_str(), skipped.reason.as_str()))
        .collect()
}

#[test]
fn a_checkpoint_is_what_git_would_add() {
    let bench = Bench::new();
    bench.write("src/main.rs", "fn main() {}\n");
    bench.write("src/deep/er/x", "x");
    bench.write("run.sh", "#!/bin/sh\n");
    mode(&bench.ws.join("run.sh"), 0o744);
    std::os::unix::fs::symlink("src/main.rs", bench.ws.join("link")).unwrap();
    let checkpoint = bench.create();
    git_in(&bench.ws, &["init", "-q"]);
    git_in(&bench.ws, &["add", "-A"]);
    let tree = git_in(&bench.ws, &["write-tree"]);
    assert_eq!(checkpoint.tree.to_string(), tree.trim());
    assert_eq!(
        (checkpoint.metadata.files, checkpoint.metadata.counts.added),
        (4, 4)
    );
    bench.fsck();
}

#[test]
fn counts_are_relative_to_the_previous_checkpoint() {
    let bench = Bench::new();
    for path in ["a/1", "a/2", "b/1", "b/2", "c", "d"] {
        bench.write(path, path);
    }
    bench.create();
    bench.write("a/1", "other");
    fs::remove_dir_all(bench.ws.join("b")).unwrap();
    bench.write("e/f/g", "new");
    mode(&bench.ws.join("c"), 0o755);
    fs::remove_file(bench.ws.join("d")).unwrap();
    bench.write("d/now a folder", "");
    // With and without a cached tree.
    for checkpoints in [&bench.checkpoints, &bench.reopened()] {
        let checkpoint = bench
            .create_by(checkpoints, &Request::default(), None)
            .unwrap();
        let counts = checkpoint.metadata.counts;
        assert_eq!((counts.added, counts.modified, counts.deleted), (2, 2, 3));
        bench.checkpoints.prune_all_but_first(&bench);
    }
}

trait PruneAllButFirst {
    fn prune_all_but_first(&self, bench: &Bench);
}

impl PruneAllButFirst for Checkpoints {
    /// Removes the ref of the newest checkpoint, as if it had not been created.
    fn prune_all_but_first(&self, bench: &Bench) {
        let newest = self.list(&Default::default()).unwrap()[0].id.to_string();
        bench.git_store(&["update-ref", "-d", &format!("refs/checkpoints/{newest}")]);
    }
}

#[test]
fn skipped_entries_are_listed_with_reasons() {
    let mut bench = Bench::new();
    bench.settings.max_file_size = 10;
    bench.write("small", "0123456789");
    bench.write("dir/large", "0123456789a");
    let fifo = bench.ws.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let _socket = UnixListener::bind(bench.ws.join("socket")).unwrap();
    bench.write(".GIT/x", "");
    bench.write("git~1", "");
    std::os::unix::fs::symlink("x", bench.ws.join(".gitmodules")).unwrap();
    let checkpoint = bench.create();
    assert_eq!(bench.files(&checkpoint), ["small"]);
    let odd = "git does not allow this name";
    let large = "11 bytes, above the limit checkpoints.maxFileSize";
    assert_eq!(
        reasons(&checkpoint),
        [
            (".GIT", odd),
            (".gitmodules", odd),
            ("dir/large", large),
            ("git~1", odd),
            ("pipe", "a named pipe"),
            ("socket", "a socket"),
        ]
    );
    bench.fsck();
    // A file is captured once it is no longer too large, and the other way round, although no
    // folder changed.
    bench.write("dir/large", "0");
    bench.write("small", "0123456789a");
    let checkpoint = bench.create();
    assert_eq!(bench.files(&checkpoint), ["dir/large"]);
    assert!(reasons(&checkpoint).contains(&("small", large)));
}

#[test]
fn an_unreadable_file_is_listed_with_the_reason() {
    let bench = Bench::new();
    bench.write("mine", "");
    bench.write("locked", "");
    bench.write("closed/x", "");
    mode(&bench.ws.join("locked"), 0);
    mode(&bench.ws.join("closed"), 0);
    if fs::read(bench.ws.join("locked")).is_ok() {
        println!("skipped: this user may read everything");
        mode(&bench.ws.join("closed"), 0o700);
        return;
    }
    let checkpoint = bench.create();
    mode(&bench.ws.join("closed"), 0o700);
    assert_eq!(bench.files(&checkpoint), ["mine"]);
    let reasons = reasons(&checkpoint);
    assert!(
        reasons
            .iter()
            .all(|(_, reason)| reason.contains("ermission denied"))
    );
    assert_eq!(reasons.len(), 2);
    mode(&bench.ws.join("locked"), 0o600);
    assert_eq!(bench.files(&bench.create()), ["closed/x", "locked", "mine"]);
}

#[test]
fn empty_folders_are_recorded() {
    let bench = Bench::new();
    fs::create_dir_all(bench.ws.join("a/b")).unwrap();
    bench.write("c/ignored", "");
    bench.write("c/.git/HEAD", "");
    bench.write(".clineignore", "ignored\n");
    let checkpoint = bench.create();
    let paths = bench.paths(&checkpoint);
    let empty = "040000 tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["a", "a/b", "c"]);
    assert_eq!((paths["a/b"].as_str(), paths["c"].as_str()), (empty, empty));
    bench.fsck();
    fs::remove_dir(bench.ws.join("a/b")).unwrap();
    assert_eq!(bench.paths(&bench.create())["a"], empty);
}

#[test]
fn an_empty_workspace_has_a_checkpoint() {
    let bench = Bench::new();
    let checkpoint = bench.create();
    assert_eq!(
        checkpoint.tree.to_string(),
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    );
    bench.fsck();
}

#[test]
fn very_large_and_very_deep_folders_are_captured() {
    let bench = Bench::new();
    for number in 0..3000 {
        bench.write(format!("many/{number}"), number.to_string());
    }
    let mut dir = bench.ws.join("deep");
    fs::create_dir(&dir).unwrap();
    let mut depth = 0;
    while dir.as_os_str().len() < 3900 {
        dir.push("d");
        fs::create_dir(&dir).unwrap();
        depth += 1;
    }
    fs::write(dir.join("end"), "").unwrap();
    assert!(depth > 1500);
    let first = bench.create();
    assert_eq!(first.metadata.files, 3001);
    bench.write("many/17", "x");
    fs::write(dir.join("end"), "y").unwrap();
    let second = bench.create();
    assert_eq!(second.metadata.counts.modified, 2);
    // Also with a saved stat cache.
    bench.checkpoints.save_stat_cache().unwrap();
    let reopened = bench.reopened();
    let third = bench
        .create_by(&reopened, &Request::default(), None)
        .unwrap();
    assert_eq!(third.tree, second.tree);
}

#[test]
fn a_saved_stat_cache_is_verified() {
    let bench = Bench::new();
    bench.write("a/b", "1");
    bench.write("c", "1");
    bench.create();
    bench.checkpoints.save_stat_cache().unwrap();
    bench.write("a/b", "2");
    fs::remove_file(bench.ws.join("c")).unwrap();
    bench.write(".gitignore", "nothing");
    let again = |checkpoints: &Checkpoints| {
        bench
            .create_by(checkpoints, &Request::default(), None)
            .unwrap()
    };
    let checkpoint = again(&bench.reopened());
    assert_eq!(bench.files(&checkpoint), [".gitignore", "a/b"]);
    assert_eq!(bench.content(&checkpoint, "a/b"), b"2");
    // A damaged cache is ignored.
    let caches = fs::read_dir(bench.parent.join("data/projects")).unwrap();
    let project = caches.map(|entry| entry.unwrap().path()).next().unwrap();
    fs::write(project.join("state/tree.cache"), "SLTREE\0\u{1}nonsense").unwrap();
    assert_eq!(again(&bench.reopened()).tree, checkpoint.tree);
    // A cache that refers to a removed store is not trusted.
    again(&bench.checkpoints);
    bench.checkpoints.save_stat_cache().unwrap();
    fs::remove_dir_all(bench.checkpoints.git_dir()).unwrap();
    for checkpoints in [&bench.checkpoints, &bench.reopened()] {
        again(checkpoints);
        bench.fsck();
    }
}

#[test]
fn the_data_directory_is_not_captured() {
    let bench = Bench::at("");
    bench.write("a", "");
    let checkpoint = bench.create();
    assert_eq!(bench.files(&checkpoint), ["a"]);
    assert_eq!(
        reasons(&checkpoint),
        [("data", "contains the server's own data")]
    );
}

#[test]
fn the_first_checkpoint_of_a_large_workspace_needs_confirmation() {
    let mut bench = Bench::new();
    for number in 0..5 {
        bench.write(format!("{number}"), "x".repeat(100));
    }
    bench.settings.max_files = 4;
    let refused = bench.try_create(&Request::default(), None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    bench.settings.max_files = 5;
    bench.settings.max_total_size = 499;
    let refused = bench.try_create(&Request::default(), None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    assert!(
        bench
            .checkpoints
            .list(&Default::default())
            .unwrap()
            .is_empty()
    );
    let confirmed = Request {
        confirm_large: true,
        ..Request::default()
    };
    assert_eq!(
        bench.try_create(&confirmed, None).unwrap().metadata.files,
        5
    );
    // Reported once.
    bench.create();
}

#[test]
fn a_cancelled_checkpoint_stores_nothing() {
    let bench = Bench::new();
    for number in 0..2000 {
        bench.write(format!("{}/{number}", number % 7), "x");
    }
    let view = bench.view();
    let cancel = &bench.cancel;
    let job = Job {
        view: &view,
        root: 0,
        settings: &bench.settings,
        cancel,
        progress: &|Progress { .. }| {
            cancel.cancel();
        },
    };
    let error = bench
        .checkpoints
        .create(&job, &Request::default(), None)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(
        bench
            .checkpoints
            .list(&Default::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn checkpoints_stay_in_order_when_the_clock_goes_back() {
    let bench = Bench::new();
    let checkpoints: Vec<_> = (0..5).map(|_| bench.create()).collect();
    let orders = checkpoints
        .iter()
        .map(|checkpoint| (checkpoint.metadata.created, checkpoint.metadata.sequence));
    assert!(orders.clone().zip(orders.skip(1)).all(|(a, b)| a < b));
    let listed = bench.checkpoints.list(&Default::default()).unwrap();
    let listed: Vec<_> = listed
        .iter()
        .rev()
        .map(|checkpoint| checkpoint.id)
        .collect();
    assert_eq!(listed, checkpoints.iter().map(|r| r.id).collect::<Vec<_>>());
}

/// Bytes are captured unchanged: line endings, attributes, large file storage, unusual names and
/// the like.
#[test]
fn t13_snapshot_holds_the_exact_bytes() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(
        ".gitattributes",
        "*.txt text eol=lf\n*.bin filter=lfs diff=lfs -text\n*.id ident\n",
    );
    bench.write("crlf.txt", "a\r\nb\r\n");
    bench.write("large.bin", [0, 1, 2, 255]);
    bench.write("a.id", "$Id$\n");
    let odd: [&[u8]; 9] = [
        b"new\nline",
        b"tab\t",
        b"\xff\xfe",
        b" space ",
        b"back\\slash",
        b"-dash",
        b"\"q\"",
        "é".as_bytes(),
        b"a:b",
    ];
    for name_bytes in odd {
        fs::write(bench.ws.join(name(name_bytes)), name_bytes).unwrap();
    }
    std::os::unix::fs::symlink(".", bench.ws.join("loop")).unwrap();
    std::os::unix::fs::symlink(name(b"\xff"), bench.ws.join("nowhere")).unwrap();
    std::os::unix::fs::symlink("/", bench.ws.join("outside")).unwrap();
    let fifo = bench.ws.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );

    let checkpoint = bench.create();
    assert_eq!(bench.content(&checkpoint, "crlf.txt"), b"a\r\nb\r\n");
    assert_eq!(bench.content(&checkpoint, "large.bin"), [0, 1, 2, 255]);
    assert_eq!(bench.content(&checkpoint, "a.id"), b"$Id$\n");
    assert_eq!(bench.content(&checkpoint, "loop"), b".");
    assert_eq!(bench.content(&checkpoint, "nowhere"), b"\xff");
    assert_eq!(bench.content(&checkpoint, "outside"), b"/");
    assert_eq!(checkpoint.metadata.files, 4 + 9 + 3);
    assert_eq!(reasons(&checkpoint), [("pipe", "a named pipe")]);
    bench.fsck();
}

#[test]
fn t13_snapshot_treats_nested_repositories_as_folders() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(".gitignore", "*.log\n");
    bench.write("fresh/file", "without a commit");
    git_in(&bench.ws.join("fresh"), &["init", "-q"]);
    bench.write("grown/file", "with one");
    bench.write("grown/a.log", "the outer rules end here");
    let grown = bench.ws.join("grown");
    git_in(&grown, &["init", "-q"]);
    git_in(&grown, &["add", "-A"]);
    git_in(&grown, &["commit", "-qm", "x"]);
    bench.write("grown/uncommitted", "");
    git_in(&grown, &["worktree", "add", "-q", "../tree", "-b", "other"]);
    git_in(&bench.ws, &["add", "fresh/file", "grown", ".gitignore"]);
    let before = fingerprint(&bench.ws);
    let checkpoint = bench.create();
    assert_eq!(
        bench.files(&checkpoint),
        [
            ".gitignore",
            "fresh/file",
            "grown/a.log",
            "grown/file",
            "grown/uncommitted",
            "tree/a.log",
            "tree/file",
        ]
    );
    assert!(checkpoint.metadata.skipped.is_empty());
    assert_eq!(fingerprint(&bench.ws), before);
    bench.fsck();
}

/// In a separate process with other git settings.
#[test]
fn t13_snapshot_does_not_depend_on_git_settings() {
    const CHILD: &str = "SIGHTLINE_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let bench = Bench::new();
        bench.write("crlf.txt", "a\r\n");
        bench.write("excluded.txt", "x");
        let checkpoint = bench.create();
        assert_eq!(bench.files(&checkpoint), ["crlf.txt", "excluded.txt"]);
        assert_eq!(bench.content(&checkpoint, "crlf.txt"), b"a\r\n");
        let repository = std::env::var("GIT_DIR").unwrap();
        assert!(!Path::new(&repository).exists());
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "[core]\n\tautocrlf = input\n\texcludesFile = {0}/excludes\n\thooksPath = {0}\n\tfsmonitor = false\n[init]\n\ttemplateDir = {0}\n",
        home.path().display()
    );
    fs::write(home.path().join(".gitconfig"), config).unwrap();
    fs::write(home.path().join("excludes"), "excluded.txt\n").unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &test_name(
                module_path!(),
                "t13_snapshot_does_not_depend_on_git_settings",
            ),
        ])
        .env(CHILD, "1")
        .env("HOME", home.path())
        .env("GIT_DIR", home.path().join("nowhere"))
        .env("GIT_WORK_TREE", home.path())
        .env("GIT_INDEX_FILE", home.path().join("index"))
        .env("GIT_OBJECT_DIRECTORY", home.path().join("objects"))
        .env("GIT_CONFIG_GLOBAL", home.path().join(".gitconfig"))
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    assert!(
        String::from_utf8_lossy(&status.stdout).contains("1 passed"),
        "{status:?}"
    );
    assert!(!home.path().join("objects").exists());
}

#[test]
fn t14_snapshot_leaves_the_workspace_byte_identical() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write("a/b", "1");
    bench.write("ignored", "1");
    bench.write(".gitignore", "ignored\n");
    git_in(&bench.ws, &["add", "-A"]);
    git_in(&bench.ws, &["commit", "-qm", "x"]);
    bench.write("a/b", "2");
    std::os::unix::fs::symlink("a", bench.ws.join("link")).unwrap();
    let before = fingerprint(&bench.ws);
    for _ in 0..3 {
        bench.create();
        bench.checkpoints.list(&Default::default()).unwrap();
        bench.checkpoints.save_stat_cache().unwrap();
        bench
            .create_by(&bench.reopened(), &Request::default(), None)
            .unwrap();
    }
    assert_eq!(fingerprint(&bench.ws), before);
}

/// Content that changes within one clock tick without changing its size.
#[test]
fn t17_racy_edit_is_captured() {
    let bench = Bench::new();
    for round in 0..40 {
        bench.write("file", format!("{round:04}a"));
        bench.create();
        bench.write("file", format!("{round:04}b"));
        let checkpoint = bench.create();
        let expected = format!("{round:04}b");
        assert_eq!(bench.content(&checkpoint, "file"), expected.as_bytes());
    }
}

#[test]
fn a_folder_replaced_by_a_link_is_not_followed() {
    let bench = Bench::new();
    let outside = bench.parent.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    bench.write("sub/secret", "mine");
    bench.create();
    fs::remove_dir_all(bench.ws.join("sub")).unwrap();
    std::os::unix::fs::symlink(&outside, bench.ws.join("sub")).unwrap();
    let checkpoint = bench.create();
    assert_eq!(bench.files(&checkpoint), ["sub"]);
    assert_eq!(
        bench.content(&checkpoint, "sub"),
        outside.as_os_str().as_encoded_bytes()
    );
}
