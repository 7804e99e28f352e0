//! Tracks changes with inotify, one watch per captured directory.
//!
//! The kernel queues an event before the system call that caused it returns. [`take`]
//! drains that queue itself, so it includes every change that has completed. A thread
//! also drains it, so that it does not overflow, and adds watches.
//!
//! Watches are added to the directories found by a scan of the work tree. Changes between
//! the scan and its watch are not reported, and directories created in between have no
//! watch. A directory that was created, removed, moved or just watched is therefore
//! *unsettled*: it is reported as changed, with everything below it, until a later scan
//! finds nothing more to watch. At first everything is unknown, until such a scan. After
//! an overflow or an unmount, all watches are discarded and everything is unknown again.
//!
//! A watch belongs to a directory, not to its path. Below the root, a parent directory
//! reports that a name means another directory now. The root has no such parent, and even its
//! removal is not reported while a process uses it. Therefore the directory at its path is
//! compared with the watched one before the events are trusted, and mounts are checked (`mounts`).
//!
//! Some writes cause no event: those through a shared memory mapping, or through a hard
//! link outside the root. For these, a full scan happens now and then, and before every
//! restore.
//!
//! [`take`]: InotifyTracker::take

pub(crate) mod mounts;
pub(crate) mod watches;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    io::{PipeReader, PipeWriter, Read, Write},
    os::fd::OwnedFd,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::inotify::ReadFlags,
    io::Errno,
};
use sightline_base::path::{AbsPath, RelPath};
use sightline_checkpoint::{Changes, Checkpoints};

use mounts::Mounts;
use watches::{FileId, drain, file_id, update_watches};

/// Maximum number of changed paths kept; with more, everything is unknown.
const MAX_PATHS: usize = 10_000;
/// Number of incremental scans between two full scans.
const FULL_SCAN_EVERY: u32 = 20;
/// Maximum time between two full scans.
const FULL_SCAN_AFTER: Duration = Duration::from_secs(600);
/// Events within this time wake the thread once.
const SETTLE: Duration = Duration::from_millis(20);

/// Tracks one root.
pub(super) struct InotifyTracker {
    state: Arc<Mutex<State>>,
    /// Wakes the thread; dropping it ends the thread.
    wake: Mutex<Option<PipeWriter>>,
}

impl InotifyTracker {
    pub(super) fn new(root: AbsPath) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(root))),
            wake: Mutex::default(),
        }
    }

    /// Records a scan of the work tree. The thread then adds the missing watches.
    pub(super) fn scanned(&self, checkpoints: &Arc<Checkpoints>) {
        {
            let mut state = self.state.lock();
            // The scan may have read another directory than the watched one.
            state.check_paths();
            state.completed_scan = state.scans;
            if !state.needs_watches() {
                return;
            }
        }
        let mut wake = self.wake.lock();
        if wake.is_none() {
            *wake = start(&self.state, Arc::downgrade(checkpoints));
        }
        if let Some(wake) = &mut *wake {
            // A full pipe wakes the thread as well.
            let _ = wake.write(&[0]);
        }
    }

    pub(super) fn take(&self) -> Changes {
        let changes = self.state.lock().take();
        match &changes {
            Changes::Known(paths) => {
                tracing::debug!(paths = paths.len(), "changed paths are known")
            }
            Changes::Unknown => tracing::debug!("changes are unknown"),
        }
        changes
    }

    pub(super) fn put_back(&self, changes: Changes) {
        let mut state = self.state.lock();
        match changes {
            Changes::Known(paths) => paths.into_iter().for_each(|path| state.mark(path)),
            Changes::Unknown => state.is_unknown = true,
        }
    }
}

/// Watches and observed changes.
struct State {
    root: AbsPath,
    /// `None` while nothing is watched.
    inotify: Option<Arc<OwnedFd>>,
    /// The watched root directory. Meaningful while something is watched.
    watched_root: Option<FileId>,
    mounts: Option<Mounts>,
    folders: HashMap<i32, RelPath>,
    watches: BTreeMap<RelPath, i32>,
    /// All directories have been watched since before the last scan.
    all_watched: bool,
    /// Watching is not possible for this root.
    disabled: bool,
    is_unknown: bool,
    dirty: BTreeSet<RelPath>,
    /// Unsettled directories, with the first scan since then, if any.
    unsettled: BTreeMap<RelPath, Option<u64>>,
    /// Number of scans started.
    scans: u64,
    /// The last completed scan.
    completed_scan: u64,
    /// The last scan started when a watch was added.
    last_watch_added: u64,
    /// Incremental scans since the last full scan.
    incremental_scans: u32,
    last_full_scan: Instant,
}

impl State {
    fn new(root: AbsPath) -> Self {
        Self {
            root,
            inotify: None,
            watched_root: None,
            mounts: None,
            folders: HashMap::new(),
            watches: BTreeMap::new(),
            all_watched: false,
            disabled: false,
            is_unknown: true,
            dirty: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            scans: 0,
            completed_scan: 0,
            last_watch_added: 0,
            incremental_scans: 0,
            last_full_scan: Instant::now(),
        }
    }

    fn needs_watches(&self) -> bool {
        !self.disabled && (!self.all_watched || !self.unsettled.is_empty())
    }

    fn take(&mut self) -> Changes {
        self.drain();
        self.check_paths();
        self.scans += 1;
        for look in self.unsettled.values_mut() {
            look.get_or_insert(self.scans);
        }
        let mut known = std::mem::take(&mut self.dirty);
        let is_due = self.incremental_scans >= FULL_SCAN_EVERY
            || self.last_full_scan.elapsed() > FULL_SCAN_AFTER;
        if !self.all_watched || self.is_unknown || is_due {
            // Paths marked from now on are changes since this scan.
            self.is_unknown = false;
            self.incremental_scans = 0;
            self.last_full_scan = Instant::now();
            return Changes::Unknown;
        }
        self.incremental_scans += 1;
        known.extend(self.unsettled.keys().cloned());
        Changes::Known(known.into_iter().collect())
    }

    fn mark(&mut self, path: RelPath) {
        if self.is_unknown {
            return;
        }
        self.dirty.insert(path);
        if self.dirty.len() > MAX_PATHS {
            self.dirty.clear();
            self.is_unknown = true;
        }
    }

    /// Discards all watches if a path leads to another directory than the watched one without an
    /// event: that of the root, or one at which a file system was mounted or unmounted.
    fn check_paths(&mut self) {
        if self.inotify.is_none() {
            return;
        }
        if self.watched_root != file_id(self.root.as_path()) {
            self.invalidate("the path of the root leads to another directory");
        } else if self.mounts.as_mut().is_some_and(Mounts::have_changed) {
            self.invalidate("a file system was mounted or unmounted in the root");
        }
    }

    /// Discards all watches; everything is unknown.
    fn invalidate(&mut self, why: &str) {
        tracing::info!(
            why,
            "change tracking was reset; the next checkpoint is a full scan"
        );
        self.inotify = None;
        self.mounts = None;
        self.folders.clear();
        self.watches.clear();
        self.all_watched = false;
        self.is_unknown = true;
        self.dirty.clear();
        self.unsettled.clear();
    }

    /// Discards all watches and never adds any again.
    fn disable(&mut self, why: &str) {
        self.invalidate(why);
        self.disabled = true;
    }

    /// Processes all queued events.
    fn drain(&mut self) {
        let Some(inotify) = self.inotify.clone() else {
            return;
        };
        let drained = drain(&inotify, |watch, what, name| {
            self.handle_event(watch, what, name);
            self.inotify.is_some()
        });
        if let Err(error) = drained {
            self.invalidate(&error.to_string());
        }
    }

    fn handle_event(&mut self, watch: i32, what: ReadFlags, name: Option<&OsStr>) {
        if what.intersects(ReadFlags::QUEUE_OVERFLOW) {
            return self.invalidate("event queue overflow");
        }
        if what.intersects(ReadFlags::UNMOUNT) {
            return self.invalidate("a file system was unmounted");
        }
        // Events of a removed watch may still be queued.
        let Some(folder) = self.folders.get(&watch).cloned() else {
            return;
        };
        let Some(name) = name else {
            let gone = ReadFlags::IGNORED | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
            if !what.intersects(gone) {
                return self.mark(folder);
            }
            if folder.is_root() {
                return self.invalidate("the root was moved or deleted");
            }
            self.unwatch(&folder);
            return self.unsettle(folder);
        };
        let path = folder.child(name);
        let entries =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        if what.intersects(entries) {
            // A watch belongs to a directory, not to its name: the watched directory has
            // moved or is gone, and the one at this path is not watched.
            let was_watched = self.unwatch(&path);
            if was_watched || what.intersects(ReadFlags::ISDIR) {
                return self.unsettle(path);
            }
        }
        self.mark(path);
    }

    fn unsettle(&mut self, folder: RelPath) {
        self.unsettled.insert(folder, None);
        if self.unsettled.len() > MAX_PATHS {
            self.invalidate("too many moved directories");
        }
    }
}

/// Starts the thread of a root. Returns `None` if that fails.
fn start(state: &Arc<Mutex<State>>, checkpoints: Weak<Checkpoints>) -> Option<PipeWriter> {
    let (reader, writer) = std::io::pipe().ok()?;
    let state = state.clone();
    std::thread::Builder::new()
        .name("changes".to_owned())
        .spawn(move || run(&state, &checkpoints, reader))
        .ok()?;
    Some(writer)
}

fn run(state: &Mutex<State>, checkpoints: &Weak<Checkpoints>, mut wake: PipeReader) {
    loop {
        let inotify = state.lock().inotify.clone();
        let mut polled = vec![PollFd::new(&wake, PollFlags::IN)];
        polled.extend(inotify.as_ref().map(|fd| PollFd::new(&**fd, PollFlags::IN)));
        if poll(&mut polled, None).is_err_and(|error| error != Errno::INTR) {
            return state.lock().disable("cannot wait for events");
        }
        let is_woken = !polled[0].revents().is_empty();
        drop(polled);
        if is_woken {
            // The tracker was dropped.
            if !matches!(wake.read(&mut [0; 64]), Ok(1..)) {
                return;
            }
            let Some(checkpoints) = checkpoints.upgrade() else {
                return;
            };
            let look = state.lock().completed_scan;
            update_watches(state, look, checkpoints.captured_folders());
        } else {
            state.lock().drain();
            std::thread::sleep(SETTLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn rel(path: &str) -> RelPath {
        RelPath::new(path.as_ref()).unwrap()
    }

    /// Creates a root with these folders, all watched, and no changes.
    fn watched(folders: &[&str]) -> (tempfile::TempDir, Mutex<State>) {
        let scratch = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(scratch.path()).unwrap();
        for folder in folders {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        let state = Mutex::new(State::new(AbsPath::new(&path).unwrap()));
        settle(&state, folders);
        (scratch, state)
    }

    /// Scans and watches until there are no changes.
    fn settle(state: &Mutex<State>, folders: &[&str]) {
        for _ in 0..2 {
            assert_eq!(state.lock().take(), Changes::Unknown);
            scanned(state, folders);
        }
        assert_eq!(state.lock().take(), Changes::Known(Vec::new()));
    }

    /// Records a completed scan that found these folders.
    fn scanned(state: &Mutex<State>, folders: &[&str]) {
        let mut all = vec![RelPath::default()];
        all.extend(folders.iter().map(|folder| rel(folder)));
        let look = {
            let mut state = state.lock();
            state.completed_scan = state.scans;
            state.completed_scan
        };
        update_watches(state, look, all);
    }

    fn known(state: &Mutex<State>) -> Vec<String> {
        match state.lock().take() {
            Changes::Known(paths) => paths.iter().map(|path| path.to_string()).collect(),
            Changes::Unknown => panic!("changes are unknown"),
        }
    }

    #[test]
    fn a_completed_write_is_known_at_once() {
        let (scratch, state) = watched(&["a"]);
        for round in 0..10 {
            fs::write(scratch.path().join("a/file"), format!("{round}")).unwrap();
            assert_eq!(known(&state), ["a/file"]);
        }
        // Writes through an open handle are reported too.
        let mut open = fs::File::create(scratch.path().join("top")).unwrap();
        known(&state);
        open.write_all(b"more").unwrap();
        assert_eq!(known(&state), ["top"]);
        fs::rename(scratch.path().join("top"), scratch.path().join("a/other")).unwrap();
        assert_eq!(known(&state), ["a/other", "top"]);
        fs::remove_file(scratch.path().join("a/other")).unwrap();
        assert_eq!(known(&state), ["a/other"]);
    }

    #[test]
    fn a_new_folder_is_reported_until_everything_below_is_watched() {
        let (scratch, state) = watched(&[]);
        let path = scratch.path();
        fs::create_dir_all(path.join("new/deep")).unwrap();
        assert_eq!(known(&state), ["new"]);
        // Before it is watched, and after a scan.
        fs::write(path.join("new/deep/file"), "x").unwrap();
        assert_eq!(known(&state), ["new"]);
        fs::create_dir(path.join("new/unseen")).unwrap();
        scanned(&state, &["new", "new/deep"]);
        // They were watched after that scan, which did not see everything.
        assert_eq!(known(&state), ["new", "new/deep"]);
        fs::write(path.join("new/unseen/file"), "x").unwrap();
        assert_eq!(known(&state), ["new", "new/deep"]);
        scanned(&state, &["new", "new/deep", "new/unseen"]);
        assert_eq!(known(&state), ["new/unseen"]);
        scanned(&state, &["new", "new/deep", "new/unseen"]);
        assert_eq!(known(&state), [""; 0]);
        fs::write(path.join("new/unseen/file"), "y").unwrap();
        assert_eq!(known(&state), ["new/unseen/file"]);
        assert!(!state.lock().needs_watches());
    }

    #[test]
    fn changes_are_unknown_while_a_folder_may_be_missed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(scratch.path()).unwrap();
        let state = Mutex::new(State::new(AbsPath::new(&path).unwrap()));
        assert_eq!(state.lock().take(), Changes::Unknown);
        fs::create_dir(path.join("late")).unwrap();
        scanned(&state, &[]);
        assert_eq!(state.lock().take(), Changes::Unknown);
        scanned(&state, &["late"]);
        assert_eq!(state.lock().take(), Changes::Unknown);
        fs::write(path.join("late/file"), "x").unwrap();
        scanned(&state, &["late"]);
        assert_eq!(known(&state), ["late/file"], "since the last scan");
    }

    #[test]
    fn a_moved_folder_is_not_tracked_by_its_old_name() {
        let (scratch, state) = watched(&["a", "a/deep", "b"]);
        fs::rename(scratch.path().join("a"), scratch.path().join("b/z")).unwrap();
        fs::create_dir_all(scratch.path().join("a/deep")).unwrap();
        assert_eq!(known(&state), ["a", "b/z"]);
        let folders = ["a", "a/deep", "b", "b/z", "b/z/deep"];
        for _ in 0..2 {
            scanned(&state, &folders);
            known(&state);
        }
        scanned(&state, &folders);
        fs::write(scratch.path().join("b/z/deep/file"), "x").unwrap();
        assert_eq!(known(&state), ["b/z/deep/file"]);
        fs::write(scratch.path().join("a/deep/file"), "x").unwrap();
        assert_eq!(known(&state), ["a/deep/file"]);
    }

    #[test]
    fn unused_changes_return_and_too_many_are_unknown() {
        let (scratch, state) = watched(&[]);
        let watcher = InotifyTracker {
            state: Arc::new(state),
            wake: Mutex::default(),
        };
        fs::write(scratch.path().join("file"), "x").unwrap();
        let taken = watcher.take();
        assert_eq!(taken, Changes::Known(vec![rel("file")]));
        watcher.put_back(taken.clone());
        assert_eq!(watcher.take(), taken);
        watcher.put_back(Changes::Unknown);
        assert_eq!(watcher.take(), Changes::Unknown);
        let many = (0..=MAX_PATHS).map(|n| rel(&format!("f{n}"))).collect();
        watcher.put_back(Changes::Known(many));
        assert_eq!(watcher.take(), Changes::Unknown);
        assert_eq!(watcher.take(), Changes::Known(Vec::new()));
    }

    #[test]
    fn full_scans_happen_now_and_then() {
        let (_scratch, state) = watched(&[]);
        let is_unknown = (0..200)
            .filter(|_| state.lock().take() == Changes::Unknown)
            .count();
        assert_eq!(is_unknown, 200 / (FULL_SCAN_EVERY as usize + 1));
    }

    #[test]
    fn a_moved_root_is_unknown() {
        let (scratch, state) = watched(&["a"]);
        let inner = scratch.path().join("a");
        let moved = Mutex::new(State::new(AbsPath::new(&inner).unwrap()));
        settle(&moved, &[]);
        fs::rename(&inner, scratch.path().join("b")).unwrap();
        assert_eq!(moved.lock().take(), Changes::Unknown);
        assert!(moved.lock().needs_watches());
        assert_eq!(known(&state), ["a", "b"]);
    }

    /// The path of a root can lead to another directory without any event of the root.
    #[test]
    fn a_replaced_root_is_unknown() {
        use std::os::unix::fs::symlink;

        type Replace = fn(&Path);
        let replacements: [(&str, Replace); 5] = [
            ("removed", |top| {
                fs::remove_dir_all(top.join("above/root")).unwrap();
                fs::create_dir_all(top.join("above/root")).unwrap();
            }),
            ("moved", |top| {
                fs::rename(top.join("above/root"), top.join("aside")).unwrap();
                fs::create_dir_all(top.join("above/root")).unwrap();
            }),
            ("moved above", |top| {
                fs::rename(top.join("above"), top.join("aside")).unwrap();
                fs::create_dir_all(top.join("above/root")).unwrap();
            }),
            ("exchanged above", |top| {
                fs::create_dir_all(top.join("other/root")).unwrap();
                fs::rename(top.join("above"), top.join("aside")).unwrap();
                fs::rename(top.join("other"), top.join("above")).unwrap();
            }),
            ("linked above", |top| {
                fs::rename(top.join("above"), top.join("aside")).unwrap();
                fs::create_dir_all(top.join("other/root")).unwrap();
                symlink("other", top.join("above")).unwrap();
            }),
        ];
        for (how, replace) in replacements {
            let scratch = tempfile::tempdir().unwrap();
            let top = fs::canonicalize(scratch.path()).unwrap();
            let root = top.join("above/root");
            fs::create_dir_all(&root).unwrap();
            // A process uses it, so that its removal is not reported.
            let _used = fs::File::open(&root).unwrap();
            let state = Mutex::new(State::new(AbsPath::new(&root).unwrap()));
            settle(&state, &[]);
            replace(&top);
            fs::write(root.join("file"), "x").unwrap();
            settle(&state, &[]);
            fs::write(root.join("file"), "y").unwrap();
            assert_eq!(known(&state), ["file"], "{how}");
        }
    }

    #[test]
    fn a_queue_overflow_is_noticed() {
        let (scratch, state) = watched(&[]);
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let most: usize = most.trim().parse().unwrap();
        for round in 0..=most / 2 {
            // Two names, because the kernel merges equal consecutive events.
            let name = ["one", "two"][round % 2];
            fs::write(scratch.path().join(name), "x").unwrap();
        }
        assert_eq!(state.lock().take(), Changes::Unknown);
        scanned(&state, &[]);
        assert_eq!(state.lock().take(), Changes::Unknown);
        scanned(&state, &[]);
        assert_eq!(known(&state), [""; 0]);
    }
}
