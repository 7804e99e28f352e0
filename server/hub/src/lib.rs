//! An MCP server for agents: our own tools, and MCP servers of the user behind the access rules of the workspace.
//!
//! Messages are relayed as they were written. Requests of the agent are judged before a server gets
//! them, as hooks judge tool calls, and what a server sends is judged before the agent gets it: names
//! and contents of denied files are taken out. What cannot be judged is refused. A server is a
//! program: it can read and send what it likes. Only what passes here is judged.
//!
//! Modules:
//!
//! - `connect`: relays one that runs at an address of this machine
//! - `tools`: our own tools
//! - `hub`: these and all servers in the session of an agent
//! - `message`: JSON-RPC messages with members as written
//! - `judge`: what may pass, by the rules of the workspace
//! - `result`, `names`: take denied files out of results
//! - `process`: a running server
//! - `supervise`, `job`: end everything that it started: a process; a job of Windows
//! - `wrap`: one server on standard input and output

pub mod connect;
pub mod hub;
#[cfg(windows)]
mod job;
pub mod judge;
pub mod message;
mod names;
pub mod process;
mod result;
#[cfg(unix)]
pub mod supervise;
pub mod tools;
pub mod wrap;
