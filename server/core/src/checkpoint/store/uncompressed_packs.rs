//! Packs that were written in a hurry, and deflating them later.
//!
//! While a restore waits for its undo point, contents are stored as they are. A file
//! beside the store's names lists those packs; once there is much in them, idle work
//! deflates it, and so does who is about to remove checkpoints for want of room. A
//! line lost in a crash costs room only, until packs are folded.

use std::{
    fs,
    io::{ErrorKind as Io, Write},
    path::Path,
};

use super::{
    packs::{self, Pack},
    repository::Repository,
};
use crate::{
    cancel::Cancel,
    error::Error,
    storage::files::{failed, open, read_text},
};

/// Holds a line `BYTES NAME` for each of them.
pub(crate) const LIST: &str = "hurried";

/// Notes that so many bytes of a pack are as they are.
pub(crate) fn record(dir: &Path, pack: &Path, bytes: usize) {
    let name = pack.file_name().unwrap_or_default().to_string_lossy();
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let list = open(&dir.join(LIST), &mut options);
    // The checkpoint is stored, whatever comes of this.
    let _ = list.and_then(|mut list| list.write_all(format!("{bytes} {name}\n").as_bytes()));
}

/// Deflates what is in them if it is so many bytes or more. Who calls it holds the lock.
///
/// # Errors
/// `cancelled`; `storage`. The store holds all it held then.
pub(crate) fn compress(repository: &Repository, bytes: u64, cancel: &Cancel) -> Result<(), Error> {
    let path = repository.dir().join(LIST);
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == Io::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", &path, &error)),
    };
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    // Some may have been folded or pruned meanwhile.
    let there = |name: &str| repository.pack_dir().join(name).exists();
    let listed: Vec<(u64, &str)> = lines
        .filter(|(_, name)| there(name))
        .map(|(bytes, name)| (bytes.parse().unwrap_or(0), name))
        .collect();
    let forget = || fs::remove_file(&path).map_err(|error| failed("remove", &path, &error));
    if listed.is_empty() {
        return forget();
    }
    // The list may be damaged.
    let all = listed.iter().map(|(bytes, _)| *bytes);
    if all.fold(0, u64::saturating_add) < bytes {
        return Ok(());
    }
    let mut packs = packs::all(repository)?;
    packs.retain(|pack| {
        let name = pack.path.file_name().and_then(|name| name.to_str());
        !pack.is_kept() && listed.iter().any(|(_, listed)| name == Some(listed))
    });
    let packs: Vec<&Pack> = packs.iter().collect();
    if let Some(made) = packs::combine(repository, &packs, |_| true, cancel)? {
        let old = packs.into_iter().filter(|pack| pack.path != made.path);
        packs::remove(repository, old)?;
    }
    forget()
}
