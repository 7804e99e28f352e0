//! Tests of paths, access, files, the environment block and tracked files.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]
#![cfg_attr(
    not(target_os = "linux"),
    allow(unused, reason = "some tests run on Linux only")
)]

mod cline;
mod environment;
mod listing;
mod read;
mod tracker;
