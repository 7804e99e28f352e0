//! Commands about checkpoints, one file per command.

mod base_checkpoint;
pub(crate) mod checkpoint_now;
pub(crate) mod restore_all;
pub(crate) mod restore_file;
pub(crate) mod show_changes;
pub(crate) mod show_turns;
pub(crate) mod undo_last_restore;

pub(super) use base_checkpoint::latest;
