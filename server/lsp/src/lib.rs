//! The language server: the connection to an editor, the main loop, and features for editors without
//! a plugin.
//!
//! Reading order: [`main_loop`] (events, and the requests in flight), [`scheduler`] (the queue of
//! jobs), [`document_sync`] (standard methods) and [`connection`] (messages and their order on the
//! wire). Requests of the protocol are answered by the handlers of `sightline_engine`.
//!
//! Modules:
//!
//! - `main_loop`: the thread that owns the session and the requests in flight: applies messages,
//!   starts jobs, answers; starts and ends the session
//! - `stdio`: serves the editor that started this process
//! - `editor_requests`: requests besides those of the protocol: commands for users, and requests of
//!   LSP
//! - `scheduler`: the queue that starts a job when its keys are free
//! - `document_sync`: life cycle, documents and workspace folders, by tower-lsp
//! - `editor_features`: clients without a plugin: code actions, commands, confirmations; hover,
//!   completion and diagnostics of rule files
//! - `execute_command`: `workspace/executeCommand`; shows results to the user
//! - `connection`: `reader` (the thread that reads; pauses while too much output is unsent),
//!   `message` (typed params), `in_flight` (requests that are not answered), `writer` (whole frames in
//!   order)
//! - `capabilities`: what the server announces
//! - `bridges`: the IDE protocols of agents, which a build may leave out
//! - `file_watcher`: early detection of changed files, never authoritative; tells clients which files
//!   of their documents changed

mod bridges;
pub mod capabilities;
pub mod connection;
pub mod document_sync;
pub mod editor_features;
pub mod editor_requests;
pub mod execute_command;
pub mod file_watcher;
pub mod main_loop;
pub mod scheduler;
pub mod stdio;
