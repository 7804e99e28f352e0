//! gemini-cli. It escapes tags in the text of hooks, so the block has headings only.

use serde_json::{Value, json};

use super::{EventKind, Format, HookAnswer, Markup};

pub(super) const FORMAT: Format = Format {
    events: &[
        ("BeforeAgent", EventKind::Prompt),
        ("BeforeTool", EventKind::ToolCall),
        ("AfterTool", EventKind::ToolEnd),
        ("AfterAgent", EventKind::TurnEnd),
        ("SessionEnd", EventKind::SessionEnd),
    ],
    session: "session_id",
    tool_name: "tool_name",
    tool_input: "tool_input",
    reads_mentions: true,
    asks: false,
    has_content: true,
    markup: Markup::Headings,
    render,
};

fn render(kind: EventKind, answer: &HookAnswer) -> Option<Value> {
    match (kind, answer) {
        (EventKind::Prompt, HookAnswer::Context(text)) => Some(json!({
            "hookSpecificOutput": {
                "hookEventName": "BeforeAgent",
                "additionalContext": text,
            }
        })),
        (_, HookAnswer::Deny(reason)) => Some(json!({ "decision": "deny", "reason": reason })),
        _ => None,
    }
}
