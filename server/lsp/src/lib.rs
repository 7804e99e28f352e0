//! The language server on top of the feature crates: connection, session, handlers and
//! command line.
//!
//! Reading order: [`main_loop`] (events, and the requests in flight), [`dispatch`] (every
//! request and where it runs), [`scheduler`] (the queue of jobs), [`session`] (the state
//! that messages change), [`handlers`] (how requests are answered), [`document_sync`]
//! (standard methods), [`settings`] and [`capabilities`]. The command line, [`cli`], calls
//! the same handlers.

pub mod active_tasks;
pub mod capabilities;
pub mod checkpoint_registry;
pub mod cli;
pub mod client;
pub mod client_info;
pub mod confirmations;
pub mod dirty_tracker;
pub mod dispatch;
pub mod document_sync;
pub mod editor_features;
pub mod error_response;
pub mod execute_command;
pub mod file_watcher;
pub mod frame;
pub mod handlers;
pub mod in_flight;
pub mod ipc;
pub mod logging;
pub mod lsp_client;
pub mod main_loop;
pub mod message;
mod mutex;
pub mod params_compat;
pub mod parent_watch;
mod plural;
pub mod progress;
pub mod reader;
pub mod request_context;
pub mod scheduler;
pub mod services;
pub mod session;
pub mod settings;
pub mod signals;
pub mod stores;
pub mod tracked_files;
pub mod version;
pub mod writer;
