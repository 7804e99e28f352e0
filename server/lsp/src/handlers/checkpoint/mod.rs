//! The requests about checkpoints, one file per method.

mod checkpoint_context;
pub mod checkpoint_stats;
pub mod create_checkpoint;
pub mod diff_checkpoints;
pub mod list_checkpoints;
mod maintenance;
pub mod preview_restore;
pub mod prune_checkpoints;
pub(crate) mod recovery;
pub mod restore;
pub mod restore_checkpoint;
mod shared;
pub mod transfer;
pub mod undo_restore;
pub mod verify_checkpoints;
