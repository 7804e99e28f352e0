//! Connects Sightline to coding agents.
//!
//! [`hook`] reads and writes the JSON of the agents' hooks, [`install`] edits their configuration,
//! [`mcp`] describes the tools that they can call, [`ide`] their IDE protocols, and [`wiring`] what agents may not
//! change. [`judge`] decides whether a tool call may run. None of them talks to a server: the command line does.

mod agent;
pub mod hook;
pub mod ide;
pub mod install;
pub mod judge;
pub mod mcp;
pub mod wiring;

pub use agent::Agent;
