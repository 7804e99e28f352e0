//! How the requests of agents to their models go through the gateway: by addresses in their configuration, or for
//! one start of an agent.

pub(crate) mod addresses;
mod files;
pub mod launch;

pub use self::{
    addresses::{Addresses, CONFIGURED, path_below},
    files::{SOCKET_UNIT, add_to, units},
};
