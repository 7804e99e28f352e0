//! Which conversation a request belongs to.

use hyper::HeaderMap;
use sightline_conversation::wire::json::{Cursor, decode, member};

/// Headers of agents that identify a conversation; a subagent has its own.
const IDS: [(&str, Option<&str>); 4] = [
    ("x-claude-code-session-id", Some("x-claude-code-agent-id")),
    ("thread-id", None),
    ("x-session-id", None),
    ("x-client-session-id", Some("x-agent-task-id")),
];

/// Returns the id of the conversation of a request: that of the agent, else the start of the
/// conversation, which each of its requests repeats.
pub(crate) fn id(headers: &HeaderMap, body: &str) -> String {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    for (name, part) in IDS {
        if let Some(id) = header(name) {
            let part = part.and_then(header).unwrap_or_default();
            return format!("{id} {part}").trim_end().to_owned();
        }
    }
    let code_assist = member(body, "request").and_then(|request| member(request, "session_id"));
    let id = code_assist.or_else(|| member(body, "prompt_cache_key"));
    if let Some(id) = id.filter(|id| id.starts_with('"')) {
        return decode(id).into_owned();
    }
    start(member(body, "request").unwrap_or(body))
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
