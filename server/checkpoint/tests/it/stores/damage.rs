//! Damaged objects in the store: a restore never gives up workspace content for them, and intact
//! workspace content repairs the store.

use std::{fs, path::PathBuf};

use crate::restore_support::{Ground, all, git, some};
use sightline_checkpoint::{Filter, Oid, restore::Options};
use sightline_protocol::error::ErrorKind;

/// Text that hardly compresses, different for each seed.
fn text(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}\n")
    };
    (0..300).map(|_| next()).collect()
}

/// Flips one bit in the pack entry of `name` (a git revision).
fn damage(ground: &Ground, name: &str) {
    let dir = ground.checkpoints.git_dir();
    let oid = git(&dir, &["rev-parse", name]);
    for entry in fs::read_dir(dir.join("objects/pack")).unwrap() {
        let index = entry.unwrap().path();
        if index.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        let listed = git(&dir, &["verify-pack", "-v", index.to_str().unwrap()]);
        let Some(line) = listed.lines().find(|line| line.starts_with(oid.trim())) else {
            continue;
        };
        let numbers: Vec<usize> = line
            .split_whitespace()
            .skip(2)
            .map(|number| number.parse().unwrap())
            .collect();
        let pack = index.with_extension("pack");
        let mut bytes = fs::read(&pack).unwrap();
        bytes[numbers[2] + numbers[1] / 2] ^= 1;
        fs::set_permissions(&pack, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        fs::write(&pack, bytes).unwrap();
        return;
    }
    panic!("{name} is in no pack");
}

fn kept_aside(ground: &Ground) -> Vec<PathBuf> {
    let dir = ground.checkpoints.git_dir();
    let entries = fs::read_dir(dir.parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().contains(".broken-"))
        .collect()
}

fn ids(ground: &Ground) -> Vec<Oid> {
    let checkpoints = ground.checkpoints.list(&Filter::default()).unwrap();
    checkpoints.iter().map(|checkpoint| checkpoint.id).collect()
}

fn problems(ground: &Ground) -> Vec<String> {
    ground.job(|job| ground.checkpoints.verify(job)).unwrap()
}

/// Two checkpoints of `d/f`; the workspace has the second content.
fn two() -> (Ground, Oid, Oid) {
    let ground = Ground::new(&[("d/f", &text(1)), ("g", "g")]);
    let first = ground.create();
    ground.write(&[("d/f", &text(2))]);
    let second = ground.create();
    (ground, first, second)
}

#[test]
fn a_damaged_object_does_not_cost_the_only_intact_copy() {
    for what in ["d/f", "d"] {
        let (ground, first, second) = two();
        let before = ground.tree();
        damage(&ground, &format!("{second}:{what}"));
        let undo = ground.restore(first).undo.unwrap();
        assert_eq!(ground.read("d/f"), text(1));
        assert_eq!(ids(&ground), [undo, first], "{what}");
        assert_eq!(problems(&ground), [""; 0]);
        let reported = ground.checkpoints.take_rebuilt().unwrap();
        assert_eq!(kept_aside(&ground), std::slice::from_ref(&reported.kept));
        assert!(reported.reason.contains("damaged"), "{reported:?}");
        ground.restore(undo);
        assert_eq!(ground.tree(), before);
    }
}

#[test]
fn a_lost_target_changes_nothing() {
    // Large, so that it is not stored a second time.
    let large: String = (2..22).map(text).collect();
    let ground = Ground::new(&[("f", &text(1)), ("copy", &large)]);
    let first = ground.create();
    ground.write(&[("f", &large)]);
    let before = ground.tree();
    damage(&ground, &format!("{first}:copy"));
    let error = ground
        .try_restore(&all(first), &[], &Options::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.to_string().contains(&first.to_string()), "{error}");
    assert!(
        error.to_string().contains("nothing was restored"),
        "{error}"
    );
    assert_eq!(ground.tree(), before);
    // The replacement is intact.
    assert_eq!(problems(&ground), [""; 0]);
    let last = ground.checkpoints.last_undo().unwrap().unwrap();
    ground.write(&[("f", "gone"), ("copy", "gone")]);
    ground.restore(last);
    assert_eq!(ground.tree(), before);
}

#[test]
fn damaged_contents_are_refused_before_any_change() {
    let (ground, first, _) = two();
    ground.write(&[("g", "changed"), ("new", "n")]);
    let before = ground.tree();
    damage(&ground, &format!("{first}:d/f"));
    let error = ground
        .try_restore(&all(first), &[], &Options::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(
        error.to_string().contains("content of d/f is damaged"),
        "{error}"
    );
    assert_eq!(ground.tree(), before);
    assert_eq!(kept_aside(&ground), [""; 0].map(PathBuf::from));
    // Everything else can still be restored.
    let options = Options::default();
    let restored = ground.try_restore(&some(first, &["g"]), &[], &options);
    assert_eq!(restored.unwrap().outcomes.len(), 1);
    assert_eq!(ground.read("g"), "g");
}

/// The comparison uses cached folders. Completing the restore after a kill has to read them.
#[test]
fn a_damaged_folder_of_the_last_checkpoint_is_refused() {
    let ground = Ground::new(&[("d/f", &text(1)), ("g", "g")]);
    let last = ground.create();
    ground.write(&[("d/f", &text(2))]);
    let before = ground.tree();
    damage(&ground, &format!("{last}:d"));
    let error = ground
        .try_restore(&all(last), &[], &Options::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert_eq!(ground.tree(), before);
}

/// The store is not checked again while its files are unchanged.
#[test]
fn the_next_checkpoint_notices_lost_objects() {
    let (ground, first, second) = two();
    let dir = ground.checkpoints.git_dir();
    let oldest = fs::read_dir(dir.join("objects/pack"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "pack"))
        .min_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    fs::remove_file(oldest.unwrap()).unwrap();
    let third = ground.create();
    assert_eq!(kept_aside(&ground).len(), 1);
    let reported = ground.checkpoints.take_rebuilt().unwrap();
    assert!(
        reported.lost.contains(&first) && reported.lost.contains(&second),
        "{reported:?}"
    );
    assert_eq!(ids(&ground), [third]);
    assert_eq!(problems(&ground), [""; 0]);
}

#[test]
fn the_next_checkpoint_repairs_known_damage() {
    let (ground, first, second) = two();
    damage(&ground, &format!("{second}:d/f"));
    let reported = problems(&ground);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(ids(&ground), [second, first]);
    // Another process, which did not check it.
    let other = Ground::at(ground.data().parent().unwrap());
    let third = other.create();
    assert_eq!(ids(&other), [third, first]);
    assert_eq!(other.checkpoints.take_rebuilt().unwrap().lost, [second]);
    assert_eq!(problems(&other), [""; 0]);
    let dir = ground.checkpoints.git_dir();
    let content = git(&dir, &["cat-file", "blob", &format!("{third}:d/f")]);
    assert!(content == text(2));
    // The recorded damage belongs to a store that no longer exists.
    let fourth = ground.create();
    assert_eq!(ids(&ground), [fourth, third, first]);
    assert_eq!(kept_aside(&ground).len(), 1);
}

/// Its folder is compared with the damaged one, which tells nothing about the files that are stored.
#[test]
fn a_damaged_folder_does_not_prevent_the_next_checkpoint() {
    let (ground, first, second) = two();
    damage(&ground, &format!("{second}:d"));
    ground.write(&[("d/f", &text(3))]);
    let third = ground.create();
    let dir = ground.checkpoints.git_dir();
    assert_eq!(git(&dir, &["show", &format!("{third}:d/f")]), text(3));
    assert!(!problems(&ground).is_empty());
    ground.write(&[("d/f", &text(4))]);
    assert_eq!(ids(&ground).len(), 3);
    let fourth = ground.create();
    assert_eq!(ids(&ground), [fourth, third, first]);
    assert_eq!(problems(&ground), [""; 0]);
}
