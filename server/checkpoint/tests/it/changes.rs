//! A checkpoint of reported changes equals one of a full scan.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::capture_support::{Bench, exclusions, git_in};
use crate::dirty_set::DirtySet;
use proptest::prelude::*;
use sightline_base::{cancel::Cancel, path::RelPath};
use sightline_checkpoint::{ChangeSource, Changes, Keep, Request};
use sightline_protocol::error::ErrorKind;

fn rel(path: &str) -> RelPath {
    RelPath::new(Path::new(path)).unwrap()
}

fn known(paths: &[&str]) -> DirtySet {
    let set = DirtySet::default();
    set.take();
    paths.iter().for_each(|path| set.mark(rel(path)));
    set
}

/// Creates a checkpoint with `paths` reported as changed, and lists its files.
fn told(bench: &Bench, paths: &[&str]) -> Vec<String> {
    let checkpoint = bench.try_create(&Request::default(), Some(&known(paths)));
    bench.files(&checkpoint.unwrap())
}

#[test]
fn only_reported_paths_are_scanned() {
    let bench = Bench::new();
    bench.write("a/b/c", "1");
    bench.write("d", "1");
    bench.create();
    bench.write("a/b/c", "2");
    bench.write("d", "22");
    let checkpoint = bench.try_create(&Request::default(), Some(&known(&["a/b/c"])));
    let checkpoint = checkpoint.unwrap();
    assert_eq!(bench.content(&checkpoint, "a/b/c"), b"2");
    // This change was not reported, which shows that only the reported paths were scanned.
    assert_eq!(bench.content(&checkpoint, "d"), b"1");
    assert_eq!(checkpoint.metadata.counts.modified, 1);
    let checkpoint = bench.create();
    assert_eq!(bench.content(&checkpoint, "d"), b"22");
    bench.fsck();
}

#[test]
fn type_changes_are_captured() {
    let bench = Bench::new();
    bench.write("a/b/c", "1");
    bench.write("d", "1");
    bench.create();
    bench.write("new/deep/er", "1");
    assert_eq!(
        told(&bench, &["new/deep/er"]),
        ["a/b/c", "d", "new/deep/er"]
    );
    fs::rename(bench.ws.join("a"), bench.ws.join("new/a")).unwrap();
    assert_eq!(
        told(&bench, &["a", "new/a"]),
        ["d", "new/a/b/c", "new/deep/er"]
    );
    fs::remove_file(bench.ws.join("d")).unwrap();
    bench.write("d/e", "1");
    assert_eq!(told(&bench, &["d"]), ["d/e", "new/a/b/c", "new/deep/er"]);
    fs::remove_dir_all(bench.ws.join("new/a")).unwrap();
    std::os::unix::fs::symlink("deep", bench.ws.join("new/a")).unwrap();
    assert_eq!(told(&bench, &["new/a"]), ["d/e", "new/a", "new/deep/er"]);
    // Nothing below a link is captured.
    assert_eq!(told(&bench, &["new/a/er"]), ["d/e", "new/a", "new/deep/er"]);
    assert_eq!(told(&bench, &["new/a/b/c", "gone/x", "d/e/f"]).len(), 3);
    fs::remove_dir_all(bench.ws.join("new")).unwrap();
    assert_eq!(told(&bench, &["new"]), ["d/e"]);
    bench.fsck();
}

#[test]
fn ignored_and_denied_changes_are_not_captured() {
    let bench = Bench::new();
    bench.write(".gitignore", "*.log\nout/\n");
    bench.write(".clineignore", "secret\n");
    bench.write("a", "");
    bench.create();
    for path in [
        "x.log",
        "out/x",
        "secret/x",
        "sub/secret",
        "node_modules/x",
        ".git/x",
    ] {
        bench.write(path, "");
    }
    let paths = [
        "x.log",
        "out/x",
        "secret/x",
        "sub/secret",
        "node_modules/x",
        ".git/x",
    ];
    let checkpoint = bench.try_create(&Request::default(), Some(&known(&paths)));
    let checkpoint = checkpoint.unwrap();
    assert_eq!(bench.files(&checkpoint), [".gitignore", "a"]);
    assert_eq!(checkpoint.metadata.skipped.len(), 1);
}

/// Included files and rules that apply after their removal are no reported changes.
#[test]
fn changed_access_rules_of_a_folder_cause_a_full_scan() {
    let bench = Bench::new();
    for path in ["a", "pkg/a", "pkg/b"] {
        bench.write(path, "");
    }
    bench.create();
    bench.write("pkg/.clineignore", "a\n!include more\n");
    assert_eq!(told(&bench, &["pkg/.clineignore"]), ["a", "pkg/b"]);
    bench.write("pkg/more", "b\n");
    assert_eq!(told(&bench, &["a"]), ["a", "pkg/more"]);
    fs::remove_file(bench.ws.join("pkg/.clineignore")).unwrap();
    let all = ["a", "pkg/a", "pkg/b", "pkg/more"];
    assert_eq!(told(&bench, &["a"]), all);
}

#[test]
fn a_rule_change_causes_a_full_scan() {
    let bench = Bench::new();
    bench.write("a.log", "");
    bench.write("sub/b.log", "");
    git_in(&bench.ws, &["init", "-q"]);
    bench.create();
    bench.write(".gitignore", "*.log\n");
    assert_eq!(told(&bench, &[".gitignore"]), [".gitignore"]);
    bench.write(".gitignore", "a*\n");
    assert_eq!(told(&bench, &[".gitignore"]), [".gitignore", "sub/b.log"]);
    bench.write("sub/.gitignore", "*\n");
    assert_eq!(told(&bench, &["sub/.gitignore"]), [".gitignore"]);
    fs::remove_file(bench.ws.join("sub/.gitignore")).unwrap();
    assert_eq!(
        told(&bench, &["sub/.gitignore"]),
        [".gitignore", "sub/b.log"]
    );
    // Files that the watcher does not cover are checked.
    bench.write(".clineignore", "b.log\n");
    assert_eq!(told(&bench, &[]), [".gitignore"]);
    fs::remove_file(bench.ws.join(".clineignore")).unwrap();
    bench.write(".git/info/exclude", "b.*\n");
    assert_eq!(told(&bench, &[]), [".gitignore"]);
    fs::write(bench.parent.join(".gitignore"), "*\n").unwrap();
    bench.write(".git/info/exclude", "");
    assert_eq!(told(&bench, &[]), [".gitignore", "sub/b.log"]);
}

#[test]
fn unused_changes_are_returned_when_the_checkpoint_fails() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.create();
    bench.write("a", "2");
    let set = known(&["a"]);
    bench.cancel = Default::default();
    assert!(bench.cancel.cancel());
    let error = bench
        .try_create(&Request::default(), Some(&set))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    bench.cancel = Default::default();
    let checkpoint = bench.try_create(&Request::default(), Some(&set)).unwrap();
    assert_eq!(bench.content(&checkpoint, "a"), b"2");
    assert_eq!(set.take(), Changes::Known(Vec::new()));
}

/// A source that cancels the checkpoint once its changes were taken.
struct CancelledWhenTaken<'a> {
    set: &'a DirtySet,
    cancel: Cancel,
}

impl ChangeSource for CancelledWhenTaken<'_> {
    fn take(&self) -> Changes {
        assert!(self.cancel.cancel());
        self.set.take()
    }

    fn put_back(&self, changes: Changes) {
        self.set.put_back(changes);
    }
}

#[test]
fn taken_changes_are_returned_when_the_checkpoint_fails() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.create();
    bench.write("a", "2");
    let set = known(&["a"]);
    bench.cancel = Cancel::default();
    let source = CancelledWhenTaken {
        set: &set,
        cancel: bench.cancel.clone(),
    };
    let cancelled = bench.try_create(&Request::default(), Some(&source));
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    bench.cancel = Cancel::default();
    let checkpoint = bench.try_create(&Request::default(), Some(&set)).unwrap();
    assert_eq!(bench.content(&checkpoint, "a"), b"2");
}

#[test]
fn limits_apply_again_after_all_checkpoints_were_pruned() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.write("b", "1");
    bench.create();
    let none = Keep {
        newest: Some(0),
        ..Keep::default()
    };
    let pruned = bench.checkpoints.prune(&none, &bench.cancel).unwrap();
    assert_eq!(pruned.removed.len(), 1);
    bench.settings.max_files = 1;
    bench.write("c", "1");
    let error = bench
        .try_create(&Request::default(), Some(&known(&["c"])))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn unreported_rule_changes_apply_to_all_paths() {
    let bench = Bench::new();
    bench.write(".gitignore", "*.log\n");
    bench.write("sub/a.log", "1");
    bench.write("sub/b", "1");
    bench.create();
    // With another size, so that the stamp differs even within one clock tick.
    bench.write(".gitignore", "# nothing is ignored\n");
    bench.write("sub/c", "1");
    assert_eq!(
        told(&bench, &["sub/c"]),
        [".gitignore", "sub/a.log", "sub/b", "sub/c"]
    );
}

#[test]
fn unknown_changes_cause_a_full_scan() {
    let bench = Bench::new();
    bench.write("a", "1");
    let set = DirtySet::default();
    bench.try_create(&Request::default(), Some(&set)).unwrap();
    bench.write("a", "22");
    set.mark_unknown();
    let checkpoint = bench.try_create(&Request::default(), Some(&set)).unwrap();
    assert_eq!(bench.content(&checkpoint, "a"), b"22");
}

/// A random edit. The numbers select among the existing paths.
#[derive(Clone, Debug)]
enum Edit {
    Write(usize, String),
    Folder(usize),
    Link(usize),
    Remove(usize),
    Move(usize, usize),
    Executable(usize),
    Ignore(usize, usize),
}

const PATHS: [&str; 16] = [
    "a", "b", "a/b", "a/c", "a/b/c", "b/a", "b/a.log", "c.log", "a/b/c/d", "x y", "out", "out/a",
    "b/out", "b/out/c", "deny", "a/deny",
];
const RULES: [&str; 6] = [
    "*.log\n",
    "out/\n",
    "/a/b\n",
    "*\n!*/\n!a\n",
    "",
    ".gitignore\n",
];

fn edit() -> impl Strategy<Value = Edit> {
    let path = 0..PATHS.len();
    prop_oneof![
        6 => (path.clone(), "[xy]{0,3}").prop_map(|(at, text)| Edit::Write(at, text)),
        2 => path.clone().prop_map(Edit::Folder),
        1 => path.clone().prop_map(Edit::Link),
        3 => path.clone().prop_map(Edit::Remove),
        3 => (path.clone(), path.clone()).prop_map(|(from, to)| Edit::Move(from, to)),
        1 => path.clone().prop_map(Edit::Executable),
        1 => (path, 0..RULES.len()).prop_map(|(at, rules)| Edit::Ignore(at, rules)),
    ]
}

impl Edit {
    /// Applies the edit as far as possible, and marks what a watcher would report.
    fn apply(&self, ws: &Path, set: &DirtySet) {
        let mark = |path: &str| set.mark(rel(path));
        let make_parent = |path: &str| {
            let parent = Path::new(path).parent().unwrap();
            let mut at = std::path::PathBuf::new();
            for name in parent {
                at.push(name);
                if fs::create_dir(ws.join(&at)).is_ok() {
                    mark(at.to_str().unwrap());
                }
            }
        };
        match self {
            Self::Write(at, text) => {
                make_parent(PATHS[*at]);
                // Through a link, another path would change.
                let path = ws.join(PATHS[*at]);
                if !path.is_symlink() && fs::write(path, text).is_ok() {
                    mark(PATHS[*at]);
                }
            }
            Self::Folder(at) => {
                make_parent(PATHS[*at]);
                if fs::create_dir(ws.join(PATHS[*at])).is_ok() {
                    mark(PATHS[*at]);
                }
            }
            Self::Link(at) => {
                make_parent(PATHS[*at]);
                if std::os::unix::fs::symlink("nowhere", ws.join(PATHS[*at])).is_ok() {
                    mark(PATHS[*at]);
                }
            }
            Self::Remove(at) => {
                let path = ws.join(PATHS[*at]);
                if fs::remove_file(&path).is_ok() || fs::remove_dir_all(&path).is_ok() {
                    mark(PATHS[*at]);
                }
            }
            Self::Move(from, to) => {
                make_parent(PATHS[*to]);
                if fs::rename(ws.join(PATHS[*from]), ws.join(PATHS[*to])).is_ok() {
                    mark(PATHS[*from]);
                    mark(PATHS[*to]);
                }
            }
            Self::Executable(at) => {
                let path = ws.join(PATHS[*at]);
                if path.is_file() && !path.is_symlink() {
                    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
                    mark(PATHS[*at]);
                }
            }
            Self::Ignore(at, rules) => {
                let path = format!("{}/.gitignore", PATHS[*at]);
                let path = if *at == 0 { ".gitignore" } else { &path };
                if fs::write(ws.join(path), RULES[*rules]).is_ok() {
                    mark(path);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn t16_known_equals_full_scan(
        storms in prop::collection::vec(prop::collection::vec(edit(), 1..8), 1..6)
    ) {
        let bench = Bench::new();
        bench.write(".clineignore", "deny\n");
        let set = DirtySet::default();
        bench.try_create(&Request::default(), Some(&set)).unwrap();
        for storm in storms {
            for edit in &storm {
                edit.apply(&bench.ws, &set);
            }
            let told = bench.try_create(&Request::default(), Some(&set)).unwrap();
            let looked = bench.create_by(&bench.reopened(), &Request::default(), None).unwrap();
            prop_assert_eq!(bench.paths(&told), bench.paths(&looked), "{:?}", storm);
            prop_assert_eq!(&told.metadata.skipped, &looked.metadata.skipped);
            prop_assert_eq!(exclusions(&bench.ws, &told), exclusions(&bench.ws, &looked));
            prop_assert_eq!(looked.metadata.counts, Default::default());
            // A scan with a warm cache agrees as well.
            let again = bench.create();
            prop_assert_eq!(again.tree, looked.tree);
        }
        bench.fsck();
    }
}
