//! Walks the work tree in parallel and without recursion.
//!
//! Each folder is a [`DirTask`]: it is opened, its entries are processed ([`entries`]), and its
//! subfolders become separate tasks. The thread that finishes the last part of a task assembles
//! the folder and passes it to the parent task.
//!
//! A folder with an unchanged stamp is not listed again; only its known entries are checked. A walk
//! can also be limited to some paths ([`PathTree`]).

pub(crate) mod dir_task;
mod entries;
pub(crate) mod state;

use std::{
    ffi::OsStr,
    io::{self, Read as _},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use rayon::Scope;
use sightline_access::gitignore_stack;
use sightline_base::{
    fs::dir::{Dir, FileType},
    path::os_name,
    thread_pool,
};

use super::{
    capture_filter::{
        repository_data::{VersionControl, is_known_name, is_marker, system_of, system_of_dir},
        with_own,
    },
    read_file::{self, ReadOutcome, is_resource_error, resource_error},
    scan::cannot_scan,
    snapshot::{ExclusionReason, Folder, FolderRules, Node, Stamp},
    walk::{
        dir_task::{DirState, DirTask, EntryResult, PathTree, assemble},
        state::{DirContext, ListedName, Walk, WalkOptions, WalkOutcome},
    },
};
use crate::error::Error;

/// Depth below which folders are opened from a distant ancestor instead of their parent. Limits the
/// number of open folders.
const MAX_OPEN_LEVELS: usize = 64;

/// Result of opening a folder.
enum Opened<'a> {
    Dir(DirContext<'a>),
    /// The folder is not captured.
    Excluded(EntryResult),
}

impl Opened<'_> {
    fn of_system(system: VersionControl) -> Self {
        let reason = ExclusionReason::RepositoryData(system);
        Self::Excluded(EntryResult::Excluded(reason))
    }
}

impl Walk<'_> {
    /// Runs the walk. `reevaluate` ignores the decisions of the last scan.
    pub(crate) fn run(
        &self,
        root: Dir,
        last: Option<&Arc<Folder>>,
        paths: Option<&PathTree>,
        reevaluate: bool,
    ) -> Result<WalkOutcome, Error> {
        let task = Arc::new(DirTask {
            parent: None,
            name: Box::default(),
            depth: 0,
            anchor: Arc::new(root),
            path_from_anchor: Vec::new(),
            last: last.cloned(),
            paths,
            above: self.options.filter.above(),
            is_ignored: OnceLock::from(false),
            reevaluate,
            pending: AtomicUsize::new(1),
            state: Mutex::default(),
        });
        thread_pool::start();
        rayon::scope(|scope| scope.spawn(|scope| self.visit(scope, task)));
        self.options.job.cancel.check()?;
        self.outcome()
            .take()
            .unwrap_or_else(|| Err(Error::cancelled()))
    }

    fn visit<'s>(&'s self, scope: &Scope<'s>, task: Arc<DirTask<'s>>) {
        if !self.is_stopped() {
            match self.open(&task) {
                Ok(Opened::Dir(context)) => self.process_entries(scope, context),
                Ok(Opened::Excluded(result)) => task.state().excluded = Some(result),
                Err(outcome) => self.stop(outcome),
            }
        }
        self.complete(task);
    }

    /// Opens a folder, and determines whether its names and rules are known.
    ///
    /// # Errors
    /// Returns the outcome of the walk, if this ends it.
    fn open<'s>(&self, task: &Arc<DirTask<'s>>) -> Result<Opened<'s>, Result<WalkOutcome, Error>> {
        let (dir, stamp) = match task.open() {
            Ok(opened) => opened,
            Err(error) => return failed_to_open(&error),
        };
        if self.may_become_repository_data(task)
            && let Some(system) = self.unless_root(task, system_of_dir(&self.name(task), &dir))
        {
            return Ok(Opened::of_system(system));
        }
        let known = task.last.as_ref().filter(|last| {
            let is_known = is_same_folder(&last.stamp, &stamp) && last.settled && !task.reevaluate;
            task.paths.is_some() || is_known
        });
        if let Some(known) = known {
            let before = known.rules.as_deref();
            let now = before.map(|before| {
                let gitignore = reload_gitignore(&dir, known, before);
                self.rules(task, before.git, gitignore)
            });
            let now = match now.transpose() {
                Ok(now) => now,
                Err(reason) => return Ok(Opened::Excluded(EntryResult::Excluded(reason))),
            };
            if before == now.as_ref() {
                let state = DirState {
                    stamp: known.stamp,
                    settled: known.settled,
                    rules: now,
                    base: Some(known.clone()),
                    ..DirState::default()
                };
                return Ok(self.enter(task, dir, state, None));
            }
            if task.paths.is_some() {
                return Err(Ok(WalkOutcome::RulesMoved));
            }
        }
        let names = match names(&dir) {
            Ok(names) => names,
            Err(error) => return failed_to_open(&error),
        };
        if let Some(system) = self.system_of(task, &names) {
            return Ok(Opened::of_system(system));
        }
        let all = names.iter().map(|name| &*name.name);
        self.options.filter.note_names(&task.path(), all);
        let gitignore = find(&names, gitignore_stack::FILE_NAME)
            .filter(|entry| matches!(entry.kind, Some(FileType::File) | None))
            .and_then(|_| read_gitignore(&dir));
        let rules = match self.rules(task, find(&names, ".git").is_some(), gitignore) {
            Ok(rules) => rules.has_sources().then_some(rules),
            Err(reason) => return Ok(Opened::Excluded(EntryResult::Excluded(reason))),
        };
        let state = DirState {
            stamp,
            settled: stamp.is_settled(self.options.started_at),
            rules,
            ..DirState::default()
        };
        Ok(self.enter(task, dir, state, Some(names)))
    }

    /// Enters an open folder, and its repository. `names` are its names if they were listed.
    fn enter<'s>(
        &self,
        task: &Arc<DirTask<'s>>,
        dir: Arc<Dir>,
        state: DirState,
        names: Option<Vec<ListedName>>,
    ) -> Opened<'s> {
        let WalkOptions {
            filter,
            repositories,
            ..
        } = self.options;
        let own = state.rules.as_ref();
        if task.parent.is_some() && own.is_some_and(|own| own.git) {
            repositories.enter(&task.path());
        }
        let ignore_rules = match own {
            Some(own) if own.excludes.is_some() || own.gitignore.is_some() => {
                with_own(&task.above, &filter.place(&task.path()), own)
            }
            _ => task.above.clone(),
        };
        let before = task.last.as_ref().map(|last| last.rules.as_deref());
        let context = DirContext {
            task: task.clone(),
            dir,
            ignore_rules,
            reevaluate: names.is_some()
                && (task.reevaluate || before.is_some_and(|before| before != own)),
            names,
        };
        *task.state() = state;
        Opened::Dir(context)
    }

    /// Returns the name of a folder.
    fn name(&self, task: &DirTask<'_>) -> Box<[u8]> {
        if task.parent.is_some() {
            return task.name.clone();
        }
        let root = self.options.filter.place(b"");
        let name = root.file_name().unwrap_or_default();
        name.as_encoded_bytes().into()
    }

    /// Returns whether a walk of some paths contains entries by which a folder is recognized as the
    /// data of a version control system.
    fn may_become_repository_data(&self, task: &DirTask<'_>) -> bool {
        let Some(paths) = task.paths else {
            return false;
        };
        let name = self.name(task);
        paths.names.keys().any(|entry| is_marker(&name, entry))
    }

    /// Returns the version control system whose data a folder with these names contains.
    fn system_of(&self, task: &DirTask<'_>, names: &[ListedName]) -> Option<VersionControl> {
        let is_worktree = || {
            let is_linked =
                find(names, ".git").is_some_and(|git| git.kind != Some(FileType::Directory));
            let filter = self.options.filter;
            let is_below = task.parent.is_some();
            is_below
                && is_linked
                && filter
                    .own_repository
                    .has_worktree(&filter.place(&task.path()))
        };
        let system = system_of(&self.name(task), |name| Some(find(names, name)?.kind));
        self.unless_root(task, system)
            .or_else(|| is_worktree().then_some(VersionControl::GitWorktree))
    }

    /// Ignores what is recognized only by its content, if it is the root: a project is more probable.
    fn unless_root(
        &self,
        task: &DirTask<'_>,
        system: Option<VersionControl>,
    ) -> Option<VersionControl> {
        system.filter(|system| {
            task.parent.is_some()
                || *system == VersionControl::Git
                || is_known_name(&self.name(task))
        })
    }

    /// Reads the other rules of a folder.
    ///
    /// # Errors
    /// Returns why the folder is not captured, if its access rules cannot be used.
    fn rules(
        &self,
        task: &DirTask<'_>,
        git: bool,
        gitignore: Option<Arc<[u8]>>,
    ) -> Result<FolderRules, ExclusionReason> {
        let path = task.path();
        let excludes = || gitignore_stack::excludes_of(&self.options.filter.place(&path));
        Ok(FolderRules {
            git,
            excludes: git.then(excludes).flatten().map(Arc::from),
            gitignore,
            access: self.options.filter.access_rules_of(&path)?,
        })
    }

    /// Starts the task of a subfolder.
    pub(crate) fn descend<'s>(
        &'s self,
        scope: &Scope<'s>,
        context: &DirContext<'s>,
        name: &[u8],
        last: Option<&Arc<Folder>>,
        paths: Option<&'s PathTree>,
        is_ignored: OnceLock<bool>,
    ) {
        let above = &context.task;
        let is_near =
            above.depth < MAX_OPEN_LEVELS || above.path_from_anchor.len() >= MAX_OPEN_LEVELS;
        let (anchor, mut path_from_anchor) = if is_near {
            (context.dir.clone(), Vec::new())
        } else {
            (above.anchor.clone(), above.path_from_anchor.clone())
        };
        path_from_anchor.push(name.into());
        let task = Arc::new(DirTask {
            parent: Some(above.clone()),
            name: name.into(),
            depth: above.depth + 1,
            anchor,
            path_from_anchor,
            last: last.cloned(),
            // A new folder is walked completely.
            paths: paths.filter(|paths| !paths.whole && last.is_some()),
            above: context.ignore_rules.clone(),
            is_ignored,
            reevaluate: context.reevaluate,
            pending: AtomicUsize::new(1),
            state: Mutex::default(),
        });
        above.pending.fetch_add(1, Ordering::Relaxed);
        scope.spawn(|scope| self.visit(scope, task));
    }

    /// Marks a part of a task as finished. With the last part, assembles the folder, which finishes
    /// a part of the parent task.
    pub(crate) fn complete(&self, task: Arc<DirTask<'_>>) {
        let mut task = task;
        while task.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.is_stopped() {
                return;
            }
            let change = assemble(&task, self.options.salt);
            let Some(parent) = task.parent.clone() else {
                return self.finish(change);
            };
            let mut state = parent.state();
            let is_known = matches!((&state.base, &task.last, &change),
                (Some(_), Some(last), EntryResult::Node(Node::Folder(now))) if Arc::ptr_eq(last, now));
            if !is_known {
                state.changes.push((task.name.clone(), change));
            }
            drop(state);
            task = parent;
        }
    }

    fn finish(&self, change: EntryResult) {
        self.stop(match change {
            EntryResult::Node(Node::Folder(tree)) => Ok(WalkOutcome::Tree(tree)),
            EntryResult::Excluded(reason) => Err(cannot_scan(
                self.options.filter,
                &io::Error::other(reason.to_string()),
            )),
            _ => Err(cannot_scan(
                self.options.filter,
                &io::ErrorKind::NotFound.into(),
            )),
        });
    }
}

/// Returns the result of a folder that cannot be opened.
fn failed_to_open<'a>(error: &io::Error) -> Result<Opened<'a>, Result<WalkOutcome, Error>> {
    let number = error.raw_os_error().unwrap_or(0);
    if is_resource_error(number) {
        return Err(Err(resource_error(number)));
    }
    Ok(Opened::Excluded(match read_file::failed(error) {
        ReadOutcome::Skipped(reason) => EntryResult::Excluded(reason),
        _ => EntryResult::Gone,
    }))
}

/// Lists the names in a folder, sorted.
fn names(dir: &Dir) -> io::Result<Vec<ListedName>> {
    let mut names = Vec::new();
    dir.entries(|name, kind| {
        let name = name.as_encoded_bytes().into();
        names.push(ListedName { name, kind });
        true
    })?;
    names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(names)
}

/// Finds a name in a sorted list.
fn find<'a>(names: &'a [ListedName], wanted: &str) -> Option<&'a ListedName> {
    let index = names.binary_search_by(|name| (*name.name).cmp(wanted.as_bytes()));
    index.ok().map(|index| &names[index])
}

/// Reads the `.gitignore` of a folder whose names are known, unless it is unchanged.
fn reload_gitignore(dir: &Dir, known: &Folder, before: &FolderRules) -> Option<Arc<[u8]>> {
    let name = gitignore_stack::FILE_NAME.as_bytes();
    let text = before.gitignore.as_ref()?;
    let file = known.get(name).and_then(|entry| entry.file());
    let is_clean = file.is_some_and(|file| {
        let found = dir.stat(os_name(name));
        file.settled && matches!(found, Ok(Some(found)) if found.stamp == file.stamp)
    });
    if is_clean {
        Some(text.clone())
    } else {
        read_gitignore(dir)
    }
}

/// Reads a `.gitignore`. Returns an empty text if it cannot be read.
fn read_gitignore(dir: &Dir) -> Option<Arc<[u8]>> {
    let mut text = Vec::new();
    match read_file::open(dir, OsStr::new(gitignore_stack::FILE_NAME)) {
        Ok((file, found)) if found.kind == FileType::File => {
            if found.stamp.size <= gitignore_stack::MAX_BYTES
                && file
                    .take(gitignore_stack::MAX_BYTES)
                    .read_to_end(&mut text)
                    .is_err()
            {
                text.clear();
            }
        }
        Err(error) if !read_file::is_gone(&error) => {}
        // git does not follow a link here.
        Ok(_) | Err(_) => return None,
    }
    Some(text.into())
}

/// Returns whether the names in the folder are unchanged. Size and link count add no information.
fn is_same_folder(left: &Stamp, right: &Stamp) -> bool {
    (left.mtime, left.ctime, left.inode) == (right.mtime, right.ctime, right.inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_modification_time_does_not_hide_a_change() {
        let stamp = Stamp {
            mtime: 1,
            ctime: 2,
            inode: 3,
            ..Stamp::default()
        };
        let same = |change: fn(&mut Stamp)| {
            let mut other = stamp;
            change(&mut other);
            is_same_folder(&stamp, &other)
        };
        assert!(same(|stamp| stamp.size += 1));
        assert!(!same(|stamp| stamp.mtime += 1));
        assert!(!same(|stamp| stamp.ctime += 1));
        assert!(!same(|stamp| stamp.inode += 1));
    }
}
