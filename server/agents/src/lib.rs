//! Connects Sightline to coding agents.
//!
//! [`hook`] reads and writes the JSON of the agents' hooks, [`install`] edits their configuration,
//! [`mcp`] describes the tools that they can call, and [`ide`] their IDE protocols. None of them reads files or talks to a server: the command line does.

mod agent;
pub mod hook;
pub mod ide;
pub mod install;
pub mod mcp;

pub use agent::Agent;
