//! Processes the entries of a folder.

use std::{
    cell::RefCell,
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use rayon::Scope;
use sightline_protocol::error::ErrorKind;

use super::{
    ContentMode, Walk, WalkEnd,
    dir_task::{DirTask, EntryResult, PathTree},
};
use crate::{
    checkpoint::{
        store::object::{Mode, Oid},
        worktree::{
            capture_filter::{CaptureFilter, Decision, IgnoreStack},
            git_index::TrackedPaths,
            read_file::{self, ReadOutcome},
            scan_dir::{EntryKind, ScanDir, os_name},
            snapshot::{ExclusionReason, File, Folder, Node},
        },
    },
    error::Error,
    gitignore_stack,
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

/// A folder that is open.
pub(crate) struct OpenedDir {
    pub(crate) dir: Arc<ScanDir>,
    /// Rules in force in it.
    pub(crate) ignore_stack: IgnoreStack,
    /// Whether the decisions of the last scan no longer hold.
    pub(crate) reevaluate: bool,
    /// Its names, if they were listed.
    pub(crate) names: Option<Vec<ListedName>>,
}

pub(crate) struct ListedName {
    pub(crate) name: Box<[u8]>,
    /// Type, if the listing returned it.
    pub(crate) kind: Option<EntryKind>,
}

/// State shared by the work items of a folder.
pub(crate) struct DirContext<'a> {
    pub(crate) task: Arc<DirTask<'a>>,
    pub(crate) dir: Arc<ScanDir>,
    pub(crate) ignore_stack: IgnoreStack,
    pub(crate) reevaluate: bool,
}

/// Filters the entries of one folder. Initialized on first use.
struct EntryFilter<'j> {
    filter: &'j CaptureFilter<'j>,
    tracked: &'j TrackedPaths,
    context: &'j DirContext<'j>,
    prepared: Option<PreparedFilter<'j>>,
}

struct PreparedFilter<'j> {
    path: Vec<u8>,
    scope: gitignore_stack::DirMatcher<'j>,
    /// Whether the folder is ignored.
    is_ignored: bool,
}

impl<'j> EntryFilter<'j> {
    fn new(walk: &'j Walk<'j>, context: &'j DirContext<'j>) -> Self {
        Self {
            filter: walk.filter,
            tracked: walk.tracked,
            context,
            prepared: None,
        }
    }

    /// Returns whether access rules deny an entry of unknown type.
    fn may_deny(&self, name: &[u8]) -> bool {
        let folder = self.context.task.path();
        self.filter.denies(&folder, name, false) || self.filter.denies(&folder, name, true)
    }

    fn decide(&mut self, name: &[u8], kind: EntryKind) -> Decision {
        let (filter, tracked, context) = (self.filter, self.tracked, self.context);
        let PreparedFilter {
            path,
            scope,
            is_ignored,
        } = self.prepared.get_or_insert_with(|| {
            let path = context.task.path();
            PreparedFilter {
                scope: context.ignore_stack.rules().within(&filter.place(&path)),
                is_ignored: context.task.is_ignored(filter, tracked),
                path,
            }
        });
        let is_dir = kind == EntryKind::Folder;
        filter.decide(path, name, (is_dir, kind == EntryKind::Link), || {
            let is_ignored = *is_ignored || scope.ignores(os_name(name), is_dir);
            is_ignored && !tracked.contains_in(path, name, is_dir)
        })
    }
}

impl Walk<'_> {
    /// Processes the entries of a folder.
    pub(crate) fn process_entries<'s>(
        &'s self,
        scope: &Scope<'s>,
        task: &Arc<DirTask<'s>>,
        open: OpenedDir,
    ) {
        let OpenedDir {
            dir,
            ignore_stack,
            reevaluate,
            names,
        } = open;
        let context = DirContext {
            task: task.clone(),
            dir,
            ignore_stack,
            reevaluate,
        };
        if let Some(paths) = task.paths {
            let mut entry_filter = EntryFilter::new(self, &context);
            for (name, paths) in &paths.names {
                self.process_entry(scope, &context, &mut entry_filter, name, None, Some(paths));
            }
        } else if let Some(names) = names {
            self.for_each_chunk(scope, task, names.len(), move |walk, scope, range| {
                let mut entry_filter = EntryFilter::new(walk, &context);
                for ListedName { name, kind } in &names[range] {
                    if walk.is_stopped() {
                        return;
                    }
                    walk.process_entry(scope, &context, &mut entry_filter, name, *kind, None);
                }
            });
        } else if let Some(known) = task.last.clone() {
            self.for_each_chunk(scope, task, known.len(), move |walk, scope, range| {
                walk.recheck_entries(scope, &context, &known, range);
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

    /// Checks the known entries of a folder whose names and rules are unchanged.
    fn recheck_entries<'s>(
        &'s self,
        scope: &Scope<'s>,
        context: &DirContext<'s>,
        known: &Folder,
        range: Range<usize>,
    ) {
        let mut entry_filter = EntryFilter::new(self, context);
        if range.start == 0 {
            for left in known
                .excluded
                .iter()
                .filter(|left| left.reason.needs_recheck())
            {
                self.process_entry(scope, context, &mut entry_filter, &left.name, None, None);
            }
        }
        for index in range {
            if self.is_stopped() {
                return;
            }
            let entry = known.entry(index);
            let file = match entry.node {
                Node::Folder(folder) => {
                    self.descend(scope, context, entry.name, Some(folder), None);
                    continue;
                }
                Node::File(file) => file,
            };
            self.count_entry();
            if file.settled
                && matches!(context.dir.stat(entry.name), Ok((_, stamp)) if stamp == file.stamp)
            {
                continue;
            }
            let kind = match file.mode {
                Mode::Link => EntryKind::Link,
                _ => EntryKind::File,
            };
            match self.read_content(context, entry.name, kind, Some(file)) {
                Some(change) => context.task.note(entry.name, change),
                None => {
                    self.process_entry(scope, context, &mut entry_filter, entry.name, None, None)
                }
            }
        }
    }

    /// Decides about an entry, and reads it if it is captured.
    fn process_entry<'s>(
        &'s self,
        scope: &Scope<'s>,
        context: &DirContext<'s>,
        entry_filter: &mut EntryFilter<'_>,
        name: &[u8],
        kind: Option<EntryKind>,
        paths: Option<&'s PathTree>,
    ) {
        let last = context.task.last.as_ref().and_then(|last| last.get(name));
        let mut kind = kind;
        for _ in 0..ATTEMPTS {
            let found = match kind {
                Some(kind) => Ok(kind),
                None => context.dir.stat(name).map(|(kind, _)| kind),
            };
            let found = match found {
                Ok(kind) => kind,
                Err(error) => {
                    let change = match read_file::failed(&error) {
                        ReadOutcome::Skipped(_) if entry_filter.may_deny(name) => {
                            EntryResult::Denied
                        }
                        ReadOutcome::Skipped(reason) => EntryResult::Excluded(reason),
                        _ => EntryResult::Gone,
                    };
                    return context.task.note(name, change);
                }
            };
            match entry_filter.decide(name, found) {
                Decision::Capture => {}
                Decision::Omit => return context.task.note(name, EntryResult::Gone),
                Decision::Deny => return context.task.note(name, EntryResult::Denied),
                Decision::Exclude(reason) => {
                    return context.task.note(name, EntryResult::Excluded(reason));
                }
            }
            match found {
                EntryKind::Special(special) => {
                    let reason = ExclusionReason::Special(special);
                    return context.task.note(name, EntryResult::Excluded(reason));
                }
                EntryKind::Folder => {
                    let last = last.and_then(|last| last.folder());
                    return self.descend(scope, context, name, last, paths);
                }
                EntryKind::File | EntryKind::Link => {
                    self.count_entry();
                    let last = last.and_then(|last| last.file());
                    let is_wanted = paths.is_some_and(|paths| paths.whole);
                    let known = last.filter(|last| {
                        let is_clean = |(kind, stamp)| kind == found && stamp == last.stamp;
                        !is_wanted && last.settled && context.dir.stat(name).is_ok_and(is_clean)
                    });
                    if let Some(known) = known {
                        return context
                            .task
                            .note(name, EntryResult::Node(Node::File(known.clone())));
                    }
                    match self.read_content(context, name, found, last) {
                        Some(change) => return context.task.note(name, change),
                        None => kind = None,
                    }
                }
            }
        }
        context
            .task
            .note(name, EntryResult::Excluded(ExclusionReason::Unstable));
    }

    /// Reads a file or link. Returns `None` if its type has changed.
    fn read_content(
        &self,
        context: &DirContext<'_>,
        name: &[u8],
        kind: EntryKind,
        last: Option<&File>,
    ) -> Option<EntryResult> {
        let sink = match self.content_mode {
            ContentMode::Read(sink) => sink,
            ContentMode::Measure {
                max_files,
                max_bytes,
            } => return self.measure_file(context, name, kind, max_files, max_bytes),
        };
        let mut buffer = READ_BUFFER.take();
        let found = match kind {
            EntryKind::Link => read_file::link(&context.dir, name, self.started_at, &mut buffer),
            _ => {
                let mode = last.map(|last| last.mode);
                let limit = self.max_file_size;
                read_file::file(
                    &context.dir,
                    name,
                    limit,
                    self.started_at,
                    mode,
                    &mut buffer,
                )
            }
        };
        let change = match found {
            ReadOutcome::Replaced => return None,
            ReadOutcome::Skipped(ExclusionReason::Unreadable(number))
                if is_resource_error(number) =>
            {
                self.stop(WalkEnd::Failed(resource_error(number)));
                EntryResult::Gone
            }
            ReadOutcome::Skipped(reason) => EntryResult::Excluded(reason),
            ReadOutcome::File(file) => {
                if let Some(sink) = sink
                    && last.is_none_or(|last| last.oid != file.oid)
                    && let Err(error) = sink.blob(file.oid, &buffer)
                {
                    self.stop(WalkEnd::Failed(error));
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
        kind: EntryKind,
        max_files: u64,
        max_bytes: u64,
    ) -> Option<EntryResult> {
        let (found, stamp) = context.dir.stat(name).ok()?;
        if found != kind {
            return None;
        }
        if kind == EntryKind::File && stamp.size > self.max_file_size {
            return Some(EntryResult::Excluded(ExclusionReason::TooLarge(stamp.size)));
        }
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(stamp.size, Ordering::Relaxed) + stamp.size;
        if files > max_files || bytes > max_bytes {
            self.stop(WalkEnd::TooLarge);
        }
        Some(EntryResult::Node(Node::File(File {
            stamp,
            oid: Oid::EMPTY_TREE,
            mode: match kind {
                EntryKind::Link => Mode::Link,
                _ => Mode::File,
            },
            settled: false,
        })))
    }
}

/// Returns whether memory or open files ran out, which says nothing about the entry.
pub(crate) fn is_resource_error(number: i32) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        [Errno::MFILE, Errno::NFILE, Errno::NOMEM]
            .iter()
            .any(|errno| errno.raw_os_error() == number)
    }
    #[cfg(not(unix))]
    {
        let _ = number;
        false
    }
}

pub(crate) fn resource_error(number: i32) -> Error {
    let error = std::io::Error::from_raw_os_error(number);
    Error::new(
        ErrorKind::Internal,
        format!("cannot scan the workspace: {error}; try again"),
    )
}
