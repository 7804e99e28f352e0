//! Tests of the whole store, checked with git.

use std::{fs, path::PathBuf};

use sightline_base::{cancel::Cancel, path::RelPath, storage::TaskId};

use super::{
    object::{Kind, Mode, name_of},
    pack::writer::PackWriter,
};
use crate::{
    list::Filter,
    metadata::CheckpointMetadata,
    store::{object::Oid, repair::Rebuilt},
    testing::{Scratch, fsck, git, noise},
};

#[test]
fn git_reads_the_store_without_problems() {
    let scratch = Scratch::new();
    assert_eq!(scratch.ids(), []);
    assert!(!scratch.dir().exists());
    let big = noise(1, 3 << 20);
    let long = "a line that is long enough\n".repeat(200_000).into_bytes();
    let first = scratch.checkpoint_with(
        CheckpointMetadata {
            created: 1_700_000_000_123,
            label: Some("Ünder\n\nway \u{1b}[31m".to_owned()),
            ..CheckpointMetadata::default()
        },
        &[
            (b"a.txt", b"a\r\n", Mode::File),
            (b"a", b"", Mode::Executable),
            (b"a-b/c", b"../x", Mode::Link),
            (b"big", &big, Mode::File),
            (b"long", &long, Mode::File),
            (b"empty", b"", Mode::Folder),
            (b"odd/\xff\xfe \n\"\\", b"odd", Mode::File),
        ],
    );
    let second = scratch.checkpoint(1_700_000_000_124, &[(b"a.txt", b"b", Mode::File)]);
    let dir = scratch.dir();
    fsck(&dir);
    let log = git(&dir, &["log", "--all", "--format=%H %s %ct"]);
    assert!(
        log.contains(&format!("{first} Ünder\\n\\nway \\u{{1b}}[31m 1700000000")),
        "{log}"
    );
    assert!(log.contains(&format!("{second} checkpoint ")), "{log}");
    assert_eq!(git(&dir, &["show", &format!("{first}:a.txt")]), "a\r\n");
    let tree = git(&dir, &["ls-tree", "-r", "-t", &first.to_string()]);
    assert!(tree.contains("040000 tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\tempty"));
    assert!(tree.contains("120000 blob"), "{tree}");

    let reader = scratch.repository().odb();
    for content in [&big, &long] {
        let oid = name_of(Kind::Blob, content);
        assert!(reader.blob(oid).unwrap() == *content);
        assert_eq!(reader.blob_len(oid).unwrap(), content.len() as u64);
    }
    let stored = fs::read_dir(dir.join("objects/pack")).unwrap();
    let stored: u64 = stored
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(stored < 3 * (1 << 20) + 400_000, "{stored}");
    assert_eq!(scratch.ids(), [second, first]);
    let checkpoint = scratch.get(first);
    assert_eq!(
        checkpoint.metadata.label.as_deref(),
        Some("Ünder\n\nway \u{1b}[31m")
    );
}

#[test]
fn an_open_reader_sees_new_packs() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[]);
    let repository = scratch.repository();
    let reader = repository.odb();
    for turn in 0..50u8 {
        let content = [turn; 3];
        let oid = name_of(Kind::Blob, &content);
        assert!(!reader.contains(oid).unwrap());
        let pack = PackWriter::new(repository.dir()).unwrap();
        pack.put(Kind::Blob, oid, &content).unwrap();
        assert!(pack.has(oid));
        drop(pack.finish().unwrap());
        assert!(reader.contains(oid).unwrap());
        assert_eq!(reader.blob(oid).unwrap(), content);
    }
}

#[test]
fn gc_keeps_objects_of_a_new_pack() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[]);
    let repository = scratch.repository();
    let pack = PackWriter::new(repository.dir()).unwrap();
    let oid = name_of(Kind::Blob, b"new");
    pack.put(Kind::Blob, oid, b"new").unwrap();
    let kept = pack.finish().unwrap().unwrap();
    git(repository.dir(), &["gc", "-q", "--prune=now"]);
    let reader = repository.odb();
    assert_eq!(reader.blob(oid).unwrap(), b"new");
    let keep = kept.path.with_extension("keep");
    let text = fs::read(&keep).unwrap();
    drop(kept);
    assert!(!keep.exists());
    // As left by a killed writer, and by other programs.
    fs::write(&keep, &text).unwrap();
    let theirs = repository.pack_dir().join("pack-x.keep");
    fs::write(&theirs, "fetch-pack 1 on here\n").unwrap();
    let empty = repository.pack_dir().join("pack-y.keep");
    fs::write(&empty, "").unwrap();
    assert!(scratch.rebuilt().is_none());
    assert!(!keep.exists() && theirs.exists() && empty.exists());
}

#[cfg(unix)]
#[test]
fn an_inaccessible_store_is_not_damaged() {
    let scratch = Scratch::new();
    let first = scratch.checkpoint(1, &[(b"a", b"1", Mode::File)]);
    let names = scratch.dir().join("refs/checkpoints");
    let aside = scratch.folder.path().join("aside");
    fs::rename(&names, &aside).unwrap();
    // Permissions do not stop root, but a link that points to itself does.
    std::os::unix::fs::symlink("checkpoints", &names).unwrap();
    let opened = scratch.open();
    assert_eq!(
        opened.unwrap_err().kind(),
        sightline_protocol::error::ErrorKind::Storage
    );
    fs::remove_file(&names).unwrap();
    fs::rename(&aside, &names).unwrap();
    assert!(scratch.rebuilt().is_none());
    assert_eq!(scratch.ids(), [first]);
}

#[test]
fn an_unfinished_pack_leaves_no_files() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[]);
    let repository = scratch.repository();
    let before = fs::read_dir(repository.pack_dir()).unwrap().count();
    let pack = PackWriter::new(repository.dir()).unwrap();
    let big = noise(2, 2 << 20);
    pack.put(Kind::Blob, name_of(Kind::Blob, &big), &big)
        .unwrap();
    assert!(fs::read_dir(repository.pack_dir()).unwrap().count() > before);
    drop(pack);
    assert_eq!(fs::read_dir(repository.pack_dir()).unwrap().count(), before);
    let left = repository.pack_dir().join("tmp_sightline_x");
    fs::write(&left, "torn").unwrap();
    let name = repository
        .dir()
        .join(format!("refs/checkpoints/{}.lock", Oid::EMPTY_TREE));
    fs::write(&name, "").unwrap();
    scratch.repository();
    assert!(!left.exists() && !name.exists());
}

#[test]
fn lists_newest_first_and_filters() {
    let scratch = Scratch::new();
    let metadata = |created, sequence, task: Option<&str>| CheckpointMetadata {
        created,
        sequence,
        task: task.map(str::to_owned),
        ..CheckpointMetadata::default()
    };
    let b = scratch.checkpoint_with(metadata(5, 2, Some("t")), &[]);
    let a = scratch.checkpoint_with(metadata(5, 10, None), &[]);
    let c = scratch.checkpoint_with(metadata(4, 11, Some("t")), &[]);
    assert_eq!(scratch.ids(), [a, b, c]);
    let list = |task: Option<&str>, limit| {
        let task = task.map(|task| TaskId::new(task).unwrap());
        let filter = Filter {
            task,
            limit,
            ..Filter::default()
        };
        let checkpoints = scratch.checkpoints.list(&filter).unwrap();
        checkpoints
            .iter()
            .map(|checkpoint| checkpoint.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(list(Some("t"), None), [b, c]);
    assert_eq!(list(Some("t"), Some(1)), [b]);
    assert_eq!(list(None, Some(2)), [a, b]);
    let missing = scratch.checkpoints.get(Oid::EMPTY_TREE).unwrap_err();
    assert_eq!(
        missing.kind(),
        sightline_protocol::error::ErrorKind::NotFound
    );
}

#[test]
fn a_path_selects_the_checkpoints_in_which_it_changed() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[(b"b.txt", b"1", Mode::File)]);
    let created = scratch.checkpoint(
        2,
        &[
            (b"src/a.txt", b"1", Mode::File),
            (b"b.txt", b"1", Mode::File),
        ],
    );
    scratch.checkpoint(
        3,
        &[
            (b"src/a.txt", b"1", Mode::File),
            (b"b.txt", b"2", Mode::File),
        ],
    );
    let changed = scratch.checkpoint(
        4,
        &[
            (b"src/a.txt", b"2", Mode::File),
            (b"b.txt", b"2", Mode::File),
        ],
    );
    let deleted = scratch.checkpoint(5, &[(b"b.txt", b"2", Mode::File)]);
    scratch.checkpoint(6, &[(b"b.txt", b"3", Mode::File)]);
    let list = |path: &str, limit| {
        let path = RelPath::new(path.as_ref());
        let filter = Filter {
            path,
            limit,
            ..Filter::default()
        };
        let found = scratch.checkpoints.list(&filter).unwrap();
        found.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(list("src/a.txt", None), [deleted, changed, created]);
    assert_eq!(list("src/a.txt", Some(1)), [deleted]);
    assert_eq!(list("src", None), []);
}

#[test]
fn foreign_commits_are_not_checkpoints() {
    let scratch = Scratch::new();
    let mine = scratch.checkpoint(1, &[]);
    let dir = scratch.dir();
    let tree = scratch.get(mine).tree.to_string();
    let foreign = git(
        &dir,
        &[
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@y",
            "commit-tree",
            "-m",
            "hello\n\n{}",
            &tree,
        ],
    );
    let foreign = foreign.trim();
    git(
        &dir,
        &[
            "update-ref",
            &format!("refs/checkpoints/{foreign}"),
            foreign,
        ],
    );
    git(&dir, &["update-ref", "refs/checkpoints/mine", foreign]);
    assert_eq!(scratch.ids(), [mine]);
    git(&dir, &["pack-refs", "--all"]);
    assert_eq!(scratch.ids(), [mine]);
    assert_eq!(scratch.get(mine).id, mine);
}

#[cfg(unix)]
#[test]
fn only_the_user_may_read_the_store() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[(b"a", b"secret", Mode::File)]);
    crate::testing::assert_private(scratch.dir().parent().unwrap());
}

#[test]
fn a_ref_with_wrong_content_is_rewritten() {
    let scratch = Scratch::new();
    let ids = [1, 2, 3, 4].map(|created| scratch.checkpoint(created, &[]));
    let file = |id: Oid| scratch.dir().join(format!("refs/checkpoints/{id}"));
    for (id, content) in [
        (ids[0], String::new()),
        (ids[1], format!("{}\n", ids[2])),
        (ids[3], "\0".repeat(5000)),
    ] {
        fs::write(file(id), content).unwrap();
    }
    let whole = fs::metadata(file(ids[2])).unwrap().modified().unwrap();
    assert!(scratch.rebuilt().is_none());
    let log = git(&scratch.dir(), &["log", "--all", "--format=%H"]);
    for id in ids {
        assert_eq!(
            fs::read_to_string(file(id)).unwrap(),
            format!("{id}\n"),
            "{log}"
        );
        assert!(log.contains(&id.to_string()), "{log}");
    }
    let now = fs::metadata(file(ids[2])).unwrap().modified().unwrap();
    assert_eq!(now, whole);
    fsck(&scratch.dir());
}

/// Damages a store with two checkpoints, and reopens it.
fn broken(how: impl FnOnce(&Scratch, Oid, Oid)) -> (Scratch, Vec<Oid>, Rebuilt) {
    let scratch = Scratch::new();
    let shared = noise(1, 30_000);
    let own = noise(2, 30_000);
    let first = scratch.checkpoint(1, &[(b"shared", &shared, Mode::File)]);
    let second = scratch.checkpoint(
        2,
        &[
            (b"d/shared", &shared, Mode::File),
            (b"own", &own, Mode::File),
        ],
    );
    let generation = scratch.repository().generation().unwrap();
    how(&scratch, first, second);
    let rebuilt = scratch.rebuilt().unwrap();
    let repository = scratch.repository();
    assert!(rebuilt.kept.join("objects").exists(), "{rebuilt:?}");
    assert!(repository.generation().unwrap() > generation);
    assert!(scratch.rebuilt().is_none());
    assert_eq!(scratch.verify(), [""; 0]);
    fsck(&scratch.dir());
    assert!(!scratch.dir().join("objects/info/alternates").exists());
    scratch.checkpoint(3, &[(b"next", &own, Mode::File)]);
    (scratch, vec![first, second], rebuilt)
}

/// Paths of the packs, largest first.
fn packs_by_size(scratch: &Scratch) -> Vec<PathBuf> {
    let mut packs = scratch.repository().packs().unwrap();
    packs.sort_by_key(|pack| std::cmp::Reverse(pack.len()));
    packs
        .into_iter()
        .map(|pack| pack.path().to_path_buf())
        .collect()
}

#[test]
fn a_store_with_missing_files_is_rebuilt_completely() {
    for file in ["HEAD", "generation"] {
        let (scratch, ids, rebuilt) = broken(|scratch, _, _| {
            fs::remove_file(scratch.dir().join(file)).unwrap();
        });
        assert_eq!(rebuilt.lost, []);
        assert!(ids.iter().all(|id| scratch.ids().contains(id)), "{file}");
    }
    for torn in ["", "[core", "[core]\n\trepositoryformatversion = 99\n"] {
        let (scratch, ids, rebuilt) = broken(|scratch, _, _| {
            fs::write(scratch.dir().join("config"), torn).unwrap();
            if torn.is_empty() {
                fs::remove_file(scratch.dir().join("HEAD")).unwrap();
            }
        });
        assert_eq!(rebuilt.lost, [], "{torn}");
        assert!(ids.iter().all(|id| scratch.ids().contains(id)), "{torn}");
    }
}

#[test]
fn a_rebuild_drops_and_reports_damaged_checkpoints() {
    // Removes the pack of the second checkpoint. The first does not need it.
    let (scratch, ids, rebuilt) = broken(|scratch, _, second| {
        let of_second = packs_by_size(scratch).into_iter().find(|path| {
            let packs = scratch.repository().packs().unwrap();
            let pack = packs.iter().find(|pack| pack.path() == *path).unwrap();
            pack.has(second)
        });
        fs::remove_file(of_second.unwrap()).unwrap();
    });
    assert_eq!(rebuilt.lost, [ids[1]]);
    assert_eq!(scratch.ids().last(), Some(&ids[0]));
    assert_eq!(scratch.ids().len(), 2);

    let (scratch, ids, rebuilt) = broken(|scratch, _, second| {
        for pack in scratch.repository().packs().unwrap() {
            if pack.has(second) {
                fs::write(pack.path().with_extension("idx"), "").unwrap();
            }
        }
    });
    assert_eq!(rebuilt.lost, [ids[1]]);
    assert_eq!(scratch.ids().len(), 2);
}

#[test]
fn a_killed_rebuild_is_finished() {
    let scratch = Scratch::new();
    let id = scratch.checkpoint(1, &[(b"a", b"1", Mode::File)]);
    // Killed between the two renames.
    let dir = scratch.dir();
    fs::rename(&dir, dir.with_extension("git.rebuilt")).unwrap();
    assert!(scratch.rebuilt().is_none());
    assert_eq!(scratch.ids(), [id]);
    // Killed before the first rename.
    fs::create_dir(dir.with_extension("git.rebuilt")).unwrap();
    fs::create_dir(dir.with_extension("git.unfinished")).unwrap();
    fs::remove_file(dir.join("HEAD")).unwrap();
    assert!(scratch.rebuilt().is_some());
    assert_eq!(scratch.ids(), [id]);
    let left = fs::read_dir(dir.parent().unwrap()).unwrap().flatten();
    let mut left: Vec<_> = left
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left[0], "checkpoints.git");
    assert!(left[1].starts_with("checkpoints.git.broken-"), "{left:?}");
    assert_eq!(left[2..], ["state"]);
}

#[test]
fn a_rebuild_is_reported_once() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[]);
    scratch.checkpoints.tidy(&Cancel::default()).unwrap();
    assert_eq!(scratch.checkpoints.take_rebuilt(), None);
    fs::remove_file(scratch.dir().join("HEAD")).unwrap();
    scratch.checkpoints.tidy(&Cancel::default()).unwrap();
    let reported = scratch.checkpoints.take_rebuilt().unwrap();
    assert!(
        reported.reason.contains("HEAD") && reported.kept.exists(),
        "{reported:?}"
    );
    assert_eq!(scratch.checkpoints.take_rebuilt(), None);
    assert_eq!(scratch.ids().len(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_in_its_place_is_not_followed() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[]);
    let elsewhere = scratch.folder.path().join("elsewhere");
    fs::rename(scratch.dir(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, scratch.dir()).unwrap();
    assert!(scratch.open().is_err());
    assert!(scratch.checkpoints.list(&Filter::default()).is_err());
}
