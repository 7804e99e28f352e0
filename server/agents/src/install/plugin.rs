//! The plugins for opencode and Cline, which start `sightline hook`.

use super::{Hooks, NOT_CHECKED, Program};

pub(super) fn opencode(hooks: &Hooks, program: &Program) -> String {
    fill(
        include_str!("plugins/opencode.js"),
        include_str!("plugins/opencode_context.js"),
        include_str!("plugins/opencode_access.js"),
        include_str!("plugins/opencode_turns.js"),
        hooks,
        program,
    )
}

pub(super) fn cline(hooks: &Hooks, program: &Program) -> String {
    fill(
        include_str!("plugins/cline.js"),
        include_str!("plugins/cline_context.js"),
        include_str!("plugins/cline_access.js"),
        include_str!("plugins/cline_turns.js"),
        hooks,
        program,
    )
}

const COMMANDS: &str = include_str!("plugins/opencode_commands.js");

/// Before the path of the program in a plugin.
const PROGRAM: &str = "\nconst PROGRAM = ";

/// Chooses the shell of opencode, in a plugin.
const SETS_SHELL: &str = "config.shell = PROGRAM";

/// Returns whether a plugin lets the program run the commands of the agent.
pub(super) fn sets_shell(text: &str) -> bool {
    text.contains(SETS_SHELL)
}

/// Returns how a plugin names the program.
pub(super) fn spelling(text: &str) -> Option<String> {
    let line = text.split_once(PROGRAM)?.1.lines().next()?;
    serde_json::from_str(line).ok()
}

fn fill(
    plugin: &str,
    context: &str,
    access: &str,
    turns: &str,
    hooks: &Hooks,
    program: &Program,
) -> String {
    // A string of JSON is one of JavaScript.
    let path = serde_json::Value::from(program.path()).to_string();
    let flags = if hooks.checkpoints {
        ", \"--checkpoints\""
    } else {
        ""
    };
    plugin
        .replace("{context}", if hooks.context { context } else { "" })
        .replace("{access}", if hooks.access { access } else { "" })
        .replace("{turns}", if hooks.checkpoints { turns } else { "" })
        .replace("{commands}", if hooks.commands { COMMANDS } else { "" })
        .replace("{flags}", flags)
        .replace("{not checked}", NOT_CHECKED)
        .replace("\"{program}\"", &path)
}
