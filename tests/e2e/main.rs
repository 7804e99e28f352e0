//! End-to-end tests: the real server through its real connection.
//!
//! [`harness`] starts it in this process or as the built program; every wait has a
//! timeout. One module per subject; what belongs to a part of it is a module below.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says why it is skipped"
)]
// Editors, agents and the faults of tests are programs of Unix.
#![cfg(unix)]
#![cfg_attr(
    not(target_os = "linux"),
    allow(unused, reason = "many tests run on Linux only")
)]

mod access;
mod agents;
mod bridges;
mod checkpoints;
mod cli;
mod conversation;
mod documents;
mod editors;
mod harness;
mod hook;
mod ipc;
mod lifecycle;
mod mcp;
mod page;
