use std::{net::TcpListener, path::PathBuf};

use sightline_protocol::error::ErrorKind;

use super::*;
use crate::{
    metadata::{CheckpointMetadata, Purpose, Request, commit_of},
    prune::Keep,
    store::{
        object::{Kind, Mode, encode_tree, name_of},
        pack::writer::PackWriter,
    },
    testing::{Scratch, assert_private, fsck, git},
};

fn remote(scratch: &Scratch) -> (PathBuf, String) {
    let path = scratch.folder.path().join("remote.git");
    git(&path, &["init", "-q", "--bare"]);
    let text = path.to_str().unwrap().to_owned();
    (path, text)
}

#[test]
fn a_store_is_pushed_and_fetched() {
    let here = Scratch::new();
    let cancel = Cancel::default();
    let (path, url) = remote(&here);
    let error = here.checkpoints.push(&url, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let first = here.checkpoint(1, &[(b"a", b"1", Mode::File), (b"e", b"", Mode::Folder)]);
    let second = here.checkpoint(2, &[(b"a", b"2", Mode::Executable)]);
    here.checkpoints.push(&url, &cancel).unwrap();
    here.checkpoints.push(&url, &cancel).unwrap();

    let there = Scratch::new();
    let mine = there.checkpoint(3, &[(b"m", b"m", Mode::File)]);
    there.fetch(&url, &cancel).unwrap();
    assert_eq!(there.ids(), [mine, second, first]);
    let mut same = (*here.get(first)).clone();
    same.metadata.fetched = true;
    assert_eq!(*there.get(first), same);
    assert_eq!(there.verify(), [""; 0]);
    fsck(&there.dir());
    let names = git(&there.dir(), &["for-each-ref", "--format=%(refname)"]);
    assert!(!names.contains("incoming"), "{names}");
    assert_private(there.dir().parent().unwrap());
    // As a git without the server's settings leaves it.
    git(&there.dir(), &["pack-refs", "--all"]);
    git(&there.dir(), &["repack", "-q"]);
    there.fetch(&url, &cancel).unwrap();
    assert_private(there.dir().parent().unwrap());
    assert_eq!(there.ids().len(), 3);
    drop(path);
}

#[test]
fn claims_of_fetched_checkpoints_are_ignored() {
    let here = Scratch::new();
    let undo = |restoring| Purpose::Undo {
        restoring,
        paths: Vec::new(),
    };
    let theirs = CheckpointMetadata {
        created: u64::MAX,
        sequence: u64::MAX,
        task: Some("t".to_owned()),
        group: Some("g".to_owned()),
        group_roots: vec!["file:///x".to_owned()],
        rewind: Some("r".to_owned()),
        purpose: undo(None),
        ..CheckpointMetadata::default()
    };
    let evil = here.checkpoint_with(theirs, &[(b"a", b"evil", Mode::File)]);
    let url = here.dir();
    let url = url.to_str().unwrap();

    let there = Scratch::new();
    let cancel = Cancel::default();
    let first = there.checkpoint(5, &[(b"m", b"m", Mode::File)]);
    let mine = CheckpointMetadata {
        created: 6,
        purpose: undo(Some(first)),
        ..CheckpointMetadata::default()
    };
    let mine = there.checkpoint_with(mine, &[(b"m", b"1", Mode::File)]);
    there.fetch(url, &cancel).unwrap();
    assert_eq!(there.ids().len(), 3);
    assert_eq!(there.checkpoints.last_undo().unwrap(), Some(mine));
    let metadata = &there.get(evil).metadata;
    assert!(
        metadata.fetched && metadata.created < u64::MAX / 2,
        "{metadata:?}"
    );
    assert_eq!(
        (&metadata.task, &metadata.group, &metadata.rewind),
        (&None, &None, &None)
    );
    assert_eq!(metadata.group_roots, [""; 0]);

    // A local checkpoint with an extreme time too.
    let metadata = CheckpointMetadata {
        created: u64::MAX - 1,
        sequence: u64::MAX - 1,
        ..CheckpointMetadata::default()
    };
    there.checkpoint_with(metadata, &[]);
    let create = |job: &Job<'_>| there.checkpoints.create(job, &Request::default(), None);
    let made = there.job(&cancel, create).unwrap();
    assert_eq!(made.metadata.created, u64::MAX - 1);

    // A rebuilt store keeps the list, and the fetched checkpoint is pruned first.
    there.repository().record_damage("a test").unwrap();
    assert!(there.rebuilt().is_some());
    let again = Scratch::at(there.folder.path());
    assert!(again.get(evil).metadata.fetched);
    let keep = Keep {
        newest: Some(1),
        ..Keep::default()
    };
    let removed = again.checkpoints.prune(&keep, &cancel).unwrap().removed;
    assert!(
        !removed.contains(&evil) && !removed.contains(&made.id),
        "{removed:?}"
    );
    let small = again.repository().size() - 1;
    let keep = Keep {
        max_bytes: Some(small),
        ..Keep::default()
    };
    let removed = again.checkpoints.prune(&keep, &cancel).unwrap().removed;
    assert_eq!(removed, [evil]);
    assert_eq!(FETCHED.all(&again.dir()).unwrap().len(), 0);
}

#[test]
fn damaged_checkpoints_are_not_fetched() {
    let here = Scratch::new();
    let good = here.checkpoint(1, &[(b"a", b"1", Mode::File)]);
    let repository = here.repository();
    let pack = PackWriter::new(repository.dir()).unwrap();
    let blob = name_of(Kind::Blob, b"x");
    pack.put(Kind::Blob, blob, b"x").unwrap();
    let put = |mode, name: &[u8], oid| {
        let tree = encode_tree([(mode, name, oid)].into_iter());
        let oid = name_of(Kind::Tree, &tree);
        pack.put(Kind::Tree, oid, &tree).unwrap();
        oid
    };
    let below = put(Mode::File, b"..", blob);
    let tree_name = put(Mode::Folder, b"keys", below);
    let metadata = CheckpointMetadata {
        created: 2,
        ..CheckpointMetadata::default()
    };
    let evil = repository
        .write_checkpoint(pack, &commit_of(tree_name, &metadata))
        .unwrap();
    let dir = here.dir();
    git(
        &dir,
        &[
            "update-ref",
            &format!("refs/checkpoints/{tree_name}"),
            &good.to_string(),
        ],
    );
    git(
        &dir,
        &["update-ref", "refs/checkpoints/x", &good.to_string()],
    );

    let there = Scratch::new();
    let output = there.fetch(dir.to_str().unwrap(), &Cancel::default());
    let (count, left_out) = output.unwrap();
    let output = left_out.join("\n");
    assert_eq!((count, there.ids()), (1, vec![good]));
    assert!(
        output.contains(&format!("skipped {evil}: the folder keys has an entry")),
        "{output}"
    );
    assert!(output.contains("skipped \"x\""), "{output}");
    assert!(
        output.contains(&format!("skipped \"{tree_name}\"")),
        "{output}"
    );

    let strict = Scratch::new();
    let rules = strict.folder.path().join("ws/.clineignore");
    fs::write(rules, "keys/\n").unwrap();
    let output = strict.fetch(dir.to_str().unwrap(), &Cancel::default());
    let output = output.unwrap().1.join("\n");
    let counted = format!("skipped {evil}: access rules deny 1 more");
    assert!(
        output.contains(&counted) && !output.contains("keys"),
        "{output}"
    );
}

#[test]
fn oversized_objects_are_not_fetched() {
    let here = Scratch::new();
    here.checkpoint(1, &[(b"a", &[0; 4096], Mode::File)]);
    let repository = here.repository();
    let ids = repository.ids().unwrap();
    let cancel = Cancel::default();
    let check_checkpoints = |largest| {
        let reader = Odb::new(repository.dir(), largest);
        let allowed = &mut |_: &[u8], _| false;
        check_checkpoints(&reader, &ids, is_checkpoint, &cancel, allowed).unwrap()
    };
    assert_eq!(check_checkpoints(4096), []);
    let over = check_checkpoints(4095);
    assert!(
        over[0]
            .1
            .starts_with("the file a is too large (4096 bytes)"),
        "{over:?}"
    );
    let over = check_checkpoints(10);
    assert!(over[0].1.starts_with("the commit is too large"), "{over:?}");
}

#[test]
fn a_remote_cannot_be_an_option_or_command() {
    let scratch = Scratch::new();
    scratch.checkpoint(1, &[]);
    let proof = scratch.folder.path().join("proof");
    let command = format!("ext::sh -c touch% {}", proof.display());
    let cancel = Cancel::default();
    for (url, kind) in [
        ("--upload-pack=touch", ErrorKind::InvalidParams),
        ("", ErrorKind::InvalidParams),
        (command.as_str(), ErrorKind::Storage),
        ("fd::0,1", ErrorKind::Storage),
        ("other::x", ErrorKind::Storage),
        ("/does/not/exist", ErrorKind::Storage),
    ] {
        assert_eq!(
            scratch.checkpoints.push(url, &cancel).unwrap_err().kind(),
            kind,
            "{url}"
        );
        let error = scratch.fetch(url, &cancel).unwrap_err();
        assert_eq!(error.kind(), kind, "{url}");
    }
    let error = scratch.fetch("/does/not/exist", &cancel).unwrap_err();
    assert!(error.to_string().starts_with("cannot fetch checkpoints: "));
    let end = "); the remote must be a URL or path that exists and needs no prompt";
    assert!(error.to_string().ends_with(end), "{error}");
    assert!(
        error
            .to_string()
            .contains("does not appear to be a git repository"),
        "{error}"
    );
    assert!(!proof.exists());
    for url in ["fd::0,1", "other::x"] {
        let error = scratch.fetch(url, &cancel).unwrap_err();
        assert!(error.to_string().contains("not allowed"), "{error}");
    }
}

#[test]
fn a_remote_that_never_answers_can_be_cancelled() {
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/x", listener.local_addr().unwrap());
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let fetching = scope.spawn(|| scratch.fetch(&url, &cancel));
        let _connection = listener.accept().unwrap();
        cancel.cancel();
        let error = fetching.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    });
    assert_eq!(scratch.ids(), []);
}
