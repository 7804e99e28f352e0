//! Claude Code.

use serde_json::{Value, json};

use super::{EventKind, Format, HookAnswer, Markup};

pub(super) const FORMAT: Format = Format {
    events: &[
        ("SessionStart", EventKind::SessionStart),
        ("UserPromptSubmit", EventKind::Prompt),
        ("PreToolUse", EventKind::ToolCall),
        ("PostToolUse", EventKind::ToolEnd),
        ("Stop", EventKind::TurnEnd),
        ("SessionEnd", EventKind::SessionEnd),
    ],
    session: "session_id",
    tool_name: "tool_name",
    tool_input: "tool_input",
    reads_mentions: true,
    asks: true,
    replaces_output: true,
    has_content: false,
    markup: Markup::Tagged,
    render,
};

fn render(kind: EventKind, answer: &HookAnswer) -> Option<Value> {
    match (kind, answer) {
        (EventKind::Prompt, HookAnswer::Context(text)) => Some(context("UserPromptSubmit", text)),
        (EventKind::SessionStart, HookAnswer::Context(text)) => Some(context("SessionStart", text)),
        (EventKind::SessionStart, HookAnswer::Notice(text)) => {
            Some(json!({ "systemMessage": text }))
        }
        (EventKind::Prompt, HookAnswer::Deny(reason)) => {
            Some(json!({ "decision": "block", "reason": reason }))
        }
        (EventKind::ToolCall, HookAnswer::Deny(reason)) => Some(decision("deny", reason)),
        (EventKind::ToolCall, HookAnswer::Ask(reason)) => Some(decision("ask", reason)),
        (EventKind::ToolEnd, HookAnswer::Output(output)) => Some(json!({
            "hookSpecificOutput": {
                "hookEventName": "PostToolUse",
                "updatedToolOutput": output,
            }
        })),
        _ => None,
    }
}

/// Returns an answer that adds text for the model.
pub(super) fn context(event: &str, text: &str) -> Value {
    json!({
        "hookSpecificOutput": {
            "hookEventName": event,
            "additionalContext": text,
        }
    })
}

fn decision(decision: &str, reason: &str) -> Value {
    json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    })
}
