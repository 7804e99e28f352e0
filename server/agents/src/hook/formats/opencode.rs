//! opencode: its plugin sends and gets the JSON of Claude Code. A prompt cannot be refused.

use super::{EventKind, Format, claude_code};

pub(super) const FORMAT: Format = Format {
    events: &[
        ("SessionStart", EventKind::SessionStart),
        ("UserPromptSubmit", EventKind::Prompt),
        ("PreToolUse", EventKind::ToolCall),
        ("PostToolUse", EventKind::ToolEnd),
        ("PostCompact", EventKind::Compaction),
        ("Stop", EventKind::TurnEnd),
    ],
    reads_mentions: false,
    asks: false,
    ..claude_code::FORMAT
};
