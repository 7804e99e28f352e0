//! Like git, checkpoints do not apply ignore rules to tracked files.

mod restores;

use std::{collections::BTreeSet, fs, path::Path};

use crate::capture_support::{Bench, exclusions, git_in};
use crate::dirty_set::DirtySet;
use crate::restore_support::{Ground, rel};
use proptest::prelude::*;
use sightline_checkpoint::{ChangeSource, Oid, Request, Side};

/// Lists the files of a checkpoint with only `paths` reported as changed.
fn told(bench: &Bench, paths: &[&str]) -> Vec<String> {
    let set = DirtySet::default();
    set.take();
    paths.iter().for_each(|path| set.mark(rel(path)));
    let checkpoint = bench.try_create(&Request::default(), Some(&set));
    bench.files(&checkpoint.unwrap())
}

#[test]
fn tracked_files_are_captured_despite_ignore_rules() {
    let mut bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.settings.max_file_size = 100;
    bench.write(".gitignore", "*.log\nbuild/\n!build/keep.log\n");
    bench.write(".clineignore", "secret*\n");
    for path in [
        "keep.log",
        "junk.log",
        "src/main.rs",
        "src/keep.log",
        "src/junk.log",
        "build/keep.txt",
        "build/junk.txt",
        "build/keep.log",
        "build/deep/er/keep.txt",
        "build/deep/junk.txt",
        "build/junk/junk.txt",
        "build/secret",
        "secret.log",
        "node_modules/keep.log",
        "build/node_modules/keep.txt",
    ] {
        bench.write(path, path);
    }
    bench.write("large.log", "x".repeat(101));
    let tracked = [
        "keep.log",
        "large.log",
        "src",
        "build/keep.txt",
        "build/deep/er/keep.txt",
        "build/secret",
        "secret.log",
        "node_modules",
        "build/node_modules",
    ];
    git_in(&bench.ws, &[&["add", "-f"], &tracked[..]].concat());
    git_in(&bench.ws, &["rm", "-q", "--cached", "src/junk.log"]);
    let checkpoint = bench.create();
    let expected = [
        ".gitignore",
        "build/deep/er/keep.txt",
        "build/keep.txt",
        "keep.log",
        "src/keep.log",
        "src/main.rs",
    ];
    assert_eq!(bench.files(&checkpoint), expected);
    let skipped = checkpoint
        .metadata
        .skipped
        .iter()
        .map(|skipped| &skipped.path);
    assert_eq!(
        Vec::from_iter(skipped),
        ["build/node_modules", "large.log", "node_modules"]
    );
    bench.fsck();
}

#[test]
fn tracking_changes_are_noticed() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(".git/info/exclude", "*.log\n/out\n");
    for path in ["a", "x.log", "out/x", "out/y", "out/deep/z"] {
        bench.write(path, path);
    }
    let index = fs::read(bench.ws.join(".git/HEAD")).unwrap();
    assert_eq!(bench.files(&bench.create()), ["a"]);
    git_in(&bench.ws, &["add", "-f", "x.log", "out/x"]);
    let stamp = crate::capture_support::fingerprint(&bench.ws.join(".git"));
    assert_eq!(told(&bench, &[]), ["a", "out/x", "x.log"]);
    // Other files in the folder are still ignored.
    bench.write("out/y", "changed");
    bench.write("out/x", "changed");
    bench.write("out/new/file", "");
    let checkpoint = bench.create();
    assert_eq!(bench.files(&checkpoint), ["a", "out/x", "x.log"]);
    assert_eq!(bench.content(&checkpoint, "out/x"), b"changed");
    assert_eq!(
        told(&bench, &["out/y", "out/new", "out/deep/z"]),
        ["a", "out/x", "x.log"]
    );
    fs::remove_file(bench.ws.join("out/x")).unwrap();
    assert_eq!(told(&bench, &["out/x"]), ["a", "x.log"]);
    bench.write("out/x", "again");
    assert_eq!(told(&bench, &["out/x"]), ["a", "out/x", "x.log"]);
    // git's own files are unchanged.
    assert_eq!(
        crate::capture_support::fingerprint(&bench.ws.join(".git")),
        stamp
    );
    assert_eq!(fs::read(bench.ws.join(".git/HEAD")).unwrap(), index);
    git_in(&bench.ws, &["rm", "-q", "--cached", "x.log"]);
    git_in(&bench.ws, &["add", "-f", "out/deep/z"]);
    assert_eq!(told(&bench, &[]), ["a", "out/deep/z", "out/x"]);
    // Rules added and removed after the file was tracked.
    bench.write("sub/b", "");
    git_in(&bench.ws, &["add", "sub/b"]);
    assert_eq!(
        told(&bench, &["sub"]),
        ["a", "out/deep/z", "out/x", "sub/b"]
    );
    bench.write("sub/c", "");
    bench.write("sub/.gitignore", "*\n");
    assert_eq!(
        told(&bench, &["sub/c", "sub/.gitignore"]),
        ["a", "out/deep/z", "out/x", "sub/b"]
    );
    git_in(&bench.ws, &["rm", "-rfq", "--cached", "."]);
    assert_eq!(told(&bench, &[]), ["a"]);
    fs::remove_file(bench.ws.join("sub/.gitignore")).unwrap();
    assert_eq!(told(&bench, &["sub/.gitignore"]), ["a", "sub/b", "sub/c"]);
    bench.fsck();
}

#[test]
fn every_repository_applies_to_its_own_folders() {
    let bench = Bench::at("repo/ws");
    let repo = bench.parent.join("repo");
    git_in(&repo, &["init", "-q"]);
    fs::write(repo.join(".gitignore"), "*.log\n/ws/out/\nws/mod*\n").unwrap();
    bench.write("above.log", "");
    bench.write("junk.log", "");
    bench.write("out/above", "");
    fs::write(repo.join("other.log"), "").unwrap();
    let paths = ["ws/above.log", "ws/out/above", "other.log"];
    git_in(&repo, &[&["add", "-f"], &paths[..]].concat());

    // A nested repository with a worktree; each has its own index.
    for path in ["nested/n.log", "nested/w.log", "nested/.gitignore"] {
        bench.write(path, "*.log\n");
    }
    let nested = bench.ws.join("nested");
    git_in(&nested, &["init", "-q"]);
    git_in(&nested, &["add", "-f", "."]);
    git_in(&nested, &["commit", "-qm", "one"]);
    git_in(&nested, &["worktree", "add", "-q", "../tree", "-b", "b"]);
    git_in(&nested, &["rm", "-q", "--cached", "w.log"]);
    git_in(&bench.ws.join("tree"), &["rm", "-q", "--cached", "n.log"]);

    // A submodule that outer rules ignore has its own rules.
    let source = bench.parent.join("source");
    fs::create_dir(&source).unwrap();
    git_in(&source, &["init", "-q"]);
    for path in ["s.log", "s.txt", ".gitignore"] {
        fs::write(source.join(path), "*.log\n").unwrap();
    }
    git_in(&source, &["add", "-f", "."]);
    git_in(&source, &["commit", "-qm", "one"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    let place = ["add", "-f", source.to_str().unwrap(), "ws/mods/m"];
    git_in(&repo, &[&add[..], &place[..]].concat());
    bench.write("mods/m/new.txt", "");
    bench.write("mods/m/new.log", "");
    bench.write("mods/junk", "");

    let expected = [
        "above.log",
        "mods/m/.gitignore",
        "mods/m/new.txt",
        "mods/m/s.log",
        "mods/m/s.txt",
        "nested/.gitignore",
        "nested/n.log",
        "out/above",
        "tree/.gitignore",
        "tree/w.log",
    ];
    assert_eq!(bench.files(&bench.create()), expected);
    assert_eq!(told(&bench, &["mods/junk", "mods/m/new.log"]), expected);
    git_in(&bench.ws.join("mods/m"), &["rm", "-q", "--cached", "s.log"]);
    git_in(&nested, &["rm", "-q", "--cached", "n.log"]);
    let files = told(&bench, &[]);
    assert!(
        !files
            .iter()
            .any(|file| file.ends_with("m/s.log") || file == "nested/n.log")
    );
    assert_eq!(files.len(), expected.len() - 2);
}

/// Formats of the index, and the commands that create them.
const FORMATS: [(&str, &str, &[&[&str]]); 6] = [
    ("plain", "sha1", &[]),
    ("SHA-256", "sha256", &[]),
    (
        "version 4",
        "sha1",
        &[&["update-index", "--index-version", "4"]],
    ),
    (
        "without checksum",
        "sha1",
        &[&["config", "index.skipHash", "true"]],
    ),
    ("split", "sha1", &[&["update-index", "--split-index"]]),
    (
        "sparse",
        "sha1",
        &[&["sparse-checkout", "set", "--cone", "--sparse-index", "app"]],
    ),
];

#[test]
fn every_kind_of_index_is_read() {
    for (what, object_format, commands) in FORMATS {
        let ground = Ground::new(&[
            (".gitignore", "build/\n*.gen\n"),
            ("app/build/keep.txt", "1"),
            ("app/build/junk.txt", "1"),
            ("app/model.gen", "1"),
            ("lib/a/x.gen", "1"),
            ("lib/b.gen", "1"),
        ]);
        ground.git(&["init", "-q", "--object-format", object_format]);
        ground.git(&["add", "-f", "."]);
        ground.git(&["rm", "-q", "--cached", "app/build/junk.txt"]);
        ground.git(&["commit", "-qm", "c"]);
        for command in commands {
            ground.git(command);
        }
        if what == "split" {
            // The split index alone lists only this one.
            ground.write(&[("app/build/later.txt", "1")]);
            ground.git(&["add", "-f", "app/build/later.txt"]);
        }
        let id = ground.create();
        let files = ["app/build/keep.txt", "app/model.gen"];
        ground.write(&files.map(|file| (file, "2")));
        ground.write(&[("app/build/junk.txt", "2")]);
        ground.restore(id);
        for file in files {
            assert_eq!(ground.read(file), "1", "{what}: {file}");
        }
        assert_eq!(ground.read("app/build/junk.txt"), "2", "{what}");
        assert_eq!(ground.skipped(id), [""; 0], "{what}");
    }
}

/// Files in a folder that a sparse index does not list, and that exists nevertheless.
#[test]
fn files_in_a_sparse_folder_are_captured() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(".gitignore", "*.gen\n");
    for path in ["app/a", "lib/deep/x.gen", "lib/y.gen"] {
        bench.write(path, "1");
    }
    git_in(&bench.ws, &["add", "-f", "."]);
    git_in(&bench.ws, &["commit", "-qm", "c"]);
    let set = ["sparse-checkout", "set", "--cone", "--sparse-index", "app"];
    git_in(&bench.ws, &set);
    assert_eq!(bench.files(&bench.create()), [".gitignore", "app/a"]);
    bench.write("lib/deep/x.gen", "2");
    bench.write("lib/junk.gen", "2");
    let checkpoint = bench.create();
    let files = [".gitignore", "app/a", "lib/deep/x.gen"];
    assert_eq!(bench.files(&checkpoint), files);
    assert_eq!(checkpoint.metadata.skipped, []);
}

const UNREADABLE: &str = "the git index cannot be read";

/// An index that cannot be read does not mean that nothing is tracked.
#[test]
fn an_unreadable_index_is_reported() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(".gitignore", "*.log\nout/\n");
    bench.write("keep.log", "");
    bench.write("out/keep", "");
    bench.write("out/junk", "");
    git_in(&bench.ws, &["add", "-f", "keep.log", "out/keep"]);
    let index = bench.ws.join(".git/index");
    let good = fs::read(&index).unwrap();
    let tracked = [".gitignore", "keep.log", "out/keep"];
    let assert_created = |files: &[&str], is_reported: bool| {
        let checkpoint = bench.create();
        assert_eq!(bench.files(&checkpoint), files);
        let skipped = checkpoint.metadata.skipped.iter();
        let skipped: Vec<_> = skipped
            .map(|it| (&*it.path, it.reason.contains(UNREADABLE)))
            .collect();
        let reported: &[(&str, bool)] = if is_reported { &[(".git", true)] } else { &[] };
        assert_eq!(skipped, reported);
    };
    assert_created(&tracked, false);
    let mut unknown_extension = good.clone();
    unknown_extension.splice(good.len() - 20..good.len() - 20, *b"new!\0\0\0\0");
    for content in [&good[..good.len() - 10], b"", &unknown_extension] {
        fs::write(&index, content).unwrap();
        assert_created(&tracked, true);
        // Twice, also if nothing changed.
        assert_created(&tracked, true);
        assert_eq!(told(&bench, &["out/junk"]), tracked);
    }
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    assert_created(&tracked, true);
    fs::remove_dir(&index).unwrap();
    // A named pipe without a writer does not block.
    let pipe = std::process::Command::new("mkfifo").arg(&index).status();
    assert!(pipe.unwrap().success());
    assert_created(&tracked, true);
    fs::remove_file(&index).unwrap();
    assert_created(&tracked, true);
    fs::write(&index, &good).unwrap();
    assert_created(&tracked, false);
    // An index without files.
    git_in(&bench.ws, &["read-tree", "--empty"]);
    assert_created(&[".gitignore"], false);
    // Nothing is known from before.
    fs::write(&index, "").unwrap();
    assert_created(&[".gitignore"], true);
    // Nothing can be missing if nothing is ignored.
    bench.write(".gitignore", "");
    let checkpoint = bench.create();
    assert_eq!(checkpoint.metadata.skipped, []);
}

/// A work tree whose repository is elsewhere, such as outside of a container.
#[test]
fn a_missing_repository_is_reported() {
    for (is_warm, is_link) in [(true, false), (false, false), (false, true)] {
        let bench = Bench::at("tree");
        let main = bench.parent.join("main");
        fs::create_dir(&main).unwrap();
        git_in(&main, &["init", "-q"]);
        fs::write(main.join(".gitignore"), "*.log\n").unwrap();
        fs::write(main.join("keep.log"), "").unwrap();
        git_in(&main, &["add", "-f", "."]);
        git_in(&main, &["commit", "-qm", "c"]);
        fs::remove_dir(&bench.ws).unwrap();
        if is_link {
            fs::create_dir(&bench.ws).unwrap();
            bench.write(".gitignore", "*.log\n");
            bench.write("keep.log", "");
            std::os::unix::fs::symlink(main.join(".git"), bench.ws.join(".git")).unwrap();
        } else {
            git_in(&main, &["worktree", "add", "-q", "../tree", "-b", "b"]);
        }
        bench.write("junk.log", "");
        if is_warm {
            bench.create();
        }
        fs::rename(&main, bench.parent.join("elsewhere")).unwrap();
        let checkpoint = bench.create();
        let files: &[&str] = if is_warm {
            &[".gitignore", "keep.log"]
        } else {
            &[".gitignore"]
        };
        assert_eq!(bench.files(&checkpoint), files);
        let [skipped] = &checkpoint.metadata.skipped[..] else {
            panic!("{:?}", checkpoint.metadata.skipped);
        };
        assert_eq!(skipped.path, ".git");
        assert!(
            skipped.reason.contains("its repository is missing"),
            "{}",
            skipped.reason
        );
    }
}

#[test]
fn tracked_files_are_kept_without_a_head() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(".gitignore", "*.log\n");
    bench.write("keep.log", "");
    git_in(&bench.ws, &["add", "-f", ".gitignore", "keep.log"]);
    let files = [".gitignore", "keep.log"];
    assert_eq!(bench.files(&bench.create()), files);
    fs::remove_file(bench.ws.join(".git/HEAD")).unwrap();
    assert_eq!(bench.files(&bench.create()), files);
}

#[test]
fn a_saved_stat_cache_includes_tracked_paths() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write(".gitignore", "*.log\nout\n");
    for path in ["x.log", "y.log", "out/x", "out/y"] {
        bench.write(path, "");
    }
    git_in(&bench.ws, &["add", "-f", "x.log", "out/x"]);
    let files = [".gitignore", "out/x", "x.log"];
    assert_eq!(bench.files(&bench.create()), files);
    bench.checkpoints.save_stat_cache().unwrap();
    let other = bench.reopened();
    let checkpoint = bench.create_by(&other, &Request::default(), None).unwrap();
    assert_eq!(bench.files(&checkpoint), files);
    // Changes while no process was running.
    other.save_stat_cache().unwrap();
    git_in(&bench.ws, &["rm", "-q", "--cached", "x.log"]);
    git_in(&bench.ws, &["add", "-f", "y.log"]);
    bench.write("out/z", "");
    let other = bench.reopened();
    let checkpoint = bench.create_by(&other, &Request::default(), None).unwrap();
    assert_eq!(bench.files(&checkpoint), [".gitignore", "out/x", "y.log"]);
}

#[derive(Clone, Debug)]
enum Edit {
    Write(usize),
    Remove(usize),
    Ignore(usize, usize),
    Track(usize),
    Untrack(usize),
}

const PATHS: [&str; 12] = [
    "a",
    "b.log",
    "out/a",
    "out/b.log",
    "out/deep/a",
    "src/a",
    "src/out/a",
    "src/b.log",
    "src/c/d",
    "out",
    "src/out",
    "x\ty",
];
const RULES: [&str; 7] = [
    "*.log\n",
    "out/\n",
    "/a\n",
    "*\n",
    "",
    "*\n!*/\n!a\n",
    "out\n!out/a\n",
];

fn edit() -> impl Strategy<Value = Edit> {
    let path = 0..PATHS.len();
    prop_oneof![
        4 => path.clone().prop_map(Edit::Write),
        1 => path.clone().prop_map(Edit::Remove),
        2 => (path.clone(), 0..RULES.len()).prop_map(|(at, rules)| Edit::Ignore(at, rules)),
        3 => path.clone().prop_map(Edit::Track),
        1 => path.prop_map(Edit::Untrack),
    ]
}

impl Edit {
    /// Applies the edit as far as possible, and marks what a watcher would report.
    fn apply(&self, ws: &Path, set: &DirtySet) {
        let write = |path: &str, text: &str| {
            let mut at = std::path::PathBuf::new();
            for name in Path::new(path).parent().unwrap() {
                at.push(name);
                if fs::create_dir(ws.join(&at)).is_ok() {
                    set.mark(rel(at.to_str().unwrap()));
                }
            }
            if fs::write(ws.join(path), text).is_ok() {
                set.mark(rel(path));
            }
        };
        let git = |arguments: &[&str]| {
            let mut git = crate::capture_support::git(ws.parent().unwrap());
            let _ = git.current_dir(ws).args(arguments).output().unwrap();
        };
        match self {
            Self::Write(at) => write(PATHS[*at], PATHS[*at]),
            Self::Remove(at) => {
                let path = ws.join(PATHS[*at]);
                if fs::remove_file(&path).is_ok() || fs::remove_dir_all(&path).is_ok() {
                    set.mark(rel(PATHS[*at]));
                }
            }
            Self::Ignore(at, rules) => {
                let folder = Path::new(PATHS[*at]).parent().unwrap();
                if folder.as_os_str().is_empty() || ws.join(folder).is_dir() {
                    write(folder.join(".gitignore").to_str().unwrap(), RULES[*rules]);
                }
            }
            Self::Track(at) => git(&["add", "-f", "--", PATHS[*at]]),
            Self::Untrack(at) => git(&["rm", "-rfq", "--cached", "--", PATHS[*at]]),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// For random edits, a checkpoint of reported changes, a full scan, a new process and git
    /// agree.
    #[test]
    fn a_checkpoint_holds_what_git_tracks_or_would_add(
        storms in prop::collection::vec(prop::collection::vec(edit(), 1..10), 1..6)
    ) {
        let bench = Bench::new();
        git_in(&bench.ws, &["init", "-q"]);
        let set = DirtySet::default();
        bench.try_create(&Request::default(), Some(&set)).unwrap();
        for storm in storms {
            for edit in &storm {
                edit.apply(&bench.ws, &set);
            }
            let listed = git_in(&bench.ws, &["ls-files", "-coz", "--exclude-standard"]);
            let there = |path: &&str| {
                fs::symlink_metadata(bench.ws.join(path)).is_ok_and(|found| !found.is_dir())
            };
            let listed: BTreeSet<String> = listed
                .split('\0')
                .filter(|path| !path.is_empty())
                .filter(there)
                .map(str::to_owned)
                .collect();
            let told = bench.try_create(&Request::default(), Some(&set)).unwrap();
            let files: BTreeSet<String> = bench.files(&told).into_iter().collect();
            prop_assert_eq!(files, listed, "{:?}", storm);
            let restarted = bench.reopened();
            let anew = bench.create_by(&restarted, &Request::default(), None).unwrap();
            prop_assert_eq!(anew.tree, told.tree);
            prop_assert_eq!(exclusions(&bench.ws, &anew), exclusions(&bench.ws, &told));
            prop_assert_eq!(bench.create().tree, told.tree);
            bench.checkpoints.save_stat_cache().unwrap();
        }
    }
}
