//! Carrying out the steps of a plan.
//!
//! First everything goes that has to go, then empty folders, then everything is
//! written, so that a file can take the place of a folder and the other way
//! round. Each place is reached without following a link and looked at again
//! just before it is changed: what is no longer as the plan saw it stays. A
//! failure is of its path alone.
//!
//! A file is written in place only under a lease, which excludes every other
//! process, see [`in_place`]. Otherwise the new file is completed beside it, gets its
//! owner, permissions and other attributes, and the two exchange names; what was
//! taken out is checked after the last step, see [`taken`]. Either way, nothing that
//! is saved during the restore is overwritten.

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;

use super::{
    super::{
        Job, Oid, Progress,
        store::{object::Mode, object_reader::ObjectReader, repository::Repository},
        tree_diff::Leaf,
        worktree::{permissions::ReadPermissionMap, read_file, snapshot::Stamp},
    },
    attributes::{self, allow, rights},
    displaced::{self, Put, open_for_writing, unfinished},
    in_place,
    plan::Step,
    preflight::Contents,
    step,
};
use crate::{
    error::Error,
    fs::dir::{Access, Dir, Found, Kind, Walker, found_of, is_absent},
    path::RelPath,
};

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
    pub(super) readers: ReadPermissionMap<'a>,
}

/// What a step did.
enum Taken {
    /// All of it.
    Done,
    /// It took out what stood there, which is not settled yet; `put` has its place.
    Out { put: Option<Put> },
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
    let numbered = || steps.iter().enumerate();
    let goes: Vec<_> = numbered()
        .filter(|(_, step)| step.after.is_none() || makes_way(step))
        .collect();
    let mut outcomes = vec![None; steps.len()];
    let gone = on_threads(place, &goes, |worker, step| {
        let taken = worker.take_out(step);
        if step.after.is_none() {
            tell();
        }
        taken
    });
    settle(place, steps, gone, &mut outcomes);
    remove_folders(place, folders);
    let comes: Vec<_> = numbered()
        .filter(|(at, step)| step.after.is_some() && outcomes[*at].is_none())
        .collect();
    let written = on_threads(place, &comes, |worker, step| {
        let taken = worker.write(step);
        tell();
        taken
    });
    settle(place, steps, written, &mut outcomes);
    outcomes
}

/// Does a file or link go so that an empty folder can take its place?
fn makes_way(step: &Step) -> bool {
    let is_folder = |leaf: &Option<Leaf>| leaf.map(|leaf| leaf.mode == Mode::Folder);
    is_folder(&step.before) == Some(false) && is_folder(&step.after) == Some(true)
}

/// Acts on each of the numbered items.
fn on_threads<T: Sync, R: Send>(
    place: &Place<'_>,
    items: &[(usize, T)],
    act: impl Fn(&mut Worker<'_>, &T) -> R + Sync,
) -> Vec<(usize, R)> {
    let chunks = items.par_chunks(CHUNK).map_init(
        || Worker::new(place),
        |worker, chunk| {
            let each = chunk.iter().map(|(at, item)| (*at, act(worker, item)));
            each.collect::<Vec<_>>()
        },
    );
    chunks.flatten_iter().collect()
}

/// Looks at what the steps took out, and removes it or gives it back.
fn settle(
    place: &Place<'_>,
    steps: &[Step],
    taken: Vec<(usize, Result<Taken, String>)>,
    outcomes: &mut [Option<String>],
) {
    let mut out = Vec::new();
    for (at, taken) in taken {
        match taken {
            Ok(Taken::Done) => {}
            Ok(Taken::Out { put }) => {
                let beside = unfinished(place.undo, &steps[at].path);
                out.push((at, (&steps[at], put, beside)));
            }
            Err(why) => outcomes[at] = Some(why),
        }
    }
    // Only once each has its new place: who opens it from now on gets that.
    let names: HashSet<OsString> = out.iter().map(|(_, (.., name))| name.clone()).collect();
    let open = open_for_writing(&names);
    let settled = on_threads(place, &out, |worker, (step, put, beside)| {
        let Some((dir, name)) = enter(&mut worker.walker, &step.path, false)? else {
            return Err("its folder is gone".to_owned());
        };
        let at = displaced::Place { dir, name, beside };
        at.settle(step.before.as_ref(), *put, open.contains(beside))
    });
    for (at, settled) in settled {
        outcomes[at] = settled.err();
    }
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

/// One thread's way to the work tree and the store.
struct Worker<'a> {
    place: &'a Place<'a>,
    walker: Walker,
    reader: ObjectReader,
}

impl<'a> Worker<'a> {
    fn new(place: &'a Place<'a>) -> Self {
        Self {
            place,
            walker: place.walker.again(),
            reader: place.repository.reader(),
        }
    }

    fn require_root(&self) -> Result<(), String> {
        match self.walker.is_at(self.place.root) {
            true => Ok(()),
            false => Err(
                "the workspace folder was moved or replaced meanwhile; nothing is written there"
                    .to_owned(),
            ),
        }
    }

    /// Takes out what stands at a path where nothing, or a folder, is to be.
    fn take_out(&mut self, todo: &Step) -> Result<Taken, String> {
        self.require_root()?;
        let Some((dir, name)) = enter(&mut self.walker, &todo.path, false)? else {
            return Ok(Taken::Done);
        };
        let Some((before, found)) = require_before(dir, name, todo.before.as_ref())? else {
            return Ok(Taken::Done);
        };
        step();
        if found.kind == Kind::Folder {
            return dir
                .remove_folder(name)
                .map(|()| Taken::Done)
                .map_err(|error| cannot("delete it", &error));
        }
        require_unchanged(dir, name, before, found)?;
        dir.rename_new(name, &unfinished(self.place.undo, &todo.path))
            .map(|()| Taken::Out { put: None })
            .map_err(|error| cannot("delete it", &error))
    }

    fn write(&mut self, todo: &Step) -> Result<Taken, String> {
        self.require_root()?;
        let Some(after) = &todo.after else {
            return Ok(Taken::Done);
        };
        // What made way is gone.
        let before = todo.before.as_ref().filter(|_| !makes_way(todo));
        let changes_mode = before.is_some_and(|before| only_mode(before, after));
        // Read first, so that nothing is changed in vain.
        let content = match after.mode {
            Mode::Folder => Cow::default(),
            _ if changes_mode => Cow::default(),
            _ => match self.place.contents.get(&after.oid) {
                Some(content) => Cow::Borrowed(&**content),
                None => Cow::Owned(whole(&self.reader, after.oid)?),
            },
        };
        let Some((dir, name)) = enter(&mut self.walker, &todo.path, true)? else {
            return Err("its folder is gone".to_owned());
        };
        let seen = require_before(dir, name, before)?;
        step();
        let new = NewFile {
            at: displaced::Place {
                dir,
                name,
                beside: &unfinished(self.place.undo, &todo.path),
            },
            leaf: after,
            content: &content,
            withheld: self.place.readers.of(&todo.path).withheld(),
        };
        match seen {
            _ if after.mode == Mode::Folder => dir
                .make(name)
                .map(|()| Taken::Done)
                .map_err(|error| cannot("make the folder", &error)),
            Some((_, found)) if changes_mode => new.set_mode(found),
            Some((_, found)) if found.kind == Kind::Folder => {
                dir.remove_folder(name)
                    .map_err(|error| cannot("make way for it", &error))?;
                step();
                new.create()
            }
            Some((before, found)) => new.replace(before, found),
            None => new.create(),
        }
    }
}

/// Does nothing but the right to be executed differ?
pub(super) fn only_mode(before: &Leaf, after: &Leaf) -> bool {
    before.is_file() && after.is_file() && before.oid == after.oid
}

/// The folder of `path` and its name there; `None` where the folder is missing
/// and not to be made.
pub(super) fn enter<'a>(
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
fn require_before<'a>(
    dir: &Dir,
    name: &OsStr,
    before: Option<&'a Leaf>,
) -> Result<Option<(&'a Leaf, Found)>, String> {
    let found = dir
        .look(name)
        .map_err(|error| cannot("look at it", &error))?;
    let (Some(before), Some(found)) = (before, found) else {
        return match (before, found) {
            (None, None) => Ok(None),
            (Some(_), None) => Err("it was deleted meanwhile; it is left as it is".to_owned()),
            _ => Err(appeared()),
        };
    };
    // Of another size it does not hold what was seen.
    let is_other_size = |(seen, _): (Stamp, bool)| seen.size != found.stamp.size;
    if found.mode() != Some(before.mode) || before.seen.is_some_and(is_other_size) {
        return Err(changed());
    }
    Ok(Some((before, found)))
}

/// It holds what the plan saw, as far as that can be told before it is taken out:
/// who writes through a mapping of the file moves no stamp until later.
fn require_unchanged(dir: &Dir, name: &OsStr, before: &Leaf, found: Found) -> Result<(), String> {
    if before.seen == Some((found.stamp, true)) {
        return Ok(());
    }
    let leaf = dir.leaf(name).map_err(|error| cannot("read it", &error))?;
    match leaf {
        Some((leaf, _)) if leaf.is_same(before) => Ok(()),
        _ => Err(changed()),
    }
}

pub(super) fn changed() -> String {
    "it was changed meanwhile; it is left as it is".to_owned()
}

fn appeared() -> String {
    "something appeared there meanwhile; it is left as it is".to_owned()
}

/// A blob; the reader believes none that is not what its name says.
pub(super) fn whole(reader: &ObjectReader, oid: Oid) -> Result<Vec<u8>, String> {
    reader.blob(oid).map_err(message)
}

/// A file or link that is to stand at a place.
struct NewFile<'a> {
    at: displaced::Place<'a>,
    leaf: &'a Leaf,
    content: &'a [u8],
    /// Permission bits it does not get where no file stood before.
    withheld: u32,
}

impl NewFile<'_> {
    fn is_executable(&self) -> bool {
        self.leaf.mode == Mode::Executable
    }

    /// Where nothing stands.
    fn create(&self) -> Result<Taken, String> {
        self.complete(None)?;
        step();
        let displaced::Place { dir, name, beside } = self.at;
        match dir.rename_new(beside, name) {
            Ok(()) => Ok(Taken::Done),
            Err(error) => {
                let _ = dir.remove(beside);
                Err(match error.kind() {
                    io::ErrorKind::AlreadyExists => appeared(),
                    _ => cannot("write it", &error),
                })
            }
        }
    }

    /// Where the plan saw a file or a link.
    fn replace(&self, before: &Leaf, found: Found) -> Result<Taken, String> {
        let is_in_place = before.is_file()
            && before.mode == self.leaf.mode
            && in_place::write(&self.at, before, found, self.content)?;
        if is_in_place {
            return Ok(Taken::Done);
        }
        self.exchange(before, found)
    }

    fn exchange(&self, before: &Leaf, found: Found) -> Result<Taken, String> {
        let displaced::Place { dir, name, beside } = self.at;
        require_unchanged(dir, name, before, found)?;
        let put = Some(self.complete(Some(found))?);
        step();
        match self.at.exchange() {
            Ok(()) => Ok(Taken::Out { put }),
            Err(error) => {
                let _ = dir.remove(beside);
                Err(cannot("replace it", &error))
            }
        }
    }

    /// Completes it beside its place; what fails does not stay behind.
    fn complete(&self, replaced: Option<Found>) -> Result<Put, String> {
        let completed = match self.leaf.mode {
            Mode::Link => self.make_link(),
            _ => self.make_file(replaced),
        };
        let inode = completed.map_err(|error| {
            // What was there before is not ours.
            if error.kind() != io::ErrorKind::AlreadyExists {
                let _ = self.at.dir.remove(self.at.beside);
            }
            cannot("write it", &error)
        })?;
        Ok(Put {
            leaf: *self.leaf,
            inode,
        })
    }

    fn make_link(&self) -> io::Result<u64> {
        let displaced::Place { dir, beside, .. } = self.at;
        dir.make_link(self.content, beside)?;
        if dir.read_link(beside)? != self.content {
            return Err(io::Error::other("it points elsewhere than it was told to"));
        }
        let found = dir.look(beside)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(found.stamp.inode)
    }

    fn make_file(&self, replaced: Option<Found>) -> io::Result<u64> {
        let displaced::Place { dir, name, beside } = self.at;
        let replaced = replaced.filter(|found| found.kind == Kind::File);
        let access = match replaced {
            Some(_) => Access::CreatePrivate,
            None => Access::Create {
                executable: self.is_executable(),
                withheld: self.withheld,
            },
        };
        let file = dir.open(beside, access)?;
        fill(&file, self.content)?;
        verify(&file, self.content)?;
        if let Some(found) = replaced {
            step();
            let old = dir.open(name, Access::Read)?;
            if found_of(&old)? != found {
                return Err(io::Error::other("it was changed meanwhile"));
            }
            attributes::copy(&old, &file, self.is_executable())?;
        }
        Ok(found_of(&file)?.stamp.inode)
    }

    /// Where the plan saw the same content.
    fn set_mode(&self, found: Found) -> Result<Taken, String> {
        let set = || {
            let file = self.at.dir.open(self.at.name, Access::Read)?;
            if found_of(&file)? != found {
                return Err(io::Error::other("it was changed meanwhile"));
            }
            allow(&file, rights(found.stamp.mode, self.is_executable()))
        };
        set()
            .map(|()| Taken::Done)
            .map_err(|error| cannot("change its permission to be executed", &error))
    }
}

fn fill(mut file: &File, content: &[u8]) -> io::Result<()> {
    use std::io::Write;
    for piece in content.chunks(PIECE) {
        file.write_all(piece)?;
        step();
    }
    Ok(())
}

/// Fails unless the file holds `content`.
pub(super) fn verify(mut file: &File, content: &[u8]) -> io::Result<()> {
    let mut held = Vec::new();
    io::Seek::rewind(&mut file)?;
    // One byte more would show.
    read_file::read_at_most(file, content.len() as u64 + 1, &mut held)?;
    match held == content {
        true => Ok(()),
        false => Err(io::Error::other("it holds something else than was written")),
    }
}

pub(super) fn cannot(what: &str, error: &io::Error) -> String {
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
