//! The measurements: one file per part, each with its rows.

pub(crate) mod access;
pub(crate) mod checkpoints;
pub(crate) mod clients;
pub(crate) mod conversation;
pub(crate) mod environment;
mod exec;
pub(crate) mod gateway;
pub(crate) mod hook;
pub(crate) mod instructions;
pub(crate) mod listing;
pub(crate) mod memory;
pub(crate) mod round_trips;
pub(crate) mod soak;
