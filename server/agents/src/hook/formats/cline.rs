//! Cline: the format of its hooks, sent by our plugin. A prompt cannot be refused.

use serde_json::{Value, json};

use super::{EventKind, Format, HookAnswer, claude_code};

pub(super) const FORMAT: Format = Format {
    events: &[
        ("UserPromptSubmit", EventKind::Prompt),
        ("PreToolUse", EventKind::ToolCall),
        ("Stop", EventKind::TurnEnd),
    ],
    reads_mentions: false,
    asks: false,
    replaces_output: false,
    render,
    ..claude_code::FORMAT
};

fn render(kind: EventKind, answer: &HookAnswer) -> Option<Value> {
    match (kind, answer) {
        (EventKind::Prompt, HookAnswer::Context(text)) => {
            Some(json!({ "cancel": false, "contextModification": text }))
        }
        (EventKind::ToolCall, HookAnswer::Deny(reason)) => {
            Some(json!({ "cancel": true, "errorMessage": reason }))
        }
        _ => None,
    }
}
