//! Stores of a workspace with two folders, as written before the crates were cut, are listed,
//! compared, verified, restored and extended.
//!
//! `tests/fixtures/store-groups.tar` has the project folders `shop` and `lib` of the data
//! directory. In `shop`, `first` is followed by `second` (of a task), which changes and removes a
//! file, adds and renames one, and changes a mode. `together` is a group of both folders; its
//! restore made an undo point in each. `last` follows, and a checkpoint imported from Cline.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::restore_support::{Ground, git, undo_of};
use sightline_checkpoint::{Filter, Oid, Purpose, Side, diff::Status, restore::Options};

const IMPORTED: &str = "d1b3a352d7a962cb6c53ee027ce1b9fe6f44eb91";
const CLINES: &str = "f462d199b4318f186914d24171d78622672b1d7c";
const FIRST: &str = "b77482153bc3c7cae223af0018c0a5d8b4a28586";
const SECOND: &str = "fd32c3e0e27c1ab4f75cde9f26b9333d02301630";
const TOGETHER: [&str; 2] = [
    "f9058a0331ae2b9179aea92fdcfb7621b8246369",
    "f338a5a909b79dd41304432aca2a74b13af3ebf6",
];
const UNDO: [&str; 2] = [
    "1a8c46d928ae1f98b91be8f0611c39ec289a0c52",
    "b82f8db58476cf11c87706c79eb9f6d698931671",
];
const LAST: &str = "56d9ac80c65e8873bb920210e96dce6fef50e64c";

/// Files that no checkpoint of `shop` holds.
const UNCAPTURED: &[(&str, &str)] = &[
    (".clineignore", "secrets/\n*.key\n"),
    ("debug.log", "mine"),
    ("secrets/password.txt", "mine"),
    ("server.key", "mine"),
];

fn id(id: &str) -> Oid {
    id.parse().unwrap()
}

/// A workspace with the store of a folder.
fn ground(folder: &str, files: &[(&str, &str)]) -> Ground {
    let ground = Ground::new(files);
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/store-groups.tar");
    let git_dir = ground.checkpoints.git_dir();
    let project = git_dir.parent().unwrap();
    fs::create_dir_all(project).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "-xf"]).arg(fixture);
    assert!(
        tar.arg("-C")
            .arg(project)
            .arg(folder)
            .status()
            .unwrap()
            .success()
    );
    ground
}

fn assert_intact(ground: &Ground) {
    let problems = ground.job(|job| ground.checkpoints.verify(job)).unwrap();
    assert_eq!(problems, [""; 0]);
    git(&ground.checkpoints.git_dir(), &["fsck", "--strict"]);
    assert_eq!(ground.checkpoints.take_rebuilt(), None);
}

#[test]
fn stores_with_a_group_are_listed_and_verified() {
    let shop = ground("shop", UNCAPTURED);
    let lib = ground("lib", &[]);
    let listed = shop.checkpoints.list(&Filter::default()).unwrap();
    let labels: Vec<_> = listed
        .iter()
        .map(|checkpoint| (checkpoint.id, checkpoint.metadata.label.as_deref()))
        .collect();
    assert_eq!(
        labels,
        [
            (id(LAST), Some("last")),
            (id(UNDO[0]), None),
            (id(TOGETHER[0]), Some("together")),
            (id(SECOND), Some("second")),
            (id(FIRST), Some("first")),
            (id(IMPORTED), Some("imported from Cline f462d19")),
        ]
    );
    assert_eq!(listed[3].metadata.task.as_deref(), Some("1700000000000"));
    let imported = &listed[5].metadata;
    assert_eq!(imported.purpose, Purpose::Imported);
    assert_eq!(imported.imported.as_deref(), Some(CLINES));
    let found = shop.checkpoints.imported_from(id(CLINES)).unwrap();
    assert_eq!(found.map(|found| found.id), Some(id(IMPORTED)));

    let others = lib.checkpoints.list(&Filter::default()).unwrap();
    let ids: Vec<Oid> = others.iter().map(|checkpoint| checkpoint.id).collect();
    assert_eq!(ids, [id(UNDO[1]), id(TOGETHER[1])]);
    for (at, other) in [(2, 1), (1, 0)] {
        let (metadata, other) = (&listed[at].metadata, &others[other].metadata);
        assert!(metadata.group.is_some() && metadata.group == other.group);
        assert_eq!(metadata.group_roots.len(), 2);
        assert_eq!(metadata.group_roots, other.group_roots);
    }
    let restoring = Some(id(TOGETHER[1]));
    let purpose = &others[0].metadata.purpose;
    assert!(matches!(purpose, Purpose::Undo { restoring: of, .. } if *of == restoring));
    assert_eq!(shop.checkpoints.last_undo().unwrap(), Some(id(UNDO[0])));
    assert_intact(&shop);
    assert_intact(&lib);
}

#[test]
fn checkpoints_of_a_stored_group_are_compared() {
    let shop = ground("shop", UNCAPTURED);
    let sides = [FIRST, SECOND].map(|side| Side::Checkpoint(id(side)));
    let changed: Vec<_> = shop
        .diff(&sides[0], &sides[1])
        .iter()
        .map(|file| {
            let old = file.old_path.as_ref().map(ToString::to_string);
            (file.path.to_string(), file.status, old)
        })
        .collect();
    let file = |path: &str, status| (path.to_owned(), status, None);
    assert_eq!(
        changed,
        [
            file("run.sh", Status::Modified),
            file("src/gone.rs", Status::Deleted),
            file("src/main.rs", Status::Modified),
            (
                "src/moved/data.bin".to_owned(),
                Status::Renamed,
                Some("data.bin".to_owned())
            ),
            file("src/new.rs", Status::Added),
        ]
    );
}

#[test]
fn checkpoints_of_a_stored_group_are_restored() {
    let shop = ground("shop", UNCAPTURED);
    shop.restore(id(FIRST));
    let line = |number| format!("line {number} of a module that is long enough to be compressed\n");
    let module: String = (1..=200).map(line).collect();
    assert_eq!(shop.read("src/deep/er/mod.rs"), module);
    assert_eq!(shop.read("src/main.rs"), "fn main() {}\n");
    assert_eq!(shop.read("src/gone.rs"), "gone\n");
    assert_eq!(shop.read("with space/ünïcode.txt"), "näme\n");
    assert_eq!(shop.mode("run.sh"), 0o755);
    assert_eq!(shop.mode("private.txt"), 0o600);
    assert!(shop.path("empty").is_dir());
    let target = fs::read_link(shop.path("link")).unwrap();
    assert_eq!(target, PathBuf::from("src/main.rs"));
    let binary: Vec<u8> = (0..8).flat_map(|_| 0..=255).collect();
    assert!(fs::read(shop.path("data.bin")).unwrap() == binary);

    shop.restore(id(SECOND));
    assert!(!shop.exists("src/gone.rs") && !shop.exists("data.bin"));
    assert_eq!(shop.read("src/new.rs"), "new\n");
    assert_eq!(shop.mode("run.sh") & 0o111, 0);
    let second = shop.tree();

    // As in the session that made them: the restore of the group is undone.
    let undone = shop.try_restore(&undo_of(id(UNDO[0]), &[]), &[], &Options::default());
    assert_eq!(undone.unwrap().conflicts, []);
    assert_eq!(shop.read("src/main.rs"), "fn main() { edited }\n");
    assert_eq!(shop.read("src/undone.rs"), "only in the undo point\n");
    shop.restore(id(TOGETHER[0]));
    assert_eq!(shop.tree(), second);
    shop.restore(id(LAST));
    assert_eq!(shop.read("last.txt"), "last\n");

    // The exclusions of an imported checkpoint are unknown, so nothing is deleted.
    shop.write(&[("src/gone.rs", "another\n")]);
    shop.restore(id(IMPORTED));
    assert!(shop.exists("src/gone.rs") && shop.exists("last.txt"));
    for (path, content) in UNCAPTURED {
        assert_eq!(shop.read(path), *content, "{path}");
    }
    let created = shop.create();
    shop.restore(id(FIRST));
    shop.restore(created);
    assert!(shop.exists("last.txt"));
    assert_intact(&shop);

    let lib = ground("lib", &[]);
    lib.restore(id(TOGETHER[1]));
    assert_eq!(lib.read("notes.md"), "one\n");
    let undone = lib.try_restore(&undo_of(id(UNDO[1]), &[]), &[], &Options::default());
    assert_eq!(undone.unwrap().conflicts, []);
    assert_eq!(lib.read("lib.rs"), "pub fn edited() {}\n");
    assert!(!lib.exists("notes.md"));
    assert_intact(&lib);
}
