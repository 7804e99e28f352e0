//! Checkpoints of a workspace root, stored in a bare git repository.
//!
//! [`restore`] is the only part that changes the workspace. It first saves the current state as a
//! checkpoint.
//!
//! ```text
//! <data directory>/projects/<name>-<hash>/checkpoints.git   bare repository, readable by git
//! <data directory>/projects/<name>-<hash>/state/            lock, stat cache, journal, changes of restores, folder, turns
//! ```
//!
//! A checkpoint is a commit without parents. Its tree is the work tree, its message holds the
//! [`CheckpointMetadata`], and one ref names it, so any checkpoint can be pruned alone.
//!
//! Reading order:
//!
//! - `checkpoints`, `job`, `metadata`, [`error`]: a root and its checkpoints, the context of an operation, what is saved
//!   with a checkpoint, and what can fail.
//! - `store`: the repository: objects, packs, refs, lock, fsck and repair.
//! - `worktree`: scanning the work tree, and the rules that select the captured files.
//! - `create`, `list`, `prune` and `verify`: creating, finding and labelling, removing and verifying checkpoints.
//! - `tree_diff` and [`diff`]: comparing checkpoints and the work tree.
//! - [`restore`], [`restore::group`] (restores of several roots), `remote` and `adopt`.
//!
//! Modules:
//!
//! - `store`: the bare git repository: objects, packs, refs, lock, fsck and repair
//! - `worktree`: scans of the work tree, and the rules that select the captured files
//! - `checkpoints`, `job`, `error`: the checkpoints of a workspace root; the context of an
//!   operation; error type
//! - `adopt`: takes over the store of a folder that was moved
//! - `create`, `list`, `prune`, `verify`: creates, lists, labels, removes and verifies checkpoints
//! - `turns`: turns of agents: their names, prompts, and the checkpoints before and after them
//! - `metadata`, `named_path`: metadata of a checkpoint, and its cache; paths as stored
//! - `testing`: test utilities
//! - `tree_diff`, `diff`: compares checkpoints and the work tree
//! - `restore`, `remote`: restore of one root or a group (`restore/group`); synchronization with a
//!   git remote
//! - `git`: runs of git, and commits of checkpoints in the user's repository

mod adopt;
mod checkpoints;
mod create;
pub mod diff;
pub mod error;
mod git;
mod job;
mod list;
mod metadata;
mod named_path;
mod prune;
pub mod remote;
pub mod restore;
mod store;
#[cfg(test)]
mod testing;
mod tree_diff;
mod turns;
mod verify;
mod worktree;

pub use adopt::FolderStore;
pub use checkpoints::Checkpoints;
pub use job::{Job, Progress};
pub use list::Filter;
pub use metadata::head::{Head, head_of};
pub use metadata::{
    Checkpoint, CheckpointMetadata, ConversationMark, Counts, CreateIf, Purpose, Request, Skipped,
    to_i64,
};
pub use named_path::NamedPath;
pub use prune::{Keep, Pruned};
pub use restore::group;
pub use store::{object::Oid, repair::Rebuilt};
pub use tree_diff::Side;
pub use turns::{
    AgentProcess, ChangedFile, ChangedFiles, ListedTurn, Outside, Related, Turn, TurnFilter,
    TurnName, TurnStart,
};
pub use worktree::{
    dirty_set::{ChangeSource, Changes},
    exclusions::SavedExclusions,
    permissions::{ReadPermission, RestrictedPath},
};
