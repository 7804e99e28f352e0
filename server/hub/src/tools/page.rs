//! Cuts long results into pages. Agents cut long results in the middle, which looks complete; a
//! page ends at a line, and its last line says how to get the next page.

use std::num::{NonZeroU64, NonZeroUsize};

use serde::Deserialize;

/// Default maximum length of a result, in characters. The smallest limit of an agent is 8,000
/// characters with the JSON around it (Cline 3.0).
pub const MAX_CHARACTERS: usize = 7_500;
/// Room for the note at the end of a page, in characters.
const NOTE_CHARACTERS: usize = 200;

/// Arguments of each tool with a long result.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PageArguments {
    start_line: Option<NonZeroU64>,
    max_characters: Option<NonZeroUsize>,
}

impl PageArguments {
    /// Number of the first line.
    pub fn start_line(self) -> u64 {
        self.start_line.map_or(1, NonZeroU64::get)
    }

    /// Maximum length of the result, in characters.
    pub fn max_characters(self) -> usize {
        self.max_characters
            .map_or(MAX_CHARACTERS, NonZeroUsize::get)
    }

    /// Returns a page of a result. The call can be repeated for the next page.
    pub fn page(self, text: &str) -> String {
        let start = self.start_line();
        let mut rest = text;
        for line in 1..start {
            if rest.is_empty() {
                return format!("The result has {} lines.", line - 1);
            }
            rest = &rest[first_line(rest).len()..];
        }
        if rest.chars().count() <= self.max_characters() {
            return rest.to_owned();
        }
        let page = first_page(rest, room(self.max_characters(), 0));
        let has_more = page.length < rest.len();
        let end = start.saturating_add(page.lines - 1);
        let note = note(&page, end, has_more).unwrap_or_default();
        let text = page.text.strip_suffix('\n').unwrap_or(page.text);
        format!("{text}\n{note}")
    }
}

/// Returns the length of a page with a note and `other` characters.
pub(super) fn room(max_characters: usize, other: usize) -> usize {
    let room = max_characters.saturating_sub(NOTE_CHARACTERS.saturating_add(other));
    room.max(max_characters / 2).max(1)
}

/// The first lines of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page<'a> {
    /// Whole lines, or the beginning of a line that is too long.
    pub(super) text: &'a str,
    /// Number of lines, at least 1 if there is any text.
    pub(super) lines: u64,
    /// Length of these lines, in bytes.
    pub(super) length: usize,
    /// Whether the line is longer than `text`.
    pub(super) is_line_cut: bool,
}

/// Returns the first lines of a text, at most `max_characters`.
pub(super) fn first_page(text: &str, max_characters: usize) -> Page<'_> {
    let (mut length, mut characters, mut lines) = (0, 0, 0);
    while length < text.len() {
        let line = first_line(&text[length..]);
        characters += line.chars().count();
        if characters > max_characters && lines == 0 {
            let cut = line.char_indices().nth(max_characters);
            return Page {
                text: &line[..cut.map_or(line.len(), |(end, _)| end)],
                lines: 1,
                length: line.len(),
                is_line_cut: true,
            };
        }
        if characters > max_characters {
            break;
        }
        length += line.len();
        lines += 1;
    }
    Page {
        text: &text[..length],
        lines,
        length,
        is_line_cut: false,
    }
}

/// Returns the first line of a text with its end: `\n`, `\r\n` or `\r`, as files are read.
fn first_line(text: &str) -> &str {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        Some(at) if bytes[at..].starts_with(b"\r\n") => &text[..at + 2],
        Some(at) => &text[..=at],
        None => text,
    }
}

/// Returns the last line of a page that ends with line `end`.
pub(super) fn note(page: &Page<'_>, end: u64, has_more: bool) -> Option<String> {
    let mut sentences = Vec::new();
    if page.is_line_cut {
        let characters = page.text.chars().count();
        sentences.push(format!(
            "Line {end} was cut after {characters} characters; a larger maxCharacters shows more of it."
        ));
    }
    if has_more {
        let next = end.saturating_add(1);
        sentences.push(format!("Call again with startLine={next}."));
    }
    (!sentences.is_empty()).then(|| format!("[{}]", sentences.join(" ")))
}

/// Returns the beginning of a result that has no next page, because another call would have
/// another result.
pub fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CHARACTERS {
        return text.to_owned();
    }
    let page = first_page(text, room(MAX_CHARACTERS, 0));
    let more = text[page.length..].lines().count();
    let text = page.text.strip_suffix('\n').unwrap_or(page.text);
    format!("{text}\n[Cut: {more} more lines.]")
}
