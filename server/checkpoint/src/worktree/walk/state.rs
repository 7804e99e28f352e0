//! State of a walk, and of a folder that is open.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use sightline_access::gitignore_stack::IgnoreRules;
use sightline_base::fs::dir::{Dir, FileType};

use super::dir_task::DirTask;
use crate::{
    error::Error,
    job::{Job, Progress},
    store::object::Oid,
    worktree::{
        capture_filter::CaptureFilter, exclusions::PathSalt, git_index::Repositories,
        snapshot::Folder,
    },
};

/// Number of files between progress reports.
const PROGRESS_STRIDE: u64 = 256;

/// Receives the content of files as they are read.
pub(crate) trait BlobSink: Sync {
    /// Called for each file whose content differs from the last scan.
    fn blob(&self, oid: Oid, bytes: &[u8]) -> Result<(), Error>;
}

/// What a walk does with files.
#[derive(Clone, Copy)]
pub(crate) enum ContentMode<'a> {
    /// Only counts them. The resulting tree has no contents.
    Measure { max_files: u64, max_bytes: u64 },
    /// Reads files that may have changed.
    Read(Option<&'a dyn BlobSink>),
}

/// Rules and limits of a walk.
#[derive(Clone, Copy)]
pub(crate) struct WalkOptions<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) filter: &'a CaptureFilter<'a>,
    /// Their tracked files are not excluded by ignore rules.
    pub(crate) repositories: &'a Repositories<'a>,
    /// Salt of the hashes of denied paths.
    pub(crate) salt: PathSalt,
    pub(crate) content_mode: ContentMode<'a>,
    /// Start time, in nanoseconds since the epoch.
    pub(crate) started_at: i64,
    /// Number of files, if known.
    pub(crate) total: Option<u64>,
}

/// State of one walk.
pub(crate) struct Walk<'a> {
    pub(crate) options: WalkOptions<'a>,
    done: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    is_stopped: AtomicBool,
    outcome: Mutex<Option<Result<WalkOutcome, Error>>>,
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

impl<'a> Walk<'a> {
    pub(crate) fn new(options: WalkOptions<'a>) -> Self {
        Self {
            options,
            done: AtomicU64::new(0),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            outcome: Mutex::default(),
        }
    }

    pub(crate) fn outcome(&self) -> MutexGuard<'_, Option<Result<WalkOutcome, Error>>> {
        self.outcome.lock()
    }

    /// Ends the walk. The first outcome counts.
    pub(crate) fn stop(&self, outcome: Result<WalkOutcome, Error>) {
        self.outcome().get_or_insert(outcome);
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.options.job.cancel.is_cancelled()
    }

    pub(crate) fn count_entry(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS_STRIDE) {
            (self.options.job.progress)(Progress {
                stage: "scanning files",
                done,
                total: self.options.total,
            });
        }
    }
}

pub(crate) struct ListedName {
    pub(crate) name: Box<[u8]>,
    /// Type, if the listing returned it.
    pub(crate) kind: Option<FileType>,
}

/// An open folder, shared by its work items.
pub(crate) struct DirContext<'a> {
    pub(crate) task: Arc<DirTask<'a>>,
    pub(crate) dir: Arc<Dir>,
    /// Rules in force in it.
    pub(crate) ignore_rules: IgnoreRules,
    /// Whether the decisions of the last scan no longer hold.
    pub(crate) reevaluate: bool,
    /// Its names, if they were listed.
    pub(crate) names: Option<Vec<ListedName>>,
}
