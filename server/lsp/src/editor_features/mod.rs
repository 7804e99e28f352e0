//! What clients without a plugin of ours see: code actions, and commands that
//! need no arguments.
//!
//! Commands work on the document the user is in, or on the one their argument
//! names, and show what came of them themselves: plain clients drop results.
//! Short outcomes are messages, long ones fresh documents. What cannot be taken
//! back is asked first ([`decision`]). Whoever writes a `.clineignore` gets hover,
//! completion and [`diagnostics`]. All of it runs as jobs, as
//! requests of the protocol do.

mod checkpoint_commands;
mod code_actions;
pub mod confirm;
pub mod diagnostics;
mod document_arg;
mod explain;
mod report;
mod rule_file;

use crate::handlers::{Handler, HandlerFn, QueueRule};

/// Commands of `workspace/executeCommand` that are no requests of the protocol.
const COMMANDS: &[Handler] = &[
    Handler {
        name: "sightline/showEnvironment",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(explain::environment),
    },
    Handler {
        name: "sightline/explainAccess",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(explain::access),
    },
    Handler {
        name: "sightline/checkpointNow",
        queue: QueueRule::Roots,
        run: HandlerFn::Text(checkpoint_commands::take),
    },
    Handler {
        name: "sightline/showChanges",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(checkpoint_commands::changes),
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

/// LspHandlers requests that are answered here.
const REQUESTS: &[Handler] = &[
    Handler {
        name: "textDocument/codeAction",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(code_actions::run),
    },
    Handler {
        name: "textDocument/hover",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(rule_file::hover),
    },
    Handler {
        name: "textDocument/completion",
        queue: QueueRule::Pool,
        run: HandlerFn::Text(rule_file::completion),
    },
];

/// The command of this name, spelt as a method.
pub fn command(name: &str) -> Option<&'static Handler> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Names of the commands, as `workspace/executeCommand` spells them.
pub fn command_names() -> impl Iterator<Item = String> {
    COMMANDS
        .iter()
        .map(|command| command.name.replacen('/', ".", 1))
}

/// The standard request of this name.
pub fn request(name: &str) -> Option<&'static Handler> {
    REQUESTS.iter().find(|request| request.name == name)
}
