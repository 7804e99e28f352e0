//! Processes the entries of a folder.

use std::{
    cell::RefCell,
    ops::{ControlFlow, Range},
    sync::{Arc, OnceLock, atomic::Ordering},
};

use rayon::Scope;
use sightline_access::{Denial, gitignore_stack};
use sightline_base::{fs::dir::FileType, path::os_name};

use super::{
    dir_task::{DirTask, EntryResult, PathTree},
    state::{ContentMode, DirContext, ListedName, Walk, WalkOptions, WalkOutcome},
};
use crate::{
    store::object::{Mode, Oid},
    worktree::{
        capture_filter::{
            Decision,
            repository_data::{VersionControl, is_fossil_database, is_fossil_file, system_of_link},
        },
        git_index::{Repository, joined},
        read_file::{self, ReadOutcome, is_resource_error, resource_error},
        snapshot::{Entry, ExclusionReason, File, Node},
    },
};

/// Number of entries per parallel work item.
const CHUNK_ENTRIES: usize = 512;
/// How often an entry that changes its type is processed again.
const ATTEMPTS: usize = 3;

/// Maximum capacity of the thread-local buffer between files, in bytes.
const MAX_RETAINED_BYTES: usize = 1 << 20;

thread_local! {
    /// Buffer for file contents.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Processes the entries of one folder.
struct Entries<'s, 'j> {
    walk: &'s Walk<'s>,
    context: &'j DirContext<'s>,
    /// Initialized on first use, which an unchanged folder never needs.
    matcher: Option<EntryMatcher<'j>>,
}

struct EntryMatcher<'j> {
    path: Vec<u8>,
    rules: gitignore_stack::DirMatcher<'j>,
    /// Whether the folder is ignored.
    is_ignored: bool,
    repositories: Vec<Arc<Repository>>,
}

impl<'s, 'j> Entries<'s, 'j> {
    fn new(walk: &'s Walk<'s>, context: &'j DirContext<'s>) -> Self {
        Self {
            walk,
            context,
            matcher: None,
        }
    }

    /// Returns whether access rules deny an entry of unknown type.
    fn may_deny(&self, name: &[u8]) -> bool {
        let folder = self.context.task.path();
        let filter = self.walk.options.filter;
        filter.denies(&folder, name, false) || filter.denies(&folder, name, true)
    }

    /// Also returns whether a captured folder is ignored, and only contains tracked paths.
    fn decide(&mut self, name: &[u8], kind: FileType) -> (Decision, bool) {
        let options = &self.walk.options;
        let (filter, all) = (options.filter, options.repositories);
        let EntryMatcher {
            path,
            rules,
            is_ignored,
            repositories,
        } = self.matcher.get_or_insert_with(|| {
            let path = self.context.task.path();
            EntryMatcher {
                rules: self.context.ignore_rules.within(&filter.place(&path)),
                is_ignored: is_ignored(&self.context.task, options),
                repositories: all.around(&path),
                path,
            }
        });
        let is_dir = kind == FileType::Directory;
        let mut is_tracked_only = false;
        let decision = filter.decide(path, name, (is_dir, kind == FileType::Symlink), || {
            if !*is_ignored && !rules.ignores(os_name(name), is_dir) {
                return false;
            }
            let tracked = all.track(repositories, &joined(path, name), is_dir);
            is_tracked_only = tracked.as_ref().is_some_and(|found| !found.is_submodule);
            tracked.is_none()
        });
        (decision, is_tracked_only)
    }

    /// Processes a known entry. The decision about it still holds.
    fn recheck(&mut self, scope: &Scope<'s>, entry: Entry<'_>) {
        let (walk, context) = (self.walk, self.context);
        let file = match entry.node {
            Node::Folder(folder) => {
                let is_ignored = OnceLock::new();
                return walk.descend(scope, context, entry.name, Some(folder), None, is_ignored);
            }
            Node::File(file) => file,
        };
        walk.count_entry();
        if self.is_unchanged(entry.name, file) {
            return;
        }
        let kind = match file.mode {
            Mode::Link => FileType::Symlink,
            _ => FileType::File,
        };
        let filter = walk.options.filter;
        let denial = filter.by_content(&context.task.path(), entry.name);
        match walk.read_content(context, entry.name, kind, Some(file), denial) {
            Some(change) => context.task.note(entry.name, change),
            None => self.process(scope, entry.name, None, None),
        }
    }

    fn is_unchanged(&self, name: &[u8], file: &File) -> bool {
        file.settled
            && matches!(self.context.dir.stat(os_name(name)), Ok(Some(now)) if now.stamp == file.stamp)
    }

    /// Decides about an entry, and reads it if it is captured.
    fn process(
        &mut self,
        scope: &Scope<'s>,
        name: &[u8],
        kind: Option<FileType>,
        paths: Option<&'s PathTree>,
    ) {
        let mut kind = kind;
        for _ in 0..ATTEMPTS {
            match self.try_process(scope, name, kind, paths) {
                ControlFlow::Break(None) => return,
                ControlFlow::Break(Some(result)) => return self.context.task.note(name, result),
                ControlFlow::Continue(()) => kind = None,
            }
        }
        let unstable = EntryResult::Excluded(ExclusionReason::Unstable);
        self.context.task.note(name, unstable);
    }

    /// Breaks with the result, or without one for a folder with its own task. Continues if the type
    /// of the entry has changed.
    fn try_process(
        &mut self,
        scope: &Scope<'s>,
        name: &[u8],
        kind: Option<FileType>,
        paths: Option<&'s PathTree>,
    ) -> ControlFlow<Option<EntryResult>> {
        let (walk, context) = (self.walk, self.context);
        let last = context.task.last.as_ref().and_then(|last| last.get(name));
        let found = match kind {
            Some(kind) => Ok(Some(kind)),
            None => {
                let found = context.dir.stat(os_name(name));
                found.map(|found| found.map(|found| found.kind))
            }
        };
        let found = match found {
            Ok(Some(kind)) => kind,
            Ok(None) => return ControlFlow::Break(Some(EntryResult::Gone)),
            Err(error) => {
                return ControlFlow::Break(Some(match read_file::failed(&error) {
                    ReadOutcome::Skipped(_) if self.may_deny(name) => EntryResult::Denied,
                    ReadOutcome::Skipped(reason) => EntryResult::Excluded(reason),
                    _ => EntryResult::Gone,
                }));
            }
        };
        let (decision, is_ignored) = self.decide(name, found);
        ControlFlow::Break(Some(match (decision, found) {
            (Decision::Omit, _) => EntryResult::Gone,
            (Decision::Deny, _) => EntryResult::Denied,
            (Decision::Exclude(reason), _) => EntryResult::Excluded(reason),
            (Decision::Capture(Some(_)), FileType::Special(_)) => EntryResult::Denied,
            (Decision::Capture(None), FileType::Special(special)) => {
                EntryResult::Excluded(ExclusionReason::Special(special))
            }
            (Decision::Capture(_), FileType::Directory) => {
                let last = last.and_then(|last| last.folder());
                let is_ignored = OnceLock::from(is_ignored);
                walk.descend(scope, context, name, last, paths, is_ignored);
                return ControlFlow::Break(None);
            }
            (Decision::Capture(denial), FileType::File | FileType::Symlink) => {
                walk.count_entry();
                let path = || {
                    walk.options
                        .filter
                        .place(&joined(&context.task.path(), name))
                };
                if found == FileType::Symlink
                    && let Some(system) = system_of_link(name, path)
                {
                    let reason = ExclusionReason::RepositoryData(system);
                    return ControlFlow::Break(Some(EntryResult::Excluded(reason)));
                }
                let last = last.and_then(|last| last.file());
                let is_wanted = paths.is_some_and(|paths| paths.whole);
                let may_keep = !is_wanted && denial.is_none();
                match last.filter(|last| may_keep && self.is_unchanged(name, last)) {
                    Some(known) => EntryResult::Node(Node::File(known.clone())),
                    None => match walk.read_content(context, name, found, last, denial) {
                        Some(change) => change,
                        None => return ControlFlow::Continue(()),
                    },
                }
            }
        }))
    }
}

/// Returns whether the folder is ignored, and captured only because it contains tracked paths.
fn is_ignored(task: &DirTask<'_>, options: &WalkOptions<'_>) -> bool {
    let mut unknown = Vec::new();
    let mut at = task;
    let mut is_ignored = loop {
        if let Some(known) = at.is_ignored.get() {
            break *known;
        }
        let Some(parent) = &at.parent else {
            break false;
        };
        unknown.push((at, parent));
        at = parent;
    };
    for (task, parent) in unknown.into_iter().rev() {
        let folder = parent.path();
        let rules = || task.above.within(&options.filter.place(&folder));
        is_ignored = is_ignored || rules().ignores(os_name(&task.name), true);
        if is_ignored {
            let around = options.repositories.around(&folder);
            let found = options.repositories.track(&around, &task.path(), true);
            is_ignored = !found.is_some_and(|found| found.is_submodule);
        }
        is_ignored = *task.is_ignored.get_or_init(|| is_ignored);
    }
    is_ignored
}

impl Walk<'_> {
    /// Processes the entries of a folder: the wanted ones, the listed ones, or those that are known.
    pub(crate) fn process_entries<'s>(&'s self, scope: &Scope<'s>, context: DirContext<'s>) {
        let task = context.task.clone();
        if let Some(paths) = task.paths {
            let mut entries = Entries::new(self, &context);
            for (name, paths) in &paths.names {
                entries.process(scope, name, None, Some(paths));
            }
        } else if let Some(count) = context.names.as_ref().map(Vec::len) {
            self.for_each_chunk(scope, &task, count, move |walk, scope, range| {
                let mut entries = Entries::new(walk, &context);
                let names = context.names.as_deref().unwrap_or_default();
                for ListedName { name, kind } in &names[range] {
                    if walk.is_stopped() {
                        return;
                    }
                    entries.process(scope, name, *kind, None);
                }
            });
        } else if let Some(known) = task.last.clone() {
            self.for_each_chunk(scope, &task, known.len(), move |walk, scope, range| {
                let mut entries = Entries::new(walk, &context);
                let excluded = known.excluded.iter().filter(|_| range.start == 0);
                for left in excluded.filter(|left| left.reason.needs_recheck()) {
                    entries.process(scope, &left.name, None, None);
                }
                for index in range {
                    if walk.is_stopped() {
                        return;
                    }
                    entries.recheck(scope, known.entry(index));
                }
            });
        }
    }

    /// Calls `work` for ranges of `count` entries, in parallel if there are many.
    fn for_each_chunk<'s>(
        &'s self,
        scope: &Scope<'s>,
        task: &Arc<DirTask<'s>>,
        count: usize,
        state: impl Fn(&'s Self, &Scope<'s>, Range<usize>) + Send + Sync + 's,
    ) {
        if count <= CHUNK_ENTRIES {
            return state(self, scope, 0..count);
        }
        let state = Arc::new(state);
        for start in (0..count).step_by(CHUNK_ENTRIES) {
            let (state, task) = (state.clone(), task.clone());
            task.pending.fetch_add(1, Ordering::Relaxed);
            scope.spawn(move |scope| {
                state(self, scope, start..count.min(start + CHUNK_ENTRIES));
                self.complete(task);
            });
        }
    }

    /// Reads a file or link. `denial` is the denial if its content is secret. Returns `None` if its type has changed.
    fn read_content(
        &self,
        context: &DirContext<'_>,
        name: &[u8],
        kind: FileType,
        last: Option<&File>,
        denial: Option<Denial>,
    ) -> Option<EntryResult> {
        let WalkOptions { started_at, .. } = self.options;
        if kind == FileType::File && is_fossil_file(&context.dir, name) {
            let reason = ExclusionReason::RepositoryData(VersionControl::Fossil);
            return Some(EntryResult::Excluded(reason));
        }
        let limit = self.options.job.settings.max_file_size;
        let sink = match self.options.content_mode {
            ContentMode::Read(sink) => sink,
            ContentMode::Measure {
                max_files,
                max_bytes,
            } => return self.measure_file(context, name, kind, max_files, max_bytes),
        };
        let mut buffer = READ_BUFFER.take();
        let found = match kind {
            FileType::Symlink => {
                read_file::link(&context.dir, os_name(name), started_at, &mut buffer)
            }
            _ => {
                let mode = last.map(|last| last.mode);
                let dir = &context.dir;
                read_file::file(dir, os_name(name), limit, started_at, mode, &mut buffer)
            }
        };
        let change = match found {
            ReadOutcome::Replaced => return None,
            ReadOutcome::Skipped(ExclusionReason::Unreadable(number))
                if is_resource_error(number) =>
            {
                self.stop(Err(resource_error(number)));
                EntryResult::Gone
            }
            ReadOutcome::Skipped(_) if denial.is_some() => EntryResult::DeniedByContent,
            ReadOutcome::Skipped(reason) => EntryResult::Excluded(reason),
            // A repository of Fossil may have any name.
            ReadOutcome::File(_) if is_fossil_database(name, &buffer) => {
                EntryResult::Excluded(ExclusionReason::RepositoryData(VersionControl::Fossil))
            }
            ReadOutcome::File(_)
                if denial.is_some_and(|denial| denial.of_content(&buffer).is_some()) =>
            {
                EntryResult::DeniedByContent
            }
            ReadOutcome::File(file) => {
                if let Some(sink) = sink
                    && last.is_none_or(|last| last.oid != file.oid)
                    && let Err(error) = sink.blob(file.oid, &buffer)
                {
                    self.stop(Err(error));
                }
                EntryResult::Node(Node::File(file))
            }
        };
        if buffer.capacity() <= MAX_RETAINED_BYTES {
            READ_BUFFER.set(buffer);
        }
        Some(change)
    }

    /// Counts a file without reading it.
    fn measure_file(
        &self,
        context: &DirContext<'_>,
        name: &[u8],
        kind: FileType,
        max_files: u64,
        max_bytes: u64,
    ) -> Option<EntryResult> {
        let found = context.dir.stat(os_name(name)).ok()??;
        if found.kind != kind {
            return None;
        }
        let stamp = found.stamp;
        if kind == FileType::File && stamp.size > self.options.job.settings.max_file_size {
            return Some(EntryResult::Excluded(ExclusionReason::TooLarge(stamp.size)));
        }
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(stamp.size, Ordering::Relaxed) + stamp.size;
        if files > max_files || bytes > max_bytes {
            self.stop(Ok(WalkOutcome::TooLarge));
        }
        Some(EntryResult::Node(Node::File(File {
            stamp,
            oid: Oid::EMPTY_TREE,
            mode: match kind {
                FileType::Symlink => Mode::Link,
                _ => Mode::File,
            },
            settled: false,
        })))
    }
}
