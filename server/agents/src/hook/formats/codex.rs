//! Codex: the formats of Claude Code. A file mentioned with `@` reaches the model as a name only.

use super::{Format, claude_code};

pub(super) const FORMAT: Format = Format {
    reads_mentions: false,
    asks: false,
    replaces_output: false,
    ..claude_code::FORMAT
};
