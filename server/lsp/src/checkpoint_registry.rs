//! The checkpoint stores of the open roots, kept open between requests.
//!
//! Each root keeps its store's caches and a [`DirtyTracker`], so that a checkpoint scans
//! only what changed.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sightline_checkpoint::{Checkpoints, Job, Oid, restore::Recovered};
use sightline_protocol::error::ErrorKind;
use sightline_workspace::{
    access::AccessView,
    cancel::Cancel,
    error::Error,
    path::{AbsPath, Location, Root, Roots, uri_to_path},
};
use tower_lsp::lsp_types::MessageType;

use crate::{
    dirty_tracker::DirtyTracker,
    editor_features::diagnostics,
    mutex::lock,
    scheduler::{Keys, root_keys},
    session::Snapshot,
    shared_state::Server,
};

/// Delay between the last change of a store and its maintenance.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of checkpoint ids whose root is cached.
const MAX_KNOWN_IDS: usize = 10_000;

/// The checkpoint store of one root.
pub struct RootCheckpoints {
    /// The store.
    pub store: Checkpoints,
    /// Paths changed in the work tree since the last scan.
    pub changes: DirtyTracker,
    /// Maintenance is scheduled.
    maintenance_pending: AtomicBool,
}

/// The checkpoint stores of the open roots.
#[derive(Default)]
pub struct CheckpointRegistry {
    /// By canonical root path; the first value is the data directory.
    roots: Mutex<HashMap<PathBuf, (PathBuf, Arc<RootCheckpoints>)>>,
    /// The root of each known checkpoint id, so that a request can be queued without
    /// reading the disk.
    ids: Mutex<HashMap<Oid, PathBuf>>,
}

impl CheckpointRegistry {
    /// Returns the store of a root, opening it if necessary.
    ///
    /// # Errors
    /// Kind `storage` when the data directory cannot be used.
    pub fn open(
        &self,
        server: &Server,
        snapshot: &Snapshot,
        root: &Root,
    ) -> Result<Arc<RootCheckpoints>, Error> {
        let storage = server.storage(snapshot)?;
        let key = root.canonical.as_path();
        let mut roots = lock(&self.roots);
        if let Some((dir, known)) = roots.get(key)
            && dir == storage.dir()
        {
            return Ok(known.clone());
        }
        let made = Arc::new(RootCheckpoints {
            store: Checkpoints::new(&storage, root),
            changes: DirtyTracker::new(root.canonical.clone()),
            maintenance_pending: AtomicBool::new(false),
        });
        let dir = storage.dir().to_owned();
        roots.insert(key.to_owned(), (dir, made.clone()));
        Ok(made)
    }

    /// Closes the stores of roots that are no longer open.
    pub fn retain(&self, roots: &Roots) {
        let is_open = |path: &PathBuf| {
            let mut roots = roots.as_slice().iter();
            roots.any(|root| root.canonical.as_path() == path)
        };
        lock(&self.roots).retain(|path, _| is_open(path));
    }

    /// Caches the root of a checkpoint.
    pub fn remember(&self, id: Oid, root: &Root) {
        let mut ids = lock(&self.ids);
        if ids.len() >= MAX_KNOWN_IDS {
            ids.clear();
        }
        ids.insert(id, root.canonical.as_path().to_owned());
    }

    /// Marks a file as changed, as reported by the editor.
    pub fn mark_changed(&self, path: &AbsPath) {
        let roots: Vec<Arc<RootCheckpoints>> = {
            let roots = lock(&self.roots);
            roots
                .values()
                .map(|(_, checkpoints)| checkpoints.clone())
                .collect()
        };
        for checkpoints in roots {
            let root = checkpoints.store.root();
            let below = path.relative_to(&root.path);
            if let Some(rel) = below.or_else(|| path.relative_to(&root.canonical)) {
                checkpoints.changes.mark(rel);
            }
        }
    }

    /// Returns the canonical root of a known checkpoint, without reading the disk.
    pub fn known_root(&self, id: &Oid) -> Option<PathBuf> {
        lock(&self.ids).get(id).cloned()
    }

    /// Runs maintenance on every open store, synchronously.
    pub fn maintain(&self) {
        let all: Vec<Arc<RootCheckpoints>> = {
            let roots = lock(&self.roots);
            roots
                .values()
                .map(|(_, checkpoints)| checkpoints.clone())
                .collect()
        };
        all.iter()
            .for_each(|checkpoints| checkpoints.maintain(&Cancel::default()));
    }

    /// Completes or rolls back interrupted restores in the open roots, before any other
    /// request changes them.
    pub fn recover(&self, server: &Arc<Server>) {
        let snapshot = server.snapshot();
        for root in all_roots(&snapshot) {
            let (worker, snapshot) = (server.clone(), snapshot.clone());
            let keys = keys_of_roots([&root]);
            server.jobs().run(keys, "recover checkpoints", move || {
                try_recover(&worker, &snapshot, &root);
            });
        }
    }
}

/// Returns the keys of jobs that change these roots.
pub fn keys_of_roots<'a>(roots: impl IntoIterator<Item = &'a Root>) -> Keys {
    let roots = roots.into_iter();
    root_keys(roots.map(|root| root.canonical.as_path().to_owned()))
}

/// Returns the open roots.
pub fn all_roots(snapshot: &Snapshot) -> Vec<Root> {
    snapshot.access.roots().as_slice().to_vec()
}

/// Resolves a root given by path, URI or workspace folder name.
///
/// # Errors
/// `invalidParams`, listing the open folders.
pub fn named_root(roots: &Roots, written: &str) -> Result<usize, Error> {
    let all = roots.as_slice();
    let uri = uri_to_path(written).ok().flatten();
    let path = uri.or_else(|| AbsPath::new(written.as_ref()));
    let by_path = path.and_then(|path| {
        all.iter()
            .position(|root| root.path == path || root.canonical == path)
    });
    by_path
        .or_else(|| all.iter().position(|root| root.name == written))
        .ok_or_else(|| {
            let known: Vec<String> = all.iter().map(|root| root.path.display()).collect();
            let shown: String = written.chars().take(200).collect();
            Error::invalid(format!(
                "no workspace folder {shown:?}; open folders: {}",
                known.join(", ")
            ))
        })
}

impl RootCheckpoints {
    /// Records that the work tree was scanned. Starts watching it, unless this is a
    /// one-shot process.
    pub fn scanned(self: &Arc<Self>, server: &Server) {
        if !server.client().is_closed() {
            self.changes.scanned(self);
        }
    }

    /// Schedules maintenance for when the root is idle, and reports a store that was
    /// rebuilt because of damage.
    pub fn schedule_maintenance(self: &Arc<Self>, server: &Arc<Server>) {
        if let Some(rebuilt) = self.store.take_rebuilt() {
            let lost = match rebuilt.lost.len() {
                0 => "no checkpoint was lost".to_owned(),
                1 => "1 checkpoint was lost".to_owned(),
                count => format!("{count} checkpoints were lost"),
            };
            let message = format!(
                "sightline: the checkpoint store of {} was damaged ({}) and has been rebuilt; {lost}; the damaged store was moved to {}",
                self.store.root().name,
                rebuilt.reason,
                rebuilt.kept.display()
            );
            tracing::warn!(message);
            server.show_message(MessageType::WARNING, &message);
        }
        diagnostics::schedule(server);
        if self.maintenance_pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let checkpoints = Arc::downgrade(self);
        server.run_after(IDLE_AFTER, move |server| {
            let Some(checkpoints) = checkpoints.upgrade() else {
                return;
            };
            checkpoints
                .maintenance_pending
                .store(false, Ordering::Release);
            let root = checkpoints.store.root().canonical.as_path().to_owned();
            server
                .jobs()
                .run_idle(root, "checkpoint maintenance", move |cancel| {
                    checkpoints.maintain(cancel)
                });
        });
    }

    /// Repacks small packs and saves caches.
    pub fn maintain(&self, cancel: &Cancel) {
        match self.store.tidy(cancel) {
            Err(error) if !cancel.is_cancelled() => {
                tracing::warn!(%error, "cannot maintain the checkpoint store");
            }
            _ => {}
        }
    }
}

/// Completes or rolls back an interrupted restore of this root and reports the result. A
/// failure is reported too, and does not fail the request: only work on the work tree
/// depends on it.
pub fn try_recover(server: &Server, snapshot: &Snapshot, root: &Root) {
    if let Err(error) = recover(server, snapshot, root) {
        if error.kind == ErrorKind::Busy {
            // Another process is probably running the restore.
            return tracing::info!(%error, "skipped the check for interrupted restores");
        }
        let name = &root.name;
        let message = format!(
            "sightline: cannot complete an interrupted restore of {name}: {}",
            error.message
        );
        tracing::warn!(message);
        server.show_message(MessageType::WARNING, &message);
    }
}

fn recover(server: &Server, snapshot: &Snapshot, root: &Root) -> Result<(), Error> {
    let checkpoints = server.checkpoints().open(server, snapshot, root)?;
    if !checkpoints.store.has_journal() {
        return Ok(());
    }
    let view = server.view(snapshot);
    let mut roots = view.roots().as_slice().iter();
    let Some(index) = roots.position(|other| other.canonical == root.canonical) else {
        return Ok(());
    };
    let recovered = checkpoints.store.recover(&Job {
        view: &view,
        root: index,
        settings: &snapshot.settings.checkpoints,
        cancel: &Cancel::default(),
        progress: &|_| (),
    })?;
    if let Some(recovered) = recovered {
        report_recovered(server, &view, root, &recovered);
    }
    Ok(())
}

/// Reports that an interrupted restore was completed or rolled back.
pub fn report_recovered(server: &Server, view: &AccessView, root: &Root, recovered: &Recovered) {
    let mut roots = view.roots().as_slice().iter();
    let Some(index) = roots.position(|other| other.canonical == root.canonical) else {
        return;
    };
    let how = if recovered.completed {
        "completed"
    } else {
        "rolled back"
    };
    let mut message = format!(
        "sightline: an interrupted restore of {} was {how}; checkpoint {} has the previous state",
        root.name, recovered.undo
    );
    let mut kind = MessageType::INFO;
    if !recovered.problems.is_empty() {
        kind = MessageType::WARNING;
        let problems = recovered.problems.iter().take(5).map(|problem| {
            let place = Location::Inside {
                root: index,
                rel: problem.path.clone(),
            };
            let (path, _) = view.roots().result_path(&place);
            format!("{path}: {}", problem.reason)
        });
        let problems: Vec<String> = problems.collect();
        message.push_str(&format!("; check these files: {}", problems.join("; ")));
    }
    // The command line shows the log, but no messages.
    tracing::warn!(message);
    server.show_message(kind, &message);
}
