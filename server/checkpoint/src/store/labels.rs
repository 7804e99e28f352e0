//! The labels that were set or removed after their checkpoint was created.
//!
//! The label of a new checkpoint is part of its commit, whose id must not change. Later labels are
//! lines of a file: an id, and the label as JSON. The file is never pushed.

use std::{collections::HashMap, fmt::Write as _, path::Path};

use sightline_workspace::storage::atomic_file::{read, write};

use super::{object::Oid, refs};
use crate::error::Error;

const FILE_NAME: &str = "labels";

/// Labels by checkpoint; `None` if the label was removed.
pub(crate) type Labels = HashMap<Oid, Option<String>>;

/// Reads the labels. Damaged lines are skipped.
pub(crate) fn all(dir: &Path) -> Result<Labels, Error> {
    let text = read(&dir.join(FILE_NAME))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = |line: &str| {
        let (id, label) = line.split_once(' ')?;
        Some((Oid::from_hex(id)?, serde_json::from_str(label).ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Writes and flushes the labels.
pub(crate) fn write_all(dir: &Path, labels: &Labels) -> Result<(), Error> {
    let mut lines: Vec<_> = labels.iter().collect();
    lines.sort_unstable();
    let mut text = String::new();
    for (id, label) in lines {
        let label = serde_json::json!(label);
        let _ = writeln!(text, "{id} {label}");
    }
    Ok(write(&dir.join(FILE_NAME), text.as_bytes())?)
}

/// Removes the labels of checkpoints that no longer exist.
pub(crate) fn retain(dir: &Path) -> Result<(), Error> {
    let mut labels = all(dir)?;
    let before = labels.len();
    if before > 0 {
        let ids = refs::ids(dir)?;
        labels.retain(|id, _| ids.binary_search(id).is_ok());
    }
    if labels.len() < before {
        write_all(dir, &labels)
    } else {
        Ok(())
    }
}
