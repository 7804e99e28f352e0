//! The requests that restore files and conversations, one file per method.

mod conversation;
mod editor_sync;
pub(crate) mod preview_restore;
pub(crate) mod restore_checkpoint;
mod restore_roots;
pub(crate) mod undo_restore;

pub(crate) use editor_sync::workspace_edit;
