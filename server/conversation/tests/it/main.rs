//! Tests of conversations: truncation and compaction.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]

mod cline;
mod compaction;
mod compaction_support;
mod conversation;
mod conversation_properties;
