//! The MCP servers that agents get: their configuration, and what the user decided about them. The hub runs
//! them.
//!
//! - `address`: addresses of servers that run already
//! - `config`: the servers of the user and of projects
//! - `store`: trust, lists, logs and states, in the data directory
//! - `manage`: lists them, and changes decisions
//! - `known`: the servers that `sightline mcp add NAME` knows
//! - `edit`: adds and removes them, and moves them from and to the configuration of agents; `agent_files` knows
//!   the format of each agent
//! - `secrets`: hides values of variables

pub mod address;
mod agent_files;
pub mod config;
mod edit;
mod known;
mod manage;
pub mod secrets;
pub mod store;
#[cfg(test)]
mod tests;

pub use edit::{servers_of_agent, servers_of_agents};
pub use known::KnownServer;
pub use manage::{Error, Manager};
