//! Checkpoints: the work tree as it was, kept in a git repository of our own.
//!
//! Nothing here changes the workspace but [`restore`], and that only after it
//! has taken a checkpoint of what it is about to change.
//!
//! ```text
//! <data directory>/projects/<name>-<hash>/checkpoints.git   a bare repository, readable by git
//! <data directory>/projects/<name>-<hash>/state/            lock, stat cache, journal
//! ```
//!
//! Reading order: `object` (git's objects as bytes), `repository` (the store:
//! objects, refs, self-check) with `pack`, `packed`, `loose`, `reader`, `checkpoints`, `fetched` and `lock`; `tree`
//! (the work tree in memory) with `audience`, `stat_cache` and `cache`; `rules` (what is
//! captured) with `names`, `tracked` and `protect`; `scan` (looking at the work tree) with
//! `walk`, `frame`, `entries`, `read` and `disk`; `create` with `delta`;
//! [`changes`] (what a watcher knows); `compare`, `place` and [`diff`]; [`restore`];
//! `prune`; [`import`] and [`transfer`].
//!
//! A checkpoint is a commit without parents whose tree is the work tree and
//! whose message holds its [`CheckpointMetadata`]; one ref names it, so that any of them can
//! be pruned without the others noticing.

pub mod cline_import;
mod create;
pub mod diff;
mod metadata;
mod prune;
mod refused_roots;
pub mod remote;
pub mod restore;
mod store;
#[cfg(test)]
mod testing;
mod tree_diff;
mod worktree;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use sightline_protocol::error::ErrorKind;
use uuid::Uuid;

pub use prune::{Keep, Pruned, Stats};
pub use store::{object::Oid, repository::Rebuilt};
pub use tree_diff::Side;
pub use worktree::{
    dirty_set::{ChangeSource, Changes, DirtySet},
    permissions::{ReadPermission, RestrictedPath},
};

use crate::{
    access::AccessView,
    cancel::Cancel,
    error::Error,
    path::{RelPath, Root},
    storage::{Storage, TaskId},
};
use restore::Recovered;
use store::{refs, repair::VerifiedStore, repository::Repository};
use worktree::{capture_filter::SavedRules, stat_cache::StatCache};

/// What is captured, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Larger files are skipped, in bytes.
    pub max_file_size: u64,
    /// Names of folders that are skipped at any depth.
    pub exclude: Vec<String>,
    /// More files than this need a confirmation.
    pub max_files: u64,
    /// More bytes than this need a confirmation.
    pub max_total_size: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_file_size: 20 * 1024 * 1024,
            exclude: ["node_modules", ".venv", "__pycache__"]
                .map(str::to_owned)
                .into(),
            max_files: 500_000,
            max_total_size: 10 * 1024 * 1024 * 1024,
        }
    }
}

/// What long work tells while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done: "looking at files", "storing", "restoring", ...
    pub stage: &'static str,
    /// How many of them are done.
    pub done: u64,
    /// Of how many, where that is known.
    pub total: Option<u64>,
}

/// The circumstances of one piece of work. Progress is told from several
/// threads, often; the listener throttles.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The access rules of this moment.
    pub view: &'a AccessView,
    /// Which root of the view the checkpoints are of.
    pub root: usize,
    /// What is captured.
    pub settings: &'a Settings,
    /// Looked at in every loop.
    pub cancel: &'a Cancel,
    /// Hears how far the work is.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

impl Job<'_> {
    /// The rules can be used. Where they can't, everything is denied: a
    /// checkpoint would be empty, and nothing would seem to differ.
    ///
    /// # Errors
    /// `accessDenied` says what is wrong with which rules.
    fn require_rules(&self) -> Result<(), Error> {
        match self.view.unusable(self.root) {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::AccessDenied,
                format!("{why}; no checkpoint is taken, compared or restored until then"),
            )),
        }
    }
}

/// Why a checkpoint is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Purpose {
    /// Someone asked for it.
    #[default]
    Asked,
    /// Before a restore, to be able to undo it.
    Undo {
        /// What was about to be restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restoring: Option<Oid>,
        /// Only these paths were, and what is below them; empty means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<NamedPath>,
    },
    /// It came from another tool's store.
    Imported,
}

/// Where the conversation of a task stood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationMark {
    /// How many messages it had.
    pub messages: u64,
    /// How often it had been compacted, which begins the count again.
    pub compactions: u64,
    /// The entry of the task's log that was the newest: what the conversation
    /// was follows from it. `None` when it was empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Uuid>,
}

/// A checkpoint that is wanted.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The task it belongs to.
    pub task: Option<TaskId>,
    /// What people call it.
    pub label: Option<String>,
    /// Why it is taken.
    pub purpose: Purpose,
    /// Where the task's conversation stood.
    pub messages: Option<ConversationMark>,
    /// Names those taken together, one of each root.
    pub group: Option<String>,
    /// The folders of those, as URIs.
    pub group_roots: Vec<String>,
    /// What took the conversation back, to undo that too.
    pub rewind: Option<String>,
    /// Go ahead however large the tree is.
    pub confirm_large: bool,
}

/// Something that is not in the checkpoint although it is in the workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Path below the root, with `/`; percent-encoded when `encoded`.
    pub path: String,
    /// Its bytes are not UTF-8, and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
    /// Why, for people.
    pub reason: String,
}

impl Skipped {
    /// May its name be shown by the rules of this view? Rules may have come since,
    /// and another machine had others. What stands for more than is listed has no
    /// name.
    pub fn may_be_shown(&self, view: &AccessView, root: usize) -> bool {
        let named = NamedPath {
            path: self.path.clone(),
            encoded: self.encoded,
        };
        let Some(path) = named.to_path() else {
            return false;
        };
        let denied = |is_dir| view.check_entry(root, &path, is_dir).is_some();
        path.is_root() || !(denied(false) || denied(true))
    }
}

/// A path as it is kept with a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPath {
    /// Path below the root, with `/`; percent-encoded when `encoded`.
    pub path: String,
    /// Its bytes are not UTF-8, and `path` is percent-encoded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
}

impl NamedPath {
    /// Names `path`.
    pub fn of(path: &RelPath) -> Self {
        let (path, encoded) = path.to_wire();
        Self { path, encoded }
    }

    /// The path; `None` when it is none below a root.
    pub fn to_path(&self) -> Option<RelPath> {
        if !self.encoded {
            return RelPath::new(Path::new(&self.path));
        }
        let bytes: Vec<u8> = percent_encoding::percent_decode_str(&self.path).collect();
        #[cfg(unix)]
        let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(&bytes[..]);
        #[cfg(not(unix))]
        let path = String::from_utf8(bytes).ok()?;
        RelPath::new(Path::new(&path))
    }
}

/// Differences to the checkpoint before, in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// New files.
    pub added: u64,
    /// Files with other content, mode or type.
    pub modified: u64,
    /// Files that are gone.
    pub deleted: u64,
}

/// What is kept with a checkpoint, as JSON in the commit's message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckpointMetadata {
    /// When, in milliseconds since the epoch.
    pub created: u64,
    /// The order of checkpoints of one millisecond.
    pub sequence: u64,
    /// The task it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Why it was taken.
    pub purpose: Purpose,
    /// The commit of another tool that it was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Where the task's conversation stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<ConversationMark>,
    /// Names those taken together, one of each root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The folders of those, as URIs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_roots: Vec<String>,
    /// What took the conversation back, to undo that too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewind: Option<String>,
    /// Differences to the one before.
    pub counts: Counts,
    /// Files it holds.
    pub files: u64,
    /// Their sizes, in bytes.
    pub bytes: u64,
    /// What is not in it, and why.
    pub skipped: Vec<Skipped>,
    /// The rules in force that its tree does not hold itself.
    pub rules: SavedRules,
    /// Files that are not for everyone to read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted: Vec<RestrictedPath>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// It was fetched from elsewhere; known here, and not written with it.
    #[serde(skip)]
    pub fetched: bool,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The commit.
    pub id: Oid,
    /// The commit's tree.
    pub tree: Oid,
    /// What is kept with it.
    pub metadata: CheckpointMetadata,
}

/// Which checkpoints are listed.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those of this task.
    pub task: Option<TaskId>,
    /// At most so many, the newest.
    pub limit: Option<usize>,
}

/// The checkpoints of one workspace root. Cheap while unused: nothing is read
/// or created before the first call that needs it. Work that changes the store
/// or the memory of the work tree excludes other such work, in this process and
/// in others.
#[derive(Debug)]
pub struct Checkpoints {
    storage: Storage,
    root: Root,
    /// `projects/<name>-<hash>` in the data directory.
    project: PathBuf,
    stat_cache: Mutex<StatCache>,
    metadata_cache: metadata::MetadataCache,
    rebuilt: Mutex<Option<Arc<Rebuilt>>>,
    /// An interrupted restore that other work completed first.
    recovered: Mutex<Option<Recovered>>,
    /// The store as its last writer here left it.
    verified: Mutex<Option<VerifiedStore>>,
}

impl Checkpoints {
    /// The checkpoints of `root`. Creates nothing.
    pub fn new(storage: &Storage, root: &Root) -> Self {
        Self {
            storage: storage.clone(),
            root: root.clone(),
            project: storage.project(root),
            stat_cache: Mutex::default(),
            metadata_cache: metadata::MetadataCache::default(),
            rebuilt: Mutex::default(),
            recovered: Mutex::default(),
            verified: Mutex::default(),
        }
    }

    /// The root they are of.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The bare repository, which need not exist.
    pub fn git_dir(&self) -> PathBuf {
        self.project.join("checkpoints.git")
    }

    /// Where lock, cache and journal lie.
    fn state_dir(&self) -> PathBuf {
        self.project.join("state")
    }

    /// The work tree's folder.
    fn work_tree(&self) -> &Path {
        self.root.canonical.as_path()
    }

    /// What became of the store when it was found broken; told once, and worth
    /// telling people.
    pub fn take_rebuilt(&self) -> Option<Arc<Rebuilt>> {
        let mut rebuilt = self.rebuilt.lock().unwrap_or_else(PoisonError::into_inner);
        rebuilt.take()
    }

    /// Returns an interrupted restore that other work completed since this was last
    /// called; worth telling people.
    pub fn take_recovered(&self) -> Option<Recovered> {
        let mut recovered = self
            .recovered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        recovered.take()
    }

    /// Turns the failure of work on these checkpoints into `notFound` where another
    /// process pruned one of them: names go first, then objects.
    fn unless_pruned<T>(&self, ids: &[Oid], done: Result<T, Error>) -> Result<T, Error> {
        done.map_err(|error| {
            let is_pruned = |id: &&Oid| matches!(refs::exists(&self.git_dir(), **id), Ok(false));
            match ids.iter().find(is_pruned) {
                Some(id) if error.kind == ErrorKind::Storage => self.not_found(*id),
                _ => error,
            }
        })
    }

    /// The store, made or rebuilt where needed; by who holds the lock.
    fn open_or_create(&self) -> Result<Repository, Error> {
        if let Some(repository) = self.verified_repository() {
            return Ok(repository);
        }
        *self.verified() = None;
        let repository = Repository::open_or_create(&self.storage, &self.git_dir())?;
        if let Some(news) = repository.rebuilt() {
            let mut rebuilt = self.rebuilt.lock().unwrap_or_else(PoisonError::into_inner);
            *rebuilt = Some(Arc::clone(news));
        }
        *self.verified() = VerifiedStore::of(&repository)?;
        Ok(repository)
    }

    /// The store, when nobody touched it since it was opened or written here; by
    /// who holds the lock.
    fn verified_repository(&self) -> Option<Repository> {
        self.verified()
            .as_ref()
            .and_then(VerifiedStore::reopen_if_unchanged)
    }

    fn verified(&self) -> MutexGuard<'_, Option<VerifiedStore>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store as it is; `None` when there is none yet.
    fn repository(&self) -> Result<Option<Repository>, Error> {
        Repository::open(&self.git_dir())
    }
}
