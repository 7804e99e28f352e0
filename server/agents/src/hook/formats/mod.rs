//! The hook formats of the agents: names of events and fields, and answers.

mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod gemini_cli;
mod opencode;
mod qwen_code;

use serde_json::Value;

use super::{EventKind, HookAnswer, Markup};
use crate::Agent;

/// The hook format of an agent.
pub(super) struct Format {
    /// Known events. All others are ignored.
    pub(super) events: &'static [(&'static str, EventKind)],
    /// Field of the session id.
    pub(super) session: &'static str,
    /// Field of the tool's name.
    pub(super) tool_name: &'static str,
    /// Field of the tool's arguments.
    pub(super) tool_input: &'static str,
    /// Whether the agent reads files mentioned with `@` without running a tool.
    pub(super) reads_mentions: bool,
    /// Whether the agent can ask the user whether a tool may run.
    pub(super) asks: bool,
    /// Whether a hook can replace the output of a tool.
    pub(super) replaces_output: bool,
    /// Whether the prompt of the event has the content of these files.
    pub(super) has_content: bool,
    pub(super) markup: Markup,
    pub(super) render: fn(EventKind, &HookAnswer) -> Option<Value>,
}

pub(super) fn format(agent: Agent) -> &'static Format {
    match agent {
        Agent::Claude => &claude_code::FORMAT,
        Agent::Codex => &codex::FORMAT,
        Agent::Gemini => &gemini_cli::FORMAT,
        Agent::Qwen => &qwen_code::FORMAT,
        Agent::Copilot => &copilot_cli::FORMAT,
        Agent::Opencode => &opencode::FORMAT,
        Agent::Cline => &cline::FORMAT,
    }
}
