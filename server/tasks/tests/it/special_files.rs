//! Replaces each file of stored tasks by pipes, links and directories. Each is refused at once: no
//! pipe blocks, no link is followed.

#![cfg(unix)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::support::{append, at, turn};
use sightline_access::Access;
use sightline_base::{
    cancel::Cancel,
    clock::now_nanos,
    path::Roots,
    storage::{Storage, TaskId},
};
use sightline_context::tracker::Tracker;
use sightline_conversation::tokens::Calibration;
use sightline_protocol::{
    environment::Mode,
    settings::{Secrets, TaskSettings},
};
use sightline_tasks::{TaskStore, load_calibration, store_calibration};
use sightline_testing::special_files::{SpecialFile, files, replace_each, scratch};

/// Creates a complete data directory at `made` below `base`. Returns its files of tasks.
fn filled(base: &Path) -> BTreeSet<PathBuf> {
    let made = base.join("made");
    let storage = Storage::open(&made).unwrap();
    let store = TaskStore::new(storage.clone());
    for id in ["t1", "t2"] {
        append(&store, id, &[&turn(0), &turn(1)], 5);
        let tracker = task_trackers(&storage, id);
        tracker.record_model("p", "m", Mode::Act, 5).unwrap();
        let lock = storage.task(&at(id)).lock().unwrap();
        store_calibration(&Calibration::default(), &lock).unwrap();
        lock.write("context_history.json", b"[]").unwrap();
        lock.write("tracked_files.json", b"{}").unwrap();
    }
    store.list(None, &Cancel::default()).unwrap();
    files(&made.join("tasks"))
        .iter()
        .map(|path| path.strip_prefix(&made).unwrap().to_path_buf())
        .collect()
}

#[test]
fn special_files_in_stored_tasks_never_block() {
    let folder = scratch();
    let base = fs::canonicalize(folder.path()).unwrap();
    let names = filled(&base);
    assert!(names.len() > 10, "{names:?}");
    replace_each(&base, "made", &names, &SpecialFile::ALL, use_tasks);
}

/// Creates trackers of a task in a workspace that allows no file.
fn task_trackers(storage: &Storage, task: &str) -> Tracker {
    let view = Access::new(Roots::new(Vec::new()).into(), Vec::new(), Secrets::Allow)
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
    let _ = tracker.scan(&Default::default(), 0, now_nanos(), &cancel);
    let _ = load_calibration(&storage.task(&id));
    let _ = store.import(&base.join("data/tasks/t2"), Some(&at("t3")), 7, &cancel);
    let message = crate::support::raw(&turn(2));
    let _ = store.append(&id, &[&message], &crate::support::at_time(8), &cancel);
    let limits = TaskSettings {
        max_count: Some(0),
        ..TaskSettings::default()
    };
    let _ = store.prune(&limits, &|_| false, i64::MAX / 2, &cancel);
    let _ = store.delete(&id);
}
