//! Tracks packs with uncompressed content, and compresses them later.
//!
//! A restore waits for its undo point, so contents are stored uncompressed. The file [`LIST`] in
//! the store lists these packs. Idle work compresses them once they are large, and so does pruning
//! by size before it removes a checkpoint. An entry lost in a crash only costs disk space until the
//! pack is combined with others.

use std::{
    fs,
    io::{ErrorKind as Io, Write},
    path::Path,
};

use super::{pack::Pack, packs, repository::Repository};
use crate::{
    cancel::Cancel,
    error::Error,
    storage::atomic_file::{failed, open, read_text},
};

/// Name of the list, with a line `BYTES NAME` for each pack.
pub(crate) const LIST: &str = "hurried";

/// Adds a pack with this many uncompressed bytes to the list.
pub(crate) fn record(dir: &Path, pack: &Path, bytes: usize) {
    let name = pack.file_name().unwrap_or_default().to_string_lossy();
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let list = open(&dir.join(LIST), &mut options);
    // Errors are ignored: the checkpoint is already stored.
    let _ = list.and_then(|mut list| list.write_all(format!("{bytes} {name}\n").as_bytes()));
}

/// Compresses the listed packs if they have at least `bytes` uncompressed bytes. The caller holds
/// the lock.
///
/// # Errors
/// `cancelled`; `storage`. The store is unchanged then.
pub(crate) fn compress(repository: &Repository, bytes: u64, cancel: &Cancel) -> Result<(), Error> {
    let path = repository.dir().join(LIST);
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == Io::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", &path, &error)),
    };
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    // Packs may have been combined or pruned since.
    let there = |name: &str| repository.pack_dir().join(name).exists();
    let listed: Vec<(u64, &str)> = lines
        .filter(|(_, name)| there(name))
        .map(|(bytes, name)| (bytes.parse().unwrap_or(0), name))
        .collect();
    let forget = || fs::remove_file(&path).map_err(|error| failed("remove", &path, &error));
    if listed.is_empty() {
        return forget();
    }
    // Saturates, because the list may be damaged.
    let all = listed.iter().map(|(bytes, _)| *bytes);
    if all.fold(0, u64::saturating_add) < bytes {
        return Ok(());
    }
    let mut packs = packs::all(repository)?;
    packs.retain(|pack| {
        let name = pack.path().file_name().and_then(|name| name.to_str());
        !pack.is_kept() && listed.iter().any(|(_, listed)| name == Some(listed))
    });
    let packs: Vec<&Pack> = packs.iter().collect();
    if let Some(made) = packs::combine(repository, &packs, |_| true, cancel)? {
        let old = packs.into_iter().filter(|pack| pack.path() != made.path());
        packs::remove(repository, old)?;
    }
    forget()
}
