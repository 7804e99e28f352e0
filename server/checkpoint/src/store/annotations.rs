//! What is known about a checkpoint and not part of its commit, whose id must not change: its later
//! label, and when it was fetched. Each is a file with a line per checkpoint: its id, and a value. They are never
//! pushed.

use std::{collections::HashMap, fmt::Write as _, path::Path};

use sightline_base::storage::atomic_file::{read, write};

use super::{object::Oid, refs};
use crate::error::Error;

/// The labels that were set after the checkpoint was created; `None` if the label was removed.
pub(crate) const LABELS: Annotations<Option<String>> = Annotations {
    file_name: "labels",
    decode: |label| serde_json::from_str(label).ok(),
    encode: |label| serde_json::json!(label).to_string(),
};

/// The checkpoints that were fetched from a remote, and when, in milliseconds since the epoch.
///
/// Their metadata was written by another machine. It could claim to be the newest checkpoint, an undo
/// point, or part of a task, so these claims are ignored. The file is flushed before their refs are
/// written.
pub(crate) const FETCHED: Annotations<u64> = Annotations {
    file_name: "fetched",
    decode: |when| Some(when.trim().parse().unwrap_or(0)),
    encode: u64::to_string,
};

/// A value for some checkpoints.
pub(crate) struct Annotations<V> {
    file_name: &'static str,
    decode: fn(&str) -> Option<V>,
    encode: fn(&V) -> String,
}

impl<V> Annotations<V> {
    /// Reads the values. Damaged lines are skipped.
    pub(crate) fn all(&self, dir: &Path) -> Result<HashMap<Oid, V>, Error> {
        let text = read(&dir.join(self.file_name))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let line = |line: &str| {
            let (id, value) = line.split_once(' ')?;
            Some((Oid::from_hex(id)?, (self.decode)(value)?))
        };
        Ok(text.lines().filter_map(line).collect())
    }

    /// Writes and flushes the values.
    pub(crate) fn write_all(&self, dir: &Path, values: &HashMap<Oid, V>) -> Result<(), Error> {
        let mut lines: Vec<_> = values.iter().collect();
        lines.sort_unstable_by_key(|(id, _)| **id);
        let mut text = String::new();
        for (id, value) in lines {
            let _ = writeln!(text, "{id} {}", (self.encode)(value));
        }
        Ok(write(&dir.join(self.file_name), text.as_bytes())?)
    }

    /// Removes the values of checkpoints that no longer exist.
    pub(crate) fn retain(&self, dir: &Path) -> Result<(), Error> {
        let mut values = self.all(dir)?;
        let before = values.len();
        if before > 0 {
            let ids = refs::ids(dir)?;
            values.retain(|id, _| ids.binary_search(id).is_ok());
        }
        if values.len() < before {
            self.write_all(dir, &values)?;
        }
        Ok(())
    }
}
