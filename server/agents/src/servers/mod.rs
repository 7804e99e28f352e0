//! The MCP servers that agents get: their configuration, and what the user decided about them. The hub runs
//! them.
//!
//! - `address`: addresses of servers that run already
//! - `client`: the programs whose configuration has servers
//! - `config`: the servers of the user and of projects
//! - `store`: trust, lists, logs and states, in the data directory
//! - `manage`: lists them, and changes decisions
//! - `known`: the servers that `sightline mcp add NAME` knows
//! - `edit`: adds and removes them, and moves them from and to the configuration of agents; `agent_files` knows
//!   the format of each agent
//! - `secrets`: hides values of variables

pub mod address;
mod agent_files;
mod client;
pub mod config;
mod edit;
mod known;
mod manage;
pub mod secrets;
pub mod store;
#[cfg(test)]
mod tests;

pub use client::Client;
pub use edit::{servers_of_client, servers_of_clients, starts_ours};
pub use known::KnownServer;
pub use manage::{Error, Manager};
