//! MCP servers of the user, behind the access rules of the workspace.
//!
//! Messages are relayed as they were written. Requests of the agent are judged before a server gets
//! them, as hooks judge tool calls, and what a server sends is judged before the agent gets it: names
//! and contents of denied files are taken out. What cannot be judged is refused. A server is a
//! program: it can read and send what it likes. Only what passes here is judged.
//!
//! Modules:
//!
//! - `connect`: relays one that runs at an address of this machine
//! - `hub`: all of them in the session of an agent
//! - `message`: JSON-RPC messages with members as written
//! - `judge`: what may pass, by the rules of the workspace
//! - `result`, `names`: take denied files out of results
//! - `process`, `supervise`: a running server, and the process that ends everything that it started
//! - `wrap`: one server on standard input and output

pub mod connect;
pub mod hub;
pub mod judge;
pub mod message;
mod names;
pub mod process;
mod result;
#[cfg(unix)]
pub mod supervise;
pub mod wrap;
