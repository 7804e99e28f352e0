//! An undo reverts what its restore changed, and nothing else.

use std::fs;

use crate::restore_support::{Ground, all, done, named, some, undo_of};
use sightline_base::cancel::Cancel;
use sightline_checkpoint::{
    Keep, Oid,
    restore::{Action, ConflictCause, Options, Restored},
};

fn undo(ground: &Ground, id: Oid, paths: &[&str], force: bool) -> Restored {
    let options = Options {
        force,
        ..Options::default()
    };
    let undone = ground.try_restore(&undo_of(id, paths), &[], &options);
    let undone = undone.unwrap();
    for outcome in &undone.outcomes {
        assert_eq!(outcome.error, None, "{}", outcome.path);
    }
    undone
}

/// Makes changes, restores them, and returns the undo point.
fn restored_ground(is_recorded: bool) -> (Ground, Oid) {
    let ground = Ground::new(&[
        ("a", "1"),
        ("dir/b", "1"),
        ("file", "1"),
        ("folder/x", "1"),
        ("mine", "1"),
        ("kept/mine", "1"),
        ("gone", "1"),
    ]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("new/c", "2"), ("mode", "2")]);
    ground.remove("dir");
    ground.remove("file");
    ground.write(&[("file/y", "2")]);
    ground.remove("folder");
    ground.write(&[("folder", "2")]);
    ground.remove("mode");
    let undo = ground.restore(id).undo.unwrap();
    if !is_recorded {
        remove_records(&ground);
    }
    (ground, undo)
}

/// Leaves the store as a version without records would.
fn remove_records(ground: &Ground) {
    let projects = fs::read_dir(ground.data().join("projects")).unwrap();
    for project in projects {
        fs::remove_dir_all(project.unwrap().path().join("state/restores")).unwrap();
    }
}

#[test]
fn later_work_elsewhere_is_not_part_of_an_undo() {
    for is_recorded in [true, false] {
        let (ground, id) = restored_ground(is_recorded);
        ground.write(&[
            ("mine", "later"),
            ("created", "later"),
            ("new-folder/created", "later"),
            ("kept/created", "later"),
        ]);
        ground.remove("gone");
        fs::create_dir(ground.path("empty")).unwrap();
        let preview = ground.preview(&undo_of(id, &[]), &[]);
        assert_eq!(preview.conflicts, []);
        let undone = undo(&ground, id, &[], false);
        let expected = [
            ("a", Action::Write),
            ("dir/b", Action::Delete),
            ("file", Action::Delete),
            ("file/y", Action::Write),
            ("folder", Action::Write),
            ("folder/x", Action::Delete),
            ("new/c", Action::Write),
        ]
        .map(|(path, action)| (path.to_owned(), action));
        assert_eq!(done(&undone.outcomes), expected, "{is_recorded}");
        assert_eq!(
            (ground.read("a"), ground.read("file/y")),
            ("2".into(), "2".into())
        );
        for path in ["mine", "created", "new-folder/created", "kept/created"] {
            assert_eq!(ground.read(path), "later", "{path}");
        }
        assert!(!ground.exists("gone") && ground.exists("empty") && !ground.exists("dir"));

        // The undo of the undo keeps later work as well.
        ground.write(&[("mine", "last")]);
        let redone = undo(&ground, undone.undo.unwrap(), &[], false);
        assert_eq!(redone.outcomes.len(), expected.len());
        assert_eq!(
            (ground.read("a"), ground.read("mine")),
            ("1".into(), "last".into())
        );
        assert_eq!(ground.read("created"), "later");
    }
}

#[test]
fn later_changes_of_restored_paths_are_conflicts() {
    for is_recorded in [true, false] {
        let (ground, id) = restored_ground(is_recorded);
        ground.write(&[("a", "later"), ("new/c", "later"), ("file", "later")]);
        ground.remove("dir");
        ground.remove("folder/x");
        ground.write(&[("folder/x/deep", "later")]);
        let before = ground.tree();
        let preview = ground.preview(&undo_of(id, &[]), &[]);
        let later = ["a", "file", "folder/x/deep", "new/c"];
        let forceable: Vec<String> = preview
            .conflicts
            .iter()
            .filter(|one| one.cause == ConflictCause::ChangedSince)
            .map(|one| one.path.to_string())
            .collect();
        assert_eq!(forceable, later, "{is_recorded}");
        let reason = |path: &str| {
            let mut conflicts = preview.conflicts.iter();
            let found = conflicts.find(|one| one.path.to_string() == path);
            found.unwrap().reason.clone()
        };
        assert_eq!(reason("a"), "changed after the restore");
        assert_eq!(reason("new/c"), "created after the restore");
        // `file/y` and `folder` have no room.
        assert_eq!(preview.changes, [], "{is_recorded}");
        assert_eq!(undo(&ground, id, &[], false).undo, None);
        assert_eq!(ground.tree(), before);

        // The token of the preview is valid with and without force.
        let forced = Options {
            force: true,
            token: Some(preview.token),
            ..Options::default()
        };
        let undone = ground.try_restore(&undo_of(id, &[]), &[], &forced).unwrap();
        assert_eq!(
            (ground.read("a"), ground.read("new/c")),
            ("2".into(), "2".into())
        );
        assert_eq!(
            (ground.read("file/y"), ground.read("folder")),
            ("2".into(), "2".into())
        );
        // What it replaced is in its own undo point.
        undo(&ground, undone.undo.unwrap(), &[], false);
        assert_eq!(ground.tree(), before);
    }
}

#[test]
fn a_file_that_is_ignored_since_is_not_reported_as_deleted() {
    let (ground, id) = restored_ground(true);
    ground.write(&[(".gitignore", "/a\n")]);
    for force in [false, true] {
        let undone = undo(&ground, id, &["a"], force);
        let [conflict] = &undone.conflicts[..] else {
            panic!("{:?}", undone.conflicts);
        };
        assert!(conflict.reason.contains("ignored"), "{conflict:?}");
        assert_ne!(conflict.cause, ConflictCause::ChangedSince);
        assert_eq!(ground.read("a"), "1");
    }
}

#[test]
fn an_undo_can_be_limited_to_paths() {
    let (ground, id) = restored_ground(true);
    ground.write(&[("mine", "later")]);
    let undone = undo(&ground, id, &["new", "mine", "dir"], false);
    let expected = [("dir/b", Action::Delete), ("new/c", Action::Write)];
    assert_eq!(
        done(&undone.outcomes),
        expected.map(|(path, action)| (path.to_owned(), action))
    );
    assert_eq!(
        (ground.read("a"), ground.read("mine")),
        ("1".into(), "later".into())
    );
    undo(&ground, undone.undo.unwrap(), &[], false);
    assert!(ground.exists("dir/b") && !ground.exists("new"));
}

#[test]
fn a_path_that_the_restore_left_alone_is_not_undone() {
    let ground = Ground::new(&[("a", "1"), ("unsaved", "1"), ("open", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("unsaved", "2"), ("open", "2")]);
    // The restore cannot replace a file that is open for writing.
    let mut options = fs::OpenOptions::new();
    let open = options.append(true).open(ground.path("open")).unwrap();
    let restored = ground.try_restore(&all(id), &["unsaved"], &Options::default());
    let restored = restored.unwrap();
    assert_eq!(named(&restored.conflicts), ["unsaved"]);
    let failed = restored.outcomes.iter().filter(|one| one.error.is_some());
    assert_eq!(failed.count(), usize::from(cfg!(target_os = "linux")));
    drop(open);
    ground.write(&[("unsaved", "later"), ("open", "later")]);
    let undone = undo(&ground, restored.undo.unwrap(), &[], false);
    if cfg!(target_os = "linux") {
        assert_eq!(undone.conflicts, []);
    }
    assert_eq!(ground.read("a"), "2");
    assert_eq!(
        (ground.read("unsaved"), ground.read("open")),
        ("later".into(), "later".into())
    );
}

#[test]
fn if_nothing_is_known_of_a_restore_every_difference_is_a_conflict() {
    let ground = Ground::new(&[("a", "1"), ("b/c", "1"), ("b/d", "1")]);
    let id = ground.create();
    ground.write(&[("a", "2"), ("b/c", "2")]);
    let restored = ground.try_restore(&some(id, &["b"]), &[], &Options::default());
    let point = restored.unwrap().undo.unwrap();
    let prune = Keep {
        without: vec![id],
        ..Keep::default()
    };
    ground
        .checkpoints
        .prune(&prune, &Cancel::default())
        .unwrap();
    // The record does not need the checkpoint.
    let preview = ground.preview(&undo_of(point, &[]), &[]);
    assert_eq!((preview.changes.len(), preview.conflicts.len()), (1, 0));
    remove_records(&ground);
    ground.write(&[("a", "later"), ("b/d", "later")]);
    let preview = ground.preview(&undo_of(point, &[]), &[]);
    assert_eq!(preview.changes, []);
    assert_eq!(named(&preview.conflicts), ["b/c", "b/d"]);
    undo(&ground, point, &[], true);
    assert_eq!(
        (ground.read("a"), ground.read("b/c")),
        ("later".into(), "2".into())
    );
}

#[test]
fn a_record_is_removed_with_its_undo_point() {
    let (ground, id) = restored_ground(true);
    let records = || {
        let project = fs::read_dir(ground.data().join("projects")).unwrap().next();
        let records = project.unwrap().unwrap().path().join("state/restores");
        fs::read_dir(records).unwrap().count()
    };
    undo(&ground, id, &[], false);
    assert_eq!(records(), 2);
    let prune = Keep {
        without: vec![id],
        ..Keep::default()
    };
    ground
        .checkpoints
        .prune(&prune, &Cancel::default())
        .unwrap();
    assert_eq!(records(), 1);
}
