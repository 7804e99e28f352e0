//! Removes unreachable objects, and combines small packs.
//!
//! Packs without reachable objects are removed, fully reachable packs stay, and the reachable
//! objects of the others are copied to a new pack.

use std::{
    collections::HashSet,
    fs,
    io::ErrorKind as Io,
    path::{Path, PathBuf},
    time::Duration,
};

use sightline_base::{
    cancel::Cancel,
    storage::atomic_file::{failed, sync_dir, write},
};

use super::{
    annotations::{FETCHED, LABELS},
    lock::StoreLock,
    loose,
    object::{Kind, Oid},
    odb::Odb,
    pack::Pack,
    pack::writer::{FinishedPack, PackWriter, remove_unfinished},
    refs,
    repository::Repository,
};
use crate::error::Error;

/// Exists while objects are being removed, so that the next run finishes an interrupted one.
const MARKER: &str = "unpruned";
/// Number of packs above which small packs are combined.
const MAX_PACKS: usize = 50;
/// Number of loose refs above which they are packed.
const MAX_LOOSE_REFS: usize = 50;
/// Age at which a pack without an index counts as abandoned.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Returns whether an earlier run was interrupted.
pub(crate) fn is_interrupted(repository: &Repository) -> bool {
    repository.dir().join(MARKER).exists()
}

/// Removes refs, and then all objects except the `reachable` ones. The caller holds the lock.
pub(crate) fn remove(
    repository: &Repository,
    is_removed: impl Fn(&str) -> bool,
    reachable: &HashSet<Oid>,
) -> Result<(), Error> {
    let dir = repository.dir();
    let marker = dir.join(MARKER);
    repository.next_generation()?;
    write(&marker, b"")?;
    refs::remove(dir, is_removed)?;
    FETCHED.retain(dir)?;
    LABELS.retain(dir)?;
    if remove_objects(repository, |oid| reachable.contains(&oid))? {
        fs::remove_file(&marker).map_err(|error| failed("remove", &marker, error))?;
        sync_dir(dir)?;
    }
    Ok(())
}

/// Returns whether there are so many packs that small ones should be combined.
pub(crate) fn has_many_packs(repository: &Repository) -> bool {
    let entries = fs::read_dir(repository.pack_dir()).into_iter().flatten();
    entries.count() > 2 * MAX_PACKS
}

/// Packs refs, and removes abandoned packs. The caller holds the lock.
pub(crate) fn tidy(repository: &Repository) -> Result<(), Error> {
    remove_orphans(repository);
    refs::pack(repository.dir(), MAX_LOOSE_REFS)
}

/// Combines small packs, so that each remaining pack is more than twice as large as all smaller ones
/// together. This bounds how often an object is copied. Removes no object.
///
/// The copies are in `folder`, where the next open of the store does not remove them. Only once they are
/// complete, `lock` takes the lock: checkpoints do not wait for them.
///
/// # Errors
/// `conflict` if another process has changed the packs; `cancelled`; those of `lock`; `storage`. Nothing
/// has changed then.
pub(crate) fn combine_small_packs(
    repository: &Repository,
    folder: &Path,
    lock: impl FnOnce() -> Result<StoreLock, Error>,
    cancel: &Cancel,
) -> Result<(), Error> {
    let packs = small_packs(repository)?;
    if packs.is_empty() {
        return Ok(());
    }
    let paths: Vec<PathBuf> = packs.iter().map(|pack| pack.path().to_owned()).collect();
    let is_changed = || !paths.iter().all(|path| path.exists());
    let conflict = || Error::Conflict("another process has changed the packs".to_owned());
    // Those of a killed process, and the file of another one, which starts again then.
    remove_unfinished(folder);
    let writer = PackWriter::with_temp_folder(repository.dir(), folder)?;
    let combined = match Combined::new(repository, packs, writer, |_| true, cancel) {
        Err(_) if is_changed() => return Err(conflict()),
        combined => combined?,
    };
    let _lock = lock()?;
    if is_changed() {
        return Err(conflict());
    }
    combined.replace(repository, false).map(drop)
}

/// Returns the packs to combine. None if there are few packs.
fn small_packs(repository: &Repository) -> Result<Vec<Pack>, Error> {
    if !has_many_packs(repository) {
        return Ok(Vec::new());
    }
    let mut packs = repository.packs()?;
    packs.retain(|pack| !pack.is_kept());
    packs.sort_unstable_by_key(Pack::len);
    if packs.len() <= MAX_PACKS {
        return Ok(Vec::new());
    }
    let (mut smaller, mut small) = (0, 0);
    for (at, pack) in packs.iter().enumerate() {
        if pack.len() < 2 * smaller {
            small = at + 1;
        }
        smaller += pack.len();
    }
    packs.truncate(if small > 1 { small } else { 0 });
    Ok(packs)
}

/// Removes unreachable objects. Returns whether all of them are gone.
fn remove_objects(
    repository: &Repository,
    is_reachable: impl Fn(Oid) -> bool,
) -> Result<bool, Error> {
    let (mut mixed, mut unreachable) = (Vec::new(), Vec::new());
    for pack in repository.packs()? {
        let objects = pack.objects();
        let reachable = objects.iter().filter(|oid| is_reachable(**oid)).count();
        if pack.is_kept() || reachable == objects.len() {
            continue;
        }
        if reachable == 0 {
            unreachable.push(pack.path().to_path_buf());
        } else {
            mixed.push(pack);
        }
    }
    // First the removals that need no extra space.
    let mut all_gone = remove_packs(repository, &unreachable)?;
    for (oid, path) in loose::all(&repository.dir().join("objects")) {
        if !is_reachable(oid) {
            fs::remove_file(&path).map_err(|error| failed("remove", &path, error))?;
        }
    }
    if !mixed.is_empty() {
        let writer = PackWriter::new(repository.dir())?;
        let cancel = Cancel::default();
        all_gone &= Combined::new(repository, mixed, writer, is_reachable, &cancel)?
            .replace(repository, true)?;
    }
    Ok(all_gone)
}

/// A new pack with the wanted objects of others, which is not in place yet.
struct Combined {
    /// The other packs.
    paths: Vec<PathBuf>,
    /// Their size, in bytes.
    size: u64,
    wanted: Vec<Oid>,
    /// `None` without objects.
    pack: Option<FinishedPack>,
}

impl Combined {
    fn new(
        repository: &Repository,
        packs: Vec<Pack>,
        writer: PackWriter,
        is_wanted: impl Fn(Oid) -> bool,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        let mut wanted: Vec<Oid> = packs.iter().flat_map(Pack::objects).collect();
        wanted.retain(|oid| is_wanted(*oid));
        let paths = packs.iter().map(|pack| pack.path().to_owned()).collect();
        let size = packs.iter().map(Pack::len).sum();
        // Windows does not remove open files.
        drop(packs);
        let reader = repository.odb();
        for oid in &wanted {
            cancel.check()?;
            if !writer.has(*oid) {
                copy(&reader, &writer, *oid)?;
            }
        }
        Ok(Self {
            paths,
            size,
            wanted,
            pack: writer.complete(|| Ok(()))?,
        })
    }

    /// Moves the new pack into place and removes the others. With `only_if_smaller`, keeps them instead if
    /// it is not smaller: git stores deltas. Returns whether all packs to remove are gone.
    fn replace(self, repository: &Repository, only_if_smaller: bool) -> Result<bool, Error> {
        let Some(pack) = self.pack else {
            return Ok(true);
        };
        let kept = pack.move_into_place()?;
        sync_dir(&repository.pack_dir())?;
        let made = Pack::open(&kept.path, u64::MAX)?;
        if !self.wanted.iter().all(|oid| made.has(*oid)) {
            return Err(Error::damaged(format!(
                "{} is incomplete; nothing was removed; verify the checkpoints to see which are intact",
                kept.path.display()
            )));
        }
        let mut removed = self.paths;
        // The same objects in the same order.
        let is_new = !removed.contains(&kept.path);
        removed.retain(|path| *path != kept.path);
        if only_if_smaller && is_new && made.len() >= self.size {
            removed = vec![kept.path.clone()];
        }
        drop(made);
        remove_packs(repository, &removed)
    }
}

/// Copies an object, and resolves deltas.
pub(crate) fn copy(reader: &Odb, writer: &PackWriter, oid: Oid) -> Result<(), Error> {
    let (kind, bytes) = reader
        .read_any(oid)
        .map_err(|why| reader.unreadable(Kind::Blob, oid, why))?;
    writer.put(kind, oid, &bytes)
}

/// Removes packs, their index first, so that no reader finds a partial pack. Returns false if some
/// files are still open elsewhere (on Windows).
fn remove_packs(repository: &Repository, packs: &[PathBuf]) -> Result<bool, Error> {
    if packs.is_empty() {
        return Ok(true);
    }
    repository.odb().close();
    // Files that git derived from the previous packs.
    let objects = repository.dir().join("objects");
    let mut all_gone = is_gone(&objects.join("pack/multi-pack-index"))
        & is_gone(&objects.join("info/commit-graph"));
    let _ = fs::remove_dir_all(objects.join("info/commit-graphs"));
    for pack in packs {
        if !is_gone(&pack.with_extension("idx")) {
            all_gone = false;
            continue;
        }
        for part in ["pack", "rev", "bitmap", "mtimes"] {
            all_gone &= is_gone(&pack.with_extension(part));
        }
    }
    sync_dir(&repository.pack_dir())?;
    Ok(all_gone)
}

fn is_gone(path: &Path) -> bool {
    match fs::remove_file(path) {
        Ok(()) => true,
        Err(error) => error.kind() == Io::NotFound,
    }
}

/// Removes old packs without an index. Like git, the server renames a pack into place before its
/// index.
fn remove_orphans(repository: &Repository) {
    let entries = fs::read_dir(repository.pack_dir()).into_iter().flatten();
    for entry in entries.flatten() {
        let path = entry.path();
        let is_pack = path.extension().is_some_and(|kind| kind == "pack");
        let is_old = || {
            let written = entry.metadata().and_then(|found| found.modified());
            written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE))
        };
        let has_no_index = || matches!(path.with_extension("idx").try_exists(), Ok(false));
        if is_pack && has_no_index() && is_old() {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        prune::Keep,
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
        let packs = scratch.repository().packs().unwrap();
        let of_first = packs.iter().find(|pack| pack.has(gone[0])).unwrap();
        keep(of_first);
        let kept = of_first.path().to_owned();
        let paths: Vec<_> = packs.iter().map(|pack| pack.path().to_owned()).collect();
        // Windows does not remove a file that is mapped.
        drop(packs);
        checkpoint(3);
        let newest = Keep {
            newest: Some(1),
            ..Keep::default()
        };
        let pruned = scratch.checkpoints.prune(&newest, &Cancel::default());
        assert_eq!(pruned.unwrap().removed.len(), 2);
        for path in paths {
            assert_eq!(path.exists(), path == kept);
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_packs_without_an_index_are_abandoned() {
        let scratch = Scratch::new();
        scratch.checkpoint(1, &[]);
        let repository = scratch.repository();
        let old = std::time::SystemTime::now() - 2 * STALE;
        let pack = |name: &str| {
            let path = repository.pack_dir().join(name).with_extension("pack");
            let file = fs::File::create(&path).unwrap();
            file.set_modified(old).unwrap();
            path
        };
        let (abandoned, unknown) = (pack("pack-a"), pack("pack-b"));
        // Its index cannot be inspected.
        let index = unknown.with_extension("idx");
        std::os::unix::fs::symlink(&index, &index).unwrap();
        remove_orphans(&repository);
        assert!(!abandoned.exists() && unknown.exists());
    }

    #[test]
    fn a_kept_pack_is_not_combined() {
        let scratch = Scratch::new();
        let folded = |kept: bool| {
            for at in 0..60 {
                scratch.checkpoint(at + 1, &[(b"f", &noise(at, 100), Mode::File)]);
            }
            let pack = scratch.repository().packs().unwrap().remove(0);
            if kept {
                keep(&pack);
            }
            scratch.checkpoints.tidy(&Cancel::default()).unwrap();
            let left = scratch.repository().packs().unwrap();
            assert!(left.len() < 5, "{}", left.len());
            !pack.path().exists()
        };
        assert!(!folded(true));
    }

    /// Combines packs, and runs `during` between the copies and the lock.
    fn combine(scratch: &Scratch, during: impl FnOnce()) -> Result<(), Error> {
        let lock = || {
            during();
            Ok(scratch.lock())
        };
        let folder = scratch.folder.path();
        combine_small_packs(&scratch.repository(), folder, lock, &Cancel::default())
    }

    #[test]
    fn the_packs_of_a_store_that_is_never_idle_are_combined() {
        let scratch = Scratch::new();
        for at in 0..200 {
            scratch.checkpoint(at + 1, &[(b"f", &noise(at, 30_000), Mode::File)]);
            combine(&scratch, || {}).unwrap();
            let count = scratch.repository().packs().unwrap().len();
            assert!(count <= MAX_PACKS, "{count}");
        }
        assert_eq!(scratch.verify(), [""; 0]);
        git(&scratch.dir(), &["fsck", "--strict"]);
    }

    #[test]
    fn a_checkpoint_does_not_wait_for_a_combination() {
        let scratch = Scratch::new();
        for at in 0..60 {
            scratch.checkpoint(at + 1, &[(b"f", &noise(at, 30_000), Mode::File)]);
        }
        // Takes the lock.
        let create = || {
            scratch.checkpoint(61, &[(b"f", b"new", Mode::File)]);
        };
        combine(&scratch, create).unwrap();
        assert_eq!(scratch.ids().len(), 61);
        assert_eq!(scratch.repository().packs().unwrap().len(), 2);
        assert_eq!(scratch.verify(), [""; 0]);
        git(&scratch.dir(), &["fsck", "--strict"]);
    }

    #[test]
    fn a_combination_that_another_process_disturbs_changes_nothing() {
        let scratch = Scratch::new();
        for at in 0..60 {
            scratch.checkpoint(at + 1, &[(b"f", &noise(at, 30_000), Mode::File)]);
        }
        // With the same result, and without its temporary files.
        let other = || combine(&scratch, || {}).unwrap();
        let error = combine(&scratch, other).unwrap_err();
        assert!(matches!(error, Error::Conflict(_)), "{error}");
        assert_eq!(scratch.repository().packs().unwrap().len(), 1);
        let keep = Keep {
            newest: Some(30),
            ..Keep::default()
        };
        for at in 60..120 {
            scratch.checkpoint(at + 1, &[(b"f", &noise(at, 30_000), Mode::File)]);
        }
        let prune = || {
            drop(
                scratch
                    .checkpoints
                    .prune(&keep, &Cancel::default())
                    .unwrap(),
            )
        };
        let error = combine(&scratch, prune).unwrap_err();
        assert!(matches!(error, Error::Conflict(_)), "{error}");
        assert_eq!(scratch.ids().len(), 30);
        assert_eq!(scratch.verify(), [""; 0]);
        git(&scratch.dir(), &["fsck", "--strict"]);
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
        let before = scratch.repository().size();
        let newest = Keep {
            newest: Some(9),
            ..Keep::default()
        };
        let pruned = scratch.checkpoints.prune(&newest, &Cancel::default());
        assert_eq!(pruned.unwrap().removed.len(), 1);
        assert!(scratch.repository().size() < before + 10_000);
        assert_eq!(scratch.verify(), [""; 0]);
    }
}
