//! The context of an agent: files, editor state, tracked files, the environment block.
//!
//! Functions take and return plain data. The only side effects are reads of the workspace and
//! writes below the data directory; the caller chooses the thread.
//!
//! Reading order: [`listing`] and [`read`] (files under the access rules), [`tracker`] (what an agent knows of
//! them), [`editor`] and [`environment`]. [`git`] reads the user's repository with libgit2.
//!
//! Invariants:
//! - Untrusted paths become a [`sightline_base::path::Location`] before use, and no name or byte of the workspace
//!   leaves this crate without a verdict of [`sightline_access`].
//! - Every loop over files or lines checks its [`sightline_base::cancel::Cancel`].
//! - No input causes a panic.
//!
//! Modules:
//!
//! - `listing`: breadth-first file lists under git ignore rules; their order and format
//! - `read`: reads files under the access rules, from the editor or the disk: ranges, limits,
//!   encodings
//! - `document`: text of open documents, edited in any position encoding
//! - `editor`: editor state; missing state is derived and marked
//! - `environment`: the `<environment_details>` block and its changes since a revision
//! - `tracker`: files a task has seen, compared by content hash; Cline's `task_metadata.json`
//! - `git`: information about the user's repository under the access rules, and its index; isolates
//!   libgit2 from git settings

pub mod document;
pub mod editor;
pub mod environment;
pub mod git;
pub mod listing;
pub mod read;
pub mod tracker;
