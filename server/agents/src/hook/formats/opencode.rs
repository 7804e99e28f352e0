//! opencode: its plugin sends and gets the JSON of Claude Code. A prompt cannot be refused.

use super::{Format, claude_code};

pub(super) const FORMAT: Format = Format {
    reads_mentions: false,
    asks: false,
    ..claude_code::FORMAT
};
