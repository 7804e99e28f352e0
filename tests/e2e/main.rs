//! End-to-end tests: the real server through its real transport.
//!
//! [`harness`] starts it in this process or as the built program; every wait has
//! a deadline. One module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says why it is skipped"
)]

mod access;
mod checkpoints;
mod cli;
mod cli_checkpoints;
mod conversation;
mod documents;
mod editors;
mod environment;
mod examples;
mod face;
mod face_rules;
mod face_socket;
mod faults;
mod files;
mod harness;
mod helix;
mod lenient;
mod lifecycle;
mod limits;
mod neovim;
mod nvim_plugin;
mod races;
mod restores;
mod restores_task;
mod settings;
mod soak;
mod tasks;
mod tracking;
mod transport;
#[cfg(target_os = "linux")]
mod unread;
mod watching;
