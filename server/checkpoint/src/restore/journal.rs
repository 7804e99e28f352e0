//! The restore journal: a file that describes the restore in progress.
//!
//! It names the target checkpoint, the undo point, and the paths that are left as they are. The
//! steps are computed from those, and the store has every byte they need. The journal is flushed
//! to disk before the first change and removed after the last one.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use sightline_base::{
    clock::now_millis,
    path::RelPath,
    storage::atomic_file::{self, PreparedFile, aside, failed},
};

use super::{
    super::{checkpoints::Checkpoints, named_path::NamedPath, store::object::Oid, tree_diff::Leaf},
    record::RecordedChange,
};
use crate::error::Error;

const VERSION: u32 = 1;
/// Version with entries that differ from those of the checkpoint.
const VERSION_OF_PART: u32 = 2;

/// Restore in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Journal {
    version: u32,
    /// The checkpoint that is restored.
    pub(super) restoring: Oid,
    /// The undo point: the checkpoint created just before.
    pub(super) undo: Oid,
    /// Only these paths and everything below them; empty means all.
    paths: Vec<NamedPath>,
    /// Paths that differ, but are left as they are.
    left_alone: Vec<NamedPath>,
    /// Entries that differ from those of the checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<RecordedChange>,
}

impl Journal {
    pub(super) fn new(
        restoring: Oid,
        undo: Oid,
        paths: &[RelPath],
        left_alone: &HashSet<RelPath>,
        replaced: &HashMap<RelPath, Leaf>,
    ) -> Self {
        let mut left_alone: Vec<&RelPath> = left_alone.iter().collect();
        left_alone.sort();
        Self {
            version: if replaced.is_empty() {
                VERSION
            } else {
                VERSION_OF_PART
            },
            restoring,
            undo,
            paths: paths.iter().map(NamedPath::of).collect(),
            left_alone: left_alone.into_iter().map(NamedPath::of).collect(),
            replaced: replaced
                .iter()
                .map(|(path, leaf)| RecordedChange::of(path, Some(*leaf)))
                .collect(),
        }
    }

    /// Returns the paths to restore, or `None` if one is invalid.
    pub(super) fn paths(&self) -> Option<Vec<RelPath>> {
        self.paths.iter().map(NamedPath::to_path).collect()
    }

    /// Returns the paths that are left as they are, or `None` if one is invalid.
    pub(super) fn left_alone(&self) -> Option<HashSet<RelPath>> {
        self.left_alone.iter().map(NamedPath::to_path).collect()
    }

    /// Returns the entries that differ from those of the checkpoint, or `None` if a path is invalid.
    pub(super) fn replaced(&self) -> Option<HashMap<RelPath, Leaf>> {
        let entry = |one: &RecordedChange| {
            let (path, leaf) = one.entry()?;
            Some((path, leaf?))
        };
        self.replaced.iter().map(entry).collect()
    }
}

impl Checkpoints {
    fn journal_path(&self) -> PathBuf {
        self.state_dir().join("journal.json")
    }

    /// Returns whether a restore was interrupted and has not been completed or rolled back yet.
    pub fn has_journal(&self) -> bool {
        // If this fails, reading the journal reports the error.
        self.journal_path().try_exists().unwrap_or(true)
    }

    /// Reads the journal of an interrupted restore. An invalid journal is moved aside and reported
    /// as an error once.
    pub(super) fn read_journal(&self) -> Result<Option<Journal>, Error> {
        let Some(bytes) = atomic_file::read(&self.journal_path())? else {
            return Ok(None);
        };
        let journal = serde_json::from_slice(&bytes)
            .ok()
            .filter(|journal: &Journal| {
                [VERSION, VERSION_OF_PART].contains(&journal.version)
                    && journal.replaced().is_some()
                    && journal.paths().is_some()
                    && journal.left_alone().is_some()
            });
        match journal {
            Some(journal) => Ok(Some(journal)),
            None => Err(self.set_journal_aside("the restore journal is invalid")),
        }
    }

    /// Renames a journal that cannot be completed, and returns the error to report.
    pub(super) fn set_journal_aside(&self, why: &str) -> Error {
        let path = self.journal_path();
        let to = aside(&path, now_millis());
        match fs::rename(&path, &to) {
            Ok(()) => Error::storage(format!(
                "{why}; compare the workspace with the undo point created before the restore. The journal of the interrupted restore was moved to {}",
                to.display()
            )),
            Err(error) => failed("rename", &path, error).into(),
        }
    }

    /// Writes and flushes the journal. It takes effect when the file is committed.
    pub(super) fn prepare_journal(&self, journal: &Journal) -> Result<PreparedFile, Error> {
        let text = serde_json::to_vec(journal).map_err(Error::encode("the restore journal"))?;
        Ok(atomic_file::prepare(&self.journal_path(), &text)?)
    }

    /// Removes the journal after the restore. The removal is not flushed: after a power failure,
    /// the journal may be back, and recovery checks the restored files again.
    pub(super) fn remove_journal(&self) -> Result<(), Error> {
        let path = self.journal_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path, error).into())
            }
            _ => Ok(()),
        }
    }
}
