//! gemini-cli. It escapes tags in the text of hooks, so the block has headings only.

use serde_json::{Value, json};

use super::{
    EventKind, Format, HookAnswer, Markup,
    claude_code::{self, context},
};

pub(super) const FORMAT: Format = Format {
    events: &[
        ("SessionStart", EventKind::SessionStart),
        ("BeforeAgent", EventKind::Prompt),
        ("BeforeTool", EventKind::ToolCall),
        ("AfterTool", EventKind::ToolEnd),
        ("PreCompress", EventKind::Compaction),
        ("AfterAgent", EventKind::TurnEnd),
        ("SessionEnd", EventKind::SessionEnd),
    ],
    asks: false,
    has_content: true,
    markup: Markup::Headings,
    render,
    ..claude_code::FORMAT
};

fn render(kind: EventKind, answer: &HookAnswer) -> Option<Value> {
    match (kind, answer) {
        (EventKind::Prompt, HookAnswer::Context(text)) => Some(context("BeforeAgent", text)),
        (EventKind::SessionStart, HookAnswer::Context(text)) => Some(context("SessionStart", text)),
        (EventKind::ToolEnd, HookAnswer::Output(output)) => {
            Some(json!({ "decision": "deny", "reason": text_of(&output["llmContent"]) }))
        }
        (_, HookAnswer::Deny(reason)) => Some(json!({ "decision": "deny", "reason": reason })),
        _ => None,
    }
}

/// Returns the text of an output: a string, or parts with texts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(part) => part
            .get("text")
            .map_or_else(|| content.to_string(), text_of),
        Value::Null | Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}
