//! Features for clients without our plugin: code actions, and commands without arguments.
//!
//! Commands apply to the active document, or the one in their argument, and show their
//! result themselves, because generic clients discard it: short results as messages, long
//! ones as documents. Irreversible actions need confirmation ([`confirm`]). Open
//! `.clineignore` files get hover, completion and [`diagnostics`]. Commands run as jobs,
//! like the requests of the protocol.

pub mod checkpoint_commands;
pub mod code_actions;
mod command_result;
pub mod completion;
pub mod confirm;
pub mod diagnostics;
pub mod document_arg;
pub mod explain_access;
pub mod hover;
pub mod open_page;
pub mod pause_bridges;
pub mod rule_file;
pub mod send_to_agent;
pub mod show_environment;

use serde_json::Value;
use sightline_engine::{error::Error, request_context::RequestContext};

/// The params of a command that uses none.
pub struct NoParams;

impl NoParams {
    /// Ignores any params.
    ///
    /// # Errors
    /// None.
    pub fn read(_: &str, _: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

/// `experimental/runnables`, which Zed sends to every server of a Rust file, and shows
/// `null` as an error.
///
/// # Errors
/// None.
pub fn runnables(_: &RequestContext<'_>, _: NoParams) -> Result<Vec<Value>, Error> {
    Ok(Vec::new())
}
