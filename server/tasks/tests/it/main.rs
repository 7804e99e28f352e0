//! Tests of stored conversations.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]

mod corruption;
mod edits;
mod import_export;
mod old_logs;
mod processes;
mod properties;
mod retention;
#[cfg(unix)]
mod special_files;
mod store;
mod support;
