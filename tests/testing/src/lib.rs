//! What tests of several crates share. It depends on none of them, so that any
//! may use it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]

pub mod files;
pub mod git;
