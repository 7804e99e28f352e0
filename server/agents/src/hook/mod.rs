//! Hooks: parses the event that an agent sends, and renders the answer.
//!
//! Each agent has its own event names, field names and answers; one file per agent describes them
//! as a `Format`. Everything else works on [`HookInput`] and [`HookAnswer`].

mod block;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod gemini_cli;
mod mentions;
mod mutation;
mod opencode;
mod qwen_code;
mod refusal;
mod tool_call;

use std::path::PathBuf;

use serde_json::Value;

pub use block::{KnownSections, context_block};
pub use refusal::{denied_mention, denied_tool};
pub use tool_call::ToolCall;

use crate::Agent;

/// Maximum length of a task id, in bytes.
const MAX_TASK_ID: usize = 128;

/// The kind of an event, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A session starts or continues.
    SessionStart,
    /// The user submitted a prompt.
    Prompt,
    /// A tool is about to run.
    ToolCall,
}

/// An event, independent of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookInput {
    /// Directory of the session.
    pub cwd: Option<PathBuf>,
    /// Task id: agent and session.
    pub task_id: Option<String>,
    /// Session, as the agent names it.
    pub session: Option<String>,
    /// Turn, if the agent names it.
    pub turn: Option<String>,
    /// The event.
    pub event: HookEvent,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// A session starts or continues.
    SessionStart {
        /// The model no longer has the earlier prompts.
        context_lost: bool,
    },
    /// The user submitted a prompt.
    Prompt {
        /// Files that the agent adds to the prompt because the user mentioned them.
        mentions: Vec<String>,
    },
    /// A tool is about to run.
    ToolCall(ToolCall),
}

/// The answer to an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// No opinion.
    Nothing,
    /// Adds text to the prompt.
    Context(String),
    /// Refuses the prompt or the tool, with the reason.
    Deny(String),
}

/// Markup of the text added to a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// The block stands in its tag.
    Tagged,
    /// Headings only, for an agent that escapes tags.
    Headings,
}

/// The hook format of an agent.
struct Format {
    /// Known events. All others are ignored.
    events: &'static [(&'static str, EventKind)],
    /// Field of the session id.
    session: &'static str,
    /// Field of the tool's name.
    tool_name: &'static str,
    /// Field of the tool's arguments.
    tool_input: &'static str,
    /// Whether the agent reads files mentioned with `@` without running a tool.
    reads_mentions: bool,
    markup: Markup,
    render: fn(EventKind, &HookAnswer) -> Option<Value>,
}

fn format(agent: Agent) -> &'static Format {
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

/// Returns the events of an agent that are answered, in the order of a session.
pub fn events(agent: Agent) -> &'static [(&'static str, EventKind)] {
    format(agent).events
}

/// Returns the kind of an event. `None` for events that need no answer.
pub fn event_kind(agent: Agent, event: &str) -> Option<EventKind> {
    let mut events = format(agent).events.iter();
    events
        .find(|(name, _)| *name == event)
        .map(|(_, kind)| *kind)
}

/// Returns how to write the block for an agent.
pub fn markup(agent: Agent) -> Markup {
    format(agent).markup
}

/// An event that cannot be understood.
#[derive(Debug)]
pub enum ParseError {
    /// Not JSON.
    Json(serde_json::Error),
    /// Not an object, or without the fields of its event.
    Fields(&'static str),
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Json(error) => write!(f, "the hook input is not JSON: {error}"),
            Self::Fields(missing) => write!(f, "the hook input has no {missing}"),
        }
    }
}

impl std::error::Error for ParseError {}

/// Parses the standard input of a hook. Returns `None` for an event that needs no answer.
///
/// # Errors
/// If the input is not a valid event of this kind.
pub fn parse(agent: Agent, kind: EventKind, input: &[u8]) -> Result<Option<HookInput>, ParseError> {
    let input: Value = serde_json::from_slice(input).map_err(ParseError::Json)?;
    if !input.is_object() {
        return Err(ParseError::Fields("fields"));
    }
    let format = format(agent);
    let cwd = input["cwd"]
        .as_str()
        .or_else(|| input["workspaceRoots"][0].as_str());
    let event = match kind {
        EventKind::SessionStart => HookEvent::SessionStart {
            context_lost: matches!(
                input["source"].as_str(),
                Some("compact" | "clear" | "resume")
            ),
        },
        EventKind::Prompt => {
            let prompt = input["prompt"].as_str();
            // Qwen Code repeats the event after each tool, with an empty prompt.
            if prompt.is_some_and(str::is_empty) {
                return Ok(None);
            }
            let prompt = prompt.filter(|_| format.reads_mentions);
            HookEvent::Prompt {
                mentions: mentions::mentions(prompt.unwrap_or_default()),
            }
        }
        EventKind::ToolCall => HookEvent::ToolCall(
            ToolCall::new(&input, format.tool_name, format.tool_input)
                .ok_or(ParseError::Fields("tool arguments"))?,
        ),
    };
    Ok(Some(HookInput {
        cwd: cwd.filter(|cwd| !cwd.is_empty()).map(PathBuf::from),
        task_id: input[format.session].as_str().map(|id| task_id(agent, id)),
        session: input[format.session].as_str().map(str::to_owned),
        turn: ["prompt_id", "turn_id"]
            .iter()
            .find_map(|field| input[field].as_str())
            .map(str::to_owned),
        event,
    }))
}

/// Renders an answer as the standard output of a hook. Empty if there is nothing to say.
pub fn render(agent: Agent, kind: EventKind, answer: &HookAnswer) -> String {
    (format(agent).render)(kind, answer)
        .map(|answer| format!("{answer}\n"))
        .unwrap_or_default()
}

/// Returns the task id of a session.
fn task_id(agent: Agent, session: &str) -> String {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let session = session.chars().map(|c| if valid(c) { c } else { '_' });
    let name = format!("{}-", agent.name());
    name.chars().chain(session).take(MAX_TASK_ID).collect()
}

#[cfg(test)]
mod tests;
