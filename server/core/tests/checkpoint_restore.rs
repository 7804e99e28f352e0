//! Putting the work tree back, and what may not be lost by it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod restoring;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use restoring::{Ground, Thing, all, rel, some, tree};
use sightline_core::{
    cancel::Cancel,
    checkpoint::{
        Filter, Job, Side,
        restore::{Action, Conflict, Options, Outcome},
    },
};
use sightline_protocol::error::ErrorKind;

fn named(conflicts: &[Conflict]) -> Vec<String> {
    let conflicts = conflicts.iter();
    conflicts
        .map(|conflict| conflict.path.to_string())
        .collect()
}

fn done(outcomes: &[Outcome]) -> Vec<(String, Action)> {
    let outcomes = outcomes.iter();
    outcomes
        .map(|outcome| (outcome.path.to_string(), outcome.action))
        .collect()
}

fn counted(ground: &Ground) -> usize {
    ground.checkpoints.list(&Filter::default()).unwrap().len()
}

#[test]
fn what_the_preview_says_is_what_is_done() {
    let ground = Ground::new(&[("a", "1"), ("b/c", "2"), ("d", "3"), ("same", "4")]);
    let id = ground.create();
    let before = ground.tree();
    ground.write(&[("a", "changed"), ("new/file", "n")]);
    ground.remove("b");
    let preview = ground.preview(&all(id), &[]);
    let changes: Vec<_> = preview
        .changes
        .iter()
        .map(|change| (change.path.to_string(), change.action))
        .collect();
    let expected = vec![
        ("a".to_owned(), Action::Write),
        ("b/c".to_owned(), Action::Write),
        ("new/file".to_owned(), Action::Delete),
    ];
    assert_eq!(changes, expected);
    assert_eq!(preview.conflicts, Vec::new());
    let restored = ground.restore(id);
    assert_eq!(done(&restored.outcomes), expected);
    assert_eq!(ground.tree(), before);
    assert!(ground.preview(&all(id), &[]).changes.is_empty());
}

#[test]
fn a_restore_and_its_undo_are_taken_back() {
    let ground = Ground::new(&[("a", "1"), ("b", "1")]);
    let first = ground.create();
    ground.write(&[("a", "2"), ("c", "2")]);
    ground.remove("b");
    let second = ground.tree();
    let undo = ground.restore(first).undo;
    assert_eq!(ground.checkpoints.last_undo().unwrap(), Some(undo));
    let redo = ground.restore(undo).undo;
    assert_eq!(ground.tree(), second);
    assert_eq!(ground.checkpoints.last_undo().unwrap(), Some(redo));
    ground.restore(redo);
    assert_eq!(ground.read("a"), "1");
    assert!(!ground.exists("c"));
}

#[test]
fn a_preview_that_is_no_longer_true_stops_everything() {
    let ground = Ground::new(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2")]);
    let token = ground.preview(&all(id), &["a"]).token;
    let with = |token: &str| Options {
        token: Some(token.to_owned()),
        ..Options::default()
    };
    ground.write(&[("b", "2")]);
    let before = (ground.tree(), counted(&ground));
    let error = ground
        .try_restore(&all(id), &[], &with(&token))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert_eq!((ground.tree(), counted(&ground)), before);
    // Other paths, another content of the same file, an unknown token.
    let token = ground.preview(&some(id, &["a"]), &[]).token;
    let other = ground.try_restore(&some(id, &["b"]), &[], &with(&token));
    assert_eq!(other.unwrap_err().kind, ErrorKind::Conflict);
    ground.write(&[("c", "1"), ("a", "3")]);
    let changed = ground.try_restore(&some(id, &["a"]), &[], &with(&token));
    assert_eq!(changed.unwrap_err().kind, ErrorKind::Conflict);
    // What does not matter to the plan does not matter.
    let token = ground.preview(&some(id, &["a"]), &[]).token;
    ground.write(&[("c", "2")]);
    ground
        .try_restore(&some(id, &["a"]), &[], &with(&token))
        .unwrap();
    assert_eq!(
        (ground.read("a"), ground.read("c")),
        ("1".into(), "2".into())
    );
}

#[test]
fn some_paths_and_their_undo_leave_the_others_alone() {
    let ground = Ground::new(&[("src/a", "1"), ("src/b", "1"), ("other", "1")]);
    let id = ground.create();
    ground.write(&[
        ("src/a", "2"),
        ("src/new", "2"),
        ("other", "2"),
        ("srcx", "2"),
    ]);
    let restored = ground
        .try_restore(&some(id, &["src"]), &[], &Options::default())
        .unwrap();
    assert_eq!(restored.outcomes.len(), 2);
    assert_eq!(ground.read("src/a"), "1");
    assert_eq!(
        (ground.read("other"), ground.read("srcx")),
        ("2".into(), "2".into())
    );
    ground.write(&[("other", "3")]);
    ground.restore(restored.undo);
    assert_eq!(
        (ground.read("src/a"), ground.read("src/new")),
        ("2".into(), "2".into())
    );
    assert_eq!(ground.read("other"), "3");
}

#[test]
fn unsaved_text_is_a_conflict_unless_forced() {
    let ground = Ground::new(&[("a", "1"), ("b", "1"), ("d", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b", "2"), ("c", "2")]);
    ground.remove("d");
    let unsaved = ["a", "c", "d", "elsewhere"];
    let preview = ground.preview(&all(id), &unsaved);
    assert_eq!(named(&preview.conflicts), ["a", "c", "d"]);
    assert_eq!(preview.changes.len(), 1);
    let options = Options {
        token: Some(preview.token),
        ..Options::default()
    };
    let restored = ground.try_restore(&all(id), &unsaved, &options).unwrap();
    assert_eq!(done(&restored.outcomes), [("b".to_owned(), Action::Write)]);
    assert_eq!(restored.texts, Vec::new());
    assert_eq!(
        (ground.read("a"), ground.read("c")),
        ("2".into(), "2".into())
    );
    assert!(!ground.exists("d"));
    let options = Options {
        force: true,
        ..Options::default()
    };
    let restored = ground.try_restore(&all(id), &unsaved, &options).unwrap();
    let texts: Vec<_> = restored
        .texts
        .iter()
        .map(|text| (text.path.to_string(), text.content.as_deref()))
        .collect();
    let expected = [
        ("a".to_owned(), Some("1")),
        ("c".to_owned(), None),
        ("d".to_owned(), Some("1")),
    ];
    assert_eq!(texts, expected);
    assert_eq!(ground.read("a"), "1");
}

#[test]
fn t15_a_linked_parent_is_replaced_and_never_written_through() {
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
    let undo = ground.restore(id).undo;
    assert_eq!(tree(&outside), before);
    assert!(fs::symlink_metadata(ground.path("a")).unwrap().is_dir());
    assert_eq!(ground.read("a/deep/y"), "1");
    ground.restore(undo);
    assert_eq!(fs::read_link(ground.path("a")).unwrap(), outside);
    assert_eq!(tree(&outside), before);
}

#[test]
fn t15_a_linked_parent_that_is_not_captured_refuses_what_is_below() {
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
fn t15_untracked_and_skipped_files_survive() {
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
    rustix::fs::mknodat(
        rustix::fs::CWD,
        ground.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let id = ground.create();
    // Now small enough to be captured, and now no longer.
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
    // A file too large now where the checkpoint has a small one.
    ground.write(&[("src/a", &"y".repeat(5000))]);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(named(&preview.conflicts), ["big", "src/a"]);
    assert!(preview.conflicts[1].reason.contains("5000"), "{preview:?}");
    ground.restore(id);
    assert_eq!(ground.read("src/a").len(), 5000);
}

#[test]
fn cline_14367_an_uncommitted_gitignore_costs_no_ignored_data() {
    // The rules came after the checkpoint.
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
    // And the other way: the rules are gone now, so all is captured now.
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
fn what_was_captured_and_is_now_ignored_and_gone_comes_back() {
    let ground = Ground::new(&[("lib/code.rs", "code")]);
    let id = ground.create();
    ground.write(&[(".gitignore", "*.rs\n")]);
    ground.remove("lib/code.rs");
    ground.restore(id);
    assert_eq!(ground.read("lib/code.rs"), "code");
}

#[test]
fn cline_13550_branch_head_and_index_of_the_user_are_untouched() {
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
fn cline_1213_work_done_after_the_checkpoint_can_be_had_back() {
    let ground = Ground::new(&[("a", "1")]);
    let id = ground.create();
    ground.write(&[("hours/of/work", "mine"), ("a", "mine too")]);
    let work = ground.tree();
    let undo = ground.restore(id).undo;
    assert!(!ground.exists("hours"));
    ground.restore(undo);
    assert_eq!(ground.tree(), work);
}

#[test]
fn comparing_does_not_change_what_a_restore_deletes() {
    let ground = Ground::new(&[("a", "1")]);
    let id = ground.create();
    ground.write(&[
        ("untracked", "u"),
        (".gitignore", "ignored\n"),
        ("ignored", "i"),
    ]);
    let preview = ground.preview(&all(id), &[]);
    ground.diff(&Side::Checkpoint(id), &Side::Now);
    assert_eq!(ground.preview(&all(id), &[]), preview);
    ground.restore(id);
    assert_eq!(ground.read("ignored"), "i");
}

#[test]
fn line_ends_stay_whatever_git_is_configured_to() {
    let name = "line_ends_stay_whatever_git_is_configured_to";
    let Some(home) = std::env::var_os("RESTORE_TEST_HOME") else {
        let home = tempfile::tempdir().unwrap();
        let config = "[core]\n\tautocrlf = true\n\teol = crlf\n\texcludesFile = ~/ignore\n";
        fs::write(home.path().join(".gitconfig"), config).unwrap();
        fs::write(home.path().join("ignore"), "*\n").unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env("HOME", home.path())
            .env("RESTORE_TEST_HOME", home.path())
            .env("GIT_DIR", home.path())
            .status();
        assert!(status.unwrap().success());
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
fn nested_repositories_keep_their_git_and_get_their_files() {
    let ground = Ground::new(&[("a", "1"), ("nested/n", "1"), ("empty-nested/e", "1")]);
    for nested in ["nested", "empty-nested"] {
        restoring::git(&ground.path(nested), &["init", "-q"]);
    }
    restoring::git(&ground.path("nested"), &["add", "-A"]);
    restoring::git(&ground.path("nested"), &["commit", "-qm", "n"]);
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
    // A repository cloned since is no checkpoint's to delete, nor is its folder.
    ground.write(&[("later/file", "l")]);
    restoring::git(&ground.path("later"), &["init", "-q"]);
    ground.restore(id);
    assert!(!ground.exists("later/file") && ground.exists("later/.git/HEAD"));
    // A file can't take the place of a folder that holds one.
    let file_there = {
        let other = Ground::new(&[("later", "a file")]);
        let id = other.create();
        other.remove("later");
        other.write(&[("later/x", "x")]);
        restoring::git(&other.path("later"), &["init", "-q"]);
        (other, id)
    };
    let (other, id) = file_there;
    assert_eq!(named(&other.preview(&all(id), &[]).conflicts), ["later"]);
    other.restore(id);
    assert!(other.exists("later/.git/HEAD"));
}

#[test]
fn folders_come_and_go_with_what_they_hold() {
    let ground = Ground::new(&[
        ("empty/inner/", ""),
        ("file", "f"),
        ("folder/x", "x"),
        ("shrinks/", ""),
    ]);
    ground.link("file", "link");
    let id = ground.create();
    let before = ground.tree();
    for path in ["empty", "file", "folder", "link"] {
        ground.remove(path);
    }
    ground.write(&[
        ("file/deep/er", "1"),
        ("folder", "a file"),
        ("link/", ""),
        ("new/a/b/c", "1"),
        ("new/empty/", ""),
        ("shrinks/s", "s"),
    ]);
    let undo_tree = ground.tree();
    let undo = ground.restore(id).undo;
    assert_eq!(ground.tree(), before);
    ground.restore(undo);
    assert_eq!(ground.tree(), undo_tree);
    // Ignored files keep their folder, and keep a file from its place.
    ground.write(&[
        (".gitignore", "*.o\n"),
        ("new/a/b.o", "o"),
        ("file/deep/d.o", "o"),
    ]);
    let preview = ground.preview(&all(id), &[]);
    assert_eq!(named(&preview.conflicts), ["file"]);
    ground.restore(id);
    assert_eq!(
        (ground.read("new/a/b.o"), ground.read("file/deep/d.o")),
        ("o".into(), "o".into())
    );
    assert!(!ground.exists("new/a/b") && !ground.exists("file/deep/er"));
}

#[test]
fn rights_owners_and_other_names_of_a_file_stay() {
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
    let inode = |path: &str| fs::metadata(ground.path(path)).unwrap().ino();
    let was = inode("a");
    ground.restore(id);
    assert_eq!(
        (ground.read("a"), ground.mode("a"), inode("a")),
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
    // Nothing but the permission.
    ground.chmod("a", 0o755);
    let restored = ground.restore(id);
    assert_eq!(done(&restored.outcomes), [("a".to_owned(), Action::Write)]);
    assert_eq!(ground.mode("a"), 0o644);
}

#[test]
fn what_is_denied_is_neither_touched_nor_named() {
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
    // And what was denied then is not deleted now.
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

/// Restores, and acts once the first path is done.
fn restore_with(
    ground: &Ground,
    id: sightline_core::checkpoint::Oid,
    act: impl Fn() + Sync,
) -> Vec<Outcome> {
    let acted = AtomicBool::new(false);
    let progress = |progress: sightline_core::checkpoint::Progress| {
        if progress.stage == "restoring" && !acted.swap(true, Ordering::SeqCst) {
            act();
        }
    };
    let restored = ground.job(|job| {
        let job = Job {
            progress: &progress,
            ..*job
        };
        let options = Options::default();
        ground.checkpoints.restore(&job, &all(id), &[], &options)
    });
    assert!(acted.load(Ordering::SeqCst));
    restored.unwrap().outcomes
}

#[test]
fn what_changes_while_it_is_restored_is_left_as_it_is() {
    let ground = Ground::new(&[("a", "1"), ("b", "1"), ("c/x", "1"), ("d", "1"), ("e", "1")]);
    let id = ground.create();
    let outside = ground.outside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "2").unwrap();
    ground.write(&[("a", "2"), ("b", "2"), ("c/x", "2"), ("d", "2")]);
    ground.remove("e");
    let outcomes = restore_with(&ground, id, || {
        ground.write(&[("b", "3"), ("e", "mine")]);
        ground.remove("c");
        ground.link(outside.to_str().unwrap(), "c");
        ground.remove("d");
    });
    let errors: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.error.is_some())
        .collect();
    assert_eq!(errors, [false, true, true, true, true], "{outcomes:?}");
    assert_eq!(
        (ground.read("a"), ground.read("b"), ground.read("e")),
        ("1".into(), "3".into(), "mine".into())
    );
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "2");
    assert!(!ground.exists("d"));
}

#[test]
fn a_cancelled_restore_does_nothing_and_one_under_way_is_not_cancelled() {
    let ground = Ground::new(&[("a", "1"), ("b", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b", "2")]);
    let cancel = Cancel::default();
    cancel.cancel();
    let options = Options::default();
    let cancelled = ground.job_with(&cancel, |job| {
        ground.checkpoints.restore(job, &all(id), &[], &options)
    });
    assert_eq!(cancelled.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(ground.read("a"), "2");
    let cancel = Cancel::default();
    let too_late = AtomicBool::new(false);
    let progress = |progress: sightline_core::checkpoint::Progress| {
        if progress.stage == "restoring" {
            too_late.store(!cancel.cancel(), Ordering::SeqCst);
        }
    };
    let restored = ground.job_with(&cancel, |job| {
        let job = Job {
            progress: &progress,
            ..*job
        };
        ground.checkpoints.restore(&job, &all(id), &[], &options)
    });
    assert!(
        restored
            .unwrap()
            .outcomes
            .iter()
            .all(|outcome| outcome.error.is_none())
    );
    assert!(too_late.load(Ordering::SeqCst));
    assert_eq!(
        (ground.read("a"), ground.read("b")),
        ("1".into(), "1".into())
    );
}

#[test]
fn an_undo_point_of_a_restore_that_does_nothing_is_not_listed() {
    // More than are looked at between two reports.
    let names: Vec<String> = (0..300).map(|n: u32| format!("{n}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let ground = Ground::new(&files);
    let id = ground.create();
    ground.write(&[("7", "changed")]);
    let token = Some(ground.preview(&all(id), &[]).token);
    // It is there once the restore has looked whether the preview is still true.
    let progress = |progress: sightline_core::checkpoint::Progress| {
        if progress.stage == "looking at files" {
            ground.write(&[("late", "new")]);
        }
    };
    let options = Options {
        token,
        ..Options::default()
    };
    let refused = ground.job(|job| {
        let job = Job {
            progress: &progress,
            ..*job
        };
        ground.checkpoints.restore(&job, &all(id), &[], &options)
    });
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Conflict);
    assert!(ground.exists("late"), "it was reported");
    assert_eq!(ground.read("7"), "changed");
    let listed = ground.checkpoints.list(&Filter::default()).unwrap();
    assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    assert_eq!(ground.checkpoints.last_undo().unwrap(), None);
    // What it held can be stored again.
    ground.restore(id);
    assert_eq!(ground.read("7"), "1");
    let undo = ground.checkpoints.last_undo().unwrap().unwrap();
    ground.restore(undo);
    assert_eq!(
        (ground.read("7"), ground.read("late")),
        ("changed".into(), "new".into())
    );
}

/// A stand-in for a full disk: no file may grow over a limit.
#[test]
fn on_a_full_disk_each_path_says_so_and_nothing_is_lost() {
    let name = "on_a_full_disk_each_path_says_so_and_nothing_is_lost";
    let large = "large\n".repeat(40_000);
    if let Some(base) = std::env::var_os("RESTORE_TEST_BASE") {
        let ground = Ground::at(std::path::Path::new(&base));
        let id = ground.checkpoints.list(&Filter::default()).unwrap()[0].id;
        let restored = ground
            .try_restore(&all(id), &[], &Options::default())
            .unwrap();
        let failed = restored
            .outcomes
            .iter()
            .filter(|outcome| outcome.error.is_some());
        let failed: Vec<String> = failed.map(|outcome| outcome.path.to_string()).collect();
        assert_eq!(
            failed,
            ["grows", "linked", "new"],
            "{:?}",
            restored.outcomes
        );
        return;
    }
    let ground = Ground::new(&[
        ("a", "1"),
        ("grows", &large),
        ("linked", &large),
        ("new", &large),
        ("z", "1"),
    ]);
    let id = ground.create();
    ground.write(&[
        ("a", "2"),
        ("grows", "small"),
        ("linked", "small"),
        ("z", "2"),
    ]);
    fs::hard_link(ground.path("linked"), ground.outside("other-name")).unwrap();
    ground.remove("new");
    let before = ground.tree();
    // In blocks of 512 or 1024 bytes; the signal would end the process.
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" --exact \"$1\"";
    // Its output goes through a pipe: a file would be under the limit too.
    let done = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env("RESTORE_TEST_BASE", ground.root.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}");
    assert_eq!(
        (ground.read("a"), ground.read("z")),
        ("1".into(), "1".into())
    );
    assert_eq!(
        (ground.read("grows"), ground.read("linked")),
        ("small".into(), "small".into())
    );
    // No piece of a file is left, and all can be done later, or taken back.
    assert_eq!(ground.tree().len(), before.len());
    let undo = ground.checkpoints.last_undo().unwrap().unwrap();
    ground.restore(undo);
    assert_eq!(ground.tree(), before);
    ground.restore(id);
    assert_eq!(ground.read("new"), large);
}

#[test]
fn an_odd_name_is_restored_as_it_was() {
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new(&[("a b\n\"c\\", "1"), ("-rf", "1"), ("%41", "1")]);
    let odd = std::ffi::OsStr::from_bytes(b"not\xffutf8");
    fs::create_dir(ground.root.join(odd)).unwrap();
    fs::write(ground.root.join(odd).join(odd), "1").unwrap();
    let id = ground.create();
    let before = ground.tree();
    fs::remove_dir_all(ground.root.join(odd)).unwrap();
    ground.write(&[("a b\n\"c\\", "2"), ("-rf", "2"), ("A", "2")]);
    let wanted = sightline_core::checkpoint::restore::Wanted {
        id,
        paths: vec![
            rel("-rf"),
            sightline_core::path::RelPath::new(std::path::Path::new(odd)).unwrap(),
        ],
    };
    let restored = ground
        .try_restore(&wanted, &[], &Options::default())
        .unwrap();
    assert_eq!(restored.outcomes.len(), 2);
    ground.restore(restored.undo);
    assert!(!ground.root.join(odd).exists() && ground.read("-rf") == "2");
    ground.restore(id);
    assert_eq!(ground.tree(), before);
    assert!(matches!(
        ground.tree().get(&std::path::Path::new(odd).join(odd)),
        Some(Thing::File { .. })
    ));
}

#[test]
fn an_unknown_checkpoint_restores_nothing() {
    let ground = Ground::new(&[("a", "1")]);
    let unknown = "0123456789012345678901234567890123456789".parse().unwrap();
    let error = ground
        .try_restore(&all(unknown), &[], &Options::default())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(!ground.data().exists());
}

#[test]
fn a_folder_that_may_not_be_written_fails_alone() {
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        println!("skipped: for root every folder may be written");
        return;
    }
    let ground = Ground::new(&[("shut/x", "1"), ("a", "1")]);
    let id = ground.create();
    ground.remove("shut/x");
    ground.write(&[("a", "2")]);
    fs::set_permissions(ground.path("shut"), fs::Permissions::from_mode(0o555)).unwrap();
    let restored = ground
        .try_restore(&all(id), &[], &Options::default())
        .unwrap();
    fs::set_permissions(ground.path("shut"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(restored.outcomes[0].error, None);
    assert!(
        restored.outcomes[1]
            .error
            .as_ref()
            .unwrap()
            .contains("permission")
    );
    assert_eq!(ground.read("a"), "1");
}

#[test]
fn what_is_left_alone_is_named_by_the_restore_too() {
    let mut ground = Ground::new(&[("a", "1"), ("big", "1"), ("c", "1"), ("d/x", "1")]);
    ground.settings.max_file_size = 1000;
    let id = ground.create();
    let outside = ground.outside("outside");
    fs::create_dir(&outside).unwrap();
    ground.remove("d");
    ground.link(outside.to_str().unwrap(), "d");
    ground.write(&[
        (".gitignore", "/c\n/d\n"),
        ("a", "2"),
        ("big", &"y".repeat(5000)),
        ("c", "2"),
    ]);
    let preview = ground.preview(&all(id), &["a"]);
    assert_eq!(named(&preview.conflicts), ["a", "big", "c", "d/x"]);
    let restored = ground
        .try_restore(&all(id), &["a"], &Options::default())
        .unwrap();
    assert_eq!(restored.conflicts, preview.conflicts);
    assert_eq!(restored.outcomes.len(), preview.changes.len());
    // Also where nothing else is to be done.
    let nothing = ground
        .try_restore(&some(id, &["big"]), &[], &Options::default())
        .unwrap();
    assert_eq!(nothing.outcomes, Vec::new());
    assert_eq!(named(&nothing.conflicts), ["big"]);
}

#[test]
fn a_preview_does_not_cover_text_that_is_unsaved_since() {
    let ground = Ground::new(&[("a", "1"), ("b", "1"), ("same", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b", "2")]);
    let token = ground.preview(&all(id), &[]).token;
    let before = (ground.tree(), counted(&ground));
    let options = |token: &str, force| Options {
        token: Some(token.to_owned()),
        force,
        ..Options::default()
    };
    for unsaved in ["a", "same"] {
        for force in [false, true] {
            let refused = ground.try_restore(&all(id), &[unsaved], &options(&token, force));
            assert_eq!(refused.unwrap_err().kind, ErrorKind::Conflict, "{unsaved}");
        }
    }
    assert_eq!((ground.tree(), counted(&ground)), before);
    // One that named it covers it, whether it is forced or not.
    let token = ground.preview(&all(id), &["a"]).token;
    let saved = ground.try_restore(&all(id), &[], &options(&token, false));
    assert_eq!(saved.unwrap_err().kind, ErrorKind::Conflict);
    // What has no part in it does not matter.
    let unsaved = ["a", "elsewhere"];
    let forced = ground.try_restore(&all(id), &unsaved, &options(&token, true));
    assert_eq!(forced.unwrap().outcomes.len(), 2);
    assert_eq!(ground.read("a"), "1");
}

#[test]
fn unsaved_text_of_a_file_that_does_not_differ_is_kept_or_given_up_too() {
    let ground = Ground::new(&[
        (".clineignore", "secret\n"),
        ("a", "1"),
        ("secret", "1"),
        ("z", "1"),
    ]);
    let id = ground.create();
    ground.write(&[("z", "2")]);
    let unsaved = ["a", "secret", "new"];
    let preview = ground.preview(&all(id), &unsaved);
    assert_eq!(named(&preview.conflicts), ["a"]);
    assert!(
        preview.conflicts[0].reason.contains("unsaved"),
        "{preview:?}"
    );
    let only_z = ground.preview(&some(id, &["z"]), &unsaved);
    assert_eq!(only_z.conflicts, Vec::new());
    let kept = ground
        .try_restore(&all(id), &unsaved, &Options::default())
        .unwrap();
    assert_eq!(named(&kept.conflicts), ["a"]);
    assert_eq!(done(&kept.outcomes), [("z".to_owned(), Action::Write)]);
    assert_eq!(kept.texts, Vec::new());
    // The text is given up although no file has to be written.
    let options = Options {
        force: true,
        ..Options::default()
    };
    let before = ground.stamps(&ground.root);
    let forced = ground.try_restore(&all(id), &unsaved, &options).unwrap();
    assert_eq!(ground.stamps(&ground.root), before);
    assert_eq!(forced.conflicts, Vec::new());
    assert_eq!(done(&forced.outcomes), [("a".to_owned(), Action::Write)]);
    assert_eq!(forced.texts.len(), 1);
    assert_eq!(forced.texts[0].content.as_deref(), Some("1"));
}

#[test]
fn a_checkpoint_knows_which_folders_it_has() {
    let ground = Ground::new(&[
        (".gitignore", "/out\n"),
        ("out/x", "1"),
        ("a/b/c", "1"),
        ("empty/", ""),
    ]);
    let id = ground.create();
    ground.remove("a");
    let has = |path| ground.checkpoints.holds_folder(id, &rel(path)).unwrap();
    assert!(has("a") && has("a/b") && has("empty"));
    assert!(!has("out") && !has("a/b/c") && !has("a/b/c/d") && !has("empty/x"));
}

#[test]
fn rules_that_cannot_be_used_are_no_reason_for_an_empty_checkpoint() {
    use sightline_core::checkpoint::Side;
    let ground = Ground::new(&[("a", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2")]);
    let large = "#".repeat(20 << 20);
    ground.write(&[(".clineignore", &large)]);
    for broken in ["is large", "is a pipe"] {
        let before = counted(&ground);
        let create = |job: &sightline_core::checkpoint::Job<'_>| {
            let request = sightline_core::checkpoint::Request::default();
            ground.checkpoints.create(job, &request, None)
        };
        let preview = |job: &sightline_core::checkpoint::Job<'_>| {
            ground.checkpoints.preview(job, &all(id), &[])
        };
        let now = Side::Now;
        let options = restoring::with_contents();
        for error in [
            ground.job(create).unwrap_err(),
            ground.job(preview).unwrap_err(),
            ground
                .try_restore(&all(id), &[], &Options::default())
                .unwrap_err(),
            ground
                .try_diff(&Side::Checkpoint(id), &now, &options)
                .unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::AccessDenied, "{broken}");
            assert!(error.message.contains("`.clineignore`"), "{error}");
            assert!(error.message.contains("repaired"), "{error}");
        }
        assert_eq!(counted(&ground), before, "{broken}");
        assert_eq!(ground.read("a"), "2");
        match broken {
            "is large" => {
                ground.remove(".clineignore");
                let made = std::process::Command::new("mkfifo")
                    .arg(ground.path(".clineignore"))
                    .status();
                assert!(made.unwrap().success());
            }
            _ => ground.remove(".clineignore"),
        }
    }
    ground.restore(id);
    assert_eq!(ground.read("a"), "1");
}
