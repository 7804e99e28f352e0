//! The requests about checkpoints, one file per method; restores in `restore`.

pub mod adopt;
pub mod checkpoint_context;
pub mod checkpoint_stats;
pub mod create_checkpoint;
pub mod diff_checkpoints;
pub mod label_checkpoint;
pub mod list_checkpoints;
mod maintenance;
pub mod prune_checkpoints;
pub mod recovery;
pub mod reference;
pub mod restore;
mod shared;
pub mod transfer;
pub mod verify_checkpoints;
