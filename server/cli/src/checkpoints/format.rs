//! Colors of patches, and sizes, at a terminal.

use anstyle::{AnsiColor, Style};
use sightline_engine::render::{ADDED, BOLD, REMOVED};

const HUNK: Style = AnsiColor::Cyan.on_default();

/// Returns git's color of a line of a unified diff.
pub(super) fn patch_style(line: &[u8]) -> Style {
    match line {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => BOLD,
        [b'+', ..] => ADDED,
        [b'-', ..] => REMOVED,
        [b'@', b'@', ..] => HUNK,
        [] | [b' ' | b'\n' | b'\\', ..] => Style::new(),
        _ => BOLD,
    }
}

/// Adds git's colors to a unified diff.
pub(crate) fn colorize(patch: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(patch.len());
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let style = patch_style(line);
        let end = line.strip_suffix(b"\n").unwrap_or(line);
        shown.extend_from_slice(style.render().to_string().as_bytes());
        shown.extend_from_slice(end);
        shown.extend_from_slice(style.render_reset().to_string().as_bytes());
        shown.extend_from_slice(&line[end.len()..]);
    }
    shown
}

/// Formats a size in decimal units, as all clients do: `12.50 MB`.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colored_patch_loses_nothing_but_colors() {
        let patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\xff\n+b\n c";
        let shown = colorize(patch);
        assert!(shown.len() > patch.len());
        for line in patch.split(|byte| *byte == b'\n') {
            assert!(shown.windows(line.len()).any(|part| part == line));
        }
        assert_eq!(colorize(b" same\n\\ end"), b" same\n\\ end");
    }
}
