//! Applies the steps of a plan to the workspace.
//!
//! Files are deleted first, then empty folders are removed, then files are written: a file can
//! replace a folder and the other way round. Paths are resolved without following symlinks, and
//! each file is checked again just before it is changed. A file that changed since the plan was
//! made is left as it is. An error affects only its own path.
//!
//! A file is written in place only under a lease, which excludes other processes, see
//! [`in_place`]. Otherwise the new file is created at a temporary name, gets the owner, permissions
//! and other attributes of the old one, and the two names are exchanged. The displaced file is
//! checked after the last step, see [`displaced_files`]. Either way, a save during the
//! restore is never overwritten.

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::HashSet,
    ffi::{OsStr, OsString},
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;
use sightline_base::{
    fs::dir::{Access, Dir, DirWalker, FileInfo, FileType, stat_file},
    path::RelPath,
    thread_pool,
};

pub(super) mod displaced_files;
mod file_attributes;
mod file_content;
pub(super) mod in_place;
mod open_by_processes;
pub(super) mod step_error;
use super::{
    super::{
        job::{Job, Progress},
        store::{
            object::{Mode, Oid},
            odb::Odb,
            repository::Repository,
        },
        tree_diff::Leaf,
        worktree::{permissions::ReadPermissionMap, snapshot::Stamp},
    },
    crash_point::crash_point,
    plan::Step,
    preflight::BlobCache,
};
use displaced_files::{FileSlot, Installed, temp_file_name, wait_until_closed};
use file_attributes::{set_permissions, with_executable};
use file_content::{verify_content, write_content};
use step_error::{StepError, appeared_error, changed_error, failure};

/// Number of steps that a thread takes at once. Small, as steps differ in cost.
const CHUNK: usize = 8;

/// Workspace and store that steps are applied with.
pub(super) struct ApplyContext<'a> {
    pub(super) root: &'a std::path::Path,
    /// Opened before the plan was made: if another folder or a link replaces `root`, nothing is
    /// written there.
    pub(super) walker: &'a DirWalker,
    pub(super) repository: &'a Repository,
    /// Contents that were read already.
    pub(super) contents: &'a BlobCache,
    /// The undo point, which temporary names are derived from.
    pub(super) undo: Oid,
    /// Read permissions for new files.
    pub(super) readers: ReadPermissionMap<'a>,
}

/// Result of a step.
enum StepOutcome {
    /// The step is complete.
    Done,
    /// The old file has a temporary name and must be discarded or put back. `installed` is the new
    /// file at its name, if there is one.
    Displaced { installed: Option<Installed> },
}

/// Applies the steps, which are sorted by path, and removes those of `folders` that are empty.
/// Returns an error for each step that failed.
pub(super) fn apply(
    job: &Job<'_>,
    context: &ApplyContext<'_>,
    steps: &[Step],
    folders: &[RelPath],
) -> Vec<Option<StepError>> {
    let done = AtomicU64::new(0);
    let report_progress = || {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        (job.progress)(Progress {
            stage: "restoring",
            done,
            total: Some(steps.len() as u64),
        });
    };
    let numbered = || steps.iter().enumerate();
    let deletions: Vec<_> = numbered()
        .filter(|(_, step)| step.after.is_none() || is_replaced_by_folder(step))
        .collect();
    let mut outcomes = vec![None; steps.len()];
    let gone = in_parallel(context, &deletions, |worker, step| {
        let outcome = worker.displace(step);
        if step.after.is_none() {
            report_progress();
        }
        outcome
    });
    discard_or_put_back_all(context, steps, gone, &mut outcomes);
    remove_folders(context, folders);
    let writes: Vec<_> = numbered()
        .filter(|(at, step)| step.after.is_some() && outcomes[*at].is_none())
        .collect();
    let written = in_parallel(context, &writes, |worker, step| {
        let outcome = worker.write(step);
        report_progress();
        outcome
    });
    discard_or_put_back_all(context, steps, written, &mut outcomes);
    outcomes
}

/// Returns whether an empty folder replaces a file or link.
fn is_replaced_by_folder(step: &Step) -> bool {
    let is_folder = |leaf: &Option<Leaf>| leaf.map(|leaf| leaf.mode == Mode::Folder);
    is_folder(&step.before) == Some(false) && is_folder(&step.after) == Some(true)
}

/// Calls `act` for each item, on several threads, and returns the results with their numbers.
fn in_parallel<T: Sync, R: Send>(
    context: &ApplyContext<'_>,
    items: &[(usize, T)],
    act: impl Fn(&mut Worker<'_>, &T) -> R + Sync,
) -> Vec<(usize, R)> {
    thread_pool::start();
    let chunks = items.par_chunks(CHUNK).map_init(
        || Worker::new(context),
        |worker, chunk| {
            let each = chunk.iter().map(|(at, item)| (*at, act(worker, item)));
            each.collect::<Vec<_>>()
        },
    );
    chunks.flatten_iter().collect()
}

/// Discards the files that the steps displaced, or puts them back if they were changed.
fn discard_or_put_back_all(
    context: &ApplyContext<'_>,
    steps: &[Step],
    results: Vec<(usize, Result<StepOutcome, StepError>)>,
    outcomes: &mut [Option<StepError>],
) {
    let mut displaced = Vec::new();
    for (at, result) in results {
        match result {
            Ok(StepOutcome::Done) => {}
            Ok(StepOutcome::Displaced { installed }) => {
                let temp_name = temp_file_name(context.undo, &steps[at].path);
                displaced.push((at, (&steps[at], installed, temp_name)));
            }
            Err(why) => outcomes[at] = Some(why),
        }
    }
    // Checked only now that all files are displaced: no process can open them by their old names.
    let names: HashSet<OsString> = displaced
        .iter()
        .map(|(_, (.., name))| name.clone())
        .collect();
    let open = wait_until_closed(&names);
    let settled = in_parallel(
        context,
        &displaced,
        |worker, (step, installed, temp_name)| {
            let Some((dir, name)) = open_parent(&mut worker.walker, &step.path, false)? else {
                return Err("its folder no longer exists".to_owned());
            };
            let slot = FileSlot {
                dir,
                name,
                temp_name,
            };
            slot.discard_or_put_back(step.before.as_ref(), *installed, open.contains(temp_name))
        },
    );
    for (at, settled) in settled {
        outcomes[at] = settled.err().map(StepError::from);
    }
}

/// Removes folders, except for those that are not empty.
fn remove_folders(context: &ApplyContext<'_>, folders: &[RelPath]) {
    let mut walker = context.walker.clone_root();
    // Subfolders come after their parents in path order.
    for folder in folders.iter().rev() {
        if let (Some(parent), Some(name)) = (folder.parent(), folder.name()) {
            if !walker.is_same_dir(context.root) {
                return;
            }
            crash_point();
            let _ = walker
                .open_dir(&parent)
                .and_then(|dir| dir.remove_dir(name));
        }
    }
}

/// Handles of one thread to the workspace and the store.
struct Worker<'a> {
    context: &'a ApplyContext<'a>,
    walker: DirWalker,
    reader: Odb,
}

impl<'a> Worker<'a> {
    fn new(context: &'a ApplyContext<'a>) -> Self {
        Self {
            context,
            walker: context.walker.clone_root(),
            reader: context.repository.odb(),
        }
    }

    fn check_root(&self) -> Result<(), String> {
        if self.walker.is_same_dir(self.context.root) {
            Ok(())
        } else {
            Err(
                "the workspace folder was moved or replaced during the restore; left as it is"
                    .to_owned(),
            )
        }
    }

    /// Deletes a file, link or empty folder. Files and links only get a temporary name.
    fn displace(&mut self, todo: &Step) -> Result<StepOutcome, StepError> {
        self.check_root()?;
        let Some((dir, name)) = open_parent(&mut self.walker, &todo.path, false)? else {
            return Ok(StepOutcome::Done);
        };
        let Some((before, found)) = check_before(dir, name, todo.before.as_ref())? else {
            return Ok(StepOutcome::Done);
        };
        crash_point();
        if found.kind == FileType::Directory {
            return dir
                .remove_dir(name)
                .map(|()| StepOutcome::Done)
                .map_err(|error| failure("delete it", &error).into());
        }
        check_unchanged(dir, name, before, found)?;
        dir.rename_new(name, &temp_file_name(self.context.undo, &todo.path))
            .map(|()| StepOutcome::Displaced { installed: None })
            .map_err(|error| failure("delete it", &error).into())
    }

    fn write(&mut self, todo: &Step) -> Result<StepOutcome, StepError> {
        self.check_root()?;
        let Some(after) = &todo.after else {
            return Ok(StepOutcome::Done);
        };
        // A file that is replaced by a folder was displaced before.
        let before = todo
            .before
            .as_ref()
            .filter(|_| !is_replaced_by_folder(todo));
        let changes_mode = before.is_some() && todo.changes_only_mode();
        // Read before anything is changed: this can fail.
        let content = match after.mode {
            Mode::Folder => Cow::default(),
            _ if changes_mode => Cow::default(),
            _ => match self.context.contents.get(&after.oid) {
                Some(content) => Cow::Borrowed(&**content),
                None => Cow::Owned(
                    self.reader
                        .blob(after.oid)
                        .map_err(|error| error.to_string())?,
                ),
            },
        };
        let Some((dir, name)) = open_parent(&mut self.walker, &todo.path, true)? else {
            return Err("its folder no longer exists".to_owned().into());
        };
        let seen = check_before(dir, name, before)?;
        crash_point();
        let new = NewFile {
            slot: FileSlot {
                dir,
                name,
                temp_name: &temp_file_name(self.context.undo, &todo.path),
            },
            leaf: after,
            content: &content,
            withheld: self.context.readers.of(&todo.path).withheld(),
        };
        match seen {
            _ if after.mode == Mode::Folder => dir
                .create_dir(name)
                .map(|()| StepOutcome::Done)
                .map_err(|error| failure("create the folder", &error).into()),
            Some((_, found)) if changes_mode => Ok(new.set_mode(found)?),
            Some((_, found)) if found.kind == FileType::Directory => {
                dir.remove_dir(name)
                    .map_err(|error| failure("remove the empty folder at this path", &error))?;
                crash_point();
                Ok(new.create()?)
            }
            Some((before, found)) => new.replace(before, found),
            None => Ok(new.create()?),
        }
    }
}

/// Opens the folder of `path`, and creates it first if `make` is set. Returns the folder and the file
/// name, or `None` if the folder does not exist.
pub(super) fn open_parent<'a>(
    walker: &'a mut DirWalker,
    path: &'a RelPath,
    make: bool,
) -> Result<Option<(&'a Dir, &'a OsStr)>, String> {
    let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
        return Err("the path is the workspace folder itself".to_owned());
    };
    let dir = if make {
        walker.create_dir_all(&parent)
    } else {
        walker.open_dir(&parent)
    };
    match dir {
        Ok(dir) => Ok(Some((dir, name))),
        Err(error) if !make && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err("a folder above it is now a link or a file; left as it is".to_owned())
        }
        Err(error) => Err(failure("open its folder", &error)),
    }
}

/// Returns what exists at the name, if its type and size are as the plan saw them. The content is
/// checked later, when it is changed.
fn check_before<'a>(
    dir: &Dir,
    name: &OsStr,
    before: Option<&'a Leaf>,
) -> Result<Option<(&'a Leaf, FileInfo)>, String> {
    let found = dir
        .stat(name)
        .map_err(|error| failure("inspect it", &error))?;
    let (Some(before), Some(found)) = (before, found) else {
        return match (before, found) {
            (None, None) => Ok(None),
            (Some(_), None) => Err("deleted during the restore; left as it is".to_owned()),
            _ => Err(appeared_error()),
        };
    };
    let is_other_size = |(seen, _): (Stamp, bool)| seen.size != found.stamp.size;
    if Mode::of(&found) != Some(before.mode) || before.seen.is_some_and(is_other_size) {
        return Err(changed_error());
    }
    Ok(Some((before, found)))
}

/// Checks that the file has the content that the plan saw. The stamp is enough for now: a write
/// through a shared mapping updates it late, but the displaced file is read again.
fn check_unchanged(dir: &Dir, name: &OsStr, before: &Leaf, found: FileInfo) -> Result<(), String> {
    if before.seen == Some((found.stamp, true)) {
        return Ok(());
    }
    let leaf = Leaf::read(dir, name).map_err(|error| failure("read it", &error))?;
    match leaf {
        Some((leaf, _)) if leaf.is_same(before) => Ok(()),
        _ => Err(changed_error()),
    }
}

/// File or link to create.
struct NewFile<'a> {
    slot: FileSlot<'a>,
    leaf: &'a Leaf,
    content: &'a [u8],
    /// Permission bits that are cleared if no file existed before.
    withheld: u32,
}

impl NewFile<'_> {
    fn is_executable(&self) -> bool {
        self.leaf.mode == Mode::Executable
    }

    /// Creates the file where none exists.
    fn create(&self) -> Result<StepOutcome, String> {
        self.create_temp(None)?;
        crash_point();
        let FileSlot {
            dir,
            name,
            temp_name,
        } = self.slot;
        match dir.rename_new(temp_name, name) {
            Ok(()) => Ok(StepOutcome::Done),
            Err(error) => {
                let _ = dir.unlink(temp_name);
                Err(match error.kind() {
                    io::ErrorKind::AlreadyExists => appeared_error(),
                    _ => failure("write it", &error),
                })
            }
        }
    }

    /// Replaces a file or a link.
    fn replace(&self, before: &Leaf, found: FileInfo) -> Result<StepOutcome, StepError> {
        let is_in_place = before.is_file()
            && before.mode == self.leaf.mode
            && in_place::write(&self.slot, before, found, self.content)?;
        if is_in_place {
            return Ok(StepOutcome::Done);
        }
        // Opening it for writing can have changed its times (overlayfs).
        match check_before(self.slot.dir, self.slot.name, Some(before))? {
            Some((before, found)) => Ok(self.exchange(before, found)?),
            None => Err(changed_error().into()),
        }
    }

    fn exchange(&self, before: &Leaf, found: FileInfo) -> Result<StepOutcome, String> {
        let FileSlot {
            dir,
            name,
            temp_name,
        } = self.slot;
        check_unchanged(dir, name, before, found)?;
        let installed = Some(self.create_temp(Some(found))?);
        crash_point();
        match self.slot.exchange() {
            Ok(()) => Ok(StepOutcome::Displaced { installed }),
            Err(error) => {
                let _ = dir.unlink(temp_name);
                Err(failure("replace it", &error))
            }
        }
    }

    /// Creates the complete file at its temporary name. Removes it on errors.
    fn create_temp(&self, replaced: Option<FileInfo>) -> Result<Installed, String> {
        let completed = match self.leaf.mode {
            Mode::Link => self.make_link(),
            _ => self.make_file(replaced),
        };
        let inode = completed.map_err(|error| {
            // A file that existed already is not ours.
            if error.kind() != io::ErrorKind::AlreadyExists {
                let _ = self.slot.dir.unlink(self.slot.temp_name);
            }
            failure("write it", &error)
        })?;
        Ok(Installed {
            leaf: *self.leaf,
            inode,
        })
    }

    fn make_link(&self) -> io::Result<u64> {
        let FileSlot { dir, temp_name, .. } = self.slot;
        dir.create_symlink(self.content, temp_name)?;
        if dir.read_link(temp_name)? != self.content {
            return Err(io::Error::other(
                "the link read back differs from what was written",
            ));
        }
        let found = dir.stat(temp_name)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(found.stamp.inode)
    }

    fn make_file(&self, replaced: Option<FileInfo>) -> io::Result<u64> {
        let FileSlot {
            dir,
            name,
            temp_name,
        } = self.slot;
        let replaced = replaced.filter(|found| found.kind == FileType::File);
        let access = match replaced {
            Some(_) => Access::CreatePrivate,
            None => Access::Create {
                executable: self.is_executable(),
                withheld: self.withheld,
            },
        };
        let file = dir.open(temp_name, access)?;
        write_content(&file, self.content)?;
        verify_content(&file, self.content)?;
        if let Some(found) = replaced {
            crash_point();
            let old = dir.open(name, Access::Read)?;
            if stat_file(&old)? != found {
                return Err(io::Error::other("changed during the restore"));
            }
            file_attributes::copy(&old, &file, self.is_executable())?;
        }
        Ok(stat_file(&file)?.stamp.inode)
    }

    /// Changes only the executable bit.
    fn set_mode(&self, found: FileInfo) -> Result<StepOutcome, String> {
        let set = || {
            let file = self.slot.dir.open(self.slot.name, Access::Read)?;
            if stat_file(&file)? != found {
                return Err(io::Error::other("changed during the restore"));
            }
            set_permissions(
                &file,
                with_executable(found.stamp.mode, self.is_executable()),
            )
        };
        set()
            .map(|()| StepOutcome::Done)
            .map_err(|error| failure("change its executable bit", &error))
    }
}
