//! The requests that restore files and conversations, one file per method.

mod conversation;
mod editor_sync;
mod part;
pub mod preview_restore;
pub mod restore_checkpoint;
mod restore_roots;
pub mod undo_restore;

pub use editor_sync::workspace_edit;
