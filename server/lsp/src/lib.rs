//! The language server on top of the engine crates: connection, session, handlers and
//! command line.
//!
//! Reading order: [`main_loop`] (events, and the requests in flight), [`dispatch`] (every
//! request and where it runs), [`scheduler`] (the queue of jobs), [`session`] (the state
//! that messages change), [`handlers`] (how requests are answered), [`document_sync`]
//! (standard methods), [`connection`] (messages and their order on the wire), [`services`]
//! (what all threads share) and [`settings`]. The command line, [`cli`], calls the same
//! handlers.

pub mod bridges;
pub mod cli;
pub mod connection;
pub mod dispatch;
pub mod document_sync;
pub mod editor_features;
pub mod error;
pub mod error_response;
pub mod execute_command;
pub mod handlers;
pub mod ipc;
pub mod main_loop;
mod plural;
pub mod process;
pub mod request_context;
mod restore_log;
pub mod scheduler;
pub mod services;
pub mod session;
pub mod settings;
pub mod watch;
