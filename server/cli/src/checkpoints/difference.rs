//! A difference as lines of the terminal.

use std::sync::Arc;

use anstyle::Style;
use sightline_base::escape::is_unprintable;
use sightline_engine::{
    error::Error,
    render::{DIM, REMOVED, line_counts, sign},
};
use sightline_protocol::checkpoint::DiffCheckpointsResult;

use super::format::patch_style;

/// Title of the changes since a state: a restore does the opposite.
pub(super) const TO_REVERT: &str = "changes to revert";
/// Maximum number of lines to keep of a difference.
const MAX_LINES: usize = 5000;

#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Lines without control characters, and their colors.
    pub(super) lines: Vec<(Style, String)>,
    /// Indexes of the first lines of hunks, also of hunks after the last of `lines`.
    pub(super) hunks: Vec<usize>,
    /// The patch, to notice that files have changed since.
    pub(super) patch: Arc<str>,
}

impl Difference {
    pub(super) fn new(result: Result<DiffCheckpointsResult, Error>) -> Self {
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                let lines = vec![(REMOVED, visible(&error.message))];
                return Self {
                    lines,
                    ..Self::default()
                };
            }
        };
        if result.files.is_empty() {
            let lines = vec![(DIM, "no changes".to_owned())];
            return Self {
                lines,
                ..Self::default()
            };
        }
        let files = result.files.iter().map(|file| {
            let (sign, style) = sign(file.status);
            let path = visible(&file.path);
            let counts = match &file.omitted {
                Some(why) => visible(why),
                None => line_counts(file),
            };
            (style, format!("{sign} {path}  {counts}"))
        });
        let text = result.text.as_deref().unwrap_or_default();
        // The ids of contents do not help to choose.
        let patch = text
            .lines()
            .filter(|line| !line.starts_with("index "))
            .map(|line| (patch_style(line.as_bytes()), visible(line)));
        let blank = (Style::new(), String::new());
        let mut lines: Vec<_> = files.chain([blank]).chain(patch).collect();
        let hunks = (0..lines.len())
            .filter(|at| lines[*at].1.starts_with("@@ "))
            .collect();
        if lines.len() > MAX_LINES {
            let more = lines.len() - MAX_LINES;
            lines.truncate(MAX_LINES);
            lines.push((DIM, format!("... and {more} more lines")));
        }
        Self {
            lines,
            hunks,
            patch: text.into(),
        }
    }
}

impl Difference {
    /// Returns the lines of a hunk that are kept.
    pub(super) fn hunk(&self, at: usize) -> &[(Style, String)] {
        let lines = self.lines.len();
        let line = |at: usize| self.hunks.get(at).copied().unwrap_or(lines).min(lines);
        &self.lines[line(at)..line(at + 1)]
    }

    /// Returns the lines with colors.
    pub(super) fn text(&self) -> String {
        self.lines
            .iter()
            .map(|(style, line)| format!("{style}{line}{style:#}\n"))
            .collect()
    }
}

/// Replaces tabs, and escapes characters that are not printable.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str("    "),
            c if is_unprintable(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}
