//! The own data of version control systems other than git is neither captured nor restored.

use std::{fs, path::Path};

use crate::capture_support::{Bench, git, git_in, run};
use crate::dirty_set::DirtySet;
use crate::restore_support::{Ground, all};
use sightline_base::path::RelPath;
use sightline_checkpoint::{ChangeSource, Oid, Request};

/// Systems with the folder of their data, files in it, and similar paths that are captured.
const SYSTEMS: [(&str, &str, &[&str], &[&str]); 10] = [
    (
        "Mercurial",
        ".hg",
        &["requires", "dirstate", "store/data/private.txt.i"],
        &[".hgignore", ".hgsub", ".hgtags"],
    ),
    (
        "Sapling",
        ".sl",
        &["requires", "store/00changelog.i"],
        &[".slx"],
    ),
    (
        "Subversion",
        ".svn",
        &["wc.db", "pristine/aa/private.svn-base"],
        &[".svnignore"],
    ),
    (
        "Bazaar",
        ".bzr",
        &["branch-format", "repository/packs/x.pack"],
        &[".bzrignore"],
    ),
    (
        "Jujutsu",
        ".jj",
        &["working_copy/tree_state", "repo/store/type"],
        &["repo"],
    ),
    ("Darcs", "_darcs", &["format", "patches/0001"], &["darcs"]),
    (
        "Pijul",
        ".pijul",
        &["pristine/db", "changes/a"],
        &[".ignore"],
    ),
    (
        "CVS",
        "CVS",
        &["Entries", "Root", "Repository"],
        &["cvs/Entries", "cv"],
    ),
    (
        "Monotone",
        "_MTN",
        &["revision", "options"],
        &[".mtn-ignore"],
    ),
    ("Got", ".got", &["file-index", "base-commit"], &["got"]),
];

fn skipped(checkpoint: &sightline_checkpoint::Checkpoint) -> Vec<(String, String)> {
    let skipped = checkpoint.metadata.skipped.iter();
    skipped
        .map(|skipped| (skipped.path.clone(), skipped.reason.clone()))
        .collect()
}

#[test]
fn repository_data_is_skipped_and_reported() {
    for (system, folder, files, others) in SYSTEMS {
        for above in ["", "deep/er/"] {
            let bench = Bench::new();
            bench.write(".clineignore", "private*\n");
            bench.write("a", "1");
            for file in files {
                bench.write(format!("{above}{folder}/{file}"), "denied text");
            }
            let mut expected = vec!["a".to_owned()];
            for other in others {
                bench.write(format!("{above}{other}"), "1");
                expected.push(format!("{above}{other}"));
            }
            expected.sort();
            let why = format!("a {system} repository's own data");
            let reported = [(format!("{above}{folder}"), why)];
            // Once more with a warm cache.
            for content in ["1", "2"] {
                bench.write("a", content);
                let checkpoint = bench.create();
                assert_eq!(bench.files(&checkpoint), expected, "{system}");
                assert_eq!(skipped(&checkpoint), reported);
            }
            // The system commits while only changed paths are scanned.
            let changes = DirtySet::default();
            changes.take();
            for file in files {
                bench.write(format!("{above}{folder}/{file}"), "more");
                let path = format!("{above}{folder}/{file}");
                changes.mark(RelPath::new(Path::new(&path)).unwrap());
            }
            let checkpoint = bench.try_create(&Request::default(), Some(&changes));
            assert_eq!(bench.files(&checkpoint.unwrap()), expected, "{system}");
        }
    }
}

#[test]
fn a_folder_of_the_user_with_such_a_name_is_captured() {
    for (_, folder, files, _) in SYSTEMS {
        let bench = Bench::new();
        bench.write(format!("{folder}/ada.pdf"), "1");
        let mine = format!("{folder}/ada.pdf");
        assert_eq!(bench.files(&bench.create()), [mine.as_str()]);
        // It becomes the data of the system, and ceases to be.
        for is_told in [true, false] {
            let create = |paths: &[String]| {
                let changes = DirtySet::default();
                changes.take();
                for path in paths {
                    changes.mark(RelPath::new(Path::new(path)).unwrap());
                }
                let changes = is_told.then_some(&changes as _);
                bench.try_create(&Request::default(), changes).unwrap()
            };
            let paths: Vec<String> = files
                .iter()
                .map(|file| format!("{folder}/{file}"))
                .collect();
            for path in &paths {
                bench.write(path, "1");
            }
            let checkpoint = create(&paths);
            assert_eq!(bench.files(&checkpoint), [""; 0], "{folder}, {is_told}");
            assert_eq!(skipped(&checkpoint).len(), 1);
            for file in files {
                let first = file.split('/').next().unwrap();
                let path = bench.ws.join(folder).join(first);
                let _ = fs::remove_dir_all(&path);
                let _ = fs::remove_file(&path);
            }
            let checkpoint = create(&[folder.to_owned()]);
            assert_eq!(
                bench.files(&checkpoint),
                [mine.as_str()],
                "{folder}, {is_told}"
            );
            assert_eq!(skipped(&checkpoint), []);
        }
    }
}

/// The data may be in a folder with another name, to which a link leads.
#[cfg(unix)]
#[test]
fn links_to_repository_data_are_skipped_with_their_targets() {
    for (system, folder, files) in [
        ("Mercurial", ".hg", &["requires", "store/private.i"][..]),
        ("Subversion", ".svn", &["wc.db", "pristine/private"]),
        ("Jujutsu", ".jj", &["working_copy/x", "repo/private"]),
        ("Bazaar", ".bzr", &["branch-format", "repository/private"]),
        ("Darcs", "_darcs", &["format", "hashed_inventory"]),
        ("CVS", "CVS", &["Entries", "Root", "Repository"]),
        // Only the name of the link says what these are.
        ("Mercurial", ".hg", &["requires", "private.i"]),
        ("Sapling", ".sl", &["store/private.i"]),
        ("Subversion", ".svn", &["wc.db", "private"]),
        ("Jujutsu", ".jj", &["repo/private"]),
        ("Bazaar", ".bzr", &["checkout/private"]),
        ("Darcs", "_darcs", &["format", "private"]),
        ("Pijul", ".pijul", &["changes/private"]),
        ("CVS", "CVS", &["Entries"]),
        ("Got", ".got", &["file-index"]),
    ] {
        let ground = Ground::new(&[("a", "1"), ("sub/b", "1")]);
        for file in files {
            ground.write(&[(&format!("meta/{file}"), "old")]);
        }
        let link = |to: &str| {
            let _ = fs::remove_file(ground.path("sub").join(folder));
            std::os::unix::fs::symlink(to, ground.path("sub").join(folder)).unwrap();
        };
        link("../meta");
        let id = ground.create();
        let checkpoint = ground.checkpoints.get(id).unwrap();
        let why = format!("a {system} repository's own data");
        let expected = [
            ("meta".to_owned(), why.clone()),
            (format!("sub/{folder}"), why),
        ];
        assert_eq!(skipped(&checkpoint), expected);
        // A commit, and a link to another place.
        for file in files {
            ground.write(&[(&format!("meta/{file}"), "new")]);
        }
        fs::rename(ground.path("meta"), ground.path("moved")).unwrap();
        link("../moved");
        ground.write(&[("a", "2")]);
        ground.restore(id);
        assert_eq!(ground.read("a"), "1");
        for file in files {
            assert_eq!(ground.read(&format!("moved/{file}")), "new");
        }
        assert!(!ground.exists("meta"));
        assert_eq!(
            fs::read_link(ground.path("sub").join(folder)).unwrap(),
            Path::new("../moved")
        );
    }
}

/// A link that appears, leads out of the workspace or to the folder with it, or to a file.
#[cfg(unix)]
#[test]
fn links_to_repository_data_are_not_followed_elsewhere() {
    use std::os::unix::fs::symlink;

    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("requires"), "private").unwrap();
    let ground = Ground::new(&[("a", "1"), ("meta/requires", "1"), ("meta/b", "1")]);
    let plain = ground.create();
    symlink(elsewhere.path(), ground.path(".hg")).unwrap();
    symlink("nowhere", ground.path(".svn")).unwrap();
    symlink("a", ground.path(".jj")).unwrap();
    fs::create_dir(ground.path("project")).unwrap();
    ground.write(&[("project/Entries", "1"), ("project/c", "1")]);
    symlink(".", ground.path("project/CVS")).unwrap();
    symlink("meta", ground.path(".sl")).unwrap();
    for expected in [
        &[".hg", ".sl", "meta", "project/CVS"][..],
        &[".hg", "project/CVS"],
    ] {
        let id = ground.create();
        let found = skipped(&ground.checkpoints.get(id).unwrap());
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, expected);
        // An earlier checkpoint has the data as files.
        ground.write(&[("meta/b", "2"), ("a", "2"), ("project/c", "2")]);
        ground.restore(plain);
        let is_data = expected.contains(&"meta");
        assert_eq!(ground.read("meta/b"), if is_data { "2" } else { "1" });
        assert_eq!(ground.read("a"), "1");
        ground.restore(id);
        assert_eq!(ground.read("project/c"), "1");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
        assert_eq!(fs::read_link(ground.path(".hg")).unwrap(), elsewhere.path());
        let problems = ground.job(|job| ground.checkpoints.verify(job)).unwrap();
        assert!(problems.is_empty());
        let _ = fs::remove_file(ground.path(".sl"));
    }
}

/// Copies a checkpoint and adds a file with the content of another one, as if an earlier version had
/// captured it.
fn with_file(ground: &Ground, id: Oid, path: &str, other: &str) -> Oid {
    let store = ground.checkpoints.git_dir();
    let index = store.join("test-index");
    let in_store = |args: &[&str]| {
        let mut git = git(&store);
        git.env("GIT_INDEX_FILE", &index);
        let text = run(git.arg("--git-dir").arg(&store).args(args));
        text.trim_end().to_owned()
    };
    let blob = in_store(&["rev-parse", &format!("{id}:{other}")]);
    in_store(&["read-tree", &id.to_string()]);
    let entry = format!("100644,{blob},{path}");
    in_store(&["update-index", "--add", "--cacheinfo", &entry]);
    let tree = in_store(&["write-tree"]);
    fs::remove_file(&index).unwrap();
    let message = in_store(&["log", "-1", "--format=%B", &id.to_string()]);
    let copy = in_store(&["commit-tree", &tree, "-m", &message]);
    in_store(&["update-ref", &format!("refs/checkpoints/{copy}"), &copy]);
    copy.parse().unwrap()
}

/// Checkpoints of earlier versions contain such data.
#[test]
fn restores_leave_repository_data_alone() {
    for (system, folder, files, _) in SYSTEMS {
        let ground = Ground::new(&[("old", "old"), ("a", "1"), ("z", "1")]);
        let mut id = ground.create();
        for file in files.iter().chain(&["gone"]) {
            ground.write(&[(&format!("{folder}/{file}"), "old")]);
            id = with_file(&ground, id, &format!("{folder}/{file}"), "old");
        }
        ground.remove(&format!("{folder}/gone"));
        for file in files {
            ground.write(&[(&format!("{folder}/{file}"), "new")]);
        }
        ground.write(&[(&format!("{folder}/added"), "new"), ("a", "2"), ("z", "2")]);
        let before = ground.tree();
        let why = format!("a {system} repository's own data; left as it is");
        let reported = |ground: &Ground| {
            let conflicts = ground.preview(&all(id), &[]).conflicts.into_iter();
            let conflicts = conflicts.map(|conflict| (conflict.path.to_string(), conflict.reason));
            conflicts.collect::<Vec<_>>()
        };
        assert_eq!(reported(&ground), [(folder.to_owned(), why.clone())]);
        let undo = ground.restore(id).undo.unwrap();
        assert_eq!(
            (ground.read("a"), ground.read("z")),
            ("1".into(), "1".into())
        );
        for file in files {
            assert_eq!(ground.read(&format!("{folder}/{file}")), "new", "{system}");
        }
        assert!(ground.exists(&format!("{folder}/added")));
        assert!(!ground.exists(&format!("{folder}/gone")));
        ground.restore(undo);
        assert_eq!(ground.tree(), before);
        // A part of its old data would be no repository.
        ground.remove(folder);
        assert_eq!(reported(&ground), [(folder.to_owned(), why)]);
        ground.restore(id);
        assert!(!ground.exists(folder), "{system}");
    }
}

/// The header of a SQLite database.
fn database(application: u32) -> Vec<u8> {
    let mut header = b"SQLite format 3\0".to_vec();
    header.resize(68, 0);
    header.extend(application.to_be_bytes());
    header.resize(4096, 0);
    header
}

#[test]
fn databases_of_fossil_are_skipped() {
    let bench = Bench::new();
    for name in [
        ".fslckout",
        "sub/_FOSSIL_",
        ".fslckout-journal",
        ".fslckout-wal",
    ] {
        bench.write(name, database(0));
    }
    for name in ["project.fossil", "proj.db", "proj.db-wal", "repository"] {
        bench.write(name, database(252_006_673));
    }
    for name in ["ammonite.fossil", "app.db", ".fossil-settings/ignore-glob"] {
        bench.write(name, database(0));
    }
    bench.write("other/.fslckout", "text");
    let checkpoint = bench.create();
    assert_eq!(
        bench.files(&checkpoint),
        [
            ".fossil-settings/ignore-glob",
            "ammonite.fossil",
            "app.db",
            "other/.fslckout"
        ]
    );
    let names: Vec<String> = skipped(&checkpoint)
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let databases = [
        ".fslckout",
        ".fslckout-journal",
        ".fslckout-wal",
        "proj.db",
        "proj.db-wal",
        "project.fossil",
        "repository",
        "sub/_FOSSIL_",
    ];
    assert_eq!(names, databases);

    let ground = Ground::new(&[("plain", ""), ("a", "1")]);
    fs::write(ground.path("plain"), database(1)).unwrap();
    let id = ground.create();
    let id = with_file(&ground, id, "_FOSSIL_", "plain");
    fs::remove_file(ground.path("plain")).unwrap();
    ground.write(&[("a", "2")]);
    for is_present in [true, false] {
        if is_present {
            fs::write(ground.path("_FOSSIL_"), database(2)).unwrap();
        } else {
            ground.remove("_FOSSIL_");
            ground.write(&[("a", "2")]);
        }
        ground.restore(id);
        assert_eq!(ground.read("a"), "1");
        let left = fs::read(ground.path("_FOSSIL_")).ok();
        assert_eq!(left, is_present.then(|| database(2)));
    }
}

/// Worktrees in which other agents work.
#[test]
fn other_worktrees_of_the_repository_are_skipped() {
    let bench = Bench::new();
    git_in(&bench.ws, &["init", "-q"]);
    bench.write("a", "1");
    git_in(&bench.ws, &["add", "."]);
    git_in(&bench.ws, &["commit", "-qm", "c"]);
    git_in(
        &bench.ws,
        &["worktree", "add", "-q", ".worktrees/feat", "-b", "feat"],
    );
    // Another repository with a worktree.
    let nested = bench.ws.join("nested");
    fs::create_dir(&nested).unwrap();
    git_in(&nested, &["init", "-q"]);
    bench.write("nested/n", "1");
    git_in(&nested, &["add", "."]);
    git_in(&nested, &["commit", "-qm", "c"]);
    git_in(&nested, &["worktree", "add", "-q", "../tree", "-b", "b"]);
    let why = "another git worktree of the same repository";
    for content in ["1", "2"] {
        bench.write("a", content);
        let checkpoint = bench.create();
        assert_eq!(bench.files(&checkpoint), ["a", "nested/n", "tree/n"]);
        let reported = [(".worktrees/feat".to_owned(), why.to_owned())];
        assert_eq!(skipped(&checkpoint), reported);
    }
    // A checkpoint from before it was one, or of an earlier version.
    let ground = Ground::new(&[
        ("a", "1"),
        (".worktrees/feat/a", "old"),
        (".worktrees/feat/b", "old"),
    ]);
    let id = ground.create();
    fs::remove_dir_all(ground.path(".worktrees")).unwrap();
    ground.git(&["init", "-q"]);
    ground.git(&["add", "."]);
    ground.git(&["commit", "-qm", "c"]);
    ground.git(&["worktree", "add", "-q", ".worktrees/feat", "-b", "feat"]);
    ground.write(&[
        ("a", "2"),
        (".worktrees/feat/a", "work"),
        (".worktrees/feat/c", "work"),
    ]);
    ground.restore(id);
    assert_eq!(
        (ground.read("a"), ground.read(".worktrees/feat/a")),
        ("1".into(), "work".into())
    );
    assert!(ground.exists(".worktrees/feat/c") && !ground.exists(".worktrees/feat/b"));
}
