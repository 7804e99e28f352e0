//! A store that version 0.1.0 wrote is listed, compared, verified, restored and pruned.
//!
//! `tests/fixtures/store-0.1.0.tar` has the checkpoints `first`, `second` (of a task) and `third`, and
//! the undo point of a restore of `first`, made before `third`. The refs of `first` and `second`
//! are packed. The contents of the undo point are stored uncompressed, and `hurried` lists its
//! pack. All metadata has the rules of that time: `.clineignore` by hash, and the ignore file of
//! the repository with `*.tmp`. Current versions do not read them: a restore keeps every path that
//! the checkpoint does not hold.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::restore_support::{Ground, git};
use sightline_base::cancel::Cancel;
use sightline_checkpoint::{Filter, Keep, Oid, Purpose, Side, diff::Status};

const FIRST: &str = "a1d50b39dddc572a7e55ef38b22fe75747ce085d";
const SECOND: &str = "7a22fa244241b3a8db00dbbcf873c5fd99bb5a42";
const UNDO: &str = "99be525680141022cee60dd3739f2c3dfcf18bc0";
const THIRD: &str = "e606dab366290df1314f0b3f4dff818e9d4edfe6";

/// Files that no checkpoint holds: ignored, denied, ignored by the repository of that time, and
/// too large.
const UNCAPTURED: &[(&str, &str)] = &[
    ("debug.log", "mine"),
    ("build/out.o", "mine"),
    ("secrets/password.txt", "mine"),
    ("server.key", "mine"),
    ("notes.tmp", "mine"),
    ("huge.dat", "mine"),
];

fn id(id: &str) -> Oid {
    id.parse().unwrap()
}

/// A workspace with the old store and the uncaptured files.
fn ground() -> Ground {
    let ground = Ground::new(UNCAPTURED);
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/store-0.1.0.tar");
    let dir = ground.checkpoints.git_dir();
    fs::create_dir_all(dir.parent().unwrap()).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(fixture).arg("-C");
    assert!(tar.arg(dir.parent().unwrap()).status().unwrap().success());
    // The rules of that time. A restore keeps the current access rules.
    ground.write(&[(".clineignore", "secrets/\n*.key\n")]);
    ground
}

fn ids(ground: &Ground) -> Vec<Oid> {
    let checkpoints = ground.checkpoints.list(&Filter::default()).unwrap();
    checkpoints.iter().map(|checkpoint| checkpoint.id).collect()
}

fn assert_intact(ground: &Ground) {
    let problems = ground.job(|job| ground.checkpoints.verify(job)).unwrap();
    assert_eq!(problems, [""; 0]);
    git(&ground.checkpoints.git_dir(), &["fsck", "--strict"]);
    assert_eq!(ground.checkpoints.take_rebuilt(), None);
}

fn assert_uncaptured_files_are_kept(ground: &Ground) {
    for (path, content) in UNCAPTURED {
        assert_eq!(ground.read(path), *content, "{path}");
    }
}

fn module(lines: u32, line: impl Fn(u32) -> String) -> String {
    (1..=lines).map(|number| line(number) + "\n").collect()
}

/// The state that `first` holds.
fn assert_first(ground: &Ground) {
    let line = |number| format!("line {number} of a module that is long enough to be compressed");
    assert_eq!(ground.read("src/deep/er/mod.rs"), module(200, line));
    assert_eq!(ground.read("src/main.rs"), "fn main() {}\n");
    assert_eq!(ground.read("with space/ünïcode.txt"), "näme\n");
    let binary: Vec<u8> = (0..8).flat_map(|_| 0..=255).collect();
    assert!(fs::read(ground.path("data.bin")).unwrap() == binary);
    assert_eq!(ground.mode("run.sh") & 0o111, 0o111);
    let target = fs::read_link(ground.path("link")).unwrap();
    assert_eq!(target, PathBuf::from("src/main.rs"));
    assert!(ground.path("empty").is_dir());
}

#[test]
fn an_old_store_is_listed_compared_and_verified() {
    let ground = ground();
    let listed = ground.checkpoints.list(&Filter::default()).unwrap();
    let labels: Vec<_> = listed
        .iter()
        .map(|checkpoint| (checkpoint.id, checkpoint.metadata.label.as_deref()))
        .collect();
    assert_eq!(
        labels,
        [
            (id(THIRD), Some("third")),
            (id(UNDO), None),
            (id(SECOND), Some("second")),
            (id(FIRST), Some("first")),
        ]
    );
    let undo = &listed[1].metadata;
    let restoring = Some(id(FIRST));
    assert!(matches!(&undo.purpose, Purpose::Undo { restoring: of, .. } if *of == restoring));
    assert_eq!(listed[2].metadata.task.as_deref(), Some("1700000000000"));
    let first = &listed[3].metadata;
    assert_eq!((first.files, first.bytes), (8, 13_608));
    assert_eq!(first.skipped[0].path, "huge.dat");

    let sides = [FIRST, SECOND].map(|side| Side::Checkpoint(id(side)));
    let files = ground.diff(&sides[0], &sides[1]);
    let changed: Vec<_> = files
        .iter()
        .map(|file| (file.path.to_string(), file.status, file.binary))
        .collect();
    assert_eq!(
        changed,
        [
            ("data.bin".to_owned(), Status::Modified, true),
            ("run.sh".to_owned(), Status::Modified, false),
            ("src/main.rs".to_owned(), Status::Modified, false),
            ("src/new.rs".to_owned(), Status::Added, false),
            ("with space/ünïcode.txt".to_owned(), Status::Deleted, false),
        ]
    );
    let main = &files[2];
    let after = b"fn main() { println!(\"2\"); }\n";
    assert_eq!(main.before.as_deref(), Some(&b"fn main() {}\n"[..]));
    assert_eq!(main.after.as_deref(), Some(&after[..]));

    let packs = ground.checkpoints.git_dir().join("objects/pack");
    let is_uncompressed = fs::read_dir(packs).unwrap().any(|pack| {
        let bytes = fs::read(pack.unwrap().path()).unwrap();
        let content = b"edited line 150, which a restore saves in its undo point";
        bytes.windows(content.len()).any(|found| found == content)
    });
    assert!(is_uncompressed);
    assert_intact(&ground);
}

#[test]
fn an_old_store_is_restored() {
    let ground = ground();
    ground.restore(id(FIRST));
    assert_first(&ground);
    assert_uncaptured_files_are_kept(&ground);

    // What the old rules excluded is not decided again, so nothing is deleted.
    let restored = ground.restore(id(SECOND));
    let kept: Vec<_> = restored
        .conflicts
        .iter()
        .filter(|conflict| conflict.reason.contains("ignored paths are unknown"))
        .map(|conflict| conflict.path.to_string())
        .collect();
    assert_eq!(kept, ["notes.tmp", "with space/ünïcode.txt"]);
    assert_eq!(ground.read("src/new.rs"), "new\n");
    assert_eq!(ground.mode("run.sh") & 0o111, 0);
    assert_eq!(ground.read("with space/ünïcode.txt"), "näme\n");
    assert_uncaptured_files_are_kept(&ground);

    ground.restore(id(UNDO));
    let line = |number| format!("edited line {number}, which a restore saves in its undo point");
    assert_eq!(ground.read("src/deep/er/mod.rs"), module(300, line));
    assert_eq!(ground.read("src/undone.rs"), "only in the undo point\n");
    assert_uncaptured_files_are_kept(&ground);

    ground.restore(id(THIRD));
    assert_first(&ground);
    assert_eq!(ground.read("third.txt"), "third\n");
    assert!(ground.exists("src/undone.rs"));
    assert_uncaptured_files_are_kept(&ground);
    assert_intact(&ground);
}

#[test]
fn an_old_store_is_pruned_and_extended() {
    let ground = ground();
    ground.checkpoints.tidy(&Cancel::default()).unwrap();
    let prune = |keep: &Keep| {
        let pruned = ground.checkpoints.prune(keep, &Cancel::default()).unwrap();
        assert!(pruned.freed_bytes > 0, "{pruned:?}");
        pruned.removed
    };
    let without = |removed| Keep {
        without: vec![id(removed)],
        ..Keep::default()
    };
    assert_eq!(prune(&without(FIRST)), [id(FIRST)]);
    assert_eq!(ids(&ground), [THIRD, UNDO, SECOND].map(id));
    assert_intact(&ground);
    ground.restore(id(THIRD));
    assert_first(&ground);

    let created = ground.create();
    let keep = Keep {
        newest: Some(2),
        labelled: true,
        ..Keep::default()
    };
    let removed = prune(&keep);
    assert!(removed.contains(&id(UNDO)) && removed.contains(&id(SECOND)));
    let left = ids(&ground);
    assert!(left.contains(&created) && left.contains(&id(THIRD)));
    assert_intact(&ground);
    ground.write(&[("src/main.rs", "changed")]);
    ground.restore(id(THIRD));
    assert_first(&ground);
    assert_uncaptured_files_are_kept(&ground);
}
