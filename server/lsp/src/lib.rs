//! The server around [`sightline_core`]: transport, session, handlers, command line.
//!
//! Reading order: [`transport`] (how messages come in),
//! [`session`] (what is known), [`commands`] and [`api`] (how requests are
//! answered), [`lsp`] (the standard methods), [`settings`] and [`capabilities`]
//! (what the client wants and can), [`watch`], [`lifetime`] and [`logging`].
//! [`cli`] is the third door to the same handlers.

pub mod api;
pub mod build;
pub mod capabilities;
pub mod changes;
pub mod checkpoints;
pub mod cli;
pub mod client;
pub mod commands;
pub mod frame;
pub mod jobs;
pub mod json;
pub mod lanes;
pub mod lenient;
pub mod lifetime;
pub mod logging;
pub mod lsp;
pub mod message;
pub mod outbound;
pub mod output;
pub mod progress;
pub mod readers;
pub mod server;
pub mod session;
pub mod settings;
pub mod socket;
pub mod transport;
pub mod watch;
