//! The list of checkpoints that were fetched from a remote.
//!
//! The metadata of a fetched checkpoint was written by another machine. It could claim to be the
//! newest checkpoint, an undo point, or part of a task, so these claims are ignored. The list is
//! flushed before the refs of fetched checkpoints are written. It is never pushed.

use std::{collections::HashMap, fmt::Write as _, path::Path};

use sightline_workspace::storage::atomic_file::{read, write};

use super::{object::Oid, refs};
use crate::error::Error;

const FILE_NAME: &str = "fetched";
/// Reads the fetched checkpoints and the times they were fetched, in milliseconds since the epoch.
pub(crate) fn all(dir: &Path) -> Result<HashMap<Oid, u64>, Error> {
    let text = read(&dir.join(FILE_NAME))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = |line: &str| {
        let (id, when) = line.split_once(' ')?;
        Some((Oid::from_hex(id)?, when.trim().parse().unwrap_or(0)))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Writes and flushes the list.
pub(crate) fn write_all(dir: &Path, fetched: &HashMap<Oid, u64>) -> Result<(), Error> {
    let mut lines: Vec<_> = fetched.iter().collect();
    lines.sort_unstable();
    let mut text = String::new();
    for (id, when) in lines {
        let _ = writeln!(text, "{id} {when}");
    }
    Ok(write(&dir.join(FILE_NAME), text.as_bytes())?)
}

/// Removes checkpoints that no longer exist from the list.
pub(crate) fn retain(dir: &Path) -> Result<(), Error> {
    let mut fetched = all(dir)?;
    let before = fetched.len();
    if before > 0 {
        let ids = refs::ids(dir)?;
        fetched.retain(|id, _| ids.binary_search(id).is_ok());
    }
    if fetched.len() < before {
        write_all(dir, &fetched)
    } else {
        Ok(())
    }
}
