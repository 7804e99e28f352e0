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
    loose,
    object::{Kind, Oid},
    odb::Odb,
    pack::Pack,
    pack::writer::{PackWriter, remove_unfinished},
    refs,
    repository::Repository,
};
use crate::error::Error;

/// Exists while objects are being removed, so that the next run finishes an interrupted one.
const MARKER: &str = "unpruned";
/// Number of packs above which small packs are combined.
const MAX_PACKS: usize = 50;
/// Minimum amount that a step of a combination copies, in packs of average size.
const PACKS_PER_STEP: u64 = 4;
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

/// Packs refs, removes abandoned packs, and combines small packs, so that each remaining pack is
/// more than twice as large as all smaller ones together. This bounds how often an object is copied.
/// Removes no object. The caller holds the lock.
///
/// Copies about `max_bytes`. Packs that are larger in total are combined by several calls, which keep what is not
/// finished in `unfinished`, and its file in `folder`.
pub(crate) fn tidy(
    repository: &Repository,
    (unfinished, folder): (&mut Option<Combination>, &Path),
    max_bytes: u64,
    cancel: &Cancel,
) -> Result<(), Error> {
    refs::pack(repository.dir(), MAX_LOOSE_REFS)?;
    remove_orphans(repository);
    let mut combination = unfinished.take();
    if combination.is_none() {
        let packs = small_packs(repository, &[], u64::MAX)?;
        if packs.iter().map(Pack::len).sum::<u64>() > max_bytes {
            combination = Some(Combination::new(repository, folder, &packs)?);
        }
    }
    let busy = combination.as_ref().map_or(&[][..], |found| &found.paths);
    let packs = small_packs(repository, busy, max_bytes)?;
    combine(repository, packs, |_| true, false, cancel)?;
    if let Some(mut combination) = combination {
        if combination.copy_some(repository, max_bytes, cancel)? {
            combination.finish(repository)?;
        } else {
            *unfinished = Some(combination);
        }
    }
    Ok(())
}

/// Returns the packs to combine, of at most `max_bytes` in total. None if there are few packs besides
/// those in `without`.
fn small_packs(
    repository: &Repository,
    without: &[PathBuf],
    max_bytes: u64,
) -> Result<Vec<Pack>, Error> {
    if !has_many_packs(repository) {
        return Ok(Vec::new());
    }
    let mut packs = repository.packs()?;
    packs.retain(|pack| !pack.is_kept() && !without.iter().any(|path| path == pack.path()));
    packs.sort_unstable_by_key(Pack::len);
    if packs.len() <= MAX_PACKS {
        return Ok(Vec::new());
    }
    let (mut smaller, mut small) = (0_u64, 0);
    for (at, pack) in packs.iter().enumerate() {
        if smaller.saturating_add(pack.len()) > max_bytes {
            break;
        }
        if pack.len() < 2 * smaller {
            small = at + 1;
        }
        smaller += pack.len();
    }
    packs.truncate(if small > 1 { small } else { 0 });
    Ok(packs)
}

/// The combination of packs that are too large to be combined at once. Dropped, it has changed nothing.
#[derive(Debug)]
pub(crate) struct Combination {
    /// The packs that are combined.
    paths: Vec<PathBuf>,
    /// Their objects, in the order in which they are copied.
    objects: Vec<Oid>,
    /// Number of objects that are copied.
    copied: usize,
    /// Average size of the packs, in bytes.
    average: u64,
    writer: PackWriter,
}

impl Combination {
    /// Removes what a killed process left in `folder`, and the file of another process, which starts
    /// again then.
    fn new(repository: &Repository, folder: &Path, packs: &[Pack]) -> Result<Self, Error> {
        remove_unfinished(folder);
        let mut seen = HashSet::new();
        let mut objects: Vec<Oid> = packs.iter().flat_map(Pack::objects).collect();
        objects.retain(|oid| seen.insert(*oid));
        let count = u32::try_from(objects.len()).unwrap_or(u32::MAX);
        Ok(Self {
            paths: packs.iter().map(|pack| pack.path().to_owned()).collect(),
            objects,
            copied: 0,
            average: packs.iter().map(Pack::len).sum::<u64>() / packs.len().max(1) as u64,
            writer: PackWriter::with_count(repository.dir(), folder, count)?,
        })
    }

    /// Copies objects until they have `max_bytes`, or several times the average of the packs: fewer would
    /// not keep up with checkpoints of this size. Returns whether all are copied.
    ///
    /// # Errors
    /// `conflict` if another process has changed the packs; `cancelled`; `storage`.
    fn copy_some(
        &mut self,
        repository: &Repository,
        max_bytes: u64,
        cancel: &Cancel,
    ) -> Result<bool, Error> {
        let reader = repository.odb();
        let max_bytes = max_bytes.max(PACKS_PER_STEP * self.average);
        let mut bytes = 0_u64;
        while let Some(oid) = self.objects.get(self.copied) {
            cancel.check()?;
            bytes += copy(&reader, &self.writer, *oid)?;
            self.copied += 1;
            if bytes >= max_bytes {
                break;
            }
        }
        // Another process removes it to start its own.
        if !self.writer.flush()? || !self.paths.iter().all(|path| path.exists()) {
            return Err(Error::conflict("another process has combined the packs"));
        }
        Ok(self.copied == self.objects.len())
    }

    fn finish(self, repository: &Repository) -> Result<bool, Error> {
        replace_packs(repository, self.writer, &self.objects, self.paths, None)
    }
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
        all_gone &= combine(repository, mixed, is_reachable, true, &Cancel::default())?;
    }
    Ok(all_gone)
}

/// Copies the wanted objects of some packs into a new pack, and removes these packs. With
/// `only_if_smaller`, keeps them if the new one is not smaller: git stores deltas. Returns whether
/// all packs to remove are gone. If it is cancelled or fails, nothing has changed.
fn combine(
    repository: &Repository,
    packs: Vec<Pack>,
    is_wanted: impl Fn(Oid) -> bool,
    only_if_smaller: bool,
    cancel: &Cancel,
) -> Result<bool, Error> {
    if packs.is_empty() {
        return Ok(true);
    }
    let reader = repository.odb();
    let writer = PackWriter::new(repository.dir())?;
    let mut wanted: Vec<Oid> = packs.iter().flat_map(Pack::objects).collect();
    wanted.retain(|oid| is_wanted(*oid));
    for oid in &wanted {
        cancel.check()?;
        if !writer.has(*oid) {
            copy(&reader, &writer, *oid)?;
        }
    }
    let size: u64 = packs.iter().map(Pack::len).sum();
    let paths = packs.iter().map(|pack| pack.path().to_owned()).collect();
    // Windows does not remove open files.
    drop(packs);
    replace_packs(
        repository,
        writer,
        &wanted,
        paths,
        only_if_smaller.then_some(size),
    )
}

/// Finishes a pack with all `wanted` objects of other packs, and removes these packs, or the new one if
/// it is not smaller than `less_than` bytes. Returns whether all packs to remove are gone.
fn replace_packs(
    repository: &Repository,
    writer: PackWriter,
    wanted: &[Oid],
    paths: Vec<PathBuf>,
    less_than: Option<u64>,
) -> Result<bool, Error> {
    let Some(kept) = writer.finish()? else {
        return Ok(true);
    };
    let made = Pack::open(&kept.path, u64::MAX)?;
    if !wanted.iter().all(|oid| made.has(*oid)) {
        return Err(Error::damaged(format!(
            "{} is incomplete; nothing was removed; verify the checkpoints to see which are intact",
            kept.path.display()
        )));
    }
    let count = paths.len();
    let mut removed: Vec<PathBuf> = paths
        .into_iter()
        .filter(|path| *path != kept.path)
        .collect();
    if less_than.is_some_and(|size| made.len() >= size) && removed.len() == count {
        removed = vec![kept.path.clone()];
    }
    drop(made);
    remove_packs(repository, &removed)
}

/// Copies an object, and resolves deltas. Returns its size.
pub(crate) fn copy(reader: &Odb, writer: &PackWriter, oid: Oid) -> Result<u64, Error> {
    let (kind, bytes) = reader
        .read_any(oid)
        .map_err(|why| reader.unreadable(Kind::Blob, oid, why))?;
    writer.put(kind, oid, &bytes)?;
    Ok(bytes.len() as u64)
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

    /// A store that is never idle, with packs that are larger than what a call copies.
    #[test]
    fn large_packs_are_combined_in_steps() {
        const STEP: u64 = 25_000;
        let scratch = Scratch::new();
        let mut unfinished = None;
        let mut most = 0;
        let folder = scratch.folder.path();
        for at in 0..200 {
            scratch.checkpoint(at + 1, &[(b"f", &noise(at, 30_000), Mode::File)]);
            let repository = scratch.repository();
            let written = || -> u64 {
                let entries = fs::read_dir(folder).unwrap().flatten();
                let unfinished =
                    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("tmp_"));
                unfinished
                    .map(|entry| entry.metadata().unwrap().len())
                    .sum()
            };
            let before = written();
            let unfinished = (&mut unfinished, folder);
            tidy(&repository, unfinished, STEP, &Cancel::default()).unwrap();
            // A step copies whole objects, through a buffer.
            assert!(written() <= before + 400_000 + (1 << 20), "{at}");
            most = most.max(repository.packs().unwrap().len());
        }
        assert!(most < 80, "{most}");
        assert_eq!(scratch.verify(), [""; 0]);
        git(&scratch.dir(), &["fsck", "--strict"]);
    }

    #[test]
    fn a_combination_that_another_process_disturbs_changes_nothing() {
        let scratch = Scratch::new();
        for at in 0..60 {
            scratch.checkpoint(at + 1, &[(b"f", &noise(at, 30_000), Mode::File)]);
        }
        let repository = scratch.repository();
        let mut unfinished = None;
        let folder = scratch.folder.path();
        let mut step = || {
            let unfinished = (&mut unfinished, folder);
            tidy(&repository, unfinished, 1_200_000, &Cancel::default())
        };
        step().unwrap();
        remove_unfinished(folder);
        assert!(step().is_err());
        assert!((0..9).all(|_| step().is_ok()));
        assert!(repository.packs().unwrap().len() < 5);
        assert_eq!(scratch.verify(), [""; 0]);
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
