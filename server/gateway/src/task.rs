//! Which conversation a request belongs to, and which agent sends it.

use hyper::{HeaderMap, header::USER_AGENT};
use sightline_conversation::wire::Values;

use crate::body::RequestBody;

/// Headers of agents that identify a conversation; a subagent has its own.
const IDS: [(&str, Option<&str>); 4] = [
    ("x-claude-code-session-id", Some("x-claude-code-agent-id")),
    ("thread-id", None),
    ("x-session-id", None),
    ("x-client-session-id", Some("x-agent-task-id")),
];

/// Words in `User-Agent`, and the agents that send them.
const AGENTS: [(&str, &str); 6] = [
    ("claude-cli", "claude"),
    ("codex", "codex"),
    ("GeminiCLI", "gemini"),
    ("QwenCode", "qwen"),
    ("opencode", "opencode"),
    ("copilot", "copilot"),
];

/// What identifies a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The id that the agent sends.
    Id(String),
    /// The start of the conversation, which each of its requests repeats.
    Start(String),
}

impl Task {
    /// Returns the text that differs from that of other conversations.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Id(text) | Self::Start(text) => text,
        }
    }
}

/// Returns the conversation of a request.
pub(crate) fn of(headers: &HeaderMap, body: &RequestBody) -> Task {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    for (name, part) in IDS {
        if let Some(id) = header(name) {
            let part = part.and_then(header).unwrap_or_default();
            return Task::Id(format!("{id} {part}").trim_end().to_owned());
        }
    }
    let code_assist = body.member(Values::ALL, "request");
    let id = code_assist
        .and_then(|request| body.string(request, "session_id"))
        .or_else(|| body.string(Values::ALL, "prompt_cache_key"));
    match id {
        Some(id) => Task::Id(id.into_owned()),
        None => Task::Start(start(body, code_assist.unwrap_or(Values::ALL))),
    }
}

/// Returns the system text and the first message.
fn start(body: &RequestBody, request: usize) -> String {
    let find = |names: [&str; 3]| names.iter().find_map(|name| body.member(request, name));
    let system = find(["system", "systemInstruction", "instructions"]);
    let mut start = system
        .map(|system| body.json(system))
        .unwrap_or_default()
        .to_owned();
    let Some(messages) = find(["messages", "contents", "input"]) else {
        return start;
    };
    if !body.json(messages).starts_with('[') {
        return start + body.json(messages);
    }
    // Up to the first message of the user.
    for message in body.values.inside(messages) {
        start.push_str(body.json(message));
        if body
            .string(message, "role")
            .is_some_and(|role| role == "user")
        {
            break;
        }
    }
    start
}

/// Returns the agent that sends a request.
pub(crate) fn agent(headers: &HeaderMap) -> Option<&'static str> {
    if headers.contains_key("x-interaction-type") {
        return Some("copilot");
    }
    let name = headers.get(USER_AGENT)?.to_str().ok()?;
    let known = AGENTS.iter().find(|(word, _)| name.contains(word));
    known.map(|(_, agent)| *agent)
}
