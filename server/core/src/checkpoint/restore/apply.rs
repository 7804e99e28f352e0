//! Carrying out the steps of a plan.
//!
//! First everything goes that has to go, then empty folders, then everything is
//! written, so that a file can take the place of a folder and the other way
//! round. Each place is reached without following a link and looked at again
//! just before it is changed: what is no longer as the plan saw it stays. A
//! failure is of its path alone.
//!
//! A plain file is written over in place, so that its owner, rights and other
//! attributes stay; a kill may leave it half written, which the journal repairs.
//! Where that can't be (other names of the file, no right to write), a new file
//! takes its place.

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::{
    super::{
        Job, Oid, Progress,
        audience::Readers,
        compare::Leaf,
        object::{Kind as Object, Mode, name_of},
        place::{Access, Dir, Found, Kind, Walker, found_of, is_absent},
        read,
        reader::Reader,
        repository::Repository,
        tree::Stamp,
    },
    plan::Step,
    sound::Contents,
    step,
};
use crate::{error::Error, path::RelPath};

/// Steps one thread takes before it looks for more.
const CHUNK: usize = 8;
/// Bytes written at once; in tests few, so that a kill can come between.
const PIECE: usize = if cfg!(test) { 4 } else { 1024 * 1024 };

/// Where the steps are carried out.
pub(super) struct Place<'a> {
    pub(super) root: &'a std::path::Path,
    /// Opened before anything was planned: who puts another folder, or a link,
    /// at `root` meanwhile has nothing written there.
    pub(super) walker: &'a Walker,
    pub(super) repository: &'a Repository,
    /// What of it was read already.
    pub(super) contents: &'a Contents,
    /// The checkpoint taken before; names unfinished files.
    pub(super) undo: Oid,
    /// Whom files are for that are made anew.
    pub(super) readers: Readers<'a>,
}

/// Takes the steps (by path), then removes `folders` that became empty. For
/// each step, why it was not taken.
pub(super) fn apply(
    job: &Job<'_>,
    place: &Place<'_>,
    steps: &[Step],
    folders: &[RelPath],
) -> Vec<Option<String>> {
    let done = AtomicU64::new(0);
    let tell = || {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        (job.progress)(Progress {
            stage: "restoring",
            done,
            total: Some(steps.len() as u64),
        });
    };
    let run = |is_wanted: fn(&Step) -> bool| {
        let wanted = steps.iter().enumerate();
        let wanted: Vec<(usize, &Step)> = wanted.filter(|(_, step)| is_wanted(step)).collect();
        let chunks = wanted.par_chunks(CHUNK).map_init(
            || Worker::new(place),
            |worker, chunk| {
                let act = |(at, step): &(usize, &Step)| {
                    let error = worker.take(step).err();
                    tell();
                    (*at, error)
                };
                chunk.iter().map(act).collect::<Vec<_>>()
            },
        );
        chunks.collect::<Vec<_>>().concat()
    };
    let mut outcomes = vec![None; steps.len()];
    let deleted = run(|step| step.after.is_none());
    remove_folders(place, folders);
    let written = run(|step| step.after.is_some());
    for (at, error) in deleted.into_iter().chain(written) {
        outcomes[at] = error;
    }
    outcomes
}

/// Those that hold something stay.
fn remove_folders(place: &Place<'_>, folders: &[RelPath]) {
    let mut walker = place.walker.again();
    // What lies deeper comes later in order of path.
    for folder in folders.iter().rev() {
        if let (Some(parent), Some(name)) = (folder.parent(), folder.name()) {
            if !walker.is_at(place.root) {
                return;
            }
            step();
            let _ = walker
                .folder(&parent)
                .and_then(|dir| dir.remove_folder(name));
        }
    }
}

/// The name of an unfinished file for `path`: always the same, so that it is
/// found again.
pub(super) fn unfinished(undo: Oid, path: &RelPath) -> OsString {
    let mut hash = Sha256::new();
    hash.update(undo.as_bytes());
    hash.update(path.as_path().as_os_str().as_encoded_bytes());
    let digest = hash.finalize();
    let hex: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(".{hex}.sightline-restore").into()
}

/// One thread's way to the work tree and the store.
struct Worker<'a> {
    place: &'a Place<'a>,
    walker: Walker,
    reader: Reader,
}

impl<'a> Worker<'a> {
    fn new(place: &'a Place<'a>) -> Self {
        Self {
            place,
            walker: place.walker.again(),
            reader: place.repository.reader(),
        }
    }

    fn take(&mut self, todo: &Step) -> Result<(), String> {
        if !self.walker.is_at(self.place.root) {
            return Err(
                "the workspace folder was moved or replaced meanwhile; nothing is written there"
                    .to_owned(),
            );
        }
        match &todo.after {
            Some(after) => self.write(todo, after),
            None => self.delete(todo),
        }
    }

    fn delete(&mut self, todo: &Step) -> Result<(), String> {
        let Some((dir, name)) = enter(&mut self.walker, &todo.path, false)? else {
            return Ok(());
        };
        let Some(found) = require_before(dir, name, todo.before.as_ref())? else {
            return Ok(());
        };
        step();
        require_content(dir, name, todo.before.as_ref(), found)?;
        remove(dir, name, found).map_err(|error| cannot("delete it", &error))
    }

    fn write(&mut self, todo: &Step, after: &Leaf) -> Result<(), String> {
        // Read first, so that nothing is changed in vain.
        let content = match after.mode {
            Mode::Folder => Cow::default(),
            _ if todo.before.is_some_and(|before| only_mode(&before, after)) => Cow::default(),
            _ => match self.place.contents.get(&after.oid) {
                Some(content) => Cow::Borrowed(&**content),
                None => Cow::Owned(whole(&self.reader, after.oid)?),
            },
        };
        let Some((dir, name)) = enter(&mut self.walker, &todo.path, true)? else {
            return Err("its folder is gone".to_owned());
        };
        let found = require_before(dir, name, todo.before.as_ref())?;
        step();
        match (after.mode, found) {
            (Mode::Folder, found) => {
                if let Some(found) = found {
                    require_content(dir, name, todo.before.as_ref(), found)?;
                    remove(dir, name, found)
                        .map_err(|error| cannot("make way for a folder", &error))?;
                    step();
                }
                dir.make(name)
                    .map_err(|error| cannot("make the folder", &error))
            }
            (Mode::Link, found) => {
                let unfinished = unfinished(self.place.undo, &todo.path);
                let seen = todo.before.as_ref().zip(found);
                write_link(dir, name, &unfinished, &content, seen)
            }
            (mode, Some(found)) if found.kind == Kind::File => {
                let file = FileToWrite {
                    dir,
                    name,
                    content: &content,
                    executable: mode == Mode::Executable,
                };
                let before = todo.before.as_ref();
                if before.is_some_and(|before| only_mode(before, after)) {
                    return set_mode(&file, found);
                }
                let Some(before) = before else {
                    return Err(changed());
                };
                let old = || whole(&self.reader, before.oid).ok();
                let unfinished = || unfinished(self.place.undo, &todo.path);
                file.write_over((before, found), &old, &unfinished)
            }
            (mode, found) => {
                if let Some(found) = found {
                    require_content(dir, name, todo.before.as_ref(), found)?;
                    remove(dir, name, found)
                        .map_err(|error| cannot("make way for a file", &error))?;
                    step();
                }
                let file = FileToWrite {
                    dir,
                    name,
                    content: &content,
                    executable: mode == Mode::Executable,
                };
                let access = Access::Create {
                    executable: file.executable,
                    withheld: self.place.readers.of(&todo.path).withheld(),
                };
                file.create(name, access)
                    .map(drop)
                    .map_err(|error| cannot("write it", &error))
            }
        }
    }
}

/// Does nothing but the right to be executed differ?
pub(super) fn only_mode(before: &Leaf, after: &Leaf) -> bool {
    before.is_file() && after.is_file() && before.oid == after.oid
}

/// The folder of `path` and its name there; `None` where the folder is missing
/// and not to be made.
fn enter<'a>(
    walker: &'a mut Walker,
    path: &'a RelPath,
    make: bool,
) -> Result<Option<(&'a Dir, &'a OsStr)>, String> {
    let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
        return Err("it is the workspace folder itself".to_owned());
    };
    let dir = match make {
        true => walker.make_folder(&parent),
        false => walker.folder(&parent),
    };
    match dir {
        Ok(dir) => Ok(Some((dir, name))),
        Err(error) if !make && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(
            "a folder it lies in is now a link or a file; nothing is written through".to_owned(),
        ),
        Err(error) => Err(cannot("reach its folder", &error)),
    }
}

/// What stands there, if that is what the plan saw.
/// That its content is too is found out where it is changed.
fn require_before(dir: &Dir, name: &OsStr, before: Option<&Leaf>) -> Result<Option<Found>, String> {
    let found = dir
        .look(name)
        .map_err(|error| cannot("look at it", &error))?;
    let (Some(before), Some(found)) = (before, found) else {
        return match (before, found) {
            (None, None) => Ok(None),
            (Some(_), None) => Err("it was deleted meanwhile; it is left as it is".to_owned()),
            _ => Err("something appeared there meanwhile; it is left as it is".to_owned()),
        };
    };
    // Of another size it does not hold what was seen.
    let is_other_size = |(seen, _): (Stamp, bool)| seen.size != found.stamp.size;
    if found.mode() != Some(before.mode) || before.seen.is_some_and(is_other_size) {
        return Err(changed());
    }
    Ok(Some(found))
}

/// It holds what the plan saw, as of the last moment before it goes. No stamp
/// tells that: who writes through a mapping of the file moves none until later.
fn require_content(
    dir: &Dir,
    name: &OsStr,
    before: Option<&Leaf>,
    found: Found,
) -> Result<(), String> {
    // A folder goes only when nothing is in it.
    if found.kind == Kind::Folder {
        return Ok(());
    }
    let leaf = dir.leaf(name).map_err(|error| cannot("read it", &error))?;
    let is_same = leaf
        .zip(before)
        .is_some_and(|((leaf, _), before)| leaf.is_same(before));
    match dir.look(name) {
        Ok(Some(now)) if is_same && now == found => Ok(()),
        Err(error) => Err(cannot("look at it", &error)),
        Ok(_) => Err(changed()),
    }
}

fn changed() -> String {
    "it was changed meanwhile; it is left as it is".to_owned()
}

/// A blob; the reader believes none that is not what its name says.
pub(super) fn whole(reader: &Reader, oid: Oid) -> Result<Vec<u8>, String> {
    reader.blob(oid).map_err(message)
}

fn remove(dir: &Dir, name: &OsStr, found: Found) -> io::Result<()> {
    match found.kind {
        Kind::Folder => dir.remove_folder(name),
        _ => dir.remove(name),
    }
}

/// `seen` is what stands there.
fn write_link(
    dir: &Dir,
    name: &OsStr,
    unfinished: &OsStr,
    target: &[u8],
    seen: Option<(&Leaf, Found)>,
) -> Result<(), String> {
    let failed = |error: io::Error| cannot("make the link", &error);
    match seen {
        None => dir.make_link(target, name).map_err(failed)?,
        Some((_, found)) if found.kind == Kind::Folder => {
            dir.remove_folder(name).map_err(failed)?;
            step();
            dir.make_link(target, name).map_err(failed)?;
        }
        Some((before, found)) => {
            dir.make_link(target, unfinished).map_err(failed)?;
            step();
            replace(dir, unfinished, name, (before, found))?;
        }
    }
    match dir.read_link(name) {
        Ok(held) if held == target => Ok(()),
        Ok(_) => Err("it points elsewhere than it was told to".to_owned()),
        Err(error) => Err(failed(error)),
    }
}

/// Gives `from` the name of what stands at `to`, which goes if it is what was
/// seen; what could not be renamed does not stay behind.
fn replace(
    dir: &Dir,
    from: &OsStr,
    to: &OsStr,
    (before, found): (&Leaf, Found),
) -> Result<(), String> {
    let failed = |error: io::Error| cannot("replace it", &error);
    let exchanged = require_content(dir, to, Some(before), found).and_then(|()| {
        let ours = dir.look(from).map_err(failed)?;
        match dir.exchange(from, to).map_err(failed)? {
            true => Ok(Some(ours)),
            // Nothing better can be done there.
            false => dir.rename(from, to).map(|()| None).map_err(failed),
        }
    });
    match exchanged {
        Ok(Some(ours)) => take_out(dir, from, to, (before, ours)),
        Ok(None) => Ok(()),
        Err(why) => {
            let _ = dir.remove(from);
            Err(why)
        }
    }
}

/// `from` now has what `to` was: it goes if it is what was seen. Else someone
/// saved it a moment ago, and gets the place back. `ours` took it.
fn take_out(
    dir: &Dir,
    from: &OsStr,
    to: &OsStr,
    (before, ours): (&Leaf, Option<Found>),
) -> Result<(), String> {
    step();
    let out = dir.leaf(from);
    if matches!(&out, Ok(Some((leaf, _))) if leaf.is_same(before)) {
        return dir
            .remove(from)
            .map_err(|error| cannot("remove what it replaces", &error));
    }
    // What could not be put back is the only one of what was saved: it stays.
    let failed = |error: io::Error| {
        let why = cannot("put back what was saved meanwhile", &error);
        format!("{why}; it is in {}", from.display())
    };
    dir.exchange(from, to).map_err(failed)?;
    let inode = |found: Option<Found>| found.map(|found| found.stamp.inode);
    let back = dir.look(from).map_err(failed)?;
    if inode(back) != inode(ours) {
        // Saved once more between: the newest has the place.
        dir.exchange(from, to).map_err(failed)?;
    }
    let _ = dir.remove(from);
    Err(changed())
}

/// A file that gets new content.
struct FileToWrite<'a> {
    dir: &'a Dir,
    name: &'a OsStr,
    content: &'a [u8],
    executable: bool,
}

impl FileToWrite<'_> {
    /// Writes over the file that was found. `old` gives its content, `unfinished`
    /// the name of a new file that takes its place where that has to be.
    fn write_over(
        &self,
        (before, found): (&Leaf, Found),
        old: &dyn Fn() -> Option<Vec<u8>>,
        unfinished: &dyn Fn() -> OsString,
    ) -> Result<(), String> {
        if found.links == 1
            && let Ok(file) = self.dir.open(self.name, Access::Write)
        {
            // One that grew meanwhile is not what was found.
            let held = hold(&file, found.stamp.size).map_err(|error| cannot("read it", &error))?;
            // Last of all, so that what was saved while it was read shows.
            let opened = found_of(&file).map_err(|error| cannot("look at it", &error))?;
            if opened != found || name_of(Object::Blob, &held) != before.oid {
                return Err(changed());
            }
            return self.in_place(&file, found, old);
        }
        let unfinished = unfinished();
        let beside = || {
            let file = self.create(&unfinished, Access::CreatePrivate)?;
            step();
            allow(&file, rights(found.stamp.mode, self.executable))
        };
        beside().map_err(|error| {
            let _ = self.dir.remove(&unfinished);
            cannot("replace it", &error)
        })?;
        replace(self.dir, &unfinished, self.name, (before, found))
    }

    fn in_place(
        &self,
        file: &File,
        found: Found,
        old: &dyn Fn() -> Option<Vec<u8>>,
    ) -> Result<(), String> {
        let written = fill(file, self.content).and_then(|()| {
            step();
            // Only now, so that the old content is not lost before the new one has room.
            if found.stamp.size != self.content.len() as u64 {
                file.set_len(self.content.len() as u64)?;
            }
            step();
            let mode = rights(found.stamp.mode, self.executable);
            if mode != found.stamp.mode & 0o7777 {
                allow(file, mode)?;
            }
            verify(file, self.content)
        });
        let Err(error) = written else { return Ok(()) };
        let restored = old().is_some_and(|old| {
            fill(file, &old)
                .and_then(|()| file.set_len(old.len() as u64))
                .is_ok()
        });
        let end = match restored {
            true => "it is as it was",
            false => "it may be half written; the undo point has what was there",
        };
        Err(format!("{}; {end}", cannot("write it", &error)))
    }

    /// Writes a file that is not there; what fails does not stay behind.
    fn create(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let file = self.dir.open(name, access)?;
        let written = fill(&file, self.content).and_then(|()| verify(&file, self.content));
        written.map(|()| file).inspect_err(|_| {
            let _ = self.dir.remove(name);
        })
    }
}

fn set_mode(to: &FileToWrite<'_>, found: Found) -> Result<(), String> {
    let set = || {
        let file = to.dir.open(to.name, Access::Read)?;
        if found_of(&file)? != found {
            return Err(io::Error::other("it was changed meanwhile"));
        }
        allow(&file, rights(found.stamp.mode, to.executable))
    };
    set().map_err(|error| cannot("change its permission to be executed", &error))
}

/// Permission bits with the right to be executed for whoever may read, or for
/// no one.
fn rights(mode: u32, executable: bool) -> u32 {
    let mode = mode & 0o7777;
    match executable {
        true if mode & 0o100 != 0 => mode,
        true => mode | 0o100 | (mode & 0o444) >> 2,
        false if mode & 0o100 == 0 => mode,
        false => mode & !0o111,
    }
}

fn allow(file: &File, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    return file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    {
        let _ = (file, mode);
        Ok(())
    }
}

/// Writes from the start, in order, cutting nothing.
fn fill(mut file: &File, content: &[u8]) -> io::Result<()> {
    use std::io::{Seek, Write};
    file.rewind()?;
    for piece in content.chunks(PIECE) {
        file.write_all(piece)?;
        step();
    }
    Ok(())
}

/// Is that what the file holds?
fn verify(file: &File, content: &[u8]) -> io::Result<()> {
    let more_would_show = content.len() as u64 + 1;
    match hold(file, more_would_show)? == content {
        true => Ok(()),
        false => Err(io::Error::other("it holds something else than was written")),
    }
}

/// What the file holds, of that no more than so many bytes.
fn hold(mut file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut held = Vec::new();
    io::Seek::rewind(&mut file)?;
    read::up_to(file, most, &mut held)?;
    Ok(held)
}

fn cannot(what: &str, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; see to its permissions and restore it again",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; make room and restore it again"
        }
        _ if is_absent(error) => "; something was moved meanwhile",
        _ => "",
    };
    format!("could not {what}: {error}{advice}")
}

fn message(error: Error) -> String {
    error.message
}
