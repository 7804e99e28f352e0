//! The language server on top of [`sightline_core`]: connection, session, handlers and
//! command line.
//!
//! Reading order: [`main_loop`] (how messages are read and dispatched), [`session`] (the
//! state they change), [`scheduler`] (where requests run), [`execute_command`] and
//! [`handlers`] (how requests are answered), [`lsp_handlers`] (standard methods),
//! [`settings`] and [`capabilities`]. The command line, [`cli`], calls the same handlers.

pub mod capabilities;
pub mod checkpoint_registry;
pub mod cli;
pub mod client;
pub mod dirty_tracker;
pub mod editor_features;
pub mod execute_command;
pub mod file_watcher;
pub mod frame;
pub mod handlers;
pub mod ipc;
pub mod logging;
pub mod lsp_client;
pub mod lsp_handlers;
pub mod main_loop;
pub mod params_compat;
pub mod parent_watch;
mod plural;
pub mod progress;
pub mod raw_message;
pub mod reader_threads;
pub mod response_body;
pub mod scheduler;
pub mod server;
pub mod session;
pub mod settings;
pub mod signals;
mod sync;
pub mod version;
pub mod writer;
