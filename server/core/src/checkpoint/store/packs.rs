//! Lists, combines and removes the packs of a store.

use std::{
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    object::{Kind, Oid},
    object_reader::ObjectReader,
    pack::Pack,
    pack_writer::{KEEP, PackWriter},
    repository::Repository,
};
use crate::{
    cancel::Cancel,
    error::Error,
    storage::atomic_file::{failed, not_a_regular_file, read_text, sync_dir},
};

/// Age at which a pack without an index counts as abandoned.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Lists every pack of the store.
///
/// # Errors
/// `storage` if one cannot be read.
pub(crate) fn all(repository: &Repository) -> Result<Vec<Pack>, Error> {
    let dir = repository.pack_dir();
    let entries = fs::read_dir(&dir).map_err(|error| failed("list", &dir, &error))?;
    let mut packs = Vec::new();
    for entry in entries.flatten() {
        let index = entry.path();
        if index
            .extension()
            .is_some_and(|extension| extension == "idx")
        {
            packs.push(Pack::open(&index.with_extension("pack"), u64::MAX)?);
        }
    }
    Ok(packs)
}

/// Writes the wanted objects of some packs into one new pack, and returns it. Returns `None` if no
/// object is wanted. If it is cancelled or fails, nothing has changed.
pub(crate) fn combine(
    repository: &Repository,
    from: &[&Pack],
    is_wanted: impl Fn(Oid) -> bool,
    cancel: &Cancel,
) -> Result<Option<Pack>, Error> {
    let reader = repository.reader();
    let writer = PackWriter::new(repository)?;
    let mut wanted = Vec::new();
    for pack in from {
        wanted.extend(pack.objects().into_iter().filter(|oid| is_wanted(*oid)));
    }
    for oid in &wanted {
        cancel.check()?;
        if !writer.has(*oid) {
            copy(&reader, &writer, *oid)?;
        }
    }
    let Some(kept) = writer.finish()? else {
        return Ok(None);
    };
    let made = Pack::open(&kept.path, u64::MAX)?;
    if wanted.iter().all(|oid| made.has(*oid)) {
        return Ok(Some(made));
    }
    Err(Error::storage(format!(
        "{} is incomplete; nothing was removed; verify the checkpoints to see which are intact",
        kept.path.display()
    )))
}

/// Copies an object, and resolves deltas.
pub(crate) fn copy(reader: &ObjectReader, writer: &PackWriter<'_>, oid: Oid) -> Result<(), Error> {
    let (kind, bytes) = reader
        .read_any(oid)
        .map_err(|why| reader.unreadable(Kind::Blob, oid, why))?;
    writer.put(kind, oid, &bytes)
}

/// Removes packs, their index first, so that no reader finds a partial pack. Returns false if some
/// files are still open elsewhere (on Windows).
pub(crate) fn remove<'a>(
    repository: &Repository,
    packs: impl Iterator<Item = &'a Pack>,
) -> Result<bool, Error> {
    let mut all_gone = true;
    let mut any = false;
    for pack in packs {
        if !any {
            // Files that git derived from the previous packs.
            let objects = repository.dir().join("objects");
            all_gone &= is_gone(&objects.join("pack/multi-pack-index"));
            all_gone &= is_gone(&objects.join("info/commit-graph"));
            let _ = fs::remove_dir_all(objects.join("info/commit-graphs"));
            any = true;
        }
        if !is_gone(&pack.path().with_extension("idx")) {
            all_gone = false;
            continue;
        }
        for part in ["pack", "rev", "bitmap", "mtimes"] {
            all_gone &= is_gone(&pack.path().with_extension(part));
        }
    }
    if any {
        sync_dir(&repository.pack_dir())?;
    }
    Ok(all_gone)
}

fn is_gone(path: &Path) -> bool {
    match fs::remove_file(path) {
        Ok(()) => true,
        Err(error) => error.kind() == Io::NotFound,
    }
}

/// Lists the loose objects that git wrote.
pub(crate) fn loose_objects(repository: &Repository) -> Vec<(Oid, PathBuf)> {
    let mut found = Vec::new();
    let objects = repository.dir().join("objects");
    for folder in fs::read_dir(&objects).into_iter().flatten().flatten() {
        let start = folder.file_name();
        let Some(start) = start.to_str().filter(|name| name.len() == 2) else {
            continue;
        };
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let rest = entry.file_name();
            let name = rest.to_str().map(|rest| format!("{start}{rest}"));
            let oid = name.and_then(|name| super::refs::plain_id(&name));
            found.extend(oid.map(|oid| (oid, entry.path())));
        }
    }
    found
}

/// Removes the `.keep` files of killed writers. The caller holds the lock.
pub(crate) fn remove_stale_keeps(repository: &Repository) {
    let entries = fs::read_dir(repository.pack_dir());
    for entry in entries.into_iter().flatten().flatten() {
        let path = entry.path();
        let is_keep = path
            .extension()
            .is_some_and(|extension| extension == "keep");
        // git's own files are empty or name their writer. One of ours may be truncated.
        let is_ours = || {
            let is_short = entry.metadata().is_ok_and(|found| found.len() <= 64);
            let is_start = |text: String| !text.is_empty() && KEEP.starts_with(text.as_bytes());
            is_short && read_text(&path).is_ok_and(is_start)
        };
        if is_keep && is_ours() {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Removes old packs without an index. Like git, the server renames a pack into place before its
/// index.
pub(crate) fn remove_orphans(repository: &Repository) {
    for entry in fs::read_dir(repository.pack_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        let is_pack = path
            .extension()
            .is_some_and(|extension| extension == "pack");
        let is_old = || {
            let written = entry.metadata().and_then(|found| found.modified());
            written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE))
        };
        if is_pack && !path.with_extension("idx").exists() && is_old() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Refuses a store that contains links, pipes or devices: git would follow them or block.
pub(crate) fn require_regular_files(dir: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(dir).map_err(|error| failed("list", dir, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("list", dir, &error))?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => require_regular_files(&entry.path())?,
            Ok(kind) if !kind.is_file() => return Err(not_a_regular_file(&entry.path())),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the total size of all files below a folder, in bytes.
pub(crate) fn dir_size(dir: &Path) -> u64 {
    let mut total = 0;
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => total += found.len(),
                Err(_) => {}
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{
        Keep,
        store::object::Mode,
        testing::{Scratch, git, noise},
    };

    fn keep(pack: &Pack) {
        fs::write(pack.path().with_extension("keep"), "mine\n").unwrap();
    }

    #[test]
    fn a_kept_pack_is_not_pruned() {
        let scratch = Scratch::new();
        let checkpoint = |at: u64| scratch.checkpoint(at, &[(b"f", &noise(at, 100), Mode::File)]);
        let gone = [1, 2].map(checkpoint);
        let packs = all(&scratch.repository()).unwrap();
        let of_first = packs.iter().find(|pack| pack.has(gone[0])).unwrap();
        keep(of_first);
        checkpoint(3);
        let newest = Keep {
            newest: Some(1),
            ..Keep::default()
        };
        let pruned = scratch.checkpoints.prune(&newest, &Cancel::default());
        assert_eq!(pruned.unwrap().removed.len(), 2);
        for pack in &packs {
            assert_eq!(pack.path().exists(), pack.path() == of_first.path());
        }
    }

    #[test]
    fn a_kept_pack_is_not_combined() {
        let scratch = Scratch::new();
        let folded = |kept: bool| {
            for at in 0..60 {
                scratch.checkpoint(at + 1, &[(b"f", &noise(at, 100), Mode::File)]);
            }
            let pack = all(&scratch.repository()).unwrap().remove(0);
            if kept {
                keep(&pack);
            }
            scratch.checkpoints.tidy(&Cancel::default()).unwrap();
            let left = all(&scratch.repository()).unwrap();
            assert!(left.len() < 5, "{}", left.len());
            !pack.path().exists()
        };
        assert!(!folded(true));
    }

    #[test]
    fn pruning_does_not_make_a_store_larger() {
        let scratch = Scratch::new();
        let mut content = noise(1, 100_000);
        for at in 0..10 {
            content[at * 1000] ^= 1;
            let file = (&b"f"[..], &content[..], Mode::File);
            scratch.checkpoint(at as u64 + 1, &[file]);
        }
        // Deltas are much smaller than the objects they encode.
        git(&scratch.dir(), &["repack", "-adfq"]);
        let before = dir_size(&scratch.dir());
        let newest = Keep {
            newest: Some(9),
            ..Keep::default()
        };
        let pruned = scratch.checkpoints.prune(&newest, &Cancel::default());
        assert_eq!(pruned.unwrap().removed.len(), 1);
        assert!(dir_size(&scratch.dir()) < before + 10_000);
        assert_eq!(scratch.verify(), [""; 0]);
    }
}
