//! Refs of checkpoints: `refs/checkpoints/<commit id>`, as loose files or in `packed-refs`.
//!
//! The name of a ref already states its commit. The content of its file is for git.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind as Io, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use sightline_protocol::error::ErrorKind;

use super::object::Oid;
use crate::{
    error::Error,
    limits::MAX_STATE_FILE_BYTES,
    storage::atomic_file::{failed, read_foreign, read_text, sync_dir},
    thread_pool::join,
};

/// Prefix of the refs of checkpoints.
pub(crate) const PREFIX: &str = "refs/checkpoints/";
/// Prefix of the refs of fetched commits that are not verified yet.
pub(crate) const INCOMING: &str = "refs/incoming/";
const PACKED: &str = "packed-refs";
/// Age at which git's lock file counts as abandoned.
const STALE: Duration = Duration::from_secs(600);

/// A line of `packed-refs`, with the `^` line of an annotated tag.
#[derive(Clone, Debug)]
struct PackedRef {
    oid: Oid,
    peeled: Option<Oid>,
}

/// Returns the ids of all checkpoints, sorted and without duplicates.
pub(crate) fn ids(dir: &Path) -> Result<Vec<Oid>, Error> {
    // Packed refs are read last, because packing moves refs from files into them.
    let mut ids: Vec<Oid> = loose_ids(dir)?.into_iter().map(|(id, _)| id).collect();
    ids.extend(packed_refs(dir)?.keys().filter_map(|name| id_of(name)));
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
        Err(error) => return Err(failed("list", &folder, &error)),
    };
    let id = |entry: fs::DirEntry| Some((plain_id(entry.file_name().to_str()?)?, entry.path()));
    Ok(entries.flatten().filter_map(id).collect())
}

/// Returns every ref of the store and its target, including refs the server did not write.
pub(crate) fn all(dir: &Path) -> Result<BTreeMap<String, Oid>, Error> {
    let mut names: BTreeMap<String, Oid> = BTreeMap::new();
    let mut folders = vec![(dir.join("refs"), "refs/".to_owned())];
    let mut loose = BTreeMap::new();
    while let Some((folder, prefix)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| failed("list", &folder, &error))?;
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let name = format!("{prefix}{name}");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push((entry.path(), format!("{name}/"))),
                Ok(kind) if kind.is_file() => {
                    let target = read_text(&entry.path()).unwrap_or_default();
                    let oid = id_of(&name).or_else(|| plain_id(target.trim_end()));
                    loose.extend(oid.map(|oid| (name, oid)));
                }
                _ => {}
            }
        }
    }
    names.extend(
        packed_refs(dir)?
            .into_iter()
            .map(|(name, entry)| (name, entry.oid)),
    );
    names.extend(loose);
    if let Some(oid) = head(dir) {
        names.insert("HEAD".to_owned(), oid);
    }
    Ok(names)
}

/// Returns the commit of a detached `HEAD`.
fn head(dir: &Path) -> Option<Oid> {
    plain_id(read_text(&dir.join("HEAD")).ok()?.trim_end())
}

/// Resolves `HEAD` to a commit. Returns `None` if its branch has no commit yet.
pub(crate) fn resolve_head(dir: &Path) -> Result<Option<Oid>, Error> {
    let head = dir.join("HEAD");
    let text = read_text(&head).map_err(|error| failed("read", &head, &error))?;
    let Some(name) = text.strip_prefix("ref: ").map(str::trim_end) else {
        return commit_in(&head, &text).map(Some);
    };
    if let Some(path) = file_of(dir, name).filter(|_| is_valid_name(name)) {
        match read_text(&path) {
            Ok(text) => return commit_in(&path, &text).map(Some),
            Err(error) if error.kind() == Io::NotFound => {}
            Err(error) => return Err(failed("read", &path, &error)),
        }
    }
    Ok(packed_refs(dir)?
        .get(name)
        .map(|packed_refs| packed_refs.oid))
}

fn commit_in(path: &Path, text: &str) -> Result<Oid, Error> {
    plain_id(text.trim_end())
        .ok_or_else(|| Error::storage(format!("{} does not name a commit", path.display())))
}

/// Returns whether a checkpoint has this id.
pub(crate) fn exists(dir: &Path, id: Oid) -> Result<bool, Error> {
    if fs::symlink_metadata(loose(dir, id)).is_ok() {
        return Ok(true);
    }
    Ok(packed_refs(dir)?.contains_key(&name_of(id)))
}

/// Writes and flushes the ref of a commit.
pub(crate) fn publish(dir: &Path, id: Oid) -> Result<(), Error> {
    let name = PendingRef::write(dir, id)?;
    name.flush()?;
    name.publish()
}

/// A ref that is written to its lock file; removed on drop unless published.
pub(crate) struct PendingRef {
    folder: PathBuf,
    id: Oid,
    file: File,
}

impl PendingRef {
    pub(crate) fn write(dir: &Path, id: Oid) -> Result<Self, Error> {
        let folder = dir.join(PREFIX);
        let path = folder.join(format!("{id}.lock"));
        let create = || match create_new(&path) {
            // Writers hold the store's lock, so this lock file is stale.
            Err(error) if error.kind() == Io::AlreadyExists => {
                fs::remove_file(&path)?;
                create_new(&path)
            }
            created => created,
        };
        let file =
            create().map_err(|error| failed("write the checkpoint ref in", &folder, &error))?;
        let mut name = Self { folder, id, file };
        let written = name.file.write_all(format!("{id}\n").as_bytes());
        written.map_err(|error| name.failed(&error))?;
        Ok(name)
    }

    /// Flushes the content of the ref.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(|error| self.failed(&error))
    }

    /// Renames the ref into place and flushes its folder. The caller flushed the ref with
    /// [`Self::flush`], and its objects.
    pub(crate) fn publish(self) -> Result<(), Error> {
        self.rename_into_place()?;
        sync_dir(&self.folder)
    }

    /// Like [`Self::publish`], and also flushes the folder `objects`.
    ///
    /// Both flushes run in parallel. If only the ref survives a crash, nothing was acknowledged
    /// yet, and the next open removes the ref.
    pub(crate) fn publish_with(self, objects: &Path) -> Result<(), Error> {
        self.rename_into_place()?;
        let (objects, names) = join(|| sync_dir(objects), || sync_dir(&self.folder));
        objects.and(names)
    }

    fn rename_into_place(&self) -> Result<(), Error> {
        let path = self.folder.join(self.id.to_string());
        fs::rename(self.path(), path).map_err(|error| self.failed(&error))
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.lock", self.id))
    }

    fn failed(&self, error: &io::Error) -> Error {
        failed("write the checkpoint ref in", &self.folder, error)
    }
}

impl Drop for PendingRef {
    fn drop(&mut self) {
        // Fails once the ref was renamed into place.
        let _ = fs::remove_file(self.path());
    }
}

/// Rewrites loose refs with wrong content. The server goes by the name, but one such file prevents
/// git from listing any ref.
pub(crate) fn repair(dir: &Path) -> Result<(), Error> {
    for (id, path) in loose_ids(dir)? {
        let is_folder = || fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        if !is_loose_ref_valid(&path, id) && !is_folder() {
            publish(dir, id)?;
        }
    }
    Ok(())
}

/// Returns whether the file of a loose ref names its commit. Does not follow links. A missing file
/// is valid: another process may have packed or removed the ref.
pub(crate) fn is_loose_ref_valid(path: &Path, id: Oid) -> bool {
    let target = || -> io::Result<Option<Oid>> {
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() || found.len() > 64 {
            return Ok(None);
        }
        Ok(plain_id(read_text(path)?.trim_end()))
    };
    match target() {
        Ok(target) => target == Some(id),
        Err(error) => error.kind() == Io::NotFound,
    }
}

/// Removes refs and flushes their folders.
pub(crate) fn remove(dir: &Path, is_removed: impl Fn(&str) -> bool) -> Result<(), Error> {
    let names = all(dir)?;
    let removed: Vec<&String> = names.keys().filter(|name| is_removed(name)).collect();
    if removed.is_empty() {
        return Ok(());
    }
    let mut kept = packed_refs(dir)?;
    let before = kept.len();
    kept.retain(|name, _| !is_removed(name));
    if kept.len() < before {
        // Packed refs first: otherwise a ref whose file is gone would reappear.
        PackedRefsLock::take(dir)?.write(&kept)?;
    }
    let mut folders = std::collections::BTreeSet::new();
    for name in removed {
        let Some(path) = file_of(dir, name) else {
            continue;
        };
        match fs::remove_file(&path) {
            Ok(()) => folders.extend(path.parent().map(Path::to_path_buf)),
            Err(error) if error.kind() == Io::NotFound => {}
            Err(error) => return Err(failed("remove", &path, &error)),
        }
    }
    folders.iter().try_for_each(|folder| sync_dir(folder))
}

/// Moves loose refs of checkpoints into `packed-refs` if there are more than `at_least`.
pub(crate) fn pack(dir: &Path, at_least: usize) -> Result<(), Error> {
    let files = loose_ids(dir)?;
    if files.len() <= at_least {
        return Ok(());
    }
    let lock = match PackedRefsLock::take(dir) {
        Err(error) if error.kind == ErrorKind::Busy => return Ok(()),
        lock => lock?,
    };
    let mut names = packed_refs(dir)?;
    for (id, _) in &files {
        let entry = PackedRef {
            oid: *id,
            peeled: None,
        };
        names.insert(name_of(*id), entry);
    }
    lock.write(&names)?;
    for (_, path) in files {
        fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
    }
    sync_dir(&dir.join(PREFIX))
}

/// Removes the lock files of killed writers. The caller holds the store's lock.
pub(crate) fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir.join(PREFIX)) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(".lock") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// git's lock on `packed-refs`, respected because users may run git in the store.
struct PackedRefsLock<'a> {
    dir: &'a Path,
    path: PathBuf,
    file: File,
    /// Whether the lock file was renamed to `packed-refs`. A new lock file would belong to another
    /// process.
    is_written: bool,
}

impl<'a> PackedRefsLock<'a> {
    fn take(dir: &'a Path) -> Result<Self, Error> {
        let path = dir.join("packed-refs.lock");
        let is_stale = fs::symlink_metadata(&path)
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
        if is_stale {
            let _ = fs::remove_file(&path);
        }
        match create_new(&path) {
            Ok(file) => Ok(Self {
                dir,
                path,
                file,
                is_written: false,
            }),
            Err(error) if error.kind() == Io::AlreadyExists => Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "another program is writing {}; try again, or remove {} if none is",
                    dir.join(PACKED).display(),
                    path.display()
                ),
            )),
            Err(error) => Err(failed("lock", &path, &error)),
        }
    }

    fn write(mut self, names: &BTreeMap<String, PackedRef>) -> Result<(), Error> {
        let mut text = String::from("# pack-refs with: sorted \n");
        for (name, PackedRef { oid, peeled }) in names {
            text.push_str(&format!("{oid} {name}\n"));
            if let Some(peeled) = peeled {
                text.push_str(&format!("^{peeled}\n"));
            }
        }
        let path = self.dir.join(PACKED);
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_all())
            .and_then(|()| fs::rename(&self.path, &path))
            .map_err(|error| failed("write", &path, &error))?;
        self.is_written = true;
        sync_dir(self.dir)
    }
}

impl Drop for PackedRefsLock<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn packed_refs(dir: &Path) -> Result<BTreeMap<String, PackedRef>, Error> {
    let text = read_foreign(&dir.join(PACKED), MAX_STATE_FILE_BYTES)?.unwrap_or_default();
    let mut names = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(peeled) = line.strip_prefix('^') {
            if let Some(entry) = last.as_ref().and_then(|last| names.get_mut(last)) {
                let PackedRef { peeled: slot, .. } = entry;
                *slot = plain_id(peeled);
            }
            continue;
        }
        let Some((oid, name)) = line.split_once(' ') else {
            continue;
        };
        if let Some(oid) = plain_id(oid).filter(|_| is_valid_name(name)) {
            names.insert(name.to_owned(), PackedRef { oid, peeled: None });
            last = Some(name.to_owned());
        } else {
            last = None;
        }
    }
    Ok(names)
}

/// Returns whether git allows the name, and it stays within the store as a path.
fn is_valid_name(name: &str) -> bool {
    let is_odd = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
    };
    name.starts_with("refs/")
        && !name.contains(is_odd)
        && !name.contains("..")
        && !name.contains("@{")
        && name.split('/').all(is_part)
}

/// Returns the path of a loose ref, or `None` if a link or file is in the way.
fn file_of(dir: &Path, name: &str) -> Option<PathBuf> {
    let mut path = dir.to_path_buf();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let is_folder = || fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        if parts.peek().is_some() && !is_folder() {
            return None;
        }
    }
    Some(path)
}

fn name_of(id: Oid) -> String {
    format!("{PREFIX}{id}")
}

fn loose(dir: &Path, id: Oid) -> PathBuf {
    dir.join(name_of(id))
}

/// Returns the commit that the ref of a checkpoint names.
pub(crate) fn id_of(name: &str) -> Option<Oid> {
    plain_id(name.strip_prefix(PREFIX)?)
}

/// Parses exactly forty lower-case hexadecimal digits.
pub(crate) fn plain_id(text: &str) -> Option<Oid> {
    let plain = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    (text.len() == 40 && text.bytes().all(plain))
        .then(|| text.parse().ok())
        .flatten()
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::testing::Scratch;

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
        let names: Vec<String> = all(&dir).unwrap().into_keys().collect();
        assert_eq!(names, [name_of(id), format!("{INCOMING}x")]);
        remove(&dir, |name| name.starts_with(INCOMING)).unwrap();
        assert!(outside.exists() && folder.join("x").exists());
        assert_eq!(all(&dir).unwrap().len(), 1);
    }
}
