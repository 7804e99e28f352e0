//! The IDE protocols of coding agents: they tell an agent what the user selects, as it happens.
//!
//! [`view`] holds the editor state that agents may see. [`claude`], [`companion`] and [`codex`] turn it into
//! the messages of a protocol, and answer the requests of agents. [`rpc`] is what the protocols
//! share. Sockets and discovery files belong to the server.

pub mod claude;
pub mod codex;
pub mod companion;
pub mod rpc;
mod selection;
pub mod view;
