//! The user's own repositories are neither captured nor restored, wherever they are.

use std::{fs, path::Path};

use crate::capture_support::{Bench, git_in};
use crate::dirty_set::DirtySet;
use crate::restore_support::{Ground, all};
use sightline_base::path::RelPath;
use sightline_checkpoint::{ChangeSource, Checkpoint, Request};

fn skipped(checkpoint: &Checkpoint) -> Vec<(&str, &str)> {
    let skipped = checkpoint.metadata.skipped.iter();
    skipped
        .map(|skipped| (skipped.path.as_str(), skipped.reason.as_str()))
        .collect()
}

const WHY: &str = "a git repository's own data";

#[test]
fn git_directories_of_any_name_are_skipped_and_reported() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q", "--separate-git-dir=.repo", "."]);
    git_in(&bench.ws, &["init", "-q", "--bare", "deep/x.git"]);
    bench.write("a", "1");
    // A folder with only some of the entries is captured.
    for path in ["some/HEAD", "some/refs/x", "odd/HEAD/x", "odd/refs/x"] {
        bench.write(path, "1");
    }
    bench.write("odd/objects/x", "1");
    let checkpoint = bench.create();
    let files = bench.files(&checkpoint);
    let others = ["odd/HEAD/x", "odd/objects/x", "odd/refs/x", "some/HEAD"];
    assert_eq!(files, [&["a"], &others[..], &["some/refs/x"]].concat());
    assert_eq!(skipped(&checkpoint), [(".repo", WHY), ("deep/x.git", WHY)]);
    // A scan with a warm cache finds the same.
    bench.write("a", "2");
    let next = bench.create();
    assert_eq!(skipped(&next), skipped(&checkpoint));
    assert_eq!(bench.files(&next), files);
}

#[test]
fn folders_that_become_or_cease_to_be_git_directories_are_noticed() {
    for is_told in [false, true] {
        let bench = Bench::new();
        let create = |paths: &[&str]| {
            let changes = DirtySet::default();
            changes.take();
            for path in paths {
                changes.mark(RelPath::new(Path::new(path)).unwrap());
            }
            let changes = is_told.then_some(&changes as _);
            bench.try_create(&Request::default(), changes).unwrap()
        };
        bench.write("d/x/HEAD", "1");
        bench.write("d/x/objects/y", "1");
        let checkpoint = bench.create();
        assert_eq!(bench.files(&checkpoint), ["d/x/HEAD", "d/x/objects/y"]);
        bench.write("d/x/refs/heads/main", "1");
        let checkpoint = create(&["d/x/refs/heads/main"]);
        assert_eq!(bench.files(&checkpoint), [""; 0], "{is_told}");
        assert_eq!(skipped(&checkpoint), [("d/x", WHY)]);
        fs::remove_file(bench.ws.join("d/x/HEAD")).unwrap();
        let checkpoint = create(&["d/x/HEAD"]);
        let files = ["d/x/objects/y", "d/x/refs/heads/main"];
        assert_eq!(bench.files(&checkpoint), files, "{is_told}");
        assert_eq!(skipped(&checkpoint), []);
    }
}

#[test]
fn a_bare_repository_is_not_a_workspace() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q", "--bare", "."]);
    let error = bench.try_create(&Request::default(), None).unwrap_err();
    assert!(error.to_string().contains(WHY), "{error}");
}

#[test]
fn restores_leave_git_directories_alone() {
    let ground = Ground::new(&[
        ("x/refs/heads/main", "old"),
        ("x/objects/aa", "old"),
        ("y/refs/z", "1"),
        ("y/objects/z", "1"),
        ("y/HEAD", "1"),
        ("a", "1"),
    ]);
    let id = ground.create();
    // Regardless of ignore rules.
    for ignored in ["", "x\n"] {
        ground.write(&[
            ("x/refs/heads/main", "new"),
            ("x/HEAD", "ref"),
            ("a", "2"),
            (".gitignore", ignored),
        ]);
        if ground.exists("x/objects/aa") {
            ground.remove("x/objects/aa");
        }
        if ground.exists("y/HEAD") {
            ground.remove("y/HEAD");
        }
        let preview = ground.preview(&all(id), &[]);
        let into = preview.conflicts.iter();
        let into = into.filter(|conflict| conflict.reason.contains(WHY));
        let into: Vec<String> = into.map(|conflict| conflict.path.to_string()).collect();
        assert_eq!(into, ["x"]);
        ground.restore(id);
        assert_eq!(
            (ground.read("a"), ground.read("x/refs/heads/main")),
            ("1".into(), "new".into())
        );
        assert!(ground.exists("y/refs/z") && !ground.exists("x/objects/aa"));
    }
}
