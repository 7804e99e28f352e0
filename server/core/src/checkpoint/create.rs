//! Taking a checkpoint.
//!
//! The work tree is looked at, and what was read on the way is in a pack
//! already. Then the tree is compared with that of the newest checkpoint: what
//! differs is counted, and what of it is stored nowhere is read once more.

mod missing_objects;
#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use rayon::prelude::*;

use super::{
    Checkpoint, CheckpointMetadata, Checkpoints, Counts, Filter, Job, Progress, Purpose, Request,
    Skipped,
    create::missing_objects::{BaseTree, MissingObjects, find_missing},
    refused_roots,
    store::{
        lock::{self, StoreLock},
        object::{Kind, Mode, Oid},
        pack_reader::PackSet,
        pack_writer::PackWriter,
        repository::Repository,
    },
    worktree::{
        capture_filter::CaptureFilter,
        dirty_set::{ChangeSource, Changes},
        read_file,
        scan::{self, BlobSink, Scan, ScanOptions},
        scan_dir::Dir,
    },
};
use crate::{error::Error, path::RelPath};

/// Skipped paths that are kept with a checkpoint; the rest are counted. Few in tests.
pub(super) const MAX_SKIPPED: usize = if cfg!(test) { 20 } else { 10_000 };
/// Of a checkpoint so many small objects are stored again rather than looked for
/// in every pack: where little changed, looking would be most of the work. Idle
/// folding takes out what is stored twice.
const MAX_UNCHECKED_OBJECTS: usize = 128;
/// What is larger is always looked for, in bytes.
const SMALL_OBJECT_BYTES: usize = 64 * 1024;
/// How often what changes while it is stored is looked at again.
const MAX_ATTEMPTS: usize = 5;

impl Checkpoints {
    /// Takes a checkpoint. With `changes` that are complete it costs what changed.
    ///
    /// # Errors
    /// `unsupported` for a folder no checkpoint is taken of; `accessDenied` while
    /// the access rules can't be used; `tooLarge` until confirmed; `busy`; `cancelled`; `storage`. Nothing is kept then.
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

    /// As [`Self::create`], by who holds the lock; always looks at everything,
    /// and gives what it saw, and what `during_write` made of that while the
    /// checkpoint went to the disk. Can be cancelled afterwards too.
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

    /// `is_final` says that this is all there is to do: it can't be cancelled any
    /// more once it is being stored.
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
            let generation = repository.generation()?;
            Ok((repository, generation, self.list(&Filter::default())?))
        };
        let opened: Result<_, Error> = if cache.loaded {
            opened()
        } else {
            // Both read a lot, and neither needs the other.
            rayon::join(opened, || self.load_stat_cache(cache, &filter)).0
        };
        let (repository, generation, checkpoints) = opened?;
        // What others made is neither what ours follows nor what it differs from.
        let newest = checkpoints
            .iter()
            .find(|checkpoint| !checkpoint.metadata.fetched);

        let pack = PackWriter::new(&repository)?;
        let sink = ObjectSink {
            pack: match request.purpose {
                Purpose::Undo { .. } => pack.store_uncompressed(),
                _ => pack,
            },
            repository: &repository,
            packed: OnceLock::new(),
            is_empty: checkpoints.is_empty(),
            unchecked: AtomicUsize::new(0),
        };
        let limits = (newest.is_none() && !request.confirm_large)
            .then_some((job.settings.max_files, job.settings.max_total_size));
        let updated = match (&cache.scan, changes) {
            (Some(last), Some(Changes::Known(paths))) if limits.is_none() => {
                scan::update(job, &filter, last, paths, Some(&sink))?
            }
            _ => None,
        };
        let mut scan = match updated {
            Some(scan) => scan,
            None => {
                let look = ScanOptions {
                    last: cache.scan.as_ref(),
                    sink: Some(&sink),
                    limits,
                };
                scan::scan(job, &filter, look)?
            }
        };
        cache.scan = Some(scan.clone());

        let kept = cache.stored.clone().filter(|(tree, when)| {
            *when == generation && newest.is_some_and(|newest| newest.tree == tree.oid)
        });
        let base = match (&kept, newest) {
            (Some((tree, _)), _) => BaseTree::InMemory(tree),
            (None, Some(newest)) => BaseTree::Stored(newest.tree),
            (None, None) => BaseTree::Empty,
        };
        let seen = scan.clone();
        let stored = || {
            let counts = self.store_missing(job, &filter, &sink, &mut scan, base);
            cache.scan = Some(scan.clone());
            let counts = counts?;
            let (created, sequence) = time_after(newest.map(|newest| &newest.metadata));
            let metadata = CheckpointMetadata {
                created,
                sequence,
                task: request.task.as_ref().map(|task| task.as_str().to_owned()),
                label: request.label.clone(),
                purpose: request.purpose.clone(),
                messages: request.messages,
                group: request.group.clone(),
                group_roots: request.group_roots.clone(),
                rewind: request.rewind.clone(),
                counts,
                files: scan.files,
                bytes: scan.bytes,
                skipped: truncate_skipped(&scan.skipped),
                rules: (*scan.rules).clone(),
                restricted: (*scan.restricted).clone(),
                duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                ..CheckpointMetadata::default()
            };
            if is_final {
                job.cancel.commit()?;
            } else {
                job.cancel.check()?;
            }
            let ObjectSink { pack, .. } = sink;
            let id = repository.write_checkpoint(pack, scan.tree.oid, &metadata)?;
            Ok((id, metadata))
        };
        let (stored, made) = rayon::join(stored, || during_write(&seen));
        let (id, metadata): (Oid, CheckpointMetadata) = stored?;
        // What changed while it was stored was looked at again.
        let made = match Arc::ptr_eq(&scan.tree, &seen.tree) {
            true => made,
            false => during_write(&scan),
        };
        if let Some(whole) = &mut *self.verified() {
            whole.note_added(id);
        }
        cache.stored = Some((scan.tree.clone(), generation));
        let checkpoint = Arc::new(Checkpoint {
            id,
            tree: scan.tree.oid,
            metadata,
        });
        self.metadata_cache.insert(&checkpoint);
        Ok((checkpoint, scan, made))
    }

    /// Sees to it that everything the tree names is in the store or in the pack,
    /// and counts what differs from the checkpoint before.
    fn store_missing(
        &self,
        job: &Job<'_>,
        filter: &CaptureFilter<'_>,
        sink: &ObjectSink<'_>,
        scan: &mut Scan,
        base: BaseTree<'_>,
    ) -> Result<Counts, Error> {
        let has = |oid, is_folder| sink.has(oid, is_folder);
        for _ in 0..MAX_ATTEMPTS {
            let (counts, missing) =
                find_missing(&scan.tree, base, sink.repository, job.cancel, has)?;
            let changed = self.store_files(job, sink, &missing)?;
            if changed.is_empty() {
                let folders = missing.folders.par_iter().with_min_len(16);
                folders.try_for_each(|folder| {
                    sink.pack.put(Kind::Tree, folder.oid, &folder.encode())
                })?;
                return Ok(counts);
            }
            // What is read differs from what was seen: seen again, with its content.
            *scan = match scan::update(job, filter, scan, &changed, Some(sink))? {
                Some(scan) => scan,
                None => {
                    let look = ScanOptions {
                        last: Some(scan),
                        sink: Some(sink),
                        limits: None,
                    };
                    scan::scan(job, filter, look)?
                }
            };
        }
        Err(Error::new(
            sightline_protocol::error::ErrorKind::Conflict,
            format!(
                "the files in {} keep changing while they are stored; try again when what writes them is done",
                self.root.path.display()
            ),
        ))
    }

    /// Stores files whose content was seen before and not kept. Gives those that
    /// are not what was seen.
    fn store_files(
        &self,
        job: &Job<'_>,
        sink: &ObjectSink<'_>,
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

/// The content of a file or link below `root`, reached without following links.
fn reread(root: &Path, path: &RelPath, mode: Mode, limit: u64) -> Option<(Oid, Vec<u8>)> {
    let mut dir = Dir::open(root).ok()?;
    for name in path.parent()?.components() {
        dir = dir.enter(name.as_encoded_bytes()).ok()?;
    }
    let name = path.name()?.as_encoded_bytes();
    let mut bytes = Vec::new();
    let found = match mode {
        Mode::Link => read_file::link(&dir, name, 0, &mut bytes),
        _ => read_file::file(&dir, name, limit, 0, None, &mut bytes),
    };
    match found {
        read_file::ReadOutcome::File(file) => Some((file.oid, bytes)),
        _ => None,
    }
}

/// Where objects go, and whether they are there.
struct ObjectSink<'a> {
    pack: PackWriter<'a>,
    repository: &'a Repository,
    /// The packs there were when an object was first looked for: enough for who holds
    /// the lock, and may store once more what only git put elsewhere.
    packed: OnceLock<Arc<PackSet>>,
    /// There is no checkpoint: asking for objects is idle.
    is_empty: bool,
    /// Objects that were not looked for.
    unchecked: AtomicUsize,
}

impl ObjectSink<'_> {
    /// `is_small` says that it may as well be stored again.
    fn has(&self, oid: Oid, is_small: bool) -> bool {
        if self.pack.has(oid) {
            return true;
        }
        if self.is_empty
            || is_small && self.unchecked.fetch_add(1, Ordering::Relaxed) < MAX_UNCHECKED_OBJECTS
        {
            return false;
        }
        self.packed
            .get_or_init(|| self.repository.current_packs())
            .has(oid)
    }
}

impl BlobSink for ObjectSink<'_> {
    fn blob(&self, oid: Oid, bytes: &[u8]) -> Result<(), Error> {
        if self.has(oid, bytes.len() <= SMALL_OBJECT_BYTES) {
            return Ok(());
        }
        self.pack.put(Kind::Blob, oid, bytes)
    }
}

/// What was taken from a source; given back unless it was used.
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

/// A time that is later than that of the newest checkpoint, whatever the clock
/// says, in milliseconds since the epoch; and the order within it.
fn time_after(newest: Option<&CheckpointMetadata>) -> (u64, u64) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(1, |since| u64::try_from(since.as_millis()).unwrap_or(1));
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
            reason: format!("{more} more are skipped"),
        });
    }
    kept
}
