//! What the other crates build on: paths, file system access, the data directory, errors.
//!
//! Reading order: [`path`] (where a path lies, and whether it is inside a root), [`fs`] (access relative to open
//! directories), [`storage`] (the data directory), [`error`]. [`cancel`], [`escape`], [`json_repair`], [`limits`] and [`thread_pool`]
//! are small and independent.
//!
//! Invariants:
//! - Untrusted paths become a [`path::Location`] before use.
//! - No input causes a panic.
//!
//! Modules:
//!
//! - `path`: paths: URIs, absolute and relative paths, and the root they belong to
//! - `storage`: data directory: private, atomic, durable, locked; append-only logs
//! - `fs`: files and directories by handle, without following links; stat changes; leases; programs
//!   on the search path; configuration files of other programs
//! - `decision_log`: what agents were refused, and what was hidden from them
//! - `escape`: escapes untrusted text: line breaks, invisible characters, tags
//! - `thread_pool`: threads for parallel work: rayon pools for requests and for a restore, separate
//!   from checkpoints; the calling thread where the system starts none; a thread for a flush
//! - `cancel`, `error`, `limits`: cancellation flag, error type, limits on input
//! - `git`: the command `git`, for questions about a repository
//! - `peer`: the user of a connection on loopback
//! - `clock`, `plural`, `words`, `json_repair`: current time in milliseconds; counts with their noun, and
//!   ages; lists of words; unpaired surrogates in JSON written by JavaScript

pub mod cancel;
pub mod clock;
pub mod decision_log;
pub mod error;
pub mod escape;
pub mod fs;
pub mod git;
pub mod json_repair;
pub mod limits;
pub mod path;
pub mod peer;
pub mod plural;
pub mod storage;
pub mod thread_pool;
pub mod words;
