//! The server around [`sightline_core`]: transport, session, handlers, command line.
//!
//! Reading order: [`transport`] (how messages come in),
//! [`session`] (what is known), [`commands`] and [`api`] (how requests are
//! answered), [`lsp`] (the standard methods), [`settings`] and [`capabilities`]
//! (what the client wants and can), [`watch`], [`parent_watch`] and [`logging`].
//! [`cli`] is the third door to the same handlers.

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
