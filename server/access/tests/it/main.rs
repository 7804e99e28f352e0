//! Tests of access rules, paths and commands.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails by panicking, and one that is skipped says so"
)]

mod command_lists;
mod commands;
mod git_index;
mod nested_rules;
mod open;
mod paths;
mod powershell;
mod races;
mod rules;
mod rules_above_root;
mod scratch;
mod secrets;
