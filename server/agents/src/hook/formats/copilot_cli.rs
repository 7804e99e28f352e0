//! Copilot CLI. Its input does not name the event, and a prompt cannot be refused.

use serde_json::{Value, json};

use super::{EventKind, Format, HookAnswer, Markup};

pub(super) const FORMAT: Format = Format {
    events: &[
        ("sessionStart", EventKind::SessionStart),
        ("userPromptSubmitted", EventKind::Prompt),
        ("preToolUse", EventKind::ToolCall),
        ("postToolUse", EventKind::ToolEnd),
        ("agentStop", EventKind::TurnEnd),
        ("sessionEnd", EventKind::SessionEnd),
    ],
    session: "sessionId",
    tool_name: "toolName",
    tool_input: "toolArgs",
    reads_mentions: false,
    asks: false,
    replaces_output: false,
    has_content: false,
    markup: Markup::Tagged,
    render,
};

fn render(kind: EventKind, answer: &HookAnswer) -> Option<Value> {
    match (kind, answer) {
        (EventKind::Prompt | EventKind::SessionStart, HookAnswer::Context(text)) => {
            Some(json!({ "additionalContext": text }))
        }
        (EventKind::ToolCall, HookAnswer::Deny(reason)) => Some(json!({
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        })),
        _ => None,
    }
}
