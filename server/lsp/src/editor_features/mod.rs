//! Features for clients without our plugin: code actions, and commands without arguments.
//!
//! Commands apply to the active document, or the one in their argument, and show their
//! result themselves, because generic clients discard it: short results as messages, long
//! ones as documents. Irreversible actions need confirmation ([`confirm`]). Open
//! `.clineignore` files get hover, completion and [`diagnostics`]. Commands run as jobs,
//! like the requests of the protocol.

mod checkpoint_commands;
mod code_actions;
mod command_result;
mod completion;
pub mod confirm;
pub mod diagnostics;
mod document_arg;
mod explain_access;
mod hover;
mod rule_file;
mod show_environment;

use crate::{
    handlers::{Handler, HandlerFn},
    scheduler::queue_rule::QueueRule,
};

/// Commands of `workspace/executeCommand` that are not requests of the protocol.
const COMMANDS: &[Handler] = &[
    Handler {
        name: "sightline/showEnvironment",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(show_environment::environment),
    },
    Handler {
        name: "sightline/explainAccess",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(explain_access::access),
    },
    Handler {
        name: "sightline/checkpointNow",
        queue: QueueRule::Roots,
        run: HandlerFn::Text(checkpoint_commands::create),
    },
    Handler {
        name: "sightline/showChanges",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(checkpoint_commands::show_changes),
    },
    Handler {
        name: "sightline/restoreFile",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(checkpoint_commands::restore_file),
    },
    Handler {
        name: "sightline/undoLastRestore",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(checkpoint_commands::undo_last_restore),
    },
    Handler {
        name: "sightline/allow",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(confirm::allow),
    },
    Handler {
        name: "sightline/deny",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(confirm::deny),
    },
];

/// Standard requests handled here.
const REQUESTS: &[Handler] = &[
    Handler {
        name: "textDocument/codeAction",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(code_actions::run),
    },
    Handler {
        name: "textDocument/hover",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(hover::hover),
    },
    Handler {
        name: "textDocument/completion",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(completion::completion),
    },
];

/// Returns a command, given its name as a method.
pub fn command(name: &str) -> Option<&'static Handler> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Returns the names of the commands for `workspace/executeCommand`.
pub fn command_names() -> impl Iterator<Item = String> {
    COMMANDS
        .iter()
        .map(|command| command.name.replacen('/', ".", 1))
}

/// Returns the handler of a standard request.
pub fn request(name: &str) -> Option<&'static Handler> {
    REQUESTS.iter().find(|request| request.name == name)
}
