//! Restores of tracked files.

use super::*;
use crate::restore_support::all;

fn ground() -> Ground {
    let ground = Ground::new(&[
        (".gitignore", "*.log\nout/\n"),
        ("keep.log", "1"),
        ("junk.log", "1"),
        ("out/keep", "1"),
        ("out/junk", "1"),
    ]);
    ground.git(&["init", "-q"]);
    ground.git(&["add", "-f", "keep.log", "out/keep"]);
    ground
}

/// Returns the paths left alone, and the undo point.
fn restore(ground: &Ground, id: Oid) -> (Vec<String>, Option<Oid>) {
    let conflicts = ground.preview(&all(id), &[]).conflicts;
    let paths = conflicts.iter().map(|conflict| conflict.path.to_string());
    (paths.collect(), ground.restore(id).undo)
}

#[test]
fn a_restore_covers_tracked_files_only() {
    let ground = ground();
    let id = ground.create();
    ground.write(&[("keep.log", "2"), ("junk.log", "2"), ("out/junk", "2")]);
    ground.remove("out/keep");
    let diff = ground.diff(&Side::Checkpoint(id), &Side::WorkTree);
    let paths: Vec<String> = diff.iter().map(|diff| diff.path.to_string()).collect();
    assert_eq!(paths, ["keep.log", "out/keep"]);
    let changed = ground.tree();
    let (conflicts, undo) = restore(&ground, id);
    assert!(conflicts.is_empty(), "{conflicts:?}");
    assert_eq!(
        (ground.read("keep.log"), ground.read("out/keep")),
        ("1".into(), "1".into())
    );
    assert_eq!(
        (ground.read("junk.log"), ground.read("out/junk")),
        ("2".into(), "2".into())
    );
    // The undo removes the files that were known to be missing.
    assert!(restore(&ground, undo.unwrap()).0.is_empty());
    assert_eq!(ground.tree(), changed);
}

#[test]
fn ignored_untracked_files_are_never_overwritten_or_deleted() {
    let ground = ground();
    let before = ground.create();
    // Tracked since: it is unknown whether the file existed before.
    ground.git(&["add", "-f", "junk.log", "out/junk"]);
    let after = ground.create();
    assert_eq!(restore(&ground, before).0, ["junk.log", "out/junk"]);
    // No longer tracked, so an undo point would not contain the current content.
    ground.git(&["rm", "-q", "--cached", "-r", "."]);
    ground.write(&[("keep.log", "mine"), ("out/keep", "mine")]);
    let unchanged = ground.tree();
    let four = ["junk.log", "keep.log", "out/junk", "out/keep"];
    assert_eq!(restore(&ground, after).0, four);
    assert_eq!(ground.tree(), unchanged);
    // It is written where nothing is in the way.
    ground.remove("keep.log");
    ground.remove("out");
    assert_eq!(restore(&ground, after).0, ["junk.log"]);
    assert_eq!(ground.read("out/keep"), "1");
}
