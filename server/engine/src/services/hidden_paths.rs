//! What `sightline exec` hides, kept current by inotify (Linux).
//!
//! All folders that are not denied are watched. The kernel queues an event before the system call that caused it
//! returns, so a request that drains the queue knows the folders to read again. Whatever could change more than
//! one folder (access rules, a moved root, a mounted file system, an overflow) starts a new walk.
//!
//! No list is kept where inotify does not work, and of linked worktrees, whose rules are also elsewhere. Then each
//! `sightline exec` searches the folders. It also does that in another mount namespace than the server.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags},
    io::Errno,
};
use sightline_access::{Access, AccessView, EntryRules, RULE_FILE};
use sightline_base::{
    fs::dir::Version,
    path::{RelPath, Root},
};
use sightline_exec::{DeniedEntries, HiddenPath, Tracked, hidden_in};

use crate::dirty_tracker::inotify::{
    mounts::Mounts,
    watches::{FileId, WATCHED_EVENTS, check_reliable, drain, file_id},
};

/// Lists what is hidden.
#[derive(Default)]
pub(super) struct HiddenPaths(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    watched: Option<Watched>,
    /// Roots that could not be watched at a time.
    unwatchable: Option<(Vec<Root>, Instant)>,
}

/// Time after which it is tried again to watch roots.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Time to wait for another request.
const WAIT: Duration = Duration::from_millis(500);
/// Maximum rule files; the rules of more are not all kept.
const MAX_RULE_FILES: usize = 1000;

impl HiddenPaths {
    /// Lists the denied files and folders of a view that git does not track, or says why no list is kept.
    pub(super) fn get(&self, view: &AccessView, rules: &Access) -> Result<Vec<HiddenPath>, String> {
        let Some(mut kept) = self.0.try_lock_for(WAIT) else {
            return Err("another request takes too long".to_owned());
        };
        let roots = view.roots().as_slice();
        if let Some((unwatchable, at)) = &kept.unwatchable
            && unwatchable == roots
            && at.elapsed() < RETRY_AFTER
        {
            return Err("the folders cannot be watched".to_owned());
        }
        let is_changed = rules.refresh_nested();
        let basis = Basis::new(view, rules);
        let is_current = |it: &Watched| it.basis == basis && !it.is_holding && !is_changed;
        let watched = kept.watched.take().filter(is_current);
        let updated = watched.and_then(|mut it| it.update(view).ok().map(|()| it));
        let started = match updated {
            Some(watched) => Ok(watched),
            None => Watched::start(view, basis),
        };
        let mut watched = started.inspect_err(|why| {
            tracing::info!(why, "folders cannot be watched for `sightline exec`");
            kept.unwatchable = Some((roots.to_vec(), Instant::now()));
        })?;
        let found = hidden_in(view, &watched.folders, &mut watched.tracked);
        watched.is_holding = rules.is_holding();
        kept.watched = Some(watched);
        found.map_err(|error| error.to_string())
    }
}

/// What decides about all folders.
#[derive(PartialEq)]
struct Basis {
    roots: Vec<(Root, Vec<EntryRules>)>,
    files: Vec<(PathBuf, Version)>,
}

impl Basis {
    fn new(view: &AccessView, rules: &Access) -> Self {
        let roots = view.roots().as_slice().iter().cloned().enumerate();
        let mut files: Vec<PathBuf> = rules.watched_files();
        files.sort();
        files.dedup();
        Self {
            roots: roots
                .map(|(at, root)| (root, view.entry_rules(at)))
                .collect(),
            files: files
                .into_iter()
                .map(|path| {
                    let version = Version::of(&path);
                    (path, version)
                })
                .collect(),
        }
    }
}

/// Why folders cannot be watched.
type Unwatchable = String;
/// A new walk is necessary.
struct Outdated;

struct Watched {
    basis: Basis,
    inotify: OwnedFd,
    roots: Vec<(PathBuf, FileId, Mounts)>,
    /// Number of the root, and the folder, by watch.
    watches: HashMap<i32, (usize, RelPath)>,
    /// Watches by folder.
    numbers: HashMap<PathBuf, i32>,
    folders: BTreeMap<PathBuf, DeniedEntries>,
    tracked: Tracked,
    /// Whether removed rules still applied, which end without an event.
    is_holding: bool,
}

impl Watched {
    fn start(view: &AccessView, basis: Basis) -> Result<Self, Unwatchable> {
        if basis.files.len() > MAX_RULE_FILES {
            return Err("there are too many rule files".to_owned());
        }
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let mut watched = Self {
            basis,
            inotify: inotify.map_err(|error| error.to_string())?,
            roots: Vec::new(),
            watches: HashMap::new(),
            numbers: HashMap::new(),
            folders: BTreeMap::new(),
            tracked: Tracked::default(),
            is_holding: false,
        };
        for (number, root) in view.roots().as_slice().iter().enumerate() {
            let path = root.canonical.as_path();
            check_reliable(path, 0)?;
            let id = file_id(path).ok_or("the root is gone")?;
            let mounts = Mounts::below(path);
            watched.roots.push((path.to_owned(), id, mounts));
            watched.read(view, number, RelPath::default())?;
            check_reliable(path, watched.watches.len())?;
        }
        Ok(watched)
    }

    /// Reads the folders again that have changed.
    fn update(&mut self, view: &AccessView) -> Result<(), Outdated> {
        for (path, id, mounts) in &mut self.roots {
            if file_id(path) != Some(*id) || mounts.have_changed() {
                return Err(Outdated);
            }
        }
        let mut events = Vec::new();
        let drained = drain(&self.inotify, |watch, what, name| {
            events.push((watch, what, name.map(OsStr::to_owned)));
            true
        });
        drained.map_err(|_| Outdated)?;
        let mut changed = HashSet::new();
        for (watch, what, name) in events {
            changed.extend(self.changed_by(view, watch, what, name.as_deref())?);
        }
        for (number, rel) in changed {
            self.read(view, number, rel).map_err(|_| Outdated)?;
        }
        Ok(())
    }

    /// Returns the folder to read again after an event.
    fn changed_by(
        &mut self,
        view: &AccessView,
        watch: i32,
        what: ReadFlags,
        name: Option<&OsStr>,
    ) -> Result<Option<(usize, RelPath)>, Outdated> {
        if what.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
            return Err(Outdated);
        }
        // Events of a removed watch may still be queued.
        let Some((number, folder)) = self.watches.get(&watch).cloned() else {
            return Ok(None);
        };
        let Some(name) = name else {
            let gone = ReadFlags::IGNORED | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
            if !what.intersects(gone) {
                return Ok(Some((number, folder)));
            }
            if folder.is_root() {
                return Err(Outdated);
            }
            self.forget(number, &folder);
            return Ok(None);
        };
        let entries =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        let path = folder.child(name);
        if name == RULE_FILE || name == ".git" && what.intersects(entries) {
            return Err(Outdated);
        }
        if what.intersects(entries | ReadFlags::ISDIR) {
            // The watched folder of this name has moved, is gone, or can be read now.
            self.forget(number, &path);
            return Ok(Some((number, folder)));
        }
        // A new content decides about some names only.
        let decides = || view.check_entry(number, &path, false).is_some();
        Ok(decides().then_some((number, folder)))
    }

    /// Watches and reads a folder, and those in it that are not known.
    fn read(&mut self, view: &AccessView, number: usize, rel: RelPath) -> Result<(), Unwatchable> {
        let (root, (device, _), _) = &self.roots[number];
        let (root, device) = (root.clone(), *device);
        let mut left = vec![rel];
        while let Some(rel) = left.pop() {
            let path = root.join(rel.as_path());
            match inotify::add_watch(&self.inotify, &path, WATCHED_EVENTS) {
                Ok(watch) => {
                    self.numbers.insert(path.clone(), watch);
                    let known = self.watches.insert(watch, (number, rel.clone()));
                    // The same folder under another name, or in two roots.
                    if known.is_some_and(|known| known != (number, rel.clone())) {
                        return Err(format!("{} has two paths", path.display()));
                    }
                }
                // It cannot be read. Its folder reports a change of its permissions.
                Err(Errno::ACCESS) if !rel.is_root() => {}
                // It is gone or was replaced, which is reported by an event.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(format!("cannot watch {}: {error}", path.display())),
            }
            if file_id(&path).is_some_and(|(other, _)| other != device) {
                return Err("another file system is mounted in the root".to_owned());
            }
            let entries = DeniedEntries::read(view, number, &rel).map_err(|why| why.to_string())?;
            if entries.is_repository() && is_linked_worktree(&path) {
                return Err(format!("{} is a linked worktree", path.display()));
            }
            let before = self.folders.get(&path);
            let gone: Vec<RelPath> = before
                .into_iter()
                .flat_map(|before| before.folders(&rel))
                .filter(|folder| !entries.folders(&rel).any(|it| it == *folder))
                .collect();
            for folder in gone {
                self.forget(number, &folder);
            }
            let is_new =
                |folder: &RelPath| !self.folders.contains_key(&root.join(folder.as_path()));
            left.extend(entries.folders(&rel).filter(is_new));
            self.folders.insert(path, entries);
        }
        Ok(())
    }

    /// Forgets a folder and everything below it.
    fn forget(&mut self, number: usize, rel: &RelPath) {
        let path = self.roots[number].0.join(rel.as_path());
        let is_below = |it: &&PathBuf| it.starts_with(&path);
        let all = self.folders.range(path.clone()..).map(|(it, _)| it);
        let below: Vec<PathBuf> = all.take_while(is_below).cloned().collect();
        for folder in below {
            self.folders.remove(&folder);
            if let Some(watch) = self.numbers.remove(&folder) {
                self.watches.remove(&watch);
                // The kernel may have removed it already.
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
        }
    }
}

/// Returns whether a repository shares the rules of another work tree.
fn is_linked_worktree(folder: &Path) -> bool {
    let link = fs::read(folder.join(".git")).unwrap_or_default();
    let target = link.strip_prefix(b"gitdir:").map(<[u8]>::trim_ascii);
    target.is_some_and(|target| {
        let target = folder.join(OsStr::from_bytes(target));
        target.join("commondir").exists()
    })
}

#[cfg(test)]
mod tests;
