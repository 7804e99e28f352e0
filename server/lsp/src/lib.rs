//! The language server on top of the feature crates: connection, session, handlers and
//! command line.
//!
//! Reading order: [`main_loop`] (how messages are read and dispatched), [`session`] (the
//! state they change), [`scheduler`] (where requests run), [`start_request`] and
//! [`handlers`] (how requests are answered), [`document_sync`] (standard methods),
//! [`settings`] and [`capabilities`]. The command line, [`cli`], calls the same handlers.

pub mod capabilities;
pub mod checkpoint_registry;
pub mod cli;
pub mod client;
pub mod dirty_tracker;
pub mod document_sync;
pub mod editor_features;
pub mod file_watcher;
pub mod frame;
pub mod handlers;
pub mod ipc;
pub mod logging;
pub mod lsp_client;
pub mod main_loop;
mod mutex;
pub mod params_compat;
pub mod parent_watch;
mod plural;
pub mod progress;
pub mod raw_message;
pub mod reader_threads;
pub mod response_body;
pub mod scheduler;
pub mod session;
pub mod settings;
pub mod shared_state;
pub mod signals;
pub mod start_request;
pub mod version;
pub mod writer;
