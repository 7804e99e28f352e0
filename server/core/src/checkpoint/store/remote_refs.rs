//! Which checkpoints came from elsewhere, and when.
//!
//! What a checkpoint says of itself, whoever made it wrote: that it is the
//! newest, that it undoes something, that it belongs to a task. Of those that
//! were fetched none of it is believed. A file in the store lists them; it is
//! on the disk before any of them counts, and it is never pushed.

use std::{collections::HashMap, fmt::Write as _, path::Path};

use super::refs;
use crate::{
    checkpoint::{CheckpointMetadata, Oid},
    error::Error,
    storage::files::{read, write},
};

const FILE_NAME: &str = "fetched";
/// Clocks differ by less.
const CLOCK_SKEW: u64 = 24 * 3600 * 1000;

/// The fetched ones and when they were, in milliseconds since the epoch.
pub(crate) fn all(dir: &Path) -> Result<HashMap<Oid, u64>, Error> {
    let text = read(&dir.join(FILE_NAME))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = |line: &str| {
        let (id, when) = line.split_once(' ')?;
        Some((refs::plain_id(id)?, when.trim().parse().unwrap_or(0)))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Writes down all of them, durably.
pub(crate) fn write_all(dir: &Path, fetched: &HashMap<Oid, u64>) -> Result<(), Error> {
    let mut lines: Vec<_> = fetched.iter().collect();
    lines.sort_unstable();
    let mut text = String::new();
    for (id, when) in lines {
        let _ = writeln!(text, "{id} {when}");
    }
    write(&dir.join(FILE_NAME), text.as_bytes())
}

/// Forgets those that are no more.
pub(crate) fn retain(dir: &Path) -> Result<(), Error> {
    let mut fetched = all(dir)?;
    let before = fetched.len();
    if before > 0 {
        let ids = refs::ids(dir)?;
        fetched.retain(|id, _| ids.binary_search(id).is_ok());
    }
    match fetched.len() < before {
        true => write_all(dir, &fetched),
        false => Ok(()),
    }
}

/// What is left of the notes of one that was fetched at `when`.
pub(crate) fn clear_untrusted(metadata: &mut CheckpointMetadata, when: u64) {
    metadata.fetched = true;
    metadata.task = None;
    metadata.group = None;
    metadata.group_roots.clear();
    metadata.rewind = None;
    // Nothing was made after it was fetched.
    if metadata.created > when.saturating_add(CLOCK_SKEW) {
        metadata.created = when.max(1);
        metadata.sequence = 0;
    }
}
