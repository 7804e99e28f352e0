//! Requests of editors besides those of the protocol: their params, their handlers, and where they
//! run.
//!
//! [`COMMANDS`] are commands for users, and [`STANDARD_REQUESTS`] are LSP requests.
//! `document_sync` has all other LSP methods.

use sightline_engine::{
    dispatch::{
        self, Call,
        Place::{Inline, Pool, Queue},
        Route, all_roots, call,
    },
    request_context::Response,
};

use crate::editor_features::{
    self, NoParams,
    checkpoint_commands::{
        checkpoint_now, restore_all, restore_file, show_changes, show_turns, undo_last_restore,
    },
    code_actions, completion, confirm,
    document_arg::DocumentArg,
    explain_access, hover, open_page,
    pause_bridges::{self, PauseArg},
    rule_file,
    send_to_agent::{self, SendArg},
    show_environment,
};

/// Any other request: its name, the function that reads its params, its handler, and
/// where it runs.
macro_rules! other {
    ($name:literal, $read:path, $run:path, $place:expr) => {
        Route {
            name: $name,
            parse: |text| match $read($name, text) {
                Ok(params) => call($name, params, None, $place, |context, params| {
                    Ok(Response::from($run(context, params)?))
                }),
                Err(error) => Call::invalid($name, error),
            },
            parse_message: |_| None,
        }
    };
}

/// Commands for users of any editor.
#[rustfmt::skip]
pub const COMMANDS: &[Route] = &[
    other!("sightline/showEnvironment", NoParams::read, show_environment::run, |_, _| Pool),
    other!("sightline/explainAccess", DocumentArg::read, explain_access::run, |_, _| Pool),
    other!("sightline/checkpointNow", DocumentArg::read, checkpoint_now::run, |_, scope| Queue(all_roots(scope))),
    other!("sightline/showChanges", DocumentArg::read, show_changes::run, |_, _| Pool),
    other!("sightline/restoreFile", DocumentArg::read, restore_file::run, |_, _| Pool),
    other!("sightline/showTurns", NoParams::read, show_turns::run, |_, _| Pool),
    other!("sightline/restoreAll", DocumentArg::read, restore_all::run, |_, _| Pool),
    other!("sightline/undoLastRestore", DocumentArg::read, undo_last_restore::run, |_, _| Pool),
    other!("sightline/sendToAgent", SendArg::read, send_to_agent::run, |_, _| Pool),
    other!("sightline/pauseBridges", PauseArg::read, pause_bridges::run, |_, _| Pool),
    other!("sightline/openPage", NoParams::read, open_page::run, |_, _| Pool),
    other!("sightline/allow", NoParams::read, confirm::allow, |_, _| Inline),
    other!("sightline/deny", NoParams::read, confirm::deny, |_, _| Inline),
];

/// LSP requests. Hover and completion only read the disk for rule files, and hover for the authors of
/// lines if a setting says so.
#[rustfmt::skip]
pub const STANDARD_REQUESTS: &[Route] = &[
    other!("textDocument/codeAction", code_actions::read, code_actions::run, |_, _| Pool),
    other!("experimental/runnables", NoParams::read, editor_features::runnables, |_, _| Inline),
    other!("textDocument/hover", rule_file::at, hover::run, |p, scope| if p.is_in_rule_file() || hover::shows_blame(scope.snapshot) { Pool } else { Inline }),
    other!("textDocument/completion", rule_file::at, completion::run, |p, _| if p.is_in_rule_file() { Pool } else { Inline }),
];

/// Returns the custom or standard request with this name.
pub fn any_request(method: &str) -> Option<&'static Route> {
    dispatch::request(method).or_else(|| find(STANDARD_REQUESTS, method))
}

/// Returns the command for users with this name.
pub fn command(method: &str) -> Option<&'static Route> {
    find(COMMANDS, method)
}

fn find(routes: &'static [Route], method: &str) -> Option<&'static Route> {
    routes.iter().find(|route| route.name == method)
}
