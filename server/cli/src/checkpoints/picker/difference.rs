//! A difference as lines of the terminal.

use anstyle::Style;
use sightline_base::escape::is_unprintable;
use sightline_engine::error::Error;
use sightline_protocol::checkpoint::DiffCheckpointsResult;

use super::super::format::{DIM, REMOVED, patch_style, sign};

/// Maximum number of lines to keep of a difference.
const MAX_LINES: usize = 5000;

#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Lines without control characters, and their colors.
    pub(super) lines: Vec<(Style, String)>,
}

impl Difference {
    pub(super) fn new(result: Result<DiffCheckpointsResult, Error>) -> Self {
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                let lines = vec![(REMOVED, visible(&error.message))];
                return Self { lines };
            }
        };
        if result.files.is_empty() {
            let lines = vec![(DIM, "no changes".to_owned())];
            return Self { lines };
        }
        let files = result.files.iter().map(|file| {
            let (sign, style) = sign(file.status);
            let path = visible(&file.path);
            let counts = match (&file.omitted, file.binary) {
                (Some(why), _) => visible(why),
                (None, true) => "binary".to_owned(),
                (None, false) => format!("+{} -{}", file.additions, file.deletions),
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
        let mut all = files.chain([blank]).chain(patch);
        let mut lines: Vec<_> = all.by_ref().take(MAX_LINES).collect();
        match all.count() {
            0 => {}
            more => lines.push((DIM, format!("... and {more} more lines"))),
        }
        Self { lines }
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
