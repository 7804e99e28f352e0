//! What clients without a plugin of ours see: code actions, and commands that
//! need no arguments.
//!
//! Commands work on the document the user is in, or on the one their argument
//! names, and show what came of them themselves: plain clients drop results.
//! Short outcomes are messages, long ones fresh documents. What cannot be taken
//! back is asked first ([`decision`]). Whoever writes a `.clineignore` gets hover,
//! completion and [`diagnostics`]. All of it runs as jobs, as
//! requests of the protocol do.

mod actions;
mod checkpoints;
pub mod decision;
pub mod diagnostics;
mod outcome;
mod rules;
mod show;
mod target;

use super::{Handler, LaneRule, Run};

/// Commands of `workspace/executeCommand` that are no requests of the protocol.
const COMMANDS: &[Handler] = &[
    Handler {
        name: "sightline/showEnvironment",
        lane: LaneRule::Pool,
        run: Run::Text(show::environment),
    },
    Handler {
        name: "sightline/explainAccess",
        lane: LaneRule::Pool,
        run: Run::Text(show::access),
    },
    Handler {
        name: "sightline/checkpointNow",
        lane: LaneRule::Roots,
        run: Run::Text(checkpoints::take),
    },
    Handler {
        name: "sightline/showChanges",
        lane: LaneRule::Pool,
        run: Run::Text(checkpoints::changes),
    },
    Handler {
        name: "sightline/restoreFile",
        lane: LaneRule::Pool,
        run: Run::Text(checkpoints::restore_file),
    },
    Handler {
        name: "sightline/undoLastRestore",
        lane: LaneRule::Pool,
        run: Run::Text(checkpoints::undo_last_restore),
    },
    Handler {
        name: "sightline/allow",
        lane: LaneRule::Pool,
        run: Run::Text(decision::allow),
    },
    Handler {
        name: "sightline/deny",
        lane: LaneRule::Pool,
        run: Run::Text(decision::deny),
    },
];

/// Standard requests that are answered here.
const REQUESTS: &[Handler] = &[
    Handler {
        name: "textDocument/codeAction",
        lane: LaneRule::Pool,
        run: Run::Text(actions::run),
    },
    Handler {
        name: "textDocument/hover",
        lane: LaneRule::Pool,
        run: Run::Text(rules::hover),
    },
    Handler {
        name: "textDocument/completion",
        lane: LaneRule::Pool,
        run: Run::Text(rules::completion),
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
