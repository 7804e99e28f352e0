//! Changes as Linux tells them: inotify, one watch per captured folder.
//!
//! The kernel queues an event before the call that caused it returns. [`take`]
//! empties that queue itself, so whatever ended before it is in. A thread
//! empties it meanwhile, so that it does not overflow, and adds watches.
//!
//! Watches are added to the folders that a look at the work tree found. What
//! happens in a folder between that look and its watch makes no event, and a
//! folder made there meanwhile has no watch. So a folder that came, went or was
//! watched just now is *unsettled*: it is told of again and again, with all below
//! it, until a look that began after that found nothing more to watch. At first
//! nothing is known, until such a look. Whatever is not understood (an overflow,
//! an unmount) ends the trust until all watches are made anew.
//!
//! Not every write makes an event: one through memory shared with a file, or
//! through another hard link of it outside the root, makes none. So now and then
//! everything is scanned at anyway; and always before a restore.
//!
//! [`take`]: InotifyTracker::take

mod watches;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    io::{PipeReader, PipeWriter, Read, Write},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::inotify::{ReadFlags, Reader},
    io::Errno,
};
use sightline_core::{
    checkpoint::changes::Changes,
    path::{AbsPath, RelPath},
};

use watches::update_watches;

use crate::{checkpoint_registry::RootCheckpoints, sync::lock};

/// Changed paths remembered at most; with more, anything may have changed.
const MAX_PATHS: usize = 10_000;
/// Everything is scanned at after so many scans at changes only.
const AUDIT_EVERY: u32 = 20;
/// Everything is scanned at when this long nobody did.
const AUDIT_AFTER: Duration = Duration::from_secs(600);
/// Events that come this close together wake the thread once.
const SETTLE: Duration = Duration::from_millis(20);
/// Room for about a thousand events.
const BUFFER: usize = 64 * 1024;

/// Watches one root.
pub(super) struct InotifyTracker {
    state: Arc<Mutex<State>>,
    /// Wakes the thread; dropped, ends it.
    wake: Mutex<Option<PipeWriter>>,
}

impl InotifyTracker {
    pub(super) fn new(root: AbsPath) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(root))),
            wake: Mutex::default(),
        }
    }

    /// The work tree was scanned at; watches update_watches, on a thread of their own.
    pub(super) fn scanned(&self, of: &Arc<RootCheckpoints>) {
        {
            let mut state = lock(&self.state);
            state.completed_scan = state.scans;
            if !state.needs_watches() {
                return;
            }
        }
        let mut wake = lock(&self.wake);
        if wake.is_none() {
            *wake = start(&self.state, Arc::downgrade(of));
        }
        if let Some(wake) = &mut *wake {
            // A full pipe wakes as well.
            let _ = wake.write(&[0]);
        }
    }

    pub(super) fn take(&self) -> Changes {
        let changes = lock(&self.state).take();
        match &changes {
            Changes::Known(paths) => tracing::debug!(paths = paths.len(), "changes are known"),
            Changes::Unknown => tracing::debug!("anything may have changed"),
        }
        changes
    }

    pub(super) fn put_back(&self, changes: Changes) {
        let mut state = lock(&self.state);
        match changes {
            Changes::Known(paths) => paths.into_iter().for_each(|path| state.mark(path)),
            Changes::Unknown => state.unknown = true,
        }
    }
}

/// What is watched, and what was seen.
struct State {
    root: AbsPath,
    /// `None` while nothing is watched.
    inotify: Option<Arc<OwnedFd>>,
    folders: HashMap<i32, RelPath>,
    watches: BTreeMap<RelPath, i32>,
    /// Are all folders watched, since before the last look began?
    armed: bool,
    /// Watching is not possible here.
    disabled: bool,
    unknown: bool,
    dirty: BTreeSet<RelPath>,
    /// Folders that came, went or were watched just now, with the look that
    /// first took them in, when there was one since.
    unsettled: BTreeMap<RelPath, Option<u64>>,
    /// Looks that were begun.
    scans: u64,
    /// The last one that has ended.
    completed_scan: u64,
    /// The last one that was begun when a watch was added.
    last_watch_added: u64,
    /// Looks at changes only, since everything was scanned at.
    incremental_scans: u32,
    last_full_scan: Instant,
}

impl State {
    fn new(root: AbsPath) -> Self {
        Self {
            root,
            inotify: None,
            folders: HashMap::new(),
            watches: BTreeMap::new(),
            armed: false,
            disabled: false,
            unknown: true,
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
        !self.disabled && (!self.armed || !self.unsettled.is_empty())
    }

    fn take(&mut self) -> Changes {
        self.drain();
        self.scans += 1;
        for look in self.unsettled.values_mut() {
            look.get_or_insert(self.scans);
        }
        let mut known = std::mem::take(&mut self.dirty);
        let is_due =
            self.incremental_scans >= AUDIT_EVERY || self.last_full_scan.elapsed() > AUDIT_AFTER;
        if !self.armed || self.unknown || is_due {
            // What is marked from now on is news to who scans at everything.
            self.unknown = false;
            self.incremental_scans = 0;
            self.last_full_scan = Instant::now();
            return Changes::Unknown;
        }
        self.incremental_scans += 1;
        known.extend(self.unsettled.keys().cloned());
        Changes::Known(known.into_iter().collect())
    }

    fn mark(&mut self, path: RelPath) {
        if self.unknown {
            return;
        }
        self.dirty.insert(path);
        if self.dirty.len() > MAX_PATHS {
            self.dirty.clear();
            self.unknown = true;
        }
    }

    /// Ends the trust, and all watches.
    fn invalidate(&mut self, why: &str) {
        tracing::info!(
            why,
            "changes are not known; the next checkpoint scans at all"
        );
        self.inotify = None;
        self.folders.clear();
        self.watches.clear();
        self.armed = false;
        self.unknown = true;
        self.dirty.clear();
        self.unsettled.clear();
    }

    /// Watching will not be tried again.
    fn disable(&mut self, why: &str) {
        self.invalidate(why);
        self.disabled = true;
    }

    /// Takes in all that the kernel has handle_event.
    fn drain(&mut self) {
        let Some(inotify) = self.inotify.clone() else {
            return;
        };
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&*inotify, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(error) => return self.invalidate(&error.to_string()),
            };
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            self.handle_event(event.wd(), event.events(), name);
            if self.inotify.is_none() {
                return;
            }
        }
    }

    fn handle_event(&mut self, watch: i32, what: ReadFlags, name: Option<&OsStr>) {
        if what.intersects(ReadFlags::QUEUE_OVERFLOW) {
            return self.invalidate("more changed than the system keeps");
        }
        if what.intersects(ReadFlags::UNMOUNT) {
            return self.invalidate("a file system was unmounted");
        }
        // A watch that was given up may still have events in the queue.
        let Some(folder) = self.folders.get(&watch).cloned() else {
            return;
        };
        let Some(name) = name else {
            let gone = ReadFlags::IGNORED | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
            if !what.intersects(gone) {
                return self.mark(folder);
            }
            if folder.is_root() {
                return self.invalidate("the folder itself was moved or deleted");
            }
            self.unwatch(&folder);
            return self.unsettle(folder);
        };
        let path = folder.child(name);
        let entries =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        if what.intersects(entries) {
            // A watch is of a folder, not of its name: what was watched by this
            // name is elsewhere or gone, and what is here now is not watched.
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
            self.invalidate("more folders moved than are remembered");
        }
    }
}

/// The thread of a root; `None` when there can be none.
fn start(state: &Arc<Mutex<State>>, of: Weak<RootCheckpoints>) -> Option<PipeWriter> {
    let (reader, writer) = std::io::pipe().ok()?;
    let state = state.clone();
    std::thread::Builder::new()
        .name("changes".to_owned())
        .spawn(move || run(&state, &of, reader))
        .ok()?;
    Some(writer)
}

fn run(state: &Mutex<State>, of: &Weak<RootCheckpoints>, mut wake: PipeReader) {
    loop {
        let inotify = lock(state).inotify.clone();
        let mut polled = vec![PollFd::new(&wake, PollFlags::IN)];
        polled.extend(inotify.as_ref().map(|fd| PollFd::new(&**fd, PollFlags::IN)));
        if poll(&mut polled, None).is_err_and(|error| error != Errno::INTR) {
            return lock(state).disable("waiting for changes failed");
        }
        let is_woken = !polled[0].revents().is_empty();
        drop(polled);
        if is_woken {
            // The other end is gone: so is who asks.
            if !matches!(wake.read(&mut [0; 64]), Ok(1..)) {
                return;
            }
            let Some(of) = of.upgrade() else { return };
            let look = lock(state).completed_scan;
            update_watches(state, look, of.store.folders());
        } else {
            lock(state).drain();
            std::thread::sleep(SETTLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn rel(path: &str) -> RelPath {
        RelPath::new(path.as_ref()).unwrap()
    }

    /// A folder with these folders in it, all watched, and nothing to tell.
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

    /// Looks and watches until nothing is to be told.
    fn settle(state: &Mutex<State>, folders: &[&str]) {
        for _ in 0..2 {
            assert_eq!(lock(state).take(), Changes::Unknown);
            scanned(state, folders);
        }
        assert_eq!(lock(state).take(), Changes::Known(Vec::new()));
    }

    /// A look has ended and found these folders.
    fn scanned(state: &Mutex<State>, folders: &[&str]) {
        let mut all = vec![RelPath::default()];
        all.extend(folders.iter().map(|folder| rel(folder)));
        let look = {
            let mut state = lock(state);
            state.completed_scan = state.scans;
            state.completed_scan
        };
        update_watches(state, look, all);
    }

    fn known(state: &Mutex<State>) -> Vec<String> {
        match lock(state).take() {
            Changes::Known(paths) => paths.iter().map(|path| path.to_string()).collect(),
            Changes::Unknown => panic!("anything may have changed"),
        }
    }

    #[test]
    fn a_write_that_ended_is_known_at_once() {
        let (scratch, state) = watched(&["a"]);
        for round in 0..10 {
            fs::write(scratch.path().join("a/file"), format!("{round}")).unwrap();
            assert_eq!(known(&state), ["a/file"]);
        }
        // Also one through a file that is still open.
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
    fn a_new_folder_is_told_of_until_all_below_it_is_watched() {
        let (scratch, state) = watched(&[]);
        let path = scratch.path();
        fs::create_dir_all(path.join("new/deep")).unwrap();
        assert_eq!(known(&state), ["new"]);
        // Before it is watched, and after a look.
        fs::write(path.join("new/deep/file"), "x").unwrap();
        assert_eq!(known(&state), ["new"]);
        fs::create_dir(path.join("new/unseen")).unwrap();
        scanned(&state, &["new", "new/deep"]);
        // They were watched after that look, which has not seen all.
        assert_eq!(known(&state), ["new", "new/deep"]);
        fs::write(path.join("new/unseen/file"), "x").unwrap();
        assert_eq!(known(&state), ["new", "new/deep"]);
        scanned(&state, &["new", "new/deep", "new/unseen"]);
        assert_eq!(known(&state), ["new/unseen"]);
        scanned(&state, &["new", "new/deep", "new/unseen"]);
        assert_eq!(known(&state), [""; 0]);
        fs::write(path.join("new/unseen/file"), "y").unwrap();
        assert_eq!(known(&state), ["new/unseen/file"]);
        assert!(!lock(&state).needs_watches());
    }

    #[test]
    fn nothing_is_known_while_a_folder_may_have_been_missed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(scratch.path()).unwrap();
        let state = Mutex::new(State::new(AbsPath::new(&path).unwrap()));
        assert_eq!(lock(&state).take(), Changes::Unknown);
        fs::create_dir(path.join("late")).unwrap();
        scanned(&state, &[]);
        assert_eq!(lock(&state).take(), Changes::Unknown);
        scanned(&state, &["late"]);
        assert_eq!(lock(&state).take(), Changes::Unknown);
        fs::write(path.join("late/file"), "x").unwrap();
        scanned(&state, &["late"]);
        assert_eq!(known(&state), ["late/file"], "from the last look on");
    }

    #[test]
    fn a_moved_folder_is_not_known_by_its_old_name() {
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
    fn what_was_not_used_comes_again_and_too_much_is_anything() {
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
    fn everything_is_looked_at_now_and_then() {
        let (_scratch, state) = watched(&[]);
        let unknown = (0..200)
            .filter(|_| lock(&state).take() == Changes::Unknown)
            .count();
        assert_eq!(unknown, 200 / (AUDIT_EVERY as usize + 1));
    }

    #[test]
    fn a_root_that_moves_is_not_trusted() {
        let (scratch, state) = watched(&["a"]);
        let inner = scratch.path().join("a");
        let moved = Mutex::new(State::new(AbsPath::new(&inner).unwrap()));
        settle(&moved, &[]);
        fs::rename(&inner, scratch.path().join("b")).unwrap();
        assert_eq!(lock(&moved).take(), Changes::Unknown);
        assert!(lock(&moved).needs_watches());
        assert_eq!(known(&state), ["a", "b"]);
    }

    #[test]
    fn more_events_than_the_queue_holds_are_noticed() {
        let (scratch, state) = watched(&[]);
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let most: usize = most.trim().parse().unwrap();
        for round in 0..=most / 2 {
            // Two names, or the kernel would fold equal events.
            let name = ["one", "two"][round % 2];
            fs::write(scratch.path().join(name), "x").unwrap();
        }
        assert_eq!(lock(&state).take(), Changes::Unknown);
        scanned(&state, &[]);
        assert_eq!(lock(&state).take(), Changes::Unknown);
        scanned(&state, &[]);
        assert_eq!(known(&state), [""; 0]);
    }
}
