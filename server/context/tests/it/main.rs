//! Tests of paths, access, files, the environment block and tracked files.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]

mod cline;
mod environment;
mod listing;
mod read;
mod tracker;
