//! What the other crates build on: paths, file system access, the data directory, errors.
//!
//! Reading order: [`path`] (where a path lies, and whether it is inside a root), [`fs`] (access relative to open
//! directories), [`storage`] (the data directory), [`error`]. [`cancel`], [`escape`], [`json_repair`], [`limits`] and [`thread_pool`]
//! are small and independent.
//!
//! Invariants:
//! - Untrusted paths become a [`path::Location`] before use.
//! - No input causes a panic.

pub mod cancel;
pub mod clock;
pub mod error;
pub mod escape;
pub mod fs;
pub mod json_repair;
pub mod limits;
pub mod path;
pub mod plural;
pub mod storage;
pub mod thread_pool;
