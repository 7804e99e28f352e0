//! Tests of access checks.

mod command_git;
mod command_lists;
mod command_readers;
mod commands;
mod everyday_commands;
mod git_index;
mod hostile_commands;
mod nested_rules;
mod open;
mod paths;
mod races;
mod rules;
mod rules_above_root;
mod secrets;
