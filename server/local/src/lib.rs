//! What the doors share on a machine: sockets and the files by which they are found, tokens, frames,
//! and the process.
//!
//! Modules:
//!
//! - `frame`: `Content-Length` framing of messages
//! - `listener`, `token`, `discovery`, `socket`: connections on loopback and local sockets, limited in
//!   number; the secret of a listener and the check of hosts and origins; the files by which programs
//!   find it
//! - `process`: log, version (set by `build.rs`), ancestors, termination signals, exit with the parent
//!   process

pub mod discovery;
pub mod frame;
pub mod listener;
pub mod process;
#[cfg(unix)]
pub mod socket;
pub mod token;
