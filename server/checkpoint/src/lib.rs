//! Checkpoints of a workspace root, stored in a bare git repository.
//!
//! [`restore`] is the only part that changes the workspace. It first saves the current state as a
//! checkpoint.
//!
//! ```text
//! <data directory>/projects/<name>-<hash>/checkpoints.git   bare repository, readable by git
//! <data directory>/projects/<name>-<hash>/state/            lock, stat cache, journal
//! ```
//!
//! A checkpoint is a commit without parents. Its tree is the work tree, its message holds the
//! [`CheckpointMetadata`], and one ref names it, so any checkpoint can be pruned alone.
//!
//! Reading order:
//!
//! - `store`: the repository: objects, packs, refs, lock, fsck and repair.
//! - `worktree`: scanning the work tree, and the rules that select the captured files.
//! - `create`, `metadata`, `verify` and `prune`: creating, listing, verifying and removing
//!   checkpoints.
//! - `tree_diff` and [`diff`]: comparing checkpoints and the work tree.
//! - [`restore`], [`cline_import`] and `remote`.

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
mod verify;
mod worktree;

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use sightline_protocol::error::ErrorKind;
use sightline_workspace::{
    access::AccessView,
    cancel::Cancel,
    error::Error,
    path::{RelPath, Root},
    storage::{Storage, TaskId},
};
use uuid::Uuid;

pub use prune::{Keep, Pruned, Stats};
pub use store::{object::Oid, repair::Rebuilt};
pub use tree_diff::Side;
pub use worktree::{
    dirty_set::{ChangeSource, Changes, DirtySet},
    exclusions::SavedExclusions,
    permissions::{ReadPermission, RestrictedPath},
};

use restore::Recovered;
use store::{
    refs,
    repair::{self, VerifiedStore},
    repository::Repository,
};
use worktree::stat_cache::StatCache;

/// Which files are captured, and the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum size of a captured file, in bytes. Larger files are skipped.
    pub max_file_size: u64,
    /// Names of folders that are skipped at any depth.
    pub exclude: Vec<String>,
    /// Number of files above which the first checkpoint needs a confirmation.
    pub max_files: u64,
    /// Total size above which the first checkpoint needs a confirmation, in bytes.
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

/// Progress of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Current stage: "scanning files", "storing", "restoring", …
    pub stage: &'static str,
    /// Items processed so far.
    pub done: u64,
    /// Total number of items, if known.
    pub total: Option<u64>,
}

/// Context of one operation on the checkpoints of a root.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Access rules in force.
    pub view: &'a AccessView,
    /// Index of the root in the view.
    pub root: usize,
    /// Capture settings.
    pub settings: &'a Settings,
    /// Checked in every loop.
    pub cancel: &'a Cancel,
    /// Called often and from several threads; the listener throttles.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

impl Job<'_> {
    /// Returns an error if the access rules cannot be used. Everything would be denied: a
    /// checkpoint would be empty, and no difference would be found.
    ///
    /// # Errors
    /// `accessDenied` names the rules and the problem.
    fn require_rules(&self) -> Result<(), Error> {
        match self.view.unusable(self.root) {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::AccessDenied,
                format!("{why}; checkpoints cannot be created, compared or restored until then"),
            )),
        }
    }
}

/// Why a checkpoint was created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Purpose {
    /// On request.
    #[default]
    Asked,
    /// Before a restore, so that it can be undone.
    Undo {
        /// Checkpoint that was about to be restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restoring: Option<Oid>,
        /// Restored paths, with everything below them. Empty means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<NamedPath>,
    },
    /// Imported from another tool's store.
    Imported,
}

/// Position in a task's conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationMark {
    /// Number of messages since the last compaction.
    pub messages: u64,
    /// Number of compactions; each one restarts the message count.
    pub compactions: u64,
    /// Newest entry of the task's log, which identifies the conversation. `None` if the log is
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Uuid>,
}

/// Parameters of a new checkpoint.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Task it belongs to.
    pub task: Option<TaskId>,
    /// Label chosen by the user.
    pub label: Option<String>,
    /// Why it is created.
    pub purpose: Purpose,
    /// Position in the task's conversation.
    pub messages: Option<ConversationMark>,
    /// Identifier shared by checkpoints created together, one of each root.
    pub group: Option<String>,
    /// URIs of the roots in the group.
    pub group_roots: Vec<String>,
    /// Conversation rewind that restoring this checkpoint also undoes.
    pub rewind: Option<String>,
    /// Skips the confirmation for large work trees.
    pub confirm_large: bool,
}

/// A workspace path that a checkpoint does not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Path relative to the root, with `/`; percent-encoded if `encoded`.
    pub path: String,
    /// Whether `path` is percent-encoded because its bytes are not UTF-8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
    /// Human-readable reason.
    pub reason: String,
}

impl Skipped {
    fn named(&self) -> NamedPath {
        NamedPath {
            path: self.path.clone(),
            encoded: self.encoded,
        }
    }

    /// Returns whether `view` allows showing the path. The rules may have changed since, or the
    /// checkpoint may come from another machine. The entry that counts unlisted paths has an empty
    /// path.
    pub fn may_be_shown(&self, view: &AccessView, root: usize) -> bool {
        let Some(path) = self.named().to_path() else {
            return false;
        };
        let denied = |is_dir| view.check_entry(root, &path, is_dir).is_some();
        path.is_root() || !(denied(false) || denied(true))
    }
}

/// A path as stored in the metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedPath {
    /// Path relative to the root, with `/`; percent-encoded if `encoded`.
    pub path: String,
    /// Whether `path` is percent-encoded because its bytes are not UTF-8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
}

impl NamedPath {
    /// Encodes `path`.
    pub fn of(path: &RelPath) -> Self {
        let (path, encoded) = path.to_wire();
        Self { path, encoded }
    }

    /// Decodes the path. Returns `None` if it leads out of the root.
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

/// Number of files that differ from the previous checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// New files.
    pub added: u64,
    /// Files with another content, mode or type.
    pub modified: u64,
    /// Removed files.
    pub deleted: u64,
}

/// Metadata of a checkpoint, stored as JSON in the commit message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckpointMetadata {
    /// Creation time, in milliseconds since the epoch.
    pub created: u64,
    /// Orders checkpoints created in the same millisecond.
    pub sequence: u64,
    /// Task it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Label chosen by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Why it was created.
    pub purpose: Purpose,
    /// Commit of another tool that it was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Position in the task's conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<ConversationMark>,
    /// Identifier shared by checkpoints created together, one of each root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// URIs of the roots in the group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_roots: Vec<String>,
    /// Conversation rewind that restoring this checkpoint also undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewind: Option<String>,
    /// Differences to the previous checkpoint.
    pub counts: Counts,
    /// Number of files.
    pub files: u64,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Skipped paths, with reasons.
    pub skipped: Vec<Skipped>,
    /// Ignored and denied paths. `None` if they are unknown: there were too many, or an older
    /// version or another tool created the checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusions: Option<SavedExclusions>,
    /// Files with restricted read permissions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted: Vec<RestrictedPath>,
    /// Time it took to create, in milliseconds.
    pub duration_ms: u64,
    /// Whether it was fetched from a remote. Known locally, not part of the commit.
    #[serde(skip)]
    pub fetched: bool,
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Commit id.
    pub id: Oid,
    /// Tree of the commit.
    pub tree: Oid,
    /// Its metadata.
    pub metadata: CheckpointMetadata,
}

/// Selects checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only checkpoints of this task.
    pub task: Option<TaskId>,
    /// Maximum number of checkpoints; the newest are kept.
    pub limit: Option<usize>,
}

/// The checkpoints of one workspace root.
///
/// Nothing is read or created before it is needed. Operations that change the store or the stat
/// cache exclude each other, across threads and processes.
#[derive(Debug)]
pub struct Checkpoints {
    storage: Storage,
    root: Root,
    /// `projects/<name>-<hash>` in the data directory.
    project: PathBuf,
    stat_cache: Mutex<StatCache>,
    metadata_cache: metadata::MetadataCache,
    rebuilt: Mutex<Option<Rebuilt>>,
    /// Interrupted restore that another operation completed first.
    recovered: Mutex<Option<Recovered>>,
    /// Store as this process last verified or wrote it.
    verified: Mutex<Option<VerifiedStore>>,
}

impl Checkpoints {
    /// Returns the checkpoints of `root`. Creates nothing.
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

    /// Workspace root.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Path of the bare repository, which may not exist.
    pub fn git_dir(&self) -> PathBuf {
        self.project.join("checkpoints.git")
    }

    fn state_dir(&self) -> PathBuf {
        self.project.join("state")
    }

    fn work_tree(&self) -> &Path {
        self.root.canonical.as_path()
    }

    /// Takes the report of a damaged store that was rebuilt, to be shown to the user once.
    pub fn take_rebuilt(&self) -> Option<Rebuilt> {
        let mut rebuilt = self.rebuilt.lock().unwrap_or_else(PoisonError::into_inner);
        rebuilt.take()
    }

    /// Takes the report of an interrupted restore that another operation completed, to be shown to
    /// the user once.
    pub fn take_recovered(&self) -> Option<Recovered> {
        let mut recovered = self
            .recovered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        recovered.take()
    }

    /// Turns a storage error into `notFound` if one of the checkpoints was pruned by another
    /// process. Pruning removes refs before objects.
    fn unless_pruned<T>(&self, ids: &[Oid], done: Result<T, Error>) -> Result<T, Error> {
        done.map_err(|error| {
            let is_pruned = |id: &&Oid| matches!(refs::exists(&self.git_dir(), **id), Ok(false));
            match ids.iter().find(is_pruned) {
                Some(id) if error.kind == ErrorKind::Storage => self.not_found(*id),
                _ => error,
            }
        })
    }

    /// Opens the store, and creates or rebuilds it if needed. The caller holds the lock.
    fn open_or_create(&self) -> Result<Repository, Error> {
        if let Some(repository) = self.verified_repository() {
            return Ok(repository);
        }
        *self.verified() = None;
        let (repository, report) =
            repair::open_or_create(&self.storage, &self.git_dir(), metadata::is_checkpoint)?;
        if report.is_some() {
            *self.rebuilt.lock().unwrap_or_else(PoisonError::into_inner) = report;
        }
        *self.verified() = VerifiedStore::of(&repository)?;
        Ok(repository)
    }

    /// Returns the verified store if nothing changed since. The caller holds the lock.
    fn verified_repository(&self) -> Option<Repository> {
        self.verified()
            .as_ref()
            .and_then(VerifiedStore::reopen_if_unchanged)
    }

    fn verified(&self) -> MutexGuard<'_, Option<VerifiedStore>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the store without changing it. Returns `None` if it does not exist.
    fn repository(&self) -> Result<Option<Repository>, Error> {
        Repository::open(&self.git_dir())
    }
}
