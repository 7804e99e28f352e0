//! Detects a damaged store, and rebuilds it from the checkpoints that are still intact. The damaged
//! store is kept next to the new one.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs,
    io::{self, ErrorKind as Io},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use sightline_base::{
    cancel::Cancel,
    clock::now_millis,
    storage::{
        Storage,
        atomic_file::{failed, is_dir, open_regular, restrict_permissions, sync_dir},
    },
};

use super::{
    annotations::{FETCHED, LABELS},
    fsck::{IsCheckpoint, check_checkpoints},
    gc,
    object::Oid,
    pack::writer::PackWriter,
    reachable::ReachableSet,
    refs,
    repository::Repository,
};
use crate::error::Error;

/// Delay before apparent damage is checked again.
const RECHECK_DELAY: Duration = Duration::from_millis(100);
/// Maximum time between quick checks of a store that is written to.
const MAX_UNCHECKED: Duration = Duration::from_mins(1);

/// Report of a damaged store that was rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Where the damaged store was moved.
    pub kept: PathBuf,
    /// What was damaged.
    pub reason: String,
    /// Checkpoints that could not be read completely and were dropped.
    pub lost: Vec<Oid>,
}

/// Opens a repository, or creates it. The caller holds the lock. A damaged repository is renamed and
/// rebuilt from the intact checkpoints; the report is returned.
pub(crate) fn open_or_create(
    storage: &Storage,
    dir: &Path,
    is_checkpoint: IsCheckpoint,
) -> Result<(Repository, Option<Rebuilt>), Error> {
    let Some(repository) = Repository::open(dir)? else {
        if !finish_rebuild(dir)? {
            storage.make_dir(dir.parent().unwrap_or(dir))?;
            let unfinished = sibling(dir, "unfinished");
            Repository::make(&unfinished)?;
            fs::rename(&unfinished, dir).map_err(|error| failed("create", dir, error))?;
            sync_dir(dir.parent().unwrap_or(dir))?;
        }
        return Ok((Repository::at(dir), None));
    };
    restrict_permissions(dir, 0o700)?;
    repository.remove_leftovers();
    if let Some(reason) = find_problem(&repository)? {
        let rebuilt = rebuild(&repository, reason, is_checkpoint)?;
        return Ok((Repository::at(dir), Some(rebuilt)));
    }
    refs::repair(dir)?;
    Ok((repository, None))
}

/// Runs the quick checks: the repository's own files, complete packs, and the newest checkpoint.
/// Also returns damage that `verify` recorded.
///
/// # Errors
/// `storage` if the store cannot be accessed, which is not damage.
pub(crate) fn find_problem(repository: &Repository) -> Result<Option<String>, Error> {
    let mut problem = repository.damage()?;
    if problem.is_none() {
        if quick_check(repository)?.is_none() {
            return Ok(None);
        }
        require_access(repository.dir())?;
        // A concurrent `git gc` moves objects between files.
        thread::sleep(RECHECK_DELAY);
        problem = quick_check(repository)?;
    }
    if problem.is_some() {
        require_access(repository.dir())?;
    }
    Ok(problem)
}

/// A verified store, and the state that shows whether it has changed since.
#[derive(Debug)]
pub(crate) struct VerifiedStore {
    repository: Repository,
    newest: Option<Oid>,
    /// File names in the pack folder and the ref folder.
    files: [Vec<OsString>; 2],
    checked_at: Instant,
}

impl VerifiedStore {
    /// Captures the state of a verified store. The caller holds the lock.
    pub(crate) fn of(repository: &Repository) -> Result<Option<Self>, Error> {
        let newest = newest(repository.dir())?;
        Ok(files(repository.dir()).map(|files| Self {
            repository: repository.clone(),
            newest,
            files,
            checked_at: Instant::now(),
        }))
    }

    /// Updates the state after a checkpoint was added. The caller holds the lock.
    pub(crate) fn note_added(&mut self, newest: Oid) {
        self.newest = Some(newest);
        self.files = files(self.repository.dir()).unwrap_or_default();
    }

    /// Returns the store if it has not changed.
    pub(crate) fn reopen_if_unchanged(&self) -> Option<Repository> {
        let dir = self.repository.dir();
        let is_same = self.checked_at.elapsed() < MAX_UNCHECKED
            && fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir())
            && files(dir).is_some_and(|files| files == self.files)
            && matches!(self.repository.damage(), Ok(None))
            && matches!(quick_check_at(&self.repository, self.newest), Ok(None));
        is_same.then(|| self.repository.clone())
    }
}

/// Returns the sorted file names of the pack folder and the ref folder.
fn files(dir: &Path) -> Option<[Vec<OsString>; 2]> {
    let names = |folder: PathBuf| {
        let entries = fs::read_dir(folder).ok()?;
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        let mut names = names.collect::<io::Result<Vec<OsString>>>().ok()?;
        names.sort_unstable();
        Some(names)
    };
    Some([
        names(dir.join("objects/pack"))?,
        names(dir.join(refs::PREFIX))?,
    ])
}

/// Returns the first problem.
///
/// # Errors
/// `storage` if a file cannot be accessed, which is not damage.
fn quick_check(repository: &Repository) -> Result<Option<String>, Error> {
    if let Some(problem) = find_incomplete_pack(&repository.pack_dir())? {
        return Ok(Some(problem));
    }
    match newest(repository.dir()) {
        Ok(newest) => quick_check_at(repository, newest),
        Err(error) => problem_of(error),
    }
}

/// Like [`quick_check`], without the packs, and with a known newest checkpoint.
fn quick_check_at(repository: &Repository, newest: Option<Oid>) -> Result<Option<String>, Error> {
    if let Some(problem) = repository.head_problem()? {
        return Ok(Some(problem));
    }
    if let Err(error) = repository.generation() {
        return problem_of(error);
    }
    if let Some(problem) = repository.open_problem()? {
        return Ok(Some(problem));
    }
    let Some(newest) = newest else {
        return Ok(None);
    };
    let reader = repository.odb();
    let tree = reader
        .commit(newest)
        .and_then(|commit| reader.tree(commit.tree));
    tree.map_or_else(problem_of, |_| Ok(None))
}

/// Returns the description of damage.
fn problem_of(error: Error) -> Result<Option<String>, Error> {
    if error.is_access_failure() {
        return Err(error);
    }
    Ok(Some(error.to_string()))
}

/// Requires that every folder of the store can be listed, and every file opened. Missing entries
/// and wrong types are left to the other checks.
fn require_access(dir: &Path) -> Result<(), Error> {
    let mut folders = vec![dir.to_path_buf()];
    for part in ["objects", "objects/pack", "refs", refs::PREFIX] {
        folders.push(dir.join(part));
    }
    let check_access = |path: &Path, result: io::Result<()>| match result {
        Err(error) if !matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
            Err(failed("access the checkpoint store at", path, error))
        }
        _ => Ok(()),
    };
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                check_access(&folder, Err(error))?;
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    check_access(&folder, Err(error))?;
                    break;
                }
            };
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() => check_access(&path, open_regular(&path).map(drop))?,
                Ok(_) => {}
                Err(error) => check_access(&path, Err(error))?,
            }
        }
    }
    Ok(())
}

/// Finds an index without its pack, or with a truncated file.
fn find_incomplete_pack(packs: &Path) -> Result<Option<String>, Error> {
    let entries = match fs::read_dir(packs) {
        Ok(entries) => entries,
        Err(error) => return problem_of(failed("list", packs, error).into()),
    };
    let is_file = |path: &Path, at_least: u64| match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(metadata.is_file() && metadata.len() >= at_least),
        Err(error) if error.kind() == Io::NotFound => Ok(false),
        Err(error) => Err(failed("inspect", path, error)),
    };
    for entry in entries {
        let index = entry.map_err(|error| failed("list", packs, error))?.path();
        if index.extension() != Some(OsStr::new("idx")) {
            continue;
        }
        // Minimum sizes: tables and checksums without any object.
        let is_whole = is_file(&index, 1072)? && is_file(&index.with_extension("pack"), 32)?;
        // git removes the index first.
        if !is_whole && fs::symlink_metadata(&index).is_ok() {
            let problem = format!("the pack of {} is incomplete", index.display());
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

/// Returns the checkpoint whose ref was written last.
fn newest(dir: &Path) -> Result<Option<Oid>, Error> {
    let loose = refs::loose_ids(dir)?;
    let written = |path: &Path| {
        fs::symlink_metadata(path)
            .and_then(|found| found.modified())
            .ok()
    };
    let newest = loose.into_iter().max_by_key(|(_, path)| written(path));
    match newest {
        Some((id, _)) => Ok(Some(id)),
        None => Ok(refs::ids(dir)?.pop()),
    }
}

/// Returns the path of the store with a suffix added to its name.
fn sibling(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Moves a rebuilt store into place if its rebuild was killed after the damaged store was moved
/// away. Returns whether there was one.
fn finish_rebuild(dir: &Path) -> Result<bool, Error> {
    let rebuilt = sibling(dir, "rebuilt");
    if !is_dir(&rebuilt).map_err(|error| failed("inspect", &rebuilt, error))? {
        return Ok(false);
    }
    fs::rename(&rebuilt, dir).map_err(|error| failed("rename", &rebuilt, error))?;
    sync_dir(dir.parent().unwrap_or(dir))?;
    Ok(true)
}

/// Builds a new store from the intact checkpoints, and moves the damaged store aside.
fn rebuild(
    broken: &Repository,
    reason: String,
    is_checkpoint: IsCheckpoint,
) -> Result<Rebuilt, Error> {
    let dir = broken.dir();
    let parent = dir.parent().unwrap_or(dir);
    let unfinished = sibling(dir, "unfinished");
    let rebuilt = sibling(dir, "rebuilt");
    if rebuilt.is_dir() {
        // Left by a rebuild that was killed before the damaged store was moved away.
        fs::remove_dir_all(&rebuilt).map_err(|error| failed("remove", &rebuilt, error))?;
    }
    let made = Repository::make(&unfinished)?;
    let lost = salvage(broken, &made, is_checkpoint)?;
    let move_to = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|error| failed("rename", from, error))?;
        sync_dir(parent)
    };
    move_to(&unfinished, &rebuilt)?;
    let kept = free_name(dir);
    move_to(dir, &kept)?;
    move_to(&rebuilt, dir)?;
    Ok(Rebuilt { kept, reason, lost })
}

/// Returns an unused name for the damaged store.
fn free_name(dir: &Path) -> PathBuf {
    let millis = now_millis();
    let name = |millis: i64| sibling(dir, &format!("broken-{millis}"));
    (millis..)
        .map(name)
        .find(|free| fs::symlink_metadata(free).is_err())
        .unwrap_or_else(|| name(millis))
}

/// Returns what was read from a damaged store, or nothing if that part is damaged.
fn if_intact<T: Default>(read: Result<T, Error>) -> Result<T, Error> {
    match read {
        Err(error) if !error.is_access_failure() => Ok(T::default()),
        read => read,
    }
}

/// Copies every intact checkpoint. Returns the others.
fn salvage(
    broken: &Repository,
    made: &Repository,
    is_checkpoint: IsCheckpoint,
) -> Result<Vec<Oid>, Error> {
    let ids = match refs::ids(broken.dir()) {
        Err(error) if !error.is_access_failure() => {
            // Falls back to the refs that can be read.
            let loose = if_intact(refs::loose_ids(broken.dir()))?;
            loose.into_iter().map(|(id, _)| id).collect()
        }
        ids => ids?,
    };
    let reader = broken.odb();
    reader.refresh();
    // Not cancellable: half a store is of no use.
    let cancel = Cancel::default();
    let lost: HashSet<Oid> =
        check_checkpoints(&reader, &ids, is_checkpoint, &cancel, &mut |_, _| true)?
            .into_iter()
            .map(|(id, _)| id)
            .collect();
    let (lost, whole): (Vec<Oid>, Vec<Oid>) = ids.into_iter().partition(|id| lost.contains(id));
    let pack = PackWriter::new(made.dir())?;
    let mut reach = ReachableSet::new(&reader);
    for id in &whole {
        for oid in reach.add(*id, &cancel)? {
            gc::copy(&reader, &pack, oid)?;
        }
    }
    let kept = pack.finish()?;
    let fetched = if_intact(FETCHED.all(broken.dir()))?;
    if !fetched.is_empty() {
        FETCHED.write_all(made.dir(), &fetched)?;
    }
    let labels = if_intact(LABELS.all(broken.dir()))?;
    if !labels.is_empty() {
        LABELS.write_all(made.dir(), &labels)?;
    }
    for id in whole {
        made.publish(id)?;
    }
    drop(kept);
    Ok(lost)
}
