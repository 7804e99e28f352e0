//! Truncated and forged loose objects in an unpacked store. Damage is
//! reported as an error without delay.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::restore_support::{Ground, all, counted, git, with_contents};
use libdeflater::{CompressionLvl, Compressor};
use sightline_base::cancel::Cancel;
use sightline_checkpoint::{Filter, Keep, Oid, Side, restore::Options};
use sightline_testing::watchdog::ends;

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let length = compressor.zlib_compress(bytes, &mut out).unwrap();
    out.truncate(length);
    out
}

fn object(header: &str, content: &[u8]) -> Vec<u8> {
    deflated(&[header.as_bytes(), b"\0", content].concat())
}

/// Ways to damage the file of an object: description and bytes.
fn damages(kind: &str, content: &[u8], file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let length = content.len();
    for cut in [
        0,
        1,
        2,
        3,
        7,
        file.len() / 2,
        file.len() - 5,
        file.len() - 4,
        file.len() - 1,
    ] {
        all.push((format!("cut at {cut}"), file[..cut].to_vec()));
    }
    for at in [0, 1, 2, file.len() / 2, file.len() - 1] {
        let mut bytes = file.to_vec();
        bytes[at] ^= 0x55;
        all.push((format!("another byte at {at}"), bytes));
    }
    let other = if kind == "blob" { "tree" } else { "blob" };
    for header in [
        format!("{kind} {}", length - 1),
        format!("{kind} {}", length + 1),
        format!("{kind} 0{length}"),
        format!("{kind} -{length}"),
        format!("{kind}  {length}"),
        format!("{kind} 1099511627776"),
        format!("{kind} 99999999999999999999999999"),
        format!("{kind} "),
        format!("{other} {length}"),
        format!("what {length}"),
        String::new(),
        "x".repeat(100_000),
    ] {
        let name: String = header.chars().take(40).collect();
        all.push((format!("header {name:?}"), object(&header, content)));
    }
    all.push(("no header".to_owned(), deflated(content)));
    all.push(("half a header".to_owned(), deflated(kind.as_bytes())));
    all.push(("garbage behind it".to_owned(), [file, b"garbage"].concat()));
    all.push(("nothing but zeros".to_owned(), vec![0; file.len()]));
    all.push((
        "another object".to_owned(),
        object(&format!("{kind} 1"), b"x"),
    ));
    // Inflates to a thousand times its size.
    let zeros = vec![0; 1 << 20];
    all.push((
        "a bomb".to_owned(),
        object(&format!("{kind} {length}"), &zeros),
    ));
    all.push((
        "a true bomb".to_owned(),
        object(&format!("{kind} {}", zeros.len()), &zeros),
    ));
    all
}

/// Unpacks every object of the repository.
fn unpack(git_dir: &Path) {
    let aside = git_dir.join("aside");
    fs::rename(git_dir.join("objects/pack"), &aside).unwrap();
    fs::create_dir(git_dir.join("objects/pack")).unwrap();
    for entry in fs::read_dir(&aside).unwrap() {
        let pack = entry.unwrap().path();
        if pack
            .extension()
            .is_some_and(|extension| extension == "pack")
        {
            let mut child = Command::new("git")
                .args(["unpack-objects", "-q"])
                .current_dir(git_dir)
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut input = child.stdin.take().unwrap();
            input.write_all(&fs::read(&pack).unwrap()).unwrap();
            drop(input);
            assert!(child.wait().unwrap().success());
        }
    }
    fs::remove_dir_all(aside).unwrap();
}

fn file_of(git_dir: &Path, oid: &str) -> PathBuf {
    git_dir.join("objects").join(&oid[..2]).join(&oid[2..])
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

/// Returns the file of a git revision, and ways to damage it.
fn ways(git_dir: &Path, kind: &str, name: &str) -> (PathBuf, Vec<(String, Vec<u8>)>) {
    let oid = git(git_dir, &["rev-parse", name]);
    let path = file_of(git_dir, oid.trim());
    let content = Command::new("git")
        .args(["cat-file", kind, oid.trim()])
        .current_dir(git_dir)
        .output()
        .unwrap();
    let file = fs::read(&path).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    (path, damages(kind, &content.stdout, &file))
}

#[test]
fn an_unpacked_store_is_read_and_restored() {
    let ground = Ground::new(&[("d/f", "one"), ("g", "")]);
    let first = ground.create();
    let before = ground.tree();
    ground.write(&[("d/f", "two")]);
    ground.create();
    unpack(&ground.checkpoints.git_dir());
    assert_eq!(
        ground.checkpoints.list(&Filter::default()).unwrap().len(),
        2
    );
    assert_eq!(
        ground.job(|job| ground.checkpoints.verify(job)).unwrap(),
        [""; 0]
    );
    let undo = ground.restore(first).undo.unwrap();
    assert_eq!(ground.tree(), before);
    ground
        .checkpoints
        .prune(
            &Keep {
                without: vec![first],
                ..Keep::default()
            },
            &Cancel::default(),
        )
        .unwrap();
    ground.restore(undo);
    assert_eq!(ground.read("d/f"), "two");
    assert!(ground.checkpoints.take_rebuilt().is_none());
}

#[test]
fn damage_in_the_store_is_an_immediate_error() {
    let made = Ground::new(&[("d/f", &"one line\n".repeat(50)), ("g", "g")]);
    let first = made.create();
    made.write(&[("d/f", &"another line\n".repeat(50))]);
    made.create();
    let git_dir = made.checkpoints.git_dir();
    unpack(&git_dir);
    let name = git_dir.strip_prefix(made.data()).unwrap().to_path_buf();
    for (kind, object) in [
        ("blob", format!("{first}:d/f")),
        ("tree", format!("{first}:d")),
        ("commit", first.to_string()),
    ] {
        let (file, ways) = ways(&git_dir, kind, &object);
        let whole = fs::read(&file).unwrap();
        for (what, bytes) in ways {
            fs::write(&file, &bytes).unwrap();
            let what = format!("{kind}, {what}");
            // Operations that only read use the store, the others a copy.
            let copied = tempfile::tempdir().unwrap();
            copy(&made.data(), &copied.path().join("data"));
            copy(&made.root, &copied.path().join("ws"));
            let base = copied.path().to_path_buf();
            let renamed = Ground::at(&base).checkpoints.git_dir();
            fs::rename(
                base.join("data").join(name.parent().unwrap()),
                renamed.parent().unwrap(),
            )
            .unwrap();
            let said = what.clone();
            ends(&what, move || try_all(&said, &Ground::at(&base), first));
        }
        fs::write(&file, &whole).unwrap();
    }
}

fn try_all(what: &str, ground: &Ground, first: Oid) {
    let before = ground.tree();
    let told = ground.job(|job| ground.checkpoints.verify(job)).unwrap();
    let told = told.join("\n");
    assert!(told.contains(&first.to_string()), "{what}: {told}");
    let diff = ground.try_diff(&Side::Checkpoint(first), &Side::WorkTree, &with_contents());
    assert!(diff.is_err(), "{what}");
    let restored = ground.try_restore(&all(first), &[], &Options::default());
    assert!(restored.is_err(), "{what}");
    assert_eq!(ground.tree(), before, "{what}");
    ground.create();
    assert_eq!(
        ground.job(|job| ground.checkpoints.verify(job)).unwrap(),
        [""; 0]
    );
}

#[test]
fn a_truncated_tag_stops_a_prune_before_any_removal() {
    let ground = Ground::new(&[("f", "one")]);
    let first = ground.create();
    ground.write(&[("f", "two")]);
    ground.create();
    let git_dir = ground.checkpoints.git_dir();
    git(
        &git_dir,
        &["tag", "-a", "-m", "mine", "mine", &first.to_string()],
    );
    let tag = git(&git_dir, &["rev-parse", "mine"]);
    let file = file_of(&git_dir, tag.trim());
    let whole = fs::read(&file).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    ends("prune", move || {
        let keep = Keep {
            newest: Some(1),
            ..Keep::default()
        };
        let pruned = ground.checkpoints.prune(&keep, &Cancel::default());
        assert!(pruned.unwrap_err().to_string().contains(tag.trim()));
        assert_eq!(counted(&ground), 2);
        fs::write(&file, &whole).unwrap();
        let pruned = ground.checkpoints.prune(&keep, &Cancel::default()).unwrap();
        assert_eq!(pruned.removed, [first]);
        // What the tag reaches stays.
        git(&git_dir, &["cat-file", "-e", "mine:f"]);
    });
}
