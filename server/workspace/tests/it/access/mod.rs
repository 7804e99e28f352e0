//! Tests of access checks.

mod command_readers;
mod commands;
mod open;
mod paths;
mod races;
mod rules;
mod rules_above_root;
