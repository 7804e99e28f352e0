//! What the doors of Sightline share: the state of a session, the requests of the protocol, and the
//! services of their handlers. Uses no LSP types, no runtime and no argument parser.
//!
//! A door parses a message into a [`dispatch::Call`], chooses where it runs by its
//! [`dispatch::Place`], and shows the response. Work without a request is a [`jobs::Job`], which the
//! door runs too.
//!
//! Reading order: [`dispatch`] (the requests, and where they run), [`handlers`] (how they are
//! answered), [`request_context`] (what a handler gets and returns), [`session`] (the state that
//! messages change), [`services`] (what all threads share) and [`settings`].
//!
//! Modules:
//!
//! - `dispatch`: the requests of the protocol: their params, their handlers, and where they run
//! - `jobs`: work without a request, and the keys (tasks and roots) that keep conflicting work apart
//! - `handlers`: one file per request, shared code and maintenance jobs, in folders by subject; the
//!   notifications of clients
//! - `request_context`: what a handler gets and what it returns
//! - `services`: what all threads share: the client, the data directory, the checkpoint stores,
//!   token counters, tasks used and files tracked in this session, the open confirmation; `agents`:
//!   what requests need of the bridges
//! - `session`: the session and its snapshots; what the client supports
//! - `settings`: settings of clients, of `~/.config/sightline/config.toml` and of `.sightline.toml`
//!   in a root: `config_file` reads the files, `project` restricts what a repository can set,
//!   `sources` merges them and records their origins
//! - `client`, `progress`: notifications and requests to the client
//! - `dirty_tracker`: the paths that changed in a root since its last checkpoint: complete, or
//!   unknown
//! - `params_compat`: params that deviate from LSP
//! - `error`: the error of a request or command, made from the errors of other crates in one place
//! - `error_response`: error responses; panics turned into errors
//! - `restore_log`: the last restores of a folder, for agents
//! - `render`: results as text: checkpoints, previews, outcomes, differences, lists of turns

pub mod client;
pub mod dirty_tracker;
pub mod dispatch;
pub mod error;
pub mod error_response;
pub mod handlers;
pub mod jobs;
pub mod params_compat;
pub mod progress;
pub mod render;
pub mod request_context;
pub mod restore_log;
pub mod services;
pub mod session;
pub mod settings;
