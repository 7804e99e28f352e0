//! What is kept with a checkpoint, and which checkpoints there are.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rayon::prelude::*;
use sightline_protocol::error::ErrorKind;

use super::{
    Checkpoint, CheckpointMetadata, Checkpoints, Filter, Oid,
    store::{
        object::Commit, object_reader::ObjectReader, refs, remote_refs, repository::Repository,
    },
};
use crate::{error::Error, line::one_line};

/// Longest subject of a commit, in characters; the notes have the whole label.
const MAX_SUBJECT_CHARS: usize = 100;
/// Records are remembered up to so many bytes of notes.
const MAX_CACHED_BYTES: usize = 16 << 20;
/// So many are read by one thread before another one helps.
const MIN_READS_PER_THREAD: usize = 8;

/// The message of a checkpoint's commit: a line for people, then the notes as JSON.
pub(super) fn message(metadata: &CheckpointMetadata) -> String {
    let label: String = metadata
        .label
        .iter()
        .flat_map(|label| label.chars())
        .take(MAX_SUBJECT_CHARS)
        .collect();
    let label = one_line(label.trim());
    let subject = match label.as_ref() {
        "" => "checkpoint",
        label => label,
    };
    // Notes are plain data with text keys, which JSON can always say.
    let json = serde_json::to_string(metadata).unwrap_or_default();
    format!("{subject}\n\n{json}\n")
}

/// The notes of a commit; `None` for a commit that is no checkpoint.
pub(super) fn metadata_of(commit: &Commit) -> Option<CheckpointMetadata> {
    let (_, json) = commit.message.split_once("\n\n")?;
    let metadata: CheckpointMetadata = serde_json::from_str(json).ok()?;
    (metadata.created > 0).then_some(metadata)
}

/// Records that were read; they never change.
#[derive(Debug, Default)]
pub(super) struct MetadataCache(Mutex<CachedMetadata>);

#[derive(Debug, Default)]
struct CachedMetadata {
    /// With the bytes of its notes.
    checkpoints: HashMap<Oid, (Arc<Checkpoint>, usize)>,
    /// Bytes of notes remembered.
    bytes: usize,
}

impl MetadataCache {
    fn lock(&self) -> MutexGuard<'_, CachedMetadata> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all but these.
    fn retain(&self, ids: &[Oid]) {
        let mut known = self.lock();
        if known.checkpoints.len() <= ids.len() {
            return;
        }
        let ids: HashSet<&Oid> = ids.iter().collect();
        known.checkpoints.retain(|id, _| ids.contains(id));
        known.bytes = known.checkpoints.values().map(|(_, bytes)| bytes).sum();
    }

    /// Takes a record that was just made, which spares reading it.
    pub(super) fn insert(&self, checkpoint: &Arc<Checkpoint>) {
        let bytes = message(&checkpoint.metadata).len();
        let mut known = self.lock();
        if known.bytes + bytes <= MAX_CACHED_BYTES {
            known.bytes += bytes;
            known
                .checkpoints
                .insert(checkpoint.id, (Arc::clone(checkpoint), bytes));
        }
    }

    /// The readable ones of `ids`, in no order.
    fn of(&self, ids: &[Oid], repository: &Repository) -> Result<Vec<Arc<Checkpoint>>, Error> {
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
        let fetched = remote_refs::all(repository.dir())?;
        let read = unknown
            .par_iter()
            .with_min_len(MIN_READS_PER_THREAD)
            .map_init(
                || repository.reader(),
                |reader, id| read(reader, *id, fetched.get(id).copied()),
            );
        let read: Vec<Option<(Arc<Checkpoint>, usize)>> = read.collect();
        for (checkpoint, bytes) in read.into_iter().flatten() {
            let mut known = self.lock();
            if known.bytes + bytes <= MAX_CACHED_BYTES {
                known.bytes += bytes;
                known
                    .checkpoints
                    .insert(checkpoint.id, (Arc::clone(&checkpoint), bytes));
            }
            checkpoints.push(checkpoint);
        }
        Ok(checkpoints)
    }
}

/// A checkpoint, and how many bytes its message has; `fetched` is when it was.
fn read(reader: &ObjectReader, id: Oid, fetched: Option<u64>) -> Option<(Arc<Checkpoint>, usize)> {
    let commit = reader.commit(id).ok()?;
    let mut metadata = metadata_of(&commit)?;
    if let Some(when) = fetched {
        remote_refs::clear_untrusted(&mut metadata, when);
    }
    let checkpoint = Checkpoint {
        id,
        tree: commit.tree,
        metadata,
    };
    Some((Arc::new(checkpoint), commit.message.len()))
}

impl Checkpoints {
    /// One checkpoint.
    ///
    /// # Errors
    /// `notFound` when there is none of that id; `storage`.
    pub fn get(&self, id: Oid) -> Result<Arc<Checkpoint>, Error> {
        let found = match self.repository()? {
            Some(repository) if refs::exists(repository.dir(), id)? => {
                self.metadata_cache.of(&[id], &repository)?.pop()
            }
            _ => None,
        };
        found.ok_or_else(|| self.not_found(id))
    }

    /// The error for a checkpoint that does not exist, or does no longer.
    pub(super) fn not_found(&self, id: Oid) -> Error {
        let message = format!(
            "there is no checkpoint {id} of {}; list the checkpoints to see which there are",
            self.root.path.display()
        );
        Error::new(ErrorKind::NotFound, message)
    }

    /// Checkpoints, the newest first. Commits that are no checkpoints or can't
    /// be read are left out; [`Self::verify`] tells of them.
    ///
    /// # Errors
    /// `storage`.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Arc<Checkpoint>>, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(Vec::new());
        };
        let ids = repository.ids()?;
        self.metadata_cache.retain(&ids);
        let mut checkpoints = self.metadata_cache.of(&ids, &repository)?;
        if let Some(task) = &filter.task {
            checkpoints
                .retain(|checkpoint| checkpoint.metadata.task.as_deref() == Some(task.as_str()));
        }
        sort(&mut checkpoints);
        checkpoints.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(checkpoints)
    }
}

/// The newest first.
fn sort(checkpoints: &mut [Arc<Checkpoint>]) {
    checkpoints.sort_unstable_by_key(|checkpoint| {
        std::cmp::Reverse((
            checkpoint.metadata.created,
            checkpoint.metadata.sequence,
            checkpoint.id,
        ))
    });
}
