//! Restores that meet concurrent changes, cancellation, full disks and invalid rules.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::restore_support::{Ground, all, counted};
use sightline_base::cancel::Cancel;
use sightline_checkpoint::{
    Filter, Job,
    restore::{Options, Outcome},
};
use sightline_protocol::error::ErrorKind;
use sightline_testing::process::test_name;

/// Restores, and calls `act` after the first path is restored.
fn restore_with(
    ground: &Ground,
    id: sightline_checkpoint::Oid,
    act: impl Fn() + Sync,
) -> Vec<Outcome> {
    let acted = AtomicBool::new(false);
    let progress = |progress: sightline_checkpoint::Progress| {
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
        ground
            .checkpoints
            .restore(&job, &all(id), &Default::default(), &options)
    });
    assert!(acted.load(Ordering::SeqCst));
    restored.unwrap().outcomes
}

#[test]
fn a_file_that_changes_during_the_restore_is_left_as_it_is() {
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
fn a_change_of_the_same_size_during_the_restore_is_detected() {
    let ground = Ground::new(&[("f/", ""), ("l", "1")]);
    let id = ground.create();
    ground.remove("f");
    ground.remove("l");
    ground.link("here", "l");
    ground.write(&[("a", "new!"), ("b", "new!"), ("f", "new!")]);
    let outcomes = restore_with(&ground, id, || {
        ground.write(&[("b", "mine"), ("f", "mine")]);
        ground.remove("l");
        ground.link("mine", "l");
    });
    let errors = outcomes.iter().map(|outcome| outcome.error.is_some());
    assert_eq!(
        errors.collect::<Vec<_>>(),
        [false, true, true, true],
        "{outcomes:?}"
    );
    assert!(!ground.exists("a"));
    assert_eq!(
        (ground.read("b"), ground.read("f")),
        ("mine".into(), "mine".into())
    );
    let target = fs::read_link(ground.path("l")).unwrap();
    assert_eq!(target.to_str(), Some("mine"));
}

#[test]
fn a_cancelled_restore_changes_nothing_and_a_started_one_completes() {
    let ground = Ground::new(&[("a", "1"), ("b", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b", "2")]);
    let cancel = Cancel::default();
    cancel.cancel();
    let options = Options::default();
    let cancelled = ground.job_with(&cancel, |job| {
        ground
            .checkpoints
            .restore(job, &all(id), &Default::default(), &options)
    });
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(ground.read("a"), "2");
    let cancel = Cancel::default();
    let too_late = AtomicBool::new(false);
    let progress = |progress: sightline_checkpoint::Progress| {
        if progress.stage == "restoring" {
            too_late.store(!cancel.cancel(), Ordering::SeqCst);
        }
    };
    let restored = ground.job_with(&cancel, |job| {
        let job = Job {
            progress: &progress,
            ..*job
        };
        ground
            .checkpoints
            .restore(&job, &all(id), &Default::default(), &options)
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
fn the_undo_point_of_a_restore_that_changed_nothing_is_removed() {
    // More than the number of files between two progress reports.
    let names: Vec<String> = (0..300).map(|n: u32| format!("{n}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let ground = Ground::new(&files);
    let id = ground.create();
    ground.write(&[("7", "changed")]);
    let token = Some(ground.preview(&all(id), &[]).token);
    // The file is created after the token was checked.
    let progress = |progress: sightline_checkpoint::Progress| {
        if progress.stage == "scanning files" {
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
        ground
            .checkpoints
            .restore(&job, &all(id), &Default::default(), &options)
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(ground.exists("late"), "progress was reported");
    assert_eq!(ground.read("7"), "changed");
    let listed = ground.checkpoints.list(&Filter::default()).unwrap();
    assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    assert_eq!(ground.checkpoints.last_undo().unwrap(), None);
    // The content of the removed undo point can be stored again.
    ground.restore(id);
    assert_eq!(ground.read("7"), "1");
    let undo = ground.checkpoints.last_undo().unwrap().unwrap();
    ground.restore(undo);
    assert_eq!(
        (ground.read("7"), ground.read("late")),
        ("changed".into(), "new".into())
    );
}

/// Simulates a full disk with a limit on the file size.
#[test]
fn a_full_disk_is_reported_for_each_path_and_nothing_is_lost() {
    let name = "a_full_disk_is_reported_for_each_path_and_nothing_is_lost";
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
    // The limit is in blocks of 512 or 1024 bytes. Without the trap, the signal ends the process.
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" --exact \"$1\"";
    // The output uses a pipe, as the limit applies to files.
    let done = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(test_name(module_path!(), name))
        .env("RESTORE_TEST_BASE", ground.root.parent().unwrap())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && output.contains("1 passed"),
        "{output}"
    );
    assert_eq!(
        (ground.read("a"), ground.read("z")),
        ("1".into(), "1".into())
    );
    assert_eq!(
        (ground.read("grows"), ground.read("linked")),
        ("small".into(), "small".into())
    );
    // No temporary file is left, and the restore can be undone or repeated.
    assert_eq!(ground.tree().len(), before.len());
    let undo = ground.checkpoints.last_undo().unwrap().unwrap();
    ground.restore(undo);
    assert_eq!(ground.tree(), before);
    ground.restore(id);
    assert_eq!(ground.read("new"), large);
}

#[test]
fn an_unknown_checkpoint_restores_nothing() {
    let ground = Ground::new(&[("a", "1")]);
    let unknown = "0123456789012345678901234567890123456789".parse().unwrap();
    let error = ground
        .try_restore(&all(unknown), &[], &Options::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!ground.data().exists());
}

#[test]
fn a_read_only_folder_fails_without_affecting_other_paths() {
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        println!("skipped: root can write to every folder");
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
fn invalid_access_rules_stop_every_operation() {
    use sightline_checkpoint::Side;
    let ground = Ground::new(&[("a", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2")]);
    let large = "#".repeat(20 << 20);
    ground.write(&[(".clineignore", &large)]);
    for broken in ["is large", "is a pipe"] {
        let before = counted(&ground);
        let create = |job: &sightline_checkpoint::Job<'_>| {
            let request = sightline_checkpoint::Request::default();
            ground.checkpoints.create(job, &request, None)
        };
        let preview = |job: &sightline_checkpoint::Job<'_>| {
            ground
                .checkpoints
                .preview(job, &all(id), &Default::default())
        };
        let now = Side::WorkTree;
        let options = crate::restore_support::with_contents();
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
            assert_eq!(error.kind(), ErrorKind::AccessDenied, "{broken}");
            assert!(error.to_string().contains("`.clineignore`"), "{error}");
            assert!(error.to_string().contains("fixed"), "{error}");
            let end = "; checkpoints cannot be created, compared or restored until then";
            assert!(error.to_string().ends_with(end), "{error}");
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
