//! Tests of checkpoints with real workspaces and git. They need Unix permissions and links.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]

mod capture;
mod capture_support;
mod changes;
mod commit;
mod concurrent_prune;
mod denied;
mod diff;
mod dirty_set;
mod git_directories;
mod properties;
mod restore;
mod restore_support;
mod special_files;
mod stores;
mod tracked;
mod version_control;
