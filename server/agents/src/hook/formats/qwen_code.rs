//! Qwen Code: the events and answers of Claude Code.

use super::{Format, claude_code};

pub(super) const FORMAT: Format = Format {
    replaces_output: false,
    ..claude_code::FORMAT
};
