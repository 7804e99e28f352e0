//! Diffs agree with git.

use std::{fs, path::Path, process::Command};

use crate::restore_support::{Ground, git, tree, with_contents};
use proptest::prelude::*;
use sightline_checkpoint::{
    Side,
    diff::{DiffOptions, FileDiff, Status, patch},
};
use sightline_protocol::error::ErrorKind;

fn statuses(files: &[FileDiff]) -> Vec<(String, Option<String>, Status, u64, u64)> {
    files
        .iter()
        .map(|file| {
            (
                file.path.to_string(),
                file.old_path.as_ref().map(ToString::to_string),
                file.status,
                file.additions,
                file.deletions,
            )
        })
        .collect()
}

fn long(first: &str) -> String {
    let lines: Vec<String> = (0..20).map(|line| format!("line {line}")).collect();
    format!("{first}\n{}\n", lines.join("\n"))
}

#[test]
fn every_kind_of_change_has_its_status() {
    let ground = Ground::new(&[
        ("changed", "a\nb\nc\n"),
        ("gone", "one\ntwo\n"),
        ("moved/from", &long("the same")),
        ("similar/from", &long("one thing")),
        ("tool", "#!/bin/sh\n"),
        ("was/file", "x\ny\n"),
        ("same", "same"),
        ("empty/", ""),
    ]);
    let before = ground.create();
    ground.write(&[
        ("changed", "a\nB\nc\nd\n"),
        ("new", "1\n2\n3"),
        ("moved/to", &long("the same")),
        ("similar/to", &long("another thing")),
        ("other-empty/", ""),
    ]);
    for path in ["gone", "moved/from", "similar/from", "was/file", "empty"] {
        ground.remove(path);
    }
    ground.link("../same", "was/file");
    ground.chmod("tool", 0o755);
    let text = |text: &str| Some(text.to_owned());
    let expected = vec![
        ("changed".to_owned(), None, Status::Modified, 2, 1),
        ("gone".to_owned(), None, Status::Deleted, 0, 2),
        (
            "moved/to".to_owned(),
            text("moved/from"),
            Status::Renamed,
            0,
            0,
        ),
        ("new".to_owned(), None, Status::Added, 3, 0),
        ("similar/from".to_owned(), None, Status::Deleted, 0, 21),
        ("similar/to".to_owned(), None, Status::Added, 21, 0),
        ("tool".to_owned(), None, Status::Modified, 0, 0),
        ("was/file".to_owned(), None, Status::TypeChanged, 1, 2),
    ];
    let now = ground.diff(&Side::Checkpoint(before), &Side::WorkTree);
    assert_eq!(statuses(&now), expected);
    let tool = now.iter().find(|file| file.path.to_string() == "tool");
    assert_eq!(tool.unwrap().modes, (Some("100644"), Some("100755")));
    // The same between two checkpoints, and in the other direction.
    let after = ground.create();
    let stored = ground.diff(&Side::Checkpoint(before), &Side::Checkpoint(after));
    assert_eq!(stored, now);
    let back = ground.diff(&Side::WorkTree, &Side::Checkpoint(before));
    let back = statuses(&back);
    assert_eq!(back.len(), expected.len());
    assert!(back.contains(&(
        "moved/from".to_owned(),
        text("moved/to"),
        Status::Renamed,
        0,
        0
    )));
    assert!(back.contains(&("gone".to_owned(), None, Status::Added, 2, 0)));
    assert_eq!(ground.diff(&Side::WorkTree, &Side::WorkTree), Vec::new());
}

#[test]
fn only_requested_paths_are_compared() {
    let ground = Ground::new(&[("a/x", "1"), ("ab", "1"), ("b/deep/y", "1")]);
    let before = ground.create();
    ground.write(&[("a/x", "2"), ("ab", "2"), ("b/deep/y", "2")]);
    let paths = |paths: &[&str]| {
        let options = DiffOptions {
            paths: paths
                .iter()
                .map(|path| crate::restore_support::rel(path))
                .collect(),
            ..with_contents()
        };
        let files = ground.try_diff(&Side::Checkpoint(before), &Side::WorkTree, &options);
        let files = files.unwrap().into_iter();
        files.map(|file| file.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&["a"]), ["a/x"]);
    assert_eq!(paths(&["b/deep", "ab"]), ["ab", "b/deep/y"]);
    assert_eq!(paths(&["b/deep/y/z"]), [""; 0]);
}

#[test]
fn contents_respect_the_limits() {
    let ground = Ground::new(&[("a", "old a"), ("b", "old b"), ("big", &"x".repeat(100))]);
    let before = ground.create();
    ground.write(&[("a", "new a"), ("b", "new b"), ("big", "small")]);
    ground.write(&[("c", "zero\0byte")]);
    let options = DiffOptions {
        max_file_bytes: 50,
        max_total_bytes: 20,
        ..with_contents()
    };
    let files = ground
        .try_diff(&Side::Checkpoint(before), &Side::WorkTree, &options)
        .unwrap();
    assert_eq!(files[0].before.as_deref(), Some(&b"old a"[..]));
    assert_eq!(files[0].after.as_deref(), Some(&b"new a"[..]));
    assert_eq!(files[1].after.as_deref(), Some(&b"new b"[..]));
    assert_eq!((&files[2].before, &files[2].after), (&None, &None));
    assert!(files[2].omitted.as_ref().unwrap().contains("100 bytes"));
    assert!(files[3].binary && files[3].after.is_none() && files[3].omitted.is_some());
    assert_eq!(files[3].additions, 0);
    let options = DiffOptions {
        contents: false,
        ..options
    };
    let files = ground
        .try_diff(&Side::Checkpoint(before), &Side::WorkTree, &options)
        .unwrap();
    assert!(
        files
            .iter()
            .all(|file| file.after.is_none() && file.omitted.is_none())
    );
    assert_eq!((files[0].additions, files[0].deletions), (1, 1));
}

#[test]
fn captured_paths_that_are_now_denied_are_hidden() {
    let ground = Ground::new(&[
        ("secret/key", &long("key")),
        ("notes", "a"),
        ("plan", &long("plan")),
    ]);
    let before = ground.create();
    ground.write(&[
        (".clineignore", "secret/\nplan\n"),
        ("notes", "b"),
        ("copy", &long("key")),
        ("plan2", &long("plan")),
    ]);
    ground.remove("secret/key");
    ground.remove("plan");
    let files = ground.diff(&Side::Checkpoint(before), &Side::WorkTree);
    assert_eq!(
        statuses(&files),
        vec![
            ("copy".to_owned(), None, Status::Added, 21, 0),
            ("notes".to_owned(), None, Status::Modified, 1, 1),
            ("plan2".to_owned(), None, Status::Added, 21, 0),
        ]
    );
    assert!(!String::from_utf8(patch(&files)).unwrap().contains("secret"));
}

#[test]
fn an_unknown_checkpoint_is_not_found() {
    let ground = Ground::new(&[("a", "1")]);
    let unknown = Side::Checkpoint("0123456789012345678901234567890123456789".parse().unwrap());
    let kind = |ground: &Ground| {
        let diff = ground.try_diff(&unknown, &Side::WorkTree, &with_contents());
        diff.unwrap_err().kind()
    };
    assert_eq!(kind(&ground), ErrorKind::NotFound);
    ground.create();
    assert_eq!(kind(&ground), ErrorKind::NotFound);
}

#[test]
fn t14_diff_and_preview_change_nothing() {
    let ground = Ground::new(&[("a", "1\n"), ("b/c", "2\n"), (".gitignore", "ignored\n")]);
    ground.git(&["init", "-q"]);
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "x"]);
    let id = ground.create();
    ground.write(&[("a", "changed\n"), ("new", "n\n"), ("ignored", "i\n")]);
    ground.remove("b/c");
    let workspace = ground.stamps(&ground.root);
    let data = tree(&ground.data());
    assert_eq!(ground.diff(&Side::Checkpoint(id), &Side::WorkTree).len(), 3);
    assert_eq!(
        ground
            .preview(&crate::restore_support::all(id), &[])
            .changes
            .len(),
        3
    );
    assert_eq!(ground.stamps(&ground.root), workspace);
    assert_eq!(tree(&ground.data()), data);
}

/// Applies a patch in `folder`.
fn apply(folder: &Path, text: &[u8]) {
    let file = folder.parent().unwrap().join("the.patch");
    fs::write(&file, text).unwrap();
    git(
        folder,
        &["apply", "--whitespace=nowarn", file.to_str().unwrap()],
    );
}

fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp")
        .args(["-a", "--"])
        .args([from, to])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn git_applies_the_patch() {
    let ground = Ground::new(&[
        (
            "a b",
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n",
        ),
        ("gone", "x"),
        ("empty-gone", ""),
        ("quote\"tab\tnewline\n\u{e9}", "a\n"),
        ("moved \u{fc}", &long("one thing")),
        ("re\u{202e}versed \u{fc}", "a\n"),
        ("tool", "#!/bin/sh\n"),
        ("tool2", "#!/bin/sh\nold\n"),
        ("file-to-link", "content\n"),
        ("end", "no end"),
        ("folder/x", "x\n"),
    ]);
    ground.link("gone", "link");
    ground.link("gone", "link-to-file");
    let before = ground.create();
    let old = ground.outside("old");
    copy(&ground.root, &old);
    ground.write(&[
        (
            "a b",
            "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18",
        ),
        ("quote\"tab\tnewline\n\u{e9}", "b\n"),
        ("re\u{202e}versed \u{fc}", "b\n"),
        ("elsewhere/moved \u{fc}", &long("one thing")),
        ("new", "n"),
        ("empty", ""),
        ("tool2", "#!/bin/sh\nnew\n"),
        ("end", "no end\n"),
        ("last", "\n\n"),
    ]);
    for path in [
        "gone",
        "empty-gone",
        "moved \u{fc}",
        "file-to-link",
        "link",
        "link-to-file",
        "folder",
    ] {
        ground.remove(path);
    }
    ground.link("elsewhere", "link");
    ground.link("end", "file-to-link");
    ground.write(&[("link-to-file", "a file\n"), ("folder", "a file\n")]);
    ground.chmod("tool", 0o755);
    ground.chmod("tool2", 0o755);
    let files = ground.diff(&Side::Checkpoint(before), &Side::WorkTree);
    let text = patch(&files);
    apply(&old, &text);
    assert_eq!(tree(&old), ground.tree());
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("\nrename to elsewhere/moved \u{fc}\n"),
        "{text}"
    );
    for name in [
        r#""b/quote\"tab\tnewline\né""#,
        r#""b/re\342\200\256versed ü""#,
    ] {
        assert!(text.contains(&format!("+++ {name}")), "{name}: {text}");
    }
    assert!(text.contains("similarity index 100%"), "{text}");
}

#[test]
fn a_patch_reports_binary_files_as_different() {
    let ground = Ground::new(&[("picture", "a\0b")]);
    let before = ground.create();
    ground.write(&[("picture", "a\0c"), ("other", "\0")]);
    let files = ground.diff(&Side::Checkpoint(before), &Side::WorkTree);
    let text = String::from_utf8(patch(&files)).unwrap();
    assert!(
        text.contains("Binary files a/picture and b/picture differ\n"),
        "{text}"
    );
    assert!(
        text.contains("Binary files /dev/null and b/other differ\n"),
        "{text}"
    );
}

/// Returns the lines added and deleted by a shortest difference.
fn shortest(old: &str, new: &str) -> (u64, u64) {
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect();
    let (old, new): (Vec<String>, Vec<String>) = (lines(old), lines(new));
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for (a, gone) in old.iter().enumerate() {
        for (b, come) in new.iter().enumerate() {
            common[a + 1][b + 1] = match gone == come {
                true => common[a][b] + 1,
                false => common[a][b + 1].max(common[a + 1][b]),
            };
        }
    }
    let common = common[old.len()][new.len()];
    ((new.len() - common) as u64, (old.len() - common) as u64)
}

/// Asserts that the counts are minimal, never above git's, and that git applies the patch.
fn is_counted_and_patched(old: &str, new: &str) {
    let ground = Ground::new(&[("f", old)]);
    let before = ground.create();
    let past = ground.outside("past");
    copy(&ground.root, &past);
    ground.write(&[("f", new)]);
    let files = ground.diff(&Side::Checkpoint(before), &Side::WorkTree);
    let (additions, deletions) = (files[0].additions, files[0].deletions);
    assert_eq!(
        (additions, deletions),
        shortest(old, new),
        "{old:?} {new:?}"
    );
    let said = Command::new("git")
        .args([
            "diff",
            "--no-index",
            "--minimal",
            "--numstat",
            "past/f",
            "ws/f",
        ])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", ground.root.parent().unwrap())
        .current_dir(ground.root.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let mut counted = said
        .split('\t')
        .map(|count| count.parse::<u64>().unwrap_or(0));
    let (added, gone) = (counted.next().unwrap(), counted.next().unwrap());
    // With and without `--minimal`, git ignores very frequent lines.
    assert!(
        additions <= added && added - additions == gone - deletions,
        "{old:?} {new:?}: {said:?}"
    );
    apply(&past, &patch(&files));
    assert_eq!(tree(&past), ground.tree());
}

#[test]
fn a_diff_can_be_shorter_than_gits() {
    for (old, new) in [
        ("c\nc\na\na\nb\na\nb\na\nc\nb\na\n", "c\nc\nc\nc\n"),
        ("c\nb\nb\nc\nb\nb\nc\nb\n", "c\na\na\na\nb\na\na\na\na\nb"),
        ("b\nb\nb\nb\n", "c\nc\nb\nc\nc\na\na\nc\nc\nc\nb\nb\n"),
    ] {
        is_counted_and_patched(old, new);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn counts_and_patches_match_git(
        old in "([abc]\n){0,12}[ab]?",
        new in "([abc]\n){0,12}[ab]?",
    ) {
        prop_assume!(old != new);
        is_counted_and_patched(&old, &new);
    }
}

#[test]
fn an_existing_uncaptured_file_is_not_deleted() {
    let mut ground = Ground::new(&[
        (".clineignore", ""),
        ("ignored", "1\n"),
        ("large", "1\n"),
        ("pipe", "1\n"),
        ("gone", "1\n"),
        ("folder", "another\n"),
        ("denied", "1\n"),
    ]);
    ground.settings.max_file_size = 1000;
    ground.link("gone", "link");
    let before = ground.create();
    ground.write(&[
        (".clineignore", "denied\n"),
        (".gitignore", "/ignored\n/link\n"),
        ("large", &"y".repeat(5000)),
        // The same as a file that still exists.
        ("new", "1\n"),
    ]);
    for path in ["pipe", "gone", "folder"] {
        ground.remove(path);
    }
    ground.write(&[("folder/x", "other\n")]);
    let pipe = Command::new("mkfifo").arg(ground.path("pipe")).status();
    assert!(pipe.unwrap().success());
    let files = ground.diff(&Side::Checkpoint(before), &Side::WorkTree);
    let of = |path: &str| {
        let mut found = files.iter().filter(|file| file.path.to_string() == path);
        let file = found.next();
        assert!(found.next().is_none(), "{path} twice");
        file
    };
    let kept = |path: &str, status: Status, reason: &str| {
        let file = of(path).unwrap();
        assert_eq!(file.status, status, "{path}");
        assert!(file.uncaptured && file.before.is_none(), "{path}");
        let why = file.omitted.as_deref().unwrap();
        assert!(why.contains(reason), "{path}: {why}");
    };
    kept("ignored", Status::Modified, "ignored");
    kept("link", Status::Modified, "ignored");
    kept("large", Status::Modified, "5000");
    kept("pipe", Status::TypeChanged, "");
    assert_eq!(of("pipe").unwrap().modes, (Some("100644"), None));
    assert_eq!(of("folder").unwrap().status, Status::Deleted);
    assert!(of("denied").is_none());
    // The deleted file is the one that was renamed.
    assert_eq!(of("new").unwrap().status, Status::Renamed);
    assert!(of("gone").is_none());
    let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
    assert!(paths.is_sorted(), "{paths:?}");
    let text = String::from_utf8(patch(&files)).unwrap();
    let wanted = "diff --git a/pipe b/pipe\nFiles a/pipe and b/pipe differ: ";
    assert!(text.contains(wanted), "{text}");
}

/// The other direction: a file that the older checkpoint did not capture was there.
#[test]
fn a_file_that_was_not_captured_is_not_added() {
    let mut ground = Ground::new(&[
        (".gitignore", "/ignored\n/out/\n"),
        (".clineignore", "/denied\n"),
        ("a", "1\n"),
        ("ignored", "1\n"),
        ("denied", "1\n"),
        ("large", &"y".repeat(5000)),
        ("out/deep/file", "1\n"),
        ("node_modules/m", "1\n"),
    ]);
    ground.settings.max_file_size = 1000;
    let before = ground.create();
    ground.write(&[
        (".gitignore", ""),
        (".clineignore", ""),
        ("large", "small\n"),
        ("ignored", "2\n"),
        ("new", "1\n"),
    ]);
    ground.settings.exclude.clear();
    let after = ground.create();
    for (from, to) in [
        (Side::Checkpoint(before), Side::WorkTree),
        (Side::Checkpoint(before), Side::Checkpoint(after)),
        (Side::Checkpoint(after), Side::Checkpoint(before)),
        (Side::WorkTree, Side::Checkpoint(before)),
    ] {
        let files = ground.diff(&from, &to);
        let of = |path: &str| {
            let mut found = files.iter().filter(|file| file.path.to_string() == path);
            found.next().unwrap_or_else(|| panic!("{path}: {files:?}"))
        };
        for (path, reason) in [
            (
                "large",
                "(5000 bytes, above the limit checkpoints.maxFileSize)",
            ),
            ("ignored", "(ignored)"),
            ("out/deep/file", "(ignored)"),
            ("denied", "(denied by access rules)"),
            ("node_modules/m", "(excluded by checkpoints.exclude)"),
        ] {
            let file = of(path);
            assert_eq!(file.status, Status::Modified, "{path}");
            assert!(file.uncaptured, "{path}");
            let why = file.omitted.as_deref().unwrap();
            assert!(why.contains(reason), "{path}: {why}");
        }
        let is_new = matches!(of("new").status, Status::Added | Status::Deleted);
        assert!(is_new && !of("new").uncaptured);
        let text = String::from_utf8(patch(&files)).unwrap();
        let wanted = "diff --git a/large b/large\nFiles a/large and b/large differ: ";
        assert!(text.contains(wanted), "{text}");
    }
}
