use std::{collections::BTreeSet, fs};

use sightline_testing::git;

use proptest::prelude::*;

use super::*;

fn index(dir: &Path) -> GitIndex {
    GitIndex::of(dir).unwrap().unwrap()
}

/// Compares with `git ls-files --sparse`.
fn assert_same_as_git(dir: &Path, what: &str) {
    let listed = git::run(dir, &["ls-files", "--sparse", "-s", "-z"]);
    let wanted: BTreeSet<(String, &str)> = listed
        .split_terminator('\0')
        .map(|line| {
            let (about, path) = line.split_once('\t').unwrap();
            let kind = match &about[..6] {
                "160000" => "submodule",
                "040000" => "folder",
                _ => "file",
            };
            (path.trim_end_matches('/').to_owned(), kind)
        })
        .collect();
    let found = index(dir).tracked_paths(u64::MAX).unwrap();
    let found: BTreeSet<(String, &str)> = found
        .iter()
        .map(|entry| {
            let kind = match entry.kind {
                TrackedKind::File => "file",
                TrackedKind::Submodule => "submodule",
                TrackedKind::SparseFolder(_) => "folder",
            };
            (String::from_utf8(entry.path.clone()).unwrap(), kind)
        })
        .collect();
    assert_eq!(found, wanted, "{what}");
    assert!(!found.is_empty(), "{what}");
}

#[test]
fn every_format_is_read_as_git_reads_it() {
    let formats: [(&str, &[&[&str]]); 9] = [
        ("plain", &[]),
        ("version 4", &[&["update-index", "--index-version", "4"]]),
        (
            "without a checksum",
            &[&["config", "index.skipHash", "true"]],
        ),
        ("many files", &[&["config", "feature.manyFiles", "true"]]),
        ("split", &[&["update-index", "--split-index"]]),
        (
            "split, version 4",
            &[
                &["update-index", "--index-version", "4"],
                &["update-index", "--split-index"],
            ],
        ),
        (
            "sparse",
            &[
                &["commit", "-qm", "c"],
                &["sparse-checkout", "init", "--cone", "--sparse-index"],
            ],
        ),
        ("untracked cache", &[&["update-index", "--untracked-cache"]]),
        (
            "offset table",
            &[
                &["config", "index.threads", "2"],
                &["config", "index.recordOffsetTable", "true"],
            ],
        ),
    ];
    for object_format in ["sha1", "sha256"] {
        for (what, commands) in &formats {
            let what = format!("{what}, {object_format}");
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path();
            git::run(dir, &["init", "-q", "--object-format", object_format]);
            for folder in ["app/deep", "lib/deep", "z"] {
                fs::create_dir_all(dir.join(folder)).unwrap();
                for name in ["a", "a b", "ab", &"x".repeat(200)] {
                    fs::write(dir.join(folder).join(name), name).unwrap();
                }
            }
            fs::write(dir.join("top"), "").unwrap();
            git::run(dir, &["add", "."]);
            let id = "1".repeat(if object_format == "sha1" { 40 } else { 64 });
            let module = format!("160000,{id},module");
            git::run(dir, &["update-index", "--add", "--cacheinfo", &module]);
            for command in *commands {
                git::run(dir, command);
            }
            assert_same_as_git(dir, &what);
            // Deleted, replaced and additional entries, if it is split.
            fs::write(dir.join("top"), "changed").unwrap();
            fs::write(dir.join("other"), "").unwrap();
            git::run(dir, &["add", "top", "other"]);
            git::run(dir, &["add", "--intent-to-add", "other"]);
            git::run(dir, &["rm", "-q", "--cached", "--sparse", "z/ab", "module"]);
            assert_same_as_git(dir, &what);
        }
    }
}

#[test]
fn files_in_a_sparse_folder_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    git::run(dir, &["init", "-q"]);
    for name in ["lib/a", "lib/deep/b", "top"] {
        fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), name).unwrap();
    }
    git::run(dir, &["add", "."]);
    git::run(dir, &["commit", "-qm", "c"]);
    let init = ["sparse-checkout", "init", "--cone", "--sparse-index"];
    git::run(dir, &init);
    let index = index(dir);
    let tracked = index.tracked_paths(u64::MAX).unwrap();
    let lib = tracked.iter().find(|entry| entry.path == b"lib").unwrap();
    let files = index.files_in_sparse_folder(lib, 2).unwrap();
    let paths: Vec<&[u8]> = files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, [&b"lib/a"[..], b"lib/deep/b"]);
    assert!(index.files_in_sparse_folder(lib, 1).is_err());
    fs::remove_dir_all(dir.join(".git/objects")).unwrap();
    assert!(index.files_in_sparse_folder(lib, 2).is_err());
}

#[test]
fn an_index_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert_eq!(GitIndex::of(dir), None);
    git::run(dir, &["init", "-q"]);
    assert_eq!(index(dir).tracked_paths(u64::MAX), Ok(Vec::new()));
    fs::write(dir.join("a"), "").unwrap();
    git::run(dir, &["add", "."]);
    let path = dir.join(".git/index");
    let bytes = fs::read(&path).unwrap();
    let error = || index(dir).tracked_paths(100_000).unwrap_err();
    for (offset, byte, why) in [
        (0, b'd', "header"),
        (7, 5, "version is 5"),
        (11, 9, "entry"),
        (12 + 62, 0xff, "entry"),
    ] {
        let mut broken = bytes.clone();
        broken[offset] = byte;
        // Keeps a length of 4,095 from finding a zero.
        broken[12 + 60..12 + 62].copy_from_slice(&[0, 200]);
        fs::write(&path, &broken).unwrap();
        assert!(error().contains(why), "{why}: {}", error());
    }
    let extension = [&bytes[..bytes.len() - 20], b"new!\0\0\0\0", &[0; 20]].concat();
    fs::write(&path, extension).unwrap();
    assert!(error().contains("unknown extension new!"), "{}", error());
    fs::write(&path, vec![0; 100_001]).unwrap();
    assert!(error().contains("above the limit"), "{}", error());
    git::run(dir, &["config", "extensions.objectformat", "sha3"]);
    assert!(error().contains("sha3"), "{}", error());
    fs::remove_file(&path).unwrap();
    assert!(error().contains("missing"), "{}", error());
    fs::remove_dir_all(dir.join(".git")).unwrap();
    fs::write(dir.join(".git"), "gitdir: ../gone/.git/worktrees/x\n").unwrap();
    let missing = GitIndex::of(dir).unwrap().unwrap_err();
    assert!(missing.contains("missing"), "{missing}");
    // Not of git.
    fs::write(dir.join(".git"), "hello\n").unwrap();
    assert_eq!(GitIndex::of(dir), None);
}

proptest! {
    #[test]
    fn nothing_panics(
        version in 2_u8..5,
        count in 0_u8..4,
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = b"DIRC\0\0\0".to_vec();
        bytes.extend([version, 0, 0, 0, count]);
        bytes.extend(&rest);
        let _ = parse(&bytes, 20);
        let _ = bits(&rest, 1000);
    }
}
