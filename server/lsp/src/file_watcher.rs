//! Detects changes of rule files, tracked files, configuration files and the files of open documents.
//!
//! For rule files and tracked files, an optimization only: every request checks the disk itself. This thread lets the
//! server notify the client sooner, and tell it which documents to read again. It watches directories, to notice files replaced by
//! rename, and also polls every `INTERVAL`, which covers network file systems, event
//! queue overflows and directories over the system's limit.
//!
//! The thread only waits. A scan is a job, so it works on a snapshot of the session.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::{Duration, SystemTime},
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::AccessKind};
use parking_lot::Mutex;

use sightline_access::{REMOVAL_DELAY, RULE_FILE};
use sightline_base::{
    fs::dir::stat,
    path::{AbsPath, Location, uri_to_path},
};
use sightline_engine::{jobs::Keys, services::Services, session::Snapshot};
use sightline_protocol::{
    editor::DidChangeFilesParams,
    method::{DidChangeFiles, Notification},
};

/// Polling interval.
const INTERVAL: Duration = Duration::from_secs(2);

/// Events within this time are handled together.
const SETTLE: Duration = Duration::from_millis(20);

/// Maximum number of watched directories; files in others are polled every [`INTERVAL`].
const MAX_DIRECTORIES: usize = 4096;

/// Starts the watcher thread, once.
pub fn start(services: &Arc<Services>) {
    let Some((wake, events)) = services.tracked_files.connect_watcher() else {
        return;
    };
    let services = Arc::downgrade(services);
    let watch = move || {
        let mut scanner = Scanner::new(wake);
        while let Some(services) = services.upgrade() {
            let (reply, scanned) = mpsc::channel();
            let worker = services.clone();
            services
                .jobs
                .run(Keys::new(), "file watcher", move |snapshot| {
                    let is_holding = scanner.scan(&worker, &snapshot);
                    let _ = reply.send((scanner, is_holding));
                });
            drop(services);
            // The session has ended, or the scan failed.
            let Ok((returned, is_holding)) = scanned.recv() else {
                return;
            };
            scanner = returned;
            match events.recv_timeout(if is_holding { REMOVAL_DELAY } else { INTERVAL }) {
                Ok(()) => {
                    std::thread::sleep(SETTLE);
                    events.try_iter().for_each(drop);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().spawn(watch) {
        tracing::warn!(%error, "cannot start the file watcher");
    }
}

type Stamp = Option<(SystemTime, u64)>;

/// Compares the disk with the previous scan.
struct Scanner {
    directories: Directories,
    stamps: BTreeMap<PathBuf, Stamp>,
    is_first: bool,
    /// Start of the previous scan.
    previous: SystemTime,
}

impl Scanner {
    fn new(wake: mpsc::Sender<()>) -> Self {
        Self {
            directories: Directories::new(wake),
            stamps: BTreeMap::new(),
            is_first: true,
            previous: SystemTime::now(),
        }
    }

    /// Notifies the client of changes. Returns whether rules from a previous version of a
    /// file are still held.
    fn scan(&mut self, services: &Arc<Services>, snapshot: &Snapshot) -> bool {
        // Watch before reading: a change in between is then seen twice instead of missed.
        let documents = snapshot.editor.documents().into_iter();
        let documents: Vec<(&str, AbsPath)> = documents
            .filter_map(|(uri, _)| Some((uri, uri_to_path(uri).ok().flatten()?)))
            .collect();
        let mut rules = snapshot.access.get().watched_files();
        rules.extend(
            documents
                .iter()
                .flat_map(|(_, path)| rule_files_above(snapshot, path)),
        );
        let mut tracked = services.tracked_files.paths();
        let opened: BTreeMap<&Path, &str> = documents
            .iter()
            .map(|(uri, path)| (path.as_path(), *uri))
            .collect();
        tracked.extend(opened.keys().map(|path| path.to_path_buf()));
        let config_files = snapshot.config_files.read_again(snapshot.roots());
        let configs: Vec<PathBuf> = config_files.all().map(|file| file.path.clone()).collect();
        self.directories
            .watch(rules.iter().chain(&configs).chain(&tracked));
        if config_files != *snapshot.config_files {
            services.jobs.set_config_files(config_files);
        }

        let (view, mut changed) = services.refresh_view(snapshot);
        // Finds the rules of the folders above the documents.
        for (_, path) in &documents {
            let _ = view.check(&view.roots().place(path.clone()));
        }
        changed |= snapshot.access.get().refresh_nested();
        let mut files = DidChangeFilesParams::default();
        let previous = std::mem::replace(&mut self.previous, SystemTime::now());
        for path in tracked {
            let document = opened.get(&*path);
            // Editors follow links.
            let metadata = match document {
                Some(_) => std::fs::metadata(&path),
                None => std::fs::symlink_metadata(&path),
            };
            let stamp = metadata
                .ok()
                .and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
            let before = self.stamps.insert(path, stamp);
            if before.is_none() && snapshot.settings.diagnostics.changed_files {
                // Changes from before the first scan are found by the diagnostics themselves.
                services.jobs.refresh_diagnostics();
            }
            // Possibly changed after its editor read it. Editors compare a file with its buffer.
            if before.is_none() && stamp.is_some_and(|(modified, _)| modified > previous) {
                files.uris.extend(document.map(|uri| (*uri).to_owned()));
            }
            if before.is_some_and(|before| before != stamp) && !self.is_first {
                snapshot.revisions.lock().context_changed();
                services.jobs.refresh_diagnostics();
                changed = true;
                files.uris.extend(document.map(|uri| (*uri).to_owned()));
            }
        }
        self.is_first = false;
        if snapshot.settings.notifications && !files.uris.is_empty() {
            services.client.notify(DidChangeFiles::NAME, &files);
        }
        if changed {
            services.context_changed(snapshot);
        }
        snapshot.access.get().is_holding()
    }
}

/// Returns the rule files that may be in the folders between a root and a document.
fn rule_files_above(snapshot: &Snapshot, document: &AbsPath) -> Vec<PathBuf> {
    let roots = snapshot.access.roots();
    let Location::Inside { root, rel } = roots.place(document.clone()) else {
        return Vec::new();
    };
    let Some(root) = roots.get(root) else {
        return Vec::new();
    };
    let folders = rel.as_path().ancestors().skip(1);
    let folders = folders.filter(|folder| !folder.as_os_str().is_empty());
    folders
        .map(|folder| root.path.as_path().join(folder).join(RULE_FILE))
        .collect()
}

/// The watched directories.
struct Directories {
    watcher: Option<RecommendedWatcher>,
    /// With an identity that distinguishes a recreated directory.
    watched: BTreeMap<PathBuf, Option<u64>>,
    names: Arc<Mutex<Names>>,
}

/// Names of the watched files and of their directories.
type Names = BTreeSet<OsString>;

/// Returns whether an event may concern a watched file. Directories above a root, such as
/// the temporary directory, receive many unrelated events.
fn may_concern_watched(event: &notify::Event, names: &Names) -> bool {
    // Reads are not changes.
    if matches!(event.kind, EventKind::Access(kind)
        if !matches!(kind, AccessKind::Close(notify::event::AccessMode::Write)))
    {
        return false;
    }
    let mut paths = event.paths.iter();
    event.paths.is_empty()
        || event.need_rescan()
        || paths.any(|path| path.file_name().is_none_or(|name| names.contains(name)))
}

impl Directories {
    fn new(wake: mpsc::Sender<()>) -> Self {
        let config = notify::Config::default().with_follow_symlinks(false);
        let names = Arc::<Mutex<Names>>::default();
        let seen_names = names.clone();
        let on_event = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !may_concern_watched(&event, &seen_names.lock())) {
                return;
            }
            let _ = wake.send(());
        };
        let watcher = RecommendedWatcher::new(on_event, config)
            .inspect_err(
                |error| tracing::warn!(%error, "cannot watch files; polling every two seconds"),
            )
            .ok();
        Self {
            watcher,
            watched: BTreeMap::new(),
            names,
        }
    }

    /// Watches the directories of `files` and unwatches all others.
    fn watch<'a>(&mut self, files: impl Iterator<Item = &'a PathBuf> + Clone) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        *self.names.lock() = files
            .clone()
            .flat_map(|file| [Some(&**file), file.parent()])
            .filter_map(|path| Some(path?.file_name()?.to_owned()))
            .collect();
        let wanted: BTreeSet<&Path> = files.filter_map(|file| file.parent()).collect();
        let wanted: BTreeMap<PathBuf, Option<u64>> = wanted
            .into_iter()
            .take(MAX_DIRECTORIES)
            .map(|directory| (directory.to_path_buf(), identity(directory)))
            .collect();
        self.watched.retain(|directory, known| {
            let stays = wanted.get(directory) == Some(known);
            if !stays {
                // A recreated directory must be watched again.
                let _ = watcher.unwatch(directory);
            }
            stays
        });
        for (directory, identity) in wanted {
            if identity.is_none() || self.watched.contains_key(&directory) {
                continue;
            }
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => drop(self.watched.insert(directory, identity)),
                Err(error) => {
                    let kind = format!("{:?}", error.kind);
                    tracing::info!(kind, "cannot watch a directory; polling it");
                }
            }
        }
    }
}

/// Returns an identity for a directory, or `None` if it does not exist.
fn identity(directory: &Path) -> Option<u64> {
    Some(stat(directory).ok()?.stamp.inode)
}
