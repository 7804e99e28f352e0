//! The program of Sightline on top of the engine: the language server, the other doors, and the
//! command line.
//!
//! Reading order: [`main_loop`] (events, and the requests in flight), [`scheduler`] (the queue of
//! jobs), [`document_sync`] (standard methods) and [`connection`] (messages and their order on the
//! wire). The command line, [`cli`], calls the same handlers.
//!
//! Modules:
//!
//! - `main_loop`: the thread that owns the session and the requests in flight: applies messages,
//!   starts jobs, answers; starts and ends the session
//! - `editor_requests`: requests besides those of the protocol: commands for users, and requests of
//!   LSP
//! - `scheduler`: the queue that starts a job when its keys are free
//! - `document_sync`: life cycle, documents and workspace folders, by tower-lsp
//! - `editor_features`: clients without a plugin: code actions, commands, confirmations; hover,
//!   completion and diagnostics of rule files
//! - `execute_command`: `workspace/executeCommand`; shows results to the user
//! - `connection`: `reader` (the thread that reads; pauses while too much output is unsent),
//!   `frame`, `message` (typed params), `in_flight` (requests that are not answered), `writer`
//!   (whole frames in order), `lsp_client` (for the demo and the tests)
//! - `capabilities`: what the server announces
//! - `file_watcher`: early detection of changed files, never authoritative; tells clients which files
//!   of their documents changed
//! - `bridges`: servers for the IDE protocols of agents: sockets, tokens, discovery files; `view`
//!   builds the state that agents may see and leaves out denied files, `diffs` and `open_diff` keep
//!   and show the changes that wait for the user
//! - `ipc`: connections of the command line to the running servers of its workspace: reads and
//!   checkpoints. The modification time of a socket is the time of the last focus
//! - `cli`: command line, one file per command, `cli/checkpoints` for those of checkpoints; demo
//!   and doctor; `cli/init` writes a `.clineignore`; `cli/hook` answers coding agents
//!   (`access_check`: asks for what `agents/judge` needs; `session`: block and checkpoints;
//!   `seen_files`: what a session has read and written); `cli/agents` connects coding agents
//!   (`installer`), tells what keeps entries from running (`status`) and runs them (`check`),
//!   `cli/mcp` serves them tools; `cli/helix` edits the Helix configuration, `cli/config_file`
//!   edits configuration files of other programs; `cli/config` shows settings and their origins
//! - `process`: log, version (set by `build.rs`), ancestors, termination signals, exit with the
//!   parent process

pub mod bridges;
pub mod capabilities;
pub mod cli;
pub mod connection;
pub mod document_sync;
pub mod editor_features;
pub mod editor_requests;
pub mod execute_command;
pub mod file_watcher;
pub mod ipc;
pub mod main_loop;
pub mod process;
pub mod scheduler;
