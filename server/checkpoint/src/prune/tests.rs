//! Tests that pruning removes what it should, and keeps the rest intact.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use proptest::prelude::*;
use sightline_base::{cancel::Cancel, storage::TaskId};
use sightline_protocol::{checkpoint::AgentTurn, error::ErrorKind};

use crate::{
    metadata::{CheckpointMetadata, Purpose},
    prune::Keep,
    store::object::{Mode, Oid},
    testing::{Scratch, TestFile, fsck, git, noise},
};

fn prune(scratch: &Scratch, keep: &Keep) -> Vec<Oid> {
    let pruned = scratch.checkpoints.prune(keep, &Cancel::default()).unwrap();
    pruned.removed
}

/// Runs a dry run, and checks that it changes nothing.
fn would_prune(scratch: &Scratch, keep: &Keep) -> Vec<Oid> {
    let before = (scratch.ids(), pack_count(scratch));
    let checkpoints = &scratch.checkpoints;
    let pruned = checkpoints.would_prune(keep, &Cancel::default()).unwrap();
    assert_eq!((scratch.ids(), pack_count(scratch)), before);
    assert_eq!(pruned.removed.is_empty(), pruned.freed_bytes == 0);
    assert!(pruned.freed_bytes <= checkpoints.stats().unwrap().bytes);
    pruned.removed
}

fn undo(created: u64, restoring: Option<Oid>) -> CheckpointMetadata {
    CheckpointMetadata {
        created,
        purpose: Purpose::Undo {
            restoring,
            paths: Vec::new(),
        },
        ..CheckpointMetadata::default()
    }
}

/// Asserts that the server and git find no damage.
fn assert_whole(scratch: &Scratch) {
    let problems = scratch.verify();
    assert_eq!(problems, [""; 0]);
    fsck(&scratch.dir());
}

fn pack_count(scratch: &Scratch) -> usize {
    scratch.repository().packs().unwrap().len()
}

#[test]
fn the_newest_stay_and_older_undo_points_go() {
    let scratch = Scratch::new();
    let asked: Vec<Oid> = (0..4)
        .map(|at| scratch.checkpoint(10 + at * 10, &[]))
        .collect();
    let undone: Vec<Oid> = [15, 25, 35, 45]
        .map(|at| scratch.checkpoint_with(undo(at, None), &[]))
        .into();
    let newest = |newest| Keep {
        newest: Some(newest),
        ..Keep::default()
    };
    let gone = [undone[1], asked[1], undone[0], asked[0]];
    for act in [would_prune, prune] {
        assert_eq!(act(&scratch, &newest(4)), []);
        assert_eq!(act(&scratch, &newest(2)), gone);
    }
    assert_eq!(scratch.ids(), [undone[3], asked[3], undone[2], asked[2]]);
    assert_whole(&scratch);
    prune(&scratch, &newest(0));
    assert_eq!(scratch.ids(), []);
    assert_whole(&scratch);
}

#[test]
fn only_automatic_checkpoints_without_a_label_are_surplus() {
    let scratch = Scratch::new();
    let turn = |created, label: Option<&str>| CheckpointMetadata {
        created,
        label: label.map(str::to_owned),
        turn: Some(AgentTurn::default()),
        ..CheckpointMetadata::default()
    };
    let asked = scratch.checkpoint(10, &[]);
    let labelled = scratch.checkpoint_with(turn(20, Some("mine")), &[]);
    let automatic: Vec<Oid> = (30..39)
        .map(|at| scratch.checkpoint_with(turn(at, None), &[]))
        .collect();
    let prune_automatic = |keep| {
        let pruned = scratch
            .checkpoints
            .prune_automatic(keep, &Cancel::default());
        pruned.unwrap();
        scratch.ids().len()
    };
    // Nine are an eighth more than eight.
    assert_eq!(prune_automatic(8), 11);
    assert_eq!(prune_automatic(7), 9);
    assert_eq!(prune_automatic(0), 2);
    assert_eq!(scratch.ids(), [labelled, asked]);
    assert!(!scratch.ids().contains(&automatic[8]));
    assert_whole(&scratch);
}

#[test]
fn prunes_by_age_and_task() {
    let scratch = Scratch::new();
    let of = |task: &str, created| CheckpointMetadata {
        created,
        task: Some(task.to_owned()),
        ..CheckpointMetadata::default()
    };
    let a = scratch.checkpoint_with(of("a", 1), &[]);
    let b = scratch.checkpoint_with(of("b", 2), &[]);
    let c = scratch.checkpoint_with(of("a", 3), &[]);
    let since = Keep {
        since: Some(2),
        ..Keep::default()
    };
    assert_eq!(prune(&scratch, &since), [a]);
    let without_task = Some(TaskId::new("a").unwrap());
    let task = Keep {
        without_task,
        ..Keep::default()
    };
    assert_eq!(prune(&scratch, &task), [c]);
    assert_eq!(scratch.ids(), [b]);
    assert_eq!(prune(&scratch, &Keep::default()), []);
}

#[test]
fn an_interrupted_restore_keeps_its_checkpoints() {
    let scratch = Scratch::new();
    let target = scratch.checkpoint(1, &[]);
    let undo = scratch.checkpoint_with(undo(2, Some(target)), &[]);
    let other = scratch.checkpoint(3, &[]);
    let journal = scratch.dir().parent().unwrap().join("state/journal.json");
    fs::write(&journal, "{}").unwrap();
    let keep = Keep {
        newest: Some(0),
        ..Keep::default()
    };
    assert_eq!(prune(&scratch, &keep), [other]);
    assert_eq!(scratch.ids(), [undo, target]);
    fs::remove_file(&journal).unwrap();
    assert_eq!(prune(&scratch, &keep), [undo, target]);
}

#[test]
fn pruning_frees_space_and_keeps_shared_objects() {
    let scratch = Scratch::new();
    let shared = noise(1, 300_000);
    let mut created = 0;
    let mut make = |seed: u64| {
        created += 1;
        let own = noise(seed, 200_000);
        let files: [TestFile<'_>; 2] = [
            (b"d/shared", &shared, Mode::File),
            (b"own", &own, Mode::File),
        ];
        scratch.checkpoint(created, &files)
    };
    let first = make(10);
    make(11);
    let third = make(12);
    let before = scratch.checkpoints.stats().unwrap();
    assert_eq!(
        (before.count, before.oldest, before.newest),
        (3, Some(1), Some(3))
    );
    assert!(before.bytes > 900_000);
    // The first pack holds the shared object, so it is rewritten.
    let keep = Keep {
        newest: Some(1),
        ..Keep::default()
    };
    let generation = scratch.repository().generation().unwrap();
    let pruned = scratch
        .checkpoints
        .prune(&keep, &Cancel::default())
        .unwrap();
    let after = scratch.checkpoints.stats().unwrap();
    assert_eq!(pruned.freed_bytes, before.bytes - after.bytes);
    assert!((500_000..510_000).contains(&after.bytes), "{after:?}");
    assert!(scratch.repository().generation().unwrap() > generation);
    assert_eq!(scratch.ids(), [third]);
    assert!(scratch.checkpoints.get(first).is_err());
    assert_whole(&scratch);

    let generation = scratch.repository().generation().unwrap();
    assert_eq!(prune(&scratch, &keep), []);
    assert_eq!(scratch.repository().generation().unwrap(), generation);
}

#[test]
fn the_oldest_go_until_the_rest_fits() {
    let scratch = Scratch::new();
    let mut ids = Vec::new();
    for at in 0..6 {
        let content = noise(at, 100_000);
        ids.push(scratch.checkpoint(at + 1, &[(b"f", &content, Mode::File)]));
    }
    let undone = scratch.checkpoint_with(undo(1, None), &[]);
    let keep = |max_bytes| Keep {
        max_bytes: Some(max_bytes),
        ..Keep::default()
    };
    for act in [would_prune, prune] {
        assert_eq!(act(&scratch, &keep(10_000_000)), []);
        assert_eq!(act(&scratch, &keep(350_000)), [ids[2], ids[1], ids[0]]);
    }
    assert_eq!(scratch.ids(), [ids[5], ids[4], ids[3], undone]);
    assert!(scratch.checkpoints.stats().unwrap().bytes <= 350_000);
    assert_whole(&scratch);
    // The newest checkpoint and the newest undo point always stay.
    prune(&scratch, &keep(1));
    assert_eq!(scratch.ids(), [ids[5], undone]);
    assert_whole(&scratch);
}

#[test]
fn foreign_refs_keep_their_objects() {
    let scratch = Scratch::new();
    let content = noise(3, 50_000);
    let id = scratch.checkpoint(1, &[(b"f", &content, Mode::File)]);
    let dir = scratch.dir();
    let who = ["-c", "user.name=x", "-c", "user.email=x@y"];
    git(
        &dir,
        &[
            &who[..],
            &["tag", "-a", "-m", "mine", "mine", &id.to_string()],
        ]
        .concat(),
    );
    git(&dir, &["pack-refs", "--all"]);
    let keep = Keep {
        newest: Some(0),
        ..Keep::default()
    };
    assert_eq!(prune(&scratch, &keep), [id]);
    assert_eq!(git(&dir, &["cat-file", "-s", "mine:f"]), "50000\n");
    assert_whole(&scratch);
    git(&dir, &["tag", "-d", "mine"]);
    scratch.checkpoint(2, &[]);
    prune(&scratch, &keep);
    assert!(scratch.checkpoints.stats().unwrap().bytes < 3000);
}

#[test]
fn a_store_repacked_by_git_can_be_pruned() {
    let scratch = Scratch::new();
    let text = |line: &str| line.repeat(20_000).into_bytes();
    for at in 0..8u64 {
        let content = [noise(7, 60_000), text(&format!("line {at}\n"))].concat();
        scratch.checkpoint(at + 1, &[(b"f", &content, Mode::File)]);
    }
    let dir = scratch.dir();
    git(&dir, &["gc", "--aggressive", "--prune=now"]);
    git(&dir, &["multi-pack-index", "write"]);
    assert_whole(&scratch);
    let kept = scratch.ids()[..3].to_vec();
    let keep = Keep {
        newest: Some(3),
        ..Keep::default()
    };
    assert_eq!(prune(&scratch, &keep).len(), 5);
    assert_eq!(scratch.ids(), kept);
    assert_whole(&scratch);
    git(&dir, &["log", "--all"]);
}

#[test]
fn packs_of_a_store_in_use_are_combined() {
    let scratch = Scratch::new();
    for at in 1..=120_u64 {
        let content = format!("content {at}");
        scratch.checkpoint(at, &[(b"a", content.as_bytes(), Mode::File)]);
        let count = pack_count(&scratch);
        assert_eq!(scratch.checkpoints.has_many_packs(), count > 50);
        let combined = scratch.checkpoints.combine_packs(&Cancel::default());
        combined.unwrap();
        assert!(pack_count(&scratch) <= 50, "{at}");
    }
    assert_eq!(scratch.ids().len(), 120);
    assert_eq!(scratch.verify(), [""; 0]);
}

#[test]
fn many_small_packs_are_combined_under_an_open_reader() {
    let scratch = Scratch::new();
    let big = noise(5, 3 << 20);
    let first = scratch.checkpoint(1, &[(b"big", &big, Mode::File)]);
    let mut created = 1;
    let mut some = |count: u64| {
        for _ in 0..count {
            created += 1;
            let content = format!("content {created}");
            scratch.checkpoint(created, &[(b"a", content.as_bytes(), Mode::File)]);
        }
    };
    some(30);
    scratch.checkpoints.tidy(&Cancel::default()).unwrap();
    assert_eq!(pack_count(&scratch), 31);
    some(30);
    let ids = scratch.ids();
    let generation = scratch.repository().generation().unwrap();
    let reader = scratch.repository().odb();
    reader.commit(ids[3]).unwrap();
    scratch.checkpoints.tidy(&Cancel::default()).unwrap();
    assert_eq!(pack_count(&scratch), 2);
    assert_eq!(scratch.ids(), ids);
    let loose = fs::read_dir(scratch.dir().join("refs/checkpoints")).unwrap();
    assert_eq!(loose.count(), 0);
    for id in &ids {
        reader.tree(reader.commit(*id).unwrap().tree).unwrap();
    }
    // No object was removed, so knowledge about stored objects stays valid.
    assert_eq!(scratch.repository().generation().unwrap(), generation);
    assert_whole(&scratch);
    let keep = Keep {
        newest: Some(1),
        ..Keep::default()
    };
    prune(&scratch, &keep);
    assert_eq!(scratch.ids(), ids[..1]);
    assert!(scratch.checkpoints.get(first).is_err());
    assert_whole(&scratch);
}

#[test]
fn an_interrupted_prune_is_finished() {
    let scratch = Scratch::new();
    let content = noise(3, 50_000);
    let gone = scratch.checkpoint(1, &[(b"f", &content, Mode::File)]);
    let kept = scratch.checkpoint(2, &[]);
    // As after a kill between removing refs and objects.
    fs::write(scratch.dir().join("unpruned"), "").unwrap();
    fs::remove_file(scratch.dir().join(format!("refs/checkpoints/{gone}"))).unwrap();
    let pruned = scratch
        .checkpoints
        .prune(&Keep::default(), &Cancel::default());
    let pruned = pruned.unwrap();
    assert_eq!(pruned.removed, []);
    assert!(pruned.freed_bytes > 50_000);
    assert!(!scratch.dir().join("unpruned").exists());
    assert_eq!(scratch.ids(), [kept]);
    assert_whole(&scratch);
}

#[test]
fn cancelled_pruning_removes_nothing() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[]);
    let keep = Keep {
        newest: Some(0),
        ..Keep::default()
    };
    let cancel = Cancel::default();
    cancel.cancel();
    let error = scratch.checkpoints.prune(&keep, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(scratch.ids().len(), 1);
    assert!(!scratch.dir().join("unpruned").exists());
}

#[test]
fn a_damaged_object_stops_pruning_before_any_removal() {
    let scratch = Scratch::new();
    let content = noise(3, 5_000);
    scratch.checkpoint(
        1,
        &[(b"d/f", &content, Mode::File), (b"g", b"g", Mode::File)],
    );
    let pack = scratch
        .repository()
        .packs()
        .unwrap()
        .remove(0)
        .path()
        .to_path_buf();
    scratch.checkpoint(2, &[(b"d/f", &content, Mode::File)]);
    let mut bytes = fs::read(&pack).unwrap();
    bytes[2000] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let keep = Keep {
        newest: Some(1),
        ..Keep::default()
    };
    let error = scratch
        .checkpoints
        .prune(&keep, &Cancel::default())
        .unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(pack.exists());
}

/// Child process of the next two tests: creates and prunes checkpoints, and reports the durable
/// ones.
#[test]
fn child_that_writes_endlessly() {
    let Some(folder) = std::env::var_os("SIGHTLINE_TEST_WRITER") else {
        return;
    };
    let scratch = Scratch::at(folder.as_ref());
    for created in 1..2000u64 {
        let content = noise(created, 40_000);
        let files: [TestFile<'_>; 2] = [
            (b"f", &content, Mode::File),
            (b"d/same", b"same", Mode::File),
        ];
        let id = scratch.checkpoint(created, &files);
        println!("\nstored {id}");
        if created % 7 == 0 {
            let keep = Keep {
                newest: Some(5),
                ..Keep::default()
            };
            let pruned = scratch
                .checkpoints
                .prune(&keep, &Cancel::default())
                .unwrap();
            for id in pruned.removed {
                println!("\nremoved {id}");
            }
        }
    }
}

#[test]
fn a_killed_writer_loses_nothing_it_acknowledged() {
    for lines in [1, 8, 15, 37, 60] {
        let scratch = Scratch::new();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "prune::tests::child_that_writes_endlessly"])
            .args(["--nocapture", "--test-threads=1"])
            .env("SIGHTLINE_TEST_WRITER", scratch.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut reported: HashMap<String, bool> = HashMap::new();
        let mut hear = |line: String| -> bool {
            let Some((word, id)) = line.split_once(' ') else {
                return false;
            };
            if matches!(word, "stored" | "removed") {
                reported.insert(id.to_owned(), word == "stored");
                return true;
            }
            false
        };
        let mut reader = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        while heard < lines {
            heard += usize::from(hear(reader.next().unwrap().unwrap()));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in reader.map_while(Result::ok) {
            hear(line);
        }
        assert_whole(&scratch);
        let ids = scratch.ids();
        let stored: Vec<&String> = reported
            .iter()
            .filter(|(_, is)| **is)
            .map(|(id, _)| id)
            .collect();
        // A kill during pruning may lose the report of a removal, but never one of the five newest.
        let by_age: BTreeMap<u64, String> = ids
            .iter()
            .map(|id| (scratch.get(*id).metadata.created, id.to_string()))
            .collect();
        assert!(
            by_age.len() >= stored.len().min(5),
            "{by_age:?} {reported:?}"
        );
        scratch.checkpoint(1_000_000, &[(b"next", b"1", Mode::File)]);
        prune(
            &scratch,
            &Keep {
                newest: Some(3),
                ..Keep::default()
            },
        );
        assert_whole(&scratch);
        let left = fs::read_dir(scratch.dir().join("objects/pack"))
            .unwrap()
            .flatten();
        let left: Vec<_> = left
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("tmp"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A limit on the file size simulates a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_fails_a_checkpoint_and_loses_none() {
    let scratch = Scratch::new();
    let small = scratch.checkpoint(1, &[(b"f", b"small", Mode::File)]);
    let child = Command::new("sh")
        // In blocks of 512 bytes. With the signal ignored, a write fails as on a full disk.
        .args(["-c", "trap '' XFSZ; ulimit -f 40; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "prune::tests::child_that_writes_endlessly"])
        .args(["--nocapture", "--test-threads=1"])
        .env("SIGHTLINE_TEST_WRITER", scratch.folder.path())
        .output()
        .unwrap();
    assert!(!child.status.success());
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(text.contains("write a pack in"), "{text}");
    assert_eq!(scratch.ids(), [small]);
    assert_whole(&scratch);
    scratch.checkpoint(3, &[(b"f", b"other", Mode::File)]);
    assert_eq!(pack_count(&scratch), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn remaining_checkpoints_are_intact(
        made in proptest::collection::vec(
            (proptest::collection::btree_map("[ab]/[a-d]|[a-f]", 0u8..6, 0..6), any::<bool>(), 0u64..4),
            1..9,
        ),
        newest in proptest::option::of(0usize..6),
        since in proptest::option::of(0u64..30),
        max_bytes in proptest::option::of(0u64..20_000),
        tidied: bool,
    ) {
        let scratch = Scratch::new();
        for (at, (files, is_undo, pause)) in made.iter().enumerate() {
            let contents: Vec<(Vec<u8>, Vec<u8>)> = files
                .iter()
                .filter(|(path, _)| !(path.len() == 1 && matches!(path.as_str(), "a" | "b")))
                .map(|(path, seed)| (path.clone().into_bytes(), noise(u64::from(*seed), 1500)))
                .collect();
            let files: Vec<TestFile<'_>> = contents
                .iter()
                .map(|(path, content)| (path.as_slice(), content.as_slice(), Mode::File))
                .collect();
            let created = 1 + at as u64 * 4 + pause;
            let mut metadata = if *is_undo { undo(created, None) } else { CheckpointMetadata::default() };
            metadata.created = created;
            scratch.checkpoint_with(metadata, &files);
        }
        if tidied {
            scratch.checkpoints.tidy(&Cancel::default()).unwrap();
        }
        let before = scratch.ids();
        let asked: Vec<Oid> = before
            .iter()
            .copied()
            .filter(|id| !matches!(scratch.get(*id).metadata.purpose, Purpose::Undo { .. }))
            .collect();
        let keep = Keep { newest, since, max_bytes, ..Keep::default() };
        let pruned = scratch.checkpoints.prune(&keep, &Cancel::default()).unwrap();
        let after = scratch.ids();
        let mut all: Vec<Oid> = after.iter().chain(&pruned.removed).copied().collect();
        all.sort_unstable();
        let mut wanted = before.clone();
        wanted.sort_unstable();
        prop_assert_eq!(all, wanted);
        let problems = scratch.verify();
        prop_assert_eq!(problems, Vec::<String>::new());
        if let (Some(newest), None, None) = (newest, since, max_bytes) {
            let kept: Vec<Oid> = asked.iter().copied().take(newest).collect();
            let left: Vec<Oid> = after.iter().copied().filter(|id| asked.contains(id)).collect();
            prop_assert_eq!(kept, left);
        }
        if let (None, None, Some(limit)) = (newest, since, max_bytes) {
            let size = scratch.checkpoints.stats().unwrap().bytes;
            prop_assert!(size <= limit || after.len() <= 2, "{} {}", size, limit);
        }
        fsck(&scratch.dir());
    }
}
