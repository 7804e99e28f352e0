//! The record of a restore: a file that lists what the restore changed, so that its undo reverts
//! exactly that.
//!
//! It is written before the first change and lists all planned changes; changes that fail are
//! removed afterwards. It is not flushed, except for a restore of a part: after a power failure it may
//! be missing or incomplete, and the undo then compares the two checkpoints, as for restores without a
//! record.

use std::{collections::HashMap, fs, io::Write, path::PathBuf};

use serde::{Deserialize, Serialize};
use sightline_base::{
    limits::MAX_STATE_FILE_BYTES,
    path::RelPath,
    storage::atomic_file::{self, cannot_open, failed},
};

use super::super::{
    checkpoints::Checkpoints,
    named_path::NamedPath,
    store::{
        object::{Mode, Oid},
        refs,
    },
    tree_diff::Leaf,
};
use crate::error::Error;

/// Entries of the changed paths after a restore. `None` for a deleted path.
pub(super) type Restored = HashMap<RelPath, Option<Leaf>>;

#[derive(Serialize, Deserialize)]
struct Record {
    changes: Vec<RecordedChange>,
}

/// A changed path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedChange {
    #[serde(flatten)]
    path: NamedPath,
    /// Mode and content after the restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<(Mode, Oid)>,
}

impl RecordedChange {
    pub(super) fn of(path: &RelPath, after: Option<Leaf>) -> Self {
        Self {
            path: NamedPath::of(path),
            after: after.map(|leaf| (leaf.mode, leaf.oid)),
        }
    }

    /// Returns the path and its entry. `None` if the path is invalid.
    pub(super) fn entry(&self) -> Option<(RelPath, Option<Leaf>)> {
        let leaf = self.after.map(|(mode, oid)| Leaf::stored(mode, oid));
        Some((self.path.to_path()?, leaf))
    }
}

impl Checkpoints {
    fn records_dir(&self) -> PathBuf {
        self.state_dir().join("restores")
    }

    fn record_path(&self, undo: Oid) -> PathBuf {
        self.records_dir().join(format!("{undo}.json"))
    }

    /// Records the changes of the restore with this undo point. `is_flushed`: also for the time after a
    /// power failure.
    pub(super) fn write_record<'a>(
        &self,
        undo: Oid,
        changes: impl Iterator<Item = (&'a RelPath, Option<Leaf>)>,
        is_flushed: bool,
    ) -> Result<(), Error> {
        let record = Record {
            changes: changes
                .map(|(path, leaf)| RecordedChange::of(path, leaf))
                .collect(),
        };
        let text =
            serde_json::to_vec(&record).map_err(Error::encode("the record of the restore"))?;
        if text.len() as u64 > MAX_STATE_FILE_BYTES {
            return Ok(());
        }
        self.storage.make_dir(&self.records_dir())?;
        let path = self.record_path(undo);
        if is_flushed {
            return Ok(atomic_file::replace(&path, &text)?);
        }
        let mut options = atomic_file::private_options();
        options.write(true).create(true).truncate(true);
        let mut file =
            atomic_file::open(&path, &mut options).map_err(|error| cannot_open(&path, error))?;
        let written = file.write_all(&text);
        Ok(written.map_err(|error| failed("write", &path, error))?)
    }

    /// Returns what a restore changed, or `None` if that is not recorded.
    ///
    /// # Errors
    /// `storage` if the record cannot be read.
    pub(super) fn read_record(&self, undo: Oid) -> Result<Option<Restored>, Error> {
        let Some(text) = atomic_file::read(&self.record_path(undo))? else {
            return Ok(None);
        };
        // A record is incomplete if the system crashed before it reached the disk.
        let Ok(record) = serde_json::from_slice::<Record>(&text) else {
            return Ok(None);
        };
        Ok(record.changes.iter().map(RecordedChange::entry).collect())
    }

    /// Corrects the record: keeps only the changes that `was_made`.
    pub(super) fn correct_record(
        &self,
        undo: Oid,
        was_made: impl Fn(&RelPath) -> bool,
    ) -> Result<(), Error> {
        let Some(mut restored) = self.read_record(undo)? else {
            return Ok(());
        };
        let count = restored.len();
        restored.retain(|path, _| was_made(path));
        if restored.len() == count {
            return Ok(());
        }
        let changes = restored.iter().map(|(path, leaf)| (path, *leaf));
        self.write_record(undo, changes, false)
    }

    /// Removes the records whose undo points no longer exist.
    pub(in super::super) fn sweep_records(&self) {
        let Ok(entries) = fs::read_dir(self.records_dir()) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let undo = path.file_stem().and_then(|stem| stem.to_str());
            let is_gone = undo
                .and_then(Oid::from_hex)
                .is_none_or(|undo| matches!(refs::exists(&self.git_dir(), undo), Ok(false)));
            if is_gone {
                let _ = fs::remove_file(&path);
            }
        }
    }
}
