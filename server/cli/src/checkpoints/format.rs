//! Formats checkpoints for the terminal.

use anstyle::{AnsiColor, Style};
use sightline_base::{clock::now_millis, escape::one_line};
use sightline_engine::error::Error;
use sightline_protocol::checkpoint::{
    Checkpoint, DifferenceStatus, FileDifference, RestoreConflict, short_id as abbreviated,
};

use crate::print_to;

pub(super) const ADDED: Style = AnsiColor::Green.on_default();
pub(super) const REMOVED: Style = AnsiColor::Red.on_default();
pub(super) const CHANGED: Style = AnsiColor::Yellow.on_default();
pub(super) const HUNK: Style = AnsiColor::Cyan.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const BOLD: Style = Style::new().bold();

/// Returns the line that counts the entries of a preview after the first `limit`. Empty if there
/// are none.
pub(super) fn more_line(count: usize, limit: usize) -> String {
    match count.saturating_sub(limit) {
        0 => String::new(),
        more => format!("{DIM}... and {more} more; --all shows them{DIM:#}\n"),
    }
}

/// Returns the letter of a change, and its color.
pub(super) fn sign(status: DifferenceStatus) -> (&'static str, Style) {
    match status {
        DifferenceStatus::Added => ("A", ADDED),
        DifferenceStatus::Modified => ("M", CHANGED),
        DifferenceStatus::Deleted => ("D", REMOVED),
        DifferenceStatus::Renamed => ("R", CHANGED),
        DifferenceStatus::TypeChanged => ("T", CHANGED),
    }
}

/// Formats a changed file as a line with colors.
pub(crate) fn difference(file: &FileDifference) -> String {
    let (sign, style) = sign(file.status);
    let lines = if file.binary {
        "binary".to_owned()
    } else {
        format!("+{} -{}", file.additions, file.deletions)
    };
    let from = file.old_path.as_ref();
    let from = from.map_or_else(String::new, |old| format!("{} -> ", one_line(old)));
    let path = one_line(&file.path);
    let why = file.omitted.as_ref().map_or_else(String::new, |why| {
        format!("  {DIM}{}{DIM:#}", one_line(why))
    });
    format!("{style}{sign}{style:#} {lines:>12}  {from}{path}{why}\n")
}

/// Formats a path that a restore leaves unchanged.
pub(super) fn format_skipped(conflict: &RestoreConflict) -> String {
    conflict_line("skip  ", conflict)
}

/// Formats a path that a restore would leave unchanged without `--force`.
pub(super) fn format_forced(conflict: &RestoreConflict) -> String {
    conflict_line("force ", conflict)
}

fn conflict_line(action: &str, conflict: &RestoreConflict) -> String {
    let (path, reason) = (one_line(&conflict.path), one_line(&conflict.reason));
    format!("{BOLD}{action}{BOLD:#}  {path}  {DIM}{reason}{DIM:#}\n")
}

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
pub(super) fn colorize(patch: &[u8]) -> Vec<u8> {
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

/// Prints text with colors, which are stripped if stdout is not a terminal.
pub(super) fn print(text: &str) -> Result<(), Error> {
    print_to(anstream::stdout().lock(), text.as_bytes())
}

/// Returns an abbreviated id.
pub(super) fn short_id(checkpoint: &Checkpoint) -> String {
    format!("{CHANGED}{}{CHANGED:#}", abbreviated(&checkpoint.id))
}

pub(super) fn counts(checkpoint: &Checkpoint) -> String {
    format!(
        "{ADDED}+{}{ADDED:#} {CHANGED}~{}{CHANGED:#} {REMOVED}-{}{REMOVED:#}",
        checkpoint.added, checkpoint.modified, checkpoint.deleted
    )
}

/// Formats a time relative to now.
pub(super) fn relative_time(millis: i64) -> String {
    let seconds = now_millis().saturating_sub(millis).max(0) / 1000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "yesterday".to_owned(),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

pub(crate) fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_readable() {
        let at = |seconds: i64| relative_time(now_millis() - seconds * 1000 - 500);
        assert_eq!(at(-100), "just now");
        assert_eq!(at(300), "5 min ago");
        assert_eq!(at(7300), "2 h ago");
        assert_eq!(at(90_000), "yesterday");
        assert_eq!(at(260_000), "3 days ago");
    }

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
