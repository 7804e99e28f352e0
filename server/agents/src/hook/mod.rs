//! Hooks: parses the event that an agent sends, and renders the answer.
//!
//! Each agent has its own event names, field names and answers; one file per agent in `formats`
//! describes them as a `Format`. Everything else works on [`HookInput`] and [`HookAnswer`].

mod arguments;
mod block;
mod formats;
mod mentions;
mod mutation;
mod patches;
mod search;
mod tool_call;
mod working_context;
mod written_path;

use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};
use sightline_base::escape::hex;
use sightline_protocol::environment::Mode;

pub use block::{KnownSections, context_block, text_without_mode, told_sections};
pub use search::Search;
pub use tool_call::ToolCall;
pub use working_context::{UsedFile, WorkingContext};
pub(crate) use written_path::{glob_command, quote, readings, shortened};

use crate::Agent;
use formats::format;

/// Permission modes in which agents ask the user. In the others, they approve or refuse without asking.
const ATTENDED_MODES: &[&str] = &["default", "plan", "acceptEdits", "auto-edit", "auto_edit"];
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
    /// A tool has run.
    ToolEnd,
    /// The conversation is made shorter. The answer does not reach the model.
    Compaction,
    /// The agent has finished its answer to a prompt.
    TurnEnd,
    /// The session ends.
    SessionEnd,
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
    /// Session whose turn this is part of: its own, or that of the agent that started a subagent.
    pub turn_session: Option<String>,
    /// Whether a subagent sent the event.
    pub is_subagent: bool,
    /// Mode of the agent, if it is known.
    pub mode: Option<Mode>,
    /// Whether the agent can ask the user, according to its input.
    pub is_attended: bool,
    /// Name of the tool.
    pub tool: Option<String>,
    /// Output of a tool that has run, if the agent lets a hook replace it.
    pub output: Option<Value>,
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
        /// The session continues after a compaction or a pause.
        continues: bool,
    },
    /// The user submitted a prompt.
    Prompt {
        /// Texts behind an `@`. The agent adds those that are paths of files to the prompt.
        mentions: Vec<String>,
        /// The prompt.
        text: String,
    },
    /// A tool is about to run.
    ToolCall(ToolCall),
    /// A tool has run.
    ToolEnd(ToolCall),
    /// The model loses the earlier prompts.
    Compaction,
    /// The agent has finished its answer to a prompt.
    TurnEnd,
    /// The session ends.
    SessionEnd,
}

/// The answer to an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// No opinion.
    Nothing,
    /// Adds text to the prompt.
    Context(String),
    /// Shows text to the user when a session starts, not to the model.
    Notice(String),
    /// Refuses the prompt or the tool, with the reason.
    Deny(String),
    /// Replaces the output of a tool. Has the form of the output.
    Output(Value),
    /// Asks the user whether the tool may run, with the reason.
    Ask(String),
}

/// Markup of the text added to a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// The block is in its tag.
    Tagged,
    /// Headings only, for an agent that escapes tags.
    Headings,
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

/// Returns whether the agent can ask the user whether a tool may run.
pub fn can_ask(agent: Agent) -> bool {
    format(agent).asks
}

/// Returns whether the agent adds files to a prompt that mentions them with `@`.
pub fn reads_mentions(agent: Agent) -> bool {
    format(agent).reads_mentions
}

/// Returns the directory of the session in the standard input of a hook.
pub fn session_dir(input: &Value) -> Option<PathBuf> {
    let dir = input["cwd"]
        .as_str()
        .or_else(|| input["workspaceRoots"][0].as_str());
    dir.filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// Parses the standard input of a hook. Returns `None` for an event that needs no answer.
///
/// # Errors
/// If the input is not a valid event of this kind.
pub fn parse(agent: Agent, kind: EventKind, input: &Value) -> Result<Option<HookInput>, String> {
    if !input.is_object() {
        return Err("the hook input has no fields".to_owned());
    }
    let format = format(agent);
    let event = match kind {
        EventKind::SessionStart => {
            let source = input["source"].as_str();
            let continues = matches!(source, Some("compact" | "resume"));
            HookEvent::SessionStart {
                context_lost: continues || source == Some("clear"),
                continues,
            }
        }
        EventKind::Prompt => {
            let prompt = &input["prompt"];
            // Qwen Code repeats the event after each tool, with an empty prompt.
            if prompt.as_str().is_some_and(str::is_empty) {
                return Ok(None);
            }
            let mut text = String::new();
            add_texts(prompt, &mut text);
            let mentioning = if format.reads_mentions { &*text } else { "" };
            HookEvent::Prompt {
                mentions: mentions::mentions(mentioning, format.has_content)
                    .ok_or("the prompt has too many @")?,
                text: without_hook_context(&text).to_owned(),
            }
        }
        EventKind::ToolCall | EventKind::ToolEnd => {
            let call = ToolCall::new(agent, input, format.tool_name, format.tool_input)?;
            match kind {
                EventKind::ToolEnd => HookEvent::ToolEnd(call),
                _ => HookEvent::ToolCall(call),
            }
        }
        EventKind::Compaction => HookEvent::Compaction,
        EventKind::TurnEnd => HookEvent::TurnEnd,
        EventKind::SessionEnd => HookEvent::SessionEnd,
    };
    let mode = input["permission_mode"].as_str();
    let session = input[format.session].as_str();
    let parent = input["parent_session_id"].as_str();
    Ok(Some(HookInput {
        cwd: session_dir(input),
        task_id: session.map(|id| task_id(agent, id)),
        session: session.map(str::to_owned),
        turn_session: parent.or(session).map(str::to_owned),
        is_subagent: parent.is_some() || input["agent_id"].is_string(),
        turn: ["prompt_id", "turn_id"]
            .iter()
            .find_map(|field| input[field].as_str())
            .map(str::to_owned),
        mode: mode.map(|mode| {
            if mode == "plan" {
                Mode::Plan
            } else {
                Mode::Act
            }
        }),
        tool: input[format.tool_name].as_str().map(str::to_owned),
        output: (format.replaces_output && kind == EventKind::ToolEnd)
            .then(|| input.get("tool_response").cloned())
            .flatten(),
        is_attended: mode.is_some_and(|mode| ATTENDED_MODES.contains(&mode)),
        event,
    }))
}

/// Adds the texts of a prompt, which may be a list of parts, one a line.
fn add_texts(prompt: &Value, text: &mut String) {
    match prompt {
        Value::String(part) if text.is_empty() => text.push_str(part),
        Value::String(part) => text.extend(["\n", part]),
        Value::Array(parts) => parts.iter().for_each(|part| add_texts(part, text)),
        Value::Object(fields) => fields.values().for_each(|part| add_texts(part, text)),
        _ => {}
    }
}

/// Returns a prompt without the texts of hooks that the agent put before it. gemini-cli does so in a session
/// that is resumed with a prompt. It escapes tags in these texts.
fn without_hook_context(prompt: &str) -> &str {
    let mut rest = prompt;
    while let Some(tagged) = rest.trim_start().strip_prefix("<hook_context>")
        && let Some((_, after)) = tagged.split_once("</hook_context>")
    {
        rest = after.trim_start();
    }
    rest
}

/// Renders an answer as the standard output of a hook. Empty if there is nothing to say.
pub fn render(agent: Agent, kind: EventKind, answer: &HookAnswer) -> String {
    (format(agent).render)(kind, answer)
        .map(|answer| format!("{answer}\n"))
        .unwrap_or_default()
}

/// Returns the task id of a session. Different sessions have different ones.
pub fn task_id(agent: Agent, session: &str) -> String {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let mut id = format!("{}-", agent.name());
    if session.chars().all(valid) && id.len() + session.len() <= MAX_TASK_ID {
        id.push_str(session);
        return id;
    }
    let hash = hex(&Sha256::digest(session)[..8]);
    let room = MAX_TASK_ID - id.len() - hash.len() - 1;
    let session = session.chars().map(|c| if valid(c) { c } else { '_' });
    id.extend(session.take(room));
    format!("{id}-{hash}")
}

#[cfg(test)]
mod tests;
