//! End-to-end tests: the real server through its real connection.
//!
//! [`harness`] starts it in this process or as the built program; every wait has a
//! timeout. One module per subject.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says why it is skipped"
)]

mod access;
#[cfg(unix)]
mod agent_status;
mod agents;
mod agents_check;
mod agents_removal;
#[cfg(target_os = "linux")]
mod backpressure;
mod bridges;
mod checkpoints;
mod cli;
mod cli_checkpoints;
#[cfg(target_os = "linux")]
mod cli_terminal;
mod config_files;
mod conversation;
mod diagnostics;
mod dirty_tracking;
mod documented_commands;
mod documents;
#[cfg(unix)]
mod doors;
mod editor_features;
mod editors;
mod environment;
mod examples;
#[cfg(target_os = "linux")]
mod exec;
mod faults;
mod files;
mod harness;
mod helix;
mod hook;
mod hook_attacks;
mod hook_checkpoints;
mod hook_context;
mod hook_outside;
mod hook_wiring;
mod ipc;
mod lifecycle;
mod limits;
#[cfg(target_os = "linux")]
mod low_memory;
mod main_loop;
mod mcp;
mod neovim;
mod nvim_plugin;
mod page;
mod params_compat;
mod races;
mod restores;
mod restores_task;
mod rule_files;
mod secrets;
mod settings;
mod soak;
mod tasks;
mod tracking;
mod two_editors;
