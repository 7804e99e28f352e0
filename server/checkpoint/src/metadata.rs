//! Lists checkpoints, and reads and caches their metadata.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rayon::prelude::*;
use serde::Serialize;
use sightline_protocol::error::ErrorKind;
use sightline_workspace::{error::Error, escape::one_line};

use super::{
    Checkpoint, CheckpointMetadata, Checkpoints, Filter, Oid,
    store::{object::Commit, odb::Odb, refs, remote_refs, repository::Repository},
};

/// Maximum length of a commit subject, in characters. The metadata holds the whole label.
const MAX_SUBJECT_CHARS: usize = 100;
/// Maximum size of the cached metadata, in bytes.
const MAX_CACHED_BYTES: usize = 16 << 20;
/// Maximum clock difference between machines, in milliseconds.
const CLOCK_SKEW: u64 = 24 * 3600 * 1000;
/// Minimum number of commits one thread reads before rayon splits the work.
const MIN_READS_PER_THREAD: usize = 8;

/// Builds the commit message: the label as subject, then the metadata as JSON.
fn message(metadata: &CheckpointMetadata) -> String {
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
    let message = Message {
        metadata,
        rules: UnknownRules { too_many: true },
    };
    // Plain data with string keys always serializes.
    let json = serde_json::to_string(&message).unwrap_or_default();
    format!("{subject}\n\n{json}\n")
}

/// The metadata, and a field for version 0.1.0.
#[derive(Serialize)]
struct Message<'a> {
    #[serde(flatten)]
    metadata: &'a CheckpointMetadata,
    rules: UnknownRules,
}

/// Version 0.1.0 saved rules instead of exclusions. This makes it keep every path that the
/// checkpoint does not hold, instead of none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnknownRules {
    too_many: bool,
}

/// Returns the commit of a checkpoint.
pub(super) fn commit_of(tree: Oid, metadata: &CheckpointMetadata) -> Commit {
    Commit {
        tree,
        time: metadata.created / 1000,
        message: message(metadata),
    }
}

/// Parses the metadata of a commit. Returns `None` if the commit is not a checkpoint.
fn metadata_of(commit: &Commit) -> Option<CheckpointMetadata> {
    let (_, json) = commit.message.split_once("\n\n")?;
    let metadata: CheckpointMetadata = serde_json::from_str(json).ok()?;
    (metadata.created > 0).then_some(metadata)
}

/// Returns whether a commit has the metadata of a checkpoint.
pub(super) fn is_checkpoint(commit: &Commit) -> bool {
    metadata_of(commit).is_some()
}

/// Cache of metadata, which never changes.
#[derive(Debug, Default)]
pub(super) struct MetadataCache(Mutex<CachedMetadata>);

#[derive(Debug, Default)]
struct CachedMetadata {
    /// Each checkpoint with the size of its metadata in bytes.
    checkpoints: HashMap<Oid, (Arc<Checkpoint>, usize)>,
    /// Total size of the cached metadata, in bytes.
    bytes: usize,
}

impl MetadataCache {
    fn lock(&self) -> MutexGuard<'_, CachedMetadata> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all entries except `ids`.
    fn retain(&self, ids: &[Oid]) {
        let mut known = self.lock();
        if known.checkpoints.len() <= ids.len() {
            return;
        }
        let ids: HashSet<&Oid> = ids.iter().collect();
        known.checkpoints.retain(|id, _| ids.contains(id));
        known.bytes = known.checkpoints.values().map(|(_, bytes)| bytes).sum();
    }

    /// Adds a checkpoint that was just created.
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

    /// Returns the checkpoints of `ids` that can be read, in no particular order.
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
                || repository.odb(),
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

/// Reads a checkpoint and the size of its message. `fetched` is the time when it was fetched.
fn read(reader: &Odb, id: Oid, fetched: Option<u64>) -> Option<(Arc<Checkpoint>, usize)> {
    let commit = reader.commit(id).ok()?;
    let mut metadata = metadata_of(&commit)?;
    if let Some(when) = fetched {
        clear_untrusted(&mut metadata, when);
    }
    let checkpoint = Checkpoint {
        id,
        tree: commit.tree,
        metadata,
    };
    Some((Arc::new(checkpoint), commit.message.len()))
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

impl Checkpoints {
    /// Returns one checkpoint.
    ///
    /// # Errors
    /// `notFound` if it does not exist; `storage`.
    pub fn get(&self, id: Oid) -> Result<Arc<Checkpoint>, Error> {
        let found = match self.repository()? {
            Some(repository) if refs::exists(repository.dir(), id)? => {
                self.metadata_cache.of(&[id], &repository)?.pop()
            }
            _ => None,
        };
        found.ok_or_else(|| self.not_found(id))
    }

    pub(super) fn not_found(&self, id: Oid) -> Error {
        let message = format!(
            "no checkpoint {id} in {}; list the checkpoints to see their ids",
            self.root.path.display()
        );
        Error::new(ErrorKind::NotFound, message)
    }

    /// Lists checkpoints, newest first. Omits commits that are not checkpoints or cannot be read;
    /// [`Self::verify`] reports those.
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

/// Sorts newest first.
fn sort(checkpoints: &mut [Arc<Checkpoint>]) {
    checkpoints.sort_unstable_by_key(|checkpoint| {
        std::cmp::Reverse((
            checkpoint.metadata.created,
            checkpoint.metadata.sequence,
            checkpoint.id,
        ))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the field `rules`, version 0.1.0 would delete every path that the checkpoint does not
    /// hold, including ignored ones.
    #[test]
    fn a_message_tells_older_versions_to_keep_paths() {
        let text = message(&CheckpointMetadata::default());
        assert!(text.contains(r#""rules":{"tooMany":true}"#), "{text}");
        let (_, json) = text.split_once("\n\n").unwrap();
        let read: CheckpointMetadata = serde_json::from_str(json).unwrap();
        assert_eq!(read, CheckpointMetadata::default());
    }
}
