//! What is being restored, on the disk before anything is changed.
//!
//! The journal names two checkpoints and the paths between them that stay as
//! they are: the steps follow from those, and every byte they need is in the
//! store. It is written durably before the first change and goes after the last.

use std::{collections::HashSet, fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::super::{Checkpoints, NamedPath, Oid};
use crate::{
    clock::now_millis,
    error::Error,
    path::RelPath,
    storage::atomic_file::{self, PreparedFile, aside, failed},
};

const VERSION: u32 = 1;

/// A restore that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Journal {
    version: u32,
    /// What is restored.
    pub(super) restoring: Oid,
    /// The checkpoint taken before.
    pub(super) undo: Oid,
    /// Only these paths and what is below them; empty means all.
    paths: Vec<NamedPath>,
    /// Paths that differ and stay.
    left_alone: Vec<NamedPath>,
}

impl Journal {
    pub(super) fn new(
        restoring: Oid,
        undo: Oid,
        paths: &[RelPath],
        left_alone: &HashSet<RelPath>,
    ) -> Self {
        let mut left_alone: Vec<&RelPath> = left_alone.iter().collect();
        left_alone.sort();
        Self {
            version: VERSION,
            restoring,
            undo,
            paths: paths.iter().map(NamedPath::of).collect(),
            left_alone: left_alone.into_iter().map(NamedPath::of).collect(),
        }
    }

    /// Only these paths; `None` when one makes no sense.
    pub(super) fn paths(&self) -> Option<Vec<RelPath>> {
        self.paths.iter().map(NamedPath::to_path).collect()
    }

    /// The paths that stay; `None` when one makes no sense.
    pub(super) fn left_alone(&self) -> Option<HashSet<RelPath>> {
        self.left_alone.iter().map(NamedPath::to_path).collect()
    }
}

impl Checkpoints {
    fn journal_path(&self) -> PathBuf {
        self.state_dir().join("journal.json")
    }

    /// Was a restore interrupted, and not yet completed or taken back?
    pub fn has_journal(&self) -> bool {
        // One that can't be looked at is read, for the error.
        self.journal_path().try_exists().unwrap_or(true)
    }

    /// The journal of a restore that did not end. One that makes no sense is set
    /// aside, with an error that says so once.
    pub(super) fn read_journal(&self) -> Result<Option<Journal>, Error> {
        let Some(bytes) = atomic_file::read(&self.journal_path())? else {
            return Ok(None);
        };
        let journal = serde_json::from_slice(&bytes).ok();
        let journal = journal.filter(|journal: &Journal| {
            journal.version == VERSION
                && journal.paths().is_some()
                && journal.left_alone().is_some()
        });
        match journal {
            Some(journal) => Ok(Some(journal)),
            None => Err(self.set_journal_aside("it makes no sense")),
        }
    }

    /// Takes a journal that can't be followed out of the way.
    pub(super) fn set_journal_aside(&self, why: &str) -> Error {
        let path = self.journal_path();
        let to = aside(&path, now_millis());
        match fs::rename(&path, &to) {
            Ok(()) => Error::storage(format!(
                "a restore was interrupted and cannot be completed: {why}; compare with the undo point taken before it. Its journal is now {}",
                to.display()
            )),
            Err(error) => failed("set aside", &path, &error),
        }
    }

    /// Writes it to the disk; it holds once it is shown.
    pub(super) fn prepare_journal(&self, journal: &Journal) -> Result<PreparedFile, Error> {
        let text = serde_json::to_vec(journal).map_err(|error| {
            Error::storage(format!(
                "the journal of the restore cannot be written: {error}"
            ))
        })?;
        atomic_file::prepare(&self.journal_path(), &text)
    }

    /// The restore ended. That is not flushed: should the power fail before the disk
    /// has what was restored, the journal that is back is followed once more.
    pub(super) fn remove_journal(&self) -> Result<(), Error> {
        let path = self.journal_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path, &error))
            }
            _ => Ok(()),
        }
    }
}
