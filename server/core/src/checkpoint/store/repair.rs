//! Is a store whole? And what is done when it is not: it is kept aside, and a
//! new one is made of every checkpoint that can still be read in full.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs,
    io::{self, ErrorKind as Io},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    fsck::check_checkpoints,
    pack_writer::PackWriter,
    packs,
    reachable::ReachableSet,
    refs, remote_refs,
    repository::{Rebuilt, Repository},
};
use crate::{
    cancel::Cancel,
    checkpoint::Oid,
    error::Error,
    storage::files::{failed, open_regular, read_text, sync_dir},
};

/// After so long what looked like damage is looked at again.
const RECHECK_DELAY: Duration = Duration::from_millis(100);
/// A store that is written to is looked through so often, whatever is the case.
const MAX_UNCHECKED: Duration = Duration::from_mins(1);

/// What is wrong with a store, looking at what is cheap to look at: its own
/// files, that packs are in pairs, and the newest checkpoint. What someone found
/// by looking at more was noted.
///
/// # Errors
/// `storage` when it can't be looked at, which says nothing about what is in it.
pub(crate) fn find_problem(repository: &Repository) -> Result<Option<String>, Error> {
    if let Some(damage) = repository.damage()? {
        return Ok(Some(damage));
    }
    if quick_check(repository).is_none() {
        return Ok(None);
    }
    require_access(repository.dir())?;
    // Someone may run git in it, which moves objects from file to file.
    thread::sleep(RECHECK_DELAY);
    let Some(problem) = quick_check(repository) else {
        return Ok(None);
    };
    require_access(repository.dir())?;
    Ok(Some(problem))
}

/// A store that was found whole, and what tells that nothing was added to it or
/// taken out since: then it is not looked through again.
#[derive(Debug)]
pub(crate) struct VerifiedStore {
    repository: Repository,
    newest: Option<Oid>,
    /// The files of packs, and the names of checkpoints.
    files: [Vec<OsString>; 2],
    checked_at: Instant,
}

impl VerifiedStore {
    /// The caller holds the lock, and just found it whole.
    pub(crate) fn of(repository: &Repository) -> Result<Option<Self>, Error> {
        let newest = newest(repository.dir())?;
        Ok(files(repository.dir()).map(|files| Self {
            repository: repository.clone().without_rebuilt(),
            newest,
            files,
            checked_at: Instant::now(),
        }))
    }

    /// The caller holds the lock, and just added this checkpoint.
    pub(crate) fn note_added(&mut self, newest: Oid) {
        self.newest = Some(newest);
        self.files = files(self.repository.dir()).unwrap_or_default();
    }

    /// The store, when it still is as it was.
    pub(crate) fn reopen_if_unchanged(&self) -> Option<Repository> {
        let dir = self.repository.dir();
        let is_same = self.checked_at.elapsed() < MAX_UNCHECKED
            && fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir())
            && files(dir).is_some_and(|files| files == self.files)
            && matches!(self.repository.damage(), Ok(None))
            && quick_check_at(&self.repository, self.newest).is_none();
        is_same.then(|| self.repository.clone())
    }
}

/// The sorted names in the two folders where a store grows.
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

fn quick_check(repository: &Repository) -> Option<String> {
    if let Some(problem) = find_incomplete_pack(&repository.pack_dir()) {
        return Some(problem);
    }
    match newest(repository.dir()) {
        Ok(newest) => quick_check_at(repository, newest),
        Err(error) => Some(error.message),
    }
}

/// As [`quick_check`], but for its packs, at this newest checkpoint.
fn quick_check_at(repository: &Repository, newest: Option<Oid>) -> Option<String> {
    let head = read_text(&repository.dir().join("HEAD")).unwrap_or_default();
    if !head.starts_with("ref: refs/") && refs::plain_id(head.trim_end()).is_none() {
        return Some("HEAD names nothing".to_owned());
    }
    if repository.generation().is_err() {
        return Some("its generation is unknown".to_owned());
    }
    if let Some(problem) = repository.open_problem() {
        return Some(problem);
    }
    let reader = repository.reader();
    let tree = reader
        .commit(newest?)
        .and_then(|commit| reader.tree(commit.tree));
    tree.err().map(|error| error.message)
}

/// Every folder of the store can be listed, and every file opened. What is
/// gone, or a file in place of a folder, is for others to judge.
fn require_access(dir: &Path) -> Result<(), Error> {
    let mut folders = vec![dir.to_path_buf()];
    for part in ["objects", "objects/pack", "refs", refs::PREFIX] {
        folders.push(dir.join(part));
    }
    let check_access = |path: &Path, result: io::Result<()>| match result {
        Err(error) if !matches!(error.kind(), Io::NotFound | Io::NotADirectory) => Err(failed(
            "look into the store of checkpoints at",
            path,
            &error,
        )),
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

/// An index without its pack, or one of them without its content.
fn find_incomplete_pack(packs: &Path) -> Option<String> {
    let entries = match fs::read_dir(packs) {
        Ok(entries) => entries,
        Err(error) => return Some(format!("{} can't be read: {error}", packs.display())),
    };
    let is_file = |path: &Path, at_least: u64| {
        let metadata = fs::symlink_metadata(path);
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() >= at_least)
    };
    for entry in entries.flatten() {
        let index = entry.path();
        if index.extension() != Some(OsStr::new("idx")) {
            continue;
        }
        // The smallest there can be: no object, only tables and checksums.
        let is_whole = is_file(&index, 1072) && is_file(&index.with_extension("pack"), 32);
        // git takes an index away first.
        if !is_whole && fs::symlink_metadata(&index).is_ok() {
            return Some(format!("the pack of {} is not whole", index.display()));
        }
    }
    None
}

/// The newest checkpoint by the time its file was written.
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

/// A path beside the store: its name with a suffix.
pub(crate) fn sibling(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// A rebuilt store whose maker was killed before it got into its place: the
/// broken one is kept aside already.
pub(crate) fn finish_rebuild(dir: &Path) -> Result<bool, Error> {
    let rebuilt = sibling(dir, "rebuilt");
    if !rebuilt.is_dir() {
        return Ok(false);
    }
    fs::rename(&rebuilt, dir).map_err(|error| failed("put in place", &rebuilt, &error))?;
    sync_dir(dir.parent().unwrap_or(dir))?;
    Ok(true)
}

/// Makes a new store of what is whole, then keeps the broken one aside.
pub(crate) fn rebuild(broken: &Repository, reason: String) -> Result<Rebuilt, Error> {
    let dir = broken.dir();
    let parent = dir.parent().unwrap_or(dir);
    let unfinished = sibling(dir, "unfinished");
    let rebuilt = sibling(dir, "rebuilt");
    if rebuilt.is_dir() {
        // Of a maker that was killed before the broken one was put aside.
        fs::remove_dir_all(&rebuilt).map_err(|error| failed("remove", &rebuilt, &error))?;
    }
    let made = Repository::make(&unfinished)?;
    let lost = salvage(broken, &made)?;
    let move_to = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|error| failed("rename", from, &error))?;
        sync_dir(parent)
    };
    move_to(&unfinished, &rebuilt)?;
    let kept = free_name(dir);
    move_to(dir, &kept)?;
    move_to(&rebuilt, dir)?;
    Ok(Rebuilt { kept, reason, lost })
}

/// The first free name for a store that is kept aside.
fn free_name(dir: &Path) -> PathBuf {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    let name = |millis: u128| sibling(dir, &format!("broken-{millis}"));
    (millis..)
        .map(name)
        .find(|free| fs::symlink_metadata(free).is_err())
        .unwrap_or_else(|| name(millis))
}

/// Copies every checkpoint that can be read in full; gives the others.
fn salvage(broken: &Repository, made: &Repository) -> Result<Vec<Oid>, Error> {
    let ids = refs::ids(broken.dir()).unwrap_or_else(|_| {
        // Names that can be read are better than none.
        let loose = refs::loose_ids(broken.dir()).unwrap_or_default();
        loose.into_iter().map(|(id, _)| id).collect()
    });
    broken.refresh_packs();
    // Half a store is not for anyone to cancel.
    let cancel = Cancel::default();
    let lost: HashSet<Oid> = check_checkpoints(broken, &ids, None, &cancel, &mut |_, _| true)?
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    let (lost, whole): (Vec<Oid>, Vec<Oid>) = ids.into_iter().partition(|id| lost.contains(id));
    let reader = broken.reader();
    let pack = PackWriter::new(made)?;
    let mut reach = ReachableSet::new(&reader);
    for id in &whole {
        for oid in reach.add(*id, &cancel)? {
            packs::copy(&reader, &pack, oid)?;
        }
    }
    let kept = pack.finish()?;
    let fetched = remote_refs::all(broken.dir()).unwrap_or_default();
    if !fetched.is_empty() {
        remote_refs::write_all(made.dir(), &fetched)?;
    }
    for id in whole {
        made.publish(id)?;
    }
    drop(kept);
    Ok(lost)
}
