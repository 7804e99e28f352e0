//! Replaces each file of a checkpoint store by pipes, links and
//! directories. Each is refused at once: no pipe blocks, no link is followed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::restore_support::{Ground, all, git, with_contents};
use sightline_base::{cancel::Cancel, storage::Storage};
use sightline_checkpoint::{Filter, Keep, Oid, Request, Side, restore::Options};
use sightline_testing::special_files::{SpecialFile, copy, files, replace_each, scratch};

/// Files that do not always exist.
const SOMETIMES: &[&str] = &[
    "damage",
    "fetched",
    "unpruned",
    "packed-refs.lock",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/pack/multi-pack-index",
    "objects/pack/pack-x.keep",
    "refs/checkpoints/4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "refs/checkpoints/4b825dc642cb6eb9a060e54bf8d69288fbee4904.lock",
    "../checkpoints.git.rebuilt",
    "../checkpoints.git.unfinished",
    "../state/journal.json",
];

/// Creates a complete data directory at `made` below `base`: packs, loose objects, loose and
/// packed refs, caches.
fn filled(base: &Path) -> (Oid, BTreeSet<PathBuf>) {
    let ground = Ground::at(base);
    ground.write(&[("d/f", "one"), ("g", "g"), (".clineignore", "secret\n")]);
    let first = ground.create();
    let dir = ground.checkpoints.git_dir();
    git(&dir, &["pack-refs", "--all", "--prune"]);
    ground.write(&[("d/f", "two")]);
    ground.create();
    git(&dir, &["gc", "-q"]);
    // Loose objects.
    git(
        &dir,
        &["tag", "-a", "-m", "mine", "mine", &first.to_string()],
    );
    ground.write(&[("d/f", "three")]);
    ground.create();
    ground.checkpoints.tidy(&Cancel::default()).unwrap();
    let made = base.join("made");
    copy(&ground.data(), &made);
    let mut names = files(&made);
    names.extend(SOMETIMES.iter().map(|name| {
        let dir = made.join(dir.strip_prefix(ground.data()).unwrap());
        match name.strip_prefix("../") {
            Some(name) => dir.with_file_name("").join(name),
            None => dir.join(name),
        }
    }));
    let names = names
        .iter()
        .map(|path| path.strip_prefix(&made).unwrap().to_path_buf());
    (first, names.collect())
}

type Change = fn(&Ground, Oid);

/// Operations. Each may change the store, so each gets its own copy.
const WORK: &[Change] = &[
    |ground, first| {
        let _ = ground.checkpoints.list(&Filter::default());
        let _ = ground.checkpoints.get(first);
        let _ = ground.checkpoints.stats();
        let _ = ground.checkpoints.last_undo();
        let _ = ground.try_diff(&Side::Checkpoint(first), &Side::WorkTree, &with_contents());
        let _ = ground.job(|job| {
            ground
                .checkpoints
                .preview(job, &all(first), &Default::default())
        });
        let _ = ground.job(|job| ground.checkpoints.verify(job));
    },
    |ground, _| {
        let created = ground.job(|job| ground.checkpoints.create(job, &Request::default(), None));
        drop(created);
    },
    |ground, first| drop(ground.try_restore(&all(first), &[], &Options::default())),
    |ground, _| drop(ground.job(|job| ground.checkpoints.recover(job))),
    |ground, first| {
        let keep = Keep {
            without: vec![first],
            ..Keep::default()
        };
        drop(ground.checkpoints.prune(&keep, &Cancel::default()));
    },
    |ground, _| drop(ground.checkpoints.tidy(&Cancel::default())),
    |ground, _| {
        let remote = ground.outside("remote.git");
        let remote = remote.to_str().unwrap();
        drop(ground.checkpoints.push(remote, &Cancel::default()));
        drop(ground.job(|job| ground.checkpoints.fetch(remote, job)));
    },
];

#[test]
fn special_files_in_the_data_directory_never_block() {
    let folder = scratch();
    let base = sightline_base::path::canonicalize(folder.path()).unwrap();
    let (first, names) = filled(&base);
    fs::create_dir(base.join("remote.git")).unwrap();
    git(&base.join("remote.git"), &["init", "-q", "--bare"]);
    let checkpoints: BTreeSet<PathBuf> = names
        .into_iter()
        .filter(|name| !name.starts_with("tasks"))
        .collect();
    let change = move |base: &Path, change: Change| {
        if Storage::open(&base.join("data")).is_ok() {
            change(&Ground::at(base), first);
        }
    };
    for work in WORK {
        replace_each(
            &base,
            "made",
            &checkpoints,
            &[SpecialFile::Pipe],
            move |base| change(base, *work),
        );
    }
    // Links are not followed, so all files are replaced at once.
    let links = [SpecialFile::LinkToPipe, SpecialFile::LinkToFile];
    replace_each(&base, "made", &checkpoints, &links, move |base| {
        WORK.iter().for_each(|work| change(base, *work));
    });
}
