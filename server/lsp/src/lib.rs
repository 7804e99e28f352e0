//! The language server on top of the engine crates: connection, session, handlers and
//! command line.
//!
//! Reading order: [`main_loop`] (events, and the requests in flight), [`dispatch`] (every
//! request and where it runs), [`scheduler`] (the queue of jobs), [`session`] (the state
//! that messages change), [`handlers`] (how requests are answered), [`document_sync`]
//! (standard methods), [`connection`] (messages and their order on the wire), [`services`]
//! (what all threads share) and [`settings`]. The command line, [`cli`], calls the same
//! handlers.
//!
//! Modules:
//!
//! - `main_loop`: the thread that owns the session and the requests in flight: applies messages,
//!   starts jobs, answers; starts and ends the session
//! - `dispatch`: the requests of the protocol: their params, their handlers, and where they run;
//!   `editor_requests`: the same for commands for users, and requests of LSP
//! - `jobs`: work without a request, and the keys (tasks and roots) that keep conflicting work apart
//! - `scheduler`: the queue that starts a job when its keys are free
//! - `request_context`: what a handler gets and what it returns
//! - `handlers`: one file per request, shared code and maintenance jobs, in folders by subject; the
//!   notifications of clients
//! - `document_sync`: life cycle, documents and workspace folders, by tower-lsp
//! - `editor_features`: clients without a plugin: code actions, commands, confirmations; hover,
//!   completion and diagnostics of rule files
//! - `execute_command`: `workspace/executeCommand`; shows results to the user
//! - `error`: the error of a request or command, made from the errors of the engine crates in one
//!   place
//! - `error_response`: error responses; panics turned into errors
//! - `connection`: `reader` (the thread that reads; pauses while too much output is unsent),
//!   `frame`, `message` (typed params), `in_flight` (requests that are not answered), `writer`
//!   (whole frames in order), `lsp_client` (for the demo and the tests)
//! - `client`, `progress`: notifications and requests to the client
//! - `params_compat`: params that deviate from LSP
//! - `capabilities`: what the server announces
//! - `session`: the session and its snapshots; what the client supports
//! - `settings`: settings of clients, of `~/.config/sightline/config.toml` and of `.sightline.toml`
//!   in a root: `config_file` reads the files, `project` restricts what a repository can set,
//!   `sources` merges them and records their origins
//! - `services`: what all threads share: the client, the data directory, the checkpoint stores,
//!   token counters, tasks used and files tracked in this session, the open confirmation; `agents`:
//!   what requests need of the bridges
//! - `bridges`: servers for the IDE protocols of agents: sockets, tokens, discovery files; `view`
//!   builds the state that agents may see and leaves out denied files, `diffs` keeps the changes
//!   that wait for the user
//! - `watch`: `dirty_tracker` (paths changed in a root since its last checkpoint: complete, or
//!   unknown), `file_watcher` (early detection of changed files, never authoritative; tells clients
//!   which files of their documents changed)
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
//! - `restore_log`: the last restores of a folder, for agents
//! - `plural`: counts with their noun in messages, from `plural` of `workspace`

pub mod bridges;
pub mod capabilities;
pub mod cli;
pub mod client;
pub mod connection;
pub mod dispatch;
pub mod document_sync;
pub mod editor_features;
pub mod editor_requests;
pub mod error;
pub mod error_response;
pub mod execute_command;
pub mod handlers;
pub mod ipc;
pub mod jobs;
pub mod main_loop;
pub mod params_compat;
mod plural;
pub mod process;
pub mod progress;
pub mod request_context;
mod restore_log;
pub mod scheduler;
pub mod services;
pub mod session;
pub mod settings;
pub mod watch;
