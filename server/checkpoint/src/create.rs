//! Creates checkpoints.
//!
//! The scan adds changed files to the pack as it reads them. Then the tree is compared with the
//! tree of the newest checkpoint: differences are counted, and files whose content is not stored
//! yet are read again.

mod missing_objects;
mod refused_roots;
#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use rayon::prelude::*;
use sightline_base::{clock::now_millis, fs::dir::DirWalker, path::RelPath, thread_pool};

use super::{
    checkpoints::Checkpoints,
    create::missing_objects::{MissingObjects, find_missing},
    job::{Job, Progress},
    metadata::{
        Checkpoint, CheckpointMetadata, Counts, CreateIf, Request, Skipped, commit_of,
        head::head_of, message,
    },
    store::{
        lock::{self, StoreLock},
        object::{Kind, Mode, Oid},
        odb::Odb,
        pack::writer::PackWriter,
    },
    worktree::{
        capture_filter::CaptureFilter,
        dirty_set::{ChangeSource, Changes},
        read_file,
        scan::{self, Scan, ScanOptions},
        walk::state::BlobSink,
    },
};
use crate::error::Error;

/// Maximum number of skipped paths stored with a checkpoint; the rest are counted. Small in tests.
pub(super) const MAX_SKIPPED: usize = if cfg!(test) { 20 } else { 10_000 };
/// Number of small objects that are written without checking whether they are stored. After a small
/// change, the check would dominate. Combining packs removes duplicates.
const MAX_UNCHECKED_OBJECTS: usize = 128;
/// Size above which an object is always checked, in bytes.
const SMALL_OBJECT_BYTES: usize = 64 * 1024;
/// How often files that change while they are stored are scanned again.
const MAX_ATTEMPTS: usize = 5;

impl Checkpoints {
    /// Creates a checkpoint. With complete `changes`, the cost depends on the number of changes.
    ///
    /// # Errors
    /// `unsupported` for a refused folder; `accessDenied` while the access rules cannot be used;
    /// `tooLarge` until confirmed; `busy`; `cancelled`; `storage`. No checkpoint is created then.
    pub fn create(
        &self,
        job: &Job<'_>,
        request: &Request,
        changes: Option<&dyn ChangeSource>,
    ) -> Result<Arc<Checkpoint>, Error> {
        refused_roots::check(self.work_tree(), self.storage.dir())?;
        job.require_rules()?;
        let lock = lock::acquire(&self.storage, &self.state_dir(), job.cancel)?;
        self.complete_interrupted(&lock, job)?;
        let taken = changes.map(|source| PendingChanges {
            source,
            changes: Some(source.take()),
        });
        let known = taken.as_ref().and_then(|taken| taken.changes.as_ref());
        let (checkpoint, _, ()) = self.capture(&lock, job, request, (known, true), |_| ())?;
        if let Some(mut taken) = taken {
            taken.changes = None;
        }
        Ok(checkpoint)
    }

    /// Like [`Self::create`], for a caller that holds the lock. Always scans the whole work tree,
    /// and returns the scan. Runs `during_write` on the scan while the checkpoint is written, and
    /// returns its result. The operation stays cancellable afterwards.
    pub(super) fn create_locked<T: Send>(
        &self,
        lock: &StoreLock,
        job: &Job<'_>,
        request: &Request,
        during_write: impl Fn(&Scan) -> T + Sync,
    ) -> Result<(Arc<Checkpoint>, Scan, T), Error> {
        refused_roots::check(self.work_tree(), self.storage.dir())?;
        job.require_rules()?;
        self.capture(lock, job, request, (None, false), during_write)
    }

    /// `is_final` makes the operation uncancellable once the checkpoint is written.
    fn capture<T: Send>(
        &self,
        _lock: &StoreLock,
        job: &Job<'_>,
        request: &Request,
        (changes, is_final): (Option<&Changes>, bool),
        during_write: impl Fn(&Scan) -> T + Sync,
    ) -> Result<(Arc<Checkpoint>, Scan, T), Error> {
        let began = Instant::now();
        job.cancel.check()?;
        let filter = self.capture_filter(job);
        let mut cache = self.lock_stat_cache(job.cancel)?;
        let cache = &mut *cache;
        let opened = || {
            let repository = self.open_or_create()?;
            let newest = self.newest(&repository)?;
            Ok((repository, newest))
        };
        let opened: Result<_, Error> = if cache.loaded {
            opened()
        } else {
            // Both read files and are independent.
            thread_pool::start();
            rayon::join(opened, || cache.load(&self.state_dir())).0
        };
        let (repository, (newest, is_empty)) = opened?;
        let newest = newest.as_ref();

        repository.odb().refresh();
        let sink = ObjectSink {
            pack: PackWriter::new(repository.dir())?,
            stored: repository.odb(),
            is_empty,
            unchecked: AtomicUsize::new(0),
        };
        let limits = (newest.is_none() && !request.confirm_large)
            .then_some((job.settings.max_files, job.settings.max_total_size));
        let look = ScanOptions {
            last: cache.scan.as_ref(),
            changed: match changes {
                Some(Changes::Known(paths)) => Some(paths),
                _ => None,
            },
            sink: Some(&sink),
            limits,
        };
        let mut scan = scan::scan(job, &filter, look)?;
        cache.scan = Some(scan.clone());

        let is_needed = |newest: &Checkpoint| match request.create_if {
            CreateIf::Always => true,
            CreateIf::Changed => newest.tree != scan.tree.oid,
            CreateIf::First => false,
        };
        if let Some(newest) = newest.filter(|newest| !is_needed(newest)) {
            return Ok((Arc::clone(newest), scan.clone(), during_write(&scan)));
        }

        let base = newest.map(|newest| newest.tree);
        let seen = scan.clone();
        let stored = || {
            let counts = self.store_missing(job, &filter, &sink, &mut scan, base);
            cache.scan = Some(scan.clone());
            let counts = counts?;
            let (created, sequence) = time_after(newest.map(|newest| &newest.metadata));
            let metadata = CheckpointMetadata {
                created,
                sequence,
                head: head_of(job.view, self.work_tree()),
                counts,
                files: scan.files,
                bytes: scan.bytes,
                skipped: truncate_skipped(&scan.skipped),
                exclusions: (*scan.exclusions).clone(),
                restricted: (*scan.restricted).clone(),
                duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                ..request.metadata.clone()
            };
            if is_final {
                job.cancel.commit()?;
            } else {
                job.cancel.check()?;
            }
            let ObjectSink { pack, .. } = sink;
            let id = repository.write_checkpoint(pack, &commit_of(scan.tree.oid, &metadata))?;
            Ok::<_, Error>((id, metadata))
        };
        thread_pool::start();
        let (stored, made) = rayon::join(stored, || during_write(&seen));
        let (id, metadata): (Oid, CheckpointMetadata) = stored?;
        // Some files changed while they were stored, so the scan is newer.
        let made = if Arc::ptr_eq(&scan.tree, &seen.tree) {
            made
        } else {
            during_write(&scan)
        };
        if let Some(whole) = &mut *self.verified() {
            whole.note_added(id);
        }
        let checkpoint = Arc::new(Checkpoint {
            id,
            tree: scan.tree.oid,
            metadata,
        });
        let bytes = message(&checkpoint.metadata).len();
        self.metadata_cache.insert(&checkpoint, bytes);
        Ok((checkpoint, scan, made))
    }

    /// Adds every object of the tree that is not stored yet to the pack. Counts the differences to
    /// the previous checkpoint.
    fn store_missing(
        &self,
        job: &Job<'_>,
        filter: &CaptureFilter<'_>,
        sink: &ObjectSink,
        scan: &mut Scan,
        base: Option<Oid>,
    ) -> Result<Counts, Error> {
        let has = |oid, is_folder| sink.has(oid, is_folder);
        for _ in 0..MAX_ATTEMPTS {
            let (counts, missing) = find_missing(&scan.tree, base, &sink.stored, job.cancel, has)?;
            let changed = self.store_files(job, sink, &missing)?;
            if changed.is_empty() {
                let folders = missing.folders.par_iter().with_min_len(16);
                folders.try_for_each(|folder| {
                    sink.pack.put(Kind::Tree, folder.oid, &folder.encode())
                })?;
                return Ok(counts);
            }
            // Scan changed files again, and store their content.
            let look = ScanOptions {
                last: Some(&*scan),
                changed: Some(&changed),
                sink: Some(sink),
                limits: None,
            };
            *scan = scan::scan(job, filter, look)?;
        }
        Err(Error::conflict(format!(
            "cannot create a checkpoint: the files in {} keep changing; try again later",
            self.root.path.display()
        )))
    }

    /// Stores files whose content was scanned before but is not stored. Returns the files that have
    /// changed since.
    fn store_files(
        &self,
        job: &Job<'_>,
        sink: &ObjectSink,
        missing: &MissingObjects<'_>,
    ) -> Result<Vec<RelPath>, Error> {
        let total = Some(missing.files.len() as u64);
        let root = self.work_tree();
        let changed: Vec<Option<RelPath>> = missing
            .files
            .par_iter()
            .enumerate()
            .map(|(index, (path, mode, oid))| {
                job.cancel.check()?;
                (job.progress)(Progress {
                    stage: "storing",
                    done: index as u64,
                    total,
                });
                let limit = job.settings.max_file_size;
                match reread(root, path, *mode, limit) {
                    Some((found, bytes)) if found == *oid => {
                        sink.pack.put(Kind::Blob, found, &bytes)?;
                        Ok(None)
                    }
                    _ => Ok(Some(path.clone())),
                }
            })
            .collect::<Result<_, Error>>()?;
        Ok(changed.into_iter().flatten().collect())
    }
}

/// Reads a file or link below `root` without following links.
fn reread(root: &Path, path: &RelPath, mode: Mode, limit: u64) -> Option<(Oid, Vec<u8>)> {
    let mut walker = DirWalker::new(root).ok()?;
    let dir = walker.open_dir(&path.parent()?).ok()?;
    let name = path.name()?;
    let mut bytes = Vec::new();
    let found = match mode {
        Mode::Link => read_file::link(dir, name, 0, &mut bytes),
        _ => read_file::file(dir, name, limit, 0, None, &mut bytes),
    };
    match found {
        read_file::ReadOutcome::File(file) => Some((file.oid, bytes)),
        _ => None,
    }
}

/// Adds objects to the pack unless they are stored already.
struct ObjectSink {
    pack: PackWriter,
    /// The store. Its packs only grow while the lock is held; at worst an object is stored twice.
    stored: Odb,
    /// Whether the store is empty, so that lookups are unnecessary.
    is_empty: bool,
    /// Number of objects added without a lookup.
    unchecked: AtomicUsize,
}

impl ObjectSink {
    /// `is_small` allows storing the object again without a lookup.
    fn has(&self, oid: Oid, is_small: bool) -> bool {
        if self.pack.has(oid) {
            return true;
        }
        if self.is_empty
            || is_small && self.unchecked.fetch_add(1, Ordering::Relaxed) < MAX_UNCHECKED_OBJECTS
        {
            return false;
        }
        self.stored.is_packed(oid)
    }
}

impl BlobSink for ObjectSink {
    fn blob(&self, oid: Oid, bytes: &[u8]) -> Result<(), Error> {
        if self.has(oid, bytes.len() <= SMALL_OBJECT_BYTES) {
            return Ok(());
        }
        self.pack.put(Kind::Blob, oid, bytes)
    }
}

/// Changes taken from a source, returned to it unless they were used.
struct PendingChanges<'a> {
    source: &'a dyn ChangeSource,
    changes: Option<Changes>,
}

impl Drop for PendingChanges<'_> {
    fn drop(&mut self) {
        if let Some(changes) = self.changes.take() {
            self.source.put_back(changes);
        }
    }
}

/// Returns a time in milliseconds since the epoch that is not before the newest checkpoint, and the
/// sequence number within it.
fn time_after(newest: Option<&CheckpointMetadata>) -> (u64, u64) {
    let now = now_millis().cast_unsigned().max(1);
    match newest {
        Some(newest) if newest.created >= now => {
            (newest.created, newest.sequence.saturating_add(1))
        }
        _ => (now, 0),
    }
}

fn truncate_skipped(skipped: &[Skipped]) -> Vec<Skipped> {
    let mut kept: Vec<Skipped> = skipped.iter().take(MAX_SKIPPED).cloned().collect();
    if let Some(more) = skipped
        .len()
        .checked_sub(MAX_SKIPPED)
        .filter(|more| *more > 0)
    {
        kept.push(Skipped {
            path: String::new(),
            encoded: false,
            reason: format!("{more} more skipped"),
        });
    }
    kept
}
