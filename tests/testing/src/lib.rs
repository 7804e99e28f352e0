//! Helpers shared by the tests of several crates.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]

pub mod files;
pub mod fixtures;
pub mod git;
pub mod lsp_client;
pub mod process;
#[cfg(unix)]
pub mod special_files;
#[cfg(unix)]
pub mod tmux;
pub mod watchdog;
