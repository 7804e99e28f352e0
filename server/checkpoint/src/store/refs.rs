//! Refs of checkpoints: `refs/checkpoints/<commit id>`, as loose files or in `packed-refs`.
//!
//! The name of a ref already states its commit. The content of its file is for git.
//!
//! Loose refs are found by listing folders, never through a link, so a name in `packed-refs` cannot
//! lead out of the store. `gix-ref` never flushes what it writes, and libgit2 only with an option
//! of the whole process, so both could lose refs in a power failure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, ErrorKind as Io, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use sightline_base::{
    limits::MAX_STATE_FILE_BYTES,
    storage::atomic_file::{failed, is_dir, persist, read_foreign, read_text, sync_dir},
    thread_pool::join,
};
use tempfile::NamedTempFile;

use super::object::Oid;
use crate::error::Error;

/// Prefix of the refs of checkpoints.
pub(crate) const PREFIX: &str = "refs/checkpoints/";
/// Prefix of the refs of fetched commits that are not verified yet.
pub(crate) const INCOMING: &str = "refs/incoming/";
const PACKED: &str = "packed-refs";
const PACKED_LOCK: &str = "packed-refs.lock";
/// First line of `packed-refs`. git and libgit2 write other ones.
const HEADER: &str = "# pack-refs with: sorted \n";
/// Suffix of temporary files, which git does not list as refs.
const UNFINISHED: &str = ".lock";
/// Age at which git's lock file counts as abandoned.
const STALE: Duration = Duration::from_secs(600);

/// A ref in `packed-refs`.
struct PackedRef {
    oid: Oid,
    /// Its line, and the `^` line of an annotated tag.
    lines: String,
}

/// Returns the ids of all checkpoints, sorted and without duplicates.
pub(crate) fn ids(dir: &Path) -> Result<Vec<Oid>, Error> {
    // Packed refs are read last, because packing moves refs from files into them.
    let mut ids: Vec<Oid> = loose_ids(dir)?.into_iter().map(|(id, _)| id).collect();
    let packed = packed_text(dir)?;
    // Every checkpoint reads this, so the other refs are not parsed.
    ids.extend(packed.lines().filter_map(|line| id_of(line.get(41..)?)));
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Returns the ids of checkpoints with a loose ref, and the path of the ref.
pub(crate) fn loose_ids(dir: &Path) -> Result<Vec<(Oid, PathBuf)>, Error> {
    let folder = dir.join(PREFIX);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == Io::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("list", &folder, error).into()),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed("list", &folder, error))?;
        let id = entry.file_name().to_str().and_then(Oid::from_hex);
        ids.extend(id.map(|id| (id, entry.path())));
    }
    Ok(ids)
}

/// Returns every ref of the store and its target, including refs the server did not write, and a
/// detached `HEAD`.
pub(crate) fn all(dir: &Path) -> Result<BTreeMap<String, Oid>, Error> {
    let loose = loose_refs(dir)?;
    let mut refs: BTreeMap<String, Oid> = packed_refs(dir)?
        .into_iter()
        .map(|(name, found)| (name, found.oid))
        .collect();
    for (name, path) in loose {
        let target = match id_of(&name) {
            Some(id) => Some(id),
            None => target_in(&path)?,
        };
        refs.extend(target.map(|target| (name, target)));
    }
    refs.extend(target_in(&dir.join("HEAD"))?.map(|target| ("HEAD".to_owned(), target)));
    Ok(refs)
}

/// Reads the target in the file of a ref. Returns `None` for a symbolic ref, and if the file is gone
/// or is none of a ref.
fn target_in(path: &Path) -> Result<Option<Oid>, Error> {
    let is_file = || fs::symlink_metadata(path).map_or(true, |found| found.is_file());
    match read_text(path) {
        Ok(text) => Ok(Oid::from_hex(text.trim_end())),
        Err(error) if !matches!(error.kind(), Io::NotFound | Io::FileTooLarge) && is_file() => {
            Err(failed("read", path, error).into())
        }
        Err(_) => Ok(None),
    }
}

/// Returns whether a checkpoint has this id.
pub(crate) fn exists(dir: &Path, id: Oid) -> Result<bool, Error> {
    let name = format!("{PREFIX}{id}");
    Ok(fs::symlink_metadata(dir.join(&name)).is_ok() || packed_refs(dir)?.contains_key(&name))
}

/// Writes and flushes the ref of a commit.
pub(crate) fn publish(dir: &Path, id: Oid) -> Result<(), Error> {
    let pending = PendingRef::write(dir, id)?;
    pending.flush()?;
    pending.rename_into_place()?;
    Ok(sync_dir(&dir.join(PREFIX))?)
}

/// A ref in a temporary file; removed on drop unless published.
pub(crate) struct PendingRef {
    file: NamedTempFile,
    path: PathBuf,
}

impl PendingRef {
    pub(crate) fn write(dir: &Path, id: Oid) -> Result<Self, Error> {
        let folder = dir.join(PREFIX);
        let path = folder.join(id.to_string());
        let write = || {
            let mut file = tempfile::Builder::new()
                .suffix(UNFINISHED)
                .tempfile_in(&folder)?;
            file.write_all(format!("{id}\n").as_bytes())?;
            Ok(file)
        };
        match write() {
            Ok(file) => Ok(Self { file, path }),
            Err(error) => Err(cannot_write(&path, error)),
        }
    }

    /// Flushes the content of the ref.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        let flushed = self.file.as_file().sync_all();
        flushed.map_err(|error| cannot_write(&self.path, error))
    }

    /// Renames the ref into place, and flushes its folder and the folder `objects` in parallel. The
    /// caller flushed the ref with [`Self::flush`], and its objects.
    ///
    /// If only the ref survives a crash, nothing was acknowledged yet, and the next open removes
    /// the ref.
    pub(crate) fn publish_with(self, objects: &Path) -> Result<(), Error> {
        let folder = self.path.with_file_name("");
        self.rename_into_place()?;
        let (objects, refs) = join(|| sync_dir(objects), || sync_dir(&folder));
        Ok(objects.and(refs)?)
    }

    fn rename_into_place(self) -> Result<(), Error> {
        persist(self.file, &self.path).map_err(|error| cannot_write(&self.path, error))
    }
}

fn cannot_write(path: &Path, error: io::Error) -> Error {
    failed("write the checkpoint ref", path, error).into()
}

/// Rewrites loose refs with wrong content. The server goes by the name, but one such file prevents
/// git from listing any ref.
pub(crate) fn repair(dir: &Path) -> Result<(), Error> {
    for (id, path) in loose_ids(dir)? {
        let is_folder = is_dir(&path).map_err(|error| failed("inspect", &path, error))?;
        if !is_folder && !is_loose_ref_valid(&path, id) {
            publish(dir, id)?;
        }
    }
    Ok(())
}

/// Returns whether the file of a loose ref names its commit. Does not follow links. A missing file
/// is valid: another process may have packed or removed the ref.
pub(crate) fn is_loose_ref_valid(path: &Path, id: Oid) -> bool {
    match read_text(path) {
        Ok(text) => Oid::from_hex(text.trim_end()) == Some(id),
        Err(error) => error.kind() == Io::NotFound,
    }
}

/// Removes refs and flushes their folders.
pub(crate) fn remove(dir: &Path, is_removed: impl Fn(&str) -> bool) -> Result<(), Error> {
    // Packed refs first: otherwise a ref whose file is gone would reappear.
    if packed_refs(dir)?.keys().any(|name| is_removed(name)) {
        rewrite_packed(dir, |refs| refs.retain(|name, _| !is_removed(name)))?;
    }
    let mut folders = BTreeSet::new();
    for (_, path) in loose_refs(dir)?
        .into_iter()
        .filter(|(name, _)| is_removed(name))
    {
        match fs::remove_file(&path) {
            Ok(()) => folders.extend(path.parent().map(Path::to_path_buf)),
            Err(error) if error.kind() == Io::NotFound => {}
            Err(error) => return Err(failed("remove", &path, error).into()),
        }
    }
    Ok(folders.iter().try_for_each(|folder| sync_dir(folder))?)
}

/// Writes the refs of commits in one step.
///
/// # Errors
/// `busy` while git writes `packed-refs`; `storage`.
pub(crate) fn publish_all(dir: &Path, ids: impl IntoIterator<Item = Oid>) -> Result<(), Error> {
    rewrite_packed(dir, |refs| {
        for oid in ids {
            let name = format!("{PREFIX}{oid}");
            let lines = format!("{oid} {name}\n");
            refs.insert(name, PackedRef { oid, lines });
        }
    })
}

/// Moves loose refs of checkpoints into `packed-refs` if there are more than `at_least`. Does
/// nothing while git writes `packed-refs`.
pub(crate) fn pack(dir: &Path, at_least: usize) -> Result<(), Error> {
    let loose = loose_ids(dir)?;
    if loose.len() <= at_least {
        return Ok(());
    }
    match publish_all(dir, loose.iter().map(|(oid, _)| *oid)) {
        Err(Error::Locked(_)) => return Ok(()),
        packed => packed?,
    }
    for (_, path) in loose {
        fs::remove_file(&path).map_err(|error| failed("remove", &path, error))?;
    }
    Ok(sync_dir(&dir.join(PREFIX))?)
}

/// Removes the temporary files of killed writers. The caller holds the store's lock.
pub(crate) fn sweep(dir: &Path) {
    let entries = fs::read_dir(dir.join(PREFIX)).into_iter().flatten();
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Changes `packed-refs` under git's lock, because users may run git in the store. The caller holds the
/// store's lock, so a lock that the server wrote is of a killed process.
fn rewrite_packed(
    dir: &Path,
    change: impl FnOnce(&mut BTreeMap<String, PackedRef>),
) -> Result<(), Error> {
    let (path, lock) = (dir.join(PACKED), dir.join(PACKED_LOCK));
    let written = fs::symlink_metadata(&lock).and_then(|found| found.modified());
    let is_old = || written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
    if read_text(&lock).is_ok_and(|text| text.starts_with(HEADER)) || is_old() {
        let _ = fs::remove_file(&lock);
    }
    let to_error = |error: io::Error| match error.kind() {
        Io::AlreadyExists => Error::Locked(format!(
            "another program is writing {}; try again, or remove {} if none is",
            path.display(),
            lock.display()
        )),
        _ => failed("lock", &lock, error).into(),
    };
    let unlocked = || {
        let mut file = tempfile::Builder::new()
            .suffix(UNFINISHED)
            .tempfile_in(dir.join(PREFIX))?;
        file.write_all(HEADER.as_bytes())?;
        Ok(file)
    };
    let file = unlocked().map_err(to_error)?;
    let locked = file.persist_noclobber(&lock);
    let mut file = locked.map_err(|error| to_error(error.error))?;
    let write = || -> Result<(), Error> {
        let mut refs = packed_refs(dir)?;
        change(&mut refs);
        let lines: String = refs.into_values().map(|found| found.lines).collect();
        file.write_all(lines.as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&lock, &path))
            .map_err(|error| failed("write", &path, error).into())
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&lock);
    })?;
    Ok(sync_dir(dir)?)
}

fn packed_text(dir: &Path) -> Result<String, Error> {
    let text = read_foreign(&dir.join(PACKED), MAX_STATE_FILE_BYTES)?.unwrap_or_default();
    Ok(String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn packed_refs(dir: &Path) -> Result<BTreeMap<String, PackedRef>, Error> {
    let mut refs: BTreeMap<String, PackedRef> = BTreeMap::new();
    let mut last = String::new();
    for line in packed_text(dir)?.lines() {
        let lines = format!("{line}\n");
        if line.starts_with('^') {
            if let Some(tag) = refs.get_mut(&last) {
                tag.lines += &lines;
            }
        } else if let Some((oid, name)) = line.split_once(' ')
            && let Some(oid) = Oid::from_hex(oid)
        {
            last = name.to_owned();
            refs.insert(last.clone(), PackedRef { oid, lines });
        }
    }
    Ok(refs)
}

/// Lists the files below `refs` without following links.
fn loose_refs(dir: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![(dir.join("refs"), "refs".to_owned())];
    while let Some((folder, prefix)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| failed("list", &folder, error))?;
        let cannot_list = |error| failed("list", &folder, error);
        for entry in entries {
            let entry = entry.map_err(cannot_list)?;
            let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(cannot_list)?.is_dir() {
                folders.push((entry.path(), name));
            } else if !name.ends_with(UNFINISHED) {
                found.push((name, entry.path()));
            }
        }
    }
    Ok(found)
}

/// Returns the commit that the ref of a checkpoint names.
pub(crate) fn id_of(name: &str) -> Option<Oid> {
    Oid::from_hex(name.strip_prefix(PREFIX)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_ref_that_another_process_packs_is_valid() {
        let scratch = Scratch::new();
        let id = scratch.checkpoint(1, &[]);
        let (listed, path) = loose_ids(&scratch.dir()).unwrap().remove(0);
        assert!(listed == id && is_loose_ref_valid(&path, id));
        pack(&scratch.dir(), 0).unwrap();
        assert!(is_loose_ref_valid(&path, id), "it is in packed-refs");
        fs::write(&path, "").unwrap();
        assert!(!is_loose_ref_valid(&path, id));
    }

    #[test]
    fn refs_stay_within_the_store() {
        let scratch = Scratch::new();
        let id = scratch.checkpoint(1, &[]);
        let dir = scratch.dir();
        let outside = scratch.folder.path().join("outside");
        fs::write(&outside, "precious").unwrap();
        let up = "../".repeat(dir.components().count() + 2);
        let absolute = outside.to_str().unwrap().trim_start_matches('/');
        let mut lines = String::new();
        for name in [
            format!("{INCOMING}{up}{absolute}"),
            format!("{INCOMING}/{absolute}"),
            format!("{INCOMING}.x"),
            format!("{INCOMING}x/"),
            "/etc/x".to_owned(),
        ] {
            lines.push_str(&format!("{id} {name}\n"));
        }
        // A link among the parent folders of a valid name.
        let folder = outside.with_file_name("folder");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("x"), "precious").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&folder, dir.join("refs/incoming")).unwrap();
        lines.push_str(&format!("{id} {INCOMING}x\n"));
        fs::write(dir.join(PACKED), lines).unwrap();
        let checkpoint = format!("{PREFIX}{id}");
        assert!(all(&dir).unwrap().contains_key(&checkpoint));
        remove(&dir, |name| name != checkpoint).unwrap();
        assert!(outside.exists() && folder.join("x").exists());
        let names: Vec<String> = all(&dir).unwrap().into_keys().collect();
        assert_eq!(names, [checkpoint]);
    }
}
