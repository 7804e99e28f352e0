//! What is kept with a checkpoint, and which checkpoints there are.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rayon::prelude::*;
use sightline_protocol::error::ErrorKind;

use super::{
    Checkpoints, Filter, Notes, Oid, Record,
    store::{object::Commit, object_reader::Reader, refs, remote_refs, repository::Repository},
};
use crate::{error::Error, line::one_line};

/// Longest subject of a commit, in characters; the notes have the whole label.
const SUBJECT: usize = 100;
/// Records are remembered up to so many bytes of notes.
const REMEMBERED: usize = 16 << 20;
/// So many are read by one thread before another one helps.
const ONE_THREADS: usize = 8;

/// The message of a checkpoint's commit: a line for people, then the notes as JSON.
pub(super) fn message(notes: &Notes) -> String {
    let label: String = notes
        .label
        .iter()
        .flat_map(|label| label.chars())
        .take(SUBJECT)
        .collect();
    let label = one_line(label.trim());
    let subject = match label.as_ref() {
        "" => "checkpoint",
        label => label,
    };
    // Notes are plain data with text keys, which JSON can always say.
    let json = serde_json::to_string(notes).unwrap_or_default();
    format!("{subject}\n\n{json}\n")
}

/// The notes of a commit; `None` for a commit that is no checkpoint.
pub(super) fn notes_of(commit: &Commit) -> Option<Notes> {
    let (_, json) = commit.message.split_once("\n\n")?;
    let notes: Notes = serde_json::from_str(json).ok()?;
    (notes.created > 0).then_some(notes)
}

/// Records that were read; they never change.
#[derive(Debug, Default)]
pub(super) struct Records(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// With the bytes of its notes.
    records: HashMap<Oid, (Arc<Record>, usize)>,
    /// Bytes of notes remembered.
    bytes: usize,
}

impl Records {
    fn known(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all but these.
    fn retain(&self, ids: &[Oid]) {
        let mut known = self.known();
        if known.records.len() <= ids.len() {
            return;
        }
        let ids: HashSet<&Oid> = ids.iter().collect();
        known.records.retain(|id, _| ids.contains(id));
        known.bytes = known.records.values().map(|(_, bytes)| bytes).sum();
    }

    /// Takes a record that was just made, which spares reading it.
    pub(super) fn remember(&self, record: &Arc<Record>) {
        let bytes = message(&record.notes).len();
        let mut known = self.known();
        if known.bytes + bytes <= REMEMBERED {
            known.bytes += bytes;
            known.records.insert(record.id, (Arc::clone(record), bytes));
        }
    }

    /// The readable ones of `ids`, in no order.
    fn of(&self, ids: &[Oid], repository: &Repository) -> Result<Vec<Arc<Record>>, Error> {
        let mut records = Vec::with_capacity(ids.len());
        let mut unknown = Vec::new();
        {
            let known = self.known();
            for id in ids {
                match known.records.get(id) {
                    Some((record, _)) => records.push(Arc::clone(record)),
                    None => unknown.push(*id),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(records);
        }
        let fetched = remote_refs::all(repository.dir())?;
        let read = unknown.par_iter().with_min_len(ONE_THREADS).map_init(
            || repository.reader(),
            |reader, id| read(reader, *id, fetched.get(id).copied()),
        );
        let read: Vec<Option<(Arc<Record>, usize)>> = read.collect();
        for (record, bytes) in read.into_iter().flatten() {
            let mut known = self.known();
            if known.bytes + bytes <= REMEMBERED {
                known.bytes += bytes;
                known
                    .records
                    .insert(record.id, (Arc::clone(&record), bytes));
            }
            records.push(record);
        }
        Ok(records)
    }
}

/// A checkpoint, and how many bytes its message has; `fetched` is when it was.
fn read(reader: &Reader, id: Oid, fetched: Option<u64>) -> Option<(Arc<Record>, usize)> {
    let commit = reader.commit(id).ok()?;
    let mut notes = notes_of(&commit)?;
    if let Some(when) = fetched {
        remote_refs::distrust(&mut notes, when);
    }
    let record = Record {
        id,
        tree: commit.tree,
        notes,
    };
    Some((Arc::new(record), commit.message.len()))
}

impl Checkpoints {
    /// One checkpoint.
    ///
    /// # Errors
    /// `notFound` when there is none of that id; `storage`.
    pub fn record(&self, id: Oid) -> Result<Arc<Record>, Error> {
        let found = match self.repository()? {
            Some(repository) if refs::exists(repository.dir(), id)? => {
                self.records.of(&[id], &repository)?.pop()
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
    pub fn list(&self, filter: &Filter) -> Result<Vec<Arc<Record>>, Error> {
        let Some(repository) = self.repository()? else {
            return Ok(Vec::new());
        };
        let ids = repository.ids()?;
        self.records.retain(&ids);
        let mut records = self.records.of(&ids, &repository)?;
        if let Some(task) = &filter.task {
            records.retain(|record| record.notes.task.as_deref() == Some(task.as_str()));
        }
        sort(&mut records);
        records.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(records)
    }
}

/// The newest first.
fn sort(records: &mut [Arc<Record>]) {
    records.sort_unstable_by_key(|record| {
        std::cmp::Reverse((record.notes.created, record.notes.sequence, record.id))
    });
}
