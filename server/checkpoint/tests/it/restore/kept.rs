//! Files that a restore leaves as they are: link targets, ignored, skipped and denied files, and the
//! user's git repository.

use std::{fs, os::unix::fs::MetadataExt, process::Command};

use crate::restore_support::{Ground, all, done, named, some, tree, undo_of};
use sightline_checkpoint::{
    Side,
    restore::{Action, Options},
};
use sightline_protocol::error::ErrorKind;
use sightline_testing::process::test_name;

#[test]
fn a_linked_parent_is_replaced_and_never_written_through() {
    let ground = Ground::new(&[("a/x", "1"), ("a/deep/y", "1")]);
    let id = ground.create();
    let outside = ground.outside("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("x"), "mine").unwrap();
    ground.remove("a");
    ground.link(outside.to_str().unwrap(), "a");
    let before = tree(&outside);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(preview.conflicts, Vec::new());
    let undo = ground.restore(id).undo.unwrap();
    assert_eq!(tree(&outside), before);
    assert!(fs::symlink_metadata(ground.path("a")).unwrap().is_dir());
    assert_eq!(ground.read("a/deep/y"), "1");
    ground.restore(undo);
    assert_eq!(fs::read_link(ground.path("a")).unwrap(), outside);
    assert_eq!(tree(&outside), before);
}

#[test]
fn nothing_is_written_below_a_linked_parent_that_is_not_captured() {
    let ground = Ground::new(&[("a/x", "1"), ("b", "1")]);
    let id = ground.create();
    let outside = ground.outside("outside");
    fs::create_dir(&outside).unwrap();
    ground.remove("a");
    ground.link(outside.to_str().unwrap(), "a");
    ground.write(&[(".gitignore", "/a\n"), ("b", "2")]);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(named(&preview.conflicts), ["a/x"]);
    ground.restore(id);
    assert_eq!(tree(&outside).len(), 0);
    assert!(fs::symlink_metadata(ground.path("a")).unwrap().is_symlink());
    assert_eq!(ground.read("b"), "1");
}

#[test]
fn untracked_and_skipped_files_survive() {
    let mut ground = Ground::new(&[
        (".gitignore", "*.log\nbuild/\n"),
        ("keep.log", "log"),
        ("build/out", "built"),
        ("node_modules/m/index.js", "module"),
        ("src/a", "1"),
        ("src/b.log", "log"),
        ("big", &"x".repeat(5000)),
    ]);
    ground.settings.max_file_size = 1000;
    let made = Command::new("mkfifo").arg(ground.path("pipe")).status();
    assert!(made.unwrap().success());
    let id = ground.create();
    // `big` is small enough to be captured now.
    ground.write(&[("src/a", "2"), ("big", "small now"), ("src/c", "2")]);
    let survivors = [
        "keep.log",
        "build/out",
        "node_modules/m/index.js",
        "src/b.log",
        "big",
    ];
    let kept: Vec<String> = survivors.iter().map(|path| ground.read(path)).collect();
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(named(&preview.conflicts), ["big"]);
    ground.restore(id);
    assert_eq!(ground.read("src/a"), "1");
    assert!(!ground.exists("src/c") && ground.exists("pipe"));
    for (path, content) in survivors.iter().zip(kept) {
        assert_eq!(ground.read(path), content, "{path}");
    }
    // A file that is too large now, but is in the checkpoint.
    ground.write(&[("src/a", &"y".repeat(5000))]);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(named(&preview.conflicts), ["big", "src/a"]);
    assert!(preview.conflicts[1].reason.contains("5000"), "{preview:?}");
    ground.restore(id);
    assert_eq!(ground.read("src/a").len(), 5000);
}

#[test]
fn an_uncommitted_gitignore_costs_no_ignored_data() {
    // The rules are created after the checkpoint.
    let ground = Ground::new(&[("src", "1"), ("data/old", "captured")]);
    ground.git(&["init", "-q"]);
    let without_rules = ground.create();
    ground.write(&[
        (".gitignore", "data/\n"),
        ("data/new", "precious"),
        ("src", "2"),
    ]);
    ground.write(&[("data/old", "precious too")]);
    let with_rules = ground.create();
    ground.restore(without_rules);
    assert_eq!(ground.read("data/new"), "precious");
    assert_eq!(ground.read("data/old"), "precious too");
    assert_eq!(ground.read("src"), "1");
    assert!(!ground.exists(".gitignore"));
    // The other way round: the rules no longer exist, so all files are captured.
    let preview = ground.preview(&all(with_rules), &[]);
    assert_eq!(named(&preview.conflicts), ["data/new", "data/old"]);
    ground.restore(with_rules);
    assert_eq!(ground.read("data/new"), "precious");
    assert_eq!(ground.read("data/old"), "precious too");
    assert_eq!(
        (ground.read("src"), ground.read(".gitignore")),
        ("2".into(), "data/\n".into())
    );
}

#[test]
fn a_captured_file_that_is_deleted_and_ignored_now_is_restored() {
    let ground = Ground::new(&[("lib/code.rs", "code")]);
    let id = ground.create();
    ground.write(&[(".gitignore", "*.rs\n")]);
    ground.remove("lib/code.rs");
    ground.restore(id);
    assert_eq!(ground.read("lib/code.rs"), "code");
}

#[test]
fn branch_head_and_index_of_the_user_are_unchanged() {
    let ground = Ground::new(&[("a", "1")]);
    ground.git(&["init", "-q", "-b", "main"]);
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "one"]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b", "2")]);
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "two"]);
    ground.git(&["checkout", "-qb", "feature"]);
    ground.write(&[("a", "3"), ("staged", "s")]);
    ground.git(&["add", "staged"]);
    let git = ground.stamps(&ground.path(".git"));
    ground.restore(id);
    assert_eq!(ground.stamps(&ground.path(".git")), git);
    assert_eq!(ground.read("a"), "1");
    assert!(!ground.exists("b") && ground.exists(".git/HEAD"));
    assert_eq!(ground.git(&["log", "--format=%s"]), "two\none\n");
}

#[test]
fn work_after_the_checkpoint_can_be_recovered() {
    let ground = Ground::new(&[("a", "1")]);
    let id = ground.create();
    ground.write(&[("hours/of/work", "mine"), ("a", "mine too")]);
    let work = ground.tree();
    let undo = ground.restore(id).undo.unwrap();
    assert!(!ground.exists("hours"));
    ground.restore(undo);
    assert_eq!(ground.tree(), work);
}

#[test]
fn a_diff_does_not_change_what_a_restore_deletes() {
    let ground = Ground::new(&[("a", "1")]);
    let id = ground.create();
    ground.write(&[
        ("untracked", "u"),
        (".gitignore", "ignored\n"),
        ("ignored", "i"),
    ]);
    let preview = ground.preview(&all(id), &[]);
    ground.diff(&Side::Checkpoint(id), &Side::WorkTree);
    assert_eq!(ground.preview(&all(id), &[]), preview);
    ground.restore(id);
    assert_eq!(ground.read("ignored"), "i");
}

#[test]
fn line_endings_are_kept_whatever_git_is_configured_to() {
    let name = "line_endings_are_kept_whatever_git_is_configured_to";
    let Some(home) = std::env::var_os("RESTORE_TEST_HOME") else {
        let home = tempfile::tempdir().unwrap();
        let config = "[core]\n\tautocrlf = true\n\teol = crlf\n\texcludesFile = ~/ignore\n";
        fs::write(home.path().join(".gitconfig"), config).unwrap();
        fs::write(home.path().join("ignore"), "*\n").unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &test_name(module_path!(), name)])
            .env("HOME", home.path())
            .env("RESTORE_TEST_HOME", home.path())
            .env("GIT_DIR", home.path())
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
        assert!(String::from_utf8_lossy(&status.stdout).contains("1 passed"));
        return;
    };
    assert!(fs::exists(std::path::Path::new(&home).join(".gitconfig")).unwrap());
    let ground = Ground::new(&[
        ("unix", "a\nb\n"),
        ("dos", "a\r\nb\r\n"),
        ("mixed", "a\r\nb\n"),
        (".gitattributes", "* text=auto eol=crlf\n"),
    ]);
    let before = ground.tree();
    let id = ground.create();
    for path in ["unix", "dos", "mixed", ".gitattributes"] {
        ground.write(&[(path, "x")]);
    }
    ground.restore(id);
    assert_eq!(ground.tree(), before);
}

#[test]
fn nested_repositories_keep_their_git_directory_and_files_are_restored() {
    let ground = Ground::new(&[("a", "1"), ("nested/n", "1"), ("empty-nested/e", "1")]);
    for nested in ["nested", "empty-nested"] {
        crate::restore_support::git(&ground.path(nested), &["init", "-q"]);
    }
    crate::restore_support::git(&ground.path("nested"), &["add", "-A"]);
    crate::restore_support::git(&ground.path("nested"), &["commit", "-qm", "n"]);
    let id = ground.create();
    let git = ground.stamps(&ground.path("nested/.git"));
    ground.write(&[
        ("nested/n", "2"),
        ("nested/new", "2"),
        ("empty-nested/e", "2"),
    ]);
    ground.restore(id);
    assert_eq!(
        (ground.read("nested/n"), ground.read("empty-nested/e")),
        ("1".into(), "1".into())
    );
    assert!(!ground.exists("nested/new"));
    assert_eq!(ground.stamps(&ground.path("nested/.git")), git);
    // A repository that was cloned later is not deleted, and neither is its folder.
    ground.write(&[("later/file", "l")]);
    crate::restore_support::git(&ground.path("later"), &["init", "-q"]);
    ground.restore(id);
    assert!(!ground.exists("later/file") && ground.exists("later/.git/HEAD"));
    // A file cannot replace a folder with a repository.
    let file_there = {
        let other = Ground::new(&[("later", "a file")]);
        let id = other.create();
        other.remove("later");
        other.write(&[("later/x", "x")]);
        crate::restore_support::git(&other.path("later"), &["init", "-q"]);
        (other, id)
    };
    let (other, id) = file_there;
    assert_eq!(named(&other.preview(&all(id), &[]).conflicts), ["later"]);
    other.restore(id);
    assert!(other.exists("later/.git/HEAD"));
}

#[test]
fn permissions_owners_and_hard_links_of_a_file_are_kept() {
    let ground = Ground::new(&[("a", "1"), ("linked", "1"), ("tool", "1"), ("locked", "1")]);
    ground.chmod("tool", 0o700);
    ground.chmod("locked", 0o444);
    let id = ground.create();
    ground.write(&[("a", "22")]);
    ground.chmod("a", 0o640);
    ground.chmod("locked", 0o644);
    ground.write(&[("linked", "22"), ("tool", "22"), ("locked", "22")]);
    ground.chmod("locked", 0o440);
    ground.chmod("tool", 0o640);
    fs::hard_link(ground.path("linked"), ground.outside("other-name")).unwrap();
    let owner = |path: &str| {
        let metadata = fs::metadata(ground.path(path)).unwrap();
        (metadata.uid(), metadata.gid())
    };
    // Only root can change the owner.
    let _ = std::os::unix::fs::chown(ground.path("a"), Some(12), Some(34));
    let was = owner("a");
    ground.restore(id);
    assert_eq!(
        (ground.read("a"), ground.mode("a"), owner("a")),
        ("1".into(), 0o640, was)
    );
    assert_eq!(
        (ground.read("tool"), ground.mode("tool")),
        ("1".into(), 0o750)
    );
    assert_eq!(
        (ground.read("locked"), ground.mode("locked")),
        ("1".into(), 0o440)
    );
    assert_eq!(ground.read("linked"), "1");
    assert_eq!(
        fs::read_to_string(ground.outside("other-name")).unwrap(),
        "22"
    );
    // Only the executable bit differs.
    ground.chmod("a", 0o755);
    let restored = ground.restore(id);
    assert_eq!(done(&restored.outcomes), [("a".to_owned(), Action::Write)]);
    assert_eq!(ground.mode("a"), 0o644);
}

#[test]
fn denied_paths_are_neither_changed_nor_named() {
    let ground = Ground::new(&[("secret/key", "old"), ("a", "1")]);
    let id = ground.create();
    ground.write(&[
        (".clineignore", "secret\n"),
        ("secret/key", "new"),
        ("a", "2"),
    ]);
    let preview = ground.preview(&all(id), &[]);
    assert!(!format!("{preview:?}").contains("secret"), "{preview:?}");
    assert_eq!(preview.conflicts.len(), 1);
    assert!(preview.conflicts[0].path.is_root());
    ground.restore(id);
    assert_eq!(
        (ground.read("secret/key"), ground.read("a")),
        ("new".into(), "1".into())
    );
    // Files that were denied when the checkpoint was created are not deleted.
    let then = Ground::new(&[(".clineignore", "secret\n"), ("secret/key", "k")]);
    let id = then.create();
    then.remove(".clineignore");
    assert_eq!(
        named(&then.preview(&all(id), &[]).conflicts),
        ["secret/key"]
    );
    then.restore(id);
    assert_eq!(then.read("secret/key"), "k");
}

#[test]
fn new_files_that_cannot_be_read_are_kept_and_reported() {
    let ground = Ground::new(&[("a", "1"), ("always", "1"), ("then", "1")]);
    for path in ["always", "then"] {
        ground.chmod(path, 0);
    }
    if fs::read(ground.path("always")).is_ok() {
        println!("skipped: this user can read all files");
        return;
    }
    ground.write(&[(".clineignore", "secret\n")]);
    let id = ground.create();
    ground.chmod("then", 0o600);
    ground.write(&[("a", "2"), ("new/x", "2"), ("new/y", "2"), ("shut/z", "2")]);
    ground.write(&[("secret", "2")]);
    for path in ["a", "new/x", "secret", "shut"] {
        ground.chmod(path, 0);
    }
    let preview = ground.preview(&all(id), &[]);
    // `always` was skipped both times, so it is unknown whether it differs.
    assert_eq!(named(&preview.conflicts), ["a", "new/x", "shut", "then"]);
    assert!(preview.conflicts[1].reason.contains("ermission denied"));
    for (wanted, conflict) in [("new", "new/x"), ("shut/z", "shut")] {
        let preview = ground.preview(&some(id, &[wanted]), &[]);
        assert_eq!(named(&preview.conflicts), [conflict]);
    }
    let restored = ground.restore(id);
    assert_eq!(restored.conflicts, preview.conflicts);
    ground.chmod("shut", 0o700);
    assert!(ground.exists("new/x") && !ground.exists("new/y") && ground.exists("shut/z"));
}

#[test]
fn a_recreated_file_grants_no_more_permissions_than_before() {
    let files = [
        ("key", 0o600),
        ("tool", 0o700),
        ("team", 0o640),
        ("open", 0o644),
        ("private/a", 0o600),
        ("private/b/c", 0o600),
    ];
    let ground = Ground::new(&files.map(|(path, _)| (path, "1")));
    for (path, mode) in files {
        ground.chmod(path, mode);
    }
    ground.link("key", "link");
    let id = ground.create();
    for path in ["key", "tool", "team", "open", "private", "link"] {
        ground.remove(path);
    }
    // Other entries are at these paths.
    ground.write(&[("key/x", "2"), ("tool", "2")]);
    ground.remove("tool");
    ground.link("open", "tool");
    let undo = ground.restore(id).undo.unwrap();
    let check = || {
        ground.write(&[("probe", "")]);
        let usual = ground.mode("probe");
        ground.remove("probe");
        for (path, mode) in files {
            let made = if mode & 0o100 == 0 {
                usual
            } else {
                usual | 0o100
            };
            assert_eq!(ground.mode(path) & 0o744, made & mode & 0o744, "{path}");
        }
    };
    check();
    // Undo, and undo of the undo.
    let again = ground.restore(undo).undo.unwrap();
    ground.restore(again);
    check();
}

#[test]
fn a_token_covers_conflicts_too() {
    let mut ground = Ground::new(&[("a", "1"), ("big", "too large then")]);
    ground.settings.max_file_size = 10;
    let id = ground.create();
    ground.write(&[("a", "2")]);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!((preview.changes.len(), preview.conflicts.len()), (1, 0));
    // Captured now, but skipped by the checkpoint: one more conflict.
    ground.write(&[("big", "small")]);
    let options = Options {
        token: Some(preview.token),
        ..Options::default()
    };
    let refused = ground.try_restore(&all(id), &[], &options).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(ground.read("a"), "2");
}

#[test]
fn a_skipped_file_that_was_deleted_is_a_conflict() {
    let mut ground = Ground::new(&[
        ("a", "1"),
        ("data/big", "too large"),
        ("data/secret", "too large"),
        ("node_modules/m", "1"),
    ]);
    ground.settings.max_file_size = 5;
    let id = ground.create();
    assert!(ground.preview(&all(id), &[]).conflicts.is_empty());
    for path in ["data", "node_modules"] {
        ground.remove(path);
    }
    ground.write(&[(".clineignore", "secret\n")]);
    for selection in [all(id), some(id, &["data"]), some(id, &["data/big"])] {
        let preview = ground.preview(&selection, &[]);
        let conflicts = preview.conflicts.iter();
        let reasons: Vec<String> = conflicts.map(|one| one.reason.clone()).collect();
        assert_eq!(named(&preview.conflicts), ["data/big"]);
        assert!(reasons[0].contains("above the limit"), "{reasons:?}");
    }
    assert!(ground.preview(&some(id, &["a"]), &[]).conflicts.is_empty());
    let preview = ground.preview(&some(id, &["node_modules"]), &[]);
    assert_eq!(named(&preview.conflicts), ["node_modules"]);
    // An undo changes only what its restore changed.
    ground.write(&[("a", "2")]);
    let undo = ground.restore(id).undo.unwrap();
    let undone = ground.preview(&undo_of(undo, &[]), &[]);
    assert_eq!(undone.conflicts, Vec::new());
    let undone = ground.try_restore(&undo_of(undo, &[]), &[], &Options::default());
    assert_eq!(undone.unwrap().conflicts, Vec::new());
    assert_eq!(ground.read("a"), "2");
}

#[test]
fn a_denied_document_with_unsaved_text_is_not_named() {
    let ground = Ground::new(&[("a", "1"), ("secret", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), (".clineignore", "secret\n")]);
    let preview = ground.preview(&all(id), &["secret"]);
    assert!(!named(&preview.conflicts).contains(&"secret".to_owned()));
    for force in [false, true] {
        let options = Options {
            force,
            ..Options::default()
        };
        let restored = ground.try_restore(&all(id), &["secret"], &options).unwrap();
        assert!(!named(&restored.conflicts).contains(&"secret".to_owned()));
        assert!(
            restored
                .outcomes
                .iter()
                .all(|one| one.path.to_string() != "secret")
        );
        assert_eq!(restored.texts, []);
    }
}
