//! Adds and removes watches, and checks whether they are reliable.

use std::{
    ffi::OsStr,
    fs,
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::Path,
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};
use sightline_base::path::RelPath;

use super::{State, mounts::Mounts};

/// Maximum number of watched directories, regardless of the system's limit.
const MAX_FOLDERS: usize = 60_000;
/// Size of the event buffer in bytes, enough for about a thousand events.
const BUFFER: usize = 64 * 1024;
/// Watches added at a time, while [`take`](super::InotifyTracker::take) must wait.
const BATCH: usize = 256;

/// Events to watch in each directory.
pub(crate) const WATCHED_EVENTS: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::EXCL_UNLINK);

/// Magic numbers of file systems that are only changed through this kernel.
const LOCAL_FILE_SYSTEMS: [u32; 11] = [
    0x0000_ef53, // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x2fc1_2fc1, // ZFS
    0xf2f5_2010, // F2FS
    0xca45_1a4e, // bcachefs
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
];

/// Device and inode number of a directory.
pub(crate) type FileId = (u64, u64);

/// Returns the directory at `path`, which is not followed if it is a link.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Calls `handle` with the queued events of a descriptor: watch, event and name. It returns whether it wants more.
pub(crate) fn drain(
    inotify: &OwnedFd,
    mut handle: impl FnMut(i32, ReadFlags, Option<&OsStr>) -> bool,
) -> Result<(), Errno> {
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
    let mut events = Reader::new(inotify, &mut buffer);
    loop {
        let event = match events.next() {
            Ok(event) => event,
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        let name = event
            .file_name()
            .map(|name| OsStr::from_bytes(name.to_bytes()));
        if !handle(event.wd(), event.events(), name) {
            return Ok(());
        }
    }
}

impl State {
    /// Removes the watches at this path and below. Returns whether there were any.
    pub(super) fn unwatch(&mut self, path: &RelPath) -> bool {
        let below: Vec<(RelPath, i32)> = self
            .watches
            .range(path.clone()..)
            .take_while(|(other, _)| other.as_path().starts_with(path.as_path()))
            .map(|(other, watch)| (other.clone(), *watch))
            .collect();
        let was_watched = !below.is_empty();
        for (folder, watch) in below {
            self.watches.remove(&folder);
            self.folders.remove(&watch);
            if let Some(inotify) = &self.inotify {
                // The kernel may have removed it already.
                let _ = inotify::remove_watch(&**inotify, watch);
            }
        }
        was_watched
    }

    /// Watches directories that are not watched yet. Returns false if watching ended.
    fn watch(&mut self, folders: &[RelPath], device: u64) -> bool {
        let Some(inotify) = self.inotify.clone() else {
            return false;
        };
        for folder in folders {
            if self.watches.contains_key(folder) {
                continue;
            }
            let path = self.root.join(folder);
            match inotify::add_watch(&*inotify, path.as_path(), WATCHED_EVENTS) {
                Ok(watch) => {
                    // The same directory under another name: it was moved, and the event
                    // is still queued.
                    if let Some(old) = self.folders.insert(watch, folder.clone()) {
                        self.watches.remove(&old);
                        self.unsettle(old);
                    }
                    self.watches.insert(folder.clone(), watch);
                }
                // It is gone or was replaced, which is reported by an event.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => {
                    self.disable(&format!("{}: {error}", path.display()));
                    return false;
                }
            }
            let metadata = fs::symlink_metadata(path.as_path());
            if metadata.is_ok_and(|metadata| metadata.dev() != device) {
                self.disable("another file system is mounted in the root");
                return false;
            }
            self.last_watch_added = self.scans;
            if self.all_watched {
                self.unsettle(folder.clone());
            }
        }
        true
    }
}

/// Adds watches for the directories found by a scan.
pub(super) fn update_watches(state: &Mutex<State>, look: u64, folders: Vec<RelPath>) {
    let mut locked = state.lock();
    let root = locked.root.clone();
    if !locked.needs_watches() || folders.is_empty() {
        return;
    }
    if let Err(why) = check_reliable(root.as_path(), folders.len()) {
        return locked.disable(&why);
    }
    locked.check_paths();
    let Some(id @ (device, _)) = file_id(root.as_path()) else {
        return locked.invalidate("the root is gone");
    };
    if locked.inotify.is_none() {
        match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(inotify) => {
                locked.inotify = Some(Arc::new(inotify));
                locked.watched_root = Some(id);
                locked.mounts = Some(Mounts::below(root.as_path()));
            }
            Err(error) => return locked.disable(&error.to_string()),
        }
    }
    drop(locked);
    for batch in folders.chunks(BATCH) {
        if !state.lock().watch(batch, device) {
            return;
        }
    }
    let mut locked: MutexGuard<'_, State> = state.lock();
    locked.drain();
    // Settles directories that this scan saw after they were watched.
    locked
        .unsettled
        .retain(|_, taken| taken.is_none_or(|taken| taken > look));
    if locked.inotify.is_some() && !locked.all_watched && look > locked.last_watch_added {
        locked.all_watched = true;
        let count = locked.watches.len();
        tracing::debug!(folders = count, "watching");
    }
}

/// Returns an error if inotify is unreliable for this directory.
pub(crate) fn check_reliable(root: &Path, folders: usize) -> Result<(), String> {
    let kind = rustix::fs::statfs(root).map_err(|error| error.to_string())?;
    // 32-bit numbers in a field whose size and sign depend on the platform.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let kind = kind.f_type as u32;
    if !LOCAL_FILE_SYSTEMS.contains(&kind) {
        return Err(format!(
            "changes on file systems of type {kind:x} are not always reported"
        ));
    }
    let allowed = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    let allowed = allowed
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok());
    let most = allowed.map_or(MAX_FOLDERS, |allowed| MAX_FOLDERS.min(allowed / 2));
    if folders > most {
        return Err(format!(
            "{folders} directories exceed the limit of {most} watches"
        ));
    }
    Ok(())
}
