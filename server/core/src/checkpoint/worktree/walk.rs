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

use std::{
    io::Read as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use rayon::Scope;
use sightline_protocol::error::ErrorKind;

use super::{
    capture_filter::{CaptureFilter, IgnoreStack},
    exclusions::PathSalt,
    git_index::TrackedPaths,
    read_file::{self, ReadOutcome},
    reserved_names::GIT_DIRECTORY_ENTRIES,
    scan::BlobSink,
    scan_dir::{EntryKind, ScanDir},
    snapshot::{ExclusionReason, Folder, FolderRules, Node, Stamp},
    walk::{
        dir_task::{DirTask, EntryResult, PathTree, assemble},
        entries::{DirContext, ListedName, OpenedDir, is_resource_error, resource_error},
    },
};
use crate::{
    cancel::Cancel,
    checkpoint::{Job, Progress},
    error::Error,
    gitignore_stack,
};

/// Number of files between progress reports.
const PROGRESS_STRIDE: u64 = 256;
/// Depth below which folders are opened from a distant ancestor instead of their parent. Limits the
/// number of open folders.
const MAX_OPEN_LEVELS: usize = 64;
/// What a walk does with files.
#[derive(Clone, Copy)]
pub(crate) enum ContentMode<'a> {
    /// Only counts them. The resulting tree has no contents.
    Measure { max_files: u64, max_bytes: u64 },
    /// Reads files that may have changed.
    Read(Option<&'a dyn BlobSink>),
}

/// State of one walk.
pub(crate) struct Walk<'a> {
    pub(crate) filter: &'a CaptureFilter<'a>,
    /// Paths that ignore rules do not exclude.
    pub(crate) tracked: &'a TrackedPaths,
    /// Salt of the hashes of denied paths.
    salt: PathSalt,
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
    pub(crate) content_mode: ContentMode<'a>,
    /// Maximum size of a captured file, in bytes.
    pub(crate) max_file_size: u64,
    /// Start time, in nanoseconds since the epoch.
    pub(crate) started_at: i64,
    /// Number of files, if known.
    pub(crate) total: Option<u64>,
    pub(crate) done: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    is_stopped: AtomicBool,
    end: Mutex<WalkEnd>,
}

/// Result of a walk.
#[derive(Debug)]
pub(crate) enum WalkOutcome {
    Tree(Arc<Folder>),
    /// The walk was limited to some paths, and rules for other paths changed.
    RulesMoved,
    /// The limits of [`ContentMode::Measure`] are exceeded.
    TooLarge,
}

/// How a walk ended.
#[derive(Debug, Default)]
pub(crate) enum WalkEnd {
    #[default]
    Nowhere,
    Tree(Arc<Folder>),
    /// Rules changed for paths outside this walk.
    RulesMoved,
    /// A limit is exceeded.
    TooLarge,
    Failed(Error),
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        job: &Job<'a>,
        (filter, tracked, salt): (&'a CaptureFilter<'a>, &'a TrackedPaths, PathSalt),
        content_mode: ContentMode<'a>,
        started_at: i64,
        total: Option<u64>,
    ) -> Self {
        Self {
            filter,
            tracked,
            salt,
            cancel: job.cancel,
            progress: job.progress,
            content_mode,
            max_file_size: job.settings.max_file_size,
            started_at,
            total,
            done: AtomicU64::new(0),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            end: Mutex::default(),
        }
    }

    /// Runs the walk. `reevaluate` ignores the decisions of the last scan.
    pub(crate) fn run(
        &self,
        root: ScanDir,
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
            above: IgnoreStack::start(self.filter),
            reevaluate,
            pending: AtomicUsize::new(1),
            state: Mutex::default(),
        });
        rayon::scope(|scope| scope.spawn(|scope| self.visit(scope, task)));
        self.cancel.check()?;
        match std::mem::take(&mut *self.end()) {
            WalkEnd::Tree(tree) => Ok(WalkOutcome::Tree(tree)),
            WalkEnd::RulesMoved => Ok(WalkOutcome::RulesMoved),
            WalkEnd::TooLarge => Ok(WalkOutcome::TooLarge),
            WalkEnd::Failed(error) => Err(error),
            WalkEnd::Nowhere => Err(Error::cancelled()),
        }
    }

    fn end(&self) -> MutexGuard<'_, WalkEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self, end: WalkEnd) {
        let mut first = self.end();
        if matches!(*first, WalkEnd::Nowhere) {
            *first = end;
        }
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    fn visit<'s>(&'s self, scope: &Scope<'s>, task: Arc<DirTask<'s>>) {
        if !self.is_stopped() {
            match self.open(&task) {
                Ok(Some(open)) => self.process_entries(scope, &task, open),
                Ok(None) => {}
                Err(end) => self.stop(end),
            }
        }
        self.complete(task);
    }

    /// Opens a folder, and determines whether its names and rules are known. Returns `None` if it
    /// cannot be opened.
    fn open(&self, task: &DirTask<'_>) -> Result<Option<OpenedDir>, WalkEnd> {
        let failure = |error: &std::io::Error| {
            let number = error.raw_os_error().unwrap_or(0);
            if is_resource_error(number) {
                return Err(WalkEnd::Failed(resource_error(number)));
            }
            task.state().failure = Some(match read_file::failed(error) {
                ReadOutcome::Skipped(reason) => EntryResult::Excluded(reason),
                _ => EntryResult::Gone,
            });
            Ok(None)
        };
        let mut entered: Option<ScanDir> = None;
        for name in &task.path_from_anchor {
            match entered.as_ref().unwrap_or(&task.anchor).enter(name) {
                Ok(next) => entered = Some(next),
                Err(error) => return failure(&error),
            }
        }
        let dir = entered.map_or_else(|| task.anchor.clone(), Arc::new);
        let stamp = match dir.stamp() {
            Ok(stamp) => stamp,
            Err(error) => return failure(&error),
        };
        if has_become_git_directory(task, &dir) {
            task.state().failure = Some(EntryResult::Excluded(ExclusionReason::GitDirectory));
            return Ok(None);
        }
        let known = task.last.as_ref().filter(|last| {
            let is_known = is_same_folder(&last.stamp, &stamp) && last.settled && !task.reevaluate;
            task.paths.is_some() || is_known
        });
        if let Some(known) = known {
            let before = known.rules.as_deref();
            let now = before.map(|before| self.reload_rules(task, &dir, known, before));
            if before == now.as_ref() {
                let mut state = task.state();
                state.stamp = known.stamp;
                state.settled = known.settled;
                state.base = Some(known.clone());
                let ignore_stack = self.ignore_stack(task, before);
                state.rules = now;
                return Ok(Some(OpenedDir {
                    dir,
                    ignore_stack,
                    reevaluate: false,
                    names: None,
                }));
            }
            if task.paths.is_some() {
                return Err(WalkEnd::RulesMoved);
            }
        }
        let names = match self.names(&dir) {
            Ok(names) => names,
            Err(error) => return failure(&error),
        };
        if is_git_directory(&names) {
            task.state().failure = Some(EntryResult::Excluded(ExclusionReason::GitDirectory));
            return Ok(None);
        }
        let rules = self.rules(task, &dir, &names);
        let before = task.last.as_ref().map(|last| last.rules.as_deref());
        let ignore_stack = self.ignore_stack(task, rules.as_ref());
        let reevaluate = task.reevaluate || before.is_some_and(|before| before != rules.as_ref());
        let mut state = task.state();
        state.stamp = stamp;
        state.settled = stamp.is_settled(self.started_at);
        state.rules = rules;
        Ok(Some(OpenedDir {
            dir,
            ignore_stack,
            reevaluate,
            names: Some(names),
        }))
    }

    /// Lists the names in a folder, sorted.
    fn names(&self, dir: &ScanDir) -> std::io::Result<Vec<ListedName>> {
        let mut names: Vec<ListedName> = dir
            .names()?
            .into_iter()
            .map(|(name, kind)| ListedName { name, kind })
            .collect();
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }

    /// Reads the rules of a folder with these names.
    fn rules(
        &self,
        task: &DirTask<'_>,
        dir: &ScanDir,
        names: &[ListedName],
    ) -> Option<FolderRules> {
        let find = |wanted: &[u8]| {
            let index = names.binary_search_by(|name| (*name.name).cmp(wanted));
            index.ok().map(|index| &names[index])
        };
        let git = find(b".git").is_some();
        let gitignore = find(gitignore_stack::FILE_NAME.as_bytes())
            .filter(|entry| matches!(entry.kind, Some(EntryKind::File) | None));
        let rules = FolderRules {
            git,
            excludes: git.then(|| self.excludes(task)).flatten(),
            gitignore: gitignore.and_then(|_| read_rules(dir)),
        };
        rules.has_sources().then_some(rules)
    }

    /// Reads the rules of a folder whose names are known.
    fn reload_rules(
        &self,
        task: &DirTask<'_>,
        dir: &ScanDir,
        known: &Folder,
        before: &FolderRules,
    ) -> FolderRules {
        let name = gitignore_stack::FILE_NAME.as_bytes();
        let is_clean = || {
            let file = known.get(name)?.file()?.clone();
            let (_, stamp) = dir.stat(name).ok()?;
            Some(file.settled && file.stamp == stamp)
        };
        let gitignore = match &before.gitignore {
            Some(text) if is_clean() == Some(true) => Some(text.clone()),
            Some(_) => read_rules(dir),
            None => None,
        };
        FolderRules {
            git: before.git,
            excludes: before.git.then(|| self.excludes(task)).flatten(),
            gitignore,
        }
    }

    fn excludes(&self, task: &DirTask<'_>) -> Option<Arc<[u8]>> {
        let place = self.filter.place(&task.path());
        gitignore_stack::excludes_of(&place).map(Arc::from)
    }

    /// Returns the rules in force in a folder.
    fn ignore_stack(&self, task: &DirTask<'_>, own: Option<&FolderRules>) -> IgnoreStack {
        match own {
            Some(own) if own.excludes.is_some() || own.gitignore.is_some() => {
                task.above.enter(self.filter.place(&task.path()), own)
            }
            _ => task.above.clone(),
        }
    }

    /// Starts the task of a subfolder.
    pub(crate) fn descend<'s>(
        &'s self,
        scope: &Scope<'s>,
        context: &DirContext<'s>,
        name: &[u8],
        last: Option<&Arc<Folder>>,
        paths: Option<&'s PathTree>,
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
            above: context.ignore_stack.clone(),
            reevaluate: context.reevaluate,
            pending: AtomicUsize::new(1),
            state: Mutex::default(),
        });
        above.pending.fetch_add(1, Ordering::Relaxed);
        scope.spawn(|scope| self.visit(scope, task));
    }

    pub(crate) fn count_entry(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS_STRIDE) {
            (self.progress)(Progress {
                stage: "scanning files",
                done,
                total: self.total,
            });
        }
    }

    /// Marks a part of a task as finished. With the last part, assembles the folder, which finishes
    /// a part of the parent task.
    pub(crate) fn complete(&self, task: Arc<DirTask<'_>>) {
        let mut task = task;
        while task.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.is_stopped() {
                return;
            }
            let change = assemble(&task, self.salt);
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
            EntryResult::Node(Node::Folder(tree)) => WalkEnd::Tree(tree),
            EntryResult::Excluded(reason) => WalkEnd::Failed(root_error(&reason.to_string())),
            _ => WalkEnd::Failed(root_error("it does not exist")),
        });
    }
}

/// Returns whether these are the names of a git directory. `objects` and `refs` may be links.
fn is_git_directory(names: &[ListedName]) -> bool {
    GIT_DIRECTORY_ENTRIES.iter().all(|wanted| {
        let found = names.binary_search_by(|name| (*name.name).cmp(wanted.as_bytes()));
        found.is_ok_and(|index| is_git_directory_entry(wanted, names[index].kind))
    })
}

/// Returns whether the folder is a git directory now, in a walk of some paths.
fn has_become_git_directory(task: &DirTask<'_>, dir: &ScanDir) -> bool {
    let is_wanted = |name: &&str| {
        task.paths
            .is_some_and(|paths| paths.names.contains_key(name.as_bytes()))
    };
    GIT_DIRECTORY_ENTRIES.iter().any(is_wanted)
        && GIT_DIRECTORY_ENTRIES.iter().all(|name| {
            dir.stat(name.as_bytes())
                .is_ok_and(|(kind, _)| is_git_directory_entry(name, Some(kind)))
        })
}

fn is_git_directory_entry(name: &str, kind: Option<EntryKind>) -> bool {
    match kind {
        Some(EntryKind::File) => name == "HEAD",
        Some(EntryKind::Folder) => name != "HEAD",
        Some(EntryKind::Link) | None => true,
        Some(EntryKind::Special(_)) => false,
    }
}

/// Reads a `.gitignore`. Returns an empty text if it cannot be read.
fn read_rules(dir: &ScanDir) -> Option<Arc<[u8]>> {
    let name = gitignore_stack::FILE_NAME.as_bytes();
    let mut text = Vec::new();
    match dir.open_file(name) {
        Ok((file, EntryKind::File, stamp)) if stamp.size <= gitignore_stack::MAX_BYTES => {
            if file
                .take(gitignore_stack::MAX_BYTES)
                .read_to_end(&mut text)
                .is_err()
            {
                text.clear();
            }
        }
        Ok((_, EntryKind::File, _)) => {}
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

fn root_error(why: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("cannot scan the workspace folder: {why}"),
    )
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
