//! Replaces each file of a data directory, and of an imported repository, by pipes, links and
//! directories. Each is refused at once: no pipe blocks, no link is followed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod restore_support;
mod task_support;
mod watchdog_support;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use restore_support::{Ground, all, git, with_contents};
use sightline_core::{
    access::Access,
    cancel::Cancel,
    checkpoint::{Filter, Keep, Oid, Request, Side, restore::Options},
    path::Roots,
    storage::{Storage, TaskId},
    task::{RetentionLimits, TaskStore},
    tokens::Calibration,
    tracker::Tracker,
};
use sightline_protocol::environment::Mode;
use task_support::{append, at, turn};
use watchdog_support::ends;

/// Returns a directory in memory if there is one: on disk, a thousand copies are slow.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Replacement for a file.
#[derive(Clone, Copy, Debug)]
enum SpecialFile {
    Pipe,
    LinkToPipe,
    LinkToFile,
    Directory,
}

const PRECIOUS: &str = "precious";

impl SpecialFile {
    fn put(self, at: &Path, base: &Path) {
        let _ = fs::remove_file(at);
        let _ = fs::remove_dir_all(at);
        let outside = base.join("outside");
        let _ = fs::remove_file(&outside);
        let pipe = |path: &Path| {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        };
        match self {
            Self::Pipe => pipe(at),
            Self::LinkToPipe => pipe(&outside),
            Self::LinkToFile => {
                fs::write(&outside, PRECIOUS).unwrap();
                fs::set_permissions(&outside, fs::Permissions::from_mode(0o644)).unwrap();
            }
            Self::Directory => fs::create_dir(at).unwrap(),
        }
        if matches!(self, Self::LinkToPipe | Self::LinkToFile) {
            symlink(outside, at).unwrap();
        }
    }

    /// Asserts that the target of a link is unchanged.
    fn check(self, what: &str, base: &Path) {
        let outside = base.join("outside");
        if let Self::LinkToFile = self {
            assert_eq!(fs::read_to_string(&outside).unwrap(), PRECIOUS, "{what}");
            let mode = fs::metadata(outside).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o644, "{what}");
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Returns every file and directory below a directory.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        }
        found.insert(path);
    }
    found
}

/// Replaces each of these files in turn by a special file, in a fresh copy of `from`, and runs
/// `work`.
fn replace_each<W>(
    base: &Path,
    from: &str,
    names: &BTreeSet<PathBuf>,
    kinds: &[SpecialFile],
    work: W,
) where
    W: Fn(&Path) + Clone + Send + 'static,
{
    for name in names {
        for special in kinds {
            let place = base.join("data");
            let _ = fs::remove_dir_all(&place);
            copy(&base.join(from), &place);
            special.put(&place.join(name), base);
            let what = format!("{special:?} at {}", name.display());
            let (work, base_of_work) = (work.clone(), base.to_path_buf());
            ends(&what, move || work(&base_of_work));
            special.check(&what, base);
        }
    }
}

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
/// packed refs, caches, tasks.
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
    let store = TaskStore::new(Storage::open(&ground.data()).unwrap());
    for id in ["t1", "t2"] {
        append(&store, id, &[&turn(0), &turn(1)], 5);
        let tracker = task_trackers(&Storage::open(&ground.data()).unwrap(), id);
        tracker.record_model("p", "m", Mode::Act, 5).unwrap();
        let task = Storage::open(&ground.data()).unwrap().task(&at(id));
        let lock = task.lock().unwrap();
        Calibration::default().store(&lock).unwrap();
        lock.write("context_history.json", b"[]").unwrap();
        lock.write("tracked_files.json", b"{}").unwrap();
    }
    store.list(None, &Cancel::default()).unwrap();
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
        let _ = ground.job(|job| ground.checkpoints.preview(job, &all(first), &[]));
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
            without: Some(first),
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
    let base = fs::canonicalize(folder.path()).unwrap();
    let (first, names) = filled(&base);
    fs::create_dir(base.join("remote.git")).unwrap();
    git(&base.join("remote.git"), &["init", "-q", "--bare"]);
    let of_checkpoints = |name: &&PathBuf| !name.starts_with("tasks");
    let checkpoints: BTreeSet<PathBuf> = names.iter().filter(of_checkpoints).cloned().collect();
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
    let every = [
        SpecialFile::Pipe,
        SpecialFile::LinkToPipe,
        SpecialFile::LinkToFile,
        SpecialFile::Directory,
    ];
    let tasks = names.difference(&checkpoints).cloned().collect();
    replace_each(&base, "made", &tasks, &every, use_tasks);
}

/// Creates trackers of a task in a workspace that allows no file.
fn task_trackers(storage: &Storage, task: &str) -> Tracker {
    let view = Access::new(Roots::new(Vec::new()).into(), Vec::new())
        .view()
        .0;
    Tracker::open(storage, &at(task), view)
}

fn use_tasks(base: &Path) {
    let Ok(storage) = Storage::open(&base.join("data")) else {
        return;
    };
    let store = TaskStore::new(storage.clone());
    let cancel = Cancel::default();
    let id: TaskId = at("t1");
    let _ = store.list(None, &cancel);
    let _ = store.load(&id, &cancel);
    let _ = store.export_json(&id, &|_| true, &cancel);
    let tracker = task_trackers(&storage, "t1");
    let _ = tracker.records();
    let _ = tracker.record_model("p", "other", Mode::Act, 6);
    let _ = tracker.scan(&Default::default(), 0, SystemTime::now(), &cancel);
    let _ = Calibration::load(&storage.task(&id));
    let _ = store.import(&base.join("data/tasks/t2"), Some(&at("t3")), 7, &cancel);
    let message = task_support::raw(&turn(2));
    let _ = store.append(&id, &[&message], &task_support::at_time(8), &cancel);
    let limits = RetentionLimits {
        max_count: Some(0),
        ..RetentionLimits::default()
    };
    let _ = store.prune(&limits, &|_| false, i64::MAX / 2, &cancel);
    let _ = store.delete(&id);
}

#[test]
fn special_files_in_an_imported_repository_never_block() {
    let folder = scratch();
    let base = fs::canonicalize(folder.path()).unwrap();
    let ground = Ground::at(&base);
    let made = base.join("made");
    fs::create_dir(&made).unwrap();
    git(&made, &["init", "-q"]);
    let git_dir = made.join(".git");
    git(
        &git_dir,
        &["config", "core.worktree", ground.root.to_str().unwrap()],
    );
    for turn in 0..3 {
        ground.write(&[("d/f", &format!("turn {turn}"))]);
        git(&git_dir, &["add", "."]);
        git(&git_dir, &["commit", "-q", "-m", "checkpoint-1-t"]);
        if turn == 1 {
            git(&git_dir, &["gc", "-q"]);
        }
    }
    let names = files(&made);
    let mut names: BTreeSet<PathBuf> = names
        .iter()
        .map(|path| path.strip_prefix(&made).unwrap().to_path_buf())
        .collect();
    for name in [
        "commondir",
        "shallow",
        "config.worktree",
        "objects/info/alternates",
        "gitdir",
    ] {
        names.insert(Path::new(".git").join(name));
    }
    let every = [
        SpecialFile::Pipe,
        SpecialFile::LinkToPipe,
        SpecialFile::LinkToFile,
        SpecialFile::Directory,
    ];
    replace_each(&base, "made", &names, &every, move |base| {
        let _ = fs::remove_dir_all(base.join("store"));
        fs::rename(base.join("data"), base.join("shadow")).unwrap();
        let ground = Ground::at(base);
        let _ = ground.job(|job| ground.checkpoints.import(job, &base.join("shadow")));
        fs::remove_dir_all(base.join("shadow")).unwrap();
    });
}
