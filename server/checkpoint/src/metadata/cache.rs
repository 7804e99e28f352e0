//! Reads and caches the metadata of checkpoints, which never changes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use rayon::prelude::*;
use sightline_base::thread_pool;

use super::{Checkpoint, CheckpointMetadata, metadata_of};
use crate::{
    error::Error,
    store::{
        annotations::FETCHED,
        object::{Commit, Kind, Oid, Unreadable},
        odb::Odb,
        repository::Repository,
    },
};

/// Maximum size of the cached metadata, in bytes.
const MAX_CACHED_BYTES: usize = 16 << 20;

/// Maximum clock difference between machines, in milliseconds.
const CLOCK_SKEW: u64 = 24 * 3600 * 1000;
/// Minimum number of commits one thread reads before rayon splits the work.
const MIN_READS_PER_THREAD: usize = 8;

/// Cache of metadata, which never changes.
#[derive(Debug, Default)]
pub(crate) struct MetadataCache(Mutex<CachedMetadata>);

#[derive(Debug, Default)]
struct CachedMetadata {
    /// Each checkpoint with the size of its metadata in bytes.
    checkpoints: HashMap<Oid, (Arc<Checkpoint>, usize)>,
    /// Total size of the cached metadata, in bytes.
    bytes: usize,
}

impl MetadataCache {
    fn lock(&self) -> MutexGuard<'_, CachedMetadata> {
        self.0.lock()
    }

    /// Drops all entries except `ids`.
    pub(crate) fn retain(&self, ids: &[Oid]) {
        let mut known = self.lock();
        if known.checkpoints.len() <= ids.len() {
            return;
        }
        let ids: HashSet<&Oid> = ids.iter().collect();
        known.checkpoints.retain(|id, _| ids.contains(id));
        known.bytes = known.checkpoints.values().map(|(_, bytes)| bytes).sum();
    }

    /// Adds a checkpoint, whose metadata has this size in bytes, if there is room.
    pub(crate) fn insert(&self, checkpoint: &Arc<Checkpoint>, bytes: usize) {
        let mut known = self.lock();
        if known.bytes + bytes <= MAX_CACHED_BYTES {
            known.bytes += bytes;
            known
                .checkpoints
                .insert(checkpoint.id, (Arc::clone(checkpoint), bytes));
        }
    }

    /// Returns the checkpoints of `ids` that are intact, in no particular order.
    ///
    /// # Errors
    /// `storage`, also if a pack that may have one cannot be opened.
    pub(crate) fn of(
        &self,
        ids: &[Oid],
        repository: &Repository,
    ) -> Result<Vec<Arc<Checkpoint>>, Error> {
        let mut checkpoints = Vec::with_capacity(ids.len());
        let mut unknown = Vec::new();
        {
            let known = self.lock();
            for id in ids {
                match known.checkpoints.get(id) {
                    Some((checkpoint, _)) => checkpoints.push(Arc::clone(checkpoint)),
                    None => unknown.push(*id),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(checkpoints);
        }
        let fetched = FETCHED.all(repository.dir())?;
        thread_pool::start();
        let read = unknown
            .par_iter()
            .with_min_len(MIN_READS_PER_THREAD)
            .map_init(
                || repository.odb(),
                |reader, id| read(reader, *id, fetched.get(id).copied()),
            );
        let read: Vec<Option<(Arc<Checkpoint>, usize)>> = read.collect::<Result<_, Error>>()?;
        for (checkpoint, bytes) in read.into_iter().flatten() {
            self.insert(&checkpoint, bytes);
            checkpoints.push(checkpoint);
        }
        Ok(checkpoints)
    }
}

/// Reads a checkpoint and the size of its message, or returns `None` if it is damaged. `fetched` is
/// the time when it was fetched.
fn read(
    reader: &Odb,
    id: Oid,
    fetched: Option<u64>,
) -> Result<Option<(Arc<Checkpoint>, usize)>, Error> {
    let commit = match reader.try_read(Kind::Commit, id) {
        Err(why @ Unreadable::Unavailable) => {
            return Err(reader.unreadable(Kind::Commit, id, why));
        }
        read => read.ok().and_then(|bytes| Commit::decode(&bytes)),
    };
    let Some((commit, mut metadata)) = commit.and_then(|commit| {
        let metadata = metadata_of(&commit)?;
        Some((commit, metadata))
    }) else {
        return Ok(None);
    };
    if let Some(when) = fetched {
        clear_untrusted(&mut metadata, when);
    }
    let checkpoint = Checkpoint {
        id,
        tree: commit.tree,
        metadata,
    };
    Ok(Some((Arc::new(checkpoint), commit.message.len())))
}

/// Removes claims that a fetched checkpoint may not make. `when` is the time it was fetched.
fn clear_untrusted(metadata: &mut CheckpointMetadata, when: u64) {
    metadata.fetched = true;
    metadata.task = None;
    metadata.group = None;
    metadata.group_roots.clear();
    metadata.rewind = None;
    // A checkpoint cannot be newer than the fetch.
    if metadata.created > when.saturating_add(CLOCK_SKEW) {
        metadata.created = when.max(1);
        metadata.sequence = 0;
    }
}
