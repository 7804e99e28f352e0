//! Connects Sightline to coding agents.
//!
//! [`hook`] reads and writes the JSON of the agents' hooks, [`install`] edits their configuration.
//! Neither reads files or talks to a server: the command line does.

mod agent;
pub mod hook;
pub mod install;

pub use agent::Agent;
