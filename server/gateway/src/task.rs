//! Which conversation a request belongs to, and which agent sends it.

use hyper::{HeaderMap, header::USER_AGENT};
use sightline_conversation::wire::json::{Cursor, decode, member};

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
pub(crate) fn of(headers: &HeaderMap, body: &str) -> Task {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    for (name, part) in IDS {
        if let Some(id) = header(name) {
            let part = part.and_then(header).unwrap_or_default();
            return Task::Id(format!("{id} {part}").trim_end().to_owned());
        }
    }
    let code_assist = member(body, "request").and_then(|request| member(request, "session_id"));
    let id = code_assist.or_else(|| member(body, "prompt_cache_key"));
    if let Some(id) = id.filter(|id| id.starts_with('"')) {
        return Task::Id(decode(id).into_owned());
    }
    Task::Start(start(member(body, "request").unwrap_or(body)))
}

/// Returns the system text and the first message.
fn start(body: &str) -> String {
    let system = ["system", "systemInstruction", "instructions"]
        .iter()
        .find_map(|name| member(body, name));
    let messages = ["messages", "contents", "input"]
        .iter()
        .find_map(|name| member(body, name));
    let mut start = system.unwrap_or_default().to_owned();
    let Some(messages) = messages else {
        return start;
    };
    let mut cursor = Cursor::new(messages);
    if !cursor.enter(b'[') {
        return start + messages;
    }
    // Up to the first message of the user.
    while cursor.next_item(b']') {
        let message = messages.get(cursor.skip_value()).unwrap_or_default();
        start.push_str(message);
        if member(message, "role").is_some_and(|role| role == "\"user\"") {
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
