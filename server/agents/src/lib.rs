//! Connects Sightline to coding agents.
//!
//! [`hook`] reads and writes the JSON of the agents' hooks, [`install`] edits their configuration,
//! [`mcp`] describes the tools that they can call, [`ide`] their IDE protocols, and [`wiring`] what agents may not
//! change. [`judge`] decides whether a tool call may run. None of them talks to a server: the command line does.
//!
//! Modules:
//!
//! - `agent`: the supported agents
//! - `hook`: hooks of coding agents: parses their events and renders their answers, in `formats`
//!   with one file per agent; reads searches as each agent runs them
//! - `mcp`: the tools of `sightline mcp`: descriptions, schemas, results as text; `hub/tools` runs them
//! - `ide`: IDE protocols of coding agents: the type of the state that they see (built in `lsp` by
//!   `bridges/view`), messages, one file per protocol
//! - `judge`: whether a tool call may run, and why not, by one `sightline/checkAccess` request
//! - `install`: configuration of coding agents: adds and removes our entries, the plugins for
//!   opencode and Cline; `switches` finds settings that switch entries off, `probe` describes a run
//!   of a hook with a denied file
//! - `gateway`: addresses of the gateway in the configuration of agents; `launch` starts an agent with them
//! - `servers`: the MCP servers that agents get: their configuration, and what the user decided about them
//! - `wiring`: files, programs and commands that agents may not change or run; `command/guard` in
//!   `access` finds them in command lines

mod agent;
pub mod gateway;
pub mod hook;
pub mod ide;
pub mod install;
pub mod judge;
pub mod mcp;
pub mod servers;
pub mod wiring;

pub use agent::Agent;
