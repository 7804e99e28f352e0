//! Connects Sightline to coding agents.
//!
//! [`hook`] reads and writes the JSON of the agents' hooks. It neither reads files nor talks to a
//! server: the command line does.

mod agent;
pub mod hook;

pub use agent::Agent;
