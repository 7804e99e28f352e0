//! Cuts long results. Agents cut long results in the middle, which looks complete; a page ends
//! at a line and says how to continue.

/// Default maximum length of a result, in characters. The smallest limit of an agent is 8,000
/// characters with the JSON around it (Cline 3.0).
pub const MAX_CHARACTERS: usize = 7_500;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Whole lines, or the beginning of a line that is too long.
    pub text: String,
    /// Number of whole lines in `text`.
    pub lines: usize,
    /// Whether the text is longer.
    pub is_cut: bool,
}

/// Returns the first lines of a text, at most `max_characters`.
pub fn first_page(text: &str, max_characters: usize) -> Page {
    let mut length = 0;
    let mut characters = 0;
    let mut lines = 0;
    for line in text.split_inclusive('\n') {
        characters += line.chars().count();
        if characters > max_characters {
            // A line that is longer than a page is cut.
            let end = text
                .char_indices()
                .nth(max_characters)
                .map_or(text.len(), |(end, _)| end);
            let text = if lines == 0 {
                &text[..end]
            } else {
                &text[..length]
            };
            return Page {
                text: text.to_owned(),
                lines,
                is_cut: true,
            };
        }
        length += line.len();
        lines += 1;
    }
    Page {
        text: text.to_owned(),
        lines,
        is_cut: false,
    }
}

/// Returns a text, cut with a note that names `how` to see the rest.
pub fn cut_with_note(text: &str, max_characters: usize, how: &str) -> String {
    let page = first_page(text, max_characters);
    if !page.is_cut {
        return page.text;
    }
    let rest = text.split_inclusive('\n').count() - page.lines;
    format!(
        "{}\n[{rest} more lines. {how}]",
        page.text.trim_end_matches('\n')
    )
}
